"""Counters that a fold knows are set, not incremented: by whom, and when not."""

import re
import threading
import time

import pytest

from lib.clock import epoch
from lib.log import counted
from lib.proxy import Fault, is_script
from lib.waiting import wait_until
from lib.world import World


def calls(redis, command):
    """How often Redis has carried the command out."""
    found = re.search(rf"cmdstat_{command}:calls=(\d+)", redis.command("INFO", "commandstats"))
    return int(found[1]) if found else 0


def view(http, site, page="/p", **more):
    http.accept({"site": site, "page": page, "user": "ann", **more})


def views(http, site, page="/p"):
    """Each question folds what was acknowledged before it."""
    return http.count("pv", site=site, page=page)


def count_on(http, site, *numbers):
    """One view after the other, each folded by itself; so many are counted then."""
    for n in numbers:
        view(http, site)
        assert views(http, site) == n


def takes_away(site):
    """delete.lua, of the counters of page views."""
    return lambda args: is_script(args) and b"HDEL" in args and any(f":pv:{site}:".encode() in a for a in args)


def marks_an_end(args):
    """deletion_mark.lua, of any partition but 0: no deletion takes anything away any more."""
    return is_script(args) and any(a.endswith(b":state") for a in args) and args[-1] == b""


def are_deleting(redis):
    """How many of four partitions know of a deletion."""
    return sum(redis.command("HEXISTS", f"t:{{{tag}}}:state", "deleting") for tag in "0123")


def start_of_a_minute():
    """There are some seconds of this minute left."""
    wait_until(lambda: time.time() % 60 < 45, "a minute began", 20)


@pytest.fixture
def world(start_redis, start_proxy, start_tallyd, site):
    """The process that deletes has a proxy in front of Redis; another one knows the page's counters."""
    redis = start_redis()
    proxy = start_proxy(redis)
    leader = start_tallyd("--partitions", "4", redis=proxy, name="leader")
    wait_until(leader.leads, "it leads")
    other = start_tallyd("--partitions", "4", redis=redis, name="other").client()
    start_of_a_minute()
    count_on(other, site, 1, 2, 3)
    return redis, proxy, leader, other


def test_what_is_known_is_set(start_redis, start_tallyd, site):
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    start_of_a_minute()
    view(http, site)
    assert views(http, site) == 1
    incremented = calls(redis, "hincrby")
    assert incremented > 0
    count_on(http, site, 2, 3, 4, 5)
    # A visit's second event engages the visit, and later ones may add seconds to it: counters that were not there before.
    assert calls(redis, "hincrby") <= incremented + 2


def test_two_that_fold_in_turn(start_redis, start_tallyd, site):
    redis = start_redis()
    one, other = (start_tallyd(redis=redis, name=name).client() for name in ("one", "other"))
    for n in range(1, 9):
        http = one if n % 4 < 2 else other
        view(http, site)
        assert views(http, site) == n
    assert http.count("visits", site=site, page="/p") == 1
    keys = redis.command("KEYS", f"t:*:pv:{site}:m*")
    assert sum(int(redis.command("HGET", key, "/p") or 0) for key in keys) == 8
    assert sum(int(redis.command("HGET", key, "") or 0) for key in keys) == 8, "the site's"


def test_a_counter_that_somebody_else_has_changed(start_redis, start_tallyd, site):
    """What is known goes by the id of the last fold: with another one the counter is incremented, whatever it has."""
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    start_of_a_minute()
    count_on(http, site, 1, 2, 3)
    for key in redis.command("KEYS", f"t:*:pv:{site}:m*"):
        if redis.command("HEXISTS", key, "/p"):
            redis.command("HINCRBY", key, "/p", "100")
            redis.command("HSET", re.match(r"t:{\w+}:", key)[0] + "state", "fold", "another")
    view(http, site)
    assert views(http, site) == 104


def test_where_memory_is_full(start_redis, start_tallyd, site):
    """The same commands go by a script then, which compares the id itself."""
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    start_of_a_minute()
    count_on(http, site, 1, 2, 3)
    view(http, site)
    incremented = calls(redis, "hincrby")
    errors = http.metric("tallyd_redis_errors_total")
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert views(http, site) == 4
    assert http.metric("tallyd_redis_errors_total") > errors, "commands behind MULTI were refused"
    assert calls(redis, "hincrby") <= incremented + 2
    redis.command("CONFIG", "SET", "maxmemory", "0")
    view(http, site)
    assert views(http, site) == 5


