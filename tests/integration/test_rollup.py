"""Rollups and retention, on a clock that the test moves: the answers are the model's at every moment."""

import random
import threading
import time

import pytest

from lib.clock import epoch, rfc3339
from lib.log import counted
from lib.waiting import wait_until

# few partitions: less work for each hour that a jump of the clock closes
FEW = ("--partitions", "4")
METRICS = ("pv", "uv", "ips", "visits")


def page_views(site, from_, minutes, every_s=60, page="/", who="u"):
    """One event each `every_s` seconds, in time order, of a new visitor each half an hour."""
    begin = epoch(from_) if isinstance(from_, str) else from_
    return [{"site": site, "page": page, "user": f"{who}{at // 1800}", "ip": f"192.0.2.{at // 1800 % 200}",
             "ts": at} for at in range(begin, begin + minutes * 60, every_s)]


def checker(world, site, *windows):
    """check(): every window, of the site and of a page, is the model's."""
    def check():
        for from_, to in windows:
            world.check(site, from_, to)
            world.check(site, from_, to, ["/"])
    return check


def test_hours_are_rolled_up_while_the_answers_stay(start_world, site):
    world = start_world("2026-03-10 08:30:10", *FEW)
    check = checker(world, site, ("2026-03-10 08:30", "2026-03-10 09:00"), ("2026-03-10 08:00", "2026-03-10 11:00"),
                    ("2026-03-10 09:00", "2026-03-10 11:00"), ("2026-03-10 08:45", "2026-03-10 10:07"))
    for start in ("08:30", "09:00", "09:30", "10:00", "10:30"):
        world.move(f"2026-03-10 {start}:30" if start == "08:30" else f"2026-03-10 {start}:05")
        world.post(page_views(site, f"2026-03-10 {start}", 30)[:1])
        world.move(epoch(f"2026-03-10 {start}") + 29 * 60)
        world.post(page_views(site, f"2026-03-10 {start}", 29)[1:])
        check()
    passes = world.http.metric("tallyd_rollup_passes_total")
    assert world.cover(site, "2026-03-10T10:00:00Z", "2026-03-10T10:59:00Z")["minute"] == 59
    world.move("2026-03-10 11:01:30")
    check()
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T11:00:00Z", check, hour=3)
    check()
    assert world.http.metric("tallyd_rollup_passes_total") > passes
    assert world.cover(site, "2026-03-10T08:59:00Z", "2026-03-10T11:00:00Z") == {
        "keys": 3, "minute": 1, "hour": 2, "day": 0, "month": 0}


@pytest.fixture
def rolled(start_world, site):
    """A world in March with two days of data behind it, rolled up to a month key: (world, check)."""
    world = start_world("2026-02-27 20:00:10", *FEW)
    check = checker(world, site, ("2026-02-27 20:00", "2026-02-28 01:00"), ("2026-02-28", "2026-03-01"),
                    ("2026-02-27", "2026-03-01"), ("2026-02-01", "2026-03-01"), ("2026-02-27 23:30", "2026-03-01 00:20"),
                    ("2026-02-28 23:59", "2026-03-01 00:01"))
    for hour in range(0, 28, 3):
        begin = epoch("2026-02-27 20:00") + hour * 3600
        world.move(begin + 2990)
        world.post(page_views(site, begin, 45, every_s=150))
    check()
    world.move("2026-03-01 00:02:30")
    world.post(page_views(site, "2026-03-01 00:00", 2))
    check()
    world.wait_cover(site, "2026-02-01", "2026-03-01", check, month=1)
    check()
    return world, check


def test_days_and_months_are_rolled_up(rolled, site):
    world, _ = rolled
    assert world.cover(site, "2026-02-27", "2026-02-28")["day"] == 1
    assert world.cover(site, "2026-02-27T23:00:00Z", "2026-03-01") == {
        "keys": 2, "minute": 0, "hour": 1, "day": 1, "month": 0}


