"""A round of folds that reads a log's head from one server, and would read its entries from the next one.

Behind a proxy the answer of a second node is held, so that the round stands still between both readings, while the log's
primary dies and a replica takes over that lacks the last entry.  TALLYD_REDIS_SERVER= chooses the cluster's server.
"""

import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.cluster import Cluster
from lib.log import HELD
from lib.proxy import Fault, TcpProxy
from lib.waiting import wait_until

FEW = ("--partitions", "24", "--ack-replicas", "0", "--request-timeout", "20s")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.cluster


class SecondToLook:
    """The first reading of the heads over the second connection that reads any: a question's reader looks before the fold."""

    def __init__(self):
        self.seen = []

    def __call__(self, args):
        me = threading.get_ident()
        if args[0].upper() != b"HGETALL" or not args[1].endswith(b":heads"):
            return False
        if me not in self.seen:
            self.seen.append(me)
        return self.seen[1:2] == [me]


class World:
    """Three primaries.  The log lies on the first, which alone has a replica; the second answers through the proxy."""

    def __init__(self):
        self.cluster = Cluster(primaries=3, replicas=1, options=SAFE, node_timeout_ms=5000)
        self.cluster.nodes = self.cluster.nodes[:4]
        self.home, self.held, _, self.replica = self.cluster.nodes
        self.proxy = TcpProxy(self.held)
        self.held.argv += ["--cluster-announce-port", self.proxy.port]

    def stop(self):
        self.proxy.close()
        self.cluster.stop()

    def logs_at_home(self):
        return sum(self.home.command("XLEN", key) for key in self.home.command("KEYS", "t:*:log:*"))

    def looks_at_home(self):
        """How often a register of logs was read there."""
        return int(self.home.info("commandstats")["cmdstat_hgetall"].split("calls=")[1].split(",")[0])

    def replica_falls_behind(self):
        wait_until(lambda: self.replica.info("replication")["slave_repl_offset"] ==
                   self.home.info("replication")["master_repl_offset"], "it has all until now")
        self.replica.pause()
        self.home.command("CLIENT", "KILL", "TYPE", "replica")

    def replica_takes_over(self):
        self.home.kill()
        self.replica.resume()
        self.cluster.failover(self.replica, "TAKEOVER")


@pytest.fixture
def world():
    one = World()
    try:
        one.cluster.start()
        yield one
    finally:
        one.stop()


def writer_at_home(world, start_tallyd, site):
    """A tallyd that counts nothing, and whose log lies on the first node: where it lies is drawn at its start."""
    def start():
        before = world.logs_at_home()
        tallyd = start_tallyd(*FEW, redis=world.cluster, env=HELD)
        tallyd.client().accept([{"site": site, "page": "/drawn"}])
        if world.logs_at_home() > before:
            return tallyd
        tallyd.terminate()
        return None

    return wait_until(start, "its home is the first node", deadline_s=60)


def knows(http, address):
    """Has the process heard who has the partitions?"""
    answer = http.get("/cluster")
    return answer.status == 200 and address in {node["address"] for node in answer.json["nodes"]}


def test_what_the_next_server_lacks_is_not_passed(world, start_tallyd, site):
    """The writer appends the entry again.  It must be counted then: no cursor may stand behind it already."""
    reader = start_tallyd(*FEW, redis=world.cluster)
    writer = writer_at_home(world, start_tallyd, site)
    http = reader.client()
    http.count("pv", site=site, from_="now-1h", page="/drawn")  # the fold and a reader have their connections
    world.replica_falls_behind()
    writer.client().accept([{"site": site, "page": "/last"}])
    places = len(world.home.command("KEYS", "t:*:state"))
    looks = world.looks_at_home()
    fault = world.proxy.arm(Fault("reply-held", times=2, match=SecondToLook()))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: reader.client().count("pv", site=site, from_="now-1h", page="/last"))
        assert fault.arrived.wait(5), "the round stands still"
        wait_until(lambda: world.looks_at_home() >= looks + 2 * places, "the heads of the first node were read")
        writer.pause()  # it does not append again yet
        world.replica_takes_over()
        wait_until(lambda: knows(reader.client(), world.replica.address), "it is known who took over", deadline_s=2)
        assert not asked.done()
        fault.release()
        assert fault.done.wait(10), "what was read is used or given up: the fold looks anew"
        writer.signal(signal.SIGCONT)
        assert asked.result() in (0, 1), "for some time nobody has the entry"
    wait_until(lambda: http.count("pv", site=site, from_="now-1h", page="/last") == 1, "it is appended again, and counted")
    assert http.metric("tallyd_entries_missing_total") == 0, "no entry was passed by"
