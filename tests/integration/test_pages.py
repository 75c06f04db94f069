"""GET /pages and GET /sites: the order is exact, whatever the cover, and Redis is not held up."""

import random
import time
from collections import Counter

import pytest

from lib.clock import epoch, rfc3339
from lib.process import Tallyd
from lib.tokens import token_line
from lib.truth import is_close
from lib.waiting import wait_until

TALLYD_ARGS = ("--readers", "2")


def ranked(model, site, from_s, to_s, prefix=""):
    """[(page, pv, uv)] of a window, in order."""
    pv, visitors = Counter(), {}
    for e in model.window(site, from_s, to_s):
        if e.page.startswith(prefix):
            pv[e.page] += 1
            visitors.setdefault(e.page, set())
            if e.visitor is not None:
                visitors[e.page].add(e.visitor)
    return [(page, n, len(visitors[page])) for page, n in sorted(pv.items(), key=lambda item: (-item[1], item[0].encode()))]


def check(world, site, from_, to, **params):
    """The answer is the model's; returns it."""
    from_s, to_s = (epoch(t.strip("Z").replace("T", " ")) if isinstance(t, str) else t for t in (from_, to))
    answer = world.http.question("/pages", site=site, from_=rfc3339(from_s), to=rfc3339(to_s), **params)
    expected = ranked(world.model, site, from_s, to_s, params.get("prefix", ""))
    assert answer["total_pages"] == len(expected)
    limit = params.get("limit", 10)
    got = [(row["page"], row["pv"]) for row in answer["pages"]]
    if params.get("by") == "uv":
        wanted = {page: (pv, uv) for page, pv, uv in expected}
        assert len(got) == min(limit, len(expected))
        assert all(wanted[page][0] == pv for page, pv in got)
        assert [r["uv"] for r in answer["pages"]] == sorted((r["uv"] for r in answer["pages"]), reverse=True)
    else:
        assert got == [(page, pv) for page, pv, _ in expected[:limit]]
    uv = {page: n for page, _, n in expected}
    for row in answer["pages"]:
        assert is_close(row["uv"], uv[row["page"]]) and row["uv"] <= row["pv"], (row, uv[row["page"]])
    return answer


# Order


def post_views(http, site, views, **more):
    """{page: [user..]}"""
    events = [{"site": site, "page": page, "user": user, **more} for page, users in views.items() for user in users]
    for i in range(0, len(events), 10_000):
        http.accept(events[i:i + 10_000])


def test_shape_order_and_ties(http, site):
    post_views(http, site, {"/b": [1, 2, 3], "/a": [1, 1, 1], "/c": [1, 2, 3, 4], "/ä": [1], "/B": [7]})
    answer = http.question("/pages", site=site)
    assert answer["pages"] == [{"page": "/c", "pv": 4, "uv": 4}, {"page": "/a", "pv": 3, "uv": 1}, {"page": "/b", "pv": 3, "uv": 3},
                               {"page": "/B", "pv": 1, "uv": 1}, {"page": "/ä", "pv": 1, "uv": 1}]
    assert answer["total_pages"] == 5 and answer["by"] == "pv" and answer["site"] == site
    answer = http.question("/pages", site=site, by="uv", limit=3)
    assert [(r["page"], r["uv"]) for r in answer["pages"]] == [("/c", 4), ("/b", 3), ("/B", 1)]
    assert answer["total_pages"] == 5
    answer = http.question("/pages", site=site, page=["/b", "/none", "/B"])
    assert [r["page"] for r in answer["pages"]] == ["/b", "/B"] and answer["total_pages"] == 2
    empty = http.question("/pages", site=site, from_="now/d-3d", to="now/d-2d")
    assert (empty["pages"], empty["total_pages"]) == ([], 0)


def test_prefix_and_limit(http, site):
    post_views(http, site, {f"/blog/{i}": range(i + 1) for i in range(30)})
    post_views(http, site, {"/blo": range(100), "/shop/*": range(50), "/shop/1": range(40)})
    answer = http.question("/pages", site=site, prefix="/blog/", limit=5)
    assert [r["page"] for r in answer["pages"]] == [f"/blog/{i}" for i in range(29, 24, -1)]
    assert answer["total_pages"] == 30
    assert [r["page"] for r in http.question("/pages", site=site, prefix="/shop/*")["pages"]] == ["/shop/*"], "no pattern"
    assert len(http.question("/pages", site=site)["pages"]) == 10
    assert len(http.question("/pages", site=site, limit=1000)["pages"]) == 33