def test_late_events_count_at_once_at_every_level(rolled, site):
    world, check = rolled
    for i, at in enumerate(("2026-02-28 23:59", "2026-02-28 00:00", "2026-02-27 20:30", "2026-02-28 12:34", "2026-02-03")):
        world.post([{"site": site, "page": p, "user": f"late{i}", "ip": f"198.51.100.{i}", "ts": epoch(at)}
                    for p in ("/", "/late")])
        check()
        day = at[:10]
        world.check(site, day, epoch(day) + 86400, ["/late"])
        world.check(site, "2026-02-01", "2026-03-01", ["/late", "/none"])
        assert world.cover(site, "2026-02-01", "2026-03-01")["keys"] == 1


def test_late_batch_over_all_levels(rolled, site, chance):
    """One request with events of the open minute, closed hours, days and months."""
    world, check = rolled
    times = sorted(chance.sample(range(epoch("2026-02-20"), epoch("2026-03-01 00:02")), 2000))
    world.post([{"site": site, "page": f"/{i % 7}", "user": f"batch{i % 500}", "ts": t} for i, t in enumerate(times)])
    check()
    for pages in (None, ["/1"], ["/2", "/3"]):
        world.check(site, "2026-02-21", "2026-02-28", pages, metrics=("pv", "uv", "visits"))
        world.check(site, "2026-02-01", "2026-03-01", pages, metrics=("pv", "uv", "visits"))


def test_late_events_while_hours_are_rolled_up(start_world, site):
    """Writers that post into hours that are being closed: nothing is skipped and nothing counts twice."""
    world = start_world("2026-03-10 05:10:00", *FEW)
    check = checker(world, site, ("2026-03-10 05:00", "2026-03-10 12:00"), ("2026-03-10 05:00", "2026-03-10 07:00"))
    first = epoch("2026-03-10 05:00")
    for hour in range(6):
        begin = first + hour * 3600
        world.move(begin + 660)
        world.post(page_views(site, begin, 10))
        world.move(begin + 3600 + 35)  # the hour ends: a rollup begins
        for i in range(25):
            hour_of_event = random.Random(hour * 100 + i).randrange(hour + 1)
            world.post([{"site": site, "page": f"/{i % 3}", "user": f"w{hour} {i}", "ip": f"203.0.113.{i}",
                         "ts": first + hour_of_event * 3600 + i * 20}])
        check()
    world.move("2026-03-10 12:01:00")
    world.wait_cover(site, "2026-03-10T05:00:00Z", "2026-03-10T12:00:00Z", check, hour=7)
    check()


def test_import_of_old_events_needs_one_month_key(start_world, site):
    world = start_world("2026-03-10 10:56:20", *FEW)
    begin = epoch("2019-05-01")
    world.post([{"site": site, "page": f"/{i % 5}", "user": i % 400, "ip": f"10.0.{i % 4}.{i % 100}",
                 "ts": begin + i * 1300} for i in range(2000)])
    for from_, to, cover in (("2019-05-01", "2019-06-01", 1), ("2019-04-01", "2019-07-01", 3), ("2015-01-01", "2020-01-01", 60)):
        for pages in (None, ["/3"]):
            world.check(site, from_, to, pages)
            assert world.cover(site, from_, to, page=pages) == {
                "keys": cover, "minute": 0, "hour": 0, "day": 0, "month": cover}
    # what lies beyond the retention of its level is gone at once
    assert world.redis.command("KEYS", f"*:{site}:M*")
    assert not world.redis.command("KEYS", f"t:*:[upiv][vp]:{site}:[mh]2019*")


def test_24_hours_up_to_10_56_need_at_most_83_keys(start_world, site):
    world = start_world("2026-03-09 09:00:10", *FEW)
    world.post(page_views(site, "2026-03-09 09:00", 1))
    for hour in range(1, 26):
        world.move(epoch("2026-03-09 09:00") + hour * 3600 + 40)
        world.post(page_views(site, epoch("2026-03-09 09:00") + hour * 3600, 1))
    world.move("2026-03-10 10:55:10")
    world.post(page_views(site, "2026-03-10 10:50", 5))
    world.wait_cover(site, "2026-03-09T10:56:00Z", "2026-03-10T10:56:00Z", minute=60, hour=23)
    assert world.http.question("/uv", site=site)["cover"]["keys"] == 83  # the default window
    world.check(site, "2026-03-09 10:56", "2026-03-10 10:56")


# Retention


