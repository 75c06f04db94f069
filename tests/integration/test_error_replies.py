"""Redis answers a command of each kind of request with an error: the client gets the right answer or an honest 503 or
504, and the next request finds everything in order."""

import json

import pytest

from lib import request_kinds
from lib.log import OfAFold, is_append
from lib.process import Redis, Tallyd
from lib.proxy import Fault, Proxy
from lib.reply_positions import of_a_request
from lib.request_kinds import QUESTIONS, SITE, prepare, send
from lib.waiting import wait_until

# Those that change something: their answer's text may be another.
CHANGES = {
    "add": ("POST", "/filters/f/add", {"site": SITE}, {"items": ["x"]}),
    "make a filter": ("PUT", "/filters/f", {"site": SITE}, {"capacity": 1000, "error_rate": 0.01}),
    "write a page set": ("PUT", "/pagesets/set", {"site": SITE}, {"pages": ["/a", "/c"]}),
    "forget": ("DELETE", "/users/nobody", {"site": SITE}, None),
    "limit": ("POST", "/ratelimit", {}, {"key": "k", "algorithm": "funnel", "limit": 1000000, "period_s": 1}),
    "exact limit": ("POST", "/ratelimit", {}, {"key": "k", "algorithm": "sliding", "limit": 10000, "period_s": 1}),
    "reset": ("DELETE", "/ratelimit", {"key": "k"}, None),
    "events": ("POST", "/events", {}, [{"site": "errors-more", "page": "/a", "user": "u1"}]),
}
ERRORS = ("OOM command not allowed when used memory > 'maxmemory'", "MISCONF Errors writing to the AOF file",
          "READONLY You can't write against a read only replica", "LOADING Redis is loading the dataset in memory",
          "BUSY Redis is busy running a script", "NOSCRIPT No matching script", "NOPERM this user has no permissions",
          "NOAUTH Authentication required", "WRONGTYPE Operation against a key holding the wrong kind of value",
          "ERR something else")
COMMANDS = 4  # the first ones of a request are refused, one in each round


@pytest.fixture(scope="module")
def behind_a_proxy():
    redis = Redis(appendonly=True).start()  # it loses nothing, so a deletion does not wait
    proxy = Proxy(redis.directory, redis.path)
    tallyd = Tallyd("--partitions", "2", "--request-timeout", "2s", redis=proxy, name="behind-a-proxy")
    try:
        yield tallyd.start(), proxy
    finally:
        tallyd.stop()
        proxy.close()
        redis.stop()


@pytest.fixture(scope="module")
def scene(behind_a_proxy):
    tallyd, proxy = behind_a_proxy
    http = tallyd.client()
    prepare(http)
    http.close()
    return tallyd, proxy


def ask(http, name):
    return send(http, *CHANGES[name]) if name in CHANGES else request_kinds.ask(http, name)


def ask_under(proxy, http, name, right, fault):
    """The answer is right, or a 503 that says why (of a change it may be a 504), and the next one is right again."""
    changes = name in CHANGES
    proxy.arm(fault)
    answer = ask(http, name)
    proxy.arm(None)
    if answer.status < 300:
        assert changes or answer.body == right.body, (fault, answer)
    else:
        assert answer.status in (503, 504) and answer.json["detail"], (fault, answer)
        assert changes or answer.status == 503, "a question changes nothing: nothing can be in doubt"
        assert answer.status == 504 or int(answer.headers["Retry-After"]) >= 1
    wait_until(lambda: ask(http, name).status < 300, f"{name} is answered again")
    assert changes or ask(http, name).body == right.body, fault
    return fault


@pytest.mark.some(100)
@pytest.mark.parametrize("error", ERRORS, ids=lambda text: text.partition(" ")[0])
@pytest.mark.parametrize("name", [*QUESTIONS, *CHANGES])
def test_an_error_in_place_of_a_reply(scene, name, error):
    tallyd, proxy = scene
    http = tallyd.client()
    right = ask(http, name)
    assert right.status < 300, right
    fired = 0
    for nth in range(1, COMMANDS + 1):
        fired += ask_under(proxy, http, name, right, Fault("error", nth=nth, match=of_a_request, text=error)).fired
    http.close()
    assert fired >= 1, "nothing was refused, so nothing was tested"


@pytest.mark.parametrize("error", ERRORS, ids=lambda text: text.partition(" ")[0])
def test_an_error_in_place_of_a_reply_to_a_request_with_a_key(scene, chance, error):
    """Whether the append is refused or a command of the fold behind it: who repeats the request until it is taken has
    counted once."""
    tallyd, proxy = scene
    http = tallyd.client()
    fired = 0
    for nth, match in [(1, is_append)] + [(n, OfAFold()) for n in range(1, 2 * COMMANDS + 1)]:
        key = f"{nth}-{chance.getrandbits(64):x}"
        batch = [{"site": key, "page": f"/{i}", "user": f"u{i}"} for i in range(70)]

        def post():
            return http.post(batch, headers={"Idempotency-Key": key})

        fault = proxy.arm(Fault("error", nth=nth, match=match, text=error))
        answer = post()
        during = http.get("/pv", site=key)
        proxy.arm(None)
        fired += fault.fired
        assert answer.status in (202, 503, 504), (nth, answer)
        assert answer.status != 503 or int(answer.headers["Retry-After"]) >= 1
        assert during.status == 503 or during.json["pv"] == (len(batch) if answer.status == 202 else 0), (nth, during)
        wait_until(lambda: post().status == 202, "it is taken")
        assert http.count("pv", site=key, from_="now-1h") == len(batch), nth
        again = post()
        assert again.status == 202 and again.headers["Idempotency-Replayed"] == "true", again
    http.close()
    assert fired == 1 + 2 * COMMANDS


WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
ITEMS = 12  # of a transaction


@pytest.fixture(scope="module")
def uncached():
    """A tallyd that reads all that it is asked for."""
    redis = Redis(appendonly=True).start()
    proxy = Proxy(redis.directory, redis.path)
    tallyd = Tallyd("--partitions", "2", "--request-timeout", "2s", "--cache-mb", "0", redis=proxy, name="uncached")
    try:
        http = tallyd.start().client()
        prepare(http)
        http.close()
        yield tallyd, proxy
    finally:
        tallyd.stop()
        proxy.close()
        redis.stop()


@pytest.mark.some(30)
@pytest.mark.parametrize("error", [WRONG_TYPE, ""], ids=["an error", "another type"])
@pytest.mark.parametrize("name", [*QUESTIONS, *CHANGES])
def test_a_reply_of_another_type(uncached, name, error):
    """As when a key is not ours: one reply of a transaction, or a whole one, is of a type that it never has."""
    tallyd, proxy = uncached
    http = tallyd.client()
    right = ask(http, name)
    assert right.status < 300, right
    fired = 0
    for nth in range(1, 3 * COMMANDS + 1):
        item, items = 0, 1
        while item < min(items, ITEMS):
            fault = ask_under(proxy, http, name, right, Fault("spoiled", nth=nth, match=of_a_request, text=error, item=item))
            items = max(fault.items, items)
            fired += fault.fired
            item += 1
    http.close()
    assert fired >= 1, "nothing was spoiled, so nothing was tested"


@pytest.mark.some(12)
@pytest.mark.parametrize("error", [WRONG_TYPE, ""], ids=["an error", "another type"])
@pytest.mark.parametrize("item", range(ITEMS))
def test_a_reply_of_another_type_to_what_counts(scene, chance, item, error):
    """The append, or a transaction of the fold behind it, was applied, and its reply is not understood: it counts once."""
    tallyd, proxy = scene
    http = tallyd.client()
    fired = 0
    for nth, match in [(1, is_append)] + [(n, OfAFold()) for n in range(1, 2 * COMMANDS + 1)]:
        key = f"{nth}-{chance.getrandbits(64):x}"
        batch = [{"site": key, "page": f"/{i}", "user": f"u{i}", "actions": ["buy"], "ua": "Mozilla/5.0 Firefox/120.0"} for i in range(70)]

        def post():
            return http.post(batch, headers={"Idempotency-Key": key})

        fault = proxy.arm(Fault("spoiled", nth=nth, match=match, text=error, item=item))
        answer = post()
        during = http.get("/pv", site=key)
        proxy.arm(None)
        fired += fault.fired
        assert answer.status in (202, 503, 504), (nth, answer)
        assert during.status in (503, 504) or during.json["pv"] in (0, len(batch)), (nth, during)
        assert during.status != 200 or answer.status != 202 or during.json["pv"] == len(batch), (nth, during)
        wait_until(lambda: post().status == 202, "it is taken")
        assert http.count("pv", site=key, from_="now-1h") == len(batch), nth
        assert abs(http.count("uv", site=key, from_="now-1h") - len(batch)) < 0.1 * len(batch), "an estimate"
    http.close()
    assert fired >= 1, "nothing was spoiled, so nothing was tested"


def about(*names):
    return lambda args: args[0].upper() in (b"HSET", b"HDEL", b"EVALSHA") and any(a in names for a in args)


@pytest.mark.parametrize("text", ["NOPERM this user has no permissions", "OOM command not allowed when used memory > 'maxmemory'"],
                         ids=lambda text: text.split()[0])
@pytest.mark.parametrize("method, path, body, match", [
    ("PUT", "/pagesets/landing", {"pages": ["/", "/b"]}, about(b"landing")), ("DELETE", "/pagesets/old", None, about(b"old")),
    ("DELETE", "/users/u1", None, about(b"u1", b"u2"))], ids=["write a page set", "delete it", "forget"])
def test_refused_after_an_answer_that_was_lost(start_redis, start_proxy, start_tallyd, method, path, body, match, text):
    """The first try was applied, its answer is lost, and the second one is refused: that it was is no reason for a 503."""
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    http = start_tallyd("--request-timeout", "2s", "--readers", "1", redis=proxy).client()
    http.accept([{"page": "/", "user": "u1"}])
    assert http.count("pv") == 1, "it is folded: no fold is to be harmed"
    assert http.request("PUT", "/pagesets/old", '{"pages":["/"]}').status == 201
    refused = Fault("error", match=match, text=text, times=1000)
    proxy.arm(Fault("reply-before", match=match, then=refused))
    answer = http.request(method, path, json.dumps(body))
    assert refused.fired > 0 and answer.status == 504, answer
    proxy.arm(Fault("error", match=match, text=text, times=1000))
    answer = http.request(method, path.replace("u1", "u2"), json.dumps(body))
    assert answer.status == 503, f"nothing of this one was applied: {answer}"
