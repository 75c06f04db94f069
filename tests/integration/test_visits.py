"""What visits are like: views a visit, bounce rate, duration, entry pages; against counts made here."""

import random
import time

import pytest

from lib import access_log
from lib.clock import epoch, rfc3339
from lib.log import HELD
from lib.process import Tallyd, run, short_directory
from lib.truth import Model
from lib.waiting import wait_until
from lib.world import FOREVER, World

FIGURES = ("views_per_visit", "bounce_rate", "visit_duration_s")
NONE = dict.fromkeys(FIGURES)
FIXED = {"from_": "2026-11-20T10:00:00Z", "to": "2026-11-20T12:00:00Z"}


@pytest.fixture(scope="module")
def world():
    world = World("2026-11-20 12:00", "--partitions", "4")
    yield world
    world.close()


@pytest.fixture
def world_http(world):
    return world.http


def at(text):
    return f"2026-11-20T{text}Z"


def figures(answer):
    return {name: answer[name] for name in FIGURES}


def post(http, site, *views):
    """Views "hh:mm:ss visitor page"."""
    http.accept([{"site": site, "ts": at(time), "visitor": visitor, "page": page}
                 for time, visitor, page in (view.split() for view in views)])


def test_plausibles_definitions(world_http, site):
    post(world_http, site, "10:00:00 a /in", "10:00:00 b /in", "10:01:00 b /two", "10:05:30 b /three", "10:10:00 c /other")
    answer = world_http.question("/stats", site=site, **FIXED)
    assert figures(answer) == pytest.approx({"views_per_visit": 5 / 3, "bounce_rate": 2 / 3, "visit_duration_s": 330 / 3})
    assert answer["visits"] == 3


def test_none_where_there_is_no_visit(world_http, site):
    assert figures(world_http.question("/stats", site=site, **FIXED)) == NONE
    post(world_http, site, "11:00:00 a /")
    series = world_http.question("/stats", site=site, step="1h", **FIXED)["series"]
    assert [figures(p) for p in series] == [NONE, {"views_per_visit": 1, "bounce_rate": 1, "visit_duration_s": 0}]


def test_of_the_whole_site_only(world_http, site):
    post(world_http, site, "10:00:00 a /")
    assert world_http.request("PUT", f"/pagesets/few?site={site}", '{"pages":["/"]}').status == 201
    for question in ({"page": "/"}, {"pageset": "few"}, {"event": "x"}, {"page": ["/", "/b"], "step": "1h"}):
        answer = world_http.question("/stats", site=site, **question, **FIXED)
        assert not any(name in row for row in [answer] + answer.get("series", []) for name in FIGURES)


def test_columns(world_http, site):
    post(world_http, site, "10:00:00 a /", "10:00:10 a /b")
    query = f"site={site}&from={FIXED['from_']}&to={FIXED['to']}"
    text = world_http.request("GET", f"/stats?{query}", headers={"Accept": "text/csv"}).body.decode().splitlines()
    assert text[0] == "site,from,to,pv,uv,ips,visits,views_per_visit,bounce_rate,visit_duration_s"
    assert text[1].split(",")[3:] == ["2", "1", "0", "1", "2", "0", "10"]
    text = world_http.request("GET", f"/pages?by=visits&{query}", headers={"Accept": "text/csv"}).body.decode()
    assert text == f"site,page,visits\r\n{site},/,1\r\n"


def test_the_table_has_them_where_the_first_step_has_no_visit(world, site):
    post(world.http, site, "11:00:00 a /")
    done = run("query", "stats", "--url", world.tallyd.url, "--site", site, "--from", FIXED["from_"], "--to", FIXED["to"], "--step", "1h")
    assert done.returncode == 0 and set(FIGURES) <= set(done.stdout.splitlines()[0].split()), done


