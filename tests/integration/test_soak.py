"""The soak, short: `make soak` runs the long one (soak.py)."""

import random
import threading

import pytest

import soak
from lib import fortnight, mixed_load
from lib.fortnight import Fortnight
from lib.memory import MIB, Sample, growth_per_hour
from lib.process import sanitized


def test_a_mixed_load_is_counted_once(seed):
    samples = soak.long_load(seed, 8, threading.Event(), scale=0.7)
    assert len(samples) >= 3 and samples[-1].events > 500
    if not sanitized():  # it keeps what was freed
        soak.judge(samples)


def test_two_days_on_a_moved_clock(chance):
    two = Fortnight(chance, days=2, steps=36)
    two.run(threading.Event())
    two.judge()
    assert sum(two.kills.values()) > 0 and two.compared > 100 and [day.number for day in two.days] == [0, 1]


def test_a_figure_that_is_off_is_found(seed, monkeypatch):
    """A view that nobody wrote down."""
    def forgetful(self, event):
        add(self, event)
        if event.get("page") == "/1":
            monkeypatch.undo()
            self.views["/1"] -= 1

    add = mixed_load.Truth.add
    monkeypatch.setattr(mixed_load.Truth, "add", forgetful)
    with pytest.raises(AssertionError):
        soak.long_load(seed, 2, threading.Event(), scale=0.7)


def an_hour(leak=0, peak=0):
    """Samples; a leak in bytes an hour, and one peak."""
    chance = random.Random(1)
    return [Sample(at_s=s, tallyd=20 * MIB + chance.randrange(MIB) + leak * s // 3600 + (peak if s == 3000 else 0), descriptors=30,
                   redis=100 * MIB, keys=1000, events=s) for s in range(0, 3600, 15)]


def test_growth_is_seen_through_noise():
    assert abs(growth_per_hour(an_hour(), "tallyd")) < MIB
    assert abs(growth_per_hour(an_hour(leak=8 * MIB), "tallyd") - 8 * MIB) < MIB
    soak.judge(an_hour(peak=9 * MIB))
    for bad in (an_hour(leak=8 * MIB), an_hour(peak=20 * MIB)):
        with pytest.raises(AssertionError):
            soak.judge(bad)


def test_data_that_stays_is_found(chance):
    """Redis's memory grows after everything that expires has begun to."""
    days = Fortnight(chance, days=14)
    for number in range(14):
        days.days.append(fortnight.Day(number, 100, 0, 1000, 10 * MIB, 10 * MIB))
    days.judge()
    for day in days.days[-3:]:
        day.redis *= 2
    with pytest.raises(AssertionError):
        days.judge()
