"""Closed hours are read without a transaction: what is counted into them between two commands is not lost to what is remembered."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.log import HELD
from lib.proxy import Fault
from lib.waiting import wait_until

HOUR = 3600
NAMES = 64
READS = {"/visits": b"ZMSCORE", "/pages": b"ZSCAN"}
KEEP = ("--partitions", "16", "--keep-minutes", "forever", "--keep-hours", "forever")


def events(site, hours, user):
    """One of each page in each hour."""
    return [{"site": site, "page": f"/{i}", "user": f"{user}{i}", "ts": hour + 60 * (i % 60)} for hour in hours for i in range(NAMES)]


def views(path, answer):
    return answer["visits"] if path == "/visits" else sum(row["pv"] for row in answer["pages"])


@pytest.mark.parametrize("path", READS)
def test_late_events_between_two_hours_that_are_read(start_redis, start_tallyd, start_proxy, site, path):
    """The reader has sent for the first hour, and stands before the second one, of a partition whose piece is plain."""
    redis = start_redis()
    proxy = start_proxy(redis)
    asker = start_tallyd(*KEEP, redis=proxy, env=HELD).client()
    other = start_tallyd(*KEEP, redis=redis).client()
    first = (redis.time() // HOUR - 5) * HOUR
    hours = [first, first + HOUR]
    window = {"site": site, "from_": first, "to": first + 2 * HOUR} | ({"limit": 100} if path == "/pages" else {})
    other.accept(events(site, hours, "early"))

    def are_closed():
        other.request("POST", "/rollup")
        assert other.question(path, **window)["cover"]["minute"] == 0
        return True

    wait_until(are_closed, "both hours are closed", deadline_s=30)
    for i in range(2, 5):  # of hours before: the states are learnt, and are the same again
        asker.question(path, site=site, from_=first - i * HOUR, to=first - HOUR)
    fault = proxy.arm(Fault("command-held", nth=4, match=lambda args: args[0].upper() == READS[path]))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asker.question, path, **window)
        assert fault.arrived.wait(10), "a partition's second hour is about to be read"
        other.accept(events(site, hours, "late"))
        assert views(path, other.question(path, **window)) == 4 * NAMES, "they are counted"
        fault.release()
        assert 2 * NAMES <= views(path, answer.result()) <= 4 * NAMES
    for _ in range(2):
        assert views(path, asker.question(path, **window)) == 4 * NAMES
