"""Nothing that is rolled up stays without an expiry, also where a part's time ends while its pass is in the last phase."""

import threading

import pytest

from lib.clock import epoch
from lib.log import counted
from lib.proxy import is_script
from lib.waiting import wait_until

ARGS = ("--partitions", "4", "--keep-minutes", "2h")
PAGES = [f"/{i}" for i in range(24)]  # some in every partition


class Gate:
    """Holds the leader where the bucket is closed for readers and nothing of its parts was listed: a second list's first
    step, in one partition after the other."""

    def __init__(self, proxy):
        self.reached, self.go, self.tag = threading.Event(), threading.Event(), None
        self.judge, proxy.judge = proxy.judge, self.look

    def look(self, args):
        if is_script(args) and b"x0" in args and b"SSCAN" in args:
            self.tag = self.tag or args[3].decode().split(":")[1]  # "{2}", of t:{2}:state
            self.reached.set()
            self.go.wait(60)
        return self.judge(args)


def minutes(world, site):
    """Keys of the site's minutes by what they are, with their expiries."""
    keys = [k.decode() if isinstance(k, bytes) else k for k in world.redis.command("KEYS", f"*:{site}:m*")]
    return {k: world.redis.command("PTTL", k) for k in keys}


@pytest.mark.parametrize("taken_over", [False, True], ids=["the same leader", "taken over"])
def test_a_part_s_time_ends_between_the_advance_and_the_second_list(start_world, start_proxy, start_tallyd, taken_over):
    """A late event gives the minute's hash of views its expiry, which comes before the list is made of it: the sketches of
    the minute's other pages go all the same."""
    world, site = start_world("2026-03-10 10:00:10", *ARGS), "late"
    world.move("2026-03-10 10:02:00")
    at = epoch("2026-03-10 10:00:30")
    world.post([{"site": site, "page": p, "user": f"u{p}", "ip": "192.0.2.7", "ts": at} for p in PAGES])
    counted(world.http)
    before = minutes(world, site)
    assert len(before) >= 2 * len(PAGES) + 4 and set(before.values()) == {-1}
    world.tallyd.stop()
    world.clock.set("2026-03-10 12:00:20")  # the hour is over for long, its first minute has 40 s to live
    proxy = start_proxy(world.redis)
    gate = Gate(proxy)
    world.tallyds[0] = start_tallyd(*ARGS, redis=proxy)
    world.http = world.tallyd.client()
    assert gate.reached.wait(30)
    if taken_over:  # by a process that does not know when the bucket was closed
        world.tallyd.kill()
        gate.go.set()
        world.tallyds[0] = start_tallyd(*ARGS, redis=world.redis, name="next")
        world.http = world.tallyd.client()
    there = sorted(k.split(":", 5)[5] for k in before if k.startswith(f"t:{gate.tag}:uv:") and k.count(":/") == 1)
    assert len(there) >= 2, before
    world.post([{"site": site, "page": there[0], "user": "late", "ip": "192.0.2.8", "ts": at}])
    counted(world.http)
    after = minutes(world, site)
    views = f"t:{gate.tag}:pv:{site}:m202603101000"
    assert after[views] > 0 and after[f"t:{gate.tag}:uv:{site}:m202603101000:{there[1]}"] == -1
    world.clock.set("2026-03-10 12:01:05")
    gate.go.set()
    wait_until(lambda: not minutes(world, site), "all of the minute is gone")


def test_what_was_rolled_up_expires_though_minutes_are_kept_for_ever_from_now_on(start_world, start_proxy, start_tallyd):
    """Who takes the pass over in its last phase was started with a longer keep time: that is for later minutes."""
    world, site = start_world("2026-03-10 10:00:10", *ARGS), "before"
    world.move("2026-03-10 10:02:00")
    world.post([{"site": site, "page": p, "user": f"u{p}", "ts": epoch("2026-03-10 10:00:30")} for p in PAGES])
    counted(world.http)
    world.tallyd.stop()
    world.clock.set("2026-03-10 11:30")
    gate = Gate(proxy := start_proxy(world.redis))
    world.tallyds[0] = start_tallyd(*ARGS, redis=proxy)
    assert gate.reached.wait(30)
    world.tallyd.kill()
    gate.go.set()
    world.tallyds[0] = start_tallyd("--partitions", "4", "--keep-minutes", "forever", redis=world.redis, name="next")

    def expiries():
        return {k: ttl for k, ttl in minutes(world, site).items() if k.startswith(f"t:{gate.tag}:")}

    assert len(expiries()) >= 4
    wait_until(lambda: -1 not in expiries().values(), "each has an expiry")
    world.clock.set("2026-03-10 12:01:05")
    wait_until(lambda: not expiries(), "all of the minute is gone")


def test_late_events_of_the_longest_names(start_world):
    """Each key that they make has an expiry at once; nothing of them is cut, and nothing is lost."""
    world, site, page = start_world("2026-03-10 08:30:10", *ARGS), "s" * 64, "/" + "p" * 2047
    world.move("2026-03-10 09:10:00")
    ages = (0, 1800, 3600, 7000)
    for n, age_s in enumerate(ages):
        world.post([{"site": site, "page": page, "user": f"u{n}", "ts": int(world.now()) - age_s}])
        world.check(site, "2026-03-10 07:00", "2026-03-10 10:00")
    assert world.http.count("pv", site=site, page=page, from_="2026-03-10T07:00:00Z") == len(ages)
    world.move("2026-03-11 03:10:00")
    world.post([{"site": site, "page": page, "user": "late", "ts": epoch("2026-03-10 12:00")}])
    world.check(site, "2026-03-10 07:00", "2026-03-10 13:00", [page])
    world.wait_cover(site, "2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z",
                     lambda: world.check(site, "2026-03-10", "2026-03-11"), day=1)
