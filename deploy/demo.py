#!/usr/bin/env python3
"""Synthetic traffic for a look at tallyd: two months of two made-up sites, the same for the same seed.

Both grow a little, have their weekdays, and had a launch twelve days ago: the blog's post was read far and wide for
three days, the shop sent a newsletter.  Who came with the launch comes back now and then.

Nobody is counted here: users are called demo-..., sites demo-shop and demo-blog, and addresses come from
the networks that are set aside for examples (RFC 5737, RFC 3849).  `make demo` starts a tallyd of its own for it.

    deploy/demo.py [--url http://127.0.0.1:8080] [--seed 1] [--days 60] [--per-day 1600] [--live]

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
NETWORKS = ("192.0.2.", "198.51.100.", "203.0.113.", "2001:db8:")
# Share of a day's visits by hour, of a shop in the evening and of a blog at noon.
EVENING = (2, 1, 1, 1, 1, 1, 2, 3, 4, 5, 5, 6, 6, 5, 5, 6, 7, 8, 10, 12, 12, 10, 7, 4)
NOON = (2, 1, 1, 1, 1, 2, 4, 7, 9, 10, 10, 9, 11, 9, 8, 7, 6, 5, 5, 5, 5, 4, 3, 2)


COUNTRIES = (("DE", 30), ("US", 22), ("GB", 10), ("FR", 9), ("NL", 7), ("PL", 5), ("ES", 5), ("IN", 4), ("SE", 3), ("CA", 3), ("JP", 2), ("BR", 2))
# How a visit begins: members of its first page view.
NOT_SAID, GOOGLE = {}, {"referrer": "https://www.google.com/"}
EVERY_DAY = ((NOT_SAID, 38), (GOOGLE, 30), ({"referrer": "https://duckduckgo.com/"}, 7), ({"referrer": "https://www.bing.com/"}, 5),
             ({"referrer": "https://github.com/"}, 5), ({"referrer": "https://www.reddit.com/r/demo"}, 4),
             ({"referrer": "https://links.example/weekly"}, 3), ({"utm_source": "newsletter", "utm_medium": "email", "utm_campaign": "weekly"}, 6),
             ({"utm_source": "google", "utm_medium": "cpc", "utm_campaign": "lamps"}, 4))
LAUNCH = (({"referrer": "https://news.ycombinator.com/"}, 45), ({"referrer": "https://t.co/x"}, 12), (NOT_SAID, 18),
          ({"utm_source": "newsletter", "utm_medium": "email", "utm_campaign": "launch"}, 25))
LAUNCH_DAYS_AGO = 12
# By days since: how many times a usual day's visits came on top, with the launch and because of it.
AFTERMATH = (3.0, 1.6, 0.6, 0.25, 0.15, 0.1)
# Where a visit goes on from a page, and how likely it ends there.
ENDS = 0.38


class Site:
    """How one site is visited."""

    def __init__(self, name, hours, weekend, pages, paths, people, returning, named, chance):
        self.name, self.weekend, self.returning, self.named, self.chance = name, weekend, returning, named, chance
        self.hours = list(itertools.accumulate(hours))
        self.pages, self.paths = pages, paths
        self.popular = list(itertools.accumulate(1 / (i + 1) ** 0.9 for i in range(len(pages))))  # Zipf
        self.people = [self._person(i) for i in range(people)]
        self.launched = []  # who came with the launch

    def _weighted(self, choices):
        return self.chance.choices([c for c, _ in choices], [n for _, n in choices])[0]

    def _person(self, i):
        network = self.chance.choice(NETWORKS)
        who = {"ip": f"{network}{self.chance.randrange(1, 65535):x}::1" if ":" in network else f"{network}{self.chance.randrange(1, 255)}", "ua": self.chance.choice(BROWSERS),
               "country": self._weighted(COUNTRIES)}
        who["visitor"] = f"demo-visitor-{i}"
        if self.chance.random() < self.named:
            who["user"] = f"demo-{i}"
        return who

    def _pick(self, sums):
        return bisect.bisect(sums, self.chance.random() * sums[-1])

    def _visitor(self, day, launch):
        """A regular, somebody of the launch, or somebody new; who is there moves on with the days."""
        n = len(self.people)
        if launch:
            self.launched.append(self._person(n + len(self.launched)))
            return self.launched[-1]
        if self.launched and self.chance.random() < 0.12:
            return self.chance.choice(self.launched)
        if self.chance.random() < self.returning:
            return self.people[int(n * self.chance.random() ** 3)]
        return self.people[(day * n // 70 + self.chance.randrange(n // 8)) % n]

    def _next(self, page):
        """The page that a visitor reads after another one; None: the visit ends."""
        if self.chance.random() < ENDS:
            return None
        onward = self.paths.get(page)
        return self.chance.choice(onward) if onward and self.chance.random() < 0.6 else self.pages[self._pick(self.popular)]

    def visit(self, start_s, day, launch=False):
        """The page views of one visit, and what was done on them."""
        who, at = self._visitor(day, launch), start_s
        page = self.pages[1] if launch else self.pages[self._pick(self.popular)]
        began = self._weighted(LAUNCH if launch else EVERY_DAY)
        while page is not None:
            event = {"site": self.name, "page": page, "ts": int(at), **who, **began}
            began = NOT_SAID
            if "user" in who and page in ACTIONS:
                event["actions"] = [ACTIONS[page]]
            yield event
            if page in EVENTS and self.chance.random() < 0.5:
                yield {"site": self.name, "event": EVENTS[page], "page": page, "ts": int(at) + 5, **who}
            page = self._next(page)
            at += self.chance.expovariate(1 / 70) + 8

    def day(self, midnight_s, day, views, launched):
        """`launched`: days since the launch, or a negative number."""
        weekday = time.gmtime(midnight_s).tm_wday
        usual = views * (self.weekend if weekday >= 5 else 1) * self.chance.uniform(0.9, 1.1) * (0.85 + day / 200) / VIEWS_A_VISIT
        more = AFTERMATH[launched] * views / VIEWS_A_VISIT if 0 <= launched < len(AFTERMATH) else 0
        for i in range(int(usual + more)):
            at = midnight_s + self._pick(self.hours) * 3600 + self.chance.random() * 3600
            yield from self.visit(at, day, launch=i >= usual)


VIEWS_A_VISIT = 1 / ENDS
ACTIONS = {"/product/lamp": "view", "/product/chair": "view", "/cart": "cart", "/checkout": "order", "/subscribe": "subscribe"}
EVENTS = {"/cart": "Add to cart", "/checkout": "Order", "/subscribe": "Signup", "/download": "Download"}


def sites(chance):
    shop = ["/", "/product/lamp", "/search", "/cart", "/product/chair", "/checkout", "/product/desk", "/sale", "/about",
            *(f"/product/{i}" for i in range(1, 61))]
    blog = ["/", "/posts/launch", "/posts/counting-people", "/posts/why-sketches", "/archive", "/subscribe", "/download", "/about",
            *(f"/posts/{year}/{i}" for year in (2024, 2025, 2026) for i in range(1, 21))]
    on_shop = {"/": ["/search", "/sale"], "/search": shop[10:30], "/product/lamp": ["/cart", "/product/chair"], "/product/chair": ["/cart"],
               "/cart": ["/checkout"], "/sale": ["/product/lamp", "/product/desk"]}
    on_blog = {"/": blog[1:8], "/posts/launch": ["/download", "/", "/about"], "/archive": blog[8:30], "/posts/why-sketches": ["/subscribe"]}
    return (Site("demo-shop", EVENING, 1.25, shop, on_shop, 9000, 0.35, 0.5, chance), 0.62), (
        Site("demo-blog", NOON, 0.6, blog, on_blog, 6000, 0.2, 0.15, chance), 0.38)


def months(chance, now_s, days, per_day):
    """All events up to now, in order of time."""
    today = int(now_s) // 86400 * 86400
    events = []
    for site, share in sites(chance):
        for day in range(days + 1):
            events += site.day(today - (days - day) * 86400, day, per_day * share, LAUNCH_DAYS_AGO - (days - day))
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
    parser.add_argument("--days", type=int, default=60, help="at most what --keep-hours keeps")
    parser.add_argument("--per-day", type=int, default=1600, help="page views of both sites, about")
    parser.add_argument("--now", type=float, default=None, help="epoch seconds; default: this moment")
    parser.add_argument("--live", action="store_true")
    return parser.parse_args()


def main():
    args = arguments()
    url = urllib.parse.urlsplit(args.url)
    chance = random.Random(args.seed)
    connection = http.client.HTTPConnection(url.hostname, url.port or 80, timeout=30)
    began = time.monotonic()
    events = months(chance, args.now or time.time(), args.days, args.per_day)
    for i in range(0, len(events), BATCH):
        post(connection, events[i:i + BATCH])
    names = sorted({e["site"] for e in events})
    views = sum("event" not in e for e in events)
    print(f"{views} synthetic page views and {len(events) - views} events of {args.days} days on {' and '.join(names)} (seed {args.seed}), "
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
