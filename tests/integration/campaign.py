"""`make test-faults`: the long fault campaigns, and a report.  TALLYD_SEED repeats a run, TALLYD_KILLS says how many."""

import os
import random
import shutil
import sys
import time

from lib.campaign import Report, kills, positions, race
from lib.follow import Replay
from lib.process import running, short_directory


def replay(chance):
    """A log of one hour in 60 s, followed while all is killed in turn."""
    directory = short_directory()
    hour = Replay(chance, directory, "replay", lines=120_000, seconds=60)
    try:
        hour.run(harms=70)
        hour.check()
        print(f"faults: an hour of a log in 60 s, {len(hour.lines)} lines: {hour.done}; {len(hour.events)} page views counted once", flush=True)
    finally:
        hour.close()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    seed = int(os.environ.get("TALLYD_SEED") or time.time_ns() % 1_000_000)
    goal = int(os.environ.get("TALLYD_KILLS") or 200)
    report, chance = Report(seed), random.Random(seed)
    print(f"faults: TALLYD_SEED={seed}", flush=True)
    try:
        for embedded in (True, False):
            kills(report, chance, goal=goal // 2, embedded=embedded)
            print(report.line(), flush=True)
        done = race(chance, goal=goal // 4, rounds=goal // 4)
        print(f"faults: {goal // 4} races of 64 check-ins, {done} kills: exactly one was the first each time", flush=True)
        positions(report)
        print(report.line(), flush=True)
        report.check()
        replay(chance)
    except BaseException:
        for process in running:
            print(f"-- {process.name}\n{process.tail()}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
