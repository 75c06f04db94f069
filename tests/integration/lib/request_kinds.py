"""Each kind of request: questions, whose answer is always the same, and changes, whose effect can be looked at.

A change knows whether it is applied: once, or not at all.  Found half or twice it raises RuntimeError.
"""

import json
import time
from dataclasses import dataclass

from .client import query
from .clock import rfc3339

SITE = "kinds"
JSON = {"Content-Type": "application/json"}
NOW = int(time.time())
HOUR = NOW // 3600 * 3600
WINDOW = {"site": SITE, "from": rfc3339(HOUR - 3 * 3600), "to": rfc3339(HOUR - 3600)}  # over, so that the answer is always the same
DAYS = {"site": SITE, "from": "now-3d/d", "to": "now/d"}

# What is asked: method, path, parameters, body
QUESTIONS = {
    "uv": ("GET", "/uv", WINDOW, None),
    "series": ("GET", "/stats", {**WINDOW, "step": "1h"}, None),
    "page set": ("GET", "/pv", {**WINDOW, "pageset": "set"}, None),
    "pages": ("GET", "/pages", WINDOW, None),
    "by visitors": ("GET", "/pages", {**WINDOW, "by": "uv"}, None),
    "breakdown": ("GET", "/breakdown", {**WINDOW, "by": "browser"}, None),
    "breakdown of events": ("GET", "/breakdown", {**WINDOW, "by": "event", "step": "1h"}, None),
    "overlap": ("GET", "/overlap?page=/a&page=/b", WINDOW, None),
    "sites": ("GET", "/sites", {}, None),
    "a site": ("GET", f"/sites/{SITE}", {}, None),
    "a page set": ("GET", "/pagesets/set", {"site": SITE}, None),
    "dau": ("GET", "/dau", DAYS, None),
    "new users": ("GET", "/dau", {**DAYS, "new_within": "3d"}, None),
    "active": ("GET", "/active", {**DAYS, "match": "all"}, None),
    "retention": ("GET", "/retention", {"site": SITE, "cohort": "now-2d/d", "days": 2}, None),
    "funnel": ("GET", "/funnel?step=active&step=buy", DAYS, None),
    "frequency": ("GET", "/frequency", DAYS, None),
    "who": ("GET", "/active/users", DAYS, None),
    "days of a user": ("GET", "/users/u1/activity", DAYS, None),
    "seen": ("GET", "/seen", {"site": SITE, "user": "u1", "page": "/b"}, None),
    "seen of many": ("POST", "/seen", {"site": SITE}, {"user": "u1", "pages": ["/b", "/never"]}),
    "filter": ("GET", "/filters/f", {"site": SITE}, None),
    "check": ("POST", "/filters/f/check", {"site": SITE}, {"items": ["x", "y"]}),
}


def send(http, method, path, params=None, body=None, headers=None):
    text = query(params or {})
    whole = path + (text.replace("?", "&", 1) if "?" in path else text)
    sent = {**(JSON if body is not None else {}), **(headers or {})}
    return http.request(method, whole, None if body is None else json.dumps(body), sent)


def ask(http, name):
    method, path, params, body = QUESTIONS[name]
    if name == "retention":
        params = {**params, "cohort": time.strftime("%Y-%m-%d", time.gmtime(time.time() - 2 * 86400))}
    return send(http, method, path, params, body)


def prepare(http):
    """What is asked about."""
    events = [{"site": SITE, "page": f"/{'abc'[i % 3]}", "user": f"u{i % 7}", "ip": f"10.0.0.{i}", "actions": ["buy"] if i % 5 else [],
               "ua": "Mozilla/5.0 Firefox/120.0", "ts": NOW - (7200 if i % 2 else 30 * 3600)} for i in range(60)]
    events += [{"site": SITE, "event": "signup", "user": "u1", "ts": NOW - 7200}]
    http.accept(events)
    assert send(http, "PUT", "/filters/f", {"site": SITE}, {"capacity": 1000, "error_rate": 0.01}).status == 201
    assert send(http, "POST", "/filters/f/add", {"site": SITE}, {"items": ["x"]}).status == 200
    assert send(http, "PUT", "/pagesets/set", {"site": SITE}, {"pages": ["/a", "/c"]}).status == 201
    assert ask(http, "uv").json["uv"] == 7 and len(ask(http, "by visitors").json["pages"]) == 3


