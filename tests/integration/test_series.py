"""step= and /stats: series against the naive model, in several zones; their limits, and what they cost."""

import random
import re
import time
import zoneinfo
from datetime import datetime, timedelta, timezone

import pytest

from lib.clock import FakeClock, epoch, rfc3339
from lib.truth import is_close
from lib.world import World

METRICS = ("pv", "uv", "ips", "visits")
START = "2026-10-26 10:56:20"  # the day after Berlin's clocks went back, a Monday
SECONDS = {"1m": 60, "5m": 300, "15m": 900, "1h": 3600}


@pytest.fixture(scope="module")
def world():
    world = World(START, "--keep-minutes", "72h")
    world.site = "series"
    chance = random.Random(11)
    now = int(world.now())
    times = sorted([chance.randrange(now - 90 * 86400, now) for _ in range(2500)] +
                   [chance.randrange(now - 60 * 3600, now) for _ in range(2500)])
    world.post([{"site": world.site, "page": f"/{chance.randrange(6)}", "user": f"u{chance.randrange(60)}",
                 "ip": f"192.0.2.{chance.randrange(40)}", "ts": at} for at in times])
    yield world
    world.close()


@pytest.fixture
def http(world):
    return world.http


def local(at, zone):
    return datetime.fromtimestamp(at, timezone.utc).astimezone(zone)


def label(at, step, zone):
    """What belongs to one point shares this: the local beginning of its step, and (up to hours) its offset."""
    when = local(at, zone)
    if step in SECONDS:
        offset = int(when.utcoffset().total_seconds())
        return (at + offset) // SECONDS[step], offset
    if step == "1d":
        return when.date()
    if step == "1w":
        return when.date() - timedelta(days=when.weekday())
    return when.date().replace(day=1)


def points(from_s, to_s, step, tz):
    """[(from, to)] by walking over every minute."""
    zone = zoneinfo.ZoneInfo(tz)
    borders, before = [], None
    for at in range(from_s, to_s, 60):
        now = label(at, step, zone)
        if now != before:
            borders.append(at)
        before = now
    return list(zip(borders, borders[1:] + [to_s]))


def check_series(world, answer, expected, pages=None, metrics=METRICS):
    series = answer["series"]
    assert [(p["from"], p["to"]) for p in series] == [(rfc3339(a), rfc3339(b)) for a, b in expected]
    for point, (from_s, to_s) in zip(series, expected):
        truth = world.model.counts(world.site, from_s, to_s, pages)
        what = {"views_per_visit", "bounce_rate", "visit_duration_s"} if pages is None and metrics == METRICS else set()
        assert set(point) == {"from", "to", *metrics, *what}
        for metric in metrics:
            right = is_close(point[metric], truth[metric]) if metric in ("uv", "ips") else point[metric] == truth[metric]
            assert right, (metric, point, truth)


@pytest.mark.some(6)
@pytest.mark.parametrize("tz, step, from_, to", [
    ("UTC", "1h", "2026-10-25T03:17:00Z", "2026-10-26T10:56:00Z"),
    ("UTC", "1d", "2026-09-20T23:00:00Z", "2026-10-24T01:00:00Z"),
    ("UTC", "1w", "2026-09-01", "2026-10-20"),
    ("UTC", "1M", "2026-08-01", "2026-10-26"),
    ("UTC", "1m", "2026-10-26T09:30:00Z", "2026-10-26T10:56:00Z"),
    ("UTC", "15m", "2026-10-26T00:07:00Z", "2026-10-26T10:56:00Z"),
    ("Europe/Berlin", "1h", "2026-10-24", "2026-10-27"),  # 2 o'clock comes twice
    ("Europe/Berlin", "1d", "2026-10-01", "2026-10-27"),
    ("Europe/Berlin", "1w", "2026-10-01", "2026-10-26"),
    ("Europe/Berlin", "1M", "2026-08-28", "2026-10-26"),
    ("Asia/Kathmandu", "1h", "2026-10-24", "2026-10-26"),
    ("Asia/Kathmandu", "1d", "2026-10-24", "2026-10-26"),
    ("America/St_Johns", "15m", "2026-10-25", "2026-10-26"),
    ("America/St_Johns", "1d", "2026-10-24", "2026-10-26"),
])
def test_series(world, http, tz, step, from_, to):
    for pages in (None, ["/1"], ["/0", "/2", "/5"]):
        for metric in METRICS:
            answer = http.question("/" + metric, site=world.site, page=pages, from_=from_, to=to, tz=tz, step=step)
            from_s, to_s = epoch(answer["from"]), epoch(answer["to"])
            check_series(world, answer, points(from_s, to_s, step, tz), pages, (metric,))
            plain = http.question("/" + metric, site=world.site, page=pages, from_=from_, to=to, tz=tz)
            assert answer[metric] == plain[metric], "the figure beside the series is the window's own"
            assert answer["step"] == step and answer["tz"] == tz
            assert "step" not in plain and "series" not in plain


