"""What is remembered of closed buckets is never older than the question: late events, rollups, several processes, a
Redis that went back.

`plain` remembers nothing (--cache-mb 0) and is asked the same: every figure must be the same number, estimates too.
"""

import shutil
import threading

from lib.clock import FakeClock, epoch, rfc3339
from lib.log import is_exec
from lib.memory import MIB, resident
from lib.process import Redis, Tallyd, sanitized, short_directory
from lib.remembering import BELOW, START, clients, events, questions, window, work, world
from lib.some import few
from lib.waiting import wait_until
from lib.world import FOREVER

METRICS = ("pv", "uv", "ips", "visits")


def answers(client, **params):
    return {m: {k: v for k, v in client.question("/" + m, **params).items() if k != "cover"} for m in METRICS}


def test_a_window_that_is_over_is_read_once(clients, site, chance):
    http, _, plain = clients
    first, last = epoch("2026-01-07 03:21"), epoch("2026-03-08 14:37")
    http.accept(events(site, chance, 3000, first - 86400, last + 86400))
    asked = {"site": site, "page": "/a", **window(first, last)}
    before = answers(http, **asked)
    hits, keys = work(http)
    assert answers(http, **asked) == before == answers(plain, **asked)
    again = work(http)
    assert again[0] - hits >= 4 * 5, "minutes, hours, days, a month, days, hours, minutes"
    assert again[1] == keys, "no key was read"
    assert work(plain)[0] == 0


def test_a_late_event_of_another_process_is_in_the_very_next_answer(clients, site, chance):
    http, other, plain = clients
    first, last = epoch("2025-11-03 03:21"), epoch("2026-03-09 14:37")
    http.accept(events(site, chance, 500, first, last))
    asked = {"site": site, **window(first, last)}
    figures = answers(http, **asked)
    for i in range(few(60)):
        at = chance.randrange(first, last)
        other.accept({"site": site, "page": "/late", "user": f"late {i}", "ip": f"198.51.100.{i}", "ts": at})
        now = answers(http, **asked)
        assert now["pv"]["pv"] == figures["pv"]["pv"] + 1, f"round {i}, {rfc3339(at)}"
        assert now["visits"]["visits"] == figures["visits"]["visits"] + 1, f"round {i}, {rfc3339(at)}"
        page = answers(http, page="/late", **asked)
        assert page["pv"]["pv"] == i + 1, f"round {i}, {rfc3339(at)}"
        assert page == answers(plain, page="/late", **asked), f"round {i}, {rfc3339(at)}"
        assert now == answers(plain, **asked), f"round {i}, {rfc3339(at)}"
        figures = now
    assert work(http)[0] > few(100), "nothing was remembered"


def test_random_questions_between_late_events_and_rollups(world, clients, site, chance, seed):
    """Two that write and remember, one that remembers nothing; hours, then days, close meanwhile."""
    def draw():
        return {"page": chance.choice((None, "/a", ["/a", "/b"], ["/b", "/a"]))}

    for i, question in questions(world, clients, site, chance, draw, events, rounds=few(150), every=30, days=40):
        for http in clients[:2]:
            assert answers(http, **question) == answers(clients[2], **question), f"seed {seed}, {i}: {question}"
    hits = sum(work(http)[0] for http in clients[:2])
    assert hits > few(200), f"only {hits} runs were remembered: the test asks for too little twice"


def test_what_is_open_is_never_remembered(world, clients, site):
    """The minutes of the hour under way, by events that change nothing closed."""
    http, other, plain = clients
    hour = int(world.now()) // 3600 * 3600 + 3600
    world.move(hour + 40 * 60)
    asked = {"site": site, "page": "/", **window(hour - 86400, hour + 7200)}
    for i in range(20):
        other.accept([{"site": site, "page": "/", "user": f"{i} {at}", "ip": f"10.2.{i}.{at}", "ts": hour + at * 60}
                      for at in (0, 7, 39)])
        now = answers(http, **asked)
        assert now["pv"]["pv"] == now["visits"]["visits"] == 3 * (i + 1)
        assert now == answers(plain, **asked)


