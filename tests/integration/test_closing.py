"""The leader closes the logs of writers that are gone, and nobody else's; what a Redis may lose is known and told."""

import re
import threading
import time

import pytest

from lib.clock import FakeClock, epoch
from lib.log import FakeLog, commands, states
from lib.process import ROOT, Redis, short_directory
from lib.waiting import wait_until

FOUR = ("--partitions", "4")


@pytest.fixture
def server(start_redis):
    return start_redis(appendonly=True)  # fsync always: it never goes back


def settled(tallyd):
    """No log is missing anything: a question is answered."""
    return tallyd.client().get("/uv", site="s", from_="now-1h", to="now").status == 200


def test_a_silent_log_is_closed(server, start_tallyd):
    tallyd = start_tallyd(*FOUR, redis=server)
    keys = states(server)
    fields = {key: sorted(server.command("HKEYS", key)) for key in keys}
    gone, empty, young, uncounted = (FakeLog(server, n, silent_s=s) for n, s in ((3, 31), (0, 31), (3, 5), (3, 31)))
    for log in (gone, young):
        log.cursor("3")
    uncounted.cursor("3:1", keys[2:3])  # before the others: the leader may look at any moment
    uncounted.cursor("3", keys[:2] + keys[3:])
    wait_until(lambda: not gone.is_open() and not empty.is_open(), "both are closed")
    wait_until(lambda: set(gone.cursors()) == {None}, "and their cursors are gone")
    assert server.command("EXISTS", gone.stream) == 0 and server.command("EXISTS", young.stream) == 1
    assert young.is_open() and young.cursors() == ["3"] * 4
    assert uncounted.is_open() and sorted(uncounted.cursors()) == ["3", "3", "3", "3:1"]
    uncounted.cursor("4", keys[2:3])  # more than there is: a head that went back.  Nothing is missing
    wait_until(lambda: not uncounted.is_open(), "what is counted now is closed", deadline_s=10)
    wait_until(lambda: set(uncounted.cursors()) == {None}, "and its cursors are gone")
    young.head(3, silent_s=31)
    wait_until(lambda: not young.is_open() and set(young.cursors()) == {None}, "what was young is old now")
    assert all(set(server.command("HKEYS", key)) >= set(fields[key]) for key in keys)
    assert tallyd.alive() and settled(tallyd)


def test_half_a_minute_is_silence(start_redis, start_tallyd):
    """By Redis's clock, which stands still meanwhile."""
    directory = short_directory()
    clock = FakeClock(directory, "2026-03-10 10:00:00")
    redis = start_redis(directory, clock=clock, appendonly=True)
    start_tallyd(*FOUR, redis=redis)
    clock.stand_still(epoch("2026-03-10 10:01:00"))
    silent, heard_of = (FakeLog(redis, 3, silent_s=s) for s in (30, 25))
    for log in (heard_of, silent):
        log.cursor("3")
    wait_until(lambda: not silent.is_open(), "it is closed", deadline_s=20)
    assert heard_of.is_open() and heard_of.cursors() == ["3"] * 4


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_cursors_without_a_head_go(start_redis, start_tallyd, fsync):
    """A leader died between the head and the cursors."""
    server = start_redis(appendonly=True, options=("--appendfsync", fsync))
    start_tallyd(*FOUR, redis=server)
    stray, open_log = FakeLog(server, 1), FakeLog(server, 1)
    stray.cursor("1", states(server)[1:3])
    open_log.cursor("1")
    stray.close()
    before = {key: sorted(set(server.command("HKEYS", key)) - {stray.id}) for key in states(server)}
    wait_until(lambda: set(stray.cursors()) == {None}, "they are gone", deadline_s=20)
    assert open_log.cursors() == ["1"] * 4
    assert {key: sorted(server.command("HKEYS", key)) for key in states(server)} == before


def test_a_log_whose_head_has_moved_stays(server, start_tallyd):
    """Compare and delete: the head is another one than when the cursors were read."""
    start_tallyd(*FOUR, redis=server).terminate()
    lua = (ROOT / "storage/lua/close_log.lua").read_text()
    log = FakeLog(server, 3, silent_s=31)
    log.cursor("3")
    seen = server.command("HGET", log.heads, log.id)
    for head in (seen.replace("3 ", "4 ", 1), re.sub(r"\d+$", lambda m: str(int(m[0]) + 1), seen), ""):
        server.command("HSET", log.heads, log.id, head)
        assert server.command("EVAL", lua, 2, log.heads, log.stream, log.id, seen) == 0
        assert log.is_open() and server.command("XLEN", log.stream) == 3
    server.command("HSET", log.heads, log.id, seen)
    assert server.command("EVAL", lua, 2, log.heads, log.stream, log.id, seen) == 1
    assert not log.is_open() and server.command("EXISTS", log.stream) == 0
    assert server.command("EVAL", lua, 2, log.heads, log.stream, log.id, seen) == 0


