"""Visits count in the order of arrival, though the events lie in more logs than one round of folds took before."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.waiting import wait_until

pytestmark = pytest.mark.cluster

N = 400  # visitors
HOLD = "TALLYD_TEST_FOLD_HOLD"


def test_all_logs_are_in_one_round(cluster, start_tallyd, site):
    """Each visitor's first event goes through one process and the next through another, which somebody asks all the while: so its
    folds, which are held up for a while, have the logs of both to count.  A key leads to one of 64 places, each with a log of its
    own."""
    options = ("--partitions", "256", "--request-timeout", "30s")
    first = start_tallyd(*options, redis=cluster, env={HOLD: "60000"})
    second = start_tallyd(*options, redis=cluster, env={HOLD: "3000"})
    second.client(60).accept([{"site": "other", "page": "/"}])
    assert second.client(60).count("pv", site="other", from_="now-1h") == 1, "it has folded before"
    now = int(time.time()) // 60 * 60
    ended = threading.Event()

    def ask():
        with_answers = second.client(60)
        while not ended.is_set():
            assert with_answers.get("/pv", site=site, from_="now-9h").status in (200, 503)

    def post(http, i, ts):
        event = {"site": site, "page": "/", "visitor": f"v{i}", "ts": ts}
        key = {"Idempotency-Key": f"{site} {i} {ts}"}
        wait_until(lambda: http.post([event], headers=key).status == 202, "it is taken")  # a busy machine's server may be away: 503

    with ThreadPoolExecutor(5) as pool:
        asked = pool.submit(ask)
        try:
            for tallyd, ts in ((first, now - 7200), (second, now - 3600)):  # a visitor's two events are further apart than clocks
                clients = [tallyd.client(60) for _ in range(4)]
                list(pool.map(lambda of: [post(clients[of], i, ts) for i in range(of, N, 4)], range(4)))
        finally:
            ended.set()
        asked.result()
    visits = second.client(60).count("visits", site=site, from_="now-9h")
    assert 2 * N * 0.97 < visits <= 2 * N, "each process knows Redis's clock to some ms: a few are exchanged"


def test_a_fold_that_nobody_asks_for_takes_all_logs(cluster, start_tallyd, site):
    """A visitor's page view and named event come to two processes, and the second one counts first."""
    options = ("--partitions", "256")
    first = start_tallyd(*options, redis=cluster, env={HOLD: "60000"})
    started = time.monotonic()
    second = start_tallyd(*options, redis=cluster, name="second").client(60)
    time.sleep(started + 5.5 - time.monotonic())  # for 5 s a process counts the logs of all, and once behind that
    second.accept({"site": site, "event": "other", "user": "bob"})
    wait_until(lambda: second.metric("tallyd_fold_events_total") == 1, "it has counted")
    first.client(60).accept({"site": site, "page": "/first", "user": "ann"})
    second.accept({"site": site, "event": "signup", "user": "ann"})
    wait_until(lambda: second.metric("tallyd_fold_events_total") > 1, "it has counted again")
    assert second.question("/stats", site=site)["bounce_rate"] == 0
