"""`--ack-replicas`: a 202 says that replicas have the request, whatever becomes of the master and of tallyd.

A master, replicas and three Sentinels.  TALLYD_REDIS_SERVER= chooses the server.
"""

import json
import re
import statistics
import threading
import time

import pytest

from lib.report import Report
from lib.cluster import Cluster, running
from lib.firsts import notes, told
from lib.ledger import EVENTS, Clients, Ledger
from lib.log import heads
from lib.node_campaign import failovers
from lib.sentinel import SentinelGroup
from lib.waiting import wait_until

FEW = ("--partitions", "4")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")
HELD = 800  # requests, of four clients: some 400 entries
AT_ONCE_S = 0.5  # a refusal, on a busy machine

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def pair():
    """A master with one replica: which one takes over is certain."""
    with running(SentinelGroup(replicas=1, options=SAFE)) as one:
        yield one


@pytest.fixture
def healed(pair):
    yield pair
    pair.bring_back()


def replica_of(pair):
    return next(s for s in pair.servers if s is not pair.master())


def accepted_at_last(http, events, deadline_s=20):
    return wait_until(lambda: http.post(events).status == 202, "accepted", deadline_s=deadline_s)


def test_a_repeat_is_told_no_sooner(healed, start_tallyd, site):
    """The request is at the master and not at the replica.  A limit has the key looked for before anything is written."""
    http = start_tallyd(*FEW, "--request-timeout", "3s", "--ingest-limit", "1000/1s", redis=healed).client()
    http.accept([{"site": site, "page": "/a"}])
    replica_of(healed).pause()
    headers = {"Idempotency-Key": f"{site} a"}
    assert http.post([{"site": site, "page": "/b"}], headers=headers).status in (503, 504)
    for _ in range(3):
        assert http.post([{"site": site, "page": "/b"}], headers=headers).status in (503, 504)
    replica_of(healed).resume()
    answer = wait_until(lambda: (a := http.post([{"site": site, "page": "/b"}], headers=headers)).status == 202 and a, "it is told", 20)
    assert answer.json["accepted"] == 1
    assert http.count("pv", site=site, from_="now-1h") == 2


def test_a_repeat_waits_for_each_of_two_replicas(start_tallyd, site):
    """The process that is asked first has written nothing: only the record's own server tells what replicas have."""
    options = (*FEW, "--request-timeout", "3s", "--ingest-limit", "1000/1s", "--ack-replicas", "2")
    with running(SentinelGroup(replicas=2, options=SAFE)) as group:
        http, other = (start_tallyd(*options, redis=group).client() for _ in range(2))
        http.accept([{"site": site, "page": "/a"}])
        replica_of(group).pause()
        events, headers = [{"site": site, "page": "/b"}], {"Idempotency-Key": f"{site} a"}
        posted = threading.Thread(target=http.post, args=(events,), kwargs={"headers": headers})
        posted.start()
        wait_until(lambda: group.master().command("KEYS", "t:*:key:*"), "the master has the record")
        answer = other.post(events, headers=headers)
        assert answer.status == 503 and "too few replicas" in answer.json["detail"], answer
        posted.join()
        replica_of(group).resume()
        wait_until(lambda: other.post(events, headers=headers).status == 202, "it is told", 20)
        assert other.count("pv", site=site, from_="now-1h") == 2


def test_what_is_answered_is_at_the_replica(healed, start_tallyd, site):
    """Of each 202 the entry is at the replica when the answer arrives."""
    tallyd = start_tallyd(*FEW, redis=healed)
    http, replica = tallyd.client(), replica_of(healed)

    others = {log for log, n in heads(replica).items() if n > 0}  # of processes that have gone: they may be closed meanwhile
    for i in range(50):
        http.accept([{"site": site, "page": f"/{i}"}])
        assert sum(n for log, n in heads(replica).items() if log not in others) >= i + 1
    assert http.count("pv", site=site, from_="now-1h") == 50


