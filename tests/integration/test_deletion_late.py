"""Deletions and what comes late: a leader that slept, a command that lay in the network, an instant that has passed."""

import signal
import threading
import time

import pytest

from lib.proxy import Fault, is_script
from lib.waiting import wait_until

TAGS = ("3", "2", "1", "0")  # of the partitions, as storage/schema/partition.c names them
PARTITIONS = len(TAGS)
FEW = ("--partitions", str(PARTITIONS))
PAGES = [f"/{i}" for i in range(40)]  # some in each partition


def is_mark(args, site, partition):
    """The script that tells a partition of the site's deletion.  Its instant is behind the site; 0: there is none yet."""
    takes_away = b"HDEL" in args or b"SREM" in args
    return is_script(args) and not takes_away and site.encode() in args and f"t:{{{TAGS[partition]}}}:state".encode() in args


def instant(args, site):
    return int(args[args.index(site.encode()) + 1])


def is_renewal(args):
    return is_script(args) and any(a.endswith(b":lock") for a in args)


def is_list(args):
    return args[0].upper() == b"HGETALL" and args[1].endswith(b":deletions")


def views(site, at, user="a"):
    return [{"site": site, "page": p, "user": user, "ts": at} for p in PAGES]


def counts(http, site):
    """How many views the pages have; one figure if each has been counted as often as the others."""
    return {http.count("pv", site=site, page=p) for p in PAGES}


def delete(http, site):
    assert http.request("DELETE", f"/sites/{site}").status == 202


def await_over(http, site):
    wait_until(lambda: http.get(f"/sites/{site}").json.get("state") != "deleting", "the deletion is over", 40)


def await_taken(http, events):
    """As soon as the process has heard that the deletion is over."""
    wait_until(lambda: http.post(events).status == 202, "events are taken again", 10)


def tombstones(redis):
    return "".join(redis.command("HGET", key, "deleted") or "" for key in redis.command("KEYS", "t:*:state"))


def test_a_leader_that_slept_does_not_begin_what_is_over(start_redis, start_proxy, start_tallyd, site):
    """It read the list and was stopped (SIGSTOP) before its first mark, and the leader before it brought the deletion to its
    end meanwhile.  Events that are acknowledged after that are counted."""
    redis = start_redis()
    slow, stuck = start_proxy(redis), start_proxy(redis)
    old = start_tallyd(*FEW, redis=slow, name="old")
    wait_until(old.leads, "the old one leads")
    http, at = old.client(), int(time.time()) - 300
    http.accept(views(site, at))
    assert counts(http, site) == {1}
    # From a renewal on no other one passes, so that it leads to the end of its lease though somebody else has the lock.
    renewed = slow.arm(Fault("reply-late", match=is_renewal, late_s=0, then=Fault("command-before", times=1000, match=is_renewal)))
    wait_until(renewed.done.is_set, "its lease is fresh")
    redis.command("DEL", *redis.command("KEYS", "t:*:lock"))
    young = start_tallyd(*FEW, redis=stuck, name="young")
    wait_until(young.leads, "the young one leads")
    caught = threading.Event()

    def catch(args):
        if is_mark(args, site, 0) and not caught.is_set():
            stuck.flow.clear()
            young.pause()
            caught.set()
        return False

    stuck.arm(Fault("error", match=catch))
    slow.delay_s = 0.15  # so that the young one reads the list before the old one is done
    delete(http, site)
    assert caught.wait(5), "the young one has read the list"
    slow.delay_s = 0
    await_over(http, site)
    assert old.leads(), "it was the old one that did it"
    await_taken(http, views(site, at))
    assert counts(http, site) == {1}
    stuck.flow.set()
    young.signal(signal.SIGCONT)
    for user in ("b", "c"):
        await_taken(young.client(), views(site, at, user))
    assert counts(young.client(), site) == {3}
    assert " 0 " not in tombstones(redis)


@pytest.mark.some(2)
@pytest.mark.parametrize("what", ["first mark", "last mark", "last mark of the end", "sweep"])
def test_a_command_that_comes_after_the_end(start_redis, start_proxy, start_tallyd, site, what):
    """It lay in the network while its process, which had no answer, brought the deletion to its end over another connection."""
    redis = start_redis()
    proxy = start_proxy(redis)
    http, at = start_tallyd(*FEW, redis=proxy).client(), int(time.time()) - 300
    http.accept(views(site, at))
    assert counts(http, site) == {1}
    matches = {
        "first mark": lambda args: is_mark(args, site, 0),
        "last mark": lambda args: is_mark(args, site, PARTITIONS - 1),
        "last mark of the end": lambda args: is_mark(args, site, PARTITIONS - 1) and instant(args, site) > 0,
        "sweep": lambda args: is_script(args) and b"HDEL" in args and any(f":pv:{site}:".encode() in a for a in args),
    }
    fault = proxy.arm(Fault("command-stuck", match=matches[what]))
    delete(http, site)
    assert fault.done.wait(10)
    await_over(http, site)
    await_taken(http, views(site, at))
    assert counts(http, site) == {1}
    before = tombstones(redis)
    fault.deliver()
    assert tombstones(redis) == before and " 0 " not in before
    http.accept(views(site, at, "b"))
    assert counts(http, site) == {2}


