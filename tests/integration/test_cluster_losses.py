"""A log's primary and the tallyd that wrote it die together: nobody is left to append again what the promoted replica lacks.

What is lost then, and what is not, as deploy/README.md says.  The replica that takes over stands still first, so that it
lacks what was acknowledged since.  TALLYD_REDIS_SERVER= chooses the server.
"""

import pytest

from lib.cluster import Cluster, running, wait_ready
from lib.ledger import Clients, Ledger
from lib.log import HELD, counted
from lib.waiting import wait_until

FEW = ("--partitions", "24")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")
REQUESTS = 20
PAGES = 15  # of each request: over all primaries; of all requests less than a list has

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster():
    with running(Cluster(options=SAFE, node_timeout_ms=2000)) as one:
        yield one


def home_of(cluster):
    """The primary that has the longest log: that of requests without a key."""
    def longest(node):
        return max((node.command("XLEN", key) for key in node.command("KEYS", "t:*:log:*")), default=0)

    return max(cluster.primaries(), key=longest)


def replica_falls_behind(cluster, home):
    """It has all until now, and receives nothing more: what lies in its socket would still be read."""
    replica = cluster.replicas_of(home)[0]
    wait_until(lambda: replica.info("replication")["slave_repl_offset"] == home.info("replication")["master_repl_offset"], "in sync")
    replica.pause()
    home.command("CLIENT", "KILL", "TYPE", "replica")
    return replica


def die_together(cluster, home, replica, tallyd):
    """The home's replica takes over with what it has."""
    tallyd.kill()
    home.kill()
    replica.resume()
    wait_ready(replica.is_primary, "the replica is promoted", 30)
    home.start()
    cluster.wait_ok()


def request(http, site, name, key=None):
    """One request of PAGES views; its pages."""
    pages = [f"/{name}/{i}" for i in range(PAGES)]
    answer = http.post([{"site": site, "page": page, "user": page} for page in pages], headers={"Idempotency-Key": key} if key else None)
    assert answer.status == 202, answer
    return pages


def views(http, site, pages):
    """{page: its views}, of all these requests."""
    def answer():
        reply = http.get("/pages", site=site, from_="now-1h", limit=1000)
        return {row["page"]: row["pv"] for row in reply.json["pages"]} if reply.status == 200 else None

    found = wait_until(lambda: [answer()], "an answer")[0]
    while found is None:
        found = wait_until(answer, "an answer", deadline_s=30)
    return {page: found.get(page, 0) for page in pages}


def test_nothing_is_lost_that_replicas_have(cluster, start_tallyd, site):
    """--ack-replicas 1, the default.  Under load, with keys and without."""
    tallyd, reader, ledger = start_tallyd(*FEW, redis=cluster), start_tallyd(*FEW, redis=cluster), Ledger(site)
    with Clients(ledger, tallyd, limit=100000, keyed=2) as clients:
        clients.more(60)
        home = home_of(cluster)
        replica = cluster.replicas_of(home)[0]
        home.kill()
        tallyd.kill()
        clients.limit = 0
    wait_ready(replica.is_primary, "the replica is promoted", 30)
    home.start()
    cluster.wait_ok()
    ledger.check(reader)


def test_without_replicas_requests_that_nobody_has_counted_are_lost_whole(cluster, start_tallyd, site):
    """--ack-replicas 0, and no fold yet: of the requests since the replica stood still all without a key are lost, each of
    them whole.  One with a key is lost if its record lay on the same primary, and then the key counts when it is sent again."""
    tallyd = start_tallyd(*FEW, "--ack-replicas", "0", redis=cluster, env=HELD)
    http = tallyd.client()
    before = [page for i in range(REQUESTS) for page in request(http, site, f"before/{i}")]
    home = home_of(cluster)
    replica = replica_falls_behind(cluster, home)
    free = {i: request(http, site, f"free/{i}") for i in range(REQUESTS)}
    keyed = {f"{site} {i}": request(http, site, f"keyed/{i}", key=f"{site} {i}") for i in range(REQUESTS)}
    die_together(cluster, home, replica, tallyd)
    reader = start_tallyd(*FEW, "--ack-replicas", "0", redis=cluster).client()
    found = views(reader, site, [*before, *(p for pages in [*free.values(), *keyed.values()] for p in pages)])
    assert all(found[page] == 1 for page in before), "what the replica had"
    assert not any(found[page] for pages in free.values() for page in pages), "the rest without a key"
    kept = {key: {found[page] for page in pages} for key, pages in keyed.items()}
    assert set(map(tuple, kept.values())) == {(0,), (1,)}, f"each whole: some on that primary, some on others: {kept}"
    for key, pages in keyed.items():
        answer = reader.post([{"site": site, "page": page, "user": page} for page in pages], headers={"Idempotency-Key": key})
        assert answer.status == 202
        assert (answer.headers.get("Idempotency-Replayed") == "true") == (kept[key] == {1}), key
    found = views(reader, site, [page for pages in keyed.values() for page in pages])
    assert set(found.values()) == {1}, "sent again, each counts once"


def test_without_replicas_what_was_counted_stays_on_the_other_primaries(cluster, start_tallyd, site):
    """--ack-replicas 0, and folded before: the views whose partitions lie on the dead primary are lost, those on others are
    not.  So a request without a key may be there in part."""
    tallyd = start_tallyd(*FEW, "--ack-replicas", "0", redis=cluster)
    http = tallyd.client()
    before = request(http, site, "before")
    counted(http)
    home = home_of(cluster)
    replica = replica_falls_behind(cluster, home)
    after = [page for i in range(REQUESTS) for page in request(http, site, f"after/{i}")]
    counted(http)
    die_together(cluster, home, replica, tallyd)
    found = views(start_tallyd(*FEW, "--ack-replicas", "0", redis=cluster).client(), site, [*before, *after])
    assert all(found[page] == 1 for page in before)
    lost = [page for page in after if found[page] == 0]
    assert max(found.values()) == 1, "nothing counts twice"
    assert len(after) / 6 < len(lost) < len(after) / 2, f"{len(lost)} of {len(after)}: about the third that lay on that primary"
