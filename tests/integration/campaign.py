"""`make test-faults`: the long fault campaigns, in pieces, and a table of what was tried and found.

Behind each piece the sums go into build/faults.json.  A campaign that was stopped (^C, SIGTERM; the piece at hand is ended
and audited) goes on where it was; one that was finished begins anew.

TALLYD_KILLS, TALLYD_REQUESTS (malformed ones), TALLYD_SLOW (clients), TALLYD_FAILOVERS (of Sentinels) and TALLYD_ROUNDS (of a
cluster) say how many in all; 0 leaves a campaign out.  TALLYD_SWEEPS=0 leaves out the sweeps: every system call that fails
once, every command and reply of every kind of request.
TALLYD_SEED chooses what happens by chance, and with another seed than the file's a campaign begins anew.
TALLYD_RECORD=tests/RECORD.md (`make kills`): TALLYD_KILLS says how many of all machines together, each piece is added to that
table, and what the table has is not done again.
TALLYD_TASKS="a cluster;Sentinels" leaves out all other tasks of the table.
TALLYD_REDIS_SERVER chooses the server of Sentinels and clusters, TALLYD_FAULTS the file.
"""

import functools
import os
import pathlib
import random
import shutil
import signal
import sys
import threading
import time
from dataclasses import dataclass
from typing import Callable

from lib import process
from lib.background_positions import BACKGROUND, background, stops
from lib.call_campaign import CallReport, starts, under_load
from lib.campaign import Victims, kills, positions, race, ways
from lib.client_campaign import ClientReport, all_clients
from lib.cluster import server_missing
from lib.follow import Replay
from lib.malformed import campaign as malformed
from lib.node_campaign import ClusterVictims, SentinelVictims, cluster_rounds, sentinel_failovers
from lib.proxy import CUTS
from lib.reply_positions import Sweep, positions_of_all
from lib.record import Kills, version
from lib.report import Progress, Report
from lib.slow import withstand

FILE = process.ROOT / "build" / "faults.json"


@dataclass
class Task:
    """A campaign of so many units, done by run(report, chance, first, n): the n units from `first` on."""

    name: str
    goal: int
    piece: int
    run: Callable
    unit: Callable = lambda report, n: n  # how many units a piece has done
    servers: bool = False
    kills: bool = False  # this is what it is for


def replay(report, chance, *_):
    """A log of one hour in 60 s, followed while all is killed in turn."""
    directory = process.short_directory()
    hour = Replay(chance, directory, "replay", lines=120_000, seconds=60)
    try:
        hour.run(harms=70)
        hour.check()
        report.rounds += 1
        report.acknowledged += len(hour.events)
        for name in ("follower", "tallyd", "redis", "away"):
            report.kills["Redis" if name == "redis" else "follower" if name == "away" else name] += hour.done[name]
    finally:
        hour.close()
        shutil.rmtree(directory, ignore_errors=True)


def requests(report, chance, __, n):
    """So many malformed requests, and sound ones among them."""
    redis = process.Redis().start()
    tallyd = process.Tallyd("--request-timeout", "1s", redis=redis).start()
    try:
        faults, heard = malformed(tallyd, chance, n, 5)
        report.rounds += 1
        report.faults += faults
        report.acknowledged += heard[202]
        report.refused += sum(times for status, times in heard.items() if status >= 400)
        print(f"faults: {n} malformed requests, {len(faults)} faults; answers: {dict(sorted(heard.items()))}", flush=True)
    finally:
        tallyd.stop()
        redis.stop()


def slow_clients(_, __, ___, n):
    """So many of them at a time."""
    redis = process.Redis().start()
    tallyd = process.Tallyd("--max-connections", n + 100, redis=redis).start()
    try:
        print(f"faults: {n} slow clients: {withstand(tallyd, n, 30)}", flush=True)
    finally:
        tallyd.stop()
    tallyd = process.Tallyd(redis=redis).start()
    try:
        print(f"faults: {n} slow clients, room for 4096: {withstand(tallyd, n, 30, room=4096)}", flush=True)
    finally:
        tallyd.stop()
        redis.stop()


def sweeps(*_):
    calls = CallReport()
    under_load(calls)
    under_load(calls, tcp=True)
    print(calls.line(), flush=True)
    starts(calls)
    print(calls.line(), flush=True)
    clients = ClientReport()
    all_clients(clients)
    print(clients.line(), flush=True)
    replies = Sweep()
    positions_of_all(replies)
    print(replies.line(), flush=True)
    for which in BACKGROUND:
        background(which)
    stopped = sum(stops(point) for point in CUTS)
    print(f"replies: {len(BACKGROUND)} conversations of the background, {stopped} positions of a stop", flush=True)
    calls.check()
    clients.check()
    replies.check()


