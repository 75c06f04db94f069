"""Nobody rolled up for long, or the machine's clock is wrong: nothing expires before it is rolled up."""

import time

import pytest

from lib.clock import epoch, rfc3339
from lib.log import counted
from lib.proxy import Fault
from lib.waiting import wait_until

FEW = ("--partitions", "4")
SHORT = (*FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d")


def some(site, from_s, n=200, every_s=16):
    return [{"site": site, "page": f"/{i % 7}", "user": f"u{i % 60}", "ip": f"192.0.2.{i % 90}", "ts": from_s + i * every_s}
            for i in range(n)]


def keys(world, site, level):
    """Of counts: which names an hour knows, for its caps, expires by itself."""
    return [key for key in world.redis.command("KEYS", f"*:{site}:{level}*") if ":places:" not in key]


@pytest.mark.some(1)
@pytest.mark.parametrize("down", [
    pytest.param((3, "hour", "2026-01-10T08:00:00Z", "2026-01-10T09:00:00Z"), id="three hours, longer than minutes"),
    pytest.param((80, "day", "2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z"), id="three days, longer than hours"),
    pytest.param((24 * 75, "month", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"), id="75 days, longer than days"),
])
def test_down_for_longer_than_anything_is_kept(start_world, site, down):
    hours, level, from_, to = down
    world = start_world("2026-01-10 08:00:10", *SHORT)
    world.move("2026-01-10 08:58:00")
    world.post(some(site, epoch("2026-01-10 08:00")))
    counted(world.http)
    world.tallyd.kill()
    written = {k: world.redis.command("PTTL", k) for k in keys(world, site, "m")}
    assert written and set(written.values()) == {-1}
    world.clock.set(epoch("2026-01-10 08:58") + hours * 3600)
    assert set(keys(world, site, "m")) == set(written), "all is there, however old"
    world.restart()

    def check():
        """Of a window that any state of the rollups can answer, with few keys."""
        world.check(site, epoch(from_), epoch(to))
        world.check(site, epoch(from_), epoch(to), ["/3"])

    check()
    late = some(site, epoch("2026-01-10 08:00"), n=20, every_s=1)
    world.post([{**e, "user": "late"} for e in late])  # what comes late is in it too
    if level == "month":  # the hour and the day are not kept any more, once the month is there
        wait_until(lambda: world.http.question("/rollup")["lag_s"]["month"] == 0, "caught up", deadline_s=60, pause_s=0.5)
    world.wait_cover(site, from_, to, check, **{level: 1})
    check()
    wait_until(lambda: not keys(world, site, "m"), "the minutes are gone, now that their hour is complete")
    if level == "month":
        wait_until(lambda: not keys(world, site, "[hd]202601"), "so are hours and days")
    check()


def test_killed_again_and_again_while_catching_up(start_world, site, chance):
    """Each time somewhere else in the passes of three days; the lease of the dead ends in Redis's time."""
    world = start_world("2026-01-10 08:00:10", *SHORT)
    for day in range(3):
        world.move(epoch("2026-01-10 08:58") + day * 86400)
        world.post(some(site, epoch("2026-01-10 08:00") + day * 86400, n=60))
    world.tallyd.kill()
    world.clock.set("2026-01-20 12:00:00")
    for _ in range(8):
        world.restart()
        begin = world.http.metric("tallyd_rollup_passes_total")
        goal = begin + chance.randint(1, 40)
        wait_until(lambda g=goal: world.http.metric("tallyd_rollup_passes_total") >= g
                   or world.http.question("/rollup")["lag_s"]["day"] == 0, "some passes are done")
        world.tallyd.kill()
        world.clock.advance(11)  # the lease of who was killed
    world.restart()
    for day in range(3):
        at = epoch("2026-01-10") + day * 86400
        world.wait_cover(site, at, at + 86400, lambda a=at: world.check(site, a, a + 86400), day=1)
    world.check(site, "2026-01-10", "2026-01-13")


def test_days_without_data_are_closed_at_once(start_world, site):
    """Nine days have 225 ends of hours and days, in each of four partitions."""
    world = start_world("2026-01-10 08:00:10", *SHORT)
    world.move("2026-01-10 08:58:00")
    world.post(some(site, epoch("2026-01-10 08:00")))
    counted(world.http)
    world.tallyd.kill()
    world.clock.set("2026-01-19 12:05:00")
    world.restart()
    wait_until(lambda: set(world.http.question("/rollup")["lag_s"].values()) == {0}, "caught up")
    assert world.http.metric("tallyd_rollup_passes_total") <= 4 * 8
    world.check(site, "2026-01-10", "2026-01-19")
    world.post(some(site, epoch("2026-01-15 11:00")))  # they are closed for writers, too
    world.wait_cover(site, "2026-01-10T00:00:00Z", "2026-01-19T00:00:00Z", day=9)
    world.check(site, "2026-01-10", "2026-01-19")


def is_skip(args):
    """skip.lua: its `ver` ends so."""
    return args[0].upper() == b"EVALSHA" and len(args) == 12 and args[8].endswith(b".s")


def held_before_a_skip(world, start_proxy, start_tallyd, site, options, at):
    """An hour is rolled up, then nobody is there until @at, when the next leader has looked and is held before it closes the first
    empty hours.  Returns (leader, what holds it)."""
    world.post(some(site, epoch("2026-01-10 07:00"), n=20))
    wait_until(lambda: world.http.question("/rollup")["lag_s"]["hour"] == 0, "the hour is rolled up")
    world.tallyd.stop()
    world.clock.set(at)
    proxy = start_proxy(world.redis)
    held = proxy.arm(Fault("command-held", match=is_skip))
    leader = start_tallyd(*options, redis=proxy, name="leader")
    assert held.done.wait(20)
    return leader, held


def test_what_is_counted_behind_the_look_is_not_passed_over(start_world, start_proxy, start_tallyd, site):
    """A late event comes into an hour that was found to be empty, just before it is closed for that."""
    one = ("--partitions", "1", *SHORT[2:])
    world = start_world("2026-01-10 08:00:10", *one)
    _, held = held_before_a_skip(world, start_proxy, start_tallyd, site, one, "2026-01-10 11:30:00")
    world.tallyds[0] = start_tallyd(*one, redis=world.redis, name="other")
    world.http = world.tallyd.client()
    world.post(some(site, epoch("2026-01-10 09:10"), n=50))
    counted(world.http)
    held.release()
    world.wait_cover(site, "2026-01-10T09:00:00Z", "2026-01-10T11:00:00Z",
                     lambda: world.check(site, "2026-01-10 09:00", "2026-01-10 11:00"), hour=2)


def test_until_it_has_caught_up_a_long_window_is_to_be_asked_again(start_world, start_proxy, start_tallyd, site):
    """By minutes, 41 days are too many keys.  By days they are few, so it is no fault of the question."""
    world = start_world("2026-01-10 08:00:10", *FEW)
    world.tallyds[0], held = held_before_a_skip(world, start_proxy, start_tallyd, site, FEW, "2026-02-20 12:05:00")
    world.http = world.tallyd.client()
    asked = (("/uv", {}), ("/stats", {}), ("/pages", {}), ("/breakdown", {"by": "source"}))
    for path, more in asked:
        answer = world.http.get(path, site=site, from_="now-45d/h", **more)
        assert answer.status == 503 and "lag behind" in answer.json["detail"], answer.body
        assert int(answer.headers["Retry-After"]) >= 1
    held.release()
    for path, more in asked:
        wait_until(lambda p=path, m=more: world.http.get(p, site=site, from_="now-45d/h", **m).status == 200, "it can be answered")
    world.check(site, "2026-01-08", "2026-02-20")


def test_a_long_window_is_never_refused_while_the_rollups_catch_up(start_world, site):
    """The states by which it is planned, and those by which it is told why it cannot be: they catch up in between."""
    world = start_world("2026-01-10 08:00:10", "--keep-minutes", "forever")
    at, asked = epoch("2026-01-10 08:00:10"), 0
    for _ in range(10):
        at += 41 * 86400 + 3600
        world.clock.set(at)
        while True:
            answer = world.http.get("/pv", site=site, from_="2020-01-03", to="now")
            assert answer.status == 200 or (answer.status == 503 and "lag behind" in answer.json["detail"]), answer
            asked += 1
            if answer.status == 200 and epoch(answer.json["to"]) >= at:
                break
    assert asked > 10


@pytest.mark.parametrize("now", ["2019-03-10 08:00:10", "2035-03-10 08:00:10"], ids=["years ahead", "years behind"])
def test_a_machine_with_a_wrong_clock(start_world, site, now):
    """Redis's clock is trusted, and the log says so: what comes now is now, rolled up when Redis says that the hour is
    over, and expires by Redis's time."""
    day = now[:10]
    world = start_world(now, *SHORT)
    line = wait_until(lambda: [x for x in world.tallyd.log_text().splitlines() if "Redis's is trusted" in x], "the log says so")[0]
    ahead_s = int(line.rpartition("redis_ahead_s=")[2])
    assert abs(ahead_s - (epoch(now) - time.time())) < 60
    world.move(f"{day} 08:58:00")
    world.post(some(site, epoch(f"{day} 08:00")))
    world.http.accept({"site": site + "-now", "page": "/", "user": "u"})
    assert world.http.count("pv", site=site + "-now", from_=rfc3339(world.now() - 120), to=rfc3339(world.now() + 60)) == 1
    assert {world.redis.command("PTTL", k) for k in keys(world, site, "m")} == {-1}
    world.move(f"{day} 09:00:40")
    world.wait_cover(site, f"{day}T08:00:00Z", f"{day}T09:00:00Z", hour=1)
    minutes = keys(world, site, "m")
    wait_until(lambda: -1 not in {world.redis.command("PTTL", k) for k in minutes}, "the minutes have their expiry")
    for key in minutes:
        at_s = world.redis.command("PEXPIRETIME", key) // 1000
        assert epoch(f"{day} 10:00") < at_s <= epoch(f"{day} 11:00"), key
    world.check(site, f"{day} 08:00", f"{day} 09:00")


def test_clocks_that_agree_are_no_news(start_redis, start_tallyd):
    tallyd = start_tallyd(redis=start_redis())
    tallyd.client().accept({"page": "/"})
    assert "clock" not in tallyd.log_text()


def test_redis_s_clock_is_set_while_it_runs(start_world):
    """Told again when it changes, and when they agree again."""
    world = start_world(time.time(), *FEW)
    assert "clock" not in world.tallyd.log_text()
    world.clock.advance(3600)
    world.http.accept({"page": "/"})
    wait_until(lambda: "trusted\" redis_ahead_s=3600" in world.tallyd.log_text()
               or "trusted\" redis_ahead_s=3599" in world.tallyd.log_text(), "the log says so")
    world.clock.set_back(3600)
    world.http.accept({"page": "/"})
    wait_until(lambda: "agree again" in world.tallyd.log_text(), "the log says so")
