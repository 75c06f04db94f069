"""Redis answers a command of each kind of request with an error: the client gets the right answer or an honest 503 or
504, and the next request finds everything in order."""

import json
import time

import pytest

from lib.client import query
from lib.log import OfAFold, is_append
from lib.process import Redis, Tallyd
from lib.proxy import Fault, Proxy
from lib.waiting import wait_until

SITE = "errors"
WINDOW = {"site": SITE, "from": "now-3h/h", "to": "now-1h/h"}  # over, so that the answer is always the same
DAYS = {"site": SITE, "from": "now-3d/d", "to": "now/d"}
JSON = {"Content-Type": "application/json"}

# What is asked: method, path, parameters, body, whether it changes something (then the answer's text may be another)
REQUESTS = {
    "uv": ("GET", "/uv", WINDOW, None, False),
    "series": ("GET", "/stats", {**WINDOW, "step": "1h"}, None, False),
    "page set": ("GET", "/pv", {**WINDOW, "pageset": "set"}, None, False),
    "pages": ("GET", "/pages", WINDOW, None, False),
    "by visitors": ("GET", "/pages", {**WINDOW, "by": "uv"}, None, False),
    "overlap": ("GET", "/overlap?page=/a&page=/b", WINDOW, None, False),
    "sites": ("GET", "/sites", {}, None, False),
    "dau": ("GET", "/dau", DAYS, None, False),
    "active": ("GET", "/active", {**DAYS, "match": "all"}, None, False),
    "who": ("GET", "/active/users", DAYS, None, False),
    "days of a user": ("GET", "/users/u1/activity", DAYS, None, False),
    "seen": ("GET", "/seen", {"site": SITE, "user": "u1", "page": "/b"}, None, False),
    "seen of many": ("POST", "/seen", {"site": SITE}, b'{"user":"u1","pages":["/b","/never"]}', False),
    "filter": ("GET", "/filters/f", {"site": SITE}, None, False),
    "check": ("POST", "/filters/f/check", {"site": SITE}, b'{"items":["x","y"]}', False),
    "add": ("POST", "/filters/f/add", {"site": SITE}, b'{"items":["x"]}', True),
    "make a filter": ("PUT", "/filters/f", {"site": SITE}, b'{"capacity":1000,"error_rate":0.01}', True),
    "write a page set": ("PUT", "/pagesets/set", {"site": SITE}, b'{"pages":["/a","/c"]}', True),
    "forget": ("DELETE", "/users/nobody", {"site": SITE}, None, True),
    "limit": ("POST", "/ratelimit", {}, b'{"key":"k","algorithm":"funnel","limit":1000000,"period_s":1}', True),
    "exact limit": ("POST", "/ratelimit", {}, b'{"key":"k","algorithm":"sliding","limit":10000,"period_s":1}', True),
    "reset": ("DELETE", "/ratelimit", {"key": "k"}, None, True),
    "events": ("POST", "/events", {}, b'[{"site":"errors-more","page":"/a","user":"u1"}]', True),
}
ERRORS = ("OOM command not allowed when used memory > 'maxmemory'", "MISCONF Errors writing to the AOF file",
          "READONLY You can't write against a read only replica", "LOADING Redis is loading the dataset in memory",
          "BUSY Redis is busy running a script", "NOSCRIPT No matching script", "NOPERM this user has no permissions",
          "NOAUTH Authentication required", "WRONGTYPE Operation against a key holding the wrong kind of value",
          "ERR something else")
COMMANDS = 4  # the first ones of a request are refused, one in each round


def of_a_request(args):
    """Not the leader's lock, and not what a new connection begins with."""
    return args[0].upper() not in (b"HELLO", b"AUTH", b"SELECT", b"PING", b"SCRIPT", b"CONFIG", b"INFO", b"CLIENT", b"ROLE") \
        and not any(a.endswith((b":lock", b":meta", b":secret", b":wish")) for a in args[1:5])


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
    now = int(time.time())
    events = [{"site": SITE, "page": f"/{'abc'[i % 3]}", "user": f"u{i % 7}", "ip": f"10.0.0.{i}",
               "ts": now - (7200 if i % 2 else 30 * 3600)} for i in range(60)]
    assert http.post(events).status == 202
    for name in ("make a filter", "add", "write a page set"):
        assert ask(http, name).status < 300
    assert ask(http, "uv").json["uv"] == 7 and len(ask(http, "by visitors").json["pages"]) == 3
    yield tallyd, proxy
    http.close()


def ask(http, name):
    method, path, params, body, _ = REQUESTS[name]
    text = query(params)
    return http.request(method, path + (text.replace("?", "&", 1) if "?" in path else text), body, JSON if body else {})


@pytest.mark.parametrize("error", ERRORS, ids=lambda text: text.partition(" ")[0])
@pytest.mark.parametrize("name", REQUESTS)
def test_an_error_in_place_of_a_reply(scene, name, error):
    tallyd, proxy = scene
    http = tallyd.client()
    changes = REQUESTS[name][4]
    right = ask(http, name)
    assert right.status < 300, right
    fired = 0
    for nth in range(1, COMMANDS + 1):
        fault = proxy.arm(Fault("error", nth=nth, match=of_a_request, text=error))
        answer = ask(http, name)
        proxy.arm(None)
        fired += fault.fired
        if answer.status < 300:
            assert changes or answer.body == right.body, (nth, answer)
        else:
            assert answer.status in (503, 504) and answer.json["detail"], (nth, answer)
            assert changes or answer.status == 503, "a question changes nothing: nothing can be in doubt"
            assert answer.status == 504 or int(answer.headers["Retry-After"]) >= 1
        wait_until(lambda: ask(http, name).status < 300, f"{name} is answered again")
        assert changes or ask(http, name).body == right.body
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
