"""tallyd on a Redis Cluster: events and questions, slots that move, failovers, several processes.

What clients were told is compared with what is counted.  TALLYD_REDIS_SERVER= chooses the cluster's server.
"""

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.cluster import Cluster, tag_and_slot
from lib.ledger import Clients, Ledger
from lib.waiting import wait_until

FEW = ("--partitions", "24")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.cluster


def slots_of(cluster, what="state"):
    """The slots that have a key t:{..}:<what>, a list."""
    keys = [key for node in cluster.primaries() for key in node.command("KEYS", f"t:*:{what}")]
    return sorted({cluster.nodes[0].command("CLUSTER", "KEYSLOT", key) for key in keys})


def other_primary(cluster, owner):
    return next(n for n in cluster.primaries() if n is not owner)


def test_every_question_is_answered_as_a_naive_count_does(healed, on_cluster, site):
    """Batches and single events, with keys and without, each key twice: three nodes have a share, and the figures are right."""
    tallyd = on_cluster(healed)
    http, dice = tallyd.client(), random.Random(7)
    views, users, pairs = {}, set(), set()
    for n in range(120):
        events = [{"site": site, "page": f"/p{dice.randrange(40)}", "user": f"u{dice.randrange(60)}", "ip": f"10.0.0.{dice.randrange(99)}"}
                  for _ in range(dice.choice((1, 1, 5, 30)))]
        headers = {"Idempotency-Key": f"{site} {n}"} if n % 3 == 0 else None
        for again in range(2 if headers else 1):
            answer = http.post(events, headers=headers)
            assert answer.status == 202 and answer.json["accepted"] == len(events), answer
            assert (answer.headers.get("Idempotency-Replayed") == "true") == bool(again)
        for event in events:
            views[event["page"]] = views.get(event["page"], 0) + 1
            users.add(event["user"])
            pairs.add((event["user"], event["page"]))
        if n % 20 == 0:  # what was acknowledged is in the next answer
            assert http.count("pv", site=site, from_="now-1h") == sum(views.values())
    other = http.post([{"site": site, "page": "/x"}], headers={"Idempotency-Key": f"{site} 0"})
    assert other.status == 422, "a key with another body"
    stats = http.question("/stats", site=site, from_="now-1h")
    assert (stats["pv"], stats["visits"]) == (sum(views.values()), len(users))
    assert stats["error"]["uv"]["low"] <= len(users) <= stats["error"]["uv"]["high"] + 1  # an estimate
    rows = http.question("/pages", site=site, from_="now-1h", limit=1000)["pages"]
    assert {row["page"]: row["pv"] for row in rows} == views
    for page in list(views)[:5]:
        assert http.count("pv", site=site, page=page, from_="now-1h") == views[page]
    assert http.question("/dau", site=site)["users"] == len(users)
    for user, page in list(pairs)[:10]:
        assert http.question("/seen", site=site, user=user, page=page)["seen"] is True
    assert http.question("/seen", site=site, user="nobody", page="/p1")["seen"] is False
    assert len({healed.owner(slot).id for slot in slots_of(healed)}) == 3, "every primary has partitions"
    assert len({healed.owner(slot).id for slot in slots_of(healed, "heads")}) > 1, "and logs"


def test_a_server_without_logs_is_asked_all_the_same(start_tallyd, cleanup, site):
    """A reader that remembers cursors looks at heads alone.  Of 128 partitions every other one has logs; one server has only such as
    have none.  While it gives no answer, nobody knows whether it has gone back."""
    cluster = Cluster(4, 0, options=SAFE, node_timeout_ms=2000)
    cleanup.append(cluster.stop)
    cluster.start()
    last = cluster.nodes[3]
    with_logs = [tag_and_slot(p, 128)[1] for p in range(0, 128, 2)]
    for slot in with_logs:
        cluster.move_slots(slot, slot, cluster.nodes[0] if cluster.owner(slot) is last else cluster.owner(slot))
    http = start_tallyd("--partitions", "128", "--ack-replicas", "0", "--request-timeout", "1500ms", redis=cluster).client()
    pages = [f"/{i}" for i in range(4)]
    http.accept([{"site": site, "page": page} for page in pages])
    for _ in range(20):  # each reader has looked
        assert [http.count("pv", site=site, page=page, from_="now-1h") for page in pages] == [1] * 4
    assert not last.command("KEYS", "t:*:heads") and last.command("KEYS", "t:*:state")
    last.pause()
    try:
        answers = [http.get("/pv", site=site, page=page, from_="now-1h") for page in pages]
    finally:
        last.resume()
    assert [a.status for a in answers] == [503] * 4, answers
    wait_until(lambda: http.get("/pv", site=site, page="/0", from_="now-1h").status == 200, "it answers again")


