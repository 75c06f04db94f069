"""The limiters' scripts, with their clock in the test's hand: each literal vector, and naive models."""

import itertools
import math
from collections import deque
from fractions import Fraction

import pytest

from lib.limit_model import Sliding
from lib.process import ROOT

LUA = ROOT / "storage" / "lua"
START = 1_790_000_000_123_456  # us


class Script:
    """A script as it is built in, but for its TIME, which are the last two arguments, and for keys that Redis must not
    expire by a clock that is not the test's (expires=True: as it is)."""

    def __init__(self, redis, name, expires=False):
        self.name = name
        text = (LUA / f"{name}.lua").read_text()
        assert text.count("call('TIME')") == 1 and text.startswith("#!lua\n")
        self.text = text.replace("call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}")
        assert " / 1000) + 1)" in self.text
        if not expires:
            self.text = self.text.replace(" / 1000) + 1)", " / 1000) + 3600000)")
        self.connection = redis.connect()

    def words(self, now_us, *jobs):
        """The command of jobs: (key or keys, arguments..)."""
        keys = [key for job in jobs for key in ([job[0]] if isinstance(job[0], str) else job[0])]
        runs = [[len(list(same)), *asked] for asked, same in itertools.groupby(job[1:] for job in jobs)]
        arguments = [a for run in runs for a in (run[1:] * run[0] if self.name == "sliding" else run)]
        return ["EVAL", self.text, len(keys), *keys, *arguments, now_us // 1_000_000, now_us % 1_000_000]

    def __call__(self, now_us, *jobs):
        """Their answers: [(granted, remaining, retry_us, reset_us)..], of a policy with the strictest limit behind."""
        reply = self.connection.command(*self.words(now_us, *jobs))[2:]
        values = 5 if self.name == "policy" else 4
        assert len(reply) == values * len(jobs)
        return [tuple(int(n) for n in reply[i:i + values]) for i in range(0, len(reply), values)]


@pytest.fixture
def script(redis):
    redis.command("FLUSHALL")
    return lambda *args: Script(redis, *args)


def units(count, period_us):
    divisor = math.gcd(count, period_us)
    return period_us // divisor, count // divisor


def funnel(script, now_us, key, burst, count, period_us, n=1):
    return script(now_us, (key, *units(count, period_us), burst + 1, n, n))[0]


# t (ms), quantity, limited, remaining, reset (ms), retry (ms): brandur/redis-cell, it_rates_limits; the last one is
# throttled/throttled's.  Burst 4, 1 a second.
VECTORS = """0 6 1 5 0 -1|0 1 0 4 1000 -1|0 1 0 3 2000 -1|0 1 0 2 3000 -1|0 1 0 1 4000 -1|0 1 0 0 5000 -1
0 1 1 0 5000 1000|3000 1 0 2 3000 -1|3100 1 0 1 3900 -1|4000 1 0 1 4000 -1|8000 1 0 4 1000 -1|9500 1 0 4 1000 -1
9500 0 0 4 1000 -1|9500 2 0 2 3000 -1|9500 5 1 2 3000 3000|15000 6 1 5 0 -1""".replace("\n", "|").split("|")


def test_vectors_of_redis_cell(script):
    run = script("funnel")
    for number, text in enumerate(VECTORS):
        t_ms, n, limited, remaining, reset_ms, retry_ms = map(int, text.split())
        granted, left, retry_us, reset_us = funnel(run, START + t_ms * 1000, "k", 4, 1, 1_000_000, n)
        assert (granted == -1, left, reset_us) == (bool(limited), remaining, reset_ms * 1000), number
        if limited:
            assert retry_us == (retry_ms * 1000 if retry_ms > 0 else -1), number
        else:
            assert (granted, retry_us) == (n, 0), number


def test_rates_of_redis_cell(script):
    """per_day(24), per_hour(6), per_minute(6), per_period(6, 2min), per_second(5): one emission interval each."""
    run = script("funnel")
    for count, period_s, interval_us in ((24, 86400, 3600e6), (6, 3600, 600e6), (6, 60, 10e6), (6, 120, 20e6), (5, 1, 200e3)):
        key = f"{count}/{period_s}"
        assert funnel(run, START, key, 0, count, period_s * 10**6) == (1, 0, 0, interval_us)
        assert funnel(run, START, key, 0, count, period_s * 10**6) == (-1, 0, interval_us, interval_us)
        assert funnel(run, START + int(interval_us) - 1, key, 0, count, period_s * 10**6)[0] == -1
        assert funnel(run, START + int(interval_us), key, 0, count, period_s * 10**6)[0] == 1


def test_end_to_end_of_redis_cell(script):
    """`k 0 1 2 1` twice, and after 2 s; a fresh `user123 15 30 60`."""
    run = script("funnel")
    assert funnel(run, START, "k", 0, 1, 2_000_000) == (1, 0, 0, 2_000_000)
    assert funnel(run, START, "k", 0, 1, 2_000_000) == (-1, 0, 2_000_000, 2_000_000)
    assert funnel(run, START + 2_000_000, "k", 0, 1, 2_000_000) == (1, 0, 0, 2_000_000)
    assert funnel(run, START, "user123", 15, 30, 60_000_000) == (1, 15, 0, 2_000_000)


def test_vectors_of_gcra(script):
    """redis/redis, tests/unit/gcra.tcl: a debt below a millisecond keeps its key; 6 of burst 5; 3 at once; two keys."""
    run = script("funnel", True)
    connection = run.connection
    connection.command("MULTI")  # so that no time passes
    connection.command(*run.words(START, ("fast", *units(10_000, 1_000_000), 2, 1, 1)))
    connection.command("PEXPIRETIME", "fast")
    answer, expires_ms = connection.command("EXEC")
    assert int(answer[2]) == 1 and expires_ms > 0
    assert [funnel(run, START, "six", 5, 1, 60_000_000)[0] for _ in range(7)] == [1] * 6 + [-1]
    assert funnel(run, START, "three", 5, 1, 60_000_000, 3)[1] == 3
    assert funnel(run, START, "other", 5, 1, 60_000_000)[1] == 5


@pytest.mark.parametrize("count, period_us, burst", [
    (700_000, 10**6, 0), (700_000, 10**6, 999), (3, 10**6, 0), (999_983, 10**6, 7), (10**9, 10**6, 10**6 - 1),
    (7, 86400 * 10**6, 60), (1, 1000, 0), (600_001, 60 * 10**6, 1000)])
def test_funnel_is_exact(script, chance, count, period_us, burst):
    """Against fractions: what passes, what is left and when, at every step; nothing is rounded in anybody's favour."""
    run = script("funnel")
    interval = Fraction(period_us, count)
    now, tat, capacity = START, Fraction(0), burst + 1
    for _ in range(400):
        now += chance.choice([0, 0, 1, 2, int(interval), int(interval * chance.randint(0, 2 * capacity))])
        n = chance.choice([0, 1, 1, 1, 2, 3, chance.randint(0, capacity + 1)])
        debt = max(tat - now, 0)
        allowed = n <= capacity and debt + n * interval <= capacity * interval
        if allowed and n:
            tat = now + debt + n * interval
        rest = debt + (n * interval if allowed else 0)
        retry = 0 if allowed else -1 if n > capacity else math.ceil(debt + n * interval - capacity * interval)
        assert funnel(run, now, "k", burst, count, period_us, n) == (
            n if allowed else -1, math.floor((capacity * interval - rest) / interval), retry, math.ceil(rest))


def test_700_000_a_second_are_not_over_admitted(script):
    """An interval of 1.43 us, cut to whole ones, would let 43 % too many pass."""
    run = script("funnel")
    admitted = 0
    for step in range(2001):  # 20 ms in steps of 10 us, each asking for more than there is
        admitted += max(0, run(START + step * 10, ("k", *units(700_000, 10**6), 100, 0, 100))[0][0])
    assert admitted == 100 + 14_000


def test_what_stays_expires_with_the_debt(script, redis):
    run = script("funnel", True)
    funnel(run, START, "k", 9, 1, 1_000_000, 3)
    assert 2900 < redis.command("PTTL", "k") <= 3001
    funnel(run, START, "k", 9, 1, 1_000_000, -3)
    assert redis.command("EXISTS", "k") == 0


def test_leases(script):
    """Between need and want; none below need; what is given back is there again, and never more than there was."""
    run, rate = script("funnel"), units(10, 10**6)
    assert run(START, ("k", *rate, 100, 1, 60))[0][:2] == (60, 40)
    assert run(START, ("k", *rate, 100, 1, 60))[0][:2] == (40, 0)
    assert run(START, ("k", *rate, 100, 1, 60))[0] == (-1, 0, 100_000, 10_000_000)
    assert run(START, ("k", *rate, 100, -30, -30))[0][1] == 30
    assert run(START, ("k", *rate, 100, 31, 60))[0] == (-1, 30, 100_000, 7_000_000)
    assert run(START, ("k", *rate, 100, -1, -1))[0][1] == 31
    assert run(START, ("k", *rate, 100, 0, 0))[0][:2] == (0, 31)
    assert run(START, ("k", *rate, 100, 0, 60))[0][:2] == (31, 0)
    assert run(START, ("k", *rate, 10, 0, 60))[0][:3] == (0, 0, 0), "a smaller limit has less than nothing left"
    assert run(START + 9_000_000, ("k", *rate, 100, -90, -90))[0][1] == 100
    assert run(START + 9_000_000, ("k", *rate, 100, 101, 101))[0] == (-1, 100, -1, 0)


def test_a_changed_limit_keeps_the_debt_in_requests(script):
    """redis-cell keeps it in time: 15 of 10 in 20 s used up, then 1000 in 20 s, would wait for seconds."""
    run = script("funnel")
    assert funnel(run, START, "k", 15, 10, 20_000_000, 16)[:2] == (16, 0)
    assert funnel(run, START, "k", 15, 1000, 20_000_000) == (-1, 0, 20_000, 320_000)
    assert funnel(run, START + 20_000, "k", 15, 1000, 20_000_000)[0] == 1
    assert funnel(run, START + 20_000, "k", 3, 1, 1_000_000) == (-1, 0, 1_000_000, 4_000_000)


def test_a_clock_that_goes_back_does_not_lock_out(script):
    run = script("funnel")
    assert [funnel(run, START, "k", 1, 1, 1_000_000)[0] for _ in range(3)] == [1, 1, -1]
    back = START - 3_600_000_000
    assert funnel(run, back, "k", 1, 1, 1_000_000) == (-1, 0, 1_000_000, 2_000_000)
    assert funnel(run, back + 1_000_000, "k", 1, 1, 1_000_000)[0] == 1


def test_many_keys_in_one_script(script):
    run = script("funnel")
    jobs = [(f"k{i % 40}", *units(1, 10**6), 2, 1, 1) for i in range(128)]
    granted = [answer[0] for answer in run(START, *jobs)]
    assert granted == [1] * 80 + [-1] * 48
    mixed = [("a", 10, 7, 5, 5, 5), ("b", 10, 7, 5, 5, 5), ("c", 1000000, 1, 9, 1, 4), ("a", 10, 7, 5, 1, 1), ("d", 10, 7, 5, 1, 1)]
    assert [answer[:2] for answer in run(START, *mixed)] == [(5, 0), (5, 0), (4, 5), (-1, 0), (1, 4)]


# Sliding windows


def sliding(script, now_us, key, limit, period_us, n=1):
    return script(now_us, (key, limit, period_us, n))[0]


def test_vectors_of_the_sliding_window(script):
    run, second = script("sliding"), 1_000_000
    for t_us, n, granted, remaining, retry in (
            (0, 1, 1, 2, 0), (400_000, 1, 1, 1, 0), (900_000, 1, 1, 0, 0), (950_000, 1, -1, 0, 50_000),
            (999_999, 1, -1, 0, 1), (1_000_000, 1, 1, 0, 0), (1_200_000, 2, -1, 0, 700_000), (1_200_000, 4, -1, 0, -1)):
        assert sliding(run, START + t_us, "k", 3, second, n)[:3] == (granted, remaining, retry), t_us


def test_sliding_at_the_same_microsecond(script, redis):
    run = script("sliding")
    assert [sliding(run, START, "k", 5, 10**6)[0] for _ in range(7)] == [1] * 5 + [-1] * 2
    assert redis.command("ZCARD", "k") == 5  # what is rejected is not recorded
    assert sliding(run, START + 10**6, "k", 5, 10**6, 5) == (5, 0, 0, 10**6)
    sliding(script("sliding", True), START, "t", 5, 10**6)
    assert 900 < redis.command("PTTL", "t") <= 1001


@pytest.mark.parametrize("limit", [1, 2, 7, 60, 1000])
def test_sliding_is_exact(script, chance, redis, limit):
    """Against a list of times: what passes, what is left, until when to wait, and when all is over."""
    run, period = script("sliding"), 10_000
    now, log = START, deque()
    for _ in range(600):
        now += chance.choice([0, 0, 1, chance.randint(0, period // 3), chance.randint(0, 2 * period // limit)])
        n = chance.choice([0, 1, 1, 1, 2, chance.randint(0, limit + 1)])
        while log and log[0] <= now - period:
            log.popleft()
        allowed = n <= limit - len(log)
        retry = 0 if allowed else -1
        if not allowed and n <= limit:
            retry = log[len(log) + n - limit - 1] + period - now
        if allowed:
            log.extend([now] * n)
        reset = log[-1] + period - now if log else 0
        assert sliding(run, now, "k", limit, period, n) == (n if allowed else -1, limit - len(log), retry, reset)
    assert redis.command("ZCARD", "k") <= 2 * limit + 2


def test_sliding_while_the_clock_is_set_back(script):
    """By less than the period: the log's time stands still, nothing is forgotten, and the time to wait is a true one."""
    run, period, back = script("sliding"), 10**6, START - 500_000
    assert [sliding(run, START + t, "k", 3, period) for t in (0, 400_000)] == [(1, 2, 0, period), (1, 1, 0, period)]
    assert sliding(run, back, "k", 3, period) == (1, 0, 0, 1_900_000)
    assert sliding(run, back, "k", 3, period) == (-1, 0, 1_500_000, 1_900_000)
    assert sliding(run, back + 1_499_999, "k", 3, period) == (-1, 0, 1, 400_001)
    assert sliding(run, back + 1_500_000, "k", 3, period) == (1, 0, 0, period)  # of three calls one has left
    assert sliding(run, back + 1_500_000, "k", 3, period) == (-1, 0, 400_000, period)
    assert sliding(run, back + 1_900_000, "k", 3, period, 2) == (2, 0, 0, period)


def test_sliding_after_the_clock_was_set_back_for_long(script, redis):
    """What the window held counts as of now, so nobody is locked out until the clock is there again."""
    run, period, back = script("sliding"), 10**6, START - 3600 * 10**6
    for t in range(5):
        sliding(run, START + t * 300_000, "k", 5, period)
    assert sliding(run, back, "k", 5, period, 0) == (0, 1, 0, period)  # the first one had left
    assert sliding(run, back + 1, "k", 5, period) == (1, 0, 0, period)
    assert sliding(run, back + 1, "k", 5, period) == (-1, 0, period - 1, period)
    assert redis.command("ZCARD", "k") == 2
    assert sliding(run, back + period, "k", 5, period, 4) == (4, 0, 0, period)


def test_what_stays_of_a_log_expires_when_the_last_call_leaves(script, redis):
    run, period = script("sliding", True), 10**6
    sliding(run, START, "k", 5, period)
    sliding(run, START - 900_000, "k", 5, period)
    assert 1500 < redis.command("PTTL", "k") <= 1901
    sliding(run, START - 10 * period, "k", 5, period, 0)
    assert 500 < redis.command("PTTL", "k") <= 1001


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_sliding_is_exact_with_a_clock_that_steps_back(script, chance, limit):
    run, period, now, model = script("sliding"), 10_000, START, Sliding(limit, 10_000)
    for step in range(600):
        now += chance.choice([0, 1, chance.randint(0, period // 3), chance.randint(0, 3 * period)])
        now -= chance.choice([0] * 20 + [1, period // 2, 5 * period])
        n = chance.choice([0, 1, 1, 2, chance.randint(0, limit)])
        allowed = n <= model.left(now)
        retry = 0 if allowed or n > limit else model.wait(now, n)
        reset = model.take(now, n if allowed else 0)
        expected = (n if allowed else -1, model.left(now), -1 if n > limit else retry, reset)
        assert sliding(run, now, "k", limit, period, n) == expected, step


def test_sliding_with_another_period_counts_what_is_known(script, redis):
    run = script("sliding")
    for t in range(3):
        sliding(run, START + t * 10**6, "k", 10, 10**6)
    assert sliding(run, START + 2 * 10**6, "k", 10, 10 * 10**6)[1] == 10 - 3  # of those before, the first was trimmed


def test_no_call_holds_redis_for_long(script, redis):
    """The largest log, full, after half and after all of it has left; and a peek and a refusal of it."""
    run, limit, period = script("sliding"), 10_000, 10**9

    def slow_calls(key):
        for i in range(limit):
            redis_time = START + i * 1000
            run.connection.send("EVAL", run.text, 1, key, limit, period, 1, redis_time // 10**6, redis_time % 10**6)
        for _ in range(limit):
            assert run.connection.receive()[2] == 1
        redis.command("CONFIG", "SET", "slowlog-log-slower-than", "2000")
        redis.command("SLOWLOG", "RESET")
        full = START + limit * 1000
        assert sliding(run, full, key, limit, period)[0] == -1
        assert sliding(run, full, key, limit, period, 7777)[0] == -1
        assert sliding(run, full + period - limit * 500, key, limit, period)[0] == 1
        assert sliding(run, full + period, key, limit, period, 9999)[0] == 9999
        assert redis.command("ZCARD", key) <= limit
        return redis.command("SLOWLOG", "LEN")

    # who shares the machine may make a call longer, but not one of these four each time
    assert any(slow_calls(key) == 0 for key in ("k1", "k2", "k3"))
