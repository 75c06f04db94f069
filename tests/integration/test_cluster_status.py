"""GET /cluster: the servers that have the data, what is wrong with them, and what to do."""

import pytest

from lib.cluster import Cluster, server_missing
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


@pytest.mark.skipif(server_missing() is not None, reason=str(server_missing()))
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