# ---- changes ----


def once(found, what):
    """0 or 1 of something, as a truth value."""
    if found not in (0, 1):
        raise RuntimeError(f"{what}: {found}")
    return found == 1


def found(answer, right=200):
    """Is it there?"""
    assert answer.status in (right, 404), answer
    return answer.status == right


def must(answer, *statuses):
    assert answer.status in statuses, answer
    return answer


@dataclass(frozen=True)
class Change:
    """act(http, n) -> Response and applied(http, n) -> bool, for a subject of the number n's own."""

    act: object
    applied: object
    before: object = None    # (http, n): what must be there first
    repeats: bool = True     # done once more it is the same
    done_again: tuple = (200, 201, 202, 204)  # what it says then
    soon_s: float = 10


def _page(n):
    return {"site": f"{SITE}-e", "page": f"/{n}", "user": f"u{n}", "actions": ["checkin"]}


def _views(http, n):
    return http.count("pv", site=f"{SITE}-e", page=f"/{n}", from_="now-1h")


def _active(http, user, action="active"):
    days = send(http, "GET", f"/users/{user}/activity", {"site": f"{SITE}-e", "action": action, "from": "now-1d/d", "to": "now+1d/d"})
    return must(days, 200).json["active_days"]


LIMITS = {
    "funnel": {"algorithm": "funnel", "limit": 1, "period_s": 36000, "burst": 9},
    "sliding": {"algorithm": "sliding", "limit": 10, "period_s": 36000},
}


def _limit(algorithm):
    def act(http, n, cost=1):
        return send(http, "POST", "/ratelimit", body={"key": f"{algorithm} {n}", "cost": cost, **LIMITS[algorithm]})

    def applied(http, n):
        return once(10 - must(act(http, n, 0), 200).json["remaining"], "taken")

    return Change(act, applied, repeats=False)


def _reset():
    limit = _limit("sliding")

    def applied(http, n):
        return not limit.applied(http, f"reset {n}")

    return Change(lambda http, n: send(http, "DELETE", "/ratelimit", {"key": f"sliding reset {n}"}), applied,
                  before=lambda http, n: must(limit.act(http, f"reset {n}"), 200))


def _first(http, n):
    """first=1 with a key; a repeat says the same."""
    return http.post({"site": f"{SITE}-e", "user": f"f{n}", "actions": ["checkin"]}, first=1, headers={"Idempotency-Key": f"first {n}"})


def _told_first(http, n):
    """Applied is that it counts; and then this key's sender is told so, and no other."""
    if not once(_active(http, f"f{n}", "checkin"), "days"):
        return False
    told = must(_first(http, n), 202).json["first"]
    other = must(http.post({"site": f"{SITE}-e", "user": f"f{n}", "actions": ["checkin"]}, first=1), 202).json["first"]
    if len(told) != 1 or other:
        raise RuntimeError(f"first: {told}, then {other}")
    return True


def _today():
    return time.strftime("%Y-%m-%d", time.gmtime())


def _site_of(kind, n):
    return f"{SITE}-{kind}-{n}"


def _deleting(http, n):
    """The site is gone or going; 404 as it has no key any more."""
    answer = must(http.get(f"/sites/{_site_of('gone', n)}"), 200, 404)
    return answer.status == 404 or answer.json["state"] == "deleting"


def _page_views(http, n):
    return http.count("pv", site=_site_of("pages", n), page="/a", from_="now-1h")


def _pages_gone(http, n):
    """It takes a moment behind the 202; the site's sums keep it."""
    return _page_views(http, n) == 0