def test_stats(world, http):
    for pages in (None, ["/1"], ["/0", "/2", "/5"]):
        asked = dict(site=world.site, page=pages, from_="2026-10-20", to="2026-10-26", tz="Europe/Berlin")
        answer = http.question("/stats", step="1d", **asked)
        check_series(world, answer, points(epoch(answer["from"]), epoch(answer["to"]), "1d", "Europe/Berlin"), pages)
        plain = http.question("/stats", **asked)
        for metric in METRICS:
            alone = http.question("/" + metric, **asked)
            assert answer[metric] == plain[metric] == alone[metric]
            if metric in ("uv", "ips"):
                assert plain["error"][metric] == alone["error"]
        assert set(plain["error"]) == {"uv", "ips"}
        keys = [http.question("/" + metric, **asked)["cover"]["keys"] for metric in METRICS]
        assert plain["cover"]["keys"] == sum(keys)
        listed = http.question("/stats", explain="1", **asked)["cover"]
        assert len(listed["list"]) == listed["keys"] == len({k["key"] for k in listed["list"]})


def test_uv_never_exceeds_pv(start_world, site):
    """Where the estimate does, it is clamped and said so: with enough small sets one is too high."""
    world = start_world(START, "--partitions", "1")
    now = epoch("2026-10-26 10:00")
    world.post([{"site": site, "page": f"/{n}/{i}", "user": f"{n} {i} {u}", "ip": f"10.{n % 200}.{i}.{u % 250}", "ts": now + u % 60}
                for n in (300,) for i in range(12) for u in range(n)])
    clamped = 0
    for i in range(12):
        page = f"/300/{i}"
        answer = world.http.question("/stats", site=site, page=page, from_="now-2h", step="1h")
        assert answer["uv"] <= answer["pv"] == 300
        assert all(p["uv"] <= p["pv"] and p["ips"] <= p["pv"] for p in answer["series"])
        alone = world.http.count("uv", site=site, page=page, from_="now-2h")
        assert answer["uv"] == min(alone, 300)
        if alone > 300:
            assert answer["clamped"] is True
            clamped += 1
    assert clamped > 0
    world.post([{"site": f"{site}.{n}", "page": "/", "user": f"{n} {u}", "ts": now} for n in range(30) for u in range(300)])
    sites = world.http.question("/sites", from_="now-2h")
    assert all(row["uv"] <= row["pv"] for row in sites["sites"])
    world.post([{"site": site, "page": "/source", "user": f"{n} {u}", "utm_source": f"s{n}", "ts": now} for n in range(30) for u in range(300)])
    answer = world.http.question("/breakdown", site=site, by="source", metric="uv", from_="now-2h", step="1h", limit=30)
    assert answer["clamped"] is True
    assert all(p["uv"] <= row["uv"] <= row["pv"] == 300 for row in answer["rows"] if row["value"] != "(none)" for p in row["series"])
    cut = [n for n in range(30) if world.http.count("uv", site=f"{site}.{n}", from_="now-2h") > 300]
    assert cut and sites["clamped"] is True


