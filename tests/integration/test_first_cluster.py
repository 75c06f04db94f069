"""POST /events?first=1 where a user's notes lie on one of several servers, which can go back."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.cluster import Cluster, running
from lib.firsts import told
from lib.waiting import wait_until

pytestmark = pytest.mark.cluster

USERS = 12  # enough for both servers
GO_BACK_S = 2


@pytest.fixture(scope="module")
def everysec():
    with running(Cluster(primaries=2, options=("--appendonly", "yes", "--appendfsync", "everysec"), node_timeout_ms=5000)) as one:
        yield one


def check_in(site, user):
    return {"site": site, "user": user, "actions": ["checkin"]}


def post(http, site, users, key):
    return told(http.post([check_in(site, user) for user in users], first=1, headers={"Idempotency-Key": f"{site} {key}"}))


def users_of(site, n=USERS):
    return [f"{site} {i}" for i in range(n)]


def test_once_a_day(cluster, on_cluster, site):
    """What every server has synced, and a replica has, need not be waited for."""
    http = on_cluster(cluster).client(30)
    users = users_of(site)
    all_of_them = {i: ["checkin"] for i in range(USERS)}
    assert post(http, site, users[:3], "some") == {i: ["checkin"] for i in range(3)}
    assert post(http, site, users, "all") == {i: ["checkin"] for i in range(3, USERS)}
    assert post(http, site, users, "all again") == {}
    assert post(http, site, users, "all") == {i: ["checkin"] for i in range(3, USERS)}, "a repeat"
    assert post(http, site + "-2", users, "all") == all_of_them, "another site"
    assert on_cluster(cluster).client(30).question("/dau", site=site, action="checkin")["users"] == USERS


def test_it_waits_until_it_cannot_be_lost(everysec, on_cluster, site):
    http = on_cluster(everysec, "--request-timeout", "20s").client(30)
    for turn in range(2):
        begun = time.monotonic()
        assert post(http, site, users_of(site), turn) == ({} if turn else {i: ["checkin"] for i in range(USERS)})
        assert time.monotonic() - begun > GO_BACK_S


def test_a_connection_that_is_lost_meanwhile(everysec, on_cluster, site):
    """It may mean that the server has gone back: the waiting begins anew, and the answer is right."""
    tallyd = on_cluster(everysec, "--request-timeout", "20s")
    waits = (tallyd.client(30), tallyd.client(30))

    def lose(attempt):
        """How long it was until the answer came; None: it came before."""
        own = f"{site}-{attempt}"
        users = users_of(own)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(post, waits[0], own, users, "first")
            wait_until(lambda: waits[1].get("/dau", site=own, action="checkin").json.get("users") == USERS, "it is folded")
            folded = time.monotonic()
            wait_until(lambda: time.monotonic() - folded > 0.75 * GO_BACK_S, "most of the time is over")
            in_time = not waiting.done()
            for node in everysec.nodes[:2]:
                node.command("CLIENT", "KILL", "TYPE", "normal")
            lost = time.monotonic()
            assert waiting.result() == {i: ["checkin"] for i in range(USERS)}
            took = time.monotonic() - lost
        assert post(waits[1], own, users, "again") == {}
        return took if in_time else None

    took = [took for took in map(lose, range(3)) if took is not None]
    assert took and min(took) > GO_BACK_S, took
