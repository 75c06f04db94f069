"""Bytes of append-only file an event: what Redis's disk has to take."""

import re

from . import load
from .bench import Contender
from .results import Section
from .servers import TallydServer
from .settings import BUILD, EVENT, SINGLE, TIMED_EVENT

#       key       label                                  events    rate.c's options                event
LOADS = (("single", "single events, 64 connections", 200_000, ("-c", 64), SINGLE),
         ("live", "arrays of 1000, live", 600_000, ("-c", 8, "-b", 1000), EVENT),
         ("late", "arrays of 1000, one to two hours old", 600_000, ("-c", 8, "-b", 1000, "-a", 3600), TIMED_EVENT))


def size(tallyd):
    return int(re.search(r"^aof_current_size:(\d+)", tallyd.redis("INFO", "persistence"), re.M)[1])


def written(bench, seed, load_of, program=BUILD / "tallyd"):
    """A run on a fresh server: so many events whatever the time, all counted at the end, the file never rewritten."""
    _, _, events, options, event = load_of
    events //= 10 if bench.settings.quick else 1
    with bench.serving(TallydServer, "--fsync", "everysec", program=program) as tallyd:
        tallyd.redis("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
        before = size(tallyd)
        record = load.measure(tallyd.roles, [load.PROGRAMS / "rate", *options, "-e", events, "-d", 120, "-S", seed, tallyd.port,
                                             "/events", event], 120, tallyd.settle)
        record["aof_bytes"] = (size(tallyd) - before) / record["events"]
        return record


def aof(bench):
    section = Section("aof", "bytes of append-only file an event, appended and folded; a fresh server a run, --fsync everysec")
    bench.in_turn(section, [Contender(of[0], of[1], lambda seed, s, of=of: written(bench, seed, of)) for of in LOADS],
                  warm_up=False)
    return section
