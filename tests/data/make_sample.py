#!/usr/bin/env python3
"""make_sample.py - a synthetic access log whose every figure is known.

    tests/data/make_sample.py [--lines 300] [--start 2025-03-28] [--out tests/data]

writes sample_access.log (Apache combined, in time order) and sample_access.truth.json beside it.  The
same arguments make the same bytes.  Nobody real is in it: addresses are from the ranges reserved for
documentation (RFC 5737, RFC 3849).  The figures come from the events as they were made up, not from
reading the log, so they do not share a mistake with a parser.
"""
import argparse
import datetime
import json
import pathlib
import random
import re

SEED = 20250328
DAYS = 4
VISIT_TIMEOUT_S = 1800
UTC = datetime.timezone.utc
# The clocks of the logging machine go forward in the third night: the same log, another offset.
OFFSET_CHANGE_S = 2 * 86400 + 3600
OFFSETS_H = (1, 2)

PAGES = ["/"] * 6 + ["/docs/"] * 4 + ["/docs/start.html"] * 2 + [
    "/pricing", "/blog/caf%C3%A9", "/blog/2025/03/hello", "/robots.txt", "/Docs/", "/a b.html"]
SCOPE_PAGES = ["/", "/docs/", "/pricing"]
QUERIES = [""] * 6 + ["?utm_source=news", "?q=a?b", "?"]
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15",
    "ExampleBot/1.0 (+https://bot.example/)",
    'weird \\"quoted\\" agent \\\\',
    "-",
]
ADDRESSES = ["192.0.2.%d" % n for n in (1, 2, 3, 77)] + ["198.51.100.%d" % n for n in (4, 5, 200)] + [
    "203.0.113.%d" % n for n in (6, 7, 8, 9)] + ["2001:db8::%x" % n for n in (1, 0xff, 0xcafe)]

RULES = {
    "event": "a GET, HEAD or POST line, whatever its status",
    "page": "the target up to its first '?', as written",
    "visitor": "ip + '|' + user agent as written between the quotes",
    "window": "[from, to), UTC",
    "pv": "events", "uv": "distinct visitors", "unique_ips": "distinct addresses",
    "visits": "a visit starts at an event whose visitor had none on the whole site in the 1800 s before (a "
              "gap of exactly 1800 s is the same visit); it counts in the window of its first event and, "
              "among the pages, on the page of that event",
}


class Event:
    def __init__(self, at_s, address, agent, page):
        self.at_s, self.address, self.agent, self.page = at_s, address, agent, page
        self.visitor = address + "|" + agent
        self.starts_visit = False


def log_time(at_s, start_s):
    hours = OFFSETS_H[at_s - start_s >= OFFSET_CHANGE_S]
    zone = datetime.timezone(datetime.timedelta(hours=hours))
    return datetime.datetime.fromtimestamp(at_s, zone).strftime("%d/%b/%Y:%H:%M:%S %z")


def log_line(rng, event, start_s, method=None, query=None):
    return '%s - %s [%s] "%s %s%s HTTP/%s" %s %s "%s" "%s"' % (
        event.address, rng.choice(["-", "-", "-", "frank"]), log_time(event.at_s, start_s),
        method or rng.choice(["GET"] * 8 + ["HEAD", "POST"]), event.page,
        rng.choice(QUERIES) if query is None else query, rng.choice(["1.0", "1.1", "2.0"]),
        rng.choice([200, 200, 200, 301, 304, 404, 500]), rng.choice(["-", 0, rng.randrange(99999)]),
        rng.choice(["-", "https://www.example.com/?q=x", 'https://example.org/\\"']), event.agent)


def sessions(rng, start_s, wanted):
    """Visits at random times: a few page views each, seconds to minutes apart."""
    while wanted > 0:
        address, agent = rng.choice(ADDRESSES), rng.choice(AGENTS[:2] + AGENTS)
        at_s = start_s + rng.randrange(DAYS * 86400 - 7200)
        for _ in range(min(wanted, rng.choice([1, 1, 2, 3, 5, 8]))):
            yield Event(at_s, address, agent, rng.choice(PAGES))
            at_s += rng.choice([0, 1, 20, 59, 60, 300, 900])
            wanted -= 1