def test_auto_takes_the_finest_step_that_works(world, http):
    def step(**window):
        answer = http.question("/pv", site=world.site, step="auto", **window)
        assert 0 < len(answer["series"]) <= 500
        assert sum(p["pv"] for p in answer["series"]) == answer["pv"]
        return answer["step"]

    assert step(from_="now-8h") == "1m"
    assert step(from_="now-9h") == "5m"
    assert step(from_="now-2d") == "15m"
    assert step(from_="now-7d/d") == "1h"
    assert step(from_="2026-10-10", to="2026-10-11") == "1h", "minutes are not kept so long"
    assert step(from_="2026-08-01", to="now/d") == "1d", "nor are hours"
    assert step(from_="2026-10-10", to="2026-10-11", tz="Asia/Kathmandu", round="outer") == "1w"


def refused(answer, parameter, *words):
    assert answer.status == 422, answer
    assert answer.errors[0]["parameter"] == parameter
    for word in words:
        assert word in answer.json["detail"], answer
    return answer


def test_what_a_series_cannot_be(world, http):
    for metric in (*METRICS, "stats"):
        ask = lambda m=metric, **q: http.get("/" + m, site=world.site, **q)  # noqa: E731
        refused(ask(step="1m", from_="2026-10-10", to="2026-10-11"), "step", "step=1h works")
        refused(ask(step="1h", from_="2026-08-01", to="2026-09-01"), "step", "step=1d works")
        refused(ask(step="1m", from_="2026-10-10", to="2026-10-24"), "step", "11000", "step=1h")
        refused(ask(step="1m", from_="2000-01-01", to="2026-01-01"), "step", "11000", "step=1M")
        refused(ask(step="auto", from_="0", to="2026-01-01"), "step", "500")
        refused(ask(from_="2026-08-01", to="2026-09-01", tz="Europe/Berlin"), "from", "from=2026-07-31T00:00:00Z")
        refused(ask(step="1h", from_="2026-08-01", to="2026-09-01", tz="Europe/Berlin"), "from", "from=2026-08-2", "to=2026-08-31T22:00:00Z")
        assert ask(step="1M", from_="0", to="2026-01-01").status == 200
    begin, end = "2030-01-01", epoch("2030-01-01") + 11000 * 86400  # in the future all is known: it is empty
    assert len(http.question("/pv", site=world.site, step="1d", from_=begin, to=rfc3339(end))["series"]) == 11000
    refused(http.get("/pv", site=world.site, step="1d", from_=begin, to=rfc3339(end + 60)), "step", "step=1w")


def test_a_step_that_is_not_kept_in_another_zone(world, http):
    """Months of UTC are kept; their days too; but Berlin's borders lie inside of them."""
    answer = http.get("/pv", site=world.site, step="1M", from_="2026-07-01T00:00:00Z", to="2026-09-01T00:00:00Z",
                      tz="Europe/Berlin")
    refused(answer, "step", "no step")


def test_the_series_follows_the_clock(start_world, site):
    """`to=now` beside a clock that goes on: the last point ends where the window does."""
    world = start_world(START)
    world.post([{"site": site, "page": "/", "user": "a", "ts": epoch("2026-10-26 10:50")}])
    world.clock.set("2026-10-26 12:07:30")
    answer = world.http.question("/stats", site=site, step="1h", from_="2026-10-26T10:00:00Z")
    answer = world.http.question("/stats", site=site, step="1h", from_="2026-10-26T10:00:00Z")
    assert answer["to"] == answer["series"][-1]["to"] == "2026-10-26T12:08:00Z"
    assert [p["pv"] for p in answer["series"]] == [1, 0, 0]


