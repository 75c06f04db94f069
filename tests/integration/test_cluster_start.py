"""A start while a primary of the cluster is away, with its replica: degraded, and nothing is made anew.  TALLYD_REDIS_SERVER= chooses
the cluster's server."""

import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.cluster import Cluster, running
from lib.log import states
from lib.process import binary
from lib.waiting import wait_until

FEW = ("--partitions", "24")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.cluster


@pytest.fixture
def cluster():
    with running(Cluster(options=SAFE)) as one:
        yield one


def secret_owner(cluster):
    return next(n for n in cluster.primaries() if n.command("KEYS", "t:*:secret"))


def take_away(cluster):
    """Kill a primary that has neither the secret nor the clock, and its replica: (primary, replica)."""
    primary = next(n for n in cluster.primaries() if n is not secret_owner(cluster))
    replica = cluster.replicas_of(primary)[0]
    replica.kill()
    primary.kill()
    return primary, replica


def settings(*nodes):
    return {node.command("HGET", key, "cfg") for node in nodes for key in states(node)}


def test_a_start_without_a_primary_is_degraded(cluster, start_tallyd, site):
    """Requests without a key, and those with a key of another node, are taken; the others get a 503 at once, and questions one that
    names the node.  When it is back its partitions get this start's settings, and all is counted."""
    first = start_tallyd(*FEW, redis=cluster)
    first.client().accept([{"site": site, "page": "/a", "user": str(i)} for i in range(60)])
    first.terminate()
    primary, replica = take_away(cluster)
    tallyd = start_tallyd(*FEW, "--keep-minutes", "72h", "--request-timeout", "3s", redis=cluster)
    assert "some partitions' servers are away" in tallyd.log_text() and primary.address in tallyd.log_text()
    http = tallyd.client()
    plain = [http.post([{"site": site, "page": "/a"}]).status for _ in range(10)]
    assert plain == [202] * 10
    begin = time.monotonic()
    keyed = [http.post([{"site": site, "page": "/k"}], headers={"Idempotency-Key": f"{site} {n}"}) for n in range(40)]
    statuses = [answer.status for answer in keyed]
    assert set(statuses) == {202, 503} and statuses.count(503) > 3, statuses
    assert all(primary.address in a.json["detail"] for a in keyed if a.status == 503)
    assert time.monotonic() - begin < 5, "at once: it is known to be away"
    ready = http.get("/readyz")
    assert ready.status == 200 and any(primary.address in line for line in ready.json["degraded"]), ready
    question = tallyd.client().get("/pv", site=site, from_="now-1h")
    assert question.status == 503 and primary.address in question.json["detail"], question
    primary.start()
    replica.start()
    wait_until(lambda: http.get("/pv", site=site, from_="now-1h").status == 200, "questions are answered", deadline_s=30)
    assert http.count("pv", site=site, from_="now-1h") == 60 + 10 + statuses.count(202)
    wait_until(lambda: len(settings(*cluster.primaries())) == 1, "all partitions have the same settings")
    assert re.search(r"keep=259200,", settings(primary).pop())
    wait_until(lambda: "degraded" not in http.get("/readyz").json, "it is whole")


def test_a_primary_that_comes_back_empty_gets_no_states(cluster, start_tallyd, site):
    """Its partitions had states once: what lies there is refused with a sentence, and the start makes nothing anew."""
    start_tallyd(*FEW, redis=cluster).terminate()
    primary, replica = take_away(cluster)
    tallyd = start_tallyd(*FEW, redis=cluster)
    for node in (primary, replica):
        shutil.rmtree(node.directory / "appendonlydir")
        node.start()
    http = tallyd.client()
    wait_until(lambda: re.search(r"partition \d+ has lost its state", http.get("/pages", site=site, from_="now-1h").json.get("detail", "")),
               "it is refused with a sentence", deadline_s=30)
    assert states(primary) == []
    tallyd.terminate()
    again = start_tallyd(*FEW, redis=cluster)
    assert "has lost its state" in again.log_text() and states(primary) == []


def test_the_first_start_waits_for_all(start_tallyd, site):
    """It makes each partition's state once, so it needs every primary; nothing is written before."""
    one = Cluster(primaries=3, replicas=0, options=SAFE)
    try:
        one.start()
        one.nodes[2].kill()
        tallyd = start_tallyd(*FEW, "--ack-replicas", "0", redis=one, wait_ready=False)
        wait_until(lambda: "cannot use Redis" in tallyd.log_text(), "it has tried")
        wait_until(lambda: "cannot be reached: " in tallyd.log_text(), "it says why", deadline_s=20)
        assert [n.command("DBSIZE") for n in one.nodes[:2]] == [0, 0]
        one.nodes[2].start()
        tallyd.wait_ready_line()
        tallyd.client().accept([{"site": site, "page": "/a"}])
        assert tallyd.client().count("pv", site=site, from_="now-1h") == 1
    finally:
        one.stop()


@pytest.fixture
def alone(cleanup):
    """Three primaries without replicas."""
    cluster = Cluster(primaries=3, replicas=0, options=SAFE, node_timeout_ms=2000)
    cleanup.append(cluster.stop)
    return cluster.start()