@pytest.mark.parametrize("views, expected", [
    (["10:00:00 a /", "10:30:00 a /"], (2, 0, 1800)),  # just in time
    (["10:00:00 a /", "10:30:01 a /"], (1, 1, 0)),  # two visits
    (["10:10:00 a /", "10:00:00 a /"], (2, 0, 0)),  # out of order: no bounce, and no time
    (["10:40:00 a /", "10:00:00 a /"], (2, 1, 0)),  # too old to be a part of the visit
    (["10:00:00 a /", "10:00:00 a /"], (2, 0, 0)),
])
def test_the_rule(world_http, site, views, expected):
    post(world_http, site, *views)
    assert tuple(figures(world_http.question("/stats", site=site, **FIXED)).values()) == expected


def test_a_named_event_engages_a_visit(world_http, site):
    world_http.accept([{"site": site, "ts": at("10:00:00"), "visitor": "a", "page": "/"},
                       {"site": site, "ts": at("10:00:20"), "visitor": "a", "event": "signup"},
                       {"site": site, "ts": at("10:00:30"), "visitor": "b", "event": "signup"}])
    assert figures(world_http.question("/stats", site=site, **FIXED)) == {
        "views_per_visit": 1, "bounce_rate": 0, "visit_duration_s": 20}


def test_what_a_visit_gains_counts_where_it_gains_it(world_http, site):
    """A visit that reaches over the end of a window: more of them than began in the window are as many."""
    post(world_http, site, "10:50:00 a /", "10:55:00 b /", "11:05:00 a /", "11:06:00 b /", "11:07:00 c /")
    series = world_http.question("/stats", site=site, step="1h", **FIXED)["series"]
    assert figures(series[0]) == {"views_per_visit": 1, "bounce_rate": 1, "visit_duration_s": 0}
    assert figures(series[1]) == {"views_per_visit": 3, "bounce_rate": 0, "visit_duration_s": 900 + 660}


# Entry pages


def test_entry_pages(world_http, site):
    post(world_http, site, "10:00:00 a /in", "10:01:00 a /b", "10:00:00 b /in", "10:00:00 c /b", "10:45:00 a /c")
    answer = world_http.question("/pages", site=site, by="visits", **FIXED)
    assert answer["by"] == "visits" and answer["total_pages"] == 3 and "error" not in answer and "capped" not in answer
    assert answer["pages"] == [{"page": "/in", "visits": 2}, {"page": "/b", "visits": 1}, {"page": "/c", "visits": 1}]
    assert world_http.question("/pages", site=site, by="visits", limit=1, **FIXED)["pages"] == [{"page": "/in", "visits": 2}]
    assert world_http.question("/pages", site=site, by="visits", prefix="/c", **FIXED)["pages"] == [{"page": "/c", "visits": 1}]
    assert world_http.question("/pages", site=site, by="visits", page="/b", **FIXED)["pages"] == [{"page": "/b", "visits": 1}]


def test_an_order_that_there_is_not(http, site):
    answer = http.get("/pages", site=site, by="bounce")
    assert answer.status == 400 and answer.json["errors"][0]["parameter"] == "by"
    assert "must be pv, uv or visits" in answer.json["errors"][0]["detail"]


def test_entry_pages_beyond_a_cap():
    world = World("2026-11-20 12:00", *FOREVER, "--partitions", "2", "--max-pages", "3")
    try:
        events = [{"site": "s", "page": f"/{i % 20}", "visitor": f"v{i}", "ts": epoch(at("11:00:00"))} for i in range(200)]
        world.post(events)
        answer = world.http.question("/pages", site="s", by="visits", limit=1000, **FIXED)
        assert answer["capped"] and sum(r["visits"] for r in answer["pages"]) == 200
        other = answer["pages"][-1]
        assert other == {"page": "(other)", "visits": other["visits"], "capped": True} and other["visits"] > 0
        for row in answer["pages"][:-1]:
            assert row["visits"] <= 10 <= row["at_most"] == row["visits"] + other["visits"]
    finally:
        world.close()


# Against the model, over days, zones, rollups and processes


def random_event(rng, time):
    event = {"site": "s", "ts": time, "visitor": f"v{rng.randrange(25)}"}
    if rng.random() < 0.1:
        event["event"] = "e"
    else:
        event["page"] = rng.choice(["/a", "/b", "/c", "/d?x=1"])
    return event


