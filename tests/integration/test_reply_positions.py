"""Every kind of request, its commands and replies cut, delayed and doubled; and what no request asks for.  Short: `make
test-faults` has each position in each way.  TALLYD_SEED repeats a run."""

import pytest

from lib.background_positions import BACKGROUND, background, stops
from lib.reply_positions import CUTS, DELAYED, DOUBLED, Sweep, positions_of_all
from lib.request_kinds import CHANGES, QUESTIONS

QUICK = (*CUTS, DELAYED, DOUBLED)


def test_positions_of_requests(chance, seed):
    print(f"TALLYD_SEED={seed}")
    sweep = Sweep()
    positions_of_all(sweep, harms=QUICK, steps=5, chance=chance)
    print(sweep.line())
    sweep.check()
    assert sum(sweep.tried.values()) > len(QUESTIONS) + len(CHANGES)


@pytest.mark.parametrize("which", BACKGROUND)
def test_what_nobody_asks_for(chance, seed, which):
    print(f"TALLYD_SEED={seed}")
    background(which, chance.sample(QUICK, 2))


def test_stops(chance, seed):
    print(f"TALLYD_SEED={seed}")
    assert stops(chance.choice(CUTS), steps=4, first=chance.randint(1, 4)) > 1
