"""A cluster whose nodes change under load: failovers that ask nobody, nodes that come back at other addresses.
TALLYD_REDIS_SERVER= chooses the cluster's server."""

import pytest

from lib.ledger import Clients, Ledger
from lib.works import Works, replica_has_all

pytestmark = pytest.mark.cluster


def hand_over(cluster, clients, how):
    """Each primary's replica takes over, one after the other, under load."""
    for primary in cluster.primaries():
        clients.more(15)
        cluster.failover(cluster.replicas_of(primary)[0], how)
        clients.more(15)
        cluster.wait_ok()


def test_replicas_that_do_not_ask_their_primaries(healed, on_cluster, site):
    """CLUSTER FAILOVER FORCE: the primary goes on until it hears of it.  Nothing is lost that was acknowledged, nothing doubled."""
    one, two, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "FORCE")
    ledger.check(two)


def test_replicas_that_ask_nobody(healed, on_cluster, site):
    """CLUSTER FAILOVER TAKEOVER may lose what was acknowledged, and says so in deploy/README.md.  It doubles nothing and takes no
    request for counted that was refused."""
    one, two, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "TAKEOVER")
    found = ledger.audit(two)
    assert not found["doubled"] and not found["phantom"], {what: pages[:5] for what, pages in found.items()}
    assert len(found["lost"]) < len(ledger.counted) / 10, "and it is an exception"


def test_all_nodes_at_other_addresses(healed, on_cluster, site):
    """One after the other, replicas first, under load, in the middle of all other work: in the end tallyd knows no address that it
    was started with."""
    tallyd, ledger = on_cluster(healed), Ledger(site)
    old = {node.port for node in healed.nodes}
    with Clients(ledger, tallyd, limit=10**6, keyed=1) as clients, Works(tallyd, site) as works:
        for node in sorted(healed.nodes, key=lambda n: n.is_primary()):
            since = works.done()
            if node.is_primary():
                replica_has_all(node, healed.replicas_of(node)[0])
            healed.move_node(node)
            works.doubt(since)  # a replica that took over may lack what was under way
            clients.more(10)
            works.more()
    assert not old & {node.port for node in healed.nodes}
    works.check(tallyd.client())
    ledger.check(tallyd)
    known = {node["address"] for node in tallyd.client().question("/cluster")["nodes"]}
    assert known == {node.address for node in healed.primaries()}