CHANGES = {
    "write a page set": Change(
        lambda http, n: send(http, "PUT", f"/pagesets/s{n}", {"site": SITE}, {"pages": ["/a", "/b"]}),
        lambda http, n: found(http.get(f"/pagesets/s{n}", site=SITE))),
    "delete a page set": Change(
        lambda http, n: send(http, "DELETE", f"/pagesets/d{n}", {"site": SITE}),
        lambda http, n: not found(http.get(f"/pagesets/d{n}", site=SITE)),
        before=lambda http, n: must(send(http, "PUT", f"/pagesets/d{n}", {"site": SITE}, {"pages": ["/a"]}), 201), done_again=(204, 404)),
    "make a filter": Change(
        lambda http, n: send(http, "PUT", f"/filters/m{n}", {"site": SITE}, {"capacity": 100, "error_rate": 0.01}),
        lambda http, n: found(http.get(f"/filters/m{n}", site=SITE))),
    "delete a filter": Change(
        lambda http, n: send(http, "DELETE", f"/filters/d{n}", {"site": SITE}),
        lambda http, n: not found(http.get(f"/filters/d{n}", site=SITE)),
        before=lambda http, n: must(send(http, "PUT", f"/filters/d{n}", {"site": SITE}, {"capacity": 100, "error_rate": 0.01}), 201),
        done_again=(204, 404)),
    "add": Change(
        lambda http, n: send(http, "POST", f"/filters/a{n}/add", {"site": SITE}, {"items": ["x"]}),
        lambda http, n: found(http.get(f"/filters/a{n}", site=SITE)) and once(
            http.question(f"/filters/a{n}", site=SITE)["items"], "items")),
    "limit": _limit("funnel"),
    "exact limit": _limit("sliding"),
    "reset a limit": _reset(),
    "events": Change(lambda http, n: http.post(_page(n)), lambda http, n: once(_views(http, n), "views"), repeats=False),
    "events with a key": Change(
        lambda http, n: http.post(_page(n), headers={"Idempotency-Key": f"{SITE} {n}"}),
        lambda http, n: once(_views(http, n), "views") and once(_active(http, f"u{n}"), "days")),
    "named event": Change(
        lambda http, n: http.post({"site": f"{SITE}-e", "event": f"e{n}", "user": f"n{n}"}),
        lambda http, n: once(http.count("pv", site=f"{SITE}-e", event=f"e{n}", from_="now-1h"), "events"), repeats=False),
    "segment": Change(
        lambda http, n: send(http, "POST", "/v1/batch", {"site": f"{SITE}-e"}, {"batch": [
            {"type": "page", "messageId": f"m{n}", "anonymousId": f"s{n}", "properties": {"path": f"/segment/{n}"}}]}),
        lambda http, n: once(http.count("pv", site=f"{SITE}-e", page=f"/segment/{n}", from_="now-1h"), "views")),
    "first": Change(_first, _told_first),
    "take back": Change(
        lambda http, n: send(http, "DELETE", f"/users/t{n}/activity", {"site": f"{SITE}-e", "action": "checkin", "date": _today()}),
        lambda http, n: not once(_active(http, f"t{n}", "checkin"), "days"),
        before=lambda http, n: must(http.post({"site": f"{SITE}-e", "user": f"t{n}", "actions": ["checkin"]}), 202)),
    "forget a user": Change(
        lambda http, n: send(http, "DELETE", f"/users/g{n}", {"site": f"{SITE}-e"}),
        lambda http, n: not once(_active(http, f"g{n}", "checkin"), "days"),
        before=lambda http, n: must(http.post({"site": f"{SITE}-e", "user": f"g{n}", "actions": ["checkin"]}), 202)),
    "delete a site": Change(
        lambda http, n: send(http, "DELETE", f"/sites/{_site_of('gone', n)}"), _deleting,
        before=lambda http, n: must(http.post({"site": _site_of("gone", n), "page": "/"}), 202), done_again=(202, 404)),
    "delete pages": Change(
        lambda http, n: send(http, "DELETE", "/pages", {"site": _site_of("pages", n), "page": "/a"}), _pages_gone,
        before=lambda http, n: must(http.post([{"site": _site_of("pages", n), "page": p} for p in ("/a", "/b")]), 202), soon_s=90),
}