def test_windows_that_move_on_keep_their_middle(world, clients, site, chance):
    """now-24h: a minute later only the edges are read, not 23 hours."""
    http = clients[0]
    now = int(world.now())
    http.accept(events(site, chance, 300, now - 86400, now))
    world.move(now // 3600 * 3600 + 3600 + 40)
    hours = epoch(rfc3339(int(world.now()) // 3600 * 3600))
    wait_until(lambda: http.question("/uv", site=site, from_=rfc3339(hours - 3600), to=rfc3339(hours))["cover"]["hour"],
               "the hour is rolled up")
    http.count("uv", site=site)
    world.move(int(world.now()) + 60)
    keys = work(http)[1]
    cover = http.question("/uv", site=site)["cover"]
    assert work(http)[1] - keys <= cover["minute"] < cover["keys"] - 20


def test_other_pages_sites_and_partitions_are_other_questions(clients, site):
    """Names made to look like each other's keys."""
    http, _, plain = clients
    at = epoch("2026-02-14 12:00")
    names = ["/", "/:", ":/", "", "/\u00e9", "3:uv:/", "$1\u00a0/", "/a", "/a:h202602141200:/a"]
    sites = [site, site + ".a", site + ".a.h"]
    for i, name in enumerate(names):
        for j, s in enumerate(sites):
            if name:
                http.accept([{"site": s, "page": name, "user": k, "ts": at} for k in range(1 + i + 20 * j)])
    for _ in range(2):
        for i, name in enumerate(names):
            for j, s in enumerate(sites):
                if name:
                    assert http.count("pv", site=s, page=name, **window(at - 7200, at + 7200)) == 1 + i + 20 * j
                    assert http.count("uv", site=s, page=name, **window(at - 7200, at + 7200)) == \
                        plain.count("uv", site=s, page=name, **window(at - 7200, at + 7200))
    every = [n for n in names if n]
    asked = {"site": site, "page": every, **window(at - 7200, at + 7200)}
    assert answers(http, **asked) == answers(plain, **asked) == answers(http, **asked)


def test_the_memory_is_bounded(start_redis, start_tallyd, site, chance):
    """A megabyte, and far more dense sketches than fit into it: all answers right, and the process does not grow."""
    redis = start_redis()
    small = start_tallyd("--cache-mb", "1", *FOREVER, redis=redis)
    plain = start_tallyd("--cache-mb", "0", *FOREVER, redis=redis)
    http, other = small.client(), plain.client()
    day = epoch("2026-01-01")
    for d in range(30):
        http.accept([{"site": site, "page": "/", "user": chance.getrandbits(60), "ts": day + d * 86400 + i % 86400}
                     for i in range(4000)])

    def ask(d, n):
        return {"site": site, "page": "/", **window(day + d * 86400, day + (d + n) * 86400)}

    questions = [ask(d, n) for d in range(30) for n in range(1, 30 - d)]

    for question in questions:
        http.count("uv", **question)
    grown = resident(small.pid)
    for question in questions:
        assert http.count("uv", **question) == other.count("uv", **question)
    if not sanitized():  # a sanitizer keeps what is freed
        assert resident(small.pid) - grown < MIB
        assert grown < 32 * MIB


def test_a_question_joins_an_identical_one_only_before_that_is_sent(start_redis, start_proxy, start_tallyd, site):
    """One reader, its answer held back: what is asked meanwhile is asked once, and later than what was sent before."""
    redis = start_redis()
    proxy = start_proxy(redis)
    slow = start_tallyd("--readers", "1", redis=proxy)
    direct = start_tallyd(redis=redis, name="direct").client()
    direct.accept({"site": site, "page": "/", "user": 1})
    asked = {"site": site, "page": "/", "from_": "now-1h", "to": "now+2h"}
    assert slow.client().count("pv", **asked) == 1
    answers_of = {}
    threads = []

    def ask(name, **params):
        def run():
            answers_of[name] = slow.client().count("pv", **{**asked, **params})
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()

    proxy.hold_replies_at(is_exec)
    sent = list(proxy.commands).count("EXEC")
    ask("first")
    wait_until(lambda: list(proxy.commands).count("EXEC") > sent, "the first question is sent")
    direct.accept([{"site": site, "page": "/", "user": i} for i in range(2, 12)])
    assert direct.count("pv", **asked) == 11, "it is folded: the slow one has nothing to fold"
    for i in range(20):
        ask(i)
    for i in range(5):
        ask(f"site {i}", page=None)
    ask("other", page="/none")
    wait_until(lambda: slow.client().metric("tallyd_http_suspended") == 27, "all wait")
    sent = list(proxy.commands).count("EXEC")
    proxy.hold_replies(False)
    for thread in threads:
        thread.join(20)
    assert answers_of.pop("first") in (1, 11)
    assert answers_of.pop("other") == 0
    assert set(answers_of.values()) == {11} and len(answers_of) == 25
    assert slow.client().metric("tallyd_queries_joined_total") == 19 + 4
    assert list(proxy.commands).count("EXEC") - sent == 3


def test_a_redis_that_went_back(start_proxy, cleanup, site):
    """An entry appended, read and remembered, then lost; appended again after another one that is not in what was remembered.

    The memory must not take the second time for the first: a `ver` comes never twice."""
    directory = short_directory()
    directory.mkdir(exist_ok=True)
    clock = FakeClock(directory, START)
    redis = Redis(directory, clock=clock, appendonly=True).start()
    cleanup.append(redis.stop)
    proxy = start_proxy(redis)
    at = epoch("2026-02-01 12:00")

    def start(target, name):
        tallyd = Tallyd(*FOREVER, redis=target, env=BELOW, name=name)
        cleanup.append(tallyd.stop)
        return tallyd.start()

    writer, reader, third = start(proxy, "writer"), start(redis, "reader"), start(redis, "third")
    event = {"site": site, "page": "/", "ts": at}
    writer.client().accept({**event, "user": "before"})
    asked = {"site": site, "page": "/", **window(at - 7200, at + 7200)}
    http = reader.client()
    assert http.count("uv", **asked) == 1
    shutil.copytree(directory / "appendonlydir", directory / "copy")

    # applied, but the answer is held back, and so is every attempt to say it again
    proxy.hold_replies()
    waiting = threading.Thread(target=lambda: writer.client(60).post({**event, "user": "in doubt"}), daemon=True)
    waiting.start()
    wait_until(lambda: http.count("uv", **asked) == 2, "Redis has it")
    proxy.black_hole()
    assert http.count("uv", **asked) == 2  # remembered
    hits = work(http)[0]
    http.count("uv", **asked)
    assert work(http)[0] > hits

    redis.kill()
    shutil.rmtree(directory / "appendonlydir")
    shutil.copytree(directory / "copy", directory / "appendonlydir")
    redis.start()
    wait_until(lambda: third.client().get("/readyz").status == 200, "the third one is back")
    third.client().accept({**event, "user": "another"})
    proxy.cut_all()
    proxy.hold_replies(False)
    proxy.black_hole(False)
    waiting.join(30)
    plain = Tallyd("--cache-mb", "0", *FOREVER, redis=redis, name="plain")
    cleanup.append(plain.stop)
    plain.start()
    wait_until(lambda: plain.client().count("uv", **asked) == 3, "the entry in doubt is appended again")
    # another window of the same page: the reader learns the partition's ver of now
    http.count("uv", site=site, page="/", **window(at - 90000, at - 86400))
    assert http.count("uv", **asked) == 3
