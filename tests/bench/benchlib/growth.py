"""How cost grows with pages and users: one run each on a fresh server."""

from . import load
from .results import Section, Series
from .servers import TallydServer
from .settings import PAGES, USERS

PAGES_STEPS = (100, 1_000, 10_000, 100_000, 1_000_000)
USERS_STEPS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


def used_memory(tallyd):
    info = tallyd.redis("INFO", "memory")
    return int(next(line.partition(":")[2] for line in info.splitlines() if line.startswith("used_memory:")))


def points(quick):
    if quick:
        return [(100, USERS), (1_000_000, USERS)]
    return [(p, USERS) for p in PAGES_STEPS] + [(PAGES, u) for u in USERS_STEPS if u != USERS]


def growth(bench):
    s = bench.settings
    section = Section("growth", f"growth: batches of 1000 over 8 connections, at most {s.growth_events:,} events "
                                f"and {s.growth_s:g} s, --fsync always, one run each")
    for pages, users in points(s.quick):
        bench.say(f"growth: {pages:,} pages, {users:,} users")
        with bench.serving(TallydServer, "--fsync", "always") as tallyd:
            load.measure(tallyd.roles, load.batches(tallyd.port, 1, 1, "-e", 8000, "-P", 1, "-U", 1), 1, tallyd.settle)
            before = used_memory(tallyd)
            record = load.measure(tallyd.roles, load.batches(
                tallyd.port, s.growth_s, 2, "-e", s.growth_events, "-P", pages, "-U", users), s.growth_s, tallyd.settle)
            record["redis_bytes"] = (used_memory(tallyd) - before) / record["events"]
            if record["errors"]:
                bench.errors.append(f"growth: {pages} pages, {users} users: {record['errors']} requests failed")
            bench.note_memory(section.key, tallyd.pid)
        section.series.append(Series(f"{pages} pages {users} users", f"{pages:,} pages, {users:,} users", [record]))
    return section
