"""All kinds of work in the middle of what happens to a cluster's primaries: limits, filters, users who are forgotten, folds and
questions, while a replica takes over, in each way, while slots are half moved, and while a primary comes back empty.

Only page views wait for replicas.  What else a primary was told, and its replica had not received, is gone with the primary
(deploy/README.md).  So a test knows which pieces of work a failover may have taken: those since the replica was seen to have
everything.  TALLYD_REDIS_SERVER= chooses the cluster's server.
"""

import json
import re
import shutil
import subprocess

import pytest

from lib import ledger as ledgers
from lib.cluster import Cluster, running, tag_and_slot, wait_ready
from lib.ledger import Clients, Ledger
from lib.process import binary
from lib.waiting import wait_until
from lib.works import Works, active_users, replica_has_all, served

PARTITIONS = 24
FEW = ("--partitions", str(PARTITIONS))
SAFE = ("--appendonly", "yes", "--appendfsync", "always")
ORDERED, FORCE, TAKEOVER, KILL, PAUSE = None, "FORCE", "TAKEOVER", "kill", "pause"

pytestmark = pytest.mark.cluster


def replaced(cluster, primary, how):
    """Its replica takes over; the primary comes back, and follows."""
    replica = cluster.replicas_of(primary)[0]
    if how in (KILL, PAUSE):
        getattr(primary, how)()
        wait_ready(replica.is_primary, "the replica is promoted", 30)
        (primary.start if how == KILL else primary.resume)()
    else:
        cluster.failover(replica, how)
    cluster.wait_ok()


def clock_node(cluster):
    """The primary of partition 0, with the clock, the secret and the leader's lock."""
    return cluster.owner(tag_and_slot(0, PARTITIONS)[1])


def found_or_missing(ledger, tallyd):
    """An audit where what was acknowledged may be lost: nothing is doubled, and nothing counts that was refused."""
    found = ledger.audit(tallyd)
    assert not found["doubled"] and not set(found["phantom"]) & set(ledger.refused), {what: pages[:5] for what, pages in found.items()}
    return found


@pytest.mark.some(2)
@pytest.mark.parametrize("how", [ORDERED, FORCE, TAKEOVER, KILL, PAUSE], ids=["ordered", "FORCE", "TAKEOVER", "kill", "pause"])
def test_a_replica_takes_over_in_the_middle(healed, on_cluster, site, how):
    """A limit lets as many through as it allows; a filter knows what it was given; a user who was forgotten stays so; no figure
    is wrong.  All primaries are replaced; of those that die or stand still one, the hardest."""
    tallyd, other, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    primaries = [clock_node(healed)] if how in (KILL, PAUSE) else healed.primaries()
    with Clients(ledger, tallyd, n=2, limit=10**6, keyed=1) as clients, Works(tallyd, site) as works:
        for primary in primaries:
            clients.more(15)
            works.more()
            since = works.done()
            replica_has_all(primary, healed.replicas_of(primary)[0])
            replaced(healed, primary, how)
            if how is not ORDERED:
                works.doubt(since)
            clients.more(15)
            works.more()
        assert min(works.end()) >= 6 * len(primaries)
    works.check(other.client(), events_too=how == TAKEOVER)
    if how == TAKEOVER:
        assert not found_or_missing(ledger, other)["phantom"]
    else:
        ledger.check(other)


def test_slots_are_half_moved_in_the_middle(healed, on_cluster, site):
    """Every third partition lies on two servers for a while: what needs them waits, and no work is lost."""
    tallyd, other, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    with Clients(ledger, tallyd, n=2, limit=10**6) as clients, Works(tallyd, site) as works:
        works.more()
        opened = []
        for partition in range(0, PARTITIONS, 3):
            slot = tag_and_slot(partition, PARTITIONS)[1]
            target = next(p for p in healed.primaries() if p is not healed.owner(slot))
            opened.append((slot, healed.open_slot(slot, target), target))
            healed.move_keys(*opened[-1], most=2)
        waiting = works.done()
        clients.more(30)
        assert works.done()[3] - waiting[3] <= 1, "questions of the site wait"
        for slot, source, target in opened:
            healed.move_keys(slot, source, target)
            healed.close_slot(slot, target)
        works.more()
    works.check(other.client())
    ledger.check(other)


@pytest.fixture
def own_cluster():
    with running(Cluster(options=SAFE, node_timeout_ms=2000)) as one:
        yield one


