"""The logs of a cluster: those of dead processes and of others, what a stop closes, when a silent one is closed and a long one cut.

TALLYD_REDIS_SERVER= chooses the cluster's server.
"""

import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.ledger import Clients, Ledger
from lib.log import HELD
from lib.log import heads as heads_of
from lib.waiting import wait_until

pytestmark = pytest.mark.cluster


def test_two_processes_and_the_log_of_a_dead_one(healed, on_cluster, site):
    """Each counts what both acknowledged; one is killed, and the other counts what it left."""
    one, two, ledger = on_cluster(healed), on_cluster(healed), Ledger(site)
    with Clients(ledger, one, limit=100000, keyed=1) as clients, Clients(Ledger(site + "2"), two, limit=100000) as others:
        clients.more(30)
        others.more(30)
    http, last = one.client(), site + "3"
    one.client().accept([{"site": last, "page": "/last"}])
    assert two.client().count("pv", site=last, page="/last", from_="now-1h") == 1
    one.client().accept([{"site": last, "page": "/last"}])
    http.close()
    one.kill()
    assert two.client().count("pv", site=last, page="/last", from_="now-1h") == 2
    others.ledger.check(two)
    found = ledger.audit(two)
    assert not any(found.values()), found


def test_entries_of_others_are_counted_when_replicas_have_them(healed, on_cluster, site):
    """A failover could take an entry, with the record of its key, and not what it was counted for.  So a question waits for the
    replicas of the log's server: here for half a second."""
    one, two = on_cluster(healed), on_cluster(healed)
    one.client().accept([{"site": site, "page": "/a"}])
    assert two.client().count("pv", site=site, from_="now-1h") == 1
    key = {"Idempotency-Key": f"{site} k"}
    events_before = two.client().metric("tallyd_fold_events_total")
    replicas = [healed.replicas_of(primary)[0] for primary in healed.primaries()]
    primaries = healed.primaries()
    before = appended(primaries)
    for replica in replicas:
        replica.pause()
    with ThreadPoolExecutor(2) as pool:
        written = pool.submit(lambda: one.client().post([{"site": site, "page": "/b"}], headers=key))
        wait_until(lambda: appended(primaries) > before, "it is appended")
        asked = pool.submit(lambda: two.client().count("pv", site=site, from_="now-1h"))
        time.sleep(0.5)
        assert not written.done() and not asked.done()
        assert two.client().metric("tallyd_fold_events_total") == events_before
        for replica in replicas:
            replica.resume()
        assert written.result().status == 202 and asked.result() == 2
    assert two.client().post([{"site": site, "page": "/b"}], headers=key).headers["Idempotency-Replayed"] == "true"
    assert one.client().count("pv", site=site, from_="now-1h") == 2


def appended(nodes):
    """How many entries the open logs have had."""
    return sum(last for n in nodes for last in heads_of(n).values())


def open_logs(nodes):
    """Ids of the logs that have a head, and of those that have a stream."""
    return {log for n in nodes for log in heads_of(n)}, {key.split(":")[-1] for n in nodes for key in n.command("KEYS", "t:*:log:*")}


def test_sigterm_closes_the_logs(healed, on_cluster, site):
    """All that the process appended to, within its time: nobody has anything left to count.  A replica that does not answer
    leaves the logs to the leader."""
    nodes = healed.primaries()
    before = open_logs(nodes)
    tallyd = on_cluster(healed)
    http = tallyd.client()
    for n in range(20):
        assert http.post([{"site": site, "page": "/a"}], headers={"Idempotency-Key": f"{site} {n}"}).status == 202
    http.accept([{"site": site, "page": "/a"}] * 5)
    http.close()
    assert len(open_logs(nodes)[0] - before[0]) > 3
    begin = time.monotonic()
    tallyd.terminate()
    assert time.monotonic() - begin < 2.5
    after = open_logs(nodes)
    assert after[0] <= before[0] and after[1] <= before[1], "no head and no stream is left"

    again = on_cluster(healed)
    assert again.client().count("pv", site=site, from_="now-1h") == 25
    again.client().accept([{"site": site, "page": "/a"}])
    replica = healed.replicas_of(nodes[1])[0]
    replica.pause()
    begin = time.monotonic()
    again.terminate()
    assert time.monotonic() - begin < 3
    assert open_logs(nodes)[0] - before[0], "what was counted may be taken back"
    replica.resume()
    assert on_cluster(healed).client().count("pv", site=site, from_="now-1h") == 26


