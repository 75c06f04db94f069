"""Servers close connections that are idle (`timeout`, a restart, a firewall).  Nothing was sent over them, so nobody is told of it."""

import json
import time

import pytest

from lib.cluster import Cluster

SAFE = ("--appendonly", "yes", "--appendfsync", "always")
READERS = 16  # at least as many as there are


def put(http, path, body):
    return http.request("PUT", path, json.dumps(body), {"Content-Type": "application/json"})


def close_connections(servers):
    for server in servers:
        server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    time.sleep(1.5)  # what is not idle has connected again, and no server is in doubt


def check_after_each(http, servers, site):
    """Each reader has connections; they are closed; what is asked then is answered at the first attempt."""
    for ask in (lambda n: http.get("/readyz"),
                lambda n: http.get("/cluster"),
                lambda n: put(http, f"/filters/f{n}?site={site}", {"capacity": 100, "error_rate": 0.01})):
        for n in range(READERS):
            assert http.get("/readyz").status == 200
            assert http.request("GET", f"/filters/f{n}?site={site}").status in (200, 404)
        close_connections(servers)
        for n in range(READERS):
            answer = ask(n)
            assert answer.status in (200, 201), answer
            assert answer.json.get("state", "ok") != "down", answer.json


def test_one_redis(start_redis, start_tallyd, site):
    redis = start_redis()
    check_after_each(start_tallyd(redis=redis).client(), [redis], site)


@pytest.mark.cluster
def test_a_cluster(start_tallyd, cleanup, site):
    cluster = Cluster(3, 0, options=SAFE, node_timeout_ms=2000)
    cleanup.append(cluster.stop)
    tallyd = start_tallyd("--partitions", "24", "--ack-replicas", "0", redis=cluster.start())
    check_after_each(tallyd.client(), cluster.nodes, site)
