"""/uv /pv /ips /visits: windows, their covers, and the figures against the naive model.

One tallyd on a Redis whose clock stands at 2026-03-10 10:56:20 at first and moves on in a few tests.
"""

import random
import re

import pytest

from lib.clock import epoch, rfc3339
from lib.truth import SIGMA, Estimates, is_close
from lib.waiting import wait_until
from lib.world import World

METRICS = ("pv", "uv", "ips", "visits")
START = "2026-03-10 10:56:20"
LENGTH = {"minute": 60, "hour": 3600, "day": 86400}
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@pytest.fixture(scope="module")
def world():
    world = World(START)
    yield world
    world.close()


@pytest.fixture
def http(world):
    return world.http


def window_of(answer):
    return answer["from"], answer["to"]


def refused(http, parameter, **params):
    answer = http.get("/uv", **params)
    assert answer.status == 400, answer
    assert answer.errors[0]["parameter"] == parameter, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    return answer


# Shapes


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("pages", [None, ["/a"], ["/b", "/a"]])
def test_shape(world, http, site, metric, pages):
    world.post([{"site": site, "page": p, "user": u, "ip": "192.0.2.1", "ts": epoch("2026-03-10 10:30")}
                for p in ("/a", "/b", "/c") for u in ("x", "y")])
    answer = http.question("/" + metric, site=site, page=pages, from_="2026-03-10T10:00:00Z", to="2026-03-10T10:45:00Z")
    n_pages = len(pages or "abc")
    figure = {"pv": 2 * n_pages, "uv": 2, "ips": 1, "visits": 2 if not pages or "/a" in pages else 0}[metric]
    expected = {"site": site, "pages": pages, "from": "2026-03-10T10:00:00Z", "to": "2026-03-10T10:45:00Z",
                "tz": "UTC", metric: figure}
    assert {k: answer[k] for k in expected} == expected
    assert isinstance(answer[metric], int)
    cover = answer["cover"]
    assert set(cover) == {"keys", "minute", "hour", "day", "month"}
    assert cover["keys"] == cover["minute"] + cover["hour"] + cover["day"] + cover["month"]
    if metric in ("uv", "ips"):
        assert set(answer) == {*expected, "error", "cover"}
        error = answer["error"]
        assert set(error) == {"relative", "low", "high"}
        assert abs(error["relative"] - SIGMA) < 0.0002
        assert error["low"] <= figure <= error["high"]
        assert cover["keys"] == 45 * len(pages or "s")
    else:
        assert set(answer) == {*expected, "cover"}


def test_bounds_are_95_percent(world, http, site):
    n = 3000
    world.post([{"site": site, "page": "/", "user": i, "ts": epoch("2026-03-10 10:30")} for i in range(n)])
    answer = http.question("/uv", site=site, from_="2026-03-10T10:00:00Z")
    uv, error = answer["uv"], answer["error"]
    for bound in (uv - error["low"], error["high"] - uv):
        assert abs(bound - 1.96 * SIGMA * uv) < 0.002 * uv + 2


def test_nothing_counted_is_zero(http, site):
    for metric in METRICS:
        assert http.count(metric, site=site) == 0
        assert http.count(metric, site=site, page=["/a", "/b"]) == 0
        assert http.count(metric, site=site, from_="1990-01-01", to="2040-01-01") == 0
    assert http.question("/uv", site=site)["error"]["high"] == 0


def test_default_site(http):
    assert http.question("/uv")["site"] == "default"


# from and to


