"""Reporting zones: sites cut in zones of their own, on a clock that the test moves over changes of their offset."""

import random
import re
import time
import zoneinfo
from datetime import datetime, timedelta, timezone

import pytest

from lib.clock import epoch, rfc3339
from lib.log import HELD, counted
from lib.process import Tallyd, short_directory
from lib.truth import is_close
from lib.waiting import wait_until
from lib.world import FOREVER, World

FEW = ("--partitions", "2")
METRICS = ("pv", "uv", "ips", "visits")
ZONES = {"berlin": "Europe/Berlin", "kathmandu": "Asia/Kathmandu", "stjohns": "America/St_Johns", "plain": "UTC"}
KEEP = {"m": 48 * 3600, "h": 62 * 86400, "d": 1100 * 86400}
KEY = re.compile(r"t:\{\d+\}:(uv|ip|pv|vv):([a-z0-9._-]+):([mhdM])(\d{12})(?::.*)?$", re.S)


def config(lines):
    path = short_directory() / "tallyd.conf"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def zones_config(zones=None):
    zones = ZONES if zones is None else zones
    return config(f"site.{site}.tz = {zone}" for site, zone in zones.items())


def midnight(zone, day):
    """Epoch seconds of the first instant of a local date (these zones have their midnights)."""
    return int(datetime(day.year, day.month, day.day, tzinfo=zoneinfo.ZoneInfo(zone)).timestamp())


def local(zone, at_s):
    return datetime.fromtimestamp(at_s, timezone.utc).astimezone(zoneinfo.ZoneInfo(zone))


def parent_end(zone, level, start_s):
    """Where the hour, day or month ends that a minute, hour or day belongs to; of a month its own end."""
    when = local(zone, start_s)
    if level == "m":  # all offsets here are multiples of a quarter of an hour, and change at full hours
        offset = int(when.utcoffset().total_seconds())
        return (start_s + offset) // 3600 * 3600 + 3600 - offset
    if level == "h":
        return midnight(zone, when.date() + timedelta(days=1))
    first = when.date().replace(day=1)
    return midnight(zone, (first + timedelta(days=32)).replace(day=1))


def own_end(zone, level, start_s):
    return start_s + 60 if level == "m" else parent_end(zone, {"h": "m", "d": "h", "M": "d"}[level], start_s)


def watermarks(redis):
    """The least of each level over the partitions, as readers see them."""
    stamps = [redis.command("HGET", key, "st").split() for key in redis.command("KEYS", "t:*:state")]
    return {level: min(int(st[i]) for st in stamps) for level, i in (("h", 1), ("d", 3), ("M", 5))}


def check_expiries(world):
    """I4: a key has its expiry if and only if its parent is complete, and then it is its end and the time it is kept."""
    redis, w = world.redis, watermarks(world.redis)
    checked = {level: 0 for level in "mhdM"}
    for key in redis.command("KEYS", "t:*"):
        key = key if isinstance(key, str) else key.decode("utf-8", "replace")
        match = KEY.match(key)
        if not match or match.group(2) not in ZONES:
            continue
        zone, level, start = ZONES[match.group(2)], match.group(3), match.group(4)
        start_s = int(datetime.strptime(start, "%Y%m%d%H%M").replace(tzinfo=timezone.utc).timestamp())
        expires = redis.command("PEXPIRETIME", key)
        if expires == -2:
            continue  # just gone
        checked[level] += 1
        parent = {"m": "h", "h": "d", "d": "M", "M": None}[level]
        if parent is None or parent_end(zone, level, start_s) > w[parent]:
            assert expires == -1, (key, expires, w)
        else:
            assert expires == (own_end(zone, level, start_s) + KEEP[level]) * 1000, (key, expires, w)
    return checked


def check_open(world):
    """Nothing that is rolled up is left announced."""
    for partition in world.redis.command("KEYS", "t:*:open"):
        st = world.redis.command("HGET", partition.replace(":open", ":state"), "st").split()
        w = {"h": int(st[1]), "d": int(st[3]), "M": int(st[5])}
        for member in world.redis.command("SMEMBERS", partition):
            site, _, bucket = member.rpartition(":")
            if site in ZONES:
                start_s = int(datetime.strptime(bucket[1:], "%Y%m%d%H%M").replace(tzinfo=timezone.utc).timestamp())
                assert own_end(ZONES[site], bucket[0], start_s) > w[bucket[0]], (member, st)


