"""policy.lua alone, its clock in the test's hand: several limits and a penalty against a naive model."""

import pytest

from lib.limit_model import DENIED, PENALISED, Funnel, Penalty, Policy, Sliding
from test_limit_scripts import START, script, units

SECOND = 1_000_000


def keys_of(policy, key):
    return [f"{key}:{i}" for i in range(len(policy.parts()))]


def job(policy, key, n):
    parts = policy.parts()
    return (keys_of(policy, key), n, len(parts), *[word for part in parts for word in part.words()])


def make_limit(chance):
    period = chance.choice([1000, 7777, 10_000, 50_000])
    if chance.random() < 0.5:
        return Funnel(chance.choice([1, 3, 7, 1000]), period, chance.choice([0, 1, 4, 20]))
    return Sliding(chance.choice([1, 2, 5, 30]), period)


def make_policy(chance):
    penalty = Penalty(chance.choice([1, 2, 3, 10, 100]), chance.choice([1000, 20_000, 200_000]), chance.choice([1000, 30_000]))
    return Policy([make_limit(chance) for _ in range(chance.choice([1, 2, 2, 3, 8]))], chance.choice([penalty, penalty, None]))


def compare(answer, expected, where):
    assert answer[:4] == expected[:4], (where, answer, expected)
    assert answer[4] in expected[4], (where, answer, expected)


@pytest.mark.parametrize("round_", range(12))
@pytest.mark.parametrize("steps_back", [False, True])
def test_random_histories(script, chance, redis, round_, steps_back):
    """Three keys: costs of any size, looks, resets, and a clock that runs, stands and steps back."""
    run, now = script("policy"), START
    policies = {key: make_policy(chance) for key in ("a", "b", "c")}
    outcomes = set()
    for step in range(250):
        now += chance.choice([0, 0, 1, 100, chance.randint(0, 3000), chance.randint(0, 60_000)])
        if steps_back and chance.random() < 0.03:
            now -= chance.choice([1, 500, 20_000, 10 * SECOND])
        key = chance.choice("abc")
        policy = policies[key]
        if chance.random() < 0.01:
            redis.command("DEL", *keys_of(policy, key))
            policy.reset()
        n = chance.choice([0, 1, 1, 1, 2, chance.randint(0, 2 + max(limit.capacity for limit in policy.limits))])
        answer = run(now, job(policy, key, n))[0]
        compare(answer, policy.ask(now, n), (step, key, n, now - START))
        outcomes.add(min(answer[0], 1))
    assert {DENIED, 0, 1} <= outcomes


def test_several_jobs_in_one_call(script, chance):
    """As if each had come alone, in this order; runs of the same policy are written once."""
    run, now = script("policy"), START
    policies = [make_policy(chance) for _ in range(4)]
    for _ in range(60):
        now += chance.randint(0, 3000)
        asked = [(policy, i) for i, policy in enumerate(policies) for _ in range(chance.randint(0, 4))]
        answers = run(now, *[job(policy, f"k{i}", 1) for policy, i in asked]) if asked else []
        for answer, (policy, i) in zip(answers, asked, strict=True):
            compare(answer, policy.ask(now, 1), i)