def test_by_visitors_is_not_the_top_of_the_top_by_views(http, site):
    """500 pages are viewed more often than the one that most people visit, by one visitor each."""
    post_views(http, site, {f"/bot{i}": ["bot"] * 60 for i in range(500)})
    post_views(http, site, {"/people": range(50), "/few": range(20)})
    answer = http.question("/pages", site=site, by="uv", limit=2)
    assert [(r["page"], r["pv"]) for r in answer["pages"]] == [("/people", 50), ("/few", 20)]
    assert answer["total_pages"] == 502


def test_by_visitors_stops_early(http, site):
    """Behind the first pages are 3,000 that cannot be among them: their sketches are not read."""
    post_views(http, site, {f"/{i:04}": [i] for i in range(3000)})
    post_views(http, site, {f"/top{i}": range(40) for i in range(5)})
    before = http.metric("tallyd_query_keys_total")
    answer = http.question("/pages", site=site, by="uv", limit=5, from_="now-5m")
    assert [r["page"] for r in answer["pages"]] == [f"/top{i}" for i in range(5)]
    read = http.metric("tallyd_query_keys_total") - before
    assert 5 <= read < 1000, read


def test_the_best_that_a_page_can_be_is_a_visitor_a_view(http, site):
    """Its name stands behind those of 100 pages with as many views, and its sketch is read with the second batch."""
    post_views(http, site, {f"/{i:02}": [i, i] for i in range(100)})
    post_views(http, site, {"/z": ["one", "another"]})
    answer = http.question("/pages", site=site, by="uv", limit=1, from_="now-5m")
    assert [(r["page"], r["uv"]) for r in answer["pages"]] == [("/z", 2)]


def test_estimates_are_cut_to_the_views(http, site):
    """A visitor a view, on many pages: some estimates are above the truth, none is shown so."""
    post_views(http, site, {f"/{p}": range(p * 10_000, p * 10_000 + 2000) for p in range(20)})
    answer = http.question("/pages", site=site, limit=20)
    assert all(r["uv"] <= r["pv"] == 2000 for r in answer["pages"])
    assert answer["clamped"] is True and any(r["uv"] == 2000 for r in answer["pages"])


# Windows


