"""Sums of all partitions together (storage/count/whole.h): a window that was not asked before is made of hours that are known, and no answer is older
than its question.  `plain` remembers nothing and must say the same."""

import time

import pytest
from lib.clock import epoch
from lib.proxy import Fault
from lib.remembering import clients, events, questions, two_and_plain, window
from lib.some import few
from lib.waiting import wait_until
from lib.world import FOREVER

PARTITIONS = 16
KEYS = "tallyd_query_keys_total"


@pytest.fixture(scope="module")
def world():
    """Whole answers are given again, too."""
    yield from two_and_plain("--partitions", str(PARTITIONS))


def figures(http, **asked):
    """Visits, and with the rest of /stats what visits gained."""
    stats = http.question("/stats", **asked)
    return {"visits": http.count("visits", **asked), **{k: v for k, v in stats.items() if not isinstance(v, dict) or k == "visits"}}


def test_hours_that_are_known_make_up_another_window(world, clients, site, chance):
    """Hours of a day are read once; then any of its windows, of the same hours, needs no key."""
    http, _, plain = clients
    day = epoch("2026-02-01")
    http.accept(events(site, chance, 600, day, day + 86400))
    whole = {"site": site, **window(day + 3600, day + 23 * 3600)}

    def ask():
        """Keys read for windows within one that was asked before."""
        assert http.count("visits", **whole) == plain.count("visits", **whole)
        keys = http.metric(KEYS)
        for first in range(2, 22):
            last = first + 1 + (first * 5) % (23 - first)
            asked = {"site": site, **window(day + first * 3600, day + last * 3600)}
            assert http.count("visits", **asked) == plain.count("visits", **asked), asked
        return http.metric(KEYS) - keys

    wait_until(lambda: ask() == 0, "no key is read")  # (Rollups of the late hours give new ids.)


def test_a_late_event_is_in_every_window_that_has_its_hour(clients, site, chance):
    """Of any process; what was read of the other partitions stays, and hours are told apart."""
    http, other, plain = clients
    day = epoch("2026-01-12")
    http.accept(events(site, chance, 400, day, day + 86400))
    counted = [http.count("visits", site=site, **window(day, day + h * 3600)) for h in range(1, 24)]
    for i in range(40):
        hour = chance.randrange(23)
        chance.choice((http, other)).accept({"site": site, "page": "/late", "user": f"late {i}", "ts": day + hour * 3600 + 60 * chance.randrange(60)})
        for h in {hour, max(hour - 1, 0), chance.randrange(23)}:
            expected = counted[h] = counted[h] if h < hour else counted[h] + 1
            assert http.count("visits", site=site, **window(day, day + (h + 1) * 3600)) == expected, f"round {i}, hour {h}"
        counted = [plain.count("visits", site=site, **window(day, day + h * 3600)) for h in range(1, 24)]


def test_random_windows_between_late_events_and_rollups(world, clients, site, chance, seed):
    """Windows that begin and end anywhere, of hours or of minutes, mostly new ones, of two that count and remember."""
    for i, _ in questions(world, clients, site, chance, dict, events, rounds=few(120), every=30, days=5):
        now = int(world.now())
        unit = chance.choice((60, 3600, 3600, 86400))
        first = chance.randrange(now - 5 * 86400, now) // unit * unit
        last = min(first + unit * chance.randrange(1, 40), now + 3600)
        for _ in range(2):
            asked = {"site": site, **window(first, max(last, first + 60))}
            for http in clients[:2]:
                assert figures(http, **asked) == figures(clients[2], **asked), f"seed {seed}, {i}: {asked}"
            first += unit if first + 2 * unit < last else 0


# What is held up on its way


def views(day, site, hours, users, page="/p"):
    return [{"site": site, "page": page, "user": user, "ip": "192.0.2.1", "ts": day + hour * 3600 + 60} for hour in hours for user in users]


@pytest.fixture
def start(start_redis, start_proxy, start_tallyd):
    """Two processes, one of them behind a proxy: proxy, its client, the other client."""
    redis = start_redis()
    proxy = start_proxy(redis)
    args = (*FOREVER, "--partitions", str(PARTITIONS))
    behind = start_tallyd(*args, redis=proxy, name="behind")
    wait_until(lambda: "leading the rollups" in behind.log_text(), "it leads")
    return redis, proxy, behind.client(60), start_tallyd(*args, redis=redis, name="other").client(60)


def days_ago(n):
    return int(time.time()) // 86400 * 86400 - n * 86400


def test_a_page_is_asked_for_while_the_end_of_its_deletion_is_told(start):
    """The partitions hear one after the other that it is over.  What was remembered of one that has not heard it is in no answer afterwards."""
    redis, proxy, leader, http = start

    def is_mark(args):
        return args[0].upper() == b"EVALSHA" and len(args) == 11 and args[2] == b"2" and args[3].endswith(b":state") and args[4].endswith(b":pass")

    day = days_ago(5)
    for i in range(3):
        page = f"/p{i}"
        http.accept(views(day, "s", (1, 2), [f"{page}u{j}" for j in range(40)], page))
        asked = {"site": "s", "page": page, **window(day + 3600, day + 3 * 3600)}
        assert http.count("visits", **asked) == 80
        end = Fault("command-held", match=is_mark)  # the first mark of the end
        mark = proxy.arm(Fault("command-held", match=is_mark, nth=PARTITIONS - 1, then=end))  # the last one before the sweep
        assert leader.request("DELETE", f"/pages?site=s&page={page}").status == 202
        assert mark.arrived.wait(10)
        http.count("visits", **asked)  # remembered by ids that hold until the end is told
        mark.release()
        assert end.arrived.wait(10)
        http.count("visits", **asked)
        end.release()
        wait_until(lambda: not redis.command("KEYS", "t:*:deletions"), "it is over", deadline_s=20, pause_s=0)
        assert http.count("visits", **asked, step="1d") == http.count("visits", **asked) == 0, page