def empty(cluster, victim):
    """It comes back without its data, faster than it is failed over, so its replica empties itself, too."""
    replica = cluster.replicas_of(victim)[0]
    victim.kill()
    shutil.rmtree(victim.directory / "appendonlydir")
    victim.start()
    wait_until(lambda: replica.in_sync() and not replica.command("KEYS", "t:*:state"), "its replica has lost it, too", deadline_s=30)


def cluster_command(*arguments):
    return subprocess.run([binary(), "cluster", *arguments], capture_output=True, text=True, timeout=30, check=False)


def test_a_primary_comes_back_empty_in_the_middle(own_cluster, on_cluster, site, monkeypatch):
    """Its partitions get states again by hand, and all work goes on.  What lay there is gone, and that is all: nothing counts twice,
    and nothing that was refused.  Users who were forgotten may be back, as the logs still have their events: they are forgotten again."""
    monkeypatch.setattr(ledgers, "SETTLED_S", 2)  # half of the figures: a page is gone whose user lies on another server
    tallyd, other, ledger = on_cluster(own_cluster), on_cluster(own_cluster), Ledger(site)
    with Clients(ledger, tallyd, n=2, limit=10**6, keyed=1) as clients, Works(tallyd, site) as works:
        clients.more(15)
        works.more()
        victim = next(n for n in own_cluster.primaries() if n is not clock_node(own_cluster))
        forgotten = {f"u{n}" for n in range(0, works.done()[2], 2)}
        empty(own_cluster, victim)
        said = cluster_command("status", "--redis", own_cluster.url).stdout
        lost = re.findall(r"partition (\d+) has lost its state", said)
        assert 4 < len(lost) < 12, said
        clients.more(15)
        for partition in lost:
            done = cluster_command("reset-partition", partition, "--redis", own_cluster.url)
            assert done.returncode == 0, done.stderr
        works.doubt([0] * len(works.all))
        works.more(6)
        clients.more(15)
    works.check(other.client(), events_too=True)
    for user in forgotten & active_users(other.client(), works.people):
        served(other.client(), "DELETE", f"/users/{user}?site={works.people}")
    assert forgotten and not forgotten & active_users(other.client(), works.people)
    found_or_missing(ledger, other)


def test_a_primary_comes_back_empty(own_cluster, start_tallyd, site):
    """What lay there is refused with a sentence, and no answer is given as though nothing had been there; page views are taken all
    the while."""
    tallyd = start_tallyd(*FEW, "--request-timeout", "1s", redis=own_cluster)
    http, items = tallyd.client(), [f"item{i}" for i in range(40)]  # of as many filters: some lie there, some do not
    http.accept([{"site": site, "page": f"/u{i}", "user": f"u{i}"} for i in range(60)])
    for i, item in enumerate(items):
        served(http, "POST", f"/filters/f{i}/add?site={site}", {"items": [item]})
    assert http.count("pv", site=site, from_="now-1h") == 60
    victim = next(n for n in own_cluster.primaries() if n is not clock_node(own_cluster))
    empty(own_cluster, victim)

    def whole(answer):
        """True: it was answered; False: refused."""
        assert answer.status in (200, 503), answer
        return answer.status == 200

    wait_until(lambda: "has lost its state" in http.get("/stats", site=site, from_="now-1h").json.get("detail", ""), "it says why")
    answered, gone = [], []
    while not answered or len(gone) < 3:
        i = len(answered) + len(gone)
        checked = http.request("POST", f"/filters/f{i}/check?site={site}", json.dumps({"items": [items[i]]}))
        (answered if whole(checked) else gone).append(i)
        assert not whole(checked) or checked.json["seen"] == [True], i
    again = http.request("POST", f"/filters/f{gone[0]}/add?site={site}", json.dumps({"items": ["x"]}))
    assert not whole(again), "nor is it made anew"
    seen = [http.get("/seen", site=site, user=f"u{i}", page=f"/u{i}") for i in range(4)]
    assert all(answer.json["seen"] for answer in seen if whole(answer)), "no certain no"
    for path in ("/dau?", "/active/users?from=now/d&to=now%2B1d/d&", "/pages?from=now-1h&"):
        assert not whole(http.get(f"{path}site={site}")), path
    assert [http.post([{"site": site, "page": f"/{i}"}]).status for i in range(20)] == [202] * 20
    assert not victim.command("KEYS", "t:*:state"), "nothing is made anew by itself"