def visits_of(chance, site, from_s, to_s, n):
    """In order of time, of visitors who come in this batch only (a visitor's last event is not remembered over a jump
    of the clock)."""
    batch = chance.randrange(1 << 40)
    return [{"site": site, "page": f"/{chance.randrange(4)}", "user": f"{batch} {chance.randrange(8)}",
             "ip": f"192.0.2.{chance.randrange(30)}", "ts": at}
            for at in sorted(chance.randrange(int(from_s), int(to_s)) for _ in range(n))]


def wait_rolled(world, at_s):
    """Every partition's hours are complete up to the last end of an hour in any zone, and days and months follow."""
    def rolled():
        w = watermarks(world.redis)
        hour = max(int(at_s - 31 - shift) // 3600 * 3600 + shift for shift in (0, 900, 1800))
        day = max(midnight(z, local(z, w["h"]).date()) for z in ZONES.values())
        month = max(midnight(z, local(z, w["d"]).date().replace(day=1)) for z in ZONES.values())
        passes = [world.redis.command("HGET", key, "pass") for key in world.redis.command("KEYS", "t:*:pass")]
        return w["h"] >= hour and w["d"] >= day and w["M"] >= month and not any(passes)
    counted(world.http)  # also what is counted late is in the keys
    wait_until(rolled, f"everything is rolled up to {rfc3339(at_s)}", deadline_s=120)


def check_local_days(world, site, first, n, now_s):
    """Each local day that is over is one key, and right; and so are the series by day and the site's default zone."""
    zone = ZONES[site]
    for i in range(n):
        begin, end = midnight(zone, first + timedelta(days=i)), midnight(zone, first + timedelta(days=i + 1))
        if end + 31 > now_s:
            break
        world.check(site, begin, end)
        world.check(site, begin, end, ["/1"])
        cover = world.cover(site, begin, end)
        assert cover == {"keys": 1, "minute": 0, "hour": 0, "day": 1, "month": 0}, (site, rfc3339(begin), cover)
        answer = world.http.question("/stats", site=site, from_=str(first + timedelta(days=i)),
                                     to=str(first + timedelta(days=i + 1)), step="1h")
        assert (answer["tz"], answer["from"], answer["to"]) == (zone, rfc3339(begin), rfc3339(end))
        assert len(answer["series"]) == (end - begin) // 3600
        for point in answer["series"]:
            truth = world.model.counts(site, epoch(point["from"]), epoch(point["to"]))
            assert (point["pv"], point["visits"]) == (truth["pv"], truth["visits"]), (site, point, truth)


@pytest.mark.some(2)
@pytest.mark.parametrize("begin, end, days", [
    ("2026-10-24 15:10:10", "2026-10-26 08:00", ("2026-10-25", 1)),  # Berlin falls back on 25 October
    ("2026-10-31 01:10:10", "2026-11-02 08:00", ("2026-10-31", 2)),  # St. John's on 1 November
    ("2026-03-28 15:40:10", "2026-03-30 08:00", ("2026-03-29", 1)),  # Berlin springs forward on 29 March
    ("2026-03-07 15:40:10", "2026-03-09 08:00", ("2026-03-08", 1)),  # St. John's on 8 March
])
def test_days_and_months_are_rolled_up_in_each_zone(start_world, chance, begin, end, days):
    """Hour by hour, with late events, against the model all the while."""
    world = start_world(begin, *FEW, *FOREVER, "--config", zones_config())
    first, n_days = datetime.fromisoformat(days[0]).date(), days[1]
    start_s, at_s, end_s = epoch(begin), epoch(begin), epoch(end)
    while at_s < end_s:
        next_s = min(at_s + chance.randrange(2 * 3600, 9 * 3600), end_s)
        world.move(next_s)
        for site in ZONES:
            world.post(visits_of(chance, site, at_s, next_s, 25))
            world.post(visits_of(chance, site, start_s - 40 * 86400, next_s, 6))  # late, from anywhere
        at_s = next_s
        for site in ZONES:
            edges = sorted(chance.randrange(start_s // 60 - 3000, at_s // 60 + 1) * 60 for _ in range(2))
            world.check(site, edges[0], edges[1] + 60, metrics=("pv", "visits", chance.choice(("uv", "ips"))))
    wait_rolled(world, world.now())
    check_open(world)
    for site, zone in ZONES.items():
        check_local_days(world, site, first, n_days, world.now())
        month = first.replace(day=1)
        if midnight(zone, (month + timedelta(days=32)).replace(day=1)) + 31 < world.now():
            from_s, to_s = midnight(zone, month), midnight(zone, (month + timedelta(days=32)).replace(day=1))
            world.check(site, from_s, to_s)
            world.check(site, from_s, to_s, ["/0", "/2"])
            assert world.cover(site, from_s, to_s) == {"keys": 1, "minute": 0, "hour": 0, "day": 0, "month": 1}
        for _ in range(12):  # any window in any zone
            edges = sorted(chance.randrange(start_s // 60 - 60 * 1440, int(world.now()) // 60) * 60 for _ in range(2))
            world.check(site, edges[0], edges[1] + 60, chance.choice((None, ["/1"], ["/0", "/3"])))


def test_each_key_expires_by_its_own_parent(start_world, chance):
    """With the usual times to keep; tallyd is killed at times in the middle of its passes."""
    begin = "2026-10-30 20:10:10"
    world = start_world(begin, *FEW, "--config", zones_config())
    at_s, end_s = epoch(begin), epoch("2026-11-01 07:31:00")
    seen = {level: 0 for level in "mhdM"}
    while at_s < end_s:
        next_s = min(at_s + chance.randrange(3 * 3600, 9 * 3600), end_s)
        world.move(next_s)
        for site in ZONES:
            world.post(visits_of(chance, site, at_s, next_s, 20))
            world.post(visits_of(chance, site, at_s - 35 * 86400, next_s, 8))
        if chance.randrange(3) == 0:
            world.clock.advance(chance.randrange(3600, 7200))
            time.sleep(chance.random() / 50)  # not a wait: somewhere in the passes
            world.tallyd.kill()
            world.restart()
            world.move(world.now() + 1)
        at_s = int(world.now())
        wait_rolled(world, at_s)
        for level, n in check_expiries(world).items():
            seen[level] += n
        check_open(world)
    assert all(seen.values()), seen
    for site in ZONES:
        world.check(site, midnight(ZONES[site], datetime(2026, 10, 31)), midnight(ZONES[site], datetime(2026, 11, 1)))


def test_months_and_days_stay_answerable_in_the_sites_zone(start_world):
    """Long after hours and minutes are gone; in another zone it is a 422 that says what would work."""
    world = start_world("2026-11-20 10:56:20", *FEW, "--config", zones_config())
    for site, zone in ZONES.items():
        from_s, to_s = (midnight(zone, datetime(2025, m, 1)) for m in (6, 7))
        world.post([{"site": site, "page": "/", "user": at % 50, "ip": "192.0.2.1", "ts": at}
                    for at in range(from_s - 7200, to_s + 7200, 3000)])
        for metric in METRICS:
            answer = world.http.question("/" + metric, site=site, from_="2025-06-01", to="2025-07-01")
            n = world.model.counts(site, from_s, to_s)[metric]
            assert is_close(answer[metric], n) and answer["cover"]["month"] == answer["cover"]["keys"]
        world.check(site, midnight(zone, datetime(2025, 6, 10)), midnight(zone, datetime(2025, 6, 12)))
        other = "UTC" if zone != "UTC" else "Europe/Berlin"
        answer = world.http.get("/pv", site=site, from_="2025-06-10", to="2025-06-12", tz=other)
        assert answer.status == 422, answer
        outer = (rfc3339(max(t for t in (midnight(zone, datetime(2025, 6, d)) for d in (9, 10)) if t <= midnight(other, datetime(2025, 6, 10)))),
                 rfc3339(min(t for t in (midnight(zone, datetime(2025, 6, d)) for d in (12, 13)) if t >= midnight(other, datetime(2025, 6, 12)))))
        assert "from=%s&to=%s" % outer in answer.json["detail"], (answer, outer)
        for path, pages in (("/pages", None), ("/overlap", ["/", "/x"])):
            question = {"site": site, "page": pages} if pages else {"site": site}
            whole = world.http.question(path, from_="2025-06-01", to="2025-07-01", **question)
            assert (whole["from"], whole["to"], whole["tz"]) == (rfc3339(from_s), rfc3339(to_s), zone)
            assert whole["cover"]["month"] == whole["cover"]["keys"] > 0, whole
            if path == "/pages":
                assert whole["pages"][0]["pv"] == world.model.counts(site, from_s, to_s)["pv"]
            else:
                assert is_close(whole["a"]["uv"], world.model.counts(site, from_s, to_s)["uv"]) and whole["b"]["uv"] == 0
            refused = world.http.get(path, from_="2025-06-10", to="2025-06-12", tz=other, **question)
            assert refused.status == 422 and refused.json["detail"] == answer.json["detail"], refused
            near = world.http.question(path, from_="2025-06-10", to="2025-06-12", tz=other, round="outer", **question)
            assert (near["from"], near["to"], near["tz"]) == (*outer, other)
        rounded = world.http.question("/pv", site=site, from_="2025-06-10", to="2025-06-12", tz=other, round="outer")
        assert (rounded["from"], rounded["to"], rounded["tz"]) == (*outer, other)


# Settling a site's zone


def refuses(redis, *args):
    """A tallyd with these arguments ends with a status other than 0 before it serves; returns its log."""
    tallyd = Tallyd(*FEW, *args, redis=redis, name="refused").start(wait_ready=False)
    try:
        assert tallyd.wait(20) != 0
        return tallyd.log_text()
    finally:
        tallyd.stop()


def test_the_zone_of_a_site_with_data_is_fixed(start_redis, start_tallyd, site):
    redis = start_redis()
    berlin = zones_config({site: "Europe/Berlin"})
    first = start_tallyd(*FEW, "--config", berlin, redis=redis)
    first.client().accept({"site": site, "page": "/"})
    first.terminate()
    for other in (("--config", zones_config({site: "Asia/Kathmandu"})), ()):
        log = refuses(redis, *other)
        assert f"site {site} has data, cut in Europe/Berlin" in log, log
    assert len(set(redis.command("HGET", key, "cfg") for key in redis.command("KEYS", "t:*:state"))) == 1
    again = start_tallyd(*FEW, "--config", berlin, redis=redis, name="again")
    assert again.client().count("pv", site=site, from_="now-1h") == 1


def test_a_site_in_utc_with_data_stays_there(start_redis, start_tallyd, site):
    redis = start_redis()
    first = start_tallyd(*FEW, redis=redis)
    first.client().accept({"site": site, "page": "/"})
    first.terminate()
    log = refuses(redis, "--config", zones_config({site: "Europe/Berlin"}))
    assert f"site {site} has data, cut in UTC: site.{site}.tz = Europe/Berlin" in log, log
    # other sites' zones may come, and go while they have no data
    for zones in ({"new": "Asia/Kathmandu"}, {"new": "Europe/Berlin", "newer": "America/St_Johns"}, {}):
        tallyd = start_tallyd(*FEW, "--config", zones_config(zones), redis=redis, name=f"n{len(zones)}")
        http = tallyd.client()
        assert http.question("/pv", site="new")["tz"] == zones.get("new", "UTC")
        assert http.count("pv", site=site, from_="now-1h") == 1
        tallyd.terminate()


def test_processes_must_agree(start_redis, start_tallyd, site):
    """One that was started with other zones changes those of sites without data; the other one notices when it counts, and
    then serves no more.  What it acknowledged before that is counted by who may, in the zone that holds."""
    redis = start_redis()
    old = start_tallyd(*FEW, "--request-timeout", "3s", redis=redis, name="old")
    http = old.client()
    http.accept({"site": site, "page": "/"})
    new = start_tallyd(*FEW, "--config", zones_config({"shop": "Asia/Kathmandu"}), redis=redis, name="new")
    new.client().accept({"site": "shop", "page": "/"})
    statuses = []

    def refuses_now():
        statuses.append(http.post({"site": "shop", "page": "/", "user": "u"}).status)
        return statuses[-1] == 503

    wait_until(refuses_now, "the old one serves no more", deadline_s=5)
    assert set(statuses) <= {202, 503} and http.get("/pv", site="shop").status == 503
    accepted = statuses.count(202)
    assert new.client().count("pv", site="shop", from_="now-1h") == 1 + accepted
    assert new.client().count("pv", site=site, from_="now-1h") == 1
    assert new.client().question("/dau", site="shop")["users"] == min(accepted, 1), "on the day that it is in Kathmandu"
    time.sleep(1)
    assert http.post({"site": "shop", "page": "/"}).status == 503, "and it stays so"
    assert new.client().post({"site": "shop", "page": "/"}).status == 202


def test_what_waits_in_a_log_is_counted_in_the_zone_that_holds_then(start_redis, start_tallyd, site):
    """A site has data once some is counted.  Until then its zone can change, and what was acknowledged is counted in the
    new one, whole; from then on it is fixed."""
    redis = start_redis(appendonly=True)
    dead = start_tallyd(*FEW, redis=redis, name="dead", env=HELD)
    at = int(redis.time()) - 40 * 3600
    begin = midnight("Asia/Kathmandu", local("Asia/Kathmandu", at).date())
    events = [{"site": site, "page": "/", "user": f"u{h}", "ts": begin + h * 3600 + 1} for h in range(24)]
    dead.client().accept(events)
    dead.kill()
    kathmandu = zones_config({site: "Asia/Kathmandu"})
    http = start_tallyd(*FEW, "--config", kathmandu, redis=redis, name="heir").client()
    day = str(local("Asia/Kathmandu", at).date())
    assert http.question("/dau", site=site, date=day)["users"] == 24, "the day in Kathmandu, whole"
    assert http.count("pv", site=site, from_=rfc3339(begin), to=rfc3339(begin + 86400)) == 24
    assert f"site {site} has data, cut in Asia/Kathmandu" in refuses(redis)


def test_a_zone_that_is_added_while_hours_are_rolled_up(start_world, chance):
    """Its buckets that have begun already are completed at their own ends."""
    world = start_world("2026-10-24 20:10:10", *FEW, *FOREVER)
    world.post(visits_of(chance, "plain", world.now() - 900, world.now(), 30))
    world.move("2026-10-24 22:40:00")
    world.tallyd.terminate()
    world.tallyd.args = [*world.tallyd.args, "--config", zones_config()]
    world.clock.set("2026-10-25 00:20:00")  # hours are due when it starts
    world.restart()
    for hour in range(0, 30, 3):
        begin = epoch("2026-10-25 00:20") + hour * 3600
        world.move(begin + 3 * 3600)
        for site in ZONES:
            world.post(visits_of(chance, site, begin, begin + 3 * 3600, 20))
            world.post(visits_of(chance, site, epoch("2026-10-20"), begin, 5))
    wait_rolled(world, world.now())
    check_open(world)
    for site, zone in ZONES.items():
        world.check(site, epoch("2026-10-19"), int(world.now()) // 60 * 60)
        for day in (24, 25):
            world.check(site, midnight(zone, datetime(2026, 10, day)), midnight(zone, datetime(2026, 10, day + 1)))


# What else goes by a site's zone


def test_days_of_activity_are_the_sites_days(start_world):
    """Dates, today, relative times and the first day that is kept, where it is another day in each zone."""
    world = start_world("2026-10-24 22:40:10", *FEW, "--config", zones_config())
    http, now = world.http, int(world.now())
    who = {site: {} for site in ZONES}
    for site, zone in ZONES.items():
        events = []
        for at in range(now - 4 * 86400, now, 1800):
            user = f"{(at - now) // 1800}"
            who[site].setdefault(local(zone, at).date(), set()).add(user)
            events.append({"site": site, "page": "/", "user": user, "ts": at})
        http.accept(events)
    todays = {site: local(zone, now).date() for site, zone in ZONES.items()}
    assert len(set(todays.values())) == 2
    for site, zone in ZONES.items():
        today = todays[site]
        answer = http.question("/dau", site=site)
        assert (answer["date"], answer["users"]) == (str(today), len(who[site][today])), site
        series = http.question("/dau", site=site, from_="now-3d/d", to="now")["series"]
        assert series == [{"date": str(today - timedelta(days=i)), "users": len(who[site][today - timedelta(days=i)])}
                          for i in (3, 2, 1, 0)], site
        instant = rfc3339(midnight(zone, today))  # a day begins there: it is no part of the days before
        assert http.question("/active", site=site, from_=str(today - timedelta(days=1)), to=instant)["users"] == \
            len(who[site][today - timedelta(days=1)]), site
        days = http.question("/users/-1/activity", site=site)
        assert days["days"] == [str(local(zone, now - 1800).date())] and days["to"] == str(today + timedelta(days=1))
        oldest = local(zone, now - KEEP["d"]).date()
        assert http.question("/dau", site=site, date=str(oldest))["users"] == 0
        refused = http.get("/dau", site=site, date=str(oldest - timedelta(days=1)))
        assert refused.status == 422 and str(oldest) in refused.json["detail"], (site, refused)
    kept = {site: set() for site in ZONES}
    for key in world.redis.command("KEYS", "t:*:act:*"):
        site, day = re.fullmatch(r"t:\{\d+\}:act:([a-z]+):active:(\d{8})", key).groups()
        kept[site].add(datetime.strptime(day, "%Y%m%d").date())
    assert kept == {site: set(days) for site, days in who.items()}


def test_what_is_remembered_of_closed_buckets_is_right_in_every_zone(start_world, chance, seed):
    """Against a process that remembers nothing, between late events and rollups; /stats, which always reads, too."""
    world = start_world("2026-10-24 20:40:10", *FEW, *FOREVER, "--config", zones_config())
    world.args = (*world.args, "--cache-mb", "0")
    http, plain = world.http, world.add_tallyd().client()
    start_s = int(world.now())
    first = start_s - 40 * 86400
    asked = []
    for i in range(120):
        if i % 20 == 19:
            world.stroll(int(world.now()) + 3600 + 900 * chance.randrange(8))
        now = int(world.now())
        site = chance.choice(list(ZONES))
        if chance.random() < 0.5:
            world.post(visits_of(chance, site, first, now, chance.randrange(1, 20)), chance.choice((http, plain)))
        if chance.random() < 0.4 or not asked:
            edge = chance.randrange(first, now) // 60 * 60
            asked.append({"site": site, "page": chance.choice((None, "/1", ["/0", "/2"])), "from_": rfc3339(edge),
                          "to": rfc3339(chance.randrange(edge + 60, now + 3600) // 60 * 60)})
        question = chance.choice(asked[-6:])
        stats = http.question("/stats", **question)
        for metric in METRICS:
            figure = http.count(metric, **question)
            assert figure == plain.count(metric, **question), f"seed {seed}, {i}: {metric} {question}"
            assert min(figure, stats["pv"]) == stats[metric], f"seed {seed}, {i}: {metric} {question}"
    assert http.metric("tallyd_cache_hits_total") > 100, "nothing was remembered"
    assert plain.metric("tallyd_cache_hits_total") == 0


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "UTC"])
def test_all_time_begins_with_1970(start_redis, start_tallyd, site, zone):
    """The first local month begins before or after 1970-01-01T00:00Z, but nothing before that instant can be counted or asked."""
    http = start_tallyd(*FEW, "--config", zones_config({site: zone}), redis=start_redis()).client()
    now = int(time.time())
    events = [{"site": site, "page": "/", "user": f"u{at}", "ip": "192.0.2.1", "ts": at} for at in (0, 61, 86400 * 50, now)]
    http.accept(events)
    second = parent_end(zone, "d", 0)  # where the local month of that instant ends
    for path in ("/pv", "/uv", "/ips", "/visits", "/stats"):
        answer = http.question(path, site=site, from_="0", step="1M")
        assert answer["from"] == answer["series"][0]["from"] == rfc3339(0) and answer["series"][0]["to"] == rfc3339(second), answer
        metric = "pv" if path == "/stats" else path[1:]
        expected = {"ips": 1}.get(metric, len(events))
        assert answer[metric] == expected == http.count(metric, site=site, from_="1970-01-01T00:00:00Z")
    assert http.question("/pages", site=site, from_="0")["pages"] == [{"page": "/", "pv": 4, "uv": 4}]
    assert [s["pv"] for s in http.question("/sites", from_="0")["sites"]] == [4]
    answer = http.get("/pv", site=site, from_="0", to="1970-01-01T01:00:00Z")  # a part of the first month
    assert f"from={rfc3339(0)}&to={rfc3339(second)}" in answer.json["detail"], answer
    assert http.count("pv", site=site, from_=rfc3339(0), to=rfc3339(second)) == 2
    outer = http.question("/pv", site=site, from_="0", to="1970-01-01T01:00:00Z", round="outer")
    assert (outer["from"], outer["to"], outer["pv"]) == (rfc3339(0), rfc3339(second), 2)