def tasks(kills_goal, n_requests, n_slow, n_sweeps, failovers, rounds, stopping):
    """In the order of what is said in the table."""
    def killing(make):
        return lambda report, chance, _, n: kills(report, chance, n, make(), stopping)

    def one_way(report, _, first, n):
        positions(report, only=[name for name, *_ in ways()][first:first + n])

    races = kills_goal // 4
    once = int(kills_goal > 0)
    all_tasks = (
        Task("its own Redis", kills_goal * 2 // 5, 60, killing(functools.partial(Victims, True)), unit=lambda r, _: r.killed(), kills=True),
        Task("another Redis", kills_goal * 2 // 5, 60, killing(functools.partial(Victims, False)), unit=lambda r, _: r.killed(), kills=True),
        Task("Sentinels", kills_goal // 10, 20, killing(SentinelVictims), unit=lambda r, _: r.killed(), servers=True, kills=True),
        Task("a cluster", kills_goal // 10, 20, killing(ClusterVictims), unit=lambda r, _: r.killed(), servers=True, kills=True),
        Task("races of 64 check-ins", races, 50, lambda report, chance, _, n: race(report, chance, goal=n, rounds=n)),
        Task("positions, in each way", once * len(list(ways())), 1, one_way),
        Task("an hour of a log in 60 s", once, 1, replay),
        Task("malformed requests", n_requests, 1000, requests),
        Task("slow clients", n_slow, n_slow, slow_clients),
        Task("sweeps of calls and replies", n_sweeps, 1, sweeps),
        Task("failovers of Sentinels", failovers, 5, lambda report, _, __, n: sentinel_failovers(report, n), servers=True),
        Task("rounds of a cluster", rounds, 8, lambda report, chance, _, n: cluster_rounds(report, chance, n), servers=True))
    missing = server_missing()
    if missing:
        print(f"faults: {missing}, so no Sentinels and no cluster", flush=True)
    return [task for task in all_tasks if task.goal > 0 and not (missing and task.servers)]


def next_task(all_tasks, progress):
    """The one that is behind the others; None when all are done."""
    left = [task for task in all_tasks if progress.of(task.name)["done"] < task.goal]
    return min(left, key=lambda task: progress.of(task.name)["done"] / task.goal, default=None)


def what_is_left(all_tasks, goal, record):
    """The tasks that kill, to the kills that the record lacks: more of those of which it has less."""
    killing = [task for task in all_tasks if task.kills]
    lacks = {task.name: max(0, task.goal - record.killed({task.name})) for task in killing}
    missing, in_all = goal - record.killed(), sum(lacks.values()) or 1
    for task in killing:
        task.goal = -(-missing * lacks[task.name] // in_all)
    return [task for task in killing if task.goal > 0]


def one_piece(task, progress, record, tried):
    """`tried` is the commit."""
    sums = progress.of(task.name)
    first, seed = sums["done"], f"{progress.seed}, {task.name}, piece {sums['pieces']}"
    n, report, begin = min(task.piece, task.goal - first), Report(seed), time.monotonic()
    print(f"faults: {task.name}, from {first} of {task.goal} on", flush=True)

    def keep(done):
        seconds = time.monotonic() - begin
        progress.add(task.name, report, done, seconds, tried)
        if record is not None:
            record.add(tried, task.name, report, seconds)

    try:
        task.run(report, random.Random(seed), first, n)
    except Exception as error:
        report.faults.append(f"{type(error).__name__}: {str(error)[-500:]}")
        keep(0)
        raise
    keep(task.unit(report, n))
    print(f"{report.line()} ({task.name}: {sums['done']} of {task.goal})", flush=True)


def stop_with(stopping):
    """A handler of signals.  It may run in the middle of a print(), which cannot be entered twice: so it writes by itself."""
    def stop(number, _):
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()
        os.write(1, f"faults: {signal.Signals(number).name}: the piece at hand is ended and audited; once more: at once\n".encode())
    return stop


def main():
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop_with(stopping))
    process.own_groups = True  # a ^C ends the piece, not the processes that the piece is about
    given = {name: int(os.environ[f"TALLYD_{name}"]) for name in ("SEED", "KILLS", "REQUESTS", "SLOW", "SWEEPS", "FAILOVERS", "ROUNDS")
             if os.environ.get(f"TALLYD_{name}")}
    all_tasks = tasks(given.get("KILLS", 200), given.get("REQUESTS", 20_000), given.get("SLOW", 10_000), given.get("SWEEPS", 1),
                      given.get("FAILOVERS", 10), given.get("ROUNDS", 32), stopping)
    record, path = None, pathlib.Path(os.environ.get("TALLYD_FAULTS") or FILE)
    if os.environ.get("TALLYD_RECORD"):
        record = Kills(os.environ["TALLYD_RECORD"])
        all_tasks = what_is_left(all_tasks, given.get("KILLS", 200), record)
        path = path.with_name("kills.json")
        path.unlink(missing_ok=True)
        print(f"faults: {record.killed()} kills are in {record.path}, {record.wrong()} faults with them", flush=True)
    only = os.environ.get("TALLYD_TASKS")
    all_tasks = [task for task in all_tasks if not only or task.name in only.split(";")]
    tried, goals = version(), {task.name: task.goal for task in all_tasks}
    progress = Progress(path, given.get("SEED"))
    if progress.is_done(goals):
        path.unlink(missing_ok=True)
        progress = Progress(path, given.get("SEED"))
    print(f"faults: TALLYD_SEED={progress.seed}, {path}", flush=True)
    n_wrong = len(progress.wrong())
    try:
        while not stopping.is_set() and len(progress.wrong()) == n_wrong:
            task = next_task(all_tasks, progress)
            if task is None:
                break
            one_piece(task, progress, record, tried)
    except BaseException:
        for child in process.running:
            print(f"-- {child.name}\n{child.tail()}", file=sys.stderr)
        raise
    finally:
        print(f"\n{progress.table(goals)}\n", flush=True)
    if progress.wrong():
        sys.exit("faults: FOUND\n" + "\n".join(progress.wrong()))


if __name__ == "__main__":
    main()