def test_thirty_days_by_hour_and_a_year_by_day(start_world, site):
    """Quick, whatever else the machine does (the goal on an idle one is 20 ms)."""
    world = start_world("2026-10-26 10:56:20", "--partitions", "4")
    now = epoch("2026-10-26 10:00")
    for hours in range(0, 720, 240):
        world.post([{"site": site, "page": "/", "user": f"{h} {u}", "ts": now - h * 3600}
                    for h in range(hours, hours + 240) for u in range(20)])
    for step, from_, n in (("1h", "now/h-719h", 720), ("1d", "now/d-364d", 365)):
        took = []
        for _ in range(5):
            begin = time.monotonic()
            answer = world.http.question("/uv", site=site, page="/", from_=from_, step=step)
            took.append(time.monotonic() - begin)
            assert len(answer["series"]) == n
        assert min(took) < 0.2, took
        print(f"{n} points: {min(took) * 1000:.1f} ms")


def follow(http, metric, asked):
    """Ask, and then what the 422 says, if it names something; the last answer, and whether that was so."""
    answer = http.get("/" + metric, **asked)
    if answer.status == 200:
        return answer, False
    assert answer.status == 422, answer
    detail = answer.json["detail"]
    window = dict(re.findall(r"(from|to)=(\d{4}-[^ &;]*Z)", detail))
    step = re.search(r"step=(\w+)", detail)
    again = {**asked, **({"from_": window["from"], "to": window["to"]} if window else {}), **({"step": step[1]} if step else {})}
    if "without step" in detail:
        again.pop("step")
    if again == asked:
        assert "nothing of this window is kept" in detail, detail
        whole = {name: value for name, value in asked.items() if name not in ("step", "tz")}
        assert http.get("/" + metric, **whole, round="outer").status == 422, detail
        return answer, False
    answer = http.get("/" + metric, **again)
    assert answer.status == 200, (asked, detail, again, answer)
    if "round=outer takes it" in detail:
        outer = http.get("/" + metric, **asked, round="outer")
        assert outer.status == 200 and (outer.json["from"], outer.json["to"]) == (window["from"], window["to"]), (asked, detail)
    return answer, True


def test_what_a_422_names_can_be_asked(world, http, chance):
    """With the same step and zone, or with the step that it names: any window, any zone."""
    now, followed, named_windows = int(world.now()), 0, 0
    for _ in range(600):
        length = chance.choice((600, 3 * 3600, 26 * 3600, 9 * 86400, 70 * 86400, 400 * 86400))
        from_s = now - int(chance.choice((3, 60, 100, 1200)) * 86400 * chance.random()) - length
        asked = {"site": world.site, "from_": from_s // 60 * 60, "to": from_s // 60 * 60 + length,
                 "tz": chance.choice(("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns", "Australia/Lord_Howe", None)),
                 "step": chance.choice(("1m", "5m", "15m", "1h", "1d", "1w", "1M", "auto", None))}
        asked = {name: value for name, value in asked.items() if value is not None}
        metric = chance.choice((*METRICS, "stats", "breakdown"))
        answer, was_named = follow(http, metric, {**asked, "by": "source"} if metric == "breakdown" else asked)
        followed += was_named
        if was_named and "step" in asked and answer.json.get("step") == asked["step"]:
            named_windows += 1
    assert followed > 50 and named_windows > 10, (followed, named_windows)


def test_a_window_without_its_step_is_named(world, http):
    """Months of UTC: of Berlin's days no border is kept, and still nothing is lost of the window as a whole."""
    june = {"site": world.site, "from_": "2026-06-01", "to": "2026-07-01", "tz": "Europe/Berlin"}
    for step in ("1d", "1M"):
        answer = http.get("/pv", **june, step=step)
        refused(answer, "from", "from=2026-05-31T00:00:00Z&to=2026-07-01T00:00:00Z without step")
        assert follow(http, "pv", {**june, "step": step})[0].status == 200


