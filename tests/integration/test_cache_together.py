"""Sums of all partitions together (storage/count/whole.h): a window that was not asked before is made of hours that are known, no partition is
asked while nothing changes, and no answer is older than its question.  `plain` remembers nothing and must say the same."""

import pytest
from lib.clock import epoch
from lib.remembering import clients, events, questions, two_and_plain, window
from lib.waiting import wait_until

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


def calls(redis, command):
    for line in redis.command("INFO", "commandstats").splitlines():
        if line.startswith(f"cmdstat_{command}:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


def test_hours_that_are_known_make_up_another_window(world, clients, site, chance):
    """Hours of a day are read once; then any of its windows, of the same hours, needs no key, and no partition's word."""
    http, _, plain = clients
    day = epoch("2026-02-01")
    http.accept(events(site, chance, 600, day, day + 86400))
    whole = {"site": site, **window(day + 3600, day + 23 * 3600)}

    def ask():
        """(keys read, windows that asked no partition) of windows within one that was asked before."""
        assert http.count("visits", **whole) == plain.count("visits", **whole)
        keys, quiet = http.metric(KEYS), 0
        for first in range(2, 22):
            last = first + 1 + (first * 5) % (23 - first)
            asked = {"site": site, **window(day + first * 3600, day + last * 3600)}
            before = calls(world.redis, "hmget")
            visits = http.count("visits", **asked)
            quiet += calls(world.redis, "hmget") - before < PARTITIONS
            assert visits == plain.count("visits", **asked), asked
        return http.metric(KEYS) - keys, quiet

    # (Rollups of the late hours give new ids; after a second all partitions are asked again.)
    wait_until(lambda: (lambda keys, quiet: keys == 0 and quiet >= 12)(*ask()), "no key is read, and mostly no partition asked")


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
    for i, _ in questions(world, clients, site, chance, dict, events, rounds=120, every=30, days=5):
        now = int(world.now())
        unit = chance.choice((60, 3600, 3600, 86400))
        first = chance.randrange(now - 5 * 86400, now) // unit * unit
        last = min(first + unit * chance.randrange(1, 40), now + 3600)
        for _ in range(2):
            asked = {"site": site, **window(first, max(last, first + 60))}
            for http in clients[:2]:
                assert figures(http, **asked) == figures(clients[2], **asked), f"seed {seed}, {i}: {asked}"
            first += unit if first + 2 * unit < last else 0