def expect(world, from_s, to_s):
    for tallyd in world.tallyds:
        http = tallyd.client()
        window = {"site": "s", "from_": rfc3339(from_s), "to": rfc3339(to_s)}
        answer = http.question("/stats", **window)
        assert figures(answer) == pytest.approx(world.model.visit_figures("s", from_s, to_s)), window
        rows = http.question("/pages", by="visits", limit=1000, **window)["pages"]
        assert {r["page"]: r["visits"] for r in rows} == world.model.entries("s", from_s, to_s), window
        assert [r["visits"] for r in rows] == sorted((r["visits"] for r in rows), reverse=True)


def expect_series(world, from_s, to_s, step):
    for tallyd in world.tallyds:
        answer = tallyd.client().question("/stats", site="s", from_=rfc3339(from_s), to=rfc3339(to_s), step=step)
        for point in answer["series"]:
            expected = world.model.visit_figures("s", epoch(point["from"]), epoch(point["to"]))
            assert figures(point) == pytest.approx(expected), point


@pytest.mark.some(1)
@pytest.mark.parametrize("seed, zone", [(1, "UTC"), (2, "Asia/Kolkata")])
def test_random_histories(seed, zone):
    """Events late by hours among those in order, with rollups between; asked twice, for what is remembered."""
    rng = random.Random(seed)
    directory = short_directory()
    directory.mkdir(exist_ok=True)
    (directory / "c").write_text(f"site.s.tz = {zone}\n")
    world = World("2026-03-10 09:00", *FOREVER, "--partitions", "4", "--config", directory / "c")
    try:
        world.add_tallyd()
        for day in ("10", "11", "12"):
            noon = epoch(f"2026-03-{day} 12:00")
            world.move(noon)
            for tallyd in world.tallyds:
                times = sorted(noon - 600 - rng.randrange(6 * 3600) for _ in range(250))
                for _ in range(25):
                    times[rng.randrange(250)] -= rng.randrange(4 * 3600)
                world.post([random_event(rng, time) for time in times], http=tallyd.client())
            for _ in range(2):
                for from_, to in ((f"2026-03-{day} 05:30", f"2026-03-{day} 12:00"), (f"2026-03-{day} 08:17", f"2026-03-{day} 08:53"),
                                  ("2026-03-10 00:00", f"2026-03-{day} 12:00")):
                    expect(world, epoch(from_), epoch(to))
                expect_series(world, epoch(f"2026-03-{day} 05:30"), noon, "15m" if day == "12" else "1h")
    finally:
        world.close()


# Real logs


@pytest.mark.parametrize("name", ["elastic_apache_logs"])
def test_a_real_log(name):
    log, _ = access_log.real(name)
    model = Model()
    for line in access_log.lines(log):
        event = access_log.parse(line)
        if isinstance(event, dict):
            model.add({"site": "log", **event})
    tallyd = Tallyd(*FOREVER, "--max-pages", "0").start()
    try:
        done = run("import", "--all", "--site", "log", "--url", tallyd.url, log, timeout_s=300)
        assert done.returncode == 0, done
        http, whole = tallyd.client(), {"site": "log", "from_": "2000-01-01", "to": "2030-01-01"}
        answer = http.question("/stats", **whole)
        expected = model.visit_figures("log", epoch("2000-01-01 00:00"), epoch("2030-01-01 00:00"))
        assert figures(answer) == pytest.approx(expected) and 0 < answer["bounce_rate"] < 1
        entries = model.entries("log", epoch("2000-01-01 00:00"), epoch("2030-01-01 00:00"))
        got = http.question("/pages", by="visits", limit=1000, **whole)
        assert got["total_pages"] == len(entries)
        order = sorted(entries, key=lambda page: (-entries[page], page.encode()))[:1000]
        assert [(r["page"], r["visits"]) for r in got["pages"]] == [(page, entries[page]) for page in order]
    finally:
        tallyd.stop()