def test_the_longest_part_is_named_for_auto(world, http):
    """Its months begin where hours of UTC are kept, which is longer than minutes: the first before them begins the part."""
    asked = {"site": world.site, "tz": "America/New_York", "step": "auto", "from_": int(world.now()) // 86400 * 86400 - 90 * 86400}
    for more in (0, 200 * 86400):
        answer, was_named = follow(http, "uv", {**asked, "from_": asked["from_"] - more})
        assert was_named and answer.json["from"] == "2026-08-02T00:00:00Z", answer.json["from"]


def test_a_step_is_named_where_auto_has_none(world, http):
    answer, was_named = follow(http, "uv", {"site": world.site, "from_": 0, "step": "auto"})
    assert was_named and answer.json["step"] == "1M" and len(answer.json["series"]) > 500


def test_the_window_that_a_422_names_has_the_step(world, http):
    """Days of Kathmandu begin at 18:15 in UTC: where minutes are gone the window reaches up to where they are kept."""
    asked = {"site": world.site, "step": "1d", "tz": "Asia/Kathmandu"}
    refused(http.get("/pv", from_="2026-10-01T10:20:00Z", to="2026-10-26T10:00:00Z", **asked), "from", "2026-10-2")
    answer, was_named = follow(http, "pv", {**asked, "from_": "2026-10-01T10:20:00Z", "to": "2026-10-26T10:00:00Z"})
    assert was_named and len(answer.json["series"]) >= 3 and answer.json["step"] == "1d"


@pytest.mark.parametrize("cache", ["0", "16"])
def test_a_redis_whose_memory_is_full(start_redis, start_tallyd, site, cache):
    """It queues nothing in a MULTI then: sums and sketches of many pages and points come by a script, the same ones."""
    redis = start_redis()
    http = start_tallyd("--cache-mb", cache, redis=redis).client()
    http.accept([{"site": site, "page": f"/{i % 45}", "user": i % 300} for i in range(900)])
    pages = [f"/{i}" for i in range(1, 45)]  # sketches of one partition in two parts, and one page twice
    asked = [(path, {"page": page, "step": step})
             for path in ("/stats", "/uv", "/pv", "/visits") for page in (None, pages, ["/1", "/2", "/1"])
             for step in (None, "1m")]

    def answers():
        return [http.question(path, site=site, from_=begin, to=end, **params) for path, params in asked]

    now = http.question("/pv", site=site, from_="now-2h")
    begin, end = now["from"], now["to"]
    before = answers()
    assert before[0]["pv"] == 900 and before[0]["uv"] > 250 and len(before[1]["series"]) > 100
    replans = http.metric("tallyd_query_replans_total")
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert answers() == before
    assert http.metric("tallyd_query_replans_total") > replans, "each was asked twice"


@pytest.mark.parametrize("now, begins", [("17:20", "2026-11-26T19:00:00Z"), ("18:07", "2026-11-27T18:30:00Z"), ("18:40", "2026-11-27T19:00:00Z")])
def test_a_part_that_begins_in_an_hour_that_is_given_up(start_redis, start_tallyd, directory, now, begins):
    """Days of Kolkata begin at 18:30 of UTC.  Of two days ago minutes go one by one: some before that border, then some behind."""
    directory.mkdir(exist_ok=True)
    clock = FakeClock(directory, f"2026-11-29 {now}:10")
    http = start_tallyd("--keep-hours", "forever", redis=start_redis(directory, clock=clock)).client()
    http.accept([{"page": "/", "ts": clock.now() - 60}])
    asked = {"tz": "Asia/Kolkata", "step": "1d", "to": "now"}
    refused = http.get("/pv", from_="2026-11-01", round="outer", **asked)
    told = re.search(r"for from=(\S+)&to=(\S+) they are$", refused.json["detail"])
    assert refused.status == 422 and told and told[1] == begins, refused
    assert http.get("/pv", from_=told[1], **asked).json["pv"] == 1
