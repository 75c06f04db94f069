"""What is remembered of /stats and of the points of a series is never older than the question.

As in test_cache.py: tallyd 0 and 1 remember, `plain` remembers nothing and must say the same numbers.
"""

import threading

import pytest

from lib.clock import epoch, rfc3339
from lib.log import is_exec
from lib.remembering import BELOW, clients, events, questions, window, work, world
from lib.some import few
from lib.waiting import wait_until
from lib.world import FOREVER

METRICS = ("pv", "uv", "ips", "visits")


def ask(client, path, **params):
    """Without the cover: one process may know of a rollup before the other."""
    answer = client.question(path, **params)
    assert answer["cover"].pop("keys") > 0
    return {k: v for k, v in answer.items() if k != "cover"} | {"list": answer["cover"].get("list")}


def answers(client, **params):
    """/stats alone and with the step, and each metric's series."""
    plain = {k: v for k, v in params.items() if k != "step"}
    return {"plain": ask(client, "/stats", **plain), "stats": ask(client, "/stats", **params),
            **{m: ask(client, "/" + m, **params) for m in METRICS}}


@pytest.mark.some(5)
@pytest.mark.parametrize("path", ["/stats", "/uv", "/pv", "/ips", "/visits"])
@pytest.mark.parametrize("page", [None, "/a", ["/a", "/b", "/c"]], ids=["site", "page", "pages"])
def test_what_is_over_is_read_once(clients, site, chance, path, page):
    http, other, plain = clients
    first, last = epoch("2026-01-07 03:21"), epoch("2026-01-19 14:37")
    http.accept(events(site, chance, 2000, first - 86400, last + 86400))
    for step in (None, "1h", "1d", "1M"):
        asked = {"site": site, "page": page, "step": step, **window(first, last)}
        before = ask(http, path, **asked)
        ask(http, path, **asked)  # of a series: what the points come to together
        hits, keys = work(http)
        assert ask(http, path, **asked) == before == ask(plain, path, **asked) == ask(other, path, **asked)
        again = work(http)
        assert again[1] == keys, "no key was read"
        assert again[0] > hits
    assert work(plain)[0] == 0


def test_points_are_the_same_by_whatever_step_and_zone(clients, site, chance):
    """An hour of Berlin is one of London, a day of 1d one of a week's; half hours of India are others."""
    http, _, plain = clients
    first, last = epoch("2026-02-01"), epoch("2026-02-08")
    http.accept(events(site, chance, 1500, first, last))
    for _ in range(2):
        for tz, days, path in (("UTC", 6, "/stats"), ("Europe/Berlin", 6, "/uv"), ("Asia/Kolkata", 1, "/uv"),
                               ("Asia/Kathmandu", 1, "/ips"), ("America/St_Johns", 1, "/pv")):
            for step in ("1h", "1d", "auto"):
                asked = {"site": site, "tz": tz, "step": step, **window(first + 4 * 3600, first + days * 86400 + 7200)}
                assert ask(http, path, **asked) == ask(plain, path, **asked), (tz, step)


def test_a_late_event_of_another_process_is_in_the_very_next_answer(clients, site, chance):
    http, other, plain = clients
    first, last = epoch("2026-02-03 03:21"), epoch("2026-02-09 14:37")
    http.accept(events(site, chance, 500, first, last))
    for i in range(20):
        asked = {"site": site, "step": chance.choice(("1h", "1d", "1M")), **window(first, last)}
        for _ in range(3):
            figures = answers(http, **asked)
        hits = work(http)[0]
        assert answers(http, **asked) == figures
        assert work(http)[0] > hits, "nothing was remembered"
        at = chance.randrange(first, last)
        other.accept({"site": site, "page": "/late", "user": f"late {i}", "ip": f"198.51.100.{i}", "ts": at})
        now = answers(http, **asked)
        for metric in ("pv", "visits"):
            assert now[metric][metric] == now["stats"][metric] == now["plain"][metric] == figures[metric][metric] + 1
            changed = [(a, b) for a, b in zip(figures[metric]["series"], now[metric]["series"]) if a != b]
            assert len(changed) == 1, f"round {i}, {rfc3339(at)}"
            old, new = changed[0]
            assert new[metric] == old[metric] + 1 and epoch(new["from"]) <= at < epoch(new["to"])
        assert now == answers(plain, **asked), f"round {i}, {rfc3339(at)}"
        page = answers(http, page=["/late", "/a"], **asked)
        assert page == answers(plain, page=["/late", "/a"], **asked), f"round {i}, {rfc3339(at)}"


def test_random_series_between_late_events_and_rollups(world, clients, site, chance, seed):
    """Two that write and remember, one that remembers nothing; hours, then days, close meanwhile."""
    def draw():
        return {"page": chance.choice((None, "/a", ["/a", "/b"], ["/b", "/a"])),
                "step": chance.choice(("1h", "1h", "1d", "1w", "auto")), "tz": chance.choice(("UTC", "Europe/Berlin"))}

    for i, question in questions(world, clients, site, chance, draw, events, rounds=few(50), every=12, days=8):
        for http in clients[:2]:
            assert answers(http, **question) == answers(clients[2], **question), f"seed {seed}, {i}: {question}"
    assert sum(work(http)[0] for http in clients[:2]) > few(200), "the test asks for too little twice"


