"""The load programs: run one, and account for the CPU of all that took part."""

import json
import subprocess
import time

from .machine import Meter
from .settings import BENCH, EVENT, PROGRAMS, SINGLE, TIMED_EVENT


# refused: not a 2xx; lost: with its connection; unanswered: some seconds after the end; wrong: the answer lacks something
FAILURES = ("refused", "lost", "unanswered", "wrong")


class LoadFailed(Exception):
    pass


def run_json(argv, timeout_s, stdin=None):
    """The object that a program prints as its last line."""
    try:
        done = subprocess.run([str(a) for a in argv], input=stdin, capture_output=True, text=True,
                              timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{argv[0]} did not end within {timeout_s:g} s") from error
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        raise LoadFailed(f"{argv[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
    return json.loads(lines[-1])


def failures(*figures):
    """How many requests of these loads failed: {"errors": all, and those that are not 0 of FAILURES}"""
    kinds = {kind: sum(f.get(kind, 0) for f in figures) for kind in FAILURES}
    return {"errors": sum(kinds.values()), **{kind: n for kind, n in kinds.items() if n}}


def measure(roles, argv, seconds, settle=None):
    """Run a load of about `seconds` against the processes of `roles`: its figures, and CPU us an event by role.

    settle() waits for what the load left to be done.  Its CPU belongs to the load, and `counted_rate` is the rate with
    the time that it took.
    """
    meter = Meter(roles)
    figures = run_json(argv, seconds + 40)
    ended = time.monotonic()
    if settle:
        settle()
    left_s = time.monotonic() - ended
    used = meter.stop()
    record = {k: float(figures[k]) for k in ("rate", "p50_us", "p99_us", "lag_p99_us") if k in figures}
    record["events"] = figures["events"]
    record["counted_rate"] = figures["events"] / (figures["seconds"] + left_s)
    for role, cpu in used["cpu_s"].items():
        record[f"{role}_us"] = cpu / figures["events"] * 1e6
    record["client_us"] = used["client_cpu_s"] / figures["events"] * 1e6
    record["others_percent"] = used["others_percent"]
    return {**record, **failures(figures)}


def wrk(settings, port, seconds, kind, *more):
    """wrk: single events over 64 keep-alive connections."""
    return ["wrk", "-t", settings.wrk_threads, "-c", 64, "-d", f"{max(1, round(seconds))}s",
            "-s", BENCH / "wrk.lua", f"http://127.0.0.1:{port}/events", "--", kind, *more]


def batches(port, seconds, seed, *more):
    """Arrays of 1000 events over 8 connections, as fast as answers come."""
    return [PROGRAMS / "rate", "-c", 8, "-b", 1000, "-d", seconds, "-S", seed, *more, port, "/events", EVENT]


def late_batches(port, seconds, seed, *more):
    """The same with events that are one to two hours old."""
    return [PROGRAMS / "rate", "-c", 8, "-b", 1000, "-d", seconds, "-S", seed, "-a", 3600, *more, port, "/events",
            TIMED_EVENT]


def fixed_rate(port, rate, seconds, seed, target="/events", event=SINGLE):
    """Single events at a fixed rate over 32 connections, open loop."""
    return [PROGRAMS / "rate", "-c", 32, "-r", rate, "-d", seconds, "-S", seed, port, target, event]


def questions(port, target, times):
    """One GET after the other on one connection."""
    return [PROGRAMS / "rate", "-c", 1, "-d", 30, "-e", times, port, target]


def after_write(port, seconds, seed, target, event, answer, *more):
    """Pairs: an event, and when it is acknowledged a question whose answer must have it."""
    return [PROGRAMS / "after_write", "-d", seconds, "-S", seed, *more, port, target, event, answer]


def unmerged(socket, connections, seconds, seed):
    return [PROGRAMS / "unmerged", "-c", connections, "-b", 1000, "-d", seconds, "-S", seed, socket]
