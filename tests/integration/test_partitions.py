"""How many partitions there are: 1 to 1024, what `auto` is, what a refused start writes."""

import datetime
import json

import pytest

from lib.clock import epoch
from lib.process import run
from lib.waiting import wait_until
from lib.world import FOREVER

SOME = (1, 4, 16, 64, 255, 256, 1024)


def keys(redis):
    return sorted(redis.command("KEYS", "*"))


def writes(redis):
    """How often anything was changed."""
    info = redis.command("INFO", "persistence")
    return int(info.split("rdb_changes_since_last_save:")[1].split()[0])


def refused(tallyd):
    wait_until(lambda: not tallyd.alive(), "the start is refused")
    assert tallyd.process.returncode != 0
    return tallyd.log_text()


@pytest.mark.parametrize("n", [1, 8, 64, 1024])
def test_another_number_is_refused_before_anything_is_written(start_redis, start_tallyd, n):
    redis = start_redis()
    first = start_tallyd("--partitions", str(n), redis=redis)
    first.client().accept([{"page": f"/{i}", "user": f"u{i}", "ip": f"192.0.2.{i}"} for i in range(50)])
    first.terminate()
    before = keys(redis), writes(redis)
    for other in SOME:
        if other != n:
            told = refused(start_tallyd("--partitions", str(other), redis=redis, wait_ready=False, name=f"p{other}"))
            assert f"another number of partitions (schema=16 partitions={n})" in told
    assert (keys(redis), writes(redis)) == before
    again = start_tallyd("--partitions", str(n), redis=redis).client()
    assert again.count("pv") == 50 and again.count("visits") == 50


@pytest.mark.parametrize("name, value, why", [("maxmemory-policy", "allkeys-lru", "maxmemory-policy must be noeviction")])
def test_a_redis_that_is_of_no_use_is_refused_before_anything_is_written(start_redis, start_tallyd, name, value, why):
    redis = start_redis()
    redis.command("CONFIG", "SET", name, value)
    assert why in refused(start_tallyd(redis=redis, wait_ready=False))
    assert keys(redis) == [] and writes(redis) == 0


def test_settings_of_others_are_refused_before_anything_is_written(start_redis, start_tallyd):
    redis = start_redis()
    redis.command("HSET", "t:{0}:state", "cfg", "of something else")
    told = refused(start_tallyd(redis=redis, wait_ready=False))
    assert "the settings of the data are not ours" in told
    assert keys(redis) == ["t:{0}:state"] and writes(redis) == 1


def test_auto_is_sixteen(start_redis, start_tallyd):
    redis = start_redis()
    first = start_tallyd("--partitions", "auto", redis=redis)
    assert len(redis.command("KEYS", "t:*:state")) == 16
    first.terminate()
    start_tallyd(redis=redis).terminate()  # that is the default
    assert "partitions=16" in refused(start_tallyd("--partitions", "17", redis=redis, wait_ready=False))
    assert [line.split()[1] for line in run("config").stdout.splitlines() if line.startswith("partitions ")] == ["16"]


@pytest.mark.parametrize("n", [100, 1024])
def test_many_partitions(start_redis, start_tallyd, n):
    """Counts, lists, users, filters, rollups and two processes, with more partitions than a word has bits."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd("--partitions", str(n), redis=redis)
    http = tallyd.client()
    events = [{"page": f"/{i % 400}", "user": f"u{i}", "ip": f"192.0.2.{i % 200}"} for i in range(2000)]
    http.accept(events[:1500])
    tallyd.kill()  # what it acknowledged is folded by whoever comes next
    tallyd.start()
    other = start_tallyd("--partitions", str(n), redis=redis, name="other").client()
    http = tallyd.client()
    http.accept(events[1500:])
    for client in (http, other):
        stats = client.question("/stats", from_="now-1h", to="now")
        assert stats["pv"] == 2000 and stats["visits"] == 2000 and abs(stats["uv"] - 2000) < 60
        pages = client.question("/pages", from_="now-1h", to="now", limit=400)
        assert pages["total_pages"] == 400 and [row["pv"] for row in pages["pages"]] == [5] * 400
        overlap = client.question("/overlap", page=["/1", "/399"], from_="now-1h", to="now")
        assert overlap["union"]["uv"] == 10
        assert client.question("/stats", from_="now-1h", to="now", step="1m")["visits"] == 2000
        assert client.question("/sites") == {"sites": ["default"]}
    today = datetime.datetime.fromtimestamp(redis.time(), datetime.timezone.utc).date()
    days = {"from_": str(today - datetime.timedelta(1)), "to": str(today + datetime.timedelta(2)), "match": "any"}
    assert other.question("/active", **days)["users"] == 2000
    listed, more = [], {}
    while more is not None:
        answer = http.question("/active/users", limit=700, **days, **more)
        listed += answer["users"]
        more = {"cursor": answer["next_cursor"]} if answer["next_cursor"] else None
    assert sorted(listed) == sorted({event["user"] for event in events})
    assert http.request("PUT", "/filters/large", b'{"capacity": 100000000, "error_rate": 0.01}').status == 201
    items = [f"item {i}" for i in range(500)]
    for client, was in ((http, False), (other, True)):
        answer = client.request("POST", "/filters/large/add", json.dumps({"items": items}).encode())
        assert answer.json == {"added": [not was] * 500}
    assert other.question("/filters/large")["items"] == 500
    assert http.request("DELETE", "/filters/large").status == 204
    assert redis.command("KEYS", "t:*:bfl:*") == [], "none of its bits"
    assert http.get("/rollup").status == 200
    assert http.request("POST", "/rollup").status == 200
    assert http.question("/stats", from_="now-1h", to="now")["visits"] == 2000


def test_thirteen_months_of_a_thousand_partitions(start_redis, start_tallyd):
    """The window that takes most keys: 235 in each."""
    http = start_tallyd("--partitions", "1024", *FOREVER, "--request-timeout", "60s", redis=start_redis()).client(60)
    events = [{"page": f"/{i % 300}", "user": f"u{i}", "ts": f"2025-{1 + i % 12:02}-{1 + i % 28:02}T0{i % 10}:{10 + i % 50}:00Z"} for i in range(900)]
    http.accept(events)
    window = {"from_": "2025-01-01T00:01:00Z", "to": "2026-01-31T23:59:00Z"}
    pages = http.question("/pages", limit=300, **window)
    assert pages["total_pages"] == 300 and [row["pv"] for row in pages["pages"]] == [3] * 300
    assert pages["cover"]["keys"] > 1024 * 200
    assert http.count("visits", **window) == 900


def test_many_partitions_are_rolled_up(start_world, site):
    world = start_world("2026-03-10 08:30:10", "--partitions", "100")
    world.post([{"site": site, "page": f"/{i % 50}", "user": f"u{i}", "ip": "192.0.2.1", "ts": epoch("2026-03-10 08:30")} for i in range(300)])

    def check():
        world.check(site, "2026-03-10 08:00", "2026-03-10 11:00")
        world.check(site, "2026-03-10 08:00", "2026-03-10 09:00", ["/7", "/49"])

    check()
    world.move("2026-03-10 09:01:30")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", check, hour=1)
    hour = {"site": site, "from_": "2026-03-10T08:00:00Z", "to": "2026-03-10T09:00:00Z"}
    wait_until(lambda: world.http.question("/visits", **hour)["cover"]["hour"] == 64, "in all that have visitors")
    check()
    world.post([{"site": site, "page": "/7", "user": "late", "ip": "192.0.2.9", "ts": epoch("2026-03-10 08:30")}])
    check()
