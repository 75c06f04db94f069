"""Every system call of the hot path fails once, short; `make test-faults` has each position.  TALLYD_SEED repeats a run."""

import errno

import pytest

from lib.call_campaign import START, UNDER_LOAD, CallReport, starts, under_load
from lib.failing_calls import FailingCalls
from lib.process import sanitized

STEPS = 9  # of so many positions one, another one in each run

pytestmark = pytest.mark.skipif(sanitized(), reason="a sanitizer's library must be the first")


def test_calls_under_load(chance, seed):
    print(f"TALLYD_SEED={seed}")
    report = CallReport()
    under_load(report, steps=STEPS, chance=chance)
    print(report.line())
    report.check()
    assert report.fired > len(UNDER_LOAD)


def test_calls_of_a_start(chance, seed):
    print(f"TALLYD_SEED={seed}")
    report = CallReport()
    starts(report, only=set(chance.sample(sorted(START), 6)), steps=STEPS, chance=chance)
    print(report.line())
    report.check()
    assert report.starts > 6


def test_the_harness_harms_what_it_says(start_redis, start_tallyd, directory):
    """One call, as often as it says, and none afterwards."""
    calls = FailingCalls(directory, "tallyd")
    http = start_tallyd(redis=start_redis(), env=calls.environment()).client()
    calls.arm("read unix", errno.ECONNRESET, nth=2, times=3)
    while calls.seen < 5:
        http.get("/pv")
    assert calls.disarm() == 3
    http.accept({"page": "/"})
    calls.arm("read unix", errno.ECONNRESET, nth=10**6)
    http.question("/pv")
    assert calls.fired == 0 < calls.seen
    calls.close()
