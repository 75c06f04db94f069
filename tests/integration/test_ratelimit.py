"""POST /ratelimit, GET /ratelimit/check, DELETE /ratelimit: on Redis's clock, under concurrency and faults."""

import json
import threading
import time

import pytest

from lib.clock import FakeClock
from lib.proxy import Fault, is_script
from lib.waiting import wait_until
from test_limit_scripts import VECTORS

CONFIG = """
policy.login = funnel 5/60s burst 4
policy.search = sliding 3/10s
policy.A-1.b_2 = funnel 1000000/1s burst 99
"""


@pytest.fixture
def start(start_redis, start_tallyd, directory):
    """A tallyd with policies, on a Redis whose clock the test moves."""

    def begin(*args, clock=True, config=CONFIG, redis=None):
        directory.mkdir(exist_ok=True)
        (directory / "config").write_text(config)
        fake = FakeClock(directory, "2026-11-20 12:00") if clock else None
        server = redis or start_redis(directory, clock=fake)
        tallyd = start_tallyd("--config", directory / "config", *args, redis=server)
        tallyd.clock, tallyd.server = fake, server
        return tallyd

    return begin


def is_limit(args):
    return is_script(args) and any(b":rl:" in a for a in args)


def ask(http, key="k", **members):
    body = {"key": key, **({} if "policy" in members else {"algorithm": "funnel", "limit": 1, "period_s": 60}), **members}
    return http.request("POST", "/ratelimit", json.dumps(body), {"Content-Type": "application/json"})