def edge_cases(start_s):
    """What a random log would not hit: the gaps and the borders that decide."""
    address, agent = "203.0.113.99", AGENTS[0]
    noon = start_s + 12 * 3600
    midnight = start_s + 86400
    for gap, page in ((0, "/"), (1800, "/docs/"), (3601, "/pricing"), (5402, "/")):
        yield Event(noon + gap, address, agent, page)       # same visit, new one, new one
    for at_s in (midnight - 60, midnight - 1, midnight, midnight + 59, midnight + 60):
        yield Event(at_s, "203.0.113.98", agent, "/")       # one visit over a midnight
    for other in AGENTS[:3]:
        yield Event(noon + 7, "192.0.2.250", other, "/")    # one address, three visitors
    for last in range(10, 30):
        yield Event(noon + 3600 + last, "192.0.2.%d" % last, AGENTS[1], "/pricing")  # a busy minute


def mark_visits(events):
    last_s = {}
    for event in events:
        before_s = last_s.get(event.visitor)
        event.starts_visit = before_s is None or event.at_s - before_s > VISIT_TIMEOUT_S
        last_s[event.visitor] = event.at_s


def no_events(rng, start_s):
    """(time, line) of what is not to be counted: malformed lines, then other methods."""
    def at(hour):
        return start_s + hour * 3600 + 30

    def line(hour, method="GET", page="/"):
        return log_line(rng, Event(at(hour), "192.0.2.66", AGENTS[0], page), start_s, method, "")

    malformed = [
        (at(5), line(5)[:-20]),                                        # user agent cut off
        (at(17), re.sub(r"/[A-Z][a-z]{2}/", "/Mrz/", line(17), 1)),     # no such month
        (at(29), line(29, page="?only=query")),                        # no path
        (at(40), line(40).replace('"GET / HTTP/', '"-" "')),           # request timed out, then garbage
        (at(55), ""),
        (at(70), "-- log rotated --"),
    ]
    others = [(at(8), line(8, "OPTIONS", "*")), (at(33), line(33, "PUT", "/upload")),
              (at(60), line(60, "PROPFIND", "/docs/")), (at(61), line(61, "get", "/"))]
    return malformed, others


def figures(events):
    return {"pv": len(events), "uv": len({e.visitor for e in events}),
            "unique_ips": len({e.address for e in events}),
            "visits": sum(e.starts_visit for e in events)}


def rfc3339(at_s):
    return datetime.datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def windows(events, start_s):
    noon, midnight = start_s + 12 * 3600, start_s + 86400
    borders = [("whole", start_s, start_s + DAYS * 86400)]
    borders += [("day %d" % (i + 1), start_s + i * 86400, midnight + i * 86400) for i in range(DAYS)]
    borders += [
        ("noon to three", noon, noon + 3 * 3600),
        ("busy minute", noon + 3600, noon + 3660),
        ("minute before midnight", midnight - 60, midnight),
        ("minute after midnight", midnight, midnight + 60),
        ("over a midnight", midnight - 3660, midnight + 7260),
        ("over the change of offset", start_s + OFFSET_CHANGE_S - 7200, start_s + OFFSET_CHANGE_S + 7200),
        ("before everything", start_s - 86400, start_s),
    ]
    for name, from_s, to_s in borders:
        inside = [e for e in events if from_s <= e.at_s < to_s]
        yield {"name": name, "from": rfc3339(from_s), "to": rfc3339(to_s), "site": figures(inside),
               "pages": {p: figures([e for e in inside if e.page == p]) for p in SCOPE_PAGES}}


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--lines", type=int, default=300)
    options.add_argument("--start", type=datetime.date.fromisoformat, default=datetime.date(2025, 3, 28))
    options.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    args = options.parse_args()
    rng = random.Random(SEED)
    start_s = int(datetime.datetime.combine(args.start, datetime.time(), UTC).timestamp())

    edges = list(edge_cases(start_s))
    malformed, others = no_events(rng, start_s)
    random_events = max(0, args.lines - len(edges) - len(malformed) - len(others))
    events = sorted(edges + list(sessions(rng, start_s, random_events)), key=lambda e: e.at_s)
    mark_visits(events)
    lines = [(e.at_s, log_line(rng, e, start_s)) for e in events] + malformed + others
    lines.sort(key=lambda item: item[0])

    dataset = {"file": "sample_access.log", "format": "combined", "lines": len(lines),
               "events": len(events), "malformed": len(malformed), "other_method": len(others),
               "first": rfc3339(events[0].at_s), "last": rfc3339(events[-1].at_s),
               "pages": len({e.page for e in events})}
    truth = {"dataset": dataset, "rules": RULES, "windows": list(windows(events, start_s))}
    (args.out / "sample_access.log").write_text("".join(text + "\n" for _, text in lines), "ascii")
    (args.out / "sample_access.truth.json").write_text(json.dumps(truth, indent=1) + "\n", "ascii")


if __name__ == "__main__":
    main()
