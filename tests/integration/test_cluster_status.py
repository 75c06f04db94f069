"""GET /cluster: the servers that have the data, what is wrong with them, and what to do."""

import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.cluster import Cluster
from lib.process import binary
from lib.waiting import wait_until


def status(http):
    answer = http.get("/cluster")
    assert answer.status == 200, answer
    return answer.json


def test_one_redis(start_redis, start_tallyd):
    redis = start_redis()
    answer = status(start_tallyd("--partitions", "4", redis=redis).client())
    assert (answer["kind"], answer["state"], answer["partitions"], answer["advice"]) == ("one", "ok", 4, [])
    (node,) = answer["nodes"]
    assert node["state"] == "ok" and node["partitions"] == 4 and node["slots"] is None


@pytest.mark.cluster
def test_a_cluster_and_what_is_wrong_with_it(start_tallyd):
    """A replica dies, a slot is left open, a state is deleted, a node stands still: each is said, with what to do."""
    cluster = Cluster(primaries=3, replicas=1)
    try:
        tallyd = start_tallyd("--partitions", "16", redis=cluster.start())
        http = tallyd.client()
        whole = status(http)
        assert whole["state"] == "ok" and whole["kind"] == "cluster" and whole["unserved"] == 0, whole
        assert {n["address"] for n in whole["nodes"]} == {n.address for n in cluster.nodes[:3]}
        assert sum(n["slots"] for n in whole["nodes"]) == 16384 and sum(n["partitions"] for n in whole["nodes"]) == 16
        assert all([r["online"] for r in n["replicas"]] == [True] for n in whole["nodes"])

        cluster.nodes[3].kill()
        source, slot = cluster.nodes[1], next(first for first, _, n in cluster.owners() if n is cluster.nodes[1])
        cluster.open_slot(slot, cluster.nodes[2])
        lost = source.command("KEYS", "t:*:state")[0]
        source.command("DEL", lost)

        def broken():
            found = status(http)
            assert found["state"] == "degraded"
            advice = "\n".join(found["advice"])
            assert f"{cluster.nodes[0].address} has 0 replicas that receive what it writes" in advice
            assert f"slot {slot} is leaving {source.address}" in advice
            assert f"slot {slot} is coming to {cluster.nodes[2].address}" in advice
            assert f"partition {found['without_state'][0]} has lost its state" in advice and len(found["without_state"]) == 1
            return True

        wait_until(broken, "all of it is said", deadline_s=20)
    finally:
        cluster.stop()


@pytest.mark.cluster
def test_a_node_that_stands_still_hides_no_other(start_tallyd):
    """It is away, the others are ok: at once, before it is known to be away, and from then on."""
    cluster = Cluster(primaries=3, replicas=0)
    try:
        http = start_tallyd("--partitions", "16", "--ack-replicas", "0", redis=cluster.start()).client()
        for _ in range(16):
            assert {n["state"] for n in status(http)["nodes"]} == {"ok"}
        cluster.nodes[0].pause()
        for _ in range(8):
            found = status(http)
            assert found["state"] == "degraded", found
            assert {n["address"]: n["state"] for n in found["nodes"]} == dict(
                zip((n.address for n in cluster.nodes), ("away", "ok", "ok")))
    finally:
        cluster.nodes[0].resume()
        cluster.stop()


@pytest.mark.cluster
def test_readiness_waits_for_no_question(start_tallyd, site):
    """A node stands still, and more questions wait for it than there are readers: the others take writes, which /readyz says."""
    cluster = Cluster(primaries=3, replicas=0)
    options = ("--partitions", "16", "--ack-replicas", "0", "--readers", "2", "--request-timeout", "5s")
    try:
        tallyd = start_tallyd(*options, redis=cluster.start())
        tallyd.client().accept([{"site": site, "page": f"/{n}"} for n in range(50)])
        cluster.nodes[2].pause()
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(tallyd.client().get, "/pv", site=site, page=f"/{n}", from_="now-1h") for n in range(12)]
            time.sleep(1)
            answers = []
            for _ in range(3):
                answers.append(tallyd.client().get("/readyz"))
                time.sleep(1)
            cluster.nodes[2].resume()
        assert [a.status for a in answers] == [200] * 3, answers
        assert any(cluster.nodes[2].address in why for why in answers[2].json["degraded"]), answers[2]
        assert {a.result().status for a in asked} <= {200, 503}
    finally:
        cluster.nodes[2].resume()
        cluster.stop()