def test_vectors_of_redis_cell_in_the_real_thing(start):
    """Times a hundred, so that what a request takes does not show in whole seconds."""
    tallyd = start()
    http, begin = tallyd.client(), tallyd.clock.now()
    for number, text in enumerate(VECTORS):
        t_ms, n, limited, remaining, reset_ms, retry_ms = map(int, text.split())
        if begin + t_ms / 10 > tallyd.clock.now() + 1:
            tallyd.clock.set(begin + t_ms / 10 + 0.5)  # never early, whatever the first requests took
        response = ask(http, period_s=100, burst=4, cost=n)
        retry_s = 0 if not limited else retry_ms // 10 if retry_ms > 0 else -1
        members = {"allowed": not limited, "limit": 5, "remaining": remaining, "retry_after_s": retry_s,
                   "reset_after_s": reset_ms // 10}
        assert response.status == (429 if limited else 200), (number, response)
        assert {k: response.json[k] for k in members} == members, (number, response)
        assert response.headers["RateLimit-Policy"] == '"default";q=5;w=500'
        t = retry_s if retry_s > 0 else reset_ms // 10
        assert response.headers["RateLimit"] == f'"default";r={remaining};t={t}', number
        assert response.headers["Retry-After"] == (str(retry_s) if retry_s > 0 else None), number
        if limited:
            assert response.json["detail"] == response.json["message"]
            assert (response.json["status"], response.json["title"]) == (429, "Too Many Requests")
        else:
            assert response.json == members


def test_sliding(start):
    tallyd = start()
    http, begin = tallyd.client(), int(tallyd.clock.now()) + 1
    tallyd.clock.stand_still(begin)

    def slide(**members):
        response = ask(http, algorithm="sliding", limit=3, period_s=100, **members).json
        return [response[k] for k in ("allowed", "limit", "remaining", "retry_after_s", "reset_after_s")]

    assert slide() == [True, 3, 2, 0, 100]
    tallyd.clock.stand_still(begin + 40)
    assert slide() == [True, 3, 1, 0, 100]
    assert slide(burst=7) == [True, 3, 0, 0, 100]  # burst says nothing here
    assert slide(cost=0) == [True, 3, 0, 0, 100]
    assert slide() == [False, 3, 0, 60, 100]
    assert slide(cost=2) == [False, 3, 0, 100, 100]
    assert slide(cost=4) == [False, 3, 0, -1, 100]
    tallyd.clock.stand_still(begin + 99)
    assert slide() == [False, 3, 0, 1, 41]
    tallyd.clock.stand_still(begin + 100)  # a period ago is no longer within it
    assert slide(cost=0) == [True, 3, 1, 0, 40]
    assert slide() == [True, 3, 0, 0, 100]


def test_policies(start):
    """Each has its own keys; a body without a policy has others again."""
    http = start(clock=False).client()
    for remaining in (4, 3, 2, 1, 0):
        response = ask(http, policy="login")
        assert response.status == 200 and response.json["remaining"] == remaining
        assert response.headers["RateLimit-Policy"] == '"login";q=5;w=60'
    assert ask(http, policy="login").status == 429
    assert ask(http, policy="login", cost=0).status == 200
    assert ask(http, policy="search").json["remaining"] == 2
    assert ask(http, policy="A-1.b_2").headers["RateLimit-Policy"] == '"A-1.b_2";q=100;w=1'
    assert ask(http, limit=5, burst=4).json["remaining"] == 4
    assert ask(http, "other", policy="login").json["remaining"] == 4


def test_check(start):
    http = start(clock=False).client()
    for i in range(3):
        response = http.get("/ratelimit/check", policy="search", key="1.2.3.4")
        assert (response.status, response.body) == (204, b"")
        assert response.headers["RateLimit"] == f'"search";r={2 - i};t=10'
    response = http.get("/ratelimit/check", policy="search", key="1.2.3.4")
    assert response.status == 429 and response.json["allowed"] is False
    assert 1 <= int(response.headers["Retry-After"]) <= 10
    assert ask(http, "1.2.3.4", policy="search").status == 429  # the same thing
    assert http.get("/ratelimit/check", policy="search", key="1.2.3.5").status == 204


def test_reset(start):
    http = start(clock=False).client()

    def use_up():
        while ask(http, policy="login").status == 200 or ask(http, policy="search").status == 200:
            pass
        for algorithm in ("funnel", "sliding"):
            while ask(http, algorithm=algorithm).status == 200:
                pass

    def delete(**params):
        response = http.request("DELETE", "/ratelimit" + "?" + "&".join(f"{k}={v}" for k, v in params.items()))
        assert (response.status, response.body) == (204, b"")

    def full():
        return [ask(http, cost=0, **m).json["remaining"] > 0
                for m in ({"policy": "login"}, {"policy": "search"}, {"algorithm": "funnel"}, {"algorithm": "sliding"})]

    use_up()
    assert full() == [False] * 4
    delete(key="another")
    assert full() == [False] * 4
    delete(key="k", policy="search")
    assert full() == [False, True, False, False]
    delete(key="k")
    assert full() == [True] * 4
    delete(key="k")  # what is not there is gone too


def test_keys_are_kept_apart(start):
    """No key reads as another's, whatever is in it."""
    http = start(clock=False).client()
    keys = ["k", "k:", ":k", "login:k", "}k", "{0}:k", "k\n", " k", "K", "ä", "k" * 256, "k" * 255, "rl:funnel::k", "💥"]
    for _ in range(2):
        for key in keys:
            first = ask(http, key).status
            assert first == (200 if _ == 0 else 429), key
    assert ask(http, "k", policy="login").json["remaining"] == 4


BAD = [
    ({"limit": 0}, "/limit"), ({"limit": -1}, "/limit"), ({"limit": 1.5}, "/limit"), ({"limit": "5"}, "/limit"),
    ({"limit": 10**30}, "/limit"), ({"limit": None}, "/limit"), ({"limit": 10**9 + 1}, "/limit"),
    ({"period_s": 0}, "/period_s"), ({"period_s": -60}, "/period_s"), ({"period_s": 1e-9}, "/period_s"),
    ({"period_s": 1e300}, "/period_s"), ({"period_s": "60"}, "/period_s"), ({"period_s": 31622401}, "/period_s"),
    ({"burst": -1}, "/burst"), ({"burst": 2**63}, "/burst"), ({"burst": 10**9, "period_s": 31622400}, "/burst"),
    ({"burst": True}, "/burst"), ({"cost": -1}, "/cost"), ({"cost": 0.5}, "/cost"), ({"cost": 10**13}, "/cost"),
    ({"algorithm": "leaky"}, "/algorithm"), ({"algorithm": None}, "/algorithm"), ({"algorithm": "FUNNEL"}, "/algorithm"),
    ({"algorithm": "sliding", "limit": 10001}, "/limit"), ({"key": ""}, "/key"), ({"key": "k" * 257}, "/key"),
    ({"key": 5}, "/key"), ({"key": "ä" * 129}, "/key"), ({"policy": "nope"}, "/policy"), ({"policy": ""}, "/policy"),
    ({"policy": "a b"}, "/policy"), ({"policy": "login", "limit": 5}, "/limit"), ({"policy": "login", "burst": 5}, "/burst"),
    ({"perod_s": 5}, ""), ({"limit": 5, "cost": {"a": [1]}}, "/cost"),
]


@pytest.mark.parametrize("members, pointer", BAD, ids=lambda x: json.dumps(x)[:40])
def test_bad_input_names_the_member(http, members, pointer):
    response = ask(http, **{"key": "k", **members})
    assert response.status == 422, response
    assert [e["pointer"] for e in response.errors] == [pointer]
    assert pointer[1:] in response.json["detail"]
    assert members == {"key": ""} or "is required" not in response.json["detail"]


@pytest.mark.parametrize("missing", ["key", "algorithm", "limit", "period_s"])
def test_missing_members_are_named(http, missing):
    body = {"key": "k", "algorithm": "funnel", "limit": 1, "period_s": 1}
    del body[missing]
    response = http.request("POST", "/ratelimit", json.dumps(body))
    assert response.status == 422 and response.errors[0]["pointer"] == "/" + missing, response


@pytest.mark.parametrize("body", ["", "[", "[]]", "{", '{"key":"k"', '{"key":"k"} x', "\ufeff{}", '{"key":}', '{"a":[[[[[1]]]]]}'])
def test_what_is_no_json_is_400(http, body):
    response = http.request("POST", "/ratelimit", body.encode())
    assert response.status == 400 and "line 1, column" in response.json["detail"], response


@pytest.mark.parametrize("body", ["[]", "1", '"key"', "null", '[{"key":"k"}]'])
def test_json_that_is_no_object_is_422(http, body):
    response = http.request("POST", "/ratelimit", body)
    assert response.status == 422 and response.errors == [{"pointer": "", "detail": "must be a JSON object"}], response


def test_bad_text_is_refused(http):
    for body in (b'{"key":"\xff","algorithm":"funnel","limit":1,"period_s":1}', b'{"key":"\\u0000","algorithm":"funnel","limit":1,"period_s":1}',
                 b'{"key":"\\ud800","algorithm":"funnel","limit":1,"period_s":1}',
                 b'{"key":"k","key":"k","algorithm":"funnel","limit":1,"period_s":1}'):
        response = http.request("POST", "/ratelimit", body)
        assert response.status == 422 and response.errors[0]["pointer"] == "/key", response
    assert http.request("POST", "/ratelimit", b"{}", {"Content-Type": "text/plain"}).status == 415
    assert http.request("POST", "/ratelimit?x=1", b"{}").status == 400


def test_bad_parameters(start):
    http = start(clock=False).client()
    for method, params, status, name in (
            ("GET", "policy=login", 400, "key"), ("GET", "key=k", 400, "policy"), ("GET", "policy=nope&key=k", 422, "policy"),
            ("GET", "policy=login&key=" + "k" * 257, 400, "key"), ("GET", "policy=login&key=", 400, "key"),
            ("GET", "policy=login&key=k&cost=2", 400, "cost"), ("DELETE", "", 400, "key"), ("DELETE", "key=k&policy=x", 422, "policy"),
            ("DELETE", "key=k&x=1", 400, "x"), ("DELETE", "key=%00", 400, "key")):
        response = http.request(method, ("/ratelimit/check" if method == "GET" else "/ratelimit") + "?" + params)
        assert response.status == status and [e["parameter"] for e in response.errors] == [name], response


def test_the_longest_key_in_a_query(start):
    http = start(clock=False).client()
    for _ in range(2):
        for _ in range(5):
            assert http.request("GET", "/ratelimit/check?policy=login&key=" + "k" * 256).status == 204
        assert http.request("GET", "/ratelimit/check?policy=login&key=" + "k" * 256).status == 429
        assert http.request("DELETE", "/ratelimit?policy=login&key=" + "k" * 256).status == 204


@pytest.mark.parametrize("value", ["funnel", "funnel 5", "funnel 5/60", "funnel 0/60s", "funnel 5/0s", "funnel 5/60s burst",
                                   "funnel 5/60s burst -1", "funnel 5/60s burst 4 x", "funnel 5/60s bursts 4", "leaky 5/60s", "",
                                   "sliding 5/60s burst 4", "sliding 10001/60s", "funnel 1/367d", "funnel 1/366d burst 1000000000",
                                   "funnel -5/60s", "funnel 5 / 60s", "funnel 5/60s +", "funnel 5/60s + sliding", "penalty 15m after 3/1h",
                                   "funnel 5/60s + penalty 15m", "funnel 5/60s + penalty 15m after 101/1h", "sliding 1/1s + " * 8 + "sliding 1/1s",
                                   "funnel 5/60s + penalty 1m after 3/1h + penalty 1h after 3/1h"])
def test_bad_policies_are_refused_at_the_start(tmp_path, value):
    from lib.process import run
    (tmp_path / "c").write_text(f"policy.p = {value}\n")
    done = run("serve", "--config", tmp_path / "c", "--data-dir", tmp_path / "d", "--listen", "127.0.0.1:0")
    assert done.returncode == 2 and "c:1: policy.p" in done.stderr, done


def test_exactly_so_many_pass_together(start, start_tallyd):
    """Two processes, eight clients: as many as the limit, and not one more; and merging happens."""
    tallyd = start(clock=False)
    other = start_tallyd(redis=tallyd.server, name="other")
    allowed = []

    def hammer(daemon):
        http = daemon.client()
        statuses = [(ask(http, limit=1, period_s=3600, burst=99).status, ask(http, algorithm="sliding", limit=77, period_s=3600).status)
                    for _ in range(60)]
        allowed.append([sum(s[i] == 200 for s in statuses) for i in (0, 1)])

    threads = [threading.Thread(target=hammer, args=(d,)) for d in (tallyd, other) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [sum(column) for column in zip(*allowed)] == [100, 77]
    http = tallyd.client()
    checks, denied = (http.metric(f"tallyd_limit_{n}_total") for n in ("checks", "denied"))
    assert checks + other.client().metric("tallyd_limit_checks_total") == 960
    assert 0 < denied < checks


def test_limits_and_events_in_one_pipeline(start):
    """Entries and limits mixed on one connection: every reply finds its own."""
    tallyd = start(clock=False)
    failed = []

    def events(n):
        http = tallyd.client()
        for i in range(100):
            if http.post([{"page": f"/{n}", "user": f"u{i}"}] * 3).status != 202:
                failed.append("event")

    def limits(n):
        http = tallyd.client()
        for i in range(100):
            if ask(http, f"{n}", limit=1, period_s=3600, burst=99).json["remaining"] != 99 - i:
                failed.append("limit")

    threads = [threading.Thread(target=what, args=(n,)) for n in range(4) for what in (events, limits)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and tallyd.client().count("pv", from_="now-1h") == 1200


@pytest.mark.parametrize("algorithm", ["funnel", "sliding"])
def test_a_lost_connection_takes_at_most_once(start, start_redis, start_proxy, directory, algorithm):
    """In doubt is 504, and never sent again: then at most one was taken, and what comes next works."""
    redis = start_redis(directory)
    proxy = start_proxy(redis)
    tallyd = start("--request-timeout", "3s", clock=False, redis=proxy)
    http = tallyd.client()
    members = {"algorithm": algorithm, "limit": 10 if algorithm == "sliding" else 1, "period_s": 3600, "burst": 9}
    assert ask(http, **members).status == 200
    before = ask(http, cost=0, **members).json["remaining"]
    proxy.hold_replies()
    begin = time.monotonic()
    response = ask(http, **members)
    assert response.status == 504, response
    assert time.monotonic() - begin < 3.9, "late"
    proxy.cut_all()
    proxy.hold_replies(False)
    wait_until(lambda: ask(http, cost=0, **members).status == 200, "it is there again")
    assert ask(http, cost=0, **members).json["remaining"] in (before, before - 1)


@pytest.mark.parametrize("point", ["command-after", "reply-before", "reply-inside"])
def test_a_reply_that_is_cut_is_in_doubt(start, start_redis, start_proxy, directory, point):
    """At once, not at the deadline."""
    proxy = start_proxy(start_redis(directory))
    http = start(clock=False, redis=proxy).client()
    assert ask(http).status == 200
    proxy.arm(Fault(point, match=is_limit))
    assert ask(http, key="other").status == 504
    assert ask(http, key="third").status == 200


def test_a_script_that_redis_never_runs_has_a_deadline(start, start_redis, start_proxy, directory):
    """It did nothing, so it is sent again and again, and a 503 at the end.  Then it goes on."""
    proxy = start_proxy(start_redis(directory))
    http = start("--request-timeout", "1s", clock=False, redis=proxy).client()
    assert ask(http).status == 200
    fault = proxy.arm(Fault("error", times=10**6, match=is_limit, text="BUSY Redis is busy running a script"))
    begin = time.monotonic()
    assert ask(http, key="other").status == 503
    assert 0.9 < time.monotonic() - begin < 2 and fault.fired > 10
    proxy.disarm()
    assert ask(http, key="other").status == 200


@pytest.mark.parametrize("algorithm", ["funnel", "sliding"])
def test_a_script_that_fails_half_way_is_in_doubt(start, algorithm):
    """Something else lies in the limit's key: the script ends where it writes.  Others' limits, in the same call, go on later."""
    tallyd = start(clock=False)
    http, redis = tallyd.client(), tallyd.server
    members = {"algorithm": algorithm, "limit": 10, "period_s": 3600}
    first = ask(http, **members).json["remaining"]
    key, = (k for k in redis.command("KEYS", "*rl*") if k.endswith(":k"))
    redis.command("DEL", key)
    redis.command("RPUSH", key, "x")
    response = ask(http, **members)
    assert response.status == 504, response
    assert ask(http, key="other", **members).status == 200
    redis.command("DEL", key)
    assert ask(http, **members).json["remaining"] == first


def test_without_redis_it_is_503(start):
    tallyd = start("--request-timeout", "2s", clock=False)
    http = tallyd.client()
    tallyd.server.kill()
    wait_until(lambda: ask(http).status == 503, "nothing was sent")
    response = ask(http)
    assert response.status == 503 and response.headers["Retry-After"] == "1"
    for method, path in (("GET", "/ratelimit/check?policy=login&key=k"), ("DELETE", "/ratelimit?key=k")):
        assert http.request(method, path).status == 503
    tallyd.server.start()
    wait_until(lambda: ask(http).status == 200, "it is back")


def test_more_than_are_sent_at_once(start):
    """While Redis stands still, more come than one batch has room for: each is answered, and none is charged twice."""
    n = 400
    tallyd = start("--request-timeout", "60s", clock=False)
    assert ask(tallyd.client(), key="other").status == 200
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(ask(tallyd.client(), limit=1, period_s=3600, burst=n // 2 - 1).status))
               for _ in range(n)]
    tallyd.server.pause()
    for thread in threads:
        thread.start()
    wait_until(lambda: tallyd.client().metric("tallyd_http_connections") > n, "all are there", deadline_s=60)
    tallyd.server.resume()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200] * (n // 2) + [429] * (n // 2)


def test_what_waits_behind_another_reply_keeps_its_deadline(start, start_redis, start_proxy, directory):
    """The first is under way and in doubt; nothing of the second was sent, and both are told in time."""
    proxy = start_proxy(start_redis(directory))
    tallyd = start("--request-timeout", "1s", clock=False, redis=proxy)
    assert ask(tallyd.client()).status == 200
    proxy.hold_replies()
    answers = {}  # the clients may be told in another order than tallyd answers

    def one(key):
        begin = time.monotonic()
        answers[key] = (ask(tallyd.client(), key=key).status, time.monotonic() - begin)

    threads = [threading.Thread(target=one, args=(key,)) for key in ("first", "second", "third")]
    threads[0].start()
    wait_until(lambda: tallyd.client().metric("tallyd_limit_scripts_total") == 2, "it is under way")
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: status for key, (status, _) in answers.items()} == {"first": 504, "second": 503, "third": 503}, answers
    assert all(0.9 < took_s < 1.5 for _, took_s in answers.values()), answers


def test_a_connection_that_was_closed_while_idle(start):
    http = (tallyd := start(clock=False)).client()
    for key in "abc":
        assert ask(http, key=key).status == 200
        tallyd.server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def test_a_stop_does_not_wait_for_a_reply(start, start_redis, start_proxy, directory):
    """Redis stands still.  The request was answered at its deadline, so nobody waits for the reply any more."""
    proxy = start_proxy(start_redis(directory))
    tallyd = start("--request-timeout", "500ms", clock=False, redis=proxy)
    assert ask(tallyd.client()).status == 200
    proxy.hold_replies()
    assert ask(tallyd.client(), key="other").status == 504
    begin = time.monotonic()
    tallyd.terminate()
    assert time.monotonic() - begin < 3


def test_a_redis_that_has_just_gone_is_waited_for_a_second(start):
    """It may be back at once; what was not sent does not wait until its deadline."""
    tallyd = start("--request-timeout", "20s", clock=False)
    http = tallyd.client()
    assert ask(http).status == 200
    tallyd.server.kill()
    begin = time.monotonic()
    response = ask(http, key="other")
    assert response.status == 503 and 0.5 < time.monotonic() - begin < 5, response
    tallyd.server.start()
    wait_until(lambda: ask(http, key="other").status == 200, "it is back")


def test_out_of_memory_is_503(start):
    tallyd = start(clock=False)
    http = tallyd.client()
    tallyd.server.command("CONFIG", "SET", "maxmemory", "1")
    for algorithm in ("funnel", "sliding"):
        response = ask(http, algorithm=algorithm)
        assert response.status == 503 and "memory" in response.json["detail"], response
    tallyd.server.command("CONFIG", "SET", "maxmemory", "0")
    assert ask(http).status == 200


def test_scripts_that_were_flushed_are_loaded_again(start):
    tallyd = start(clock=False)
    http = tallyd.client()
    assert ask(http, burst=9).json["remaining"] == 9
    tallyd.server.command("SCRIPT", "FLUSH")
    assert ask(http, burst=9).json["remaining"] == 8
