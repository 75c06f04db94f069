"""Minutes of the open hour that are over: remembered, and no answer is older than its question for all that."""

import threading

import pytest
from lib.clock import FakeClock, epoch
from lib.log import is_exec
from lib.process import Redis, short_directory
from lib.remembering import clients, events, window, world
from lib.some import few
from lib.waiting import wait_until
from lib.world import FOREVER

METRICS = ("pv", "uv", "ips", "visits")


def keys_read(client):
    return client.metric("tallyd_query_keys_total")


def everything(client, **params):
    """All figures that the open hour is in: of a page, of the site, of each page, in a series."""
    figures = {m: {k: v for k, v in client.question("/" + m, **params).items() if k != "cover"} for m in METRICS}
    whole = {k: v for k, v in params.items() if k != "page"}
    stats = client.question("/stats", step="15m", **whole)
    pages = client.question("/pages", limit=50, **whole)
    return figures, stats["series"], pages["pages"], pages["total_pages"]


def next_hour(world, minutes):
    """The hour that is open when `minutes` of it are over, and 30 s more."""
    hour = int(world.now()) // 3600 * 3600 + 3600
    world.move(hour + minutes * 60 + 30)
    return hour


@pytest.mark.parametrize("path", ["/uv", "/ips", "/pv", "/visits", "/stats", "/pages"])
def test_minutes_that_are_over_are_read_once(world, clients, site, chance, path):
    http, _, plain = clients
    hour = next_hour(world, 50)
    asked = {"site": site, **window(hour, hour + 51 * 60)}
    http.accept(events(site, chance, 2000, hour, hour + 48 * 60))
    before = keys_read(plain)
    first = plain.question(path, **asked)
    keys = keys_read(plain) - before
    for _ in range(3):  # what all partitions call over is learnt, then proved, then recalled
        http.question(path, **asked)
    before = keys_read(http)
    again = http.question(path, **asked)
    assert keys_read(http) - before <= keys / 8, "the last two minutes, not fifty"
    for figures in (first, again):
        figures.pop("cover", None)
    assert again == first


def test_what_a_visit_gains_in_a_minute_that_is_over(world, clients, site):
    """By a late named event that counts nothing else where the visitor lies: the page's minute is of another partition."""
    http, _, _ = clients
    hour = next_hour(world, 30)
    asked = {"site": site, **window(hour, hour + 29 * 60)}
    visitors = [f"visitor-{i}" for i in range(20)]
    http.accept([{"site": site, "page": "/", "visitor": v, "ts": hour + 600} for v in visitors])
    for _ in range(4):
        assert http.question("/stats", **asked)["bounce_rate"] == 1
    for left, visitor in enumerate(reversed(visitors)):
        http.accept([{"site": site, "page": "/", "visitor": visitor, "event": "read", "ts": hour + 660}])
        for _ in range(4):  # and the new figure is remembered before the next one
            assert http.question("/stats", **asked)["bounce_rate"] == pytest.approx((19 - left) / 20)


def test_a_minute_is_remembered_only_once_it_is_over(world, clients, site):
    """Without a write in a later minute nobody says that it is; and its grace is a minute."""
    http, other, plain = clients
    hour = next_hour(world, 20)
    asked = {"site": site, "page": "/", **window(hour, hour + 3600)}
    for minute in range(21, 27):
        world.move(hour + minute * 60 + 30)
        for i in range(5):
            for behind in (0, 60):
                other.accept({"site": site, "page": "/", "user": f"{minute} {i} {behind}", "ip": f"10.3.{minute}.{i}",
                              "ts": hour + minute * 60 - behind})
                assert everything(http, **asked) == everything(plain, **asked), (minute, i, behind)


def test_a_late_event_of_another_process_is_in_the_very_next_answer(world, clients, site, chance):
    http, other, plain = clients
    hour = next_hour(world, 40)
    asked = {"site": site, "page": "/late", **window(hour - 1800, hour + 3600)}
    http.accept(events(site, chance, 500, hour - 1800, hour + 40 * 60))
    for i in range(40):
        at = chance.randrange(hour - 1800, hour + 40 * 60)
        other.accept({"site": site, "page": "/late", "user": f"late {i}", "ip": f"198.51.100.{i}", "ts": at})
        for _ in range(chance.randrange(1, 5)):  # so that it is now learnt, now remembered
            now = everything(http, **asked)
            assert now == everything(plain, **asked), f"round {i}"
        assert now[0]["pv"]["pv"] == i + 1


def test_random_questions_between_late_events_and_minutes(world, clients, site, chance, seed):
    """Two that write and remember, one that remembers nothing; minutes pass, and an hour closes."""
    hour = next_hour(world, 30)
    before = [client.metric("tallyd_cache_hits_total") for client in clients[:2]]
    asked = []
    for i in range(few(120)):
        now = int(world.now())
        if i % 12 == 11:
            world.move(now + chance.randrange(20, 300))
        if chance.random() < 0.4:
            late = chance.random() < 0.5
            chance.choice(clients[:2]).accept(events(site, chance, chance.randrange(1, 30), hour if late else now - 30, now))
        if chance.random() < 0.3 or not asked:
            begin = chance.randrange(hour - 3600, now)
            asked.append({"site": site, "page": chance.choice(("/a", ["/a", "/b"])),
                          **window(begin, chance.randrange(begin + 60, now + 3600))})
        question = chance.choice(asked[-4:])
        for http in clients[:2]:
            assert everything(http, **question) == everything(clients[2], **question), f"seed {seed}, {i}: {question}"
    hits = sum(client.metric("tallyd_cache_hits_total") - was for client, was in zip(clients, before))
    assert hits > few(200), f"only {hits} runs were remembered"