@pytest.mark.parametrize("algorithm", ["funnel", "sliding"])
def test_one_limit_is_what_it_is_alone(script, chance, redis, algorithm):
    """The scripts of a single limit answer the same and leave the same in Redis, so that a policy may get a second limit."""
    alone, together, now = script(algorithm), script("policy"), START
    if algorithm == "funnel":  # from one to the next changes the rate alone, the cost alone, the capacity alone, then all
        limits = [Funnel(7, 10_000, 4), Funnel(3, 10_000, 4), Funnel(3, 20_000, 4), Funnel(3, 20_000, 1), Funnel(2, 30_000, 9)]
    else:
        limits = [Sliding(5, 10_000), Sliding(9, 30_000), Sliding(2, 30_000)]
    for step in range(1000):
        limit = limits[step // 12 % len(limits)]  # the configuration changes
        period = limit.period_us
        now += chance.choice([0, 10 * period]) if step % 12 == 0 else 0
        now += chance.choice([0, 1, chance.randint(0, 6000), -chance.randint(0, 3000)])
        now += chance.choice([0] * 40 + [period, period, -period, 10 * period, -100_000])  # what is as old as the window
        n = chance.choice([0, 1, 1, 2, 6])
        if algorithm == "funnel":
            words = ("alone", *units(limit.count, limit.period_us), limit.capacity, n, n)
        else:
            words = ("alone", limit.capacity, limit.period_us, n)
        answers = [alone(now, words)[0], together(now, (["together"], n, 1, *limit.words()))[0]]
        assert answers[0] == answers[1][:4] and answers[1][4] == 0, step
        held = [redis.command("DUMP", key) for key in ("alone", "together")]
        assert held[0] == held[1], step


@pytest.mark.parametrize("name", ["sliding", "policy"])
def test_what_has_left_the_window_is_removed_by_the_thousand(script, redis, name):
    """All but the newest, whose total the sum is counted from."""
    run, limit = script(name), Sliding(5000, SECOND)
    words = ("k", limit.capacity, limit.period_us, 1) if name == "sliding" else (["k"], 1, 1, *limit.words())
    run(START, *[words] * 2500)
    for calls, held in enumerate([1501, 502, 4, 5], start=1):
        assert run(START + 2 * SECOND, words)[0][:2] == (1, limit.capacity - calls)
        assert redis.command("ZCARD", "k") == held


@pytest.mark.parametrize("name", ["sliding", "policy"])
def test_a_clock_that_is_set_back_by_the_period(script, name):
    """Then the log's time stands still; one microsecond more, and the calls are calls of now."""
    run, limit = script(name), Sliding(5, SECOND)

    def ask(at, n):
        return run(START + at, ("k", 5, SECOND, n) if name == "sliding" else (["k"], n, 1, *limit.words()))[0]

    assert ask(0, 2)[:2] == (2, 3)
    assert ask(-SECOND, 0)[:4] == (0, 3, 0, 2 * SECOND)
    assert ask(-SECOND - 1, 0)[:4] == (0, 3, 0, SECOND)


@pytest.mark.parametrize("name", ["funnel", "policy"])
def test_a_foreign_value_counts_as_nothing(script, redis, name):
    """Somebody else's string under a limit's key must not make each call fail for as long as it is there."""
    run, limit = script(name), Funnel(1, SECOND, 4)
    policy = Policy([limit], Penalty(2, SECOND, SECOND))
    for length in (1, 17, 33):
        for key in keys_of(policy, "k"):
            redis.command("SET", key, "x" * length)
        words = ("k:0", *units(limit.count, limit.period_us), limit.capacity, 2, 2) if name == "funnel" else job(policy, "k", 2)
        assert run(START, words)[0][:3] == (2, 3, 0), length


def test_all_or_none(script):
    """What one refuses is taken of no other."""
    run = script("policy")
    wide, narrow = Funnel(100, 3600 * SECOND, 99), Sliding(3, 3600 * SECOND)
    policy = Policy([wide, narrow])
    assert [run(START, job(policy, "k", 1))[0][0] for _ in range(10)] == [1] * 3 + [DENIED] * 7
    assert run(START, (["k:0"], 0, 1, *wide.words()))[0][1] == 97
    assert run(START, job(policy, "other", 2))[0][:2] == (2, 1)
    assert run(START, job(policy, "other", 2))[0][:2] == (DENIED, 1)
    assert run(START, (["other:0"], 0, 1, *wide.words()))[0][1] == 98


def test_the_policy_of_the_contract(script):
    """funnel 5/60s burst 4 + sliding 100/1d + penalty 15m after 3/1h"""
    run, minute = script("policy"), 60 * SECOND
    policy = Policy([Funnel(5, minute, 4), Sliding(100, 1440 * minute)], Penalty(3, 60 * minute, 15 * minute))

    def ask(at, n=1):
        return run(START + at, job(policy, "k", n))[0]

    assert [ask(0)[:2] for _ in range(5)] == [(1, left) for left in (4, 3, 2, 1, 0)]
    assert [ask(0)[:3] for _ in range(2)] == [(DENIED, 0, 12 * SECOND)] * 2
    assert [ask(0, 0)[0] for _ in range(9)] == [0] * 9  # looks are no refusals
    assert ask(0) == (DENIED, 0, 15 * minute, 15 * minute, 0)
    for at in (0, minute, 15 * minute - 1):
        for n in (0, 1):
            assert ask(at, n)[:4] == (PENALISED, 0, 15 * minute - at, 15 * minute - at), "every request"
    assert ask(15 * minute)[:2] == (1, 4), "nothing was charged meanwhile"
    assert [ask(15 * minute)[0] for _ in range(7)] == [1] * 4 + [DENIED] * 3, "refusals before and under the penalty are forgotten"
    assert ask(15 * minute)[0] == PENALISED
    assert ask(30 * minute, 5)[0] == 5
    assert [ask(at)[0] for at in (30 * minute, 30 * minute, 90 * minute)] == [DENIED] * 2 + [1]
    assert ask(90 * minute, 5)[0] == DENIED, "the two of an hour ago do not count any more"
    assert ask(90 * minute, 5)[0] == DENIED


def test_what_never_fits_is_refused_for_ever(script):
    """Also under the penalty; and it counts."""
    run = script("policy")
    policy = Policy([Funnel(1, SECOND, 9), Sliding(4, SECOND)], Penalty(2, SECOND, SECOND))
    assert run(START, job(policy, "k", 5))[0] == (DENIED, 4, -1, 0, 1)
    assert run(START, job(policy, "k", 11))[0][:3] == (DENIED, 0, -1)
    assert run(START, job(policy, "k", 5))[0][:3] == (DENIED, 0, -1)
    assert run(START, job(policy, "k", 1))[0][:3] == (PENALISED, 0, SECOND)


def test_a_shorter_penalty_holds_at_once(script):
    run = script("policy")
    long, short = (Policy([Sliding(1, SECOND)], Penalty(1, SECOND, lasts)) for lasts in (3600 * SECOND, 60 * SECOND))
    assert [run(START, job(long, "k", 1))[0][0] for _ in range(3)] == [1, DENIED, PENALISED]
    assert run(START, job(short, "k", 1))[0][:3] == (PENALISED, 0, 60 * SECOND)
    assert run(START + 60 * SECOND, job(long, "k", 1))[0][0] == 1


def test_what_is_held_expires(script, redis):
    """A penalty's key when nothing of it counts any more, and not before."""
    run = script("policy", True)
    policy = Policy([Sliding(1, 10 * SECOND)], Penalty(3, 20 * SECOND, 30 * SECOND))
    for n, expected in ((1, None), (1, 20_000), (1, 20_000), (1, 30_000)):
        run(START, job(policy, "k", n))
        assert expected is None or expected - 2000 < redis.command("PTTL", "k:1") <= expected + 1
    assert redis.command("STRLEN", "k:1") == 8


def test_a_log_expires_when_its_last_call_leaves(script, redis):
    """By Redis's clock, also where that was set back: the call leaves later then."""
    run, policy = script("policy", True), Policy([Sliding(5, SECOND)], None)
    for at, n, least, most in ((0, 1, 900, 1001), (-900_000, 1, 1800, 1901), (-10 * SECOND, 0, 900, 1001)):
        assert run(START + at, job(policy, "k", n))[0][0] == n
        assert least < redis.command("PTTL", "k:0") <= most, at


def test_no_call_holds_redis_for_long(script, redis):
    """As many policies as one call has, each of eight limits and a penalty, all of them refused."""
    run = script("policy")
    limits = [Sliding(1000, SECOND) if i % 2 else Funnel(1, SECOND, 999) for i in range(8)]
    jobs = [job(Policy(limits, Penalty(100, 3600 * SECOND, SECOND)), f"k{i}", 600) for i in range(32)]

    def call_ns(at):
        """Of its processor: who shares the machine makes a call longer."""
        began, _ = redis.processor()
        assert {answer[0] for answer in run(at, *jobs)} == {DENIED}
        return redis.processor()[0] - began

    run(START, *jobs)
    assert max(call_ns(START + i) for i in range(20)) < 5e6


def test_a_clock_that_goes_back_does_not_lock_out(script):
    """A penalty lasts no longer than a new one, and a refusal of the future is one of now: it is forgotten in time, too."""
    run, hour = script("policy"), 3600 * SECOND
    policy = Policy([Funnel(1, SECOND, 0)], Penalty(3, 10 * SECOND, 20 * SECOND))

    def ask(at, n=1):
        return run(START + at, job(policy, "k", n))[0]

    assert [ask(0)[0] for _ in range(2)] == [1, DENIED]
    assert [ask(-hour)[0] for _ in range(1)] == [DENIED]
    assert [ask(-hour + 10 * SECOND)[0] for _ in range(2)] == [1, DENIED], "both refusals are ten seconds old"
    assert [ask(-hour + 10 * SECOND)[0] for _ in range(3)] == [DENIED, DENIED, PENALISED]
    assert ask(-2 * hour)[:3] == (PENALISED, 0, 20 * SECOND)
    assert ask(-2 * hour + 20 * SECOND)[0] == 1