def command(*arguments):
    done = subprocess.run([binary(), "cluster", *arguments], capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


def test_the_command_needs_no_service(start_redis, start_tallyd):
    """One Redis; data or none; what is typed wrong; nobody there."""
    redis = start_redis()
    assert command("status", "--redis", redis.url) == (1, "", "tallyd: cluster: there is no data yet\n")
    start_tallyd("--partitions", "20", redis=redis)
    code, out, _ = command("status", "--redis", redis.url)
    assert code == 0 and out.startswith("ok: 20 partitions on 1 server\n"), out
    for wrong in (["status"], ["--redis", redis.url], ["reset-partition", "--redis", redis.url], ["status", "x", "--redis", redis.url],
                  ["reset-partition", "x", "--redis", redis.url], ["status", "--redis"]):
        assert command(*wrong)[0] == 2, wrong
    assert "--redis URL is needed" in command("status", "--redis")[2]
    assert "there is no such partition" in command("reset-partition", "20", "--redis", redis.url)[2]
    assert "has its state" in command("reset-partition", "3", "--redis", redis.url)[2]
    code, _, error = command("status", "--redis", "redis://127.0.0.1:1")
    assert code == 1 and "connect failed: Connection refused" in error


def refused(answer):
    assert answer.status == 503, answer
    return answer


@pytest.mark.cluster
def test_a_partition_gets_a_state_again(start_tallyd, site):
    """Its data is lost: said, refused while anything of its slot is left, and then counted anew."""
    cluster = Cluster(primaries=3, replicas=1)
    try:
        tallyd = start_tallyd("--partitions", "16", "--request-timeout", "2s", redis=cluster.start())
        tallyd.client().accept([{"site": site, "page": "/a"}])
        lost = sorted(k for n in cluster.nodes[:3] for k in n.command("KEYS", "t:*:state"))[3]
        slot = cluster.nodes[0].command("CLUSTER", "KEYSLOT", lost)
        owner = cluster.owner(slot)
        owner.command("DEL", lost)
        owner.command("SET", lost.replace("state", "left"), "1")
        question = {"from_": "now-1h", "site": site}
        answer = wait_until(lambda: refused(tallyd.client().get(f"/pages?from=now-1h&site={site}")), "a question is refused")
        code, out, _ = command("status", "--redis", cluster.url)
        number = int(re.search(r"- partition (\d+) has lost its state", out).group(1))
        sentence = f"partition {number} has lost its state: mend slot {slot}, or `tallyd cluster reset-partition {number}`"
        assert answer.json["detail"] == sentence
        assert tallyd.client().metric("tallyd_partitions_without_state") == 1
        wait_until(lambda: tallyd.client().get("/readyz").json.get("degraded") == [sentence], "/readyz says so")  # it is asked each second
        assert tallyd.client().get("/readyz").status == 200
        tallyd.client().accept([{"site": site, "page": f"/{i}", "user": str(i)} for i in range(50)])
        late = tallyd.client().get(f"/pv?from=now-1h&site={site}")
        assert late.status == 503 and late.json["detail"] == sentence, late
        assert code == 1 and out.startswith("degraded: 16 partitions on 3 servers\n"), out
        left = lost.replace("state", "left")
        tag = lost.rsplit(":", 1)[0]
        may_stay = [f"{tag}:rl:funnel::x", f"{tag}:key:0123456789abcdef", f"{tag}:late", f"{tag}:secret:0", f"{tag}:rewritten"]
        for key in may_stay:  # these are written also where there is no state
            owner.command("SET", key, "1")
        for key in owner.command("CLUSTER", "GETKEYSINSLOT", slot, 100):
            if key.startswith((f"{tag}:log:", f"{tag}:heads")):
                may_stay.append(key)
            elif key not in (left, *may_stay):
                owner.command("DEL", key)
        assert f"slot {slot} is not empty: it has {left}, " in command("reset-partition", str(number), "--redis", cluster.url)[2]
        owner.command("DEL", left)
        code, out, error = command("reset-partition", str(number), "--redis", cluster.url)
        assert code == 0, error
        assert owner.command("HGET", lost, "cfg") is not None
        assert owner.command("EXISTS", *may_stay[:5]) == 5
        assert command("status", "--redis", cluster.url)[0] == 0
        wait_until(lambda: "degraded" not in tallyd.client().get("/readyz").json, "it is whole again")
        assert tallyd.client().metric("tallyd_partitions_without_state") == 0
        assert tallyd.client().count("pv", **question) <= 51  # what the partition had is gone, nothing is doubled
        assert "has its state" in command("reset-partition", str(number), "--redis", cluster.url)[2]
    finally:
        cluster.stop()