@pytest.mark.some(2)
@pytest.mark.parametrize("at", ["2026-03-10 08:15", "2026-03-10 10:05"], ids=["closed", "over"])
def test_pages_between_whose_two_round_trips_something_comes(start_proxy, start_tallyd, cleanup, site, at):
    """The first one tells in which buckets a page is, the second reads these.  A late event between them is in a bucket that
    is not read: what was read must not be remembered as if it was."""
    directory = short_directory()
    directory.mkdir(exist_ok=True)
    redis = Redis(directory, clock=FakeClock(directory, "2026-03-10 10:30:10")).start()
    cleanup.append(redis.stop)
    proxy = start_proxy(redis)
    direct = start_tallyd(*FOREVER, redis=redis, name="direct").client()
    wait_until(lambda: direct.metric("tallyd_rollup_leader") == 1, "it rolls up, and not who is asked")
    http = start_tallyd("--readers", "1", *FOREVER, redis=proxy, name="asked").client()
    plain = start_tallyd("--cache-mb", "0", *FOREVER, redis=redis, name="plain").client()
    first, last = epoch("2026-03-10 08:00"), epoch("2026-03-10 10:40")
    for ts in range(first + 3600, epoch("2026-03-10 10:25"), 1800):
        direct.accept([{"site": site, "page": page, "user": user, "ts": ts} for page in ("/a", "/b") for user in range(5)])
    asked = {"site": site, **window(first, last)}
    # what is over is known, and nothing of this window remembered
    for _ in range(3):
        http.count("pv", site=site, page="/a", **window(last - 60, last))
    proxy.hold_replies_at(is_exec)
    sent = list(proxy.commands).count("EXEC")
    thread = threading.Thread(target=lambda: http.question("/pages", **asked), daemon=True)
    thread.start()
    wait_until(lambda: list(proxy.commands).count("EXEC") >= sent + 16, "the first round is sent")
    direct.accept([{"site": site, "page": "/a", "user": f"late {i}", "ts": epoch(at)} for i in range(50)])
    assert direct.count("pv", page="/a", **asked) >= 50, "and is folded"
    proxy.hold_replies(False)
    thread.join(20)
    for _ in range(3):
        assert http.count("uv", page="/a", **asked) == plain.count("uv", page="/a", **asked)


@pytest.fixture
def emptied(start_redis, start_tallyd, site):
    """(asked, plain, empty): empty(page's hour or so) has `asked` remember 50 visitors' sketch alone, then empties Redis under
    all of them and has `plain` write one visitor in its place."""
    directory = short_directory()
    directory.mkdir(exist_ok=True)
    redis = start_redis(directory, clock=FakeClock(directory, "2026-03-10 10:30:10"))
    asked = start_tallyd("--readers", "1", *FOREVER, redis=redis, name="asked").client()
    plain = start_tallyd("--cache-mb", "0", *FOREVER, redis=redis, name="plain").client()

    def empty(at, **params):
        asked.accept([{"site": site, "page": "/a", "user": u, "ip": f"10.0.0.{u}", "ts": at} for u in range(50)])
        for _ in range(4):
            assert asked.count("uv", **params) > 40
        redis.command("FLUSHALL")
        plain.accept([{"site": site, "page": "/a", "user": "x", "ip": "10.9.9.9", "ts": at}] * 100)

    return asked, plain, empty


@pytest.mark.parametrize("at, to", [("2026-03-10 08:15", "2026-03-10 09:00"), ("2026-03-10 10:05", "2026-03-10 10:20")],
                         ids=["closed", "over"])
def test_a_sketch_that_is_recalled_without_its_sum_is_proved(emptied, site, at, to):
    """Its sum was never asked for: so the run is read, but the sketch is in the figure already."""
    asked, plain, empty = emptied
    params = {"site": site, "page": "/a", **window(epoch(at) // 3600 * 3600, epoch(to))}
    empty(epoch(at), **params)
    first, truth = (client.question("/stats", **params) for client in (asked, plain))
    assert {m: first[m] for m in METRICS} == {m: truth[m] for m in METRICS}


def test_a_point_of_a_series_is_not_remembered_with_such_a_sketch(emptied, site):
    asked, plain, empty = emptied
    first = epoch("2026-03-10 08:00")
    empty(first + 900, site=site, page="/a", **window(first, first + 3600))
    params = {"site": site, "page": "/a", "step": "1h", **window(first, first + 7200)}
    for _ in range(3):
        assert asked.question("/stats", **params)["series"] == plain.question("/stats", **params)["series"]


@pytest.mark.parametrize("text", ["", "x", "0000000000x 1", "99999999999"])
def test_what_somebody_else_wrote_there_proves_nothing(redis, http, site, text):
    """And a write that finds it is applied, whole."""
    for key in redis.command("KEYS", "t:*:state"):
        redis.command("HSET", key, "over", text)
    for i in range(3):
        http.accept([{"site": site, "page": "/", "user": u} for u in range(40)])
        for _ in range(3):
            assert http.question("/stats", site=site, page="/")["pv"] == 40 * (i + 1)
