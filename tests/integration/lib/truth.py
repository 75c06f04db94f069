"""What the figures must be: a naive, exact model, and how far an estimate may be from it."""

import collections
import math
from dataclasses import dataclass, field

SIGMA = 0.0081  # standard error of a HyperLogLog with 16384 registers
VISIT_TIMEOUT_S = 1800


@dataclass
class Seen:
    """One counted event: a page view, or a named event (then it has no page)."""

    site: str
    page: str
    at_s: int
    visitor: str
    ip: str
    starts_visit: bool
    event: str = None
    engages_visit: bool = False  # it is the second event of one
    gained_s: int = 0  # by so much its visit grew


@dataclass
class Model:
    """Events in the order of arrival; every question is answered by walking over all of them."""

    timeout_s: int = VISIT_TIMEOUT_S
    events: list = field(default_factory=list)
    last: dict = field(default_factory=dict)
    visit: dict = field(default_factory=dict)  # (site, visitor) -> events of the last visit

    def add(self, event, arrival_s=None):
        """An event as it is posted: page or event, ts (epoch seconds), and site, visitor, user, ip, ua if any.  Actions alone
        are no event here.  Without a time of arrival nothing is ever forgotten of a visitor."""
        site, ip, at_s = event.get("site", "default"), event.get("ip"), int(event["ts"])
        name = event.get("event")
        page = event.get("page") if name is None else None
        if name is None and page is None:
            return
        visitor = None
        if "visitor" in event:
            visitor = f"visitor {event['visitor']}"
        elif "user" in event:
            visitor = f"user {event['user']}"
        elif ip is not None:
            visitor = f"hash {ip} {event.get('ua')}"
        starts, engages, gained_s = self._visit_step(site, visitor, at_s, arrival_s, name is not None)
        self.events.append(Seen(site, page, at_s, visitor, ip, starts, name, engages, gained_s))

    def _visit_step(self, site, visitor, at_s, arrival_s, named):
        """Does it start a visit, does it engage one, and by how much does one grow?  A named event prolongs a visit that is
        open, and starts none."""
        if visitor is None:
            return False, False, 0
        before, before_arrival = self.last.get((site, visitor), (None, None))
        if None not in (arrival_s, before_arrival) and arrival_s - before_arrival > 2 * self.timeout_s:
            before = None
        starts = before is None or at_s - before > self.timeout_s
        if starts and named:
            return False, False, 0
        self.last[(site, visitor)] = (at_s if before is None else max(before, at_s), arrival_s)
        if starts:
            self.visit[(site, visitor)] = 1
            return True, False, 0
        if before - at_s > self.timeout_s:
            return False, False, 0  # older than the visit
        self.visit[(site, visitor)] += 1
        return False, self.visit[(site, visitor)] == 2, max(0, at_s - before)

    def window(self, site, from_s, to_s, pages=None, events=None):
        """Page views, of these pages; or named events of these names."""
        return [e for e in self.events
                if e.site == site and from_s <= e.at_s < to_s
                and (e.event in events if events is not None else e.event is None and (pages is None or e.page in pages))]

    def visitors(self, site, from_s, to_s, pages=None, events=None):
        return {e.visitor for e in self.window(site, from_s, to_s, pages, events) if e.visitor is not None}

    def counts(self, site, from_s, to_s, pages=None, events=None):
        """{'pv', 'uv', 'ips', 'visits'} of a window."""
        events = self.window(site, from_s, to_s, pages, events)
        return {
            "pv": len(events),
            "uv": len({e.visitor for e in events if e.visitor is not None}),
            "ips": len({e.ip for e in events if e.ip is not None}),
            "visits": sum(e.starts_visit for e in events),
        }

    def visit_figures(self, site, from_s, to_s):
        """What /stats says of a site's visits.  What a visit gains belongs to where it gains it."""
        events = [e for e in self.events if e.site == site and from_s <= e.at_s < to_s]
        visits = sum(e.starts_visit for e in events)
        if visits == 0:
            return {"views_per_visit": None, "bounce_rate": None, "visit_duration_s": None}
        engaged = sum(e.engages_visit for e in events)
        return {"views_per_visit": sum(e.event is None for e in events) / visits,
                "bounce_rate": max(0, visits - engaged) / visits,
                "visit_duration_s": sum(e.gained_s for e in events) / visits}

    def entries(self, site, from_s, to_s):
        """Visits by the page that they began with."""
        return collections.Counter(e.page for e in self.window(site, from_s, to_s) if e.starts_visit)


def collisions(n):
    """How many of n elements may be lost to others in their register: all but one in a million sets lose fewer.  Two share one
    of 16384 with probability n * n / 32768, so that is how many do in the mean, and they are as good as independent; the
    mean is known to the estimate."""
    mean = n * n / 32768
    k, probability = 0, math.exp(-mean)
    beyond = 1 - probability
    while beyond > 1e-6:
        k += 1
        probability *= mean / k
        beyond -= probability
    return math.ceil(k - mean)


def slack(n, sigmas=4):
    """How far an estimate of n may be off: `sigmas` standard errors, and collisions where few are expected."""
    if n <= 1:
        return 0
    return max(sigmas * SIGMA * n, collisions(n) if n < 2000 else 0)


def is_close(got, n):
    return abs(got - n) <= slack(n)


class Estimates:
    """Estimates of many sets.  Each must be close; tiny sets must be exact but for a rare collision,
    and of the rest one in a hundred may be beyond 4 sigma, none beyond 5.5."""

    TINY = 8

    def __init__(self):
        self.pairs = {}  # (what, n) -> (got, where): the same set in many windows counts once

    def add(self, what, got, n, where=""):
        known = self.pairs.get((what, n))
        if known is None or abs(got - n) > abs(known[0] - n):
            self.pairs[(what, n)] = (got, where)

    def check(self):
        assert self.pairs, "nothing was compared"
        off = [(what, n, got, where) for (what, n), (got, where) in self.pairs.items() if got != n]
        far = [p for p in off if not is_close(p[2], p[1])]
        wrong = [p for p in off if abs(p[2] - p[1]) > slack(p[1], 5.5)]
        tiny = [p for p in off if p[1] <= self.TINY]
        n_tiny = sum(1 for _, n in self.pairs if n <= self.TINY)
        assert not wrong, f"not an estimate of n: (what, n, got, where) {wrong[:10]}"
        assert len(far) <= 1 + len(self.pairs) // 100, f"beyond 4 sigma: {far[:10]}"
        # An answer has several figures of one set: two visitors who share a register show in each of them.
        n_off = len({repr(where) if where else (what, n) for what, n, _, where in tiny})
        assert n_off <= 1 + n_tiny // 50, f"tiny sets are not exact: {tiny[:10]}"