def test_a_replica_that_stands_still(healed, start_tallyd, site):
    """A request is in Redis and not acknowledged: 504.  A second later 503, nothing of it is sent, and questions go on.  The
    replica goes on: 202, and what was answered 504 is counted once."""
    tallyd = start_tallyd(*FEW, "--request-timeout", "3s", redis=healed)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/a"}])
    replica_of(healed).pause()
    begin = time.monotonic()
    answer = http.post([{"site": site, "page": "/b"}], headers={"Idempotency-Key": f"{site} b"})
    assert answer.status == 504 and time.monotonic() - begin > 2.5, answer
    assert "too few replicas have acknowledged it" in answer.json["detail"]
    for _ in range(3):
        begin = time.monotonic()
        answer = http.post([{"site": site, "page": "/c"}])
        assert answer.status == 503 and answer.json["detail"] == "too few replicas acknowledge what is written", answer
        assert int(answer.headers["Retry-After"]) >= 1 and time.monotonic() - begin < AT_ONCE_S
    ready = http.get("/readyz")
    assert ready.status == 503 and "too few replicas acknowledge" in ready.json["detail"]
    assert http.count("pv", site=site, from_="now-1h", page="/a") == 1
    limit = {"key": site, "algorithm": "funnel", "limit": 5, "period_s": 60}
    assert http.request("POST", "/ratelimit", json.dumps(limit), {"Content-Type": "application/json"}).status == 200
    replica_of(healed).resume()
    accepted_at_last(http, [{"site": site, "page": "/d"}])
    again = http.post([{"site": site, "page": "/b"}], headers={"Idempotency-Key": f"{site} b"})
    assert again.status == 202 and again.headers["Idempotency-Replayed"] == "true"
    for page, views in (("/a", 1), ("/b", 1), ("/c", 0), ("/d", 1)):
        assert http.count("pv", site=site, from_="now-1h", page=page) == views, page
    assert http.get("/readyz").status == 200


def check_in(http, site, key):
    body = {"site": site, "user": "ann", "actions": ["checkin"]}
    return http.post(body, first=1, headers={"Idempotency-Key": f"{site} {key}"})


def test_who_was_first_is_told_when_replicas_know_it(healed, start_tallyd, site):
    """The fold is written after the request, and its replica must have it, too: the note of who was first is there when
    the answer comes."""
    tallyd = start_tallyd(*FEW, redis=healed)
    http, replica = tallyd.client(), replica_of(healed)
    before, took_s = len(notes(replica)), []
    for n in range(20):
        begin = time.monotonic()
        answer = http.post({"site": site, "user": f"u{n}", "actions": ["checkin"]}, first=1)
        took_s.append(time.monotonic() - begin)
        assert told(answer) == {0: ["checkin"]}
        assert len(notes(replica)) == before + n + 1
    assert statistics.median(took_s) < 0.2, "it does not wait for the next heartbeat"


def test_who_was_first_is_not_told_while_no_replica_answers(healed, start_tallyd, site):
    """504 and 503; a repeat is told as soon as a replica has it."""
    tallyd = start_tallyd(*FEW, "--request-timeout", "2s", redis=healed)
    http = tallyd.client()
    assert told(check_in(http, site, "warm")) == {0: ["checkin"]}
    replica_of(healed).pause()
    assert check_in(http, site, "a").status == 504
    assert check_in(http, site, "warm").status in (503, 504), "what was told may be told again, but not sooner"
    replica_of(healed).resume()
    wait_until(lambda: check_in(http, site, "a").status == 202, "told")
    assert told(check_in(http, site, "a")) == {}
    assert told(check_in(http, site, "warm")) == {0: ["checkin"]}


