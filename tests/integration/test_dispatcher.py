"""Commands to many nodes of a real cluster, through dispatcher_tool: replies in order, and what nodes say while slots move, nodes
fail and scripts are flushed.  TALLYD_REDIS_SERVER= chooses the server."""

import hashlib
import os
import subprocess
import threading
import time

import pytest

from lib.cluster import Cluster, tag_and_slot
from lib.process import ROOT
from lib.waiting import wait_until

PARTITIONS = 16
WAIT_MS = 8000

pytestmark = pytest.mark.cluster


class Tool:
    def __init__(self, url, *more):
        tool = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "dispatcher_tool").resolve()
        self.process = subprocess.Popen([tool, url, str(PARTITIONS), *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *groups, ms=WAIT_MS):
        """([reply, ..], "end" or why it ended early); groups as dispatcher_tool takes them, words separated by blanks."""
        self.process.stdin.write("".join(g + "\n" for g in groups) + f"go {ms}\n")
        self.process.stdin.flush()
        lines = []
        while not lines or lines[-1] not in ("end", "lost", "late", "refused"):
            line = self.process.stdout.readline()
            assert line, f"dispatcher_tool ended with {self.process.wait()}"
            lines.append(line.rstrip("\n"))
        return lines[:-1], lines[-1]

    def all(self, *groups, ms=WAIT_MS):
        replies, end = self.ask(*groups, ms=ms)
        assert end == "end", (end, replies)
        return replies

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(10) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def cluster():
    one = Cluster()
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture
def healed(cluster):
    """The cluster of this file, empty, with all its nodes; they are brought back at the end."""
    for node in cluster.primaries():
        node.command("FLUSHALL")
    yield cluster
    cluster.bring_back()


@pytest.fixture
def tool(healed, cleanup):
    one = Tool(healed.url)
    cleanup.append(one.close)
    return one


@pytest.fixture
def pipeline(healed, cleanup):
    """storage/read's pipeline over the dispatcher."""
    one = Tool(healed.url, "pipeline")
    cleanup.append(one.close)
    return one


def other(cluster, node):
    return next(n for n in cluster.primaries() if n is not node)


def later(seconds, function, *args):
    timer = threading.Timer(seconds, function, args)
    timer.start()
    return timer


def test_replies_come_in_the_order_of_the_questions(tool):
    """Whichever node answers first; single commands, transactions and ordered ones mixed; one node does not wait for another
    one's reader: replies of a megabyte each."""
    order = [7, 0, 15, 8, 1, 9, 7, 3, 12, 0, 5]
    assert tool.all(*[f"{p} single SET a{{}} of{p}" for p in range(PARTITIONS)]) == ["OK"] * PARTITIONS
    assert tool.all(*[f"{p} single GET a{{}}" for p in order]) == [f"of{p}" for p in order]
    assert tool.all(*[f"{p} multi GET a{{}};SET b{{}} {p};GET b{{}}" for p in order]) == [f"of{p} OK {p}" for p in order]
    assert tool.all(*[f"{p} reads GET a{{}};HMGET none{{}} x y;GET b{{}}" for p in order]) == [f"of{p} nil nil {p}" for p in order]
    assert tool.all(*[f"{p} ordered INCR c{{}};INCR c{{}};GET a{{}}" for p in (3, 14)]) == ["1", "2", "of3", "1", "2", "of14"]
    tool.all(*[f"{p} single SETRANGE big{{}} 999999 x" for p in range(PARTITIONS)])
    assert tool.all(*[f"{p} single STRLEN big{{}}" for p in order] + [f"{p} single GETRANGE big{{}} 999999 -1" for p in order]) == \
        ["1000000"] * len(order) + ["x"] * len(order)
    assert tool.all("2 single LPUSH a{} x", "3 single GET a{}")[0].startswith("-WRONGTYPE"), "an error of its own is an answer"
    assert tool.all("2 reads GET a{};LLEN a{};GET none{}", "3 single GET a{}") == [
        "-WRONGTYPE Operation against a key holding the wrong kind of value", "of3"], "one error is the answer to all"
    assert tool.all("2 multi SETNX a{};GET a{}", "3 single GET a{}") == [
        "-ERR wrong number of arguments for 'setnx' command", "of3"], "the error that made a transaction void"


def test_slots_move_between_two_questions(healed, tool):
    """All that was sent to the old owner goes to the new one, in its place among the replies."""
    tool.all(*[f"{p} single SET a{{}} {p}" for p in range(PARTITIONS)])
    moved = [tag_and_slot(p, PARTITIONS)[1] for p in (0, 1, 9)]
    sources = [healed.owner(slot) for slot in moved]
    for slot, source in zip(moved, sources):
        healed.move_slots(slot, slot, other(healed, source))
    for _ in range(2):
        assert tool.all(*[f"{p} single GET a{{}}" for p in range(PARTITIONS)]) == [str(p) for p in range(PARTITIONS)]
        assert tool.all(*[f"{p} multi GET a{{}};GET a{{}}" for p in (9, 0, 8)]) == ["9 9", "0 0", "8 8"]
        assert tool.all(*[f"{p} reads GET a{{}};GET a{{}}" for p in (9, 0, 8)]) == ["9 9", "0 0", "8 8"]
    for slot, source in zip(moved, sources):
        healed.move_slots(slot, slot, source)
    replies, end = tool.ask(*["1 ordered GET a{};GET a{}"])
    assert (replies, end) in ((["1", "1"], "end"), ([], "lost")), "ordered commands begin anew"
    assert tool.all("1 ordered GET a{};GET a{}", "0 single GET a{}") == ["1", "1", "0"]


def test_a_slot_that_is_open(healed, tool):
    """Half of the keys are moved.  Single keys are found on either side.  A transaction, or several readings, over both wait
    until the slot is closed, and by their deadline at most; nothing is made twice."""
    tag, slot = tag_and_slot(5, PARTITIONS)
    tool.all(*[f"5 single SET k{i}{{}} {i}" for i in range(20)], "6 single SET k{} other")
    source = healed.owner(slot)
    target = other(healed, source)
    healed.open_slot(slot, target)
    assert healed.move_keys(slot, source, target, most=10) == 10
    mixed = [f"5 single GET k{i}{{}}" for i in range(20)]
    assert tool.all(*mixed, "6 single GET k{}", "5 single SET new{} n", "5 single INCR new2{}") == \
        [str(i) for i in range(20)] + ["other", "OK", "1"]
    assert f"new{{{tag}}}" not in source.command("CLUSTER", "GETKEYSINSLOT", slot, 100), "the target alone makes new keys"
    everything = "5 multi " + ";".join(f"GET k{i}{{}}" for i in range(20))
    began = time.monotonic()
    assert tool.ask("6 single GET k{}", everything, "6 single GET k{}", ms=700) == (["other"], "late")
    assert 0.4 < time.monotonic() - began < 1.5
    here = [key for key in source.command("CLUSTER", "GETKEYSINSLOT", slot, 100) if key.startswith("k")]
    there = next(f"k{i}" for i in range(20) if f"k{i}{{{tag}}}" not in here)
    stays = here[0].partition("{")[0]
    for pair in ((there, stays), (stays, there)):
        assert tool.ask(f"5 reads GET {pair[0]}{{}};GET {pair[1]}{{}}", ms=300) == ([], "late"), "neither is missing"
    assert tool.all(f"5 reads GET {there}{{}}", f"5 reads GET {stays}{{}};GET {stays}{{}}") == [there[1:], f"{stays[1:]} {stays[1:]}"]
    assert tool.ask("5 ordered GET k1{};GET k2{}", ms=700)[1] in ("end", "lost")

    def close():
        healed.move_keys(slot, source, target)
        healed.close_slot(slot, target)

    timer = later(0.5, close)
    assert tool.all(everything, "6 single GET k{}") == [" ".join(str(i) for i in range(20)), "other"]
    timer.join()
    assert tool.all("5 single GET new2{}") == ["1"]
    healed.move_slots(slot, slot, source)


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_primary_is_lost(healed, tool, how):
    """What was under way there is told as lost, and what is asked next waits for the replica that takes over."""
    slot = tag_and_slot(2, PARTITIONS)[1]
    tool.all(*[f"{p} single SET a{{}} {p}" for p in range(PARTITIONS)])
    lost = healed.owner(slot)
    for node in healed.primaries():
        node.command("WAIT", 1, 1000)
    getattr(lost, how)()
    groups = [f"{p} single GET a{{}}" for p in range(PARTITIONS)]
    wanted = [str(p) for p in range(PARTITIONS)]
    ended = []

    def answered():
        replies, end = tool.ask(*groups, ms=10000)
        ended.append(end)
        assert replies == wanted[:len(replies)], "never a wrong one"
        return end == "end"

    wait_until(answered, "all is answered again", deadline_s=20)
    assert set(ended[:-1]) <= {"lost", "late"} and len(ended) < 40, ended
    (lost.start if how == "kill" else lost.resume)()
    assert tool.all(*groups) == wanted


def test_an_ordered_failover(healed, tool):
    tool.all(*[f"{p} single SET a{{}} {p}" for p in range(PARTITIONS)])
    old = healed.owner(tag_and_slot(12, PARTITIONS)[1])
    replica = healed.replicas_of(old)[0]
    healed.failover(replica)
    wait_until(lambda: not old.is_primary(), "the old primary is a replica")
    assert tool.all(*[f"{p} multi GET a{{}};SET b{{}} 1" for p in range(PARTITIONS)]) == [f"{p} OK" for p in range(PARTITIONS)]


def test_scripts_are_flushed(healed, tool):
    """They are loaded on a new connection, and the call goes again."""
    sha = hashlib.sha1((ROOT / "storage/lua/heartbeat.lua").read_bytes()).hexdigest()
    call = [f"{p} single EVALSHA {sha} 1 heads{{}} 0123456789abcdef" for p in range(PARTITIONS)]
    assert tool.all(*call) == ["0"] * PARTITIONS
    for node in healed.primaries():
        node.command("SCRIPT", "FLUSH")
    assert tool.all(*call) == ["0"] * PARTITIONS
    assert tool.all(*call) == ["0"] * PARTITIONS


def test_nobody_answers(cleanup):
    """The deadline is kept."""
    one = Tool("redis-cluster://127.0.0.1:1")
    cleanup.append(one.close)
    began = time.monotonic()
    assert one.ask("0 single GET a{}", "1 single GET a{}", ms=600) == ([], "late")
    assert time.monotonic() - began < 2


# The pipeline, through which most questions go


def test_a_pipeline_over_all_nodes(pipeline):
    order = [7, 0, 15, 8, 1, 9, 7, 3]
    assert pipeline.all(*[f"{p} single SET a{{}} of{p};INCR n{{}}" for p in range(PARTITIONS)]) == ["OK", "1"] * PARTITIONS
    assert pipeline.all(*[f"{p} single GET a{{}}" for p in order]) == [f"of{p}" for p in order]
    assert pipeline.all(*[f"{p} ordered INCR n{{}};INCR n{{}}" for p in (3, 14, 2)]) == ["2", "3"] * 3
    replies, end = pipeline.ask("3 single GET a{}", "4 single LPUSH a{} x", "5 single GET a{}")
    assert (replies, end) == (["of3"], "refused"), "an error ends it, and what follows is taken and dropped"
    assert pipeline.all("5 single GET a{}", "4 single GET a{}") == ["of5", "of4"]


def test_a_cursor_is_good_on_one_node_only(healed, pipeline):
    """A slot moves between two pieces of a scan: it begins anew, and is whole then."""
    slot = tag_and_slot(4, PARTITIONS)[1]
    for i in range(50):
        pipeline.all("4 single SADD s{} " + " ".join(f"m{i}x{j}" for j in range(40)))
    source = healed.owner(slot)
    replies = pipeline.all("4 single SSCAN s{} 0 COUNT 100")
    cursor = replies[0].split()[0]
    healed.move_slots(slot, slot, other(healed, source))
    assert pipeline.ask(f"4 single SSCAN s{{}} {cursor} COUNT 100") == ([], "lost")

    def scan():
        at, found = "0", set()
        while True:
            lines, end = pipeline.ask(f"4 single SSCAN s{{}} {at} COUNT 100")
            if end == "lost":
                return None  # begun anew, as operations are
            at, *members = lines[0].split()
            found.update(members)
            if at == "0":
                return found

    assert len(wait_until(scan, "a whole scan")) == 2000
    healed.move_slots(slot, slot, source)


def test_a_pipeline_that_keeps_its_order(healed, pipeline):
    """Where half of its keys have moved it is not carried out in another order, but ends; after the slot is closed it goes."""
    slot = tag_and_slot(10, PARTITIONS)[1]
    pipeline.all(*[f"10 single SET k{i}{{}} {i}" for i in range(10)])
    source = healed.owner(slot)
    target = other(healed, source)
    healed.open_slot(slot, target)
    healed.move_keys(slot, source, target, most=5)
    ordered = "10 ordered " + ";".join(f"GET k{i}{{}}" for i in range(10))
    assert pipeline.ask(ordered, ms=1000)[1] == "lost"
    assert pipeline.all(*[f"10 single GET k{i}{{}}" for i in range(10)]) == [str(i) for i in range(10)]
    healed.move_keys(slot, source, target)
    healed.close_slot(slot, target)
    wait_until(lambda: pipeline.ask(ordered)[1] == "end", "in order at the new owner")
    healed.move_slots(slot, slot, source)


def test_a_script_in_an_open_slot_is_whole(healed, tool):
    """A key that a script deletes cannot be made again there: the script would break off half way.  So none deletes a key that
    it goes on with."""
    tag, slot = tag_and_slot(6, PARTITIONS)
    source = healed.owner(slot)

    def call(script, *words):
        sha = hashlib.sha1((ROOT / f"storage/lua/{script}.lua").read_bytes()).hexdigest()
        return tool.all(f"6 single EVALSHA {sha} {' '.join(words)}")[0]

    tool.all("6 single HSET old{} last 7", "6 single EXPIRE old{} 1000", "6 single HSET shard{} id 9 n 2 0 5 last 3 drop 1")
    healed.open_slot(slot, other(healed, source))
    assert call("filter_create", "1", "old{}", "1000", "0.01", "2", "1", "1") == "1"
    assert call("filter_drop", "1", "shard{}", "9", "over") == "2"
    fields = source.command("HGETALL", f"old{{{tag}}}")
    assert sorted(fields[::2]) == ["capacity", "error", "expansion", "id", "rules", "shards"]
    assert source.command("TTL", f"old{{{tag}}}") == -1
    assert source.command("HGETALL", f"shard{{{tag}}}") == ["last", "9"]
    assert source.command("TTL", f"shard{{{tag}}}") > 7000
    for node in (source, other(healed, source)):
        node.command("CLUSTER", "SETSLOT", slot, "STABLE")