@pytest.mark.parametrize("from_, to, expected_from, expected_to", [
    ("2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    ("2026-03-10T08:00:59Z", "2026-03-10T09:00:01Z", "2026-03-10T08:00:00Z", "2026-03-10T09:01:00Z"),
    ("2026-03-10t08:00:00z", "2026-03-10T09:00:00.5Z", "2026-03-10T08:00:00Z", "2026-03-10T09:01:00Z"),
    ("2026-03-10T10:00:00+02:00", "2026-03-10T14:30:00+05:30", "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    ("2026-03-10T06:00:00-02:00", "2026-03-10T09:00:00-00:00", "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    ("2026-03-09", "2026-03-10", "2026-03-09T00:00:00Z", "2026-03-10T00:00:00Z"),
    ("2024-02-29", "2024-03-01", "2024-02-29T00:00:00Z", "2024-03-01T00:00:00Z"),
    (epoch("2026-03-10 08:00"), epoch("2026-03-10 09:00"), "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    (epoch("2026-03-10 08:00") + 59, epoch("2026-03-10 09:00") + 1, "2026-03-10T08:00:00Z", "2026-03-10T09:01:00Z"),
    (epoch("2026-03-10 08:00") * 1000, epoch("2026-03-10 09:00") * 1000, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    ("2026-03-10T08:00:60Z", "2026-03-10T09:00:00Z", "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"),
    ("0", "2026-03-01", "1970-01-01T00:00:00Z", "2026-03-01T00:00:00Z"),
])
def test_absolute_times(http, site, from_, to, expected_from, expected_to):
    for metric in METRICS:
        answer = http.question("/" + metric, site=site, from_=from_, to=to)
        assert answer["from"] == expected_from
        assert answer["to"] == expected_to


def test_a_blank_for_the_sign_of_an_offset(http, site):
    answer = http.request("GET", f"/uv?site={site}&from=2026-03-10T10:00:00+02:00&to=2026-03-10T11:00:00%2B02:00")
    assert window_of(answer.json) == ("2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z"), answer


@pytest.fixture
def now(world):
    """The minute that begins now: the clock stands a moment behind it, so that it lasts."""
    world.move((int(world.now()) // 60 + 1) * 60 + 2)
    return int(world.now()) // 60 * 60


def test_relative_times(http, site, now):
    def answer(from_=None, to=None):
        return window_of(http.question("/uv", site=site, from_=from_, to=to))

    end = rfc3339(now + 60)
    hour, day = now // 3600 * 3600, now // 86400 * 86400
    assert answer() == (rfc3339(now + 60 - 86400), end)
    assert answer("now-15m", "now") == (rfc3339(now - 900), end)
    assert answer("now-90s", "now") == (rfc3339(now - 120), end)
    assert answer("now-24h", "now-1h") == (rfc3339(now - 86400), rfc3339(now + 60 - 3600))
    assert answer("now/d", "now") == (rfc3339(day), end)
    assert answer("now-1d/d", "now/d") == (rfc3339(day - 86400), rfc3339(day))
    assert answer("now-2h/h", "now/h") == (rfc3339(hour - 7200), rfc3339(hour))
    assert answer("now/M") == ("2026-03-01T00:00:00Z", end)
    assert answer("now-1M/M", "now/M") == ("2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")
    assert answer("now-1y/y", "now/y") == ("2025-01-01T00:00:00Z", "2026-01-01T00:00:00Z")
    assert answer("now/w") == ("2026-03-09T00:00:00Z", end)  # a Monday
    assert answer("now-1w/w", "now/w") == ("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")
    assert answer(to="2026-03-10T09:00:30Z") == ("2026-03-09T09:01:00Z", "2026-03-10T09:01:00Z")


def test_now_is_the_end_of_the_minute_also_at_second_0(world, http, site):
    def at_second_0():
        minute = (int(world.now()) // 60 + 1) * 60
        world.clock.set(minute + 0.01)
        http.question("/pv", site=site)  # tallyd hears of the time
        post = http.post({"site": site, "page": "/", "user": "u"})
        answer = http.question("/pv", site=site, from_="now-1m", to="now")
        stamp = http.question("/pv", site=site, from_="now-1m", to=rfc3339(minute).replace("Z", ".001Z"))  # JavaScript's now
        if world.redis.time() >= minute + 1:
            return False  # too slow to tell
        assert post.status == 202 and answer["pv"] >= 1
        assert (stamp["to"], stamp["pv"]) == (rfc3339(minute + 60), answer["pv"])
        return answer["to"] == rfc3339(minute + 60)

    wait_until(at_second_0, "to=now is the end of the current minute")


@pytest.mark.parametrize("parameter, value", [
    (p, v) for p in ("from", "to") for v in (
        "yesterday", "now-", "now-5", "now-5x", "now/q", "now-1m/", "nowish", "-1", "1.5.5", "1e9", "2026-3-1", "2026-13-01",
        "2026-02-30", "2026-03-10T08:00:00", "2026-03-10T25:00:00Z", "2026-03-10 08:00", "9" * 30, "now-99999999999999y")])
def test_bad_time_is_named(http, site, parameter, value):
    refused(http, parameter, site=site, **{parameter + "_": value})


@pytest.mark.parametrize("from_, to", [
    ("2026-03-10", "2026-03-10"), ("2026-03-10", "2026-03-09"), ("now", "now-1h"), ("2040-01-01", "now"),
    ("2026-03-10T08:00:10Z", "2026-03-10T08:00:00Z"), (None, "1970-01-01"),
])
def test_to_not_behind_from_is_400(http, site, from_, to):
    answer = http.get("/uv", site=site, from_=from_, to=to)
    assert answer.status == 400, answer


def test_window_inside_one_minute_is_that_minute(http, site):
    answer = http.question("/uv", site=site, from_="2026-03-10T08:00:10Z", to="2026-03-10T08:00:20Z")
    assert window_of(answer) == ("2026-03-10T08:00:00Z", "2026-03-10T08:01:00Z")


@pytest.mark.parametrize("params, parameter", [
    ({"tz": "Mars/Olympus"}, "tz"), ({"tz": "../../etc/passwd"}, "tz"), ({"tz": "europe/berlin"}, "tz"), ({"tz": "localtime"}, "tz"),
    ({"step": "2h"}, "step"), ({"step": "1H"}, "step"), ({"step": "60"}, "step"), ({"step": ""}, "step"), ({"site": "Shop"}, "site"),
    ({"site": "a:b"}, "site"), ({"site": "s" * 65}, "site"), ({"page": "p" * 2049}, "page"),
    ({"page": ["/a", "/b\n"]}, "page"), ({"explain": "maybe"}, "explain"), ({"round": "inner"}, "round"),
])
def test_bad_value_is_named(http, params, parameter):
    for metric in METRICS:
        answer = http.get("/" + metric, **params)
        assert answer.status == 400, answer
        assert [e["parameter"] for e in answer.errors] == [parameter], answer


def test_tz_utc_is_taken(http, site):
    assert http.question("/uv", site=site, tz="UTC")["tz"] == "UTC"


@pytest.mark.parametrize("tz, from_, to, expected", [
    ("Europe/Berlin", "2026-03-09", "now/d", ("2026-03-08T23:00:00Z", "2026-03-09T23:00:00Z")),
    ("Europe/Berlin", "now-1M/M", "now/M", ("2026-01-31T23:00:00Z", "2026-02-28T23:00:00Z")),
    ("Asia/Kathmandu", "2026-03-09", "2026-03-10", ("2026-03-08T18:15:00Z", "2026-03-09T18:15:00Z")),
    ("America/St_Johns", "now-1d/d", "now/d", ("2026-03-09T02:30:00Z", "2026-03-10T02:30:00Z")),
    ("America/New_York", "2026-03-08", "2026-03-09", ("2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z")),  # 23 hours
    ("America/Havana", "2026-03-08", "2026-03-09", ("2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z")),  # no midnight
    ("Australia/Lord_Howe", "now/h", "now", ("2026-03-10T10:00:00Z", None)),
])
def test_any_zone(world, http, site, tz, from_, to, expected):
    """Borders in the zone; the figures from whatever buckets the window needs."""
    begin = epoch(expected[0])
    world.post([{"site": site, "page": "/", "user": at, "ip": "192.0.2.1", "ts": at}
                for at in range(begin - 7200, min(begin + 93600, epoch("2026-03-10 10:56")), 900)])
    for metric in METRICS:
        answer = http.question("/" + metric, site=site, from_=from_, to=to, tz=tz)
        assert (answer["from"], answer["to"]) == (expected[0], expected[1] or answer["to"])
        assert answer["tz"] == tz
        n = world.model.counts(site, begin, epoch(answer["to"]))[metric]
        assert answer[metric] == n or (metric == "uv" and is_close(answer[metric], n))


def test_a_zone_whose_borders_are_not_kept_any_more(http, site):
    """Its days begin inside hours of the site's zone, and minutes are kept for two days."""
    answer = http.get("/pv", site=site, from_="2026-03-01", to="2026-03-02", tz="Asia/Kathmandu")
    assert answer.status == 422, answer
    assert "from=2026-02-28T18:00:00Z&to=2026-03-01T19:00:00Z" in answer.json["detail"]
    outer = http.question("/pv", site=site, from_="2026-03-01", to="2026-03-02", tz="Asia/Kathmandu", round="outer")
    assert (outer["from"], outer["to"]) == ("2026-02-28T18:00:00Z", "2026-03-01T19:00:00Z")
    whole_hours = http.question("/pv", site=site, from_="2026-03-01", to="2026-03-02", tz="Europe/Berlin")
    assert whole_hours["cover"]["hour"] == whole_hours["cover"]["keys"] == 24


# Unions of pages


def test_pages_repeated_are_a_union(world, http, site):
    """Over 40 pages, which lie in all partitions; the visitors overlap."""
    chance = random.Random(7)
    pages = [f"/page/{i}" for i in range(40)]
    t = epoch("2026-03-10 09:00")
    world.post([{"site": site, "page": chance.choice(pages), "user": chance.randrange(30),
                 "ip": f"192.0.2.{chance.randrange(30)}", "ts": t + i * 5} for i in range(1200)])
    for n in (1, 2, 5, 20, 40):
        chosen = chance.sample(pages, n)
        answer = world.check(site, "2026-03-10 09:00", "2026-03-10 10:56", chosen)
        assert answer["pages"] == chosen
        twice = http.question("/pv", site=site, page=chosen + chosen[:1], from_="2026-03-10T09:00:00Z",
                              to="2026-03-10T10:56:00Z")
        assert twice["pv"] == world.model.counts(site, t, t + 6960, chosen)["pv"]
    union = http.question("/uv", site=site, page=pages[:3], from_="2026-03-10T10:00:00Z", to="2026-03-10T10:30:00Z")
    assert union["cover"] == {"keys": 90, "minute": 90, "hour": 0, "day": 0, "month": 0}


# explain=1


def assert_tiles(items, from_, to):
    """In time order, without gap or overlap, each item a whole bucket of its level."""
    at = epoch(from_)
    for item in items:
        assert epoch(item["from"]) == at, f"a gap or an overlap at {rfc3339(at)}"
        end = epoch(item["to"])
        assert end > at
        if item["level"] == "month":
            assert item["from"].endswith("-01T00:00:00Z") and item["to"].endswith("-01T00:00:00Z")
            assert 28 * 86400 <= end - at <= 31 * 86400
        else:
            assert end - at == LENGTH[item["level"]] and at % LENGTH[item["level"]] == 0
        at = end
    assert at == epoch(to)


def test_explain_lists_the_keys_that_are_counted(world, http, site):
    """The list tiles the window; Redis's own PFCOUNT of its keys is the answer."""
    t = epoch("2025-12-30 22:00")
    # an event in each hour, then one in each minute of the last 48 hours' borders: no key is empty
    world.post([{"site": site, "page": "/", "user": i, "ip": f"198.51.{i // 250}.{i % 250}", "ts": t + i * 1800}
                for i in range((epoch("2026-03-10 09:00") - t) // 1800)])
    world.post([{"site": site, "page": "/", "user": i % 700, "ts": epoch("2026-03-09 10:00") + i * 60} for i in range(1480)])
    for from_, to in (("2025-12-31", "2026-03-10T10:30:00Z"), ("2026-03-09T10:57:00Z", "2026-03-10T10:33:00Z"),
                      ("2026-03-10T08:20:00Z", "2026-03-10T08:40:00Z"), ("2026-01-01", "2026-03-01"),
                      ("2026-01-30T05:00:00Z", "2026-03-02T07:00:00Z")):
        for page in (None, "/"):
            answer = http.question("/uv", site=site, page=page, from_=from_, to=to, explain="1")
            items = answer["cover"].pop("list")
            assert_tiles(items, answer["from"], answer["to"])
            levels = [i["level"] for i in items]
            assert answer["cover"] == {"keys": len(items), **{k: levels.count(k) for k in ("minute", "hour", "day", "month")}}
            keys = [i["key"] for i in items]
            assert len(set(keys)) == len(keys)
            missing = [k for k in keys if not world.redis.command("EXISTS", k)]
            assert not missing, missing[:3]
            assert answer["uv"] == world.redis.command("PFCOUNT", *keys)
    assert "list" not in http.question("/uv", site=site)["cover"]


@pytest.mark.parametrize("metric", METRICS)
def test_explain_of_every_figure(http, site, metric):
    answer = http.question("/" + metric, site=site, from_="2026-03-10T09:30:00Z", to="2026-03-10T10:30:00Z", explain="1")
    assert {"level", "from", "to", "key"} <= set(answer["cover"]["list"][0])
    assert answer["cover"]["keys"] == len(answer["cover"]["list"])


def test_explain_of_several_pages(http, site):
    items = http.question("/uv", site=site, page=["/a", "/b", "/c"], from_="2026-03-10T10:00:00Z",
                          to="2026-03-10T10:05:00Z", explain="1")["cover"]["list"]
    assert len(items) == len({i["key"] for i in items}) == 15
    assert [i["from"] for i in items] == sorted(i["from"] for i in items)


# Covers


@pytest.mark.parametrize("from_, to, cover", [
    ("2026-03-09T10:56:00Z", "2026-03-10T10:56:00Z", {"minute": 60, "hour": 23}),   # the articles' example: 83
    ("2026-03-10T07:00:00Z", "2026-03-10T10:00:00Z", {"hour": 3}),
    ("2026-03-10T06:59:00Z", "2026-03-10T10:01:00Z", {"minute": 2, "hour": 3}),
    ("2026-03-09", "2026-03-10", {"day": 1}),
    ("2026-03-08T23:00:00Z", "2026-03-10T01:00:00Z", {"hour": 2, "day": 1}),
    ("2026-02-01", "2026-03-01", {"month": 1}),
    ("2025-01-01", "2026-03-01", {"month": 14}),
    ("2025-12-31", "2026-03-10", {"day": 10, "month": 2}),
    ("2026-03-10T10:00:00Z", "2026-03-10T10:56:00Z", {"minute": 56}),
    ("2024-02-28T23:00:00Z", "2024-03-01", None),
])
def test_cover_is_the_smallest(world, http, site, from_, to, cover):
    """On data that is older than the process: all that is over is closed from the first write on."""
    world.post([{"site": site, "page": "/", "ts": epoch("2026-03-10 10:30")}])
    if cover is None:  # hours of 2024 are not kept any more
        assert http.get("/uv", site=site, from_=from_, to=to).status == 422
        return
    got = world.cover(site, from_, to)
    assert got == {"keys": sum(cover.values()), "minute": 0, "hour": 0, "day": 0, "month": 0, **cover}


# Windows that are not kept


@pytest.mark.parametrize("from_, to, nearest_from, nearest_to", [
    # minutes are kept for 48 hours, hours for 62 days, days for 1100
    ("2026-03-05T10:17:00Z", "2026-03-05T13:00:00Z", "2026-03-05T10:00:00Z", "2026-03-05T13:00:00Z"),
    ("2026-03-05T10:17:00Z", "2026-03-05T10:18:00Z", "2026-03-05T10:00:00Z", "2026-03-05T11:00:00Z"),
    ("2025-11-05T10:00:00Z", "2025-11-06T00:00:00Z", "2025-11-05T00:00:00Z", "2025-11-06T00:00:00Z"),
    ("2025-11-05T10:00:00Z", "2026-03-05T10:20:00Z", "2025-11-05T00:00:00Z", "2026-03-05T11:00:00Z"),
    ("2019-06-05T00:00:00Z", "2019-06-07T00:00:00Z", "2019-06-01T00:00:00Z", "2019-07-01T00:00:00Z"),
])
def test_window_that_is_not_kept(world, http, site, from_, to, nearest_from, nearest_to):
    inside = [epoch(from_), epoch(to) - 60]
    world.post([{"site": site, "page": "/", "user": i, "ts": t} for i, t in enumerate(inside)])
    world.post([{"site": site, "page": "/", "user": "edge", "ts": epoch(nearest_from)}])
    for metric in METRICS:
        answer = http.get("/" + metric, site=site, from_=from_, to=to)
        assert answer.status == 422, answer
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert {nearest_from, nearest_to} <= set(RFC3339.findall(answer.json["detail"])), answer

        outer = http.question("/" + metric, site=site, from_=from_, to=to, round="outer")
        assert window_of(outer) == (nearest_from, nearest_to)
        n = world.model.counts(site, epoch(nearest_from), epoch(nearest_to))[metric]
        assert outer[metric] == n


def test_round_outer_leaves_a_window_that_is_kept(http, site):
    window = ("2026-03-09T10:57:00Z", "2026-03-10T10:33:00Z")
    assert window_of(http.question("/uv", site=site, from_=window[0], to=window[1], round="outer")) == window


# Against the model


def random_events(chance, site, n, from_s, to_s):
    """Page views in time order of a busy few and many rare visitors on a few dozen pages."""
    times = sorted(chance.randrange(from_s, to_s) for _ in range(n))
    for at in times:
        visitor = int(chance.paretovariate(0.7)) % 3000
        event = {"site": site, "page": f"/p{int(chance.paretovariate(0.6)) % 40}", "ts": at}
        if visitor % 3:
            event["user"] = visitor
        if visitor % 5:
            event["ip"] = f"10.{visitor % 7}.{visitor // 250}.{visitor % 250}"
            event["ua"] = f"agent {visitor % 11}"
        yield event


def test_random_windows_equal_the_model(world, http, site, chance):
    """PV and visits are exact, UV and IPs within 4 sigma, tiny sets exact; no part has more UV than the whole."""
    begin, end = epoch("2026-03-08 14:30"), epoch("2026-03-10 10:56")
    world.post(list(random_events(chance, site, 12_000, begin, end)))
    estimates = Estimates()
    for _ in range(150):
        size = int(60 * chance.choice((1, 5, 60, 600, 3000)) * (0.5 + chance.random()))
        from_s = chance.randrange(begin, end) // 60 * 60
        to_s = min(from_s + max(size // 60 * 60, 60), end // 60 * 60 + 3600)
        pages = chance.choice((None, None, ["/p1"], [f"/p{i}" for i in chance.sample(range(45), 4)]))
        expected = world.model.counts(site, from_s, to_s, pages)
        where = f"{rfc3339(from_s)}..{rfc3339(to_s)} {pages}"
        got = {m: http.count(m, site=site, page=pages, from_=from_s, to=to_s) for m in METRICS}
        for metric in ("pv", "visits"):
            assert got[metric] == expected[metric], f"{metric} {where}"
        for metric in ("uv", "ips"):
            estimates.add(f"{metric} {where}", got[metric], expected[metric])
        whole = http.count("uv", site=site, page=pages, from_=from_s - 7200, to=to_s + 120)
        assert got["uv"] <= whole, where
    estimates.check()


def test_tiny_sets_are_exact(world, http, chance):
    """Three visitors are three: over 40 sites, at most one may suffer a collision (2 in 10,000 each)."""
    right = 0
    for i in range(40):
        site = f"tiny-{i}-{chance.randrange(10**9)}"
        world.post([{"site": site, "page": f"/{i}", "user": chance.random().hex(), "ts": epoch("2026-03-10 10:00") + i}
                    for i in range(3)])
        right += http.count("uv", site=site, from_="2026-03-10T09:00:00Z") == 3
    assert right >= 39


def test_visits(world, http, site):
    """A gap of exactly 30 minutes continues the visit; it counts at its first event's minute and page."""
    t = epoch("2026-03-10 06:00")
    world.post([
        {"site": site, "page": "/in", "user": "a", "ts": t},
        {"site": site, "page": "/on", "user": "a", "ts": t + 1800},
        {"site": site, "page": "/on", "user": "a", "ts": t + 3600},
        {"site": site, "page": "/again", "user": "a", "ts": t + 5401},
        {"site": site, "page": "/late", "user": "a", "ts": t + 60},     # out of order: no visit
        {"site": site, "page": "/in", "user": "b", "ts": t + 59},
        {"site": site, "page": "/other", "ip": "192.0.2.1", "ua": "x", "ts": t + 59},
        {"site": site, "page": "/other", "ts": t + 59},                 # nobody's
    ])
    hour = {"from_": rfc3339(t), "to": rfc3339(t + 3600)}
    assert http.count("visits", site=site, **hour) == 3
    assert http.count("visits", site=site, from_=t, to=t + 7200) == 4
    assert [http.count("visits", site=site, page=p, from_=t, to=t + 7200)
            for p in ("/in", "/on", "/again", "/late", "/other")] == [2, 0, 1, 0, 1]
    assert http.count("visits", site=site, from_=t + 1800, to=t + 3660) == 0
    assert http.count("visits", site=site, from_=t + 5400, to=t + 5460) == 1


def test_visits_are_per_site(world, http, site):
    t = epoch("2026-03-10 06:00")
    world.post([{"site": s, "page": "/", "user": "u", "ts": t + i * 60} for i in range(4) for s in (site, site + "-2")])
    assert http.count("visits", site=site, from_=t, to=t + 3600) == 1
    assert http.count("visits", site=site + "-2", from_=t, to=t + 3600) == 1


# Rotation of hashed visitors


def test_rotation_makes_new_visitors_each_day(start_world, site):
    world = start_world(START, "--visitor-rotation", "day")
    days = ["2026-03-08 12:00", "2026-03-09 12:00", "2026-03-10 09:00"]
    world.post([{"site": site, "page": "/", "ip": "192.0.2.1", "ua": "x", "ts": epoch(d)} for d in days])
    world.post([{"site": site, "page": "/", "user": "u", "ts": epoch(d)} for d in days])
    http = world.http
    answer = http.question("/uv", site=site, from_="2026-03-08", to="2026-03-10T10:00:00Z")
    assert answer["uv"] == 4 and answer["spans_rotation"] is True
    assert http.count("ips", site=site, from_="2026-03-08", to="2026-03-10T10:00:00Z") == 3
    one_day = http.question("/uv", site=site, from_="2026-03-09", to="2026-03-10")
    assert one_day["uv"] == 2 and not one_day.get("spans_rotation")
