"""Answers that are given again while nothing changes: few commands for a question of a whole site, and never one that is older than the question."""

import random
import time

from lib.log import heads
from lib.waiting import wait_until

PARTITIONS = 256
SITE_QUESTIONS = ("/visits", "/stats", "/pages", "/dau", "/active", "/frequency", "/sites")


def calls(redis):
    """Commands that Redis has carried out, but for its own."""
    info = redis.command("INFO", "commandstats")
    lines = [line for line in info.splitlines() if line.startswith("cmdstat_")]
    return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if not line.startswith(("cmdstat_info", "cmdstat_evalsha")))


def figures(http, site):
    return {"visits": http.count("visits", site=site), "pv": http.count("pv", site=site),
            "dau": http.question("/dau", site=site)["users"], "stats": http.question("/stats", site=site)["pv"]}


def two(start_redis, start_tallyd, *args):
    redis = start_redis()
    return redis, [start_tallyd("--partitions", str(PARTITIONS), *args, redis=redis, name=f"t{i}").client(60) for i in range(2)]


def test_a_question_of_a_site_that_is_asked_again_asks_no_partition(start_redis, start_tallyd):
    redis, (http, _) = two(start_redis, start_tallyd)
    http.accept([{"page": f"/{i % 7}", "user": f"u{i}"} for i in range(300)])
    for path in SITE_QUESTIONS:
        def asked(path=path):
            before, unchanged = calls(redis), http.metric("tallyd_queries_unchanged_total")
            for _ in range(20):
                answer = http.question(path)
            return answer, calls(redis) - before, http.metric("tallyd_queries_unchanged_total") - unchanged

        first = http.question(path)
        # (A new minute, or a second that is over, has all partitions asked once more.)
        wait_until(lambda: asked()[1] < PARTITIONS, f"{path}: twenty questions take less than a command for each partition")
        answer, _, again = asked()
        assert again >= 15, path
        changing = ("from", "to", "window", "cover")
        assert {k: v for k, v in answer.items() if k not in changing} == {k: v for k, v in first.items() if k not in changing}


def test_events_of_another_process_are_in_the_very_next_answer(start_redis, start_tallyd, seed):
    _, clients = two(start_redis, start_tallyd)
    chance = random.Random(seed)
    for i in range(150):
        for _ in range(chance.randrange(3)):
            figures(chance.choice(clients), "s")
        chance.choice(clients).accept({"site": "s", "page": f"/{i}", "user": f"u{i}", "ip": "192.0.2.1"})
        n = i + 1
        assert figures(chance.choice(clients), "s") == {"visits": n, "pv": n, "dau": n, "stats": n}, f"seed {seed}, round {i}"


def test_a_log_that_came_and_was_closed_meanwhile(start_redis, start_tallyd):
    """The heads are the same again.  A third process counts and stops within the second in which an answer is given again."""
    redis, (http, other) = two(start_redis, start_tallyd)
    http.accept({"site": "s", "page": "/", "user": "u", "ip": "192.0.2.1"})
    counted, within = 1, 0
    for i in range(6):
        before, begun = heads(redis), time.monotonic()
        assert other.count("pv", site="s") == counted
        third = start_tallyd("--partitions", str(PARTITIONS), redis=redis, name=f"third{i}")
        third.client().accept({"site": "s", "page": f"/{i}", "user": f"u{i}", "ip": "192.0.2.1"})
        third.terminate()
        counted += 1
        assert other.count("pv", site="s") == counted
        within += time.monotonic() - begun < 1 and heads(redis) == before
    assert within, "once the heads were the same"


def test_what_was_forgotten_or_taken_back_is_in_no_answer_of_another_process(start_redis, start_tallyd):
    _, (http, other) = two(start_redis, start_tallyd)
    users = [f"u{i}" for i in range(12)]
    http.accept([{"site": "s", "page": "/", "user": user} for user in users])
    today = http.question("/dau", site="s")["date"]
    for left, user in zip(range(11, -1, -1), users):
        for _ in range(3):
            assert other.question("/dau", site="s")["users"] == left + 1
        path = f"/users/{user}?site=s" if left % 2 == 0 else f"/users/{user}/activity?site=s&action=active&date={today}"
        assert http.request("DELETE", path).status in (200, 204)
        assert other.question("/dau", site="s")["users"] == left


def test_a_site_that_was_deleted_is_in_no_answer_of_another_process(start_redis, start_tallyd):
    redis, (http, other) = two(start_redis, start_tallyd)
    http.accept([{"site": "s", "page": "/", "user": f"u{i}"} for i in range(20)])
    assert http.request("DELETE", "/sites/s").status == 202

    def gone():
        figures(other, "s")
        return not redis.command("KEYS", "t:*:deletions")
    wait_until(gone, "the deletion is over", deadline_s=60, pause_s=0)
    assert figures(other, "s") == {"visits": 0, "pv": 0, "dau": 0, "stats": 0}


def test_a_page_that_was_deleted_is_in_no_answer_of_another_process(start_redis, start_tallyd):
    """(Of pages the end is told at once.)"""
    redis, (http, other) = two(start_redis, start_tallyd)
    for i in range(5):
        http.accept([{"site": "s", "page": f"/{i}", "user": f"u{j}"} for j in range(20)])
        assert other.count("pv", site="s", page=f"/{i}") == 20
        assert http.request("DELETE", f"/pages?site=s&page=/{i}").status == 202

        def over():
            other.count("pv", site="s", page=f"/{i}")
            return not redis.command("KEYS", "t:*:deletions")
        wait_until(over, "the deletion is over", deadline_s=60, pause_s=0)
        assert other.count("pv", site="s", page=f"/{i}") == 0
