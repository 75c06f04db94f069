"""Policies of several limits and a penalty, over HTTP: what is told, races, faults, several processes, SIGHUP."""

import collections
import json
import re
import signal
import threading

import pytest

from lib.clock import FakeClock
from lib.limit_model import DENIED, Funnel, Penalty, Policy, Sliding
from lib.waiting import wait_until

FUNNEL, SLIDING, PENALTY = "funnel 5/60s burst 4", "sliding 100/1d", "penalty 15m after 3/1h"
CONFIG = f"policy.login = {FUNNEL} + {SLIDING} + {PENALTY}\npolicy.two = sliding 2/10s + sliding 3/100s\n"


@pytest.fixture
def start(start_redis, start_tallyd, directory):
    """A tallyd with policies.  It is on a Redis whose clock the test moves, or on the given one; hangup() gives it others."""

    def begin(config=CONFIG, *args, redis=None):
        directory.mkdir(exist_ok=True)
        (directory / "config").write_text(config)
        fake = FakeClock(directory, "2026-11-20 12:00") if redis is None else None
        server = redis or start_redis(directory, clock=fake)
        tallyd = start_tallyd("--config", directory / "config", *args, redis=server)

        def hangup(new):
            before = len(tallyd.log_text())
            (directory / "config").write_text(new)
            tallyd.signal(signal.SIGHUP)
            wait_until(lambda: "read the configuration again" in tallyd.log_text()[before:], "the new configuration")

        tallyd.clock, tallyd.server, tallyd.hangup = fake, server, hangup
        return tallyd

    return begin


def ask(http, policy, key="k", **members):
    return http.request("POST", "/ratelimit", json.dumps({"key": key, "policy": policy, **members}))


def check(http, policy, key="k"):
    return http.get("/ratelimit/check", policy=policy, key=key)


def told(response):
    """(q, w, r, t) of the two fields."""
    policy = re.fullmatch(r'"[\w.-]+";q=(\d+);w=(\d+)', response.headers["RateLimit-Policy"])
    state = re.fullmatch(r'"[\w.-]+";r=(\d+);t=(\d+)', response.headers["RateLimit"])
    return tuple(int(n) for n in (*policy.groups(), *state.groups()))


def test_the_example_of_the_contract(start):
    tallyd = start()
    http, begin = tallyd.client(), int(tallyd.clock.now()) + 1
    tallyd.clock.stand_still(begin)
    for left in (4, 3, 2, 1, 0):
        response = ask(http, "login")
        assert (response.status, told(response)) == (200, (5, 60, left, 12 * (5 - left)))
        assert response.json == {"allowed": True, "limit": 5, "remaining": left, "retry_after_s": 0, "reset_after_s": 12 * (5 - left)}
    for retry_s in (12, 12, 900):  # the third begins the penalty, so nothing is worth a try before it ends
        response = ask(http, "login")
        assert (response.status, told(response)) == (429, (5, 60, 0, retry_s))
        assert response.json["limited_by"] == FUNNEL and response.json["retry_after_s"] == retry_s
        assert response.headers["Retry-After"] == str(retry_s)
    tallyd.clock.stand_still(begin + 600)
    for response in (ask(http, "login"), check(http, "login"), ask(http, "login", cost=0)):  # every request
        assert (response.status, told(response), response.headers["Retry-After"]) == (429, (5, 60, 0, 300), "300")
        assert {k: response.json[k] for k in ("allowed", "limit", "remaining", "retry_after_s", "reset_after_s", "limited_by")} == {
            "allowed": False, "limit": 5, "remaining": 0, "retry_after_s": 300, "reset_after_s": 300, "limited_by": PENALTY}
        assert response.json["detail"] == response.json["message"] == "refused too often; try again in 300 s"
    assert ask(http, "login", "another").status == 200
    tallyd.clock.stand_still(begin + 900)
    assert ask(http, "login").json["remaining"] == 4
    assert [http.metric(f"tallyd_limit_{n}_total") for n in ("checks", "denied", "penalised")] == [13, 6, 3]


def test_the_strictest_is_told(start):
    """The one with least left; of a refusal, the one that lasts longest."""
    tallyd = start()
    http, begin = tallyd.client(), int(tallyd.clock.now()) + 1
    tallyd.clock.stand_still(begin)
    assert told(ask(http, "two")) == (2, 10, 1, 10)
    assert told(ask(http, "two")) == (2, 10, 0, 10)
    response = ask(http, "two")
    assert (told(response), response.json["limited_by"]) == ((2, 10, 0, 10), "sliding 2/10s")
    tallyd.clock.stand_still(begin + 10)
    assert told(ask(http, "two")) == (3, 100, 0, 100)
    response = ask(http, "two")
    assert (told(response), response.json["limited_by"]) == ((3, 100, 0, 90), "sliding 3/100s")
    response = ask(http, "two", cost=3)
    assert (response.json["retry_after_s"], response.json["limited_by"]) == (-1, "sliding 2/10s")
    response = check(http, "two")
    assert response.status == 429 and response.json["limited_by"] == "sliding 3/100s"
    tallyd.clock.stand_still(begin + 100)
    assert check(http, "two").status == 204


