"""What is remembered for /pages and /overlap is never older than the question.

`plain` remembers nothing (--cache-mb 0) and is asked the same: every figure must be the same number.
"""

import threading

from lib.clock import FakeClock, epoch, rfc3339
from lib.process import Redis, short_directory
from lib.proxy import Fault
from lib.remembering import BELOW, clients, questions, window, work, world
from lib.some import few
from lib.waiting import wait_until
from lib.world import FOREVER


def events(site, chance, n, first, last, pages=40):
    return [{"site": site, "page": f"/{'ab'[chance.randrange(2)]}/{int(chance.random() ** 2 * pages)}",
             "user": chance.randrange(3000), "ts": chance.randrange(first, last)} for _ in range(n)]


def pages_of(client, **params):
    answer = client.question("/pages", **params)
    return answer["pages"], answer["total_pages"]


def overlap_of(client, **params):
    return {k: v for k, v in client.question("/overlap", **params).items() if k != "cover"}


def commands(redis):
    """{name: calls} so far, of those that read counts."""
    stats = redis.command("INFO", "commandstats")
    calls = {line.split(":")[0][8:]: int(line.split("calls=")[1].split(",")[0])
             for line in stats.splitlines() if line.startswith("cmdstat_")}
    return {name: calls.get(name, 0) for name in ("exec", "hscan", "zscan", "hlen", "zcard", "get", "mget")}


def passes(clients):
    """A rollup reads as well, and makes new what is remembered."""
    return [client.metric("tallyd_rollup_passes_total") for client in clients]


def test_a_window_that_is_over_is_read_once(world, clients, site, chance):
    """Then each partition is asked for its ids, the first one for its state and the clock, and for nothing else."""
    http, _, plain = clients
    first, last = epoch("2026-01-07 03:21"), epoch("2026-03-08 14:37")
    http.accept(events(site, chance, 3000, first - 86400, last + 86400))
    asked = {"site": site, **window(first, last)}
    before = pages_of(http, **asked)
    assert before == pages_of(plain, **asked) and before[1] == 80

    def five_times():
        """What they cost; None: rollups went on meanwhile, which read as well and make new what is remembered."""
        begin = passes(clients)
        (hits, keys), calls = work(http), commands(world.redis)
        for _ in range(5):
            assert pages_of(http, **asked) == before
        cost = work(http)[0] - hits, work(http)[1] - keys, {k: n - calls[k] for k, n in commands(world.redis).items()}
        return cost if passes(clients) == begin and cost[2]["get"] == 0 else None  # a leader looks at its lock with GET

    wait_until(five_times, "the rollups are through")
    hits, keys, calls = wait_until(five_times, "the rollups are through")
    assert hits >= 5 * 16 * 5, "minutes, hours, days, a month, days, hours, minutes; of 16 partitions"
    assert keys == 0, "no key was read"
    assert calls == {"exec": 5, "hscan": 0, "zscan": 0, "hlen": 0, "zcard": 0, "get": 0, "mget": 0}
    assert work(plain)[0] == 0


def test_a_late_event_makes_one_more_attempt(clients, site, chance):
    """Where only ids were asked for, the state is learnt by the second attempt, which holds."""
    http, other, plain = clients
    day = epoch("2026-02-14")
    http.accept(events(site, chance, 600, day, day + 86400))
    asked = {"site": site, **window(day + 3600, day + 20 * 3600)}
    attempts = []
    for i in range(9):
        for _ in range(3):  # learnt, remembered, recalled
            pages_of(http, **asked)
        other.accept({"site": site, "page": "/a/late", "user": f"late {i}", "ts": day + 7200 + 60 * chance.randrange(600)})
        before = http.metric("tallyd_query_replans_total")
        answer = pages_of(http, **asked)
        attempts.append(http.metric("tallyd_query_replans_total") - before)
        assert answer == pages_of(plain, **asked)
    assert sorted(attempts)[4] <= 1, attempts


def test_what_is_kept_of_a_run_answers_every_question_about_it(world, clients, site, chance):
    """A prefix, pages by name, an order, a limit; the visitors of a page serve /uv and /overlap too."""
    http, _, plain = clients
    first, last = epoch("2026-01-05"), epoch("2026-01-15")
    http.accept(events(site, chance, 2000, first, last))
    asked = {"site": site, **window(first, last)}
    assert pages_of(http, prefix="/a/", **asked) == pages_of(plain, prefix="/a/", **asked), "of a prefix, all is kept"
    calls = commands(world.redis)
    for more in ({"prefix": "/b/"}, {"prefix": "/a/1"}, {"prefix": "/none"}, {"page": ["/a/1", "/b/2", "/none"]},
                 {"page": ["/a/1", "/b/2"], "prefix": "/b"}, {"limit": 3}, {"limit": 1000}, {"by": "uv"},
                 {"by": "uv", "limit": 2, "prefix": "/b/"}, {}):
        mine = pages_of(http, **more, **asked)
        then = commands(world.redis)
        assert mine == pages_of(plain, **more, **asked), more
        assert then["zscan"] == calls["zscan"] and then["hscan"] == calls["hscan"], more
        calls = commands(world.redis)

    def first_question(i):
        """(figures of /a/i and /b/i, the keys read for them), not asked for by name before."""
        pages_of(http, **asked)
        for none in range(30):  # /uv of a page also reads what caps put together: once for all pages of a partition
            http.count("uv", page=f"/none/{none}", **asked)
        before = commands(world.redis)
        found = http.count("uv", page=f"/a/{i}", **asked), overlap_of(http, page=[f"/a/{i}", f"/b/{i}"], **asked)
        done = commands(world.redis)
        return found, sum(done[name] - before[name] for name in ("get", "mget"))

    for i in range(6):  # a rollup that goes on meanwhile reads keys too, and makes new what is remembered
        (uv, both), read = first_question(i)
        if read == 0:
            break
    assert read == 0, f"/a/{i} and /b/{i} are among the first pages"
    assert uv == plain.count("uv", page=f"/a/{i}", **asked)
    assert both == overlap_of(plain, page=[f"/a/{i}", f"/b/{i}"], **asked)