def test_an_instant_that_passes_before_all_know_it(start_redis, start_proxy, start_tallyd, site):
    """The leader is stopped at its marks of the end until their instant has passed, and once more at the mark behind them.  A
    process that has heard of nothing takes a request then: it is counted whole, or not at all."""
    redis = start_redis()
    proxy, deaf = start_proxy(redis), start_proxy(redis)
    leader = start_tallyd(*FEW, redis=proxy, name="leader")
    wait_until(leader.leads, "it leads")
    other = start_tallyd(*FEW, redis=deaf, name="other").client()
    other.accept({"site": site, "page": "/", "user": "a"})
    assert other.count("pv", site=site) == 1
    deaf.arm(Fault("error", times=10**6, match=is_list, text="ERR not now"))
    stopped, marks = threading.Event(), []

    def stop(args):
        """At two marks of the end, for 1.4 s each, as an answer is awaited longer than that; and at the first one behind them."""
        for partition in range(PARTITIONS):
            if is_mark(args, site, partition):
                marks.append((partition, instant(args, site) > 0))
                if len(marks) in (PARTITIONS + 2, PARTITIONS + 3, 2 * PARTITIONS + 1):
                    leader.pause()
                    stopped.set()
        return False

    proxy.arm(Fault("error", match=stop))
    delete(leader.client(), site)
    for _ in range(2):
        assert stopped.wait(10)
        stopped.clear()
        time.sleep(1.4)  # the fault itself
        leader.signal(signal.SIGCONT)
    assert stopped.wait(10), "it marks anew"
    ends = [(p, True) for p in (*range(1, PARTITIONS), 0)]  # partition 0 last
    assert marks[:-1] == [(p, False) for p in range(PARTITIONS)] + ends and marks[-1][0] == 0, marks
    assert other.post(views(site, int(time.time()), "b")).status == 202, "it has heard of nothing"
    other.count("pv", site=site)  # folds
    leader.signal(signal.SIGCONT)
    await_over(other, site)
    assert counts(other, site) in ({0}, {1})


def test_marks_that_take_longer_than_their_instant_is_ahead(start_redis, start_proxy, start_tallyd, site):
    """The way to Redis is so slow that the marks of the end outlast the second and a half that the instant of a page's deletion
    lies ahead.  Each next instant lies further ahead, so the deletion ends all the same."""
    redis = start_redis()
    proxy = start_proxy(redis)
    leader = start_tallyd(*FEW, redis=proxy)
    http = leader.client()
    wait_until(leader.leads, "it leads")
    http.accept(views(site, int(time.time())))
    assert counts(http, site) == {1}
    instants = set()

    def slow_at_the_end(args):
        """Four marks, and a look at the clock behind them, take two seconds; what follows is quick again."""
        values = args[3 + int(args[2]):] if is_script(args) else []
        if len(values) in (6, 7) and values[1].startswith(site.encode()):
            is_end = values[2] != b"0"
            instants.update({values[2]} if is_end else ())
            proxy.delay_s = 0.4 if is_end else 0.0
        elif values and any(a.endswith(b":deletions") for a in args):
            proxy.delay_s = 0.0
        return False

    proxy.arm(Fault("error", match=slow_at_the_end))
    assert http.request("DELETE", f"/pages?site={site}&page=/1").status == 202
    wait_until(lambda: len(instants) > 1, "an instant has passed", 40)
    wait_until(lambda: not redis.command("KEYS", "t:*:deletions"), "the deletion is over", 60)


def test_partitions_that_have_gone_back_behind_the_end(start_redis, start_tallyd, site):
    """Their server has, and that of the record has not: by hand here, on one server, before the instant has come."""
    redis = start_redis()
    http, at = start_tallyd(*FEW, redis=redis).client(), int(time.time()) - 300
    http.accept(views(site, at))
    assert counts(http, site) == {1}
    before = []

    def is_marked():
        """All partitions know of the deletion, and it has not ended."""
        states = [redis.command("HMGET", f"t:{{{tag}}}:state", "deleting", "deleted") for tag in TAGS]
        before[:] = states if all(deleting and " 0 " in deleted for deleting, deleted in states) else before
        return before

    delete(http, site)
    wait_until(is_marked, "all partitions are marked", 10, pause_s=0)
    wait_until(lambda: " 0 " not in tombstones(redis), "all have heard of the end", 20, pause_s=0.01)
    for tag, (deleting, deleted) in list(zip(TAGS, before))[1:]:  # partition 0 goes back with the record
        redis.command("HSET", f"t:{{{tag}}}:state", "deleting", deleting, "deleted", deleted)
        redis.command("HSET", f"t:{{{tag}}}:uid:{site}", "a", 0)  # what was taken away is back
    wait_until(lambda: not redis.command("KEYS", "t:*:deletions"), "the record is gone", 20)
    assert redis.command("KEYS", f"t:*:uid:{site}") == []
    assert " 0 " not in tombstones(redis)
    assert not any(redis.command("HEXISTS", f"t:{{{tag}}}:state", "deleting") for tag in TAGS)
    await_taken(http, views(site, at))
    assert counts(http, site) == {1}
