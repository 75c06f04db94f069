"""`make test-faults`: the long fault campaigns, and a report.

TALLYD_SEED repeats a run.  TALLYD_KILLS, TALLYD_FAILOVERS (of Sentinels) and TALLYD_ROUNDS (of a cluster) say how many; 0
leaves a campaign out.  TALLYD_REDIS_SERVER chooses the server of the last two.  TALLYD_SWEEPS=0 leaves out the sweeps: every
system call that fails once, every command and reply of every kind of request.
"""

import os
import random
import shutil
import sys
import time

from lib.background_positions import BACKGROUND, background, stops
from lib.call_campaign import CallReport, starts, under_load
from lib.campaign import Report, kills, positions, race
from lib.cluster import server_missing
from lib.follow import Replay
from lib.node_campaign import cluster_rounds, sentinel_failovers
from lib.process import running, short_directory
from lib.proxy import CUTS
from lib.reply_positions import Sweep, positions_of_all


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


def number(name, default):
    return int(os.environ.get(name) or default)


def one_redis(report, chance, goal):
    for embedded in (True, False):
        kills(report, chance, goal=goal // 2, embedded=embedded)
        print(report.line(), flush=True)
    done = race(chance, goal=goal // 4, rounds=goal // 4)
    print(f"faults: {goal // 4} races of 64 check-ins, {done} kills: exactly one was the first each time", flush=True)
    positions(report)
    print(report.line(), flush=True)
    report.check()
    replay(chance)


def several_servers(chance, seed, n_failovers, n_rounds):
    if server_missing():
        print(f"faults: {server_missing()}, so no Sentinels and no cluster", flush=True)
        return
    report = Report(seed)
    sentinel_failovers(report, n_failovers)
    print(f"{report.line()} (Sentinels)", flush=True)
    report.check()
    report = Report(seed)
    cluster_rounds(report, chance, n_rounds)
    print(f"{report.line()} (a cluster)", flush=True)
    report.check()


def sweeps():
    calls = CallReport()
    under_load(calls)
    under_load(calls, tcp=True)
    print(calls.line(), flush=True)
    starts(calls)
    print(calls.line(), flush=True)
    replies = Sweep()
    positions_of_all(replies)
    print(replies.line(), flush=True)
    for which in BACKGROUND:
        background(which)
    stopped = sum(stops(point) for point in CUTS)
    print(f"replies: {len(BACKGROUND)} conversations of the background, {stopped} positions of a stop", flush=True)
    calls.check()
    replies.check()


def main():
    seed = number("TALLYD_SEED", time.time_ns() % 1_000_000)
    goal = number("TALLYD_KILLS", 200)
    chance = random.Random(seed)
    print(f"faults: TALLYD_SEED={seed}", flush=True)
    try:
        if goal > 0:
            one_redis(Report(seed), chance, goal)
        if number("TALLYD_SWEEPS", 1) > 0:
            sweeps()
        several_servers(chance, seed, number("TALLYD_FAILOVERS", 10), number("TALLYD_ROUNDS", 32))
    except BaseException:
        for process in running:
            print(f"-- {process.name}\n{process.tail()}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