def test_windows_over_all_levels(start_world, site):
    """Minutes, hours and days that are rolled up meanwhile: the model's order in each of many windows."""
    world = start_world("2026-03-08 22:10:10", "--partitions", "4")
    draw = random.Random(7)
    first = epoch("2026-03-08 21:00")
    for start in ("2026-03-08 22:50", "2026-03-08 23:40", "2026-03-09 00:20", "2026-03-09 01:10"):
        world.move(f"{start}:05")
        ends = epoch(start)
        world.post([{"site": site, "page": f"/{int(40 ** draw.random())}", "user": draw.randrange(300), "ts": draw.randrange(first, ends)}
                    for _ in range(1500)])
        for _ in range(6):
            from_s, to_s = sorted(t // 60 * 60 for t in (draw.randrange(first, ends), draw.randrange(first, ends)))
            for by in ("pv", "uv"):
                check(world, site, from_s, to_s + 60, by=by, limit=draw.choice([1, 5, 100]))
    window = tuple(rfc3339(epoch(t)) for t in ("2026-03-08 21:30", "2026-03-09 01:00"))
    world.wait_cover(site, *window, check=lambda: check(world, site, *window), minute=30, hour=3)

    def explained():
        return check(world, site, *window, explain="1")["cover"]

    # wait_cover has looked at the site's partition only
    wait_until(lambda: explained()["hour"] == 3 * 4, "the hours of all partitions are closed")
    cover = explained()
    assert (cover["hour"], cover["minute"], cover["keys"]) == (3 * 4, 30 * 4, 33 * 4)
    assert len(cover["list"]) == cover["keys"] and len({item["key"] for item in cover["list"]}) == cover["keys"]
    assert all(f":pv:{site}:" in item["key"] for item in cover["list"])


def test_a_window_that_is_no_longer_kept(http, site):
    post_views(http, site, {"/": [1]}, ts="2020-01-01T10:08:00Z")
    window = {"site": site, "from_": "2020-01-01T10:07:00Z", "to": "2020-01-01T10:30:00Z"}
    refused = http.get("/pages", **window)
    assert refused.status == 422 and refused.errors[0]["parameter"] == "from"
    answer = http.question("/pages", round="outer", **window)
    assert (answer["from"], answer["to"]) == ("2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z")
    assert answer["pages"] == [{"page": "/", "pv": 1, "uv": 1}]


@pytest.mark.parametrize("name, value", [("by", "bounces"), ("limit", "0"), ("limit", "1001"), ("limit", "9" * 30), ("limit", "-1"),
                                         ("prefix", "a\n"), ("step", "1h"), ("pageset", "a b")])
def test_bad_parameters(http, name, value):
    refused = http.get("/pages", **{name: value})
    assert refused.status == 400 and refused.errors[0]["parameter"] == name


# What it costs Redis


def test_100_000_pages_do_not_hold_redis_up(start_redis, start_tallyd, site):
    """In a minute, an hour and a month: no command holds Redis for 5 ms."""
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    n, at = 100_000, int(time.time()) // 3600 * 3600 - 1800
    hour, month = rfc3339(at)[:13], rfc3339(at)[:7]
    for i in range(0, n, 10_000):
        http.accept([{"site": site, "page": f"/a/page/of/some/length/{p}", "user": p, "ts": at}
                     for p in range(i, i + 10_000)])
    http.accept([{"site": site, "page": "/a/page/of/some/length/77777", "user": "x", "ts": at}])

    def held():
        """All of it is asked for: how long Redis was held at a time."""
        redis.command("CONFIG", "RESETSTAT")
        before = redis.processor()
        for window in ((rfc3339(at), rfc3339(at + 60)), (hour + ":00:00Z", rfc3339(at + 1800)), (month + "-01", "now")):
            for by in ("pv", "uv"):
                begin = time.monotonic()
                answer = http.question("/pages", site=site, from_=window[0], to=window[1], by=by, limit=2)
                print(f"{window} by {by}: {time.monotonic() - begin:.3f} s")
                assert answer["pages"][0] == {"page": "/a/page/of/some/length/77777", "pv": 2, "uv": 2}
                assert answer["total_pages"] == n
        exec_us = redis.longest_turns()
        ran, waited = (b - a for a, b in zip(before, redis.processor()))
        print(f"EXEC in us: {exec_us}; ran {ran / 1e6:.0f} ms, waited {waited / 1e6:.0f} ms for a processor")
        return exec_us, waited > 0.1 * ran

    # A median of a few hundred; all 6,250 pages of a partition at once are 4 ms.  Who shares the machine makes some longer,
    # but not each time most of them.
    for _ in range(3):
        exec_us, disturbed = held()
        if exec_us["p50"] < 1500 and (exec_us["p99"] < 5000 or disturbed):
            return
    raise AssertionError(exec_us)


def test_a_redis_whose_memory_is_full(start_redis, start_tallyd, site):
    """It takes no MULTI then."""
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    post_views(http, site, {f"/{i}": range(i + 1) for i in range(20)})
    assert http.request("PUT", f"/pagesets/s?site={site}", '{"pages":["/1","/19"]}').status == 201
    whole = {q: http.question("/pages", site=site, **dict(q)) for q in ((), (("by", "uv"), ("limit", 3)), (("pageset", "s"),))}
    overlap = http.question("/overlap", site=site, page=["/19", "/1"])
    redis.command("CONFIG", "SET", "maxmemory", "1")
    for q, answer in whole.items():
        assert http.question("/pages", site=site, **dict(q)) == answer
    assert http.question("/overlap", site=site, page=["/19", "/1"]) == overlap
    refused = http.request("PUT", f"/pagesets/s?site={site}", '{"pages":["/2"]}')
    assert refused.status == 503, refused
    assert http.question("/pagesets/s", site=site)["pages"] == ["/1", "/19"]


def test_foreign_data(http, redis, site):
    """Said at once, and the connection stays good for the next question."""
    http.accept({"site": site, "page": "/", "user": 1})
    keys = http.question("/pages", site=site, from_="now-2m", explain="1")["cover"]["list"]
    key = next(item["key"] for item in reversed(keys) if redis.command("EXISTS", item["key"]) == 0)  # of this minute: never remembered
    redis.command("SET", key, "not ours")
    begin = time.monotonic()
    refused = http.get("/pages", site=site, from_="now-3m")
    assert refused.status == 503 and "WRONGTYPE" in refused.json["detail"], refused
    assert time.monotonic() - begin < 5
    redis.command("DEL", key)
    redis.command("HSET", key, "/" * 60_000, "1")  # longer than any page of ours
    refused = http.get("/pages", site=site, from_="now-3m")
    assert refused.status == 503 and "foreign data" in refused.json["detail"], refused
    redis.command("DEL", key)
    assert http.question("/pages", site=site, from_="now-3m")["total_pages"] == 1


def test_many_pages_in_many_buckets_are_too_much(start_redis, start_tallyd, site):
    """In which buckets each page is takes a bit for each pair: 30,000 pages in 48,000 months took 250 MB."""
    http = start_tallyd("--partitions", "1", "--readers", "1", redis=start_redis()).client()
    for first in range(0, 30_000, 10_000):
        http.accept([{"site": site, "page": f"/{i}"} for i in range(first, first + 10_000)])
    assert http.question("/pages", site=site, from_="now-1h", limit=1)["total_pages"] == 30_000
    refused = http.get("/pages", site=site, from_=0, to="6000-01-01")
    assert refused.status == 422 and "too many keys: ask with to=now" in refused.json["detail"], refused
    assert http.question("/pages", site=site, from_=0, to="2200-01-01", limit=1)["total_pages"] == 30_000


# Sites


def test_sites(http, site):
    names = [f"{site[:40].strip('-')}.{i}" for i in (2, 10, 1)]
    http.accept([{"site": name, "page": p} for name in names for p in ("/a", "/b", "/c")])
    listed = http.question("/sites")["sites"]
    assert set(names) <= set(listed) and listed == sorted(set(listed))
    assert http.get("/sites", site="x").errors[0]["parameter"] == "site"


def test_sites_with_figures(http, site):
    a, b = (f"{site[:40].strip('-')}.{i}" for i in (1, 2))
    http.accept([{"site": a, "page": "/", "user": u} for u in ("x", "y", "x")] + [{"site": b, "page": "/", "user": "x", "ts": int(time.time()) - 3600}])
    rows = {row["site"]: row for row in http.question("/sites", from_="now-2h", to="now")["sites"]}
    assert rows[a] == {"site": a, "pv": 3, "uv": 2, "visits": 2, "now": 2}
    assert rows[b] == {"site": b, "pv": 1, "uv": 1, "visits": 1, "now": 0}
    assert [r["pv"] for r in http.question("/sites", from_="now-30m")["sites"] if r["site"] == b] == [0]
    assert http.get("/sites", from_="now", to="now-1h").errors[0]["parameter"] == "to"
    assert http.get("/sites", from_="now-9999d", tz="Nowhere/City").errors[0]["parameter"] == "tz"


def test_who_is_there_now_is_no_more_than_what_they_viewed(http, site):
    """The estimate of the last five minutes may lie above their page views; the answer cuts it there, and says so."""
    for i in range(40):
        name = f"{site[:50]}-{i}"
        http.accept([{"site": name, "page": "/", "user": f"{name} {n}"} for n in range(2000)])
        if http.count("uv", site=name, from_="now-4m") > 2000:
            break
    else:
        raise AssertionError("no estimate above 2000 in 40 sites")
    answer = http.question("/sites", from_="now-1h")
    row = next(row for row in answer["sites"] if row["site"] == name)
    assert row == {"site": name, "pv": 2000, "uv": 2000, "visits": 2000, "now": 2000}
    assert answer["clamped"] is True


def test_the_windows_of_sites_of_two_zones(start_redis, start_tallyd, directory):
    """Old hours of Kathmandu begin at :15 of UTC: there is no window of UTC and Kathmandu, and each row says its own."""
    config = directory / "tallyd.conf"
    config.write_text("site.east.tz = Asia/Kathmandu\n")
    daemon = start_tallyd("--config", config, redis=start_redis(), directory=directory / "t")
    http, old = daemon.client(), int(time.time()) // 86400 * 86400 - 10 * 86400
    http.accept([{"site": name, "page": "/", "user": "x", "ts": old + 7200 + 60 * i} for name in ("east", "west") for i in range(3)])
    asked = {"from_": rfc3339(old), "to": rfc3339(old + 86400)}
    refused = http.get("/sites", **asked)
    assert refused.status == 422 and "for site east (round=outer takes each site's own)" in refused.json["detail"], refused
    answer = http.question("/sites", **asked, round="outer")
    assert (answer["from"], answer["to"], answer["tz"]) == (asked["from_"], asked["to"], "UTC")
    east, west = answer["sites"]
    assert (east["from"], east["to"], east["pv"]) == (rfc3339(old - 2700), rfc3339(old + 86400 + 900), 3)
    assert west == {"site": "west", "pv": 3, "uv": 1, "visits": 1, "now": 0}
    hours = {"from_": rfc3339(old + 7260), "to": rfc3339(old + 86400)}
    row = http.question("/sites", **hours, round="outer")["sites"][1]
    assert row["from"] == http.question("/pv", site="west", **hours, round="outer")["from"] == rfc3339(old + 7200)
    row = http.question("/sites", from_=rfc3339(old), to=rfc3339(old + 7260), round="outer")["sites"][1]
    assert (row["from"], row["to"], row["pv"]) == (rfc3339(old), rfc3339(old + 10800), 3), "it ends later"


def test_a_token_sees_its_sites(redis, site):
    daemon = Tallyd("--tokens", "tokens", redis=redis, name="bound")
    daemon.directory.mkdir(exist_ok=True)
    names = [f"{site[:40].strip('-')}.{i}" for i in range(3)]
    lines = [token_line("all", "ingest,read,admin all"),
             token_line("two", f"read,admin site={names[0]},{names[2]},unseen two")]
    (daemon.directory / "tokens").write_text("".join(lines))
    try:
        daemon.start(False)
        daemon.wait_ready_line()
        http, all_sites, two = daemon.client(), {"Authorization": "Bearer all"}, {"Authorization": "Bearer two"}
        http.accept([{"site": name, "page": "/"} for name in names], headers=all_sites)
        assert set(names) <= set(http.request("GET", "/sites", headers=all_sites).json["sites"])
        assert http.request("GET", "/sites", headers=two).json == {"sites": [names[0], names[2]]}
        figures = http.request("GET", "/sites?from=now-1h", headers=two).json["sites"]
        assert [(row["site"], row["pv"]) for row in figures] == [(names[0], 1), (names[2], 1)]
        for path in ("/pages?", "/overlap?page=/a&page=/b&", "/pagesets/s?"):
            refused = http.request("GET", f"{path}site={names[1]}", headers=two)
            assert refused.status == 403 and refused.errors[0]["parameter"] == "site"
            assert http.request("GET", f"{path}site={names[2]}", headers=two).status in (200, 404)
        assert http.request("PUT", f"/pagesets/s?site={names[1]}", '{"pages":["/"]}', headers=two).status == 403
    finally:
        daemon.stop()


def test_more_sites_than_are_read_at_once(start_redis, start_tallyd):
    """A step of a scan brings some 1,000 of a partition's."""
    names = [f"site-{i:04}" for i in range(3000)]
    http = start_tallyd("--partitions", "1", redis=start_redis()).client()
    http.accept([{"site": name, "page": "/"} for name in names])
    assert http.question("/sites")["sites"] == names


def test_figures_of_a_thousand_sites(start_redis, start_tallyd):
    """An answer with as many says whether there are more."""
    http = start_tallyd("--partitions", "1", redis=start_redis()).client()
    names = [f"site-{i:04}" for i in range(1001)]

    def ask():
        answer = http.question("/sites", from_="now-1h")
        return [row["site"] for row in answer["sites"]], answer.get("truncated")

    for n, truncated in ((999, None), (1000, False), (1001, True)):
        http.accept([{"site": name, "page": "/"} for name in names[:n]])
        assert ask() == (names[:min(n, 1000)], truncated)
    assert http.question("/sites") == {"sites": names}
