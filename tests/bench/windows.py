#!/usr/bin/env python3
"""What a question costs whose window nobody has asked for: with one Redis, with 256 partitions of it, and on 3 nodes.

The table of README.md, "Windows that are new".  Each has the same 200,000 events of 10,000 pages in 60 days.  Questions go
to all of them in turn, so that a ratio is one of neighbours, and no window comes twice.  `cold` are windows all over the 60
days: most of their hours were never read.  `warm` are others within three days, whose hours were.  Two minutes.

    tests/bench/windows.py [WORD ..]      with build/tallyd, or TALLYD_BIN; WORD: questions that begin with it
"""

import random
import sys
import time

from benchlib.settings import number
from nodes import Served, median

from lib.clock import rfc3339
from lib.log import counted

NAMES = ("one Redis", "one Redis, P=256", "3 nodes")
DAYS = 60
HOUR, DAY = 3600, 86400
EVENTS = number("BENCH_EVENTS", 200_000, 1000, 10_000_000)
QUESTIONS = number("BENCH_QUESTIONS", 200, 10, 10_000)
OPTIONS = ("--keep-minutes", "90d", "--keep-hours", "90d")


def hours(chance, now, days):
    """Up to 25 hours, in one of the last @days."""
    begin = now // HOUR * HOUR - chance.randint(25, days * 24 - 1) * HOUR
    return {"from_": begin, "to": begin + chance.randint(1, 25) * HOUR}


def dates(chance, now, days):
    """Up to 12 days of the last @days and 12 before them."""
    begin = now - chance.randint(12, days + 11) * DAY
    return {"from_": rfc3339(begin)[:10], "to": rfc3339(begin + chance.randint(1, 12) * DAY)[:10]}


def cohort(chance, now, days):
    begin = now - chance.randint(12, days + 11) * DAY
    return {"cohort": rfc3339(begin)[:10], "days": chance.randint(1, 12)}


ASKED = {"/uv": ({}, hours), "/pv": ({}, hours), "/visits": ({}, hours), "/stats": ({}, hours), "/pages": ({}, hours),
         "/breakdown": ({"by": "country"}, hours), "/dau": ({}, dates), "/active": ({}, dates), "/frequency": ({}, dates),
         "/retention": ({}, cohort), "/funnel": ({"step": ["view", "order"]}, dates)}


def event(chance, now):
    page = int(chance.paretovariate(0.6)) % 10_000
    return {"page": f"/p/{page}", "user": f"u{chance.randrange(200_000)}", "country": chance.choice(["DE", "FR", "US"]),
            "ip": f"10.0.{chance.randrange(200)}.{chance.randrange(200)}", "ts": now - 60 - chance.randrange(DAYS * DAY)}


def fill(servers, chance, now):
    for _ in range(0, EVENTS, 1000):
        array = [event(chance, now) for _ in range(1000)]
        for one in servers.values():
            one.tallyd.client(60).accept(array)
    for one in servers.values():
        counted(one.tallyd.client(60))


def windows(make, chance, now, days, seen):
    """Such as did not come before: as many as are wanted, or as there are."""
    found = []
    for _ in range(QUESTIONS * 20):
        window = make(chance, now, days)
        if window not in seen and len(found) < QUESTIONS:
            seen.append(window)
            found.append(window)
    return found


def asked(servers, path, questions):
    """The median of each in ms."""
    clients = {name: one.tallyd.client() for name, one in servers.items()}
    times = {name: [] for name in servers}
    for params in questions:
        for name, http in clients.items():
            began = time.monotonic()
            http.question(path, **params)
            times[name].append(time.monotonic() - began)
    return {name: median(values) * 1e3 for name, values in times.items()}


def main():
    words = tuple(sys.argv[1:]) or ("/",)
    servers, chance, now = {}, random.Random(1), int(time.time())
    try:
        for name in NAMES:
            servers[name] = Served(name, *OPTIONS)
            servers[name].tallyd.start()
        fill(servers, chance, now)
        print(f"{'ms, and of one Redis':<24}" + "".join(f"{name:>24}" for name in NAMES))
        for path, (params, make) in ASKED.items():
            seen = []
            for what, days in (("cold", DAYS - 12), ("warm", 3)):
                if path.startswith(words):
                    found = asked(servers, path, [params | w for w in windows(make, chance, now, days, seen)])
                    print(f"{path:<18}{what:<6}" + "".join(
                        f"{ms:>16.3f} {ms / found[NAMES[0]]:>7.2f}" for ms in found.values()), flush=True)
    finally:
        for one in servers.values():
            one.stop()


if __name__ == "__main__":
    main()