def test_limits_lie_on_their_servers(healed, on_cluster, site):
    http = on_cluster(healed).client()
    for n in range(12):
        body = {"key": f"{site} {n}", "algorithm": "sliding", "limit": 3, "period_s": 60}
        answers = [http.request("POST", "/ratelimit", json.dumps(body), {"Content-Type": "application/json"}) for _ in range(5)]
        assert [a.status for a in answers] == [200, 200, 200, 429, 429], answers[0]


def test_slots_move_to_and_fro_under_load(healed, on_cluster, site):
    """Every partition's slot moves to another node, some of them back at once, the others at the end: the tests behind this one
    need nodes that all have a share."""
    tallyd, ledger = on_cluster(healed), Ledger(site)
    with Clients(ledger, tallyd, limit=100000, keyed=2) as clients:
        clients.more(20)
        away = {}
        for i, slot in enumerate(slots_of(healed)):
            owner = healed.owner(slot)
            healed.move_slots(slot, slot, other_primary(healed, owner))
            if i % 3 == 0:
                healed.move_slots(slot, slot, owner)
            else:
                away[slot] = owner
        clients.more(20)
        for slot, owner in away.items():
            healed.move_slots(slot, slot, owner)
    healed.wait_ok()
    ledger.check(tallyd)


def test_a_slot_that_stays_open(healed, on_cluster, site):
    """A slot of logs is left half moved: requests without a key go on in another place; all is right when it is closed."""
    tallyd, ledger = on_cluster(healed), Ledger(site)
    with Clients(ledger, tallyd, limit=100000, keyed=1) as clients:
        clients.more(30)
        slot = slots_of(healed, "heads")[0]
        owner = healed.owner(slot)
        target = other_primary(healed, owner)
        healed.open_slot(slot, target)
        healed.move_keys(slot, owner, target, most=2)
        clients.more(40)
        time.sleep(3)
        healed.move_keys(slot, owner, target)
        healed.close_slot(slot, target)
        clients.more(40)
    healed.wait_ok()
    ledger.check(tallyd)


def test_a_repeat_is_found_in_a_slot_that_is_half_moved(healed, on_cluster, site):
    """A limit has the key looked for first: the record is where the slot goes."""
    http = on_cluster(healed, "--ingest-limit", "1000/1s", "--ack-replicas", "0", "--request-timeout", "3s").client()
    body, headers = [{"site": site, "page": "/"}], {"Idempotency-Key": f"{site} k"}
    before = {key for node in healed.primaries() for key in node.command("KEYS", "t:*:key:*")}
    assert http.post(body, headers=headers).status == 202
    (node, record), = [(n, k) for n in healed.primaries() for k in n.command("KEYS", "t:*:key:*") if k not in before]
    slot = node.command("CLUSTER", "KEYSLOT", record)
    target = other_primary(healed, node)
    healed.open_slot(slot, target)
    healed.move_keys(slot, node, target)
    begin = time.monotonic()
    answer = http.post(body, headers=headers)
    assert answer.status == 202 and answer.headers["Idempotency-Replayed"] == "true" and time.monotonic() - begin < 1, answer
    healed.close_slot(slot, target)
    healed.wait_ok()
    assert http.count("pv", site=site, from_="now-1h") == 1


