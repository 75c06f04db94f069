"""--visitor-rotation: each period has a secret that nobody has 48 h after it; --ips off; the nightly rewrite."""

import threading

import pytest

from lib.clock import epoch
from lib.waiting import wait_until
from lib.world import World

DAY = 86400
START = "2026-03-10 10:00"
MIDNIGHT = epoch("2026-03-11")


@pytest.fixture
def rotating(cleanup):
    def start(*args, at=START, rotation="day", appendonly=False):
        world = World(at, "--visitor-rotation", rotation, *args, appendonly=appendonly)
        cleanup.append(world.close)
        return world

    return start


def views(site, at_s, addresses=(1,), **members):
    return [{"site": site, "page": "/", "ip": f"192.0.2.{a}", "ua": "x", "ts": int(at_s), **members} for a in addresses]


def keys(world, pattern):
    return world.redis.command("KEYS", "t:{*}:" + pattern)


def secret(world, text):
    found = keys(world, f"secret:{epoch(text)}")
    return world.redis.command("GET", found[0]).encode(errors="surrogateescape") if found else None


def expires_s(world, text):
    return int(world.redis.command("EXPIRETIME", keys(world, f"secret:{epoch(text)}")[0]))


def spans(world, site, from_, to, path="/uv"):
    return world.http.question(path, site=site, from_=from_, to=to).get("spans_rotation", False)


# Secrets


@pytest.mark.parametrize("rotation,start,end", [
    ("day", "2026-03-10", "2026-03-11"), ("week", "2026-03-09", "2026-03-16"), ("month", "2026-03-01", "2026-04-01")])
def test_a_secret_lives_48_hours_longer_than_its_period(rotating, site, rotation, start, end):
    world = rotating(rotation=rotation)
    world.http.accept(views(site, epoch(START)))
    assert len(secret(world, start)) == 32
    assert expires_s(world, start) == epoch(end) + 48 * 3600
    assert keys(world, "late") == []


def test_without_rotation_there_is_none(rotating, site):
    world = rotating(rotation="never")
    world.http.accept(views(site, epoch(START)))
    assert world.http.count("uv", site=site, from_="now-1h", to="now") == 1
    assert keys(world, "secret:*") == []


def test_only_addresses_need_a_secret(rotating, site):
    world = rotating()
    world.http.accept([{"site": site, "page": "/", "user": "u"}, {"site": site, "page": "/", "visitor": "v"},
                       {"site": site, "page": "/"}])
    assert keys(world, "secret:*") == []


def test_the_next_secret_is_made_an_hour_ahead(rotating, site):
    world = rotating(at="2026-03-10 22:30")
    world.http.accept(views(site, world.now()))
    assert secret(world, "2026-03-11") is None
    world.move("2026-03-10 23:05")
    world.http.accept(views(site, world.now()))
    wait_until(lambda: secret(world, "2026-03-11") is not None, "the secret of tomorrow")
    assert expires_s(world, "2026-03-11") == epoch("2026-03-12") + 48 * 3600
    assert secret(world, "2026-03-11") != secret(world, "2026-03-10")


def test_another_day_is_another_visitor_and_address(rotating, site):
    world = rotating()
    days = ["2026-03-08 12:00", "2026-03-09 12:00", "2026-03-10 09:00"]
    world.http.accept([event for day in days for event in views(site, epoch(day), (1, 2))])
    window = {"site": site, "from_": "2026-03-08", "to": "2026-03-11"}
    assert world.http.count("uv", **window) == 6
    assert world.http.count("ips", **window) == 6
    for day, after in (("2026-03-08", "2026-03-09"), ("2026-03-10", "2026-03-11")):
        assert world.http.count("uv", site=site, from_=day, to=after) == 2
        assert world.http.count("ips", site=site, from_=day, to=after) == 2
        assert not spans(world, site, day, after) and not spans(world, site, day, after, "/ips")
    assert all(spans(world, site, "2026-03-08", "2026-03-11", p) for p in ("/uv", "/ips", "/visits", "/stats"))
    assert not spans(world, site, "2026-03-08", "2026-03-11", "/pv")