def test_who_comes_while_the_process_stops_is_told_so(healed, start_tallyd, site):
    """Over a connection that stood idle, while the last entries wait for a fold: also with a key whose place has had no writer."""
    tallyd = start_tallyd("--partitions", "24", redis=healed, env=HELD)
    tallyd.client().accept([{"site": site, "page": "/a"}])
    clients = [tallyd.client() for _ in range(12)]
    assert all(http.get("/healthz").status == 200 for http in clients)
    tallyd.signal(signal.SIGTERM)
    time.sleep(0.3)
    answers = [http.post([{"site": site, "page": "/a"}], headers={"Idempotency-Key": f"{site} {n}"}) for n, http in enumerate(clients)]
    assert {(answer.status, answer.json["detail"]) for answer in answers} == {(503, "the service is stopping")}
    assert tallyd.wait() == 0


def test_a_silent_log_is_closed_step_by_step(healed, on_cluster):
    """Heads and cursors lie on servers that may go back one without the other.  So a log is closed when it has been seen
    counted for as long as a failover can go back, and its cursors stay for half a minute more."""
    http = on_cluster(healed, "--log-hold", "2s").client()
    http.accept([{"page": "/a"}])  # there is a head
    nodes = healed.primaries()
    home, heads = next((n, key) for n in nodes for key in n.command("KEYS", "t:*:heads"))
    states = [(n, key) for n in nodes for key in n.command("KEYS", "t:*:state")]

    def closed_after(log):
        for node, key in states:
            node.command("HSET", key, log, "3")
        home.command("HSET", heads, log, f"3 0123456789abcdef {int(time.time() * 1000) - 31_000}")
        begun = time.monotonic()
        wait_until(lambda: not home.command("HEXISTS", heads, log), "it is closed", deadline_s=40)
        return time.monotonic() - begun

    closed_after(secrets.token_hex(8))  # the leader has just looked, and looks again every 5 s
    log = secrets.token_hex(8)
    assert closed_after(log) > 7, "two looks have seen it counted"
    closed = time.monotonic()
    wait_until(lambda: not any(node.command("HEXISTS", key, log) for node, key in states), "its cursors are gone",
               deadline_s=60, pause_s=0.5)
    assert time.monotonic() - closed >= 30
    assert http.get("/readyz").status == 200


def test_a_log_is_cut_behind_what_no_failover_takes_back(healed, on_cluster, site):
    """An entry stays in its log until it has been seen counted twice, as far apart as a failover can go back."""
    nodes = healed.primaries()
    before = open_logs(nodes)[1]
    http = on_cluster(healed, "--log-hold", "2s").client()
    http.accept([{"site": site, "page": "/a"}])
    assert http.count("pv", site=site, from_="now-1h") == 1
    time.sleep(3)  # the cursors have been read: once, and not of what follows
    http.accept([{"site": site, "page": "/a"}])
    logs = {(n, key): int(n.command("XREVRANGE", key, "+", "-", "COUNT", 1)[0][0].split("-")[0])
            for n in nodes for key in n.command("KEYS", "t:*:log:*") if key.split(":")[-1] not in before}
    assert http.count("pv", site=site, from_="now-1h") == 2
    assert logs
    begun = time.monotonic()

    def is_cut():
        http.accept([{"site": site, "page": "/b"}])  # folds go on
        first = [(n.command("XRANGE", key, "-", "+", "COUNT", 1), last) for (n, key), last in logs.items()]
        return any(not entries or int(entries[0][0].split("-")[0]) > last for entries, last in first)

    wait_until(is_cut, "it is cut", deadline_s=60, pause_s=0.2)
    assert time.monotonic() - begun >= 2, "--log-hold"
