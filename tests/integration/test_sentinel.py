"""tallyd on a master that Sentinels name: failovers under load, with the old master coming back.

TALLYD_REDIS_SERVER= chooses the server.
"""

import time

import pytest

from lib.cluster import running, wait_ready
from lib.ledger import Clients, Ledger
from lib.sentinel import SentinelGroup
from lib.waiting import wait_until
from lib.works import Works, replica_has_all

FEW = ("--partitions", "4")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def group():
    with running(SentinelGroup(replicas=2, options=SAFE)) as one:
        yield one


@pytest.fixture
def healed(group):
    """The group of this file with all its servers; they are brought back at the end."""
    yield group
    group.bring_back()


@pytest.fixture
def sentinel_tallyd(start_tallyd):
    def start(group, *more):
        return start_tallyd(*FEW, *more, redis=group)

    return start


def test_the_master_is_found(healed, sentinel_tallyd, site):
    tallyd = sentinel_tallyd(healed)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/a", "user": "u"}] * 3)
    assert http.count("pv", site=site, from_="now-1h") == 3
    assert tallyd.redis_text == healed.url
    assert int(healed.master().command("EXISTS", "t:{0}:state")) == 1


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_failover_under_load(healed, sentinel_tallyd, site, how):
    """The master dies, or stands still and comes back as one that still believes to be the master: it takes writes for ten
    seconds then.  What was acknowledged is counted, once; limits, filters and forgotten users are right."""
    tallyd, ledger = sentinel_tallyd(healed), Ledger(site)
    with Clients(ledger, tallyd, limit=100000, keyed=2) as clients, Works(tallyd, site) as works:
        clients.more(30)
        works.more()
        since, old = works.done(), healed.master()
        replica_has_all(old, healed.replica())
        getattr(old, how)()
        new = healed.wait_new_master(old)
        wait_until(lambda: new.replicas_online() > 0, "a replica follows the new master", deadline_s=20)
        followed = time.monotonic()
        clients.more(1)
        first_s = time.monotonic() - followed
        works.doubt(since)
        works.more()
        clients.more(30)
        (old.start if how == "kill" else old.resume)()
        clients.more(60)
        wait_ready(lambda: not old.is_master(), "the old master is a replica", 30)  # it closes connections then
        clients.more(10)
    works.check(tallyd.client())
    assert first_s < 2, f"{first_s:.2f} s from a replica in sync to the first 202"
    assert healed.master() is new
    ledger.check(tallyd)
    assert len(ledger.counted) > 1000 or ledger.statuses.get(202, 0) >= 130


def test_an_ordered_failover_under_load(healed, sentinel_tallyd, site):
    """To another server and back; two processes, and all other work in the middle."""
    one, two, ledger = sentinel_tallyd(healed), sentinel_tallyd(healed), Ledger(site)
    with Clients(ledger, one, limit=100000, keyed=1) as clients, Clients(Ledger(site + "2"), two, limit=100000) as others, \
            Works(two, site) as works:
        for _ in range(2):
            clients.more(20)
            since = works.done()
            replica_has_all(healed.master(), healed.replica())
            healed.failover()
            clients.more(20)
            others.more(20)
            healed.wait_ok()  # the old master takes no writes any more
            works.doubt(since)
            works.more()
    works.check(one.client())
    ledger.check(two)
    others.ledger.check(one)


def test_nobody_else_may_be_believed(healed, sentinel_tallyd, site):
    """The old master stands still and wakes up when there is a new one: it says that it is a master, and no answer comes
    from it."""
    tallyd = sentinel_tallyd(healed)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/a", "user": "u"}] * 3)
    old = healed.master()
    old.pause()
    healed.wait_new_master(old)
    wait_until(lambda: http.post([{"site": site, "page": "/b", "user": "w"}]).status == 202, "the new master takes events")
    old.resume()
    asked, end = 0, time.monotonic() + 3
    while time.monotonic() < end:
        assert http.count("pv", site=site, from_="now-1h") == 4
        asked += 1
    assert asked > 20


def test_sentinels_that_are_gone_are_no_outage(healed, sentinel_tallyd, site):
    tallyd = sentinel_tallyd(healed)
    http = tallyd.client()
    for sentinel in healed.sentinels:
        sentinel.kill()
    http.accept([{"site": site, "page": "/a"}])
    assert http.count("pv", site=site, from_="now-1h") == 1


def test_without_any_sentinel_it_says_whom_it_asked(start_tallyd):
    tallyd = start_tallyd(*FEW, redis="redis-sentinel://127.0.0.1:1/mymaster", wait_ready=False)
    wait_until(lambda: "127.0.0.1:1: connect failed" in tallyd.log_text(), "the reason stands in the log")


def test_a_node_of_a_cluster_is_no_single_redis(start_redis, start_tallyd):
    """It is said at once, instead of a MOVED for most of what is asked; nothing is written."""
    redis = start_redis(options=("--cluster-enabled", "yes"))
    tallyd = start_tallyd(*FEW, redis=redis, wait_ready=False)
    wait_until(lambda: "node of a cluster" in tallyd.log_text(), "the reason stands in the log")
    assert redis.command("DBSIZE") == 0