def test_two_processes_agree_at_midnight(rotating, site):
    """Both count the same addresses over midnight, from many threads, on a Redis that has no secret for either day."""
    world = rotating(at="2026-03-10 23:59:30")
    world.add_tallyd()
    gate = threading.Barrier(8)

    def send(tallyd):
        http = tallyd.client()
        gate.wait()
        for at in (MIDNIGHT - 5, MIDNIGHT + 5):
            http.accept(views(site, at, (1, 2, 3)))
        http.close()

    threads = [threading.Thread(target=send, args=(world.tallyds[i % 2],)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    world.move("2026-03-11 00:02")
    for from_, to in (("2026-03-10", "2026-03-11"), ("2026-03-11", "2026-03-12")):
        assert world.http.count("uv", site=site, from_=from_, to=to) == 3
        assert world.http.count("ips", site=site, from_=from_, to=to) == 3


def test_the_secret_comes_back_to_a_redis_that_lost_it(rotating, site):
    world = rotating()
    world.http.accept(views(site, epoch(START), (1, 2)))
    before = secret(world, "2026-03-10")
    world.redis.command("FLUSHALL")
    wait_until(lambda: keys(world, "meta"), "it is prepared anew")
    wait_until(lambda: world.http.post(views(site, epoch(START), (1, 2))).status == 202, "events are taken again")
    assert secret(world, "2026-03-10") == before
    assert expires_s(world, "2026-03-10") == MIDNIGHT + 48 * 3600


# Old logs


def test_an_old_period_gets_a_secret_for_48_hours_and_is_said(rotating, site):
    world = rotating("--keep-minutes", "forever")
    day = ("2026-02-10", "2026-02-11")
    assert not spans(world, site, *day)
    world.http.accept(views(site, epoch("2026-02-10 12:00"), (1, 2)))
    first = secret(world, "2026-02-10")
    assert abs(expires_s(world, "2026-02-10") - world.now() - 48 * 3600) < 60
    assert world.http.count("uv", site=site, from_=day[0], to=day[1]) == 2
    assert spans(world, site, *day) and spans(world, site, *day, "/ips") and not spans(world, site, *day, "/pv")
    assert not spans(world, site, "2026-03-10", "2026-03-10T12:00:00Z")
    world.add_tallyd()                          # another process says so, too
    other = world.tallyds[1].client()
    assert other.question("/uv", site=site, from_=day[0], to=day[1])["spans_rotation"] is True
    other.accept(views(site, epoch("2026-02-10 13:00"), (1, 2)))
    assert other.count("uv", site=site, from_=day[0], to=day[1]) == 2, "the same secret within 48 h"
    world.move(world.now() + 2 * DAY + 60)
    assert secret(world, "2026-02-10") is None
    world.http.accept(views(site, epoch("2026-02-10 14:00"), (1, 2)))
    assert secret(world, "2026-02-10") not in (None, first)
    assert world.http.count("uv", site=site, from_=day[0], to=day[1]) == 4


def test_a_batch_over_many_old_periods(rotating, site):
    world = rotating("--keep-minutes", "forever")
    start = epoch("2025-01-01")
    world.http.accept([event for day in range(400) for event in views(site, start + day * DAY, (1,))])
    assert len(keys(world, "secret:*")) == 400
    assert world.http.count("uv", site=site, from_="2025-01-01", to="2025-01-03") == 2


def test_a_page_of_two_windows_says_it(rotating, site):
    world = rotating("--keep-minutes", "forever")
    world.http.accept(views(site, epoch("2026-02-10 12:00"), (1, 2)))
    answer = world.http.question("/overlap", site=site, page="/", from_="2026-02-10", to="2026-02-10T18:00:00Z",
                                 from2="2026-02-10", to2="2026-02-11")
    assert answer["spans_rotation"] is True
    assert world.http.question("/pages", site=site, by="uv", from_="2026-02-10", to="2026-02-11")["spans_rotation"] is True
    assert world.http.question("/sites", from_="2026-02-10", to="2026-02-11")["spans_rotation"] is True
    assert "spans_rotation" not in world.http.question("/sites", from_="now-1h")


def test_rows_without_visitors_do_not_say_it(rotating, site):
    """The rows of a dimension whose visitors are not counted have page views only, which rotation changes nothing of."""
    world = rotating("--keep-minutes", "forever")
    world.http.accept(views(site, epoch("2026-02-10 12:00"), (1, 2)))
    told = {by: world.http.question("/breakdown", site=site, by=by, from_="2026-02-10", to="2026-02-12").get("spans_rotation")
            for by in ("source", "browser", "utm_campaign", "event", "section")}
    assert told == {"source": True, "browser": None, "utm_campaign": None, "event": True, "section": True}


def test_the_last_five_minutes_of_a_site_say_it(rotating, site):
    """At 00:02 they reach over midnight, which the window of today does not."""
    world = rotating(at="2026-03-10 23:59")
    world.http.accept(views(site, MIDNIGHT - 60))
    world.move("2026-03-11 00:02")
    world.http.accept(views(site, MIDNIGHT + 60))
    answer = world.http.question("/sites", from_="now/d")
    assert [(row["uv"], row["now"]) for row in answer["sites"]] == [(1, 2)]
    assert answer["spans_rotation"] is True
    world.move("2026-03-11 00:06")
    assert "spans_rotation" not in world.http.question("/sites", from_="now/d")


# What is kept


def test_a_backup_cannot_reproduce_a_period_that_is_over(rotating, site):
    """48 h and one rewrite after a day, neither Redis nor its files have the day's secret; nor has the process."""
    world = rotating("--keep-minutes", "forever", appendonly=True)
    world.http.accept(views(site, epoch(START), (1,)))
    value = secret(world, "2026-03-10")
    place = world.redis.directory
    assert find(place, value), "while the day lasts it is in the append-only file"
    world.move("2026-03-13 00:01")
    assert secret(world, "2026-03-10") is None
    world.move("2026-03-13 03:01")              # the nightly rewrite
    wait_until(lambda: not find(place, value), "the file was rewritten", deadline_s=60)
    # The process has forgotten it, too: it makes another one.
    world.http.accept(views(site, epoch(START) + 60, (1,)))
    assert secret(world, "2026-03-10") != value
    assert world.http.count("uv", site=site, from_="2026-03-10", to="2026-03-11") == 2


def find(place, value):
    """Is the value anywhere in the files?"""
    return any(value in path.read_bytes() for path in place.rglob("*") if path.is_file())


def rewrites(world):
    _, found, rest = world.redis.command("INFO", "commandstats").partition("cmdstat_bgrewriteaof:calls=")
    return int(rest.split(",")[0]) if found else 0


def test_one_rewrite_a_night(rotating, site):
    world = rotating(at="2026-03-10 02:50", rotation="never", appendonly=True)
    world.add_tallyd()
    wait_until(lambda: rewrites(world) == 1, "the one of the day before, which nobody began")
    world.move("2026-03-10 03:01")
    wait_until(lambda: rewrites(world) == 2, "the nightly rewrite", deadline_s=30)
    world.move("2026-03-10 12:00")
    world.move("2026-03-11 03:02")
    wait_until(lambda: rewrites(world) == 3, "the next nightly rewrite", deadline_s=30)


def test_a_rewrite_a_night_after_the_clock_was_wrong(rotating, site):
    """A clock that was ahead has left a day of the future as that of the last rewrite."""
    world = rotating(at="2026-03-10 02:50", rotation="never", appendonly=True)
    wait_until(lambda: rewrites(world) == 1, "the one of the day before, which nobody began")
    (key,) = keys(world, "rewritten")
    wait_until(lambda: world.redis.command("GET", key), "it is written down")
    world.redis.command("INCRBY", key, "30")
    for n, at in ((2, "2026-03-10 03:01"), (3, "2026-03-11 03:02")):
        world.move(at)
        wait_until(lambda n=n: rewrites(world) == n, f"the nightly rewrite, {at}", deadline_s=30)


def test_no_rewrite(rotating, site):
    off = rotating("--aof-rewrite", "off", at="2026-03-10 02:50", rotation="never", appendonly=True)
    without = rotating(at="2026-03-10 02:50", rotation="never")
    for world in (off, without):
        world.move("2026-03-10 03:01")
        world.http.accept(views(site, world.now()))
        assert world.http.request("POST", "/rollup").status == 200
        assert rewrites(world) == 0


# --ips off


def test_addresses_are_not_counted(rotating, site):
    world = rotating("--ips", "off", rotation="never")
    world.http.accept(views(site, world.now(), (1, 2, 3)))
    answer = world.http.get("/ips", site=site, from_="now-1h", to="now")
    assert answer.status == 422 and "--ips off" in answer.json["detail"]
    stats = world.http.question("/stats", site=site, from_="now-1h", to="now", step="1h")
    assert stats["uv"] == 3 and stats["ips"] is None and stats["error"]["ips"] is None
    assert all(point["ips"] is None for point in stats["series"])
    assert keys(world, "ip:*") == [] and keys(world, "uv:*") != []
