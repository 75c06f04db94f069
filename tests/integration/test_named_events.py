"""Named events, anonymous visitors and check-ins: what counts where, against the naive model."""

import collections
import csv
import io
import json
import zoneinfo

import pytest

from lib.activity import DAY_S, ActivityModel, date_of
from lib.clock import epoch, rfc3339
from lib.truth import Estimates, is_close
from lib.waiting import wait_until
from lib.world import FOREVER

FEW = ("--partitions", "4")
NAMES = ["signup", "Signup", "outbound link: click", "404", "/a", "ü" * 64]
PAGES = ["/a", "/b", "signup"]
ACTIONS = ["checkin", "buy"]


def stats(http, site, **params):
    answer = http.question("/stats", site=site, from_=params.pop("from_", "now-1h"), **params)
    return [answer[k] for k in ("pv", "uv", "ips", "visits")]


def rejected(http, site, event):
    """Where the event is at fault."""
    answer = http.post([{"site": site, **event}])
    assert answer.status == 422, answer
    assert answer.json["errors"][0]["index"] == 0
    return answer.json["errors"][0]["pointer"]


# Named events


def test_a_named_event_is_no_page_view(http, site):
    http.accept([{"site": site, "page": "/a", "user": "u", "ip": "192.0.2.1"}])
    http.accept([{"site": site, "event": "signup", "user": "u", "ip": "192.0.2.2"},
                 {"site": site, "event": "signup", "page": "/b", "visitor": "v"},
                 {"site": site, "event": "/a", "user": "w"}])
    assert stats(http, site) == stats(http, site, page="/a") == [1, 1, 1, 1]
    assert stats(http, site, page="/b") == stats(http, site, page="signup") == [0, 0, 0, 0]
    assert stats(http, site, event="signup") == [2, 2, 1, None]
    assert stats(http, site, event=["signup", "/a"]) == [3, 3, 1, None]
    assert [http.count(m, site=site, event="signup", from_="now-1h") for m in ("pv", "uv", "ips")] == [2, 2, 1]
    listed = http.question("/pages", site=site, from_="now-1h")
    assert [r["page"] for r in listed["pages"]] == ["/a"] and listed["total_pages"] == 1
    assert http.question("/dau", site=site, date=rfc3339(epoch_now(http))[:10])["users"] == 2
    assert not http.question("/seen", site=site, user="u", page="/b")["seen"]
    hot = [r for r in http.question("/hotkeys", limit=1000)["pages"] if r["site"] == site]
    assert [r["page"] for r in hot if r["writes_per_s"] > 0] == ["/a"]
    assert {r["page"] for r in hot} == {"/a", "/b", "signup"}  # pages that were asked for


def epoch_now(http):
    return epoch(http.question("/pv", from_="now-1m")["to"].replace("T", " ").rstrip("Z")) - 60


def test_a_site_with_named_events_alone_is_listed(http, site):
    http.accept([{"site": site, "event": "x"}])
    http.accept([{"site": site + ".b", "user": "u", "actions": ["a"]}])
    assert {site, site + ".b"} <= set(http.question("/sites")["sites"])


def test_what_was_asked_is_told(http, site):
    answer = http.question("/uv", site=site, event=["a", "b"], from_="now-1h")
    assert answer["pages"] is None and answer["events"] == ["a", "b"]
    assert "events" not in http.question("/uv", site=site, page="a")
    series = http.question("/stats", site=site, event="a", from_="now-1h", step="auto")["series"]
    assert series and all(p["visits"] is None for p in series)


@pytest.mark.parametrize("path, params, parameter", [
    ("/visits", {"event": "x"}, "event"),
    ("/uv", {"event": "x", "page": "/"}, "event"),
    ("/uv", {"event": "x", "pageset": "s"}, "event"),
    ("/uv", {"event": ""}, "event"),
    ("/uv", {"event": "x" * 129}, "event"),
    ("/pages", {"event": "x"}, "event"),
    ("/overlap", {"event": "x"}, "event"),
    ("/overlap", {"event": ["x", "y"], "page": "/"}, "event"),
    ("/breakdown", {}, "by"),
    ("/breakdown", {"by": "colour"}, "by"),
    ("/breakdown", {"by": "event", "metric": "ips"}, "metric"),
    ("/breakdown", {"by": "event", "limit": 1001}, "limit"),
    ("/breakdown", {"by": "event", "step": "2h"}, "step"),
    ("/breakdown", {"by": "event", "page": "/"}, "page"),
    ("/pv", {"page": "\x01signup"}, "page"),
    ("/pages", {"prefix": "\x01"}, "prefix"),
])
def test_questions_that_are_refused(http, site, path, params, parameter):
    answer = http.get(path, site=site, **params)
    assert answer.status == 400, answer
    assert answer.errors[0]["parameter"] == parameter, answer