def test_page_views_are_limited(healed, on_cluster, site):
    """The lease comes over the connections of limits, and the events go to the log."""
    http = on_cluster(healed, "--ingest-limit", "5/1h", "--ingest-limit-by", "site").client()
    answers = [http.post([{"site": site, "page": f"/{i}"}]).status for i in range(8)]
    assert answers == [202] * 5 + [429] * 3
    assert http.count("pv", site=site, from_="now-1h") == 5


def refused(http, site):
    answer = http.get("/pv", site=site, from_="now-1h")
    assert answer.status == 503, answer
    return answer


def test_a_slot_that_is_left_open_is_named(healed, on_cluster, site):
    """Its partition is not counted meanwhile: questions say so, and a metric does.  What was taken is counted when it is closed."""
    tallyd = on_cluster(healed, "--request-timeout", "2s")
    http = tallyd.client()
    http.accept([{"site": site, "page": f"/{n}", "user": str(n)} for n in range(50)])
    assert http.count("pv", site=site, from_="now-1h") == 50
    slot = slots_of(healed, "uv:*")[0]
    owner = healed.owner(slot)
    target = other_primary(healed, owner)
    healed.open_slot(slot, target)
    healed.move_keys(slot, owner, target, most=1)
    status = http.post([{"site": site, "page": f"/{n}", "user": str(n)} for n in range(100)]).status
    assert status in (202, 503, 504), "its log may lie in this slot: then it is not taken at once"
    wait_until(lambda: http.post([{"site": site, "page": f"/{n}", "user": str(n)} for n in range(100)]).status == 202, "taken elsewhere")
    wait_until(lambda: f"waits: slot {slot} is half moved" in refused(http, site).json["detail"], "questions name it")
    assert http.metric("tallyd_partitions_in_open_slots") == 1
    healed.move_keys(slot, owner, target)
    healed.close_slot(slot, target)
    wait_until(lambda: http.get("/pv", site=site, from_="now-1h").status == 200, "counted")
    assert http.count("pv", site=site, from_="now-1h") in ((150, 250) if status != 202 else (250,))
    wait_until(lambda: http.metric("tallyd_partitions_in_open_slots") == 0, "it is over")


def test_an_ordered_failover_under_load(healed, on_cluster, site):
    """Every primary hands over to its replica, one after the other; two processes."""
    one, two, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    with Clients(ledger, one, limit=100000, keyed=2) as clients, Clients(Ledger(site + "2"), two, limit=100000) as others:
        for primary in healed.primaries():
            clients.more(20)
            healed.failover(healed.replicas_of(primary)[0])
            clients.more(20)
            others.more(20)
            healed.wait_ok()
    ledger.check(two)
    others.ledger.check(one)


@pytest.mark.some(1)
@pytest.mark.parametrize("how", ["kill", "pause"])
def test_a_primary_fails_under_load(healed, on_cluster, site, how):
    """Its replica takes over.  Requests without a key go on meanwhile, in other places.  A paused primary wakes up deposed."""
    tallyd, ledger = on_cluster(healed), Ledger(site)
    with Clients(ledger, tallyd, limit=100000, keyed=1) as clients:
        clients.more(30)
        old = healed.primaries()[0]
        replica = healed.replicas_of(old)[0]
        getattr(old, how)()
        wait_until(replica.is_primary, "the replica is promoted", deadline_s=30)
        clients.more(30)
        (old.start if how == "kill" else old.resume)()
        clients.more(30)
        wait_until(lambda: not old.is_primary(), "the old primary follows", deadline_s=30)
        clients.more(10)
    healed.wait_ok()
    ledger.check(tallyd)