def test_while_a_deletion_sweeps(world, site):
    """The page's counter is taken away between two folds of a process that knew it, and the state has that process's id."""
    redis, proxy, leader, other = world
    end = Fault("command-held", match=marks_an_end)
    sweep = proxy.arm(Fault("command-held", match=takes_away(site), then=end))
    assert leader.client().request("DELETE", f"/pages?site={site}&page=/p").status == 202
    assert sweep.done.wait(20) and are_deleting(redis) == 4
    view(other, site)
    assert views(other, site) == 3, "not taken away yet, and nothing more is counted"
    sweep.release()
    assert end.done.wait(20) and are_deleting(redis) == 4
    view(other, site)
    assert views(other, site) == 0
    end.release()
    wait_until(lambda: not are_deleting(redis) and not redis.command("KEYS", "t:*:deletions"), "it is over", 20)
    count_on(other, site, 1, 2, 3)


def test_redis_goes_back_behind_the_marks_of_a_deletion(world, site):
    """It is the rollup that finds the connection lost, and the deletion goes on over the next one.  The partitions do not know
    of the deletion any more."""
    redis, proxy, leader, other = world

    def is_first_mark(args):
        return is_script(args) and any(a.endswith(b":deletions") for a in args) and any(a.endswith(b":state") for a in args)

    wish = Fault("command-held", match=lambda args: args[0].upper() == b"GET" and args[1].endswith(b":wish"))
    scan = Fault("reply-held", match=lambda args: args[0].upper() == b"SCAN", then=wish)
    mark = proxy.arm(Fault("command-held", match=is_first_mark, then=scan))
    assert leader.client().request("DELETE", f"/pages?site={site}&page=/p").status == 202
    assert mark.done.wait(20)
    redis.command("SAVE")
    mark.release()
    assert scan.done.wait(20) and are_deleting(redis) == 4
    threading.Thread(target=lambda: leader.client().request("POST", "/rollup"), daemon=True).start()
    time.sleep(0.4)  # longer than a turn of the deletion: the rollup comes next
    scan.release()
    assert wish.done.wait(20)
    redis.kill()
    end = Fault("command-held", match=marks_an_end)
    sweep = proxy.arm(Fault("command-held", match=takes_away(site), then=end))
    redis.start()
    assert are_deleting(redis) == 0
    wish.release()
    assert sweep.done.wait(20)
    wait_until(lambda: other.get("/readyz").status == 200, "it is connected again", 20)
    for _ in range(3):
        view(other, site)
        assert views(other, site) > 0
    sweep.release()
    assert end.done.wait(20)
    view(other, site)
    assert views(other, site) == 0
    end.release()
    wait_until(lambda: not redis.command("KEYS", "t:*:deletions"), "it is over", 20)
    assert views(other, site) == 0
    count_on(other, site, 1, 2)


def test_a_key_that_expires_while_it_is_written_to_gets_its_expiry_again(start_proxy, start_tallyd):
    args = ("--partitions", "1", "--keep-minutes", "2h")
    world = World("2026-03-10 10:10", *args)
    try:
        proxy = start_proxy(world.redis)
        http = start_tallyd(*args, redis=proxy, name="other").client()
        event = {"site": "s", "page": "/p", "visitor": "v", "ts": epoch("2026-03-10 08:30")}
        for _ in range(2):  # and its keys' expiry is known
            http.accept(event)
            counted(http)
        world.clock.set(epoch("2026-03-10 10:30") + 58)
        http.accept({**event, "ts": epoch("2026-03-10 10:10")})
        counted(http)
        fold = proxy.arm(Fault("command-held", match=lambda a: a[0].upper() == b"EXEC"))
        http.accept(event)
        wait_until(lambda: fold.fired, "a fold is on its way")
        world.clock.set(epoch("2026-03-10 10:31") + 5)
        fold.release()
        counted(http)
        kept = {key: world.redis.command("PTTL", key) for key in world.redis.command("KEYS", "t:*:*v:s:m202603100830*")}
        assert -1 not in kept.values(), kept
    finally:
        world.close()