@pytest.mark.parametrize("event, pointer", [
    ({}, "/page"), ({"actions": []}, "/page"), ({"user": "u"}, "/page"), ({"visitor": "v"}, "/page"),
    ({"actions": ["a"]}, "/user"), ({"actions": ["a"], "visitor": "v"}, "/user"),
    ({"event": ""}, "/event"), ({"event": "x" * 129}, "/event"), ({"event": 1}, "/event"), ({"event": None}, "/event"),
    ({"event": "a\nb"}, "/event"), ({"event": "x", "page": ""}, "/page"),
    ({"page": "/", "visitor": ""}, "/visitor"), ({"page": "/", "visitor": 7}, "/visitor"),
    ({"page": "/", "visitor": "v" * 257}, "/visitor"), ({"page": "/", "visitor": "\x7f"}, "/visitor"),
])
def test_events_that_are_rejected(http, site, event, pointer):
    assert rejected(http, site, event) == pointer
    assert http.count("pv", site=site, from_="now-1h") == 0


def test_names_at_their_bounds(http, site):
    for name in ("x" * 128, "ü" * 64, "é \"quoted\" \\", "\U0001f600"):
        http.accept([{"site": site, "event": name, "visitor": "v" * 256}])
        assert stats(http, site, event=name) == [1, 1, 0, None]


def test_conversion(http, site):
    http.accept([{"site": site, "page": "/pricing", "user": f"u{i}"} for i in range(200)])
    http.accept([{"site": site, "event": "signup", "user": f"u{i}"} for i in range(150, 250)])
    answer = http.question("/overlap", site=site, event="signup", page="/pricing", from_="now-1h")
    assert answer["a"]["event"] == "signup" and answer["b"]["page"] == "/pricing"
    for figure, n in (("a", 100), ("b", 200), ("union", 250), ("intersection", 50)):
        error = answer[figure]["error"]
        assert is_close(answer[figure]["uv"], n) or error["low"] <= n <= error["high"], (figure, answer)
    turned = http.question("/overlap", site=site, page="/pricing", event="signup", from_="now-1h")
    assert turned["a"]["page"] == "/pricing" and turned["b"]["event"] == "signup"
    two = http.question("/overlap", site=site, event="signup", from_="now-1h", to="now", from2="now-2h", to2="now-1h")
    assert two["b"]["event"] == "signup" and is_close(two["new"]["uv"], 100)


def csv_of(http, path):
    answer = http.request("GET", path, headers={"Accept": "text/csv"})
    assert answer.status == 200, answer
    return list(csv.reader(io.StringIO(answer.body.decode())))


def test_a_breakdown_with_series(http, site):
    """Each row's series is that of the event alone, and its points add up to the row."""
    now = epoch_now(http)
    http.accept([{"site": site, "event": name, "visitor": f"v{i % 7}", "ts": now - 1800 * i}
                 for name, n in (("a", 90), ("b, \"c\"", 40), ("d", 3)) for i in range(n)])
    window = {"site": site, "from_": rfc3339(now - 2 * DAY_S), "to": rfc3339(now + 60)}
    alone = http.question("/breakdown", by="event", **window)
    for metric in ("pv", "uv"):
        for step in ("1h", "1d", "auto"):
            answer = http.question("/breakdown", by="event", metric=metric, step=step, **window)
            series = {row["value"]: row.pop("series") for row in answer["rows"]}
            used = answer.pop("step")
            assert used == step or step == "auto"
            assert answer == {**alone, "metric": metric, "rows": sorted(alone["rows"], key=lambda r: (-r[metric], r["value"]))}
            for row in alone["rows"]:
                one = http.question(f"/{metric}", event=row["value"], step=used, **window)
                assert series[row["value"]] == one["series"]
                assert metric == "uv" or sum(point["pv"] for point in one["series"]) == row["pv"]
    names, *rows = csv_of(http, f"/breakdown?site={site}&by=event&metric=uv&step=1d&limit=2&from=now-1d")
    answer = http.question("/breakdown", site=site, by="event", metric="uv", step="1d", limit=2, from_="now-1d")
    assert names == ["site", "value", "from", "to", "uv"] and rows == [
        [site, row["value"], point["from"], point["to"], str(point["uv"])] for row in answer["rows"] for point in row["series"]]