def come_back_empty(node):
    node.kill()
    shutil.rmtree(node.directory / "appendonlydir")
    node.start()


def count_and_cut(tallyd, cluster, site):
    """Count 1000 page views whose entries leave the logs, but for the last ones."""
    http = tallyd.client()
    for n in range(5):
        http.accept([{"site": site, "page": f"/{i}"} for i in range(200)])
        assert http.count("pv", site=site, from_="now-1h") == 200 * (n + 1)
        time.sleep(1.5)
    wait_until(lambda: sum(n.command("XLEN", k) for n in cluster.nodes for k in n.command("KEYS", "t:*:log:*")) <= 1, "cut")


ALONE = (*FEW, "--ack-replicas", "0", "--request-timeout", "3s", "--log-hold", "1s")


def test_the_first_primary_is_empty_before_the_rest_is_prepared(alone, start_tallyd, site):
    """It had the secret, and the note that all states were made: the process knows both, so it makes no state anew."""
    tallyd = start_tallyd(*ALONE, redis=alone)
    count_and_cut(tallyd, alone, site)
    tallyd.terminate()
    first = secret_owner(alone)
    other = next(n for n in alone.nodes if n is not first)
    other.kill()
    wait_until(lambda: not first.state_is("ok") or "fail" in first.command("CLUSTER", "NODES"), "it is known to be away", deadline_s=20)
    tallyd = start_tallyd(*ALONE, redis=alone)
    come_back_empty(first)
    other.start()
    alone.wait_ok()
    wait_until(lambda: "lost its state" in str(tallyd.client().get("/readyz").json), "that is said", deadline_s=20)
    begin = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: tallyd.client().get("/pv", site=site, page=f"/{i}", from_="now-1h"), range(24)))
    assert all(a.status == 503 or a.json["pv"] == 5 for a in answers), "whole, or refused"
    assert 503 in {a.status for a in answers} and states(first) == []
    assert time.monotonic() - begin < 6, "at once: what is lost does not come back by itself"


def test_an_empty_primary_is_found_where_nobody_asks(alone, start_tallyd):
    """Also by a process that does not lead the rollups: /readyz looks at each partition."""
    processes = [start_tallyd(*ALONE, redis=alone) for _ in range(2)]
    come_back_empty(next(n for n in alone.nodes if n is not secret_owner(alone)))
    alone.wait_ok()
    for tallyd in processes:
        wait_until(lambda: "lost its state" in str(tallyd.client().get("/readyz").json), "that is said", deadline_s=20)
        assert tallyd.client().metric("tallyd_partitions_without_state") == 8


def test_the_secret_comes_back_to_an_empty_primary(alone, start_tallyd, site):
    """From the process that runs; its partitions get states by hand, also the first one; the next start finds the data."""
    tallyd = start_tallyd(*ALONE, redis=alone)
    count_and_cut(tallyd, alone, site)
    first = secret_owner(alone)
    secret = next(key for key in first.command("KEYS", "t:*:secret"))
    before, n = first.command("GET", secret), len(states(first))
    pages = {f"/{i}" for i in range(200)}
    come_back_empty(first)
    alone.wait_ok()
    wait_until(lambda: "lost its state" in str(tallyd.client().get("/readyz").json), "that is said", deadline_s=20)
    wait_until(lambda: first.command("GET", secret) == before, "it is back", deadline_s=20)
    assert states(first) == []
    for partition in range(n):
        done = subprocess.run([binary(), "cluster", "reset-partition", str(partition), "--redis", alone.url],
                              capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
    wait_until(lambda: tallyd.client().get("/pv", site=site, from_="now-1h").status == 200, "answers", deadline_s=20)
    tallyd.terminate()
    http = start_tallyd(*ALONE, redis=alone).client()
    counts = {page: http.count("pv", site=site, page=page, from_="now-1h") for page in pages}
    assert list(counts.values()).count(5) > 80 and max(counts.values()) == 5, "those of the other primaries are whole"


def test_two_of_three_primaries_come_back(alone, start_tallyd, site):
    """All were away, and requests are refused at once.  The place of the log comes back last: requests go to the others until then."""
    tallyd = start_tallyd(*ALONE, redis=alone)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/"}])
    home = next(n for n in alone.nodes if n.command("KEYS", "t:*:log:*"))
    for node in alone.nodes:
        node.kill()

    def refused_at_once():
        begin = time.monotonic()
        return http.post([{"site": site, "page": "/"}]).status == 503 and time.monotonic() - begin < 0.2

    wait_until(refused_at_once, "nothing is waited for")
    for node in alone.nodes:
        if node is not home:
            node.start()
    statuses = [202]  # of the first one

    def taken():
        statuses.append(http.post([{"site": site, "page": "/"}]).status)
        return statuses[-1] == 202

    wait_until(taken, "taken at another place", deadline_s=30)
    home.start()
    wait_until(lambda: http.get("/pv", site=site, from_="now-1h").status == 200, "all is counted", deadline_s=30)
    assert 2 <= http.count("pv", site=site, from_="now-1h") <= 2 + statuses.count(504), statuses