SHORT = (*FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d")


def keys_of(world, site, level, from_, to):
    items = world.http.question("/uv", site=site, from_=from_, to=to, explain="1")["cover"]["list"]
    return [(i["key"], epoch(i["to"])) for i in items if i["level"] == level]


def test_minutes_expire_only_after_their_hour_is_rolled_up(start_world, site):
    world = start_world("2026-03-10 08:00:10", *SHORT)
    world.move("2026-03-10 08:31:00")
    world.post(page_views(site, "2026-03-10 08:00", 30))
    minutes = keys_of(world, site, "minute", "2026-03-10T08:00:00Z", "2026-03-10T08:30:00Z")
    assert len(minutes) == 30
    assert {world.redis.command("PTTL", key) for key, _ in minutes} == {-1}
    assert {world.redis.command("PTTL", k) for k in world.redis.command("KEYS", f"*:{site}:m*")} == {-1}

    world.tallyd.kill()  # nobody rolls up: nothing may expire, however late it is
    world.clock.set("2026-03-10 16:30:00")
    assert world.redis.command("EXISTS", *[k for k, _ in minutes]) == 30
    world.restart()
    check = checker(world, site, ("2026-03-10 08:00", "2026-03-10 09:00"), ("2026-03-10", "2026-03-10 12:00"))
    check()
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", check, hour=1)
    wait_until(lambda: world.redis.command("EXISTS", *[k for k, _ in minutes]) == 0, "the minutes are gone")
    check()


def test_expiry_is_the_bucket_s_end_plus_what_is_kept(start_world, site):
    world = start_world("2026-03-10 08:00:10", *SHORT)
    world.move("2026-03-10 08:31:00")
    world.post(page_views(site, "2026-03-10 08:00", 30))
    minutes = keys_of(world, site, "minute", "2026-03-10T08:00:00Z", "2026-03-10T08:30:00Z")
    world.move("2026-03-10 09:00:40")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", hour=1)

    def expiries():
        return [world.redis.command("PEXPIRETIME", key) for key, _ in minutes]

    wait_until(lambda: min(expiries()) > 0, "every minute key has an expiry")
    assert expiries() == [(end + 7200) * 1000 for _, end in minutes]
    wait_until(lambda: not [k for k in world.redis.command("KEYS", f"*{site}:m202603100[8]*")
                            if world.redis.command("PTTL", k) == -1], "all kinds of minute keys have one")
    late = {"site": site, "page": "/new", "user": "late", "ts": epoch("2026-03-10 08:10")}
    world.post([late])
    counted(world.http)  # a new key in a closed hour gets its expiry with what is counted
    assert [k for k in world.redis.command("KEYS", f"*{site}:m202603100810*") if k.endswith(":/new")]
    for key in world.redis.command("KEYS", f"*{site}:m20260310081*"):
        assert world.redis.command("PEXPIRETIME", key) > 0, key
    hour = keys_of(world, site, "hour", "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z")
    assert world.redis.command("PTTL", hour[0][0]) == -1  # its day is not over


def test_what_has_expired_is_a_422_that_names_the_nearest_window(start_world, site):
    world = start_world("2026-03-10 08:00:10", *SHORT)
    world.move("2026-03-10 08:31:00")
    world.post(page_views(site, "2026-03-10 08:00", 30))
    world.move("2026-03-10 09:00:40")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", hour=1)
    world.check(site, "2026-03-10 08:05", "2026-03-10 08:25")
    world.move("2026-03-10 10:20:00")  # the minutes up to 08:19 are too old
    for metric in METRICS:
        answer = world.http.get("/" + metric, site=site, from_="2026-03-10T08:05:00Z", to="2026-03-10T08:40:00Z")
        assert answer.status == 422, answer
        assert "2026-03-10T08:00:00Z" in answer.json["detail"], answer
        outer = world.http.question("/" + metric, site=site, from_="2026-03-10T08:05:00Z", to="2026-03-10T08:40:00Z",
                                    round="outer")
        assert outer["from"] == "2026-03-10T08:00:00Z"
        assert outer["to"] in ("2026-03-10T08:40:00Z", "2026-03-10T09:00:00Z")
        assert outer[metric] == world.model.counts(site, epoch("2026-03-10 08:00"), epoch(outer["to"]))[metric]
    world.check(site, "2026-03-10 08:22", "2026-03-10 08:40")  # still kept


def test_hours_and_days_expire_too(start_world, site):
    world = start_world("2026-01-30 22:00:10", *SHORT)
    world.move("2026-01-30 22:40:00")
    world.post(page_views(site, "2026-01-30 22:00", 30))
    check = checker(world, site, ("2026-01-30", "2026-01-31"), ("2026-01-01", "2026-02-01"))
    world.move("2026-02-02 06:00:00")
    world.wait_cover(site, "2026-01-01", "2026-02-01", check, month=1)
    assert world.http.get("/uv", site=site, from_="2026-01-30T22:00:00Z", to="2026-01-30T23:00:00Z").status == 422
    check()
    wait_until(lambda: not world.redis.command("KEYS", f"t:*:[upiv][vp]:{site}:[mh]*"), "minutes and hours are gone")
    world.check(site, "2026-01-01", "2026-02-01")
    world.check(site, "2026-01-30", "2026-01-31")


def test_down_for_three_days(start_world, site):
    """Nothing is lost when nobody rolled up for longer than minutes and hours are kept."""
    world = start_world("2026-03-05 21:00:10", *SHORT)
    world.move("2026-03-05 21:50:00")
    world.post(page_views(site, "2026-03-05 21:00", 45))
    world.tallyd.kill()
    world.clock.set("2026-03-09 07:30:00")
    world.restart()
    world.post(page_views(site, "2026-03-09 07:00", 20))
    check = checker(world, site, ("2026-03-05", "2026-03-06"), ("2026-03-05", "2026-03-10"), ("2026-03-06", "2026-03-09"))
    check()
    world.wait_cover(site, "2026-03-05", "2026-03-06", check, day=1)
    check()


# Crashes and company


def test_killed_in_the_middle_of_rollups(start_world, site, chance):
    world = start_world("2026-03-10 00:00:10", *FEW)
    check = checker(world, site, ("2026-03-10", "2026-03-11 06:00"), ("2026-03-10 03:00", "2026-03-10 18:00"),
                    ("2026-03-10", "2026-03-11"), ("2026-03-10 07:30", "2026-03-10 15:45"))
    first = epoch("2026-03-10")
    for n in range(10):
        begin = first + n * 3 * 3600
        world.move(begin + 3600)
        world.post(page_views(site, begin, 60, every_s=90, page=f"/{n % 2}" if n % 2 else "/"))
        world.move(begin + 3 * 3600 + 31 + n)
        world.post(page_views(site, max(first, begin - 4 * 3600), 20, page="/late", who=f"late{n}"))
        time.sleep(chance.uniform(0, 0.15))  # not to wait: somewhere in a pass
        world.tallyd.kill()
        world.restart()
        check()
    world.move("2026-03-11 06:01:00")
    world.wait_cover(site, "2026-03-10", "2026-03-11T06:00:00Z", check, day=1, hour=6)
    check()
    for pages in (["/1"], ["/late"], ["/", "/1", "/late"]):
        world.check(site, "2026-03-10", "2026-03-11", pages)


def test_two_processes_on_one_redis(start_world, site):
    """Both write, both answer, one leads; what one has acknowledged the other counts, through every rollup."""
    world = start_world("2026-03-10 00:30:00", *FEW)
    world.add_tallyd()
    first, faults, acknowledged, stop = epoch("2026-03-10"), [], [[], []], threading.Event()
    over = [1]  # hours that tallyd knows to have begun

    def write(me):
        mine, other = (world.tallyds[i].client() for i in (me, 1 - me))
        chance, n = random.Random(me), 0
        try:
            while not stop.is_set():
                hour = chance.randrange(over[0])
                page = f"/{me}/{n}"
                batch = [{"site": site, "page": page, "user": f"{me} {n} {i}", "ts": first + hour * 3600 + i}
                         for i in range(3)]
                mine.accept(batch)
                acknowledged[me].append(page)
                got = other.question("/pv", site=site, page=page, from_="2026-03-10", to="2026-03-11")
                assert got["pv"] == 3, f"{page} at {rfc3339(world.now())}: {got}"
                n += 1
        except Exception as error:  # pylint: disable=broad-except
            faults.append(error)

    writers = [threading.Thread(target=write, args=(i,), daemon=True) for i in range(2)]
    for writer in writers:
        writer.start()
    try:
        for hour in range(1, 13):
            before = sum(map(len, acknowledged))
            world.stroll(first + hour * 3600 + 40)
            over[0] = hour + 1
            wait_until(lambda n=before: faults or sum(map(len, acknowledged)) >= n + 40, "the writers go on")
    finally:
        stop.set()
        for writer in writers:
            writer.join(20)
    assert not faults, faults
    clients = [t.client() for t in world.tallyds]
    world.move("2026-03-10 13:01:00")
    world.wait_cover(site, "2026-03-10", "2026-03-10T13:00:00Z", hour=13)
    total = 3 * sum(map(len, acknowledged))
    for http in clients:
        for metric in ("pv", "visits"):
            assert http.count(metric, site=site, from_="2026-03-10", to="2026-03-11") == total
            parts = [http.count(metric, site=site, from_=first + h * 3600, to=first + (h + 1) * 3600) for h in range(13)]
            assert sum(parts) == total
        # a page's own count stays exact
        for page in acknowledged[0][::10] + acknowledged[1][::10]:
            assert http.count("pv", site=site, page=page, from_="2026-03-10", to="2026-03-11") == 3
    assert sum(http.metric("tallyd_rollup_leader") for http in clients) <= 1


def test_leader_s_death_hands_over(start_world, site):
    """The other process rolls up once the leader was killed."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    world.add_tallyd()
    world.post(page_views(site, "2026-03-10 08:00", 20))
    world.move("2026-03-10 09:01:00")
    check = checker(world, site, ("2026-03-10 08:00", "2026-03-10 10:00"))
    leader = wait_until(lambda: [t for t in world.tallyds if t.client().metric("tallyd_rollup_passes_total")],
                        "one of them rolls up", deadline_s=60)[0]
    leader.kill()
    heir = next(t for t in world.tallyds if t is not leader)
    world.http = heir.client()
    world.move("2026-03-10 10:01:00")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T10:00:00Z", check, hour=2)
    check()


def test_restart_with_other_partitions_or_retention(start_world, site):
    """The number of partitions is fixed once there is data: another one is refused, and says so."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    world.post(page_views(site, "2026-03-10 08:00", 20))
    world.tallyd.kill()
    world.tallyd.args = ("--partitions", "8")
    world.tallyd.start(wait_ready=False)

    def refuses():
        if not world.tallyd.alive():
            return world.tallyd.process.returncode != 0
        if "listening on" not in world.tallyd.out.read_text():
            return "partitions" in world.tallyd.log_text()
        world.tallyd.wait_ready_line()
        return world.tallyd.client().get("/readyz").status == 503

    wait_until(refuses, "another number of partitions is refused")
    wait_until(lambda: "partitions" in world.tallyd.log_text(), "the log says why")
    world.tallyd.kill()
    world.tallyd.args = FEW
    world.restart()
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")


def test_data_of_another_schema_is_refused(start_redis, start_tallyd):
    """Nothing reads what an older or newer version wrote: the start says so, says what to do, and changes nothing."""
    redis = start_redis()
    start_tallyd(redis=redis).terminate()
    meta = redis.command("KEYS", "t:*:meta")[0]
    assert redis.command("GET", meta) == "schema=16 partitions=16"
    for key in redis.command("KEYS", "t:*:state"):  # as it lay in schema 1
        redis.command("RENAME", key, key.replace(":state", ":rolled"))
    redis.command("SET", meta, "schema=1 partitions=16")
    keys = sorted(redis.command("KEYS", "*"))
    tallyd = start_tallyd(redis=redis, wait_ready=False)
    wait_until(lambda: "the data has schema 1, and this version reads and writes schema 16 only" in tallyd.log_text(), "the log says why")
    assert "start with an empty Redis or data directory, or run the version that made the data" in tallyd.log_text()
    wait_until(lambda: not tallyd.alive(), "it does not go on")
    assert tallyd.process.returncode != 0
    assert sorted(redis.command("KEYS", "*")) == keys and redis.command("GET", meta) == "schema=1 partitions=16"

    for foreign in ("", "something else", "schema=16"):
        redis.command("SET", meta, foreign)
        again = start_tallyd(redis=redis, wait_ready=False)
        wait_until(lambda t=again: "meta is not one of ours" in t.log_text(), f"nor what is no meta at all: {foreign!r}")
