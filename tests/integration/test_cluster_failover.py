"""A cluster whose nodes change under load: failovers that ask nobody, nodes that come back at other addresses.
TALLYD_REDIS_SERVER= chooses the cluster's server."""

import pytest

from lib.cluster import BUS, Cluster, free_ports, server_missing
from lib.ledger import Clients, Ledger
from lib.waiting import wait_until

FEW = ("--partitions", "24")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.skipif(server_missing() is not None, reason=str(server_missing()))


@pytest.fixture(scope="module")
def cluster():
    one = Cluster(options=SAFE, node_timeout_ms=2000)
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture
def healed(cluster):
    yield cluster
    cluster.wait_ok()


def hand_over(cluster, clients, how):
    """Each primary's replica takes over, one after the other, under load."""
    for primary in cluster.primaries():
        clients.more(15)
        cluster.failover(cluster.replicas_of(primary)[0], how)
        clients.more(15)
        cluster.wait_ok()


def test_replicas_that_do_not_ask_their_primaries(healed, start_tallyd, site):
    """CLUSTER FAILOVER FORCE: the primary goes on until it hears of it.  Nothing is lost that was acknowledged, nothing doubled."""
    one, two, ledger = start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "FORCE")
    ledger.check(two)


def test_replicas_that_ask_nobody(healed, start_tallyd, site):
    """CLUSTER FAILOVER TAKEOVER may lose what was acknowledged, and says so in deploy/README.md.  It doubles nothing and takes no
    request for counted that was refused."""
    one, two, ledger = start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "TAKEOVER")
    found = ledger.audit(two)
    assert not found["doubled"] and not found["phantom"], {what: pages[:5] for what, pages in found.items()}
    assert len(found["lost"]) < len(ledger.counted) / 10, "and it is an exception"


def test_all_nodes_at_other_addresses(healed, start_tallyd, site):
    """One after the other, replicas first, under load: in the end tallyd knows no address that it was started with."""
    tallyd, ledger = start_tallyd(*FEW, redis=healed), Ledger(site)
    old = {node.port for node in healed.nodes}
    with Clients(ledger, tallyd, limit=10**6, keyed=1) as clients:
        for node in sorted(healed.nodes, key=lambda n: n.is_primary()):
            node.stop()  # for less than the node timeout, as a rule; else its replica takes over
            node.port = free_ports(1, BUS)[0]
            for option, value in (("--port", node.port), ("--cluster-port", node.port + BUS)):
                node.argv[node.argv.index(option) + 1] = value
            node.start()
            healed.wait_ok()
            clients.more(10)
    assert not old & {node.port for node in healed.nodes}
    ledger.check(tallyd)
    known = {node["address"] for node in tallyd.client().question("/cluster")["nodes"]}
    assert known == {node.address for node in healed.primaries()}