def test_a_policy_of_one_limit_says_it_too(start):
    http = start("policy.one = funnel  1/1h\npolicy.strict = sliding 1/1h+penalty 1d after 1/1h\n").client()
    assert [ask(http, "one").status for _ in range(2)] == [200, 429]
    assert ask(http, "one").json["limited_by"] == "funnel 1/1h"
    assert [ask(http, "strict").json.get("limited_by") for _ in range(3)] == [None, "sliding 1/1h", "penalty 1d after 1/1h"]
    body = {"key": "k", "algorithm": "funnel", "limit": 1, "period_s": 3600}
    assert [http.request("POST", "/ratelimit", json.dumps(body)).status for _ in range(2)] == [200, 429]
    assert "limited_by" not in http.request("POST", "/ratelimit", json.dumps(body)).json


def test_random_histories_on_redis_s_clock(start, chance):
    """Against the model, in whole seconds: times that pass and step back, costs, looks, resets."""
    tallyd = start()
    http, now = tallyd.client(), int(tallyd.clock.now()) + 1
    policies = {"login": Policy([Funnel(5, 60_000_000, 4), Sliding(100, 86400_000_000)], Penalty(3, 3600_000_000, 900_000_000)),
                "two": Policy([Sliding(2, 10_000_000), Sliding(3, 100_000_000)])}
    for step in range(300):
        now += chance.choice([0, 0, 0, 1, 5, 12, 60, chance.choice([0, 300, 3700])])
        now -= chance.choice([0] * 40 + [1, 30, 5000])
        tallyd.clock.stand_still(now, back=True)
        tallyd.server.command("SCAN", 0, "COUNT", 10_000)  # what has expired goes now
        for policy in policies.values():
            policy.expire(now * 1_000_000)
        name, n = chance.choice(list(policies)), chance.choice([0, 1, 1, 1, 2, 4, 6])
        policy = policies[name]
        if chance.random() < 0.02:
            assert http.request("DELETE", f"/ratelimit?key=k&policy={name}").status == 204
            policy.reset()
        response = ask(http, name, cost=n)
        granted, remaining, retry_us, reset_us, strictest = policy.ask(now * 1_000_000, n)
        expected = (429 if granted < 0 else 200, remaining, -(-retry_us // 1_000_000) if retry_us > 0 else retry_us, -(-reset_us // 1_000_000))
        got = (response.status, *(response.json[k] for k in ("remaining", "retry_after_s", "reset_after_s")))
        assert got == expected, (step, name, n, granted)
        if granted == DENIED and len(strictest) == 1:
            words = {"login": [FUNNEL, SLIDING], "two": ["sliding 2/10s", "sliding 3/100s"]}[name]
            assert response.json["limited_by"] == words[min(strictest)], step


def test_a_reset_forgets_all_parts(start):
    """Of one policy or of all, and of what a policy had before its configuration changed."""
    tallyd = start()
    http = tallyd.client()

    def use_up():
        for name in ("login", "two"):
            while ask(http, name).json.get("limited_by", "").split(" ")[0] != ("penalty" if name == "login" else "sliding"):
                pass

    def full():
        return [ask(http, name, cost=0).json["remaining"] for name in ("login", "two")] == [5, 2]

    for params in ("key=k", "key=k&policy=login"):
        use_up()
        assert http.request("DELETE", f"/ratelimit?{params}").status == 204
        assert full() or params != "key=k"
        assert ask(http, "login", cost=0).json["remaining"] == 5
    assert ask(http, "two").status == 429
    assert http.request("DELETE", "/ratelimit?key=k").status == 204
    use_up()
    tallyd.hangup("policy.login = funnel 5/60s burst 4\npolicy.two = sliding 2/10s\n")
    assert http.request("DELETE", "/ratelimit?key=k").status == 204
    assert tallyd.server.command("KEYS", "*rl:*") == []


def test_what_was_taken_stays_taken_when_a_policy_gets_another_limit(start):
    """A limit alone lies in Redis as it always did, and the first of its kind in a policy lies there too."""
    tallyd = start("policy.p = funnel 1/1h burst 9\npolicy.q = sliding 10/1h\n")
    http = tallyd.client()
    for name in "pq":
        assert ask(http, name, cost=4).json["remaining"] == 6
    assert {key.partition("}:")[2] for key in tallyd.server.command("KEYS", "*rl:*")} == {"rl:funnel:p:k", "rl:sliding:q:k"}
    tallyd.hangup("policy.p = funnel 1/1h burst 9 + sliding 20/1d + penalty 1m after 2/1h\npolicy.q = sliding 10/1h + sliding 20/1d\n")
    for name in "pq":
        assert ask(http, name, cost=2).json["remaining"] == 4
    assert ask(http, "p", cost=5).status == ask(http, "q", cost=5).status == 429
    assert {key.partition("}:")[2] for key in tallyd.server.command("KEYS", "*rl:*")} == {
        "rl:funnel:p:k", "rl:sliding:p:k", "rl:penalty:p:k", "rl:sliding:q:k", "rl:sliding2:q:k"}
    assert len({key.partition("}")[0] for key in tallyd.server.command("KEYS", "*rl:*")}) == 1, "one hash tag: one node decides"
    tallyd.hangup("policy.p = funnel 1/1h burst 9\npolicy.q = sliding 10/1h\n")
    for name in "pq":
        assert ask(http, name, cost=4).json["remaining"] == 0


def test_racing_senders_at_two_processes(start, start_redis, start_tallyd, directory):
    """As many pass as the narrowest limit says, the others are charged for these alone, and one penalty begins: once."""
    config = "policy.race = funnel 1/1d burst 199 + sliding 77/1d + penalty 1d after 3/1d\n"
    tallyd = start(config, redis=start_redis())
    other = start_tallyd("--config", directory / "config", redis=tallyd.server, name="other")
    outcomes = []

    def hammer(daemon):
        http = daemon.client()
        outcomes.extend([ask(http, "race").json.get("limited_by", "passed") for _ in range(40)])

    threads = [threading.Thread(target=hammer, args=(d,)) for d in (tallyd, other) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert collections.Counter(outcomes) == {"passed": 77, "sliding 77/1d": 3, "penalty 1d after 3/1d": 240}
    tallyd.hangup("policy.race = funnel 1/1d burst 199\n")
    assert ask(tallyd.client(), "race", cost=0).json["remaining"] == 123


def test_a_lost_connection_takes_at_most_once(start, start_redis, start_proxy):
    """In doubt is 504, and never sent again: one was taken of every limit, or none of any; the same for a refusal."""
    redis = start_redis()
    proxy = start_proxy(redis)
    config = "policy.p = funnel 1/1d burst 9 + sliding 10/1d + penalty 1d after 3/1d\n"
    tallyd = start(config, "--request-timeout", "3s", redis=proxy)
    http = tallyd.client()

    def in_doubt(**members):
        proxy.hold_replies()
        assert ask(http, "p", **members).status == 504
        proxy.cut_all()
        proxy.hold_replies(False)
        wait_until(lambda: ask(http, "p", cost=0).status == 200, "it is there again")

    assert ask(http, "p").json["remaining"] == 9
    in_doubt()
    left = ask(http, "p", cost=0).json["remaining"]
    assert left in (8, 9)
    in_doubt(cost=10)  # refused, once or not at all
    assert ask(http, "p", cost=10).json["limited_by"].startswith(("funnel", "sliding"))
    statuses = [ask(http, "p", cost=10).json["limited_by"] for _ in range(3)]
    assert statuses[-1].startswith("penalty") and not statuses[0].startswith("penalty")
    tallyd.hangup("policy.p = funnel 1/1d burst 9\n")
    assert ask(http, "p", cost=0).json["remaining"] == left
    tallyd.hangup("policy.p = sliding 10/1d\n")
    assert ask(http, "p", cost=0).json["remaining"] == left


def test_a_redis_that_is_full_or_has_flushed_its_scripts(start, start_redis):
    """503 and nothing taken; and the script is loaded again."""
    tallyd = start(redis=start_redis())
    http = tallyd.client()
    assert ask(http, "login").json["remaining"] == 4
    tallyd.server.command("CONFIG", "SET", "maxmemory", "1")
    response = ask(http, "login")
    assert response.status == 503 and "memory" in response.json["detail"]
    tallyd.server.command("CONFIG", "SET", "maxmemory", "0")
    tallyd.server.command("SCRIPT", "FLUSH")
    assert ask(http, "login").json["remaining"] == 3


def test_many_kinds_of_limits_at_once(start, start_redis):
    """Single limits and policies wait together and go out together: every reply finds its own."""
    config = "policy.a = funnel 1/1d burst 99\npolicy.b = sliding 100/1d\npolicy.c = funnel 1/1d burst 99 + sliding 100/1d\n" \
             "policy.d = sliding 100/1d + sliding 200/1d + penalty 1m after 9/1h\n"
    tallyd, failed = start(config, redis=start_redis()), []

    def hammer(name, key):
        http = tallyd.client()
        for i in range(60):
            if ask(http, name, key).json["remaining"] != 99 - i:
                failed.append((name, i))

    threads = [threading.Thread(target=hammer, args=(name, key)) for name in "abcd" for key in "xyz"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    http = tallyd.client()
    assert http.metric("tallyd_limit_scripts_total") < http.metric("tallyd_limit_checks_total")
