#!/usr/bin/env python3
"""Synthetic traffic for a look at tallyd: a month of two made-up sites, the same for the same seed.

Nobody is counted here: users are called demo-..., sites demo-shop and demo-blog, and addresses come from
the networks that are set aside for examples (RFC 5737).  `make demo` starts a tallyd of its own for it.

    deploy/demo.py [--url http://127.0.0.1:8080] [--seed 1] [--days 30] [--per-day 2500] [--live]

--live goes on with a few page views a second until it is stopped.
"""

import argparse
import bisect
import http.client
import itertools
import json
import math
import random
import sys
import time
import urllib.parse

BATCH = 10_000
BROWSERS = ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile/15E148 Safari/604.1",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.5 Safari/605.1.15")
NETWORKS = ("192.0.2.", "198.51.100.", "203.0.113.")
# Share of a day's visits by hour, of a shop in the evening and of a blog at noon.
EVENING = (2, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6, 6, 5, 5, 6, 7, 8, 10, 12, 12, 10, 7, 4)
NOON = (2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 9, 11, 9, 8, 7, 6, 5, 5, 5, 5, 4, 3, 2)


class Site:
    """How one site is visited."""

    def __init__(self, name, hours, weekend, pages, people, returning, named, chance):
        self.name, self.weekend, self.returning, self.named, self.chance = name, weekend, returning, named, chance
        self.hours = list(itertools.accumulate(hours))
        self.pages = pages
        self.popular = list(itertools.accumulate(1 / (i + 1) ** 0.9 for i in range(len(pages))))  # Zipf
        self.people = [self._person(i) for i in range(people)]

    def _person(self, i):
        who = {"ip": self.chance.choice(NETWORKS) + str(self.chance.randrange(1, 255)), "ua": self.chance.choice(BROWSERS)}
        if self.chance.random() < self.named:
            who["user"] = f"demo-{i}"
        return who

    def _pick(self, sums):
        return bisect.bisect(sums, self.chance.random() * sums[-1])

    def _visitor(self, day):
        """A regular, or somebody new; who is there moves on with the days."""
        n = len(self.people)
        if self.chance.random() < self.returning:
            return self.people[int(n * self.chance.random() ** 3)]
        return self.people[(day * n // 40 + self.chance.randrange(n // 8)) % n]

    def visit(self, start_s, day):
        """The page views of one visit."""
        who, at = self._visitor(day), start_s
        while True:
            page = self.pages[self._pick(self.popular)]
            event = {"site": self.name, "page": page, "ts": int(at), **who}
            if "user" in who and page in ("/checkout", "/subscribe"):
                event["actions"] = ["order" if page == "/checkout" else "subscribe"]
            yield event
            if self.chance.random() < 0.4:
                return
            at += self.chance.expovariate(1 / 70) + 2

    def day(self, midnight_s, day, views):
        weekday = time.gmtime(midnight_s).tm_wday
        wanted = views * (self.weekend if weekday >= 5 else 1) * self.chance.uniform(0.85, 1.15) * (1 + day / 60)
        for _ in range(int(wanted / 2.5)):  # page views a visit
            at = midnight_s + self._pick(self.hours) * 3600 + self.chance.random() * 3600
            yield from self.visit(at, day)


def sites(chance):
    shop = ["/", "/search", "/product/lamp", "/cart", "/product/chair", "/checkout", "/product/desk", "/sale", "/about",
            *(f"/product/{i}" for i in range(1, 61))]
    blog = ["/", "/posts/counting-people", "/posts/why-sketches", "/archive", "/subscribe", "/about",
            *(f"/posts/{year}/{i}" for year in (2024, 2025, 2026) for i in range(1, 21))]
    return (Site("demo-shop", EVENING, 1.3, shop, 9000, 0.35, 0.5, chance), 0.65), (
        Site("demo-blog", NOON, 0.6, blog, 6000, 0.2, 0.15, chance), 0.35)


def month(chance, now_s, days, per_day):
    """All events up to now, in order of time."""
    today = int(now_s) // 86400 * 86400
    events = []
    for site, share in sites(chance):
        for day in range(days + 1):
            events += site.day(today - (days - day) * 86400, day, per_day * share)
    oldest = now_s - days * 86400
    return sorted((e for e in events if oldest <= e["ts"] <= now_s), key=lambda e: e["ts"])


def post(connection, events):
    connection.request("POST", "/events", json.dumps(events), {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 202 or answer["rejected"]:
        sys.exit(f"tallyd did not take it: {response.status} {json.dumps(answer)[:500]}")


def live(connection, chance, per_day):
    """As many page views as this hour would have."""
    both = [site for site, _ in sites(chance)]
    while True:
        rate = max(per_day / 86400 * 4, 0.5)
        time.sleep(min(chance.expovariate(rate), 5))
        event = next(chance.choice(both).visit(0, 30))
        event.pop("ts")
        post(connection, [event])


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--days", type=int, default=30, help="at most what --keep-hours keeps")
    parser.add_argument("--per-day", type=int, default=2500, help="page views, of both sites, about")
    parser.add_argument("--now", type=float, default=None, help="epoch seconds; default: this moment")
    parser.add_argument("--live", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    url = urllib.parse.urlsplit(args.url)
    chance = random.Random(args.seed)
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=30)
    began = time.monotonic()
    events = month(chance, args.now or time.time(), args.days, args.per_day)
    for i in range(0, len(events), BATCH):
        post(connection, events[i:i + BATCH])
    names = sorted({e["site"] for e in events})
    print(f"{len(events)} synthetic page views of {args.days} days on {' and '.join(names)} (seed {args.seed}), "
          f"sent in {math.ceil(time.monotonic() - began)} s", flush=True)
    if args.live:
        live(connection, chance, args.per_day)


if __name__ == "__main__":
    try:
        main()
    except (KeyboardInterrupt, BrokenPipeError):
        pass
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f"cannot reach tallyd: {error}")
