"""What the figures must be: a naive, exact model, and how far an estimate may be from it."""

import math
from dataclasses import dataclass, field

SIGMA = 0.0081  # standard error of a HyperLogLog with 16384 registers
VISIT_TIMEOUT_S = 1800


@dataclass
class Seen:
    """One counted event."""

    site: str
    page: str
    at_s: int
    visitor: str
    ip: str
    starts_visit: bool


@dataclass
class Model:
    """Events in the order of arrival; every question is answered by walking over all of them."""

    timeout_s: int = VISIT_TIMEOUT_S
    events: list = field(default_factory=list)
    last: dict = field(default_factory=dict)

    def add(self, event):
        """An event as it is posted: page, ts (epoch seconds), and site, user, ip, ua if any."""
        site, ip, at_s = event.get("site", "default"), event.get("ip"), int(event["ts"])
        visitor = None
        if "user" in event:
            visitor = f"user {event['user']}"
        elif ip is not None:
            visitor = f"hash {ip} {event.get('ua')}"
        self.events.append(
            Seen(site, event["page"], at_s, visitor, ip, self._starts_visit(site, visitor, at_s)))

    def _starts_visit(self, site, visitor, at_s):
        if visitor is None:
            return False
        before = self.last.get((site, visitor))
        self.last[(site, visitor)] = at_s if before is None else max(before, at_s)
        return before is None or at_s - before > self.timeout_s

    def window(self, site, from_s, to_s, pages=None):
        return [e for e in self.events
                if e.site == site and from_s <= e.at_s < to_s and (pages is None or e.page in pages)]

    def counts(self, site, from_s, to_s, pages=None):
        """{'pv', 'uv', 'ips', 'visits'} of a window."""
        events = self.window(site, from_s, to_s, pages)
        return {
            "pv": len(events),
            "uv": len({e.visitor for e in events if e.visitor is not None}),
            "ips": len({e.ip for e in events if e.ip is not None}),
            "visits": sum(e.starts_visit for e in events),
        }


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
        assert len(tiny) <= 1 + n_tiny // 50, f"tiny sets are not exact: {tiny[:10]}"