def test_a_late_event_of_another_process_is_in_the_very_next_answer(clients, site, chance):
    http, other, plain = clients
    first, last = epoch("2025-11-03 03:21"), epoch("2026-03-09 14:37")
    http.accept(events(site, chance, 500, first, last))
    asked = {"site": site, **window(first, last)}
    _, total = pages_of(http, **asked)
    for i in range(few(60)):
        at = chance.randrange(first, last)
        other.accept([{"site": site, "page": "/a/late", "user": f"late {i}", "ts": at},
                      {"site": site, "page": f"/new/{i}", "user": i, "ts": at}])
        rows, now = pages_of(http, prefix="/a/late", **asked)
        assert [row["pv"] for row in rows] == [i + 1] and now == 1, f"round {i}, {rfc3339(at)}"
        for more in ({}, {"by": "uv", "limit": 3}, {"page": ["/a/late", f"/new/{i}"]}):
            assert pages_of(http, **more, **asked) == pages_of(plain, **more, **asked), f"round {i}, {rfc3339(at)}"
        assert pages_of(http, **asked)[1] == total + i + 1 + 1
        pair = {"page": ["/a/late", "/a/0"], **asked}
        assert overlap_of(http, **pair) == overlap_of(plain, **pair), f"round {i}, {rfc3339(at)}"
    assert work(http)[0] > few(1000), "nothing was remembered"


def test_random_questions_between_late_events_and_rollups(world, clients, site, chance, seed):
    """Two that write and remember, one that remembers nothing; hours, then days, close meanwhile."""
    before = sum(work(http)[0] for http in clients[:2])

    def draw():
        return chance.choice(({}, {"prefix": "/a"}, {"by": "uv", "limit": 5}, {"page": ["/a/1", "/b/0"]}))

    for i, question in questions(world, clients, site, chance, draw, events, rounds=few(120), every=30, days=40):
        for http in clients[:2]:
            assert pages_of(http, **question) == pages_of(clients[2], **question), f"seed {seed}, {i}: {question}"
    assert sum(work(http)[0] for http in clients[:2]) - before > few(500), "the test asks for too little twice"


def test_a_rollup_between_two_questions_is_no_answer_of_before(world, clients, site, chance):
    """The hour under way is read; as soon as it is closed it is remembered, and a late event into it is seen."""
    http, other, plain = clients
    hour = int(world.now()) // 3600 * 3600 + 3600
    world.move(hour + 40 * 60)
    other.accept(events(site, chance, 300, hour - 7200, hour + 40 * 60))
    asked = {"site": site, **window(hour - 7200, hour + 3600)}
    assert pages_of(http, **asked) == pages_of(plain, **asked)
    world.stroll(hour + 3600 + 60)
    wait_until(lambda: http.question("/pages", **asked)["cover"]["minute"] == 0, "the hour is closed")
    assert pages_of(http, **asked) == pages_of(plain, **asked)
    keys = work(http)[1]
    assert pages_of(http, **asked)[1] > 1 and work(http)[1] == keys
    for i in range(10):
        other.accept({"site": site, "page": "/z", "user": i, "ts": hour + 600 + i})
        assert [row["pv"] for row in pages_of(http, prefix="/z", **asked)[0]] == [i + 1]


def test_what_is_open_is_never_remembered(world, clients, site):
    http, other, plain = clients
    hour = int(world.now()) // 3600 * 3600 + 3600
    world.move(hour + 40 * 60)
    asked = {"site": site, **window(hour - 86400, hour + 7200)}
    for i in range(20):
        other.accept([{"site": site, "page": "/", "user": f"{i} {at}", "ts": hour + at * 60} for at in (0, 7, 39)])
        assert pages_of(http, **asked)[0][0]["pv"] == 3 * (i + 1)
        assert pages_of(http, **asked) == pages_of(plain, **asked)