def test_without_a_replica_it_does_not_start(start_redis, start_tallyd):
    """Said with what to do; and with 0 it starts."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, "--ack-replicas", "1", redis=redis, wait_ready=False)
    assert tallyd.process.wait(10) != 0
    assert re.search(r"level=error .*--ack-replicas is 1, and this Redis has 0 replicas", tallyd.log_text())
    assert redis.command("DBSIZE") == 0, "nothing is written"
    start_tallyd(*FEW, redis=redis).client().accept([{"page": "/a"}])


def test_a_start_beside_its_servers_waits_for_the_replica(healed, start_tallyd):
    """After a power failure all start together, and the replica follows a second behind.  systemd would not try again."""
    master, replica = healed.master(), replica_of(healed)
    replica.pause()
    master.kill()
    master.start()
    tallyd = start_tallyd(*FEW, redis=healed, wait_ready=False)
    wait_until(lambda: "has 0, --ack-replicas is 1" in tallyd.log_text(), "it says what it waits for")
    replica.resume()
    tallyd.wait_ready_line()
    wait_until(lambda: tallyd.client().post([{"page": "/a"}]).status == 202, "an event is taken")


def test_a_start_while_the_replica_is_away_goes_on(healed, start_tallyd, site):
    """After a failover the new master has no replica until the old one is back, which may take a day.  A tallyd that is started
    then answers questions, refuses events with a reason, and takes them when the replica is there."""
    first = start_tallyd(*FEW, redis=healed)
    first.client().accept([{"site": site, "page": "/a"}] * 3)
    first.terminate()
    old = healed.master()
    old.kill()
    healed.wait_new_master(old)
    tallyd = start_tallyd(*FEW, "--request-timeout", "2s", redis=healed)
    assert "replicas are away" in tallyd.log_text() and "has 0 replicas, --ack-replicas is 1" in tallyd.log_text()
    http = tallyd.client()
    assert http.count("pv", site=site, from_="now-1h") == 3
    assert http.post([{"site": site, "page": "/b"}]).status in (503, 504)
    wait_until(lambda: http.get("/readyz").status == 503, "it says so")
    assert "too few replicas acknowledge" in http.get("/readyz").json["detail"]
    assert http.post([{"site": site, "page": "/c"}]).status == 503
    old.start()
    with healed.hurried():
        accepted_at_last(http, [{"site": site, "page": "/d"}], deadline_s=40)
    assert http.get("/readyz").status == 200
    assert [http.count("pv", site=site, from_="now-1h", page=page) for page in ("/a", "/c", "/d")] == [3, 0, 1]


def test_the_first_start_waits_for_a_replica_that_is_away(start_tallyd):
    """What it makes first must not go with the one server that has it."""
    pair = SentinelGroup(replicas=1, options=SAFE)
    try:
        pair.start()
        replica = replica_of(pair)
        replica.kill()
        wait_until(lambda: pair.master().replicas_online() == 0, "it is noticed")
        tallyd = start_tallyd(*FEW, redis=pair, wait_ready=False)
        wait_until(lambda: "the first start waits for replicas" in tallyd.log_text(), "it says why", deadline_s=20)
        assert tallyd.alive() and pair.master().command("DBSIZE") == 0
        replica.start()
        tallyd.wait_ready_line()
        tallyd.client().accept([{"page": "/a"}])
    finally:
        pair.stop()


def test_a_start_on_a_cluster_while_a_primary_is_alone(start_tallyd, site):
    """A replica has taken over by force, and the old primary is away: the start goes on, with the places of the others.  A primary
    that never had a replica is a mistake, and is refused."""
    cluster = Cluster(primaries=3, replicas=1, options=SAFE)
    try:
        cluster.start()
        first = start_tallyd("--partitions", "16", redis=cluster)
        first.client().accept([{"site": site, "page": "/a"}] * 3)
        first.terminate()
        old = cluster.primaries()[1]
        new = cluster.replicas_of(old)[0]
        old.pause()
        cluster.failover(new, "TAKEOVER")
        tallyd = start_tallyd("--partitions", "16", "--request-timeout", "1s", redis=cluster)
        assert f"{new.address} has 0 replicas, --ack-replicas is 1" in tallyd.log_text()
        http = tallyd.client()
        assert http.count("pv", site=site, from_="now-1h") == 3
        wait_until(lambda: http.post([{"site": site, "page": "/b"}]).status == 202, "taken in another place")
        keyed = [http.post([{"site": site, "page": "/k"}], headers={"Idempotency-Key": f"{site} {n}"}).status for n in range(24)]
        assert 202 in keyed and set(keyed) <= {202, 503, 504}, keyed
        old.resume()
        cluster.wait_ok()
        wait_until(lambda: http.post([{"site": site, "page": "/c"}], headers={"Idempotency-Key": f"{site} {time.monotonic()}"}).status == 202, "taken")
    finally:
        cluster.stop()


def test_a_cluster_without_any_replica_is_refused(start_tallyd):
    cluster = Cluster(primaries=3, replicas=0, options=SAFE)
    try:
        tallyd = start_tallyd("--partitions", "16", redis=cluster.start(), wait_ready=False)
        assert tallyd.process.wait(20) == 2
        assert re.search(r"--ack-replicas is 1, and 127.0.0.1:\d+ has 0 replicas, so no request could be acknowledged", tallyd.log_text())
        assert [n.command("DBSIZE") for n in cluster.nodes] == [0, 0, 0]
    finally:
        cluster.stop()


def test_a_start_with_none_says_what_a_failover_takes(healed, start_tallyd):
    tallyd = start_tallyd(*FEW, "--ack-replicas", "0", redis=healed)
    wait_until(lambda: "--ack-replicas is 0: a failover takes what its replica had not received" in tallyd.log_text(), "it says so")
    assert "--ack-replicas is 0" not in start_tallyd(*FEW, redis=healed).log_text()


def test_tallyd_and_the_master_die_together(healed, start_tallyd, site):
    """The one case in which a failover could take what was acknowledged: nobody is left to append it again."""
    ledger, tallyd, reader = Ledger(site), start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed)
    with Clients(ledger, tallyd, limit=100000, keyed=2) as clients:
        clients.more(60)
        old = healed.master()
        old.kill()
        tallyd.kill()
        clients.limit = 0
    healed.wait_new_master(old)
    old.start()
    healed.wait_ok()
    ledger.check(reader)


def test_what_is_held_goes_again_at_once(healed, start_tallyd, site):
    """The new master has no replica, so each WAIT takes its time.  Thousands of entries that are held for a failover do not wait
    behind one each: nothing new could be appended before them, and no deletion be answered."""
    tallyd = start_tallyd(*FEW, "--log-hold", "60s", redis=healed)
    http = tallyd.client()
    with Clients(Ledger(site), tallyd, limit=HELD):
        wait_until(lambda: http.metrics()["tallyd_appends_total"] >= HELD / 2, "enough is held", deadline_s=30)
        wait_until(lambda: http.metrics()["tallyd_append_events_total"] >= HELD * EVENTS, "all is held", deadline_s=30)
    held, old = http.metrics()["tallyd_appends_total"], healed.master()
    old.kill()
    healed.wait_new_master(old)
    again = wait_until(lambda: http.metrics()["tallyd_appends_repeated_total"], "the first one goes again")
    begin = time.monotonic()
    wait_until(lambda: http.metrics()["tallyd_appends_repeated_total"] >= held, f"{held} entries go again, after {again}", deadline_s=30)
    assert time.monotonic() - begin < held / 100, "20 a second behind a WAIT of 0.1 s for each two of them"


def test_failovers_in_a_row(healed, start_tallyd, site, seed):
    """The master dies, or stands still and wakes up deposed, in turn, under load; each comes back.  Two processes."""
    report = Report(seed)
    failovers(report, healed, start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), site, goal=2, hurried=True)
    report.check()
    assert report.rounds == 2 and report.acknowledged > 100


def test_one_replica_of_a_cluster_stands_still(start_tallyd, site):
    """Requests without a key go to another server.  Those with a key whose log's server is alone get 504, one for each of its
    logs, then 503 at once; the others go on.  The replica goes on, and so do all."""
    cluster = Cluster(primaries=3, replicas=1, options=SAFE)
    try:
        tallyd = start_tallyd("--partitions", "16", "--request-timeout", "1500ms", redis=cluster.start())
        http = tallyd.client()
        cluster.nodes[3].pause()

        def statuses(n, keyed):
            keys = [{"Idempotency-Key": f"{site} {time.monotonic()} {i}"} if keyed else None for i in range(n)]
            return [http.post([{"site": site, "page": "/a"}], headers=key).status for key in keys]

        first = statuses(80, keyed=True)
        assert set(first) == {202, 503, 504} and first.count(504) <= 16, first
        begin = time.monotonic()
        again = statuses(24, keyed=True)
        assert set(again) == {202, 503} and time.monotonic() - begin < 24 * AT_ONCE_S, again
        free = statuses(12, keyed=False)
        assert set(free[2:]) == {202}, f"another home: {free}"
        said = http.get("/readyz")
        assert said.status == 200 and said.json["degraded"] == [
            f"{cluster.nodes[0].address}: too few replicas acknowledge what is written"], said
        cluster.nodes[3].resume()
        wait_until(lambda: set(statuses(24, keyed=True)) == {202}, "all servers take requests")
        wait_until(lambda: "degraded" not in http.get("/readyz").json, "and it is whole again")
        assert http.count("pv", site=site, from_="now-1h") >= (first + again + free).count(202)
    finally:
        cluster.stop()