def test_how_soon_requests_are_taken_again(healed, on_cluster, site):
    """A primary dies.  Without a key: a 202 within 2 s of the promotion.  With a key of that node: 503 or 504 until the new primary
    has a replica in sync, and a 202 within 2 s of that.  Each key counts once."""
    tallyd = on_cluster(healed, "--request-timeout", "2s")
    http = tallyd.client()
    old = healed.primaries()[0]
    new = healed.replicas_of(old)[0]

    def keyed(n):
        return tallyd.client().post([{"site": site, "page": "/k"}], headers={"Idempotency-Key": f"{site} {n}"}).status

    with ThreadPoolExecutor(24) as pool:
        assert set(pool.map(keyed, range(100, 124))) == {202}, "all writers are there"
        old.kill()
        wait_until(new.is_primary, "promoted", deadline_s=30)
        promoted = time.monotonic()
        wait_until(lambda: tallyd.client().post([{"site": site, "page": "/plain"}]).status == 202, "taken without a key")
        assert time.monotonic() - promoted < 2
        waiting = [n for n, status in zip(range(48), pool.map(keyed, range(48))) if status != 202]
        assert len(waiting) > 3, "the new primary has no replica"
        assert set(pool.map(keyed, waiting)) <= {503, 504}
        old.start()
        wait_until(old.in_sync, "a replica is in sync", deadline_s=30, pause_s=0.005)
        in_sync = time.monotonic()
        wait_until(lambda: keyed(waiting[0]) == 202, "taken with a key")
        assert time.monotonic() - in_sync < 2
        wait_until(lambda: set(pool.map(keyed, waiting)) == {202}, "each of them")
    assert http.count("pv", site=site, page="/k", from_="now-1h") == 24 + 48, "and a fold that waited does not pause as long"


def test_who_has_no_key_goes_on_while_a_primary_is_away(healed, on_cluster, site):
    """A primary without a replica is gone: 202 without a key, 503 for the keys whose records it has, and a question's 503 names
    the node."""
    tallyd = on_cluster(healed)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/a"}])
    old = healed.primaries()[0]
    replica = healed.replicas_of(old)[0]
    replica.pause()
    old.pause()
    time.sleep(2.5)
    statuses = [http.post([{"site": site, "page": "/a"}]).status for _ in range(30)]
    assert set(statuses) <= {202, 504} and statuses.count(504) <= 1, f"only what was under way is in doubt: {statuses}"
    by_key = [http.post([{"site": site, "page": "/k"}], headers={"Idempotency-Key": f"{site} {n}"}).status for n in range(40)]
    assert 202 in by_key and set(by_key) <= {202, 503}, by_key
    assert by_key.count(503) > 3
    answer = http.get("/pv", site=site, page="/a", from_="now-1h")
    assert answer.status == 503 and "cannot be reached" in answer.json["detail"], answer
    assert any(node.address in answer.json["detail"] for node in healed.nodes), answer
    old.resume()
    replica.resume()
    wait_until(lambda: http.get("/pv", site=site, page="/a", from_="now-1h").status == 200, "answers again", deadline_s=30)
    assert 1 + statuses.count(202) <= http.count("pv", site=site, page="/a", from_="now-1h") <= 1 + len(statuses)
    assert http.count("pv", site=site, page="/k", from_="now-1h") == by_key.count(202)


def test_a_start_finds_the_data_or_refuses_it(healed, on_cluster, start_tallyd, site):
    tallyd = on_cluster(healed)
    tallyd.client().accept([{"site": site, "page": "/a", "user": "u"}] * 3)
    tallyd.terminate()
    assert on_cluster(healed).client().count("pv", site=site, from_="now-1h") == 3
    other = start_tallyd("--partitions", "32", redis=healed, wait_ready=False)
    assert other.process.wait(20) == 2
    assert "another number of partitions" in other.tail()


def test_the_start_waits_for_a_cluster_that_is_not_one_yet(start_tallyd, site):
    one = Cluster(primaries=3, replicas=0, options=SAFE)
    try:
        one.start_nodes()
        tallyd = start_tallyd(*FEW, "--ack-replicas", "0", redis=one, wait_ready=False)
        wait_until(lambda: "cannot use Redis" in tallyd.tail(), "it has tried")
        one.join()
        tallyd.wait_ready_line()
        wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready", deadline_s=30)
        tallyd.client().accept([{"site": site, "page": "/a"}])
        assert tallyd.client().count("pv", site=site, from_="now-1h") == 1
    finally:
        one.stop()