def test_a_breakdown_says_which_step_its_series_have(http, site):
    """Minutes are kept for two days: two hours of four days ago would fit in minutes, and have hours."""
    hour = epoch_now(http) // 3600 * 3600 - 4 * DAY_S
    http.accept([{"site": site, "event": name, "visitor": "v", "ts": hour + 10} for name in "ab"])
    answer = http.question("/breakdown", site=site, by="event", step="auto", from_=rfc3339(hour), to=rfc3339(hour + 7200))
    assert answer["step"] == "1h" and [[p["pv"] for p in row["series"]] for row in answer["rows"]] == [[1, 0]] * 2


def test_visitors_of_a_series_are_cut_to_its_row(http, site):
    """A visitor an event, of many events: some estimates are above the truth, none is shown so."""
    for name in range(20):
        http.accept([{"site": site, "event": f"e{name}", "visitor": f"{name}-{i}"} for i in range(2000)])
    answer = http.question("/breakdown", site=site, by="event", metric="uv", step="1d", from_="now-1h", to="now+1h", limit=20)
    assert answer["clamped"] is True and any(row["uv"] == row["pv"] for row in answer["rows"])
    assert all(point["uv"] <= row["uv"] <= row["pv"] == 2000 for row in answer["rows"] for point in row["series"])


def test_series_that_a_breakdown_cannot_have(http, site):
    http.accept([{"site": site, "event": f"e{i}"} for i in range(40)])
    ask = {"site": site, "by": "event", "from_": "now-1d", "to": "now"}
    refused = http.get("/breakdown", **ask, step="1m", limit=40)
    assert refused.status == 422 and refused.errors[0]["parameter"] == "step"
    assert "40 series of 1441 points" in refused.json["detail"] or "40 series of 1440 points" in refused.json["detail"]
    assert len(http.question("/breakdown", **ask, step="5m", limit=20)["rows"]) == 20
    refused = http.get("/breakdown", **{**ask, "from_": "now-60d"}, step="1m")
    assert refused.status == 422 and refused.errors[0]["parameter"] in ("from", "step")
    empty = http.question("/breakdown", site=site, by="event", from_="now-3d/d", to="now-2d/d", step="auto")
    assert empty["rows"] == [] and empty["step"] in ("5m", "15m", "1h")
    assert csv_of(http, f"/breakdown?site={site}&by=event&from=now-3d/d&to=now-2d/d&step=1h") == [["site", "value", "from", "to", "pv"]]


def test_plausible_custom_events_count(http, site):
    for name in ("Signup", "Outbound Link: Click", "404", "Signup", "Pageview"):
        answer = http.request("POST", "/api/event", json.dumps({"n": name, "u": "https://a.example/x", "d": site}))
        assert answer.status == 202 and answer.headers["X-Plausible-Dropped"] is None, answer
    goals = [{"name": "Purchase", "revenue": {"currency": "EUR", "amount": "9.99"}}, {"name": "File Download", "props": {"url": "https://a.example/r.pdf"}},
             {"name": "Outbound Link: Click", "props": '{"url":"https://b.example"}', "interactive": False}, {"name": "404", "props": {"path": "/x"}}]
    for goal in goals:  # long names, as text, for two sites
        body = json.dumps({**goal, "url": "https://a.example/x", "domain": f"{site},{site}.b", "referrer": None})
        assert http.request("POST", "/api/event", body, {"Content-Type": "text/plain"}).status == 202
    assert stats(http, site) == [0, 0, 0, 0]
    rows = http.question("/breakdown", site=site, by="event", from_="now-1h")["rows"]
    assert {r["value"]: r["pv"] for r in rows} == {
        "Signup": 2, "Outbound Link: Click": 2, "404": 2, "Pageview": 1, "Purchase": 1, "File Download": 1}
    assert http.question("/breakdown", site=site + ".b", by="event", from_="now-1h")["total"] == 4
    assert all(r["uv"] == 1 for r in rows)  # whoever sent them has one address and agent
    answer = http.request("POST", "/api/event", json.dumps({"n": "engagement", "u": "https://a.example/x", "d": site}))
    assert answer.status == 202 and answer.headers["X-Plausible-Dropped"] == "1"
    answer = http.request("POST", "/api/event", json.dumps({"n": "x" * 129, "u": "https://a.example/x", "d": site}))
    assert answer.status == 400 and list(answer.json["errors"]) == ["name"], answer