def test_what_is_counted_late_begins_no_visit(start_world, site):
    """Each of two processes takes an event of the visitor, at the border of two slots; the first one is counted last."""
    world = start_world("2026-03-10 10:59:51", "--partitions", "4", *FOREVER)
    started = time.monotonic()
    slow = Tallyd("--partitions", "4", *FOREVER, redis=world.redis, env=HELD, name="slow")
    world.tallyds.append(slow.start())
    time.sleep(started + 6.5 - time.monotonic())  # for 5 s a process counts the logs of all
    for tallyd in slow, world.tallyd:
        time.sleep(max(0, epoch("2026-03-10T10:59:58Z") + (2 if tallyd is world.tallyd else 0) - world.now()))
        tallyd.client().accept({"site": site, "page": "/p", "user": "ann"})
    time.sleep(0.8)
    assert world.now() >= epoch("2026-03-10T11:00:00Z")
    window = {"site": site, "from_": "2026-03-09", "to": "2026-03-20"}
    assert world.http.count("pv", **window) == 2 and world.http.count("visits", **window) == 1


def test_a_visit_goes_on_though_its_next_event_waits_in_a_log_overnight(start_world, site):
    """A killed process took it; none runs until the next day."""
    world = start_world("2026-03-10 18:00", "--partitions", "4", *FOREVER)
    window = {"site": site, "from_": "2026-03-10", "to": "2026-03-13"}
    view = {"site": site, "page": "/p", "user": "ann"}
    world.http.accept(view)
    assert world.http.count("visits", **window) == 1
    slow = Tallyd("--partitions", "4", *FOREVER, redis=world.redis, env=HELD, name="slow")
    world.tallyds.append(slow.start())
    world.move("2026-03-10 18:10")
    world.tallyd.kill()
    slow.client().accept(view)
    slow.kill()
    world.clock.set("2026-03-12 08:00")
    world.restart()
    assert world.http.count("pv", **window) == 2 and world.http.count("visits", **window) == 1


def test_a_visitor_who_changes_the_process_within_half_a_second(start_redis, start_tallyd, site):
    """The page that was viewed first is where the visit began, whoever counts first."""
    redis = start_redis()
    first = start_tallyd(redis=redis, env=HELD)  # it does not count before it is asked
    started = time.monotonic()
    second = start_tallyd(redis=redis, name="second").client()
    time.sleep(started + 5.5 - time.monotonic())  # for 5 s a process counts the logs of all, and once behind that
    second.accept({"site": site, "event": "other", "user": "bob"})
    wait_until(lambda: second.metric("tallyd_fold_events_total") == 1, "it has counted")
    first.client().accept({"site": site, "page": "/first", "user": "ann"})
    time.sleep(0.01)  # processes agree upon Redis's clock to a millisecond or two
    second.accept({"site": site, "event": "signup", "user": "ann"})
    wait_until(lambda: second.metric("tallyd_fold_events_total") > 1, "it has counted again")
    rows = second.question("/pages", site=site, by="visits")["pages"]
    assert [(row["page"], row["visits"]) for row in rows] == [("/first", 1)]
    assert second.question("/stats", site=site)["bounce_rate"] == 0, "the named event came behind the page view"


def test_what_a_killed_process_took_is_counted_by_another_one(start_redis, start_tallyd, site):
    """Unasked: what comes behind that counts behind it."""
    redis = start_redis()
    dead = start_tallyd(redis=redis, env=HELD)  # it counts nothing itself
    living = start_tallyd(redis=redis, name="living")
    started = time.monotonic()
    http, now = living.client(), int(time.time())

    def views(page, ago_s):
        return [{"site": site, "page": page, "user": f"{page == '/own'}-{i}", "ts": now - ago_s} for i in range(20)]

    def counted(tallyd):
        return tallyd.client().metric("tallyd_fold_events_total")

    time.sleep(started + 5.5 - time.monotonic())  # for 5 s a process counts the logs of all..
    wait_until(lambda: (http.accept(views("/own", 60)), counted(living))[1], "..and once behind that", pause_s=0.3)
    own = http.metric("tallyd_append_events_total")
    wait_until(lambda: counted(living) == own, "all is counted")
    before = counted(living)
    dead.client().accept(views("/first", 7200))
    dead.kill()
    wait_until(lambda: counted(living) == before + 20, "it is counted")
    http.accept(views("/later", 1800))
    assert http.count("visits", site=site, from_="now-1d") == 60