def test_a_series_that_moves_on_reads_its_edges_only(world, clients, site, chance):
    """now-7d by hour: a minute later the first and the last hour are read, not 167 points; and the figure beside them
    is the one that a question without a step gets."""
    http, _, plain = clients
    now = int(world.now())
    http.accept(events(site, chance, 2000, now - 8 * 86400, now))
    world.move(now // 3600 * 3600 + 5400 + 40)
    hours = int(world.now()) // 3600 * 3600
    wait_until(lambda: http.question("/uv", site=site, **window(hours - 3600, hours))["cover"]["hour"],
               "the hour is rolled up")
    asked = {"site": site, "from_": "now-7d", "to": "now", "step": "1h"}
    for _ in range(2):
        ask(http, "/uv", **asked)
    world.move(int(world.now()) + 60)
    keys = work(http)[1]
    cover = http.question("/uv", **asked)["cover"]
    read = work(http)[1] - keys
    assert cover["hour"] >= 167 and read <= cover["minute"] <= 120
    assert ask(http, "/uv", **asked) == ask(plain, "/uv", **asked)


def test_a_first_point_that_is_recalled_is_no_other_one(world, clients, site):
    """What the first point came to is known from the question without a step, the hours behind it from another series, and the
    last hour is read.  Each point has its own visitors."""
    http, _, plain = clients
    last = int(world.now()) // 3600 * 3600
    first = last - 40 * 3600
    http.accept([{"site": site, "page": "/", "user": f"{hour} {i}", "ip": f"10.3.{hour}.{i}", "ts": first + hour * 3600 + 1800}
                 for hour in range(41) for i in range(1 + hour % 3)])
    for begin, step in ((first, "1h"), (first + 600, None), (first + 600, "1h")):
        asked = {"site": site, "step": step, **window(begin, last + 3600)}
        assert ask(http, "/stats", **asked) == ask(plain, "/stats", **asked)
    assert [point["uv"] for point in http.question("/stats", **asked)["series"]] == [1 + hour % 3 for hour in range(41)]


def test_the_open_hour_is_never_remembered(world, clients, site):
    http, other, plain = clients
    hour = int(world.now()) // 3600 * 3600 + 3600
    world.move(hour + 40 * 60)
    asked = {"site": site, "page": "/", "step": "1h", **window(hour - 86400, hour + 7200)}
    for i in range(15):
        other.accept([{"site": site, "page": "/", "user": f"{i} {at}", "ip": f"10.2.{i}.{at}", "ts": hour + at * 60}
                      for at in (0, 7, 39)])
        now = answers(http, **asked)
        assert now["pv"]["pv"] == now["stats"]["visits"] == 3 * (i + 1)
        assert sum(point["pv"] for point in now["stats"]["series"]) == 3 * (i + 1)
        assert now == answers(plain, **asked)


def test_more_points_than_are_kept_at_once(start_redis, start_tallyd, site, chance):
    """A cache so small that of a series some points are dropped: several stretches are known, and all is right."""
    redis = start_redis()
    http = start_tallyd("--cache-mb", "1", *FOREVER, redis=redis, env=BELOW).client()
    plain = start_tallyd("--cache-mb", "0", *FOREVER, redis=redis).client()
    first = epoch("2026-01-01")
    http.accept(events(site, chance, 5000, first, first + 90 * 86400))
    hits = 0
    for i in range(6):
        begin = first + chance.randrange(60) * 86400
        for question in ({"step": "1h", "path": "/stats"}, {"step": "1h", "path": "/uv", "page": f"/{'abc'[i % 3]}"},
                         {"path": "/ips", "page": "/a"}, {"step": "1d", "path": "/visits"}):
            asked = {**question, "site": site, **window(begin + 1260, begin + 30 * 86400)}
            assert ask(http, **asked) == ask(plain, **asked), asked
    hits = work(http)[0]
    assert hits > 100


def test_series_that_are_asked_at_once_are_one(start_redis, start_proxy, start_tallyd, site):
    """As in test_cache.py; each of the joined ones has its own points."""
    redis = start_redis()
    proxy = start_proxy(redis)
    slow = start_tallyd("--readers", "1", redis=proxy)
    direct = start_tallyd(redis=redis, name="direct").client()
    direct.accept({"site": site, "page": "/", "user": 1})
    asked = {"site": site, "page": "/", "from_": "now-5h", "to": "now+2h"}
    given, threads = {}, []

    def later(name, path, **params):
        def run():
            given[name] = slow.client().question(path, **{**asked, **params})
        threads.append(threading.Thread(target=run, daemon=True))
        threads[-1].start()

    slow.client().question("/pv", **asked)
    proxy.hold_replies_at(is_exec)
    sent = list(proxy.commands).count("EXEC")
    later("first", "/pv")
    wait_until(lambda: list(proxy.commands).count("EXEC") > sent, "the first question is sent")
    direct.accept([{"site": site, "page": "/", "user": i} for i in range(2, 12)])
    assert direct.count("pv", **asked) == 11, "it is folded: the slow one has nothing to fold"
    for i in range(10):
        later(("stats", i), "/stats", step="1h")
        later(("zone", i), "/stats", step="1h", tz="Asia/Kolkata")
        later(("step", i), "/stats", step="1d")
        later(("metric", i), "/visits", step="1h")
        later(("list", i), "/visits", step="1h", explain="1")
    wait_until(lambda: slow.client().metric("tallyd_http_suspended") == 51, "all wait")
    proxy.hold_replies(False)
    for thread in threads:
        thread.join(20)
    given.pop("first")
    for (name, _), answer in given.items():
        assert answer["visits"] == 11 and sum(point["visits"] for point in answer["series"]) == 11, name
        assert answer == given[name, 0]
        assert ("list" in answer["cover"]) == (name == "list")
    assert len(given) == 50 and given["zone", 0]["series"] != given["stats", 0]["series"]
    assert slow.client().metric("tallyd_queries_joined_total") == 4 * 9