def test_large_buckets_are_scanned_in_pieces_and_remembered(clients, site, chance):
    """300 pages and more a partition, with names too long for Redis to keep small: nothing comes at the first look."""
    http, other, plain = clients
    first, last = epoch("2026-02-01 10:30"), epoch("2026-02-20 10:30")
    names = [f"/{'x' * (i % 90)}/{i}" for i in range(5000)]
    rounds = [{"site": site, "page": name, "user": i % 977, "ts": first + (i * 7919 + k * 104729) % (last - first)}
              for k in range(4) for i, name in enumerate(names)]
    for i in range(0, len(rounds), 2000):
        http.accept(rounds[i:i + 2000])
    http.await_counted(site)
    asked = {"site": site, **window(first + 60, last - 60)}
    for more in ({}, {"prefix": "/xxx"}, {"by": "uv", "limit": 4}):
        expected = pages_of(plain, limit=more.pop("limit", 500), **more, **asked)
        assert pages_of(http, limit=len(expected[0]), **more, **asked) == expected
        assert pages_of(http, limit=len(expected[0]), **more, **asked) == expected
    keys = work(http)[1]
    pages_of(http, **asked)
    assert work(http)[1] == keys, "remembered"
    other.accept({"site": site, "page": names[4999], "user": 1, "ts": first + 86400})
    assert pages_of(http, prefix=names[4999], **asked)[0][0]["pv"] == 5


def test_little_memory_and_a_large_site(start_redis, start_tallyd, site, chance):
    """The large one is too large to be kept, and does not push out the small one; many windows push each other out."""
    redis = start_redis()
    small = start_tallyd("--cache-mb", "1", *FOREVER, redis=redis, env=BELOW).client()
    plain = start_tallyd("--cache-mb", "0", *FOREVER, redis=redis).client()
    day = epoch("2026-01-01")
    large = site[:50] + ".large"
    small.accept(events(site, chance, 2000, day, day + 30 * 86400))
    for k in range(2):
        small.accept([{"site": large, "page": f"/a/page/of/some/length/{i}", "user": i, "ts": day + k * 86400}
                      for i in range(10_000)])
    asked = {"site": site, **window(day, day + 30 * 86400)}
    beside = {"site": large, **window(day, day + 30 * 86400)}
    expected, other = pages_of(plain, **asked), pages_of(plain, **beside)
    assert other[1] == 10_000
    for _ in range(3):
        assert pages_of(small, **asked) == expected
        keys = work(small)[1]
        assert pages_of(small, **asked) == expected and work(small)[1] == keys, "the small site is remembered"
        assert pages_of(small, **beside) == other
        assert work(small)[1] > keys, "the large site is read"
    questions = [{"site": site, **window(day + d * 86400, day + (d + n) * 86400)}
                 for d in range(0, 30, 2) for n in range(1, 30 - d, 2)]
    for question in questions + questions[:20]:
        assert pages_of(small, limit=40, **question) == pages_of(plain, limit=40, **question)


def test_a_question_for_top_pages_takes_three_round_trips(start_proxy, start_tallyd, cleanup, site, chance):
    """Of a day with an hour under way: one that tells whether all that was acknowledged is counted, one for pages, one for the
    visitors of the first of them.  No reply to the first one is there before all of it is sent, and so with the
    second: what waits for an answer would never come."""
    directory = short_directory()
    directory.mkdir(exist_ok=True)
    redis = Redis(directory, clock=FakeClock(directory, "2026-03-10 10:30:10")).start()
    cleanup.append(redis.stop)
    proxy = start_proxy(redis)
    http = start_tallyd("--readers", "1", *FOREVER, redis=proxy, env=BELOW).client()
    now = epoch("2026-03-10 10:30")
    http.accept(events(site, chance, 1000, now - 86400, now))
    asked = {"site": site, **window(now - 86400, now + 60)}
    asking, held = set(), threading.Event()

    def hold(args):
        """From the first command that reads pages on, over the reader's connection, replies wait again."""
        if args[0] == b"HGETALL" and args[1].endswith(b":heads"):
            asking.add(threading.get_ident())
        if args[0] == b"MULTI" and threading.get_ident() in asking and not held.is_set():
            held.set()
            proxy.hold_replies()
        return False

    def sent(name):
        return list(proxy.commands).count(name)

    pages_of(http, **asked)  # counts what was appended
    pages_of(http, **asked)  # learns which logs there are
    proxy.commands.clear()  # it holds the last ones only
    taken = []
    thread = threading.Thread(target=lambda: taken.append(pages_of(http, **asked)), daemon=True)
    proxy.hold_replies()
    proxy.arm(Fault("reply-after", match=hold))
    thread.start()
    wait_until(lambda: sent("HGETALL") >= 1, "the logs are asked for their heads, which have not grown")
    assert sent("EXEC") == 0
    states = sent("HMGET")
    proxy.hold_replies(False)
    wait_until(lambda: sent("HMGET") - states == 16, "all partitions are asked, in one piece each")
    assert sent("EXEC") == 1, "but for the first one these are plain"
    scans = sent("HSCAN")
    proxy.hold_replies(False)
    thread.join(20)
    assert taken[0][1] > 40
    assert sent("EXEC") - 1 <= 10, "then the first pages that are in minutes of this hour"
    assert sent("HSCAN") == scans