# Anonymous visitors


def test_who_a_visitor_is(http, site):
    """`visitor`, else `user`, else address and agent; the user beside it is active, and has seen the page."""
    http.accept([{"site": site, "page": "/", "visitor": "secret-cookie", "user": "ann", "ip": "192.0.2.1"},
                 {"site": site, "page": "/", "visitor": "secret-cookie", "user": "bob", "ip": "192.0.2.2"},
                 {"site": site, "page": "/", "user": "secret-cookie"}])
    assert stats(http, site) == [3, 2, 2, 2]
    assert http.question("/dau", site=site, date=rfc3339(epoch_now(http))[:10])["users"] == 3
    assert http.question("/seen", site=site, user="bob", page="/")["seen"]


def test_a_visitor_is_never_stored(start_redis, start_tallyd, site):
    """Not in the log, not in counts, not in Redis's files: only as a hash, with a secret that each Redis has of its own."""
    files = []
    for _ in range(2):
        redis = start_redis(appendonly=True)
        tallyd = start_tallyd(redis=redis)
        tallyd.client().accept([{"site": site, **what, "visitor": f"only-hashed-{i}"}
                                for i in range(9) for what in ({"page": "/a-known-page"}, {"event": "e"})])
        assert is_close(tallyd.client().count("uv", site=site, from_="now-1h"), 9)
        files.append(b"".join(path.read_bytes() for path in (redis.directory / "appendonlydir").glob("*.aof")))
        assert b"a-known-page" in files[-1] and b"only-hashed" not in files[-1]
        assert "only-hashed" not in tallyd.log_text()
    with_id = [{word for word in file.split(b"\r\n") if len(word) == 8 and not word.isascii()} for file in files]
    assert with_id[0] and with_id[1] and not with_id[0] & with_id[1], "another Redis, another hash"


# Check-ins


def test_a_check_in_is_no_page_view(http, site):
    today = rfc3339(epoch_now(http))[:10]
    http.accept([{"site": site, "user": "u", "actions": ["checkin"]}])
    assert stats(http, site) == [0, 0, 0, 0]
    for action in ("active", "checkin"):
        assert http.question("/dau", site=site, date=today, action=action)["users"] == 1
    http.accept([{"site": site, "page": "/", "user": "u"}])
    assert stats(http, site) == [1, 1, 0, 1]


def take_back(http, user, **params):
    from urllib.parse import quote, urlencode
    return http.request("DELETE", f"/users/{quote(user, safe='')}/activity?" + urlencode(params))


@pytest.mark.parametrize("action", ["checkin", "active"])
def test_a_check_in_is_taken_back(http, site, action):
    """Also where this process remembers that the bit is set; and it can be set again."""
    today = rfc3339(epoch_now(http))[:10]

    def users():
        return http.question("/dau", site=site, date=today, action=action)["users"]

    for _ in range(3):
        http.accept([{"site": site, "user": u, "actions": ["checkin"]} for u in ("ann", "bob")])
        assert users() == 2
        assert take_back(http, "ann", site=site, action=action, date=today).status == 204
        assert users() == 1
    assert take_back(http, "ann", site=site, action=action, date=today).status == 204
    assert take_back(http, "nobody", site=site, action=action, date=today).status == 204
    for missing in ("action", "date"):
        params = {"site": site, "action": action, "date": today}
        del params[missing]
        answer = take_back(http, "ann", **params)
        assert answer.status == 400 and answer.errors[0]["parameter"] == missing
    assert take_back(http, "ann", site=site, action=action, date="1990-01-01").status == 422


