"""`make test-faults`: the long fault campaigns, and a report.  TALLYD_SEED repeats a run, TALLYD_KILLS says how many."""

import os
import random
import sys
import time

from lib.campaign import Report, kills, positions
from lib.process import running


def main():
    seed = int(os.environ.get("TALLYD_SEED") or time.time_ns() % 1_000_000)
    goal = int(os.environ.get("TALLYD_KILLS") or 200)
    report, chance = Report(seed), random.Random(seed)
    print(f"faults: TALLYD_SEED={seed}", flush=True)
    try:
        for embedded in (True, False):
            kills(report, chance, goal=goal // 2, embedded=embedded)
            print(report.line(), flush=True)
        positions(report)
        print(report.line(), flush=True)
        report.check()
    except BaseException:
        for process in running:
            print(f"-- {process.name}\n{process.tail()}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
