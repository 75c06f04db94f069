"""The fault campaigns, short; `make test-faults` runs the long ones.  TALLYD_SEED repeats a run."""

import random

import pytest

from lib.campaign import Report, kills, positions

STEPS = 6  # of so many positions one, in each way another one


@pytest.mark.parametrize("embedded", [True, False], ids=["its own Redis", "another Redis"])
def test_kills(chance, seed, embedded):
    report = Report(seed)
    kills(report, chance, goal=8, embedded=embedded)
    print(report.line())
    report.check()
    assert report.kills >= 8 and report.acknowledged > 100


def test_positions_of_an_append_and_its_fold(seed):
    report = Report(seed)
    positions(report, only={"command-before", "command-inside", "command-after", "reply-before", "reply-inside", "reply-after",
                            "delay", "LOADING", "OOM", "READONLY", "MISCONF", "BUSY", "NOSCRIPT"}, steps=STEPS)
    print(report.line())
    report.check()
    assert report.positions >= 13 * 6  # how many commands a fold has, depends on what they take here (pace.h)


def test_a_report_that_finds_something():
    """An event that counts twice, and one that is gone, would be seen."""
    report = Report(random.getrandbits(20))
    report.found["lost"].append("/x")
    with pytest.raises(AssertionError):
        report.check()
    report = Report(0)
    report.first("slow", 2.5)
    with pytest.raises(AssertionError):
        report.check()