def refusals(redis):
    """How often a command was refused for want of memory."""
    found = re.search(r"errorstat_OOM:count=(\d+)", redis.command("INFO", "errorstats"))
    return int(found[1]) if found else 0


def test_a_full_redis_does_not_look_like_a_dead_writer(server, start_tallyd):
    """Nobody can append or beat there.  Nothing is closed until there is memory again."""
    tallyd = start_tallyd(*FOUR, redis=server)
    wait_until(tallyd.leads, "it leads")
    server.command("CONFIG", "SET", "maxmemory", "0")
    log = FakeLog(server, 1)
    log.cursor("1")
    log.head(1, silent_s=31)
    server.command("CONFIG", "SET", "maxmemory", "1")
    looked = commands(server, "hkeys")
    wait_until(lambda: commands(server, "hkeys") > looked + 4 or not log.is_open(), "the leader has looked twice", deadline_s=20)
    assert log.is_open() and log.cursors() == ["1"] * 4 and refusals(server) > 0
    server.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: not log.is_open() and set(log.cursors()) == {None}, "then it is closed")


WARNINGS = {
    "no file": ({}, (), "no append-only file"),
    "no fsync": ({"appendonly": True}, ("--appendfsync", "no"), "appendfsync is no"),
    "every second": ({"appendonly": True}, ("--appendfsync", "everysec"), None),
    "always": ({"appendonly": True}, (), None),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_what_a_redis_may_lose_is_told_once(start_redis, start_tallyd, name):
    how, options, warning = WARNINGS[name]
    server = start_redis(options=options, **how)
    tallyd = start_tallyd(*FOUR, redis=server)
    told = "Redis may lose what was acknowledged"
    assert tallyd.log_text().count(told) == (warning is not None) and (warning or "") in tallyd.log_text()
    server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: tallyd.log_text().count("connected to Redis") == 2, "it is connected again")
    assert tallyd.log_text().count(told) == (warning is not None)
    if warning is None:
        server.command("CONFIG", "SET", "appendfsync", "no")
        server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(lambda: "appendfsync is no" in tallyd.log_text(), "a change is told")


def test_a_redis_that_does_not_tell(cleanup, start_tallyd):
    redis = Redis(short_directory(), appendonly=True, options=("--rename-command", "CONFIG", '""'))
    cleanup.append(redis.stop)
    redis.start()
    tallyd = start_tallyd(*FOUR, redis=redis)
    assert "CONFIG GET appendfsync is not permitted" in tallyd.log_text()


def test_a_partition_that_gets_nothing_passes_by(server, start_tallyd):
    """cursors.lua: each stripe's position moves on, those that are beyond the entries stay, and missing entries are said."""
    start_tallyd(*FOUR, redis=server).terminate()
    lua = (ROOT / "storage/lua/cursors.lua").read_text()
    log = FakeLog(server, 9)
    state = states(server)[0]
    for before, result, after in (
            (None, 0, "7"), ("4", 0, "7"), ("5:3", 0, "7"), ("7", 0, "7"), ("8:2", 0, "8:2"), ("9", 0, "9"), ("3", 1, "3"), ("4:3", 1, "4:3"),
            ("5*4,6:1,4*27", 0, "7*4,7,7*27"), ("9*4,8:2,4*27", 0, "9*4,8:2,7*27"), ("9*4,3,4*27", 1, "9*4,3,4*27"),
            ("9*4,4:1,4*27", 1, "9*4,4:1,4*27"), ("7,4*31", 0, "7,7*31")):
        server.command("HDEL", state, log.id)
        if before:
            server.command("HSET", state, log.id, before)
        first = 4 if before else 0
        assert server.command("EVAL", lua, 1, state, log.id, first, 7) == result, before
        assert server.command("HGET", state, log.id) == after, before
    assert server.command("EVAL", lua, 1, "t:{nowhere}:state", log.id, 4, 7) == -1


def test_a_stop_does_not_wait_for_a_dead_leader(server, start_tallyd):
    """A rollup that was asked for waits for the lease of the process that leads.  SIGTERM ends that wait with a 503."""
    leader = start_tallyd(redis=server)
    wait_until(leader.leads, "it leads")
    leader.kill()
    tallyd = start_tallyd(redis=server)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(tallyd.client().request("POST", "/rollup")))
    asking.start()
    wait_until(lambda: tallyd.client().metric("tallyd_http_suspended") == 1, "it waits for the leader's pass")
    began = time.monotonic()
    tallyd.terminate()
    asking.join()
    assert time.monotonic() - began < 3, "the leader's lease lasts longer"
    assert answers[0].status == 503 and "stop" in answers[0].json["detail"], answers[0]
