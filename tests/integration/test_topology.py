"""What the topology sees of real clusters and Sentinels while nodes fail and slots move, through topology_tool.

The rules by themselves are units (test_topology.c, test_sentinel_round.c).  TALLYD_REDIS_SERVER= chooses the server.
"""

import os
import re
import subprocess
import threading
import time

import pytest

from lib.cluster import SLOTS, Cluster, running
from lib.process import ROOT
from lib.sentinel import SentinelGroup
from lib.waiting import wait_until

PARTITIONS = 16
LINE = re.compile(r"(\d+) version (\d+) unserved (\d+) owners (\S+)")

pytestmark = pytest.mark.cluster


class Watch:
    """A topology_tool that runs, and what it has printed."""

    def __init__(self, url, partitions=PARTITIONS):
        tool = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "topology_tool").resolve()
        self.process = subprocess.Popen([tool, url, str(partitions)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def maps(self):
        """[(version, unserved, [address of each partition's owner or "-"])] so far."""
        found = [LINE.fullmatch(line) for line in list(self.lines)]
        return [(int(m[2]), int(m[3]), m[4].split(",")) for m in found if m]

    def map(self):
        return self.maps()[-1]

    def owners(self):
        return self.map()[2] if self.maps() else []

    def unserved(self):
        return self.map()[1] if self.maps() else PARTITIONS

    def node(self, partition):
        """(id, address) of the owner."""
        seen = len(self.lines)
        self.tell("node", partition)
        line = wait_until(lambda: [x for x in self.lines[seen:] if x.startswith("node ")], "node")[0]
        return tuple(line.split()[1:])

    def wait(self, owners, what, deadline_s=20):
        """Until it sees these owners, all served."""
        try:
            wait_until(lambda: self.owners() == owners and self.unserved() == 0, what, deadline_s=deadline_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n" + "\n".join(self.lines[-6:]) + f"\nwanted {owners}") from None

    def close(self):
        """It ends by itself, soon, whatever it waits for."""
        began = time.monotonic()
        self.process.stdin.close()
        assert self.process.wait(10) == 0 and time.monotonic() - began < 3
        self.reader.join()
        self.process.stdout.close()


def partition_slots(cluster, n=PARTITIONS):
    """The slot of each partition: its tag is the smallest number whose slot lies in the p-th of n equal ranges."""
    found, node = [None] * n, cluster.nodes[0]
    for number in range(4000):
        slot = node.command("CLUSTER", "KEYSLOT", number)
        p = slot * n // SLOTS
        if p * SLOTS // n <= slot < (p + 1) * SLOTS // n and found[p] is None:
            found[p] = slot
        if None not in found:
            break
    return found


@pytest.fixture(scope="module")
def cluster():
    one = Cluster()
    try:
        one.start()
        one.slots = partition_slots(one)
        yield one
    finally:
        one.stop()


@pytest.fixture
def watch(cleanup):
    def start(url):
        one = Watch(url)
        cleanup.append(one.close)
        return one

    return start


def truth(cluster):
    """The address of each partition's owner, as a node of the cluster says."""
    owners = cluster.owners()
    return [next(n.address for first, last, n in owners if first <= slot <= last) for slot in cluster.slots]


def test_the_map_from_one_seed(healed, watch):
    seen = watch("redis-cluster://" + healed.nodes[5].address)
    seen.wait(truth(healed), "the map from a replica")
    owner = healed.owner(healed.slots[0])
    node_id, address = seen.node(0)
    assert (node_id, address) == (owner.id, owner.address)


def test_seeds_that_are_gone(healed, watch):
    dead = "127.0.0.1:1"
    seen = watch(f"redis-cluster://{dead},{healed.nodes[2].address}")
    seen.wait(truth(healed), "the map by the seed that lives", deadline_s=5)


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_primary_is_lost_and_its_replica_promoted(healed, watch, how):
    seen = watch(healed.url)
    before = truth(healed)
    seen.wait(before, "the map")
    lost = healed.owner(healed.slots[7])
    getattr(lost, how)()
    seen.tell("lost" if how == "kill" else "silent", lost.host, lost.port)
    others = [n for n in healed.nodes if n is not lost]
    n_lost = before.count(lost.address)
    wait_until(lambda: seen.unserved() == n_lost, "its partitions are not served")
    replica = wait_until(lambda: next((n for n in others if n.is_primary() and n.address not in before), None), "promoted")
    promoted = time.monotonic()
    seen.wait([replica.address if a == lost.address else a for a in before], "the new owner", deadline_s=10)
    assert time.monotonic() - promoted < 2, "it does not take long from the promotion on"
    (lost.start if how == "kill" else lost.resume)()
    versions = len(seen.maps())
    healed.wait_ok()
    for _ in range(3):  # whatever a deposed primary says on waking up
        seen.tell("lost", replica.host, replica.port)
        wait_until(lambda: len(seen.maps()) > versions and seen.unserved() == 0, "looked at again")
        versions = len(seen.maps())
    assert all(lost.address not in owners for _, _, owners in seen.maps()[-3:])


def test_an_ordered_failover_needs_no_hint_but_a_moved(healed, watch):
    seen = watch(healed.url)
    before = truth(healed)
    seen.wait(before, "the map")
    old = healed.owner(healed.slots[0])
    replica = healed.replicas_of(old)[0]
    healed.failover(replica)
    seen.tell("moved", 0, replica.host, replica.port)
    seen.wait([replica.address if a == old.address else a for a in before], "all partitions of the node, by one MOVED",
              deadline_s=3)


def test_slots_that_move(healed, watch):
    """An open slot is still its source's; it is the target's when it is closed."""
    seen = watch(healed.url)
    before = truth(healed)
    seen.wait(before, "the map")
    slot = healed.slots[3]
    source = healed.owner(slot)
    target = next(n for n in healed.primaries() if n is not source)
    tag = next(str(i) for i in range(4000) if source.command("CLUSTER", "KEYSLOT", i) == slot)
    for i in range(20):
        source.command("SET", f"{{{tag}}}:{i}", "x")
    healed.open_slot(slot, target)
    assert healed.move_keys(slot, source, target, most=7) == 7
    seen.tell("lost", target.host, target.port)  # a reason to look
    wait_until(lambda: len(seen.maps()) >= 3 and seen.unserved() == 0, "looked at")
    assert seen.owners() == before
    healed.move_keys(slot, source, target)
    healed.close_slot(slot, target)
    seen.tell("moved", 3, target.host, target.port)
    seen.wait([target.address if p == 3 else a for p, a in enumerate(before)], "the new owner")
    assert target.command("CLUSTER", "COUNTKEYSINSLOT", slot) == 20
    healed.move_slots(slot, slot, source)
    seen.tell("moved", 3, source.host, source.port)
    seen.wait(before, "back")


def test_a_cluster_that_is_not_ok_yet(watch, cleanup):
    cluster = Cluster(primaries=3, replicas=0, full_coverage=True)
    cleanup.append(cluster.stop)
    cluster.start_nodes()
    cluster.slots = partition_slots(cluster)
    seen = watch(cluster.url)
    wait_until(lambda: seen.unserved() == PARTITIONS and seen.owners() == ["-"] * PARTITIONS, "it has begun")
    cluster.join().wait_ok()
    seen.wait(truth(cluster), "the map, as soon as the cluster is ok", deadline_s=3)


def test_the_tool_ends_while_it_asks(watch):
    """An address that answers nobody; close() of the fixture must not wait for it."""
    seen = watch("redis-cluster://192.0.2.1:6379")  # TEST-NET: nobody is there
    wait_until(lambda: seen.maps(), "it runs")


# Sentinels


@pytest.fixture(scope="module")
def group():
    with running(SentinelGroup()) as one:
        yield one


@pytest.fixture
def whole(group):
    yield group
    group.bring_back()


def of(server):
    return [server.address] * PARTITIONS


def test_the_master_that_sentinels_name(whole, watch):
    master = whole.master()
    seen = watch(whole.url)
    seen.wait(of(master), "the master")
    assert seen.node(0) == (master.info("server")["run_id"], master.address)


def test_an_ordered_failover_is_heard_of(whole, watch):
    """No hint of ours: the Sentinels are asked each second, and one is listened to."""
    old = whole.master()
    seen = watch(whole.url)
    seen.wait(of(old), "the master")
    new = whole.failover()
    seen.wait(of(new), "the new master", deadline_s=3)


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_master_is_lost(whole, watch, how):
    old = whole.master()
    seen = watch(f"redis-sentinel://{whole.sentinels[1].address}/mymaster")
    seen.wait(of(old), "the master")
    with whole.patient():  # a machine that stands still for a second must not miss what lies before the failover
        getattr(old, how)()
        seen.tell("lost" if how == "kill" else "silent", old.host, old.port)
        wait_until(lambda: seen.unserved() == PARTITIONS, "nothing is served")
    new = whole.wait_new_master(old)
    seen.wait(of(new), "the new master", deadline_s=3)
    (old.start if how == "kill" else old.resume)()
    whole.wait_ok()
    owners = [m[2][0] for m in seen.maps()]
    assert old.address not in owners[owners.index(new.address):], "the old one says for a while that it is a master"


def test_sentinels_that_are_gone_are_no_outage(whole, watch):
    master = whole.master()
    seen = watch(whole.url)
    seen.wait(of(master), "the master")
    for sentinel in whole.sentinels:
        sentinel.kill()
    before = len(seen.maps())

    def doubted():  # the tool prints what is, and a doubt may be over before it looks
        seen.tell("lost", master.host, master.port)
        return any(unserved for _, unserved, _ in seen.maps()[before:])

    wait_until(doubted, "nothing is served", pause_s=0.1)
    wait_until(lambda: seen.unserved() == 0, "asked the master itself")
    assert seen.owners() == of(master)


def test_a_name_that_no_sentinel_knows(whole, watch):
    seen = watch(whole.url.replace("/mymaster", "/another"))
    wait_until(lambda: seen.maps(), "it runs")
    seen.tell("node", 0)
    wait_until(lambda: "node nobody" in seen.lines, "nobody")