# All of it, at random


def draw(chance, site, now):
    """Anything that may be posted, seldom late."""
    at = now - chance.choice([0, 0, 0, 60, 1500, 2400, 4000, 30000, 86400])
    event = {"site": site, "ts": at}
    kind = chance.choice(["view", "view", "named", "both", "actions"])
    who = chance.randrange(12)
    if kind == "actions" or chance.random() < 0.5:
        event["user"] = f"u{who}"
    if chance.random() < 0.4:
        event["visitor"] = f"v{who}"
    if chance.random() < 0.5:
        event["ip"] = f"192.0.2.{who}"
    if kind in ("view", "both"):
        event["page"] = chance.choice(PAGES)
    if kind in ("named", "both"):
        event["event"] = chance.choice(NAMES)
    if kind == "actions" or ("user" in event and chance.random() < 0.2):
        event["actions"] = chance.sample(ACTIONS, chance.randrange(1, 3))
    return event


def draw_window(chance, first, last):
    from_s, to_s = sorted(chance.sample(range(first // 60, last // 60 + 2), 2))
    return from_s * 60, to_s * 60


def check_overlap(world, http, site, chance, windows, estimates):
    """A conversion in one window; new and returning visitors of the site, a page or an event in two."""
    sides = chance.choice([[{"events": [chance.choice(NAMES)]}, {"pages": [chance.choice(PAGES)]}], [{"events": [chance.choice(NAMES)]}] * 2,
                           [{}, {}], [{"pages": [chance.choice(PAGES)]}] * 2])
    same = sides[0] == sides[1]
    names = [name for side in (sides[:1] if same else sides) for name in side.get("events", [])]
    pages = [page for side in (sides[:1] if same else sides) for page in side.get("pages", [])]
    times = dict(zip(("from_", "to", "from2", "to2"), map(rfc3339, windows[0] + (windows[1] if same else ()))))
    answer = http.question("/overlap", site=site, event=names, page=pages, **times)
    a, b = (world.model.visitors(site, *(windows[i] if same else windows[0]), **side) for i, side in enumerate(sides))
    truth = {"a": a, "b": b, "union": a | b, "intersection": a & b, **({"new": a - b} if same else {})}
    assert answer.keys() & {"new", "from2", "to2", "cover2"} == ({"new", "from2", "to2", "cover2"} if same else set())
    for figure, visitors in truth.items():
        estimates.add(figure, answer[figure]["uv"], len(visitors), (sides, times))
        error = answer[figure]["error"]
        assert error["low"] <= answer[figure]["uv"] <= error["high"]


def check_series(world, http, site, chance, from_s, to_s, tz):
    """Of one event, and of all of them in a breakdown, in the zone's hours and days."""
    times = {"from_": rfc3339(from_s), "to": rfc3339(to_s), "step": chance.choice(["1h", "1d"]), **({"tz": tz} if tz else {})}
    name = chance.choice(NAMES)
    series = http.question("/pv", site=site, event=name, **times)["series"]
    assert series[0]["from"] == rfc3339(from_s) and series[-1]["to"] == rfc3339(to_s)
    rows = http.question("/breakdown", site=site, by="event", **times)["rows"]
    happened = {row["value"]: row["series"] for row in rows}
    assert happened.get(name, series) == series
    for value, points in happened.items():
        assert [(p["from"], p["to"]) for p in points] == [(p["from"], p["to"]) for p in series]
        for point in points:
            start, end = (epoch(point[key].replace("T", " ").rstrip("Z")) for key in ("from", "to"))
            assert point["pv"] == len(world.model.window(site, start, end, events=[value])), (value, point)


def check_window(world, http, site, chance, first, last):
    from_s, to_s = draw_window(chance, first, last)
    times = {"from_": rfc3339(from_s), "to": rfc3339(to_s)}
    for what in ({}, {"pages": chance.sample(PAGES, 2)}, {"events": chance.sample(NAMES, 2)}):
        expected = world.model.counts(site, from_s, to_s, **what)
        params = {"page": what.get("pages"), "event": what.get("events")}
        answer = http.question("/stats", site=site, **times, **params)
        for figure in ("pv", "uv", "ips", "visits"):
            n = None if figure == "visits" and "events" in what else expected[figure]
            right = is_close(answer[figure], n) if figure in ("uv", "ips") else answer[figure] == n
            assert right, (figure, answer, n)
    views = collections.Counter(e.page for e in world.model.window(site, from_s, to_s))
    times_of = collections.Counter(e.event for e in world.model.window(site, from_s, to_s, events=NAMES))
    listed = http.question("/pages", site=site, **times)
    assert {r["page"]: r["pv"] for r in listed["pages"]} == views and listed["total_pages"] == len(views)
    for metric in ("pv", "uv"):
        answer = http.question("/breakdown", site=site, by="event", metric=metric, **times)
        assert {r["value"]: r["pv"] for r in answer["rows"]} == times_of
        assert answer["total"] == sum(times_of.values()) and answer["other"] == 0
        for row in answer["rows"]:
            assert is_close(row["uv"], world.model.counts(site, from_s, to_s, events=[row["value"]])["uv"])


def check_days(http, activity, site, first, last):
    for day in range(activity.day_of(site, first), activity.day_of(site, last) + 1):
        for action in ["active", *ACTIONS]:
            got = http.question("/dau", site=site, date=date_of(day), action=action)["users"]
            assert got == len(activity.on(site, action, day)), (date_of(day), action)


@pytest.mark.some(1)
@pytest.mark.parametrize("zone, cluster", [(None, False), ("Asia/Kolkata", False), ("America/New_York", False),
                                           pytest.param("Europe/Berlin", True, marks=pytest.mark.cluster)])
def test_random_histories(start_world, chance, site, zone, cluster, directory):
    """Days of a zone with rollups between, late events, two processes, check-ins that are taken back."""
    directory.mkdir(exist_ok=True)
    (directory / "tallyd.conf").write_text(f"site.{site}.tz = {zone}\n" if zone else "")
    world = start_world("2026-02-27 20:00:10", *FEW, *FOREVER, "--config", directory / "tallyd.conf", cluster=cluster)
    clients = [world.http, world.add_tallyd().client()]
    activity = ActivityModel({site: zoneinfo.ZoneInfo(zone)} if zone else {})
    estimates = Estimates()
    first = epoch("2026-02-26 00:00")
    for step in range(14):
        now = int(world.now())
        for _ in range(chance.randrange(1, 4)):
            events = [draw(chance, site, now) for _ in range(chance.choice([1, 5, 60]))]
            http = chance.choice(clients)
            world.post(events, http)
            http.count("visits", site=site)  # counted in all partitions: two processes arrive in the order that the model has
            for event in events:
                activity.add(event)
        if chance.random() < 0.6:
            user, action, day = f"u{chance.randrange(12)}", chance.choice(["active", *ACTIONS]), activity.day_of(site, now)
            assert take_back(chance.choice(clients), user, site=site, action=action, date=date_of(day)).status == 204
            activity.users[site, action, day].discard(user)
        for http in clients:
            check_window(world, http, site, chance, first, now)
            check_series(world, http, site, chance, *draw_window(chance, first, now), chance.choice([None, "Asia/Tokyo"]))
            check_overlap(world, http, site, chance, [draw_window(chance, first, now) for _ in range(2)], estimates)
        check_days(chance.choice(clients), activity, site, first, now)
        world.move(now + chance.choice([20, 600, 1790, 1850, 7000, 7300, 14400]))
    now = int(world.now())
    world.move((now // DAY_S + 1) * DAY_S + 200)
    wait_until(lambda: world.cover(site, "2026-02-27", "2026-02-28")["day"] > 0, "the day is rolled up", deadline_s=60)
    for http in clients:
        for _ in range(4):
            check_window(world, http, site, chance, first, now)
            check_series(world, http, site, chance, *draw_window(chance, first, now), None)
            check_overlap(world, http, site, chance, [draw_window(chance, first, now) for _ in range(2)], estimates)
    check_days(world.http, activity, site, first, now)
    estimates.check()
