"""GET /hotkeys: the pages that are hot, by writes and reads, with bounded errors."""

import signal
import time

import pytest

from lib.waiting import wait_until

TALLYD_ARGS = ("--threads", "2")


def skewed(chance, n, pages):
    """Log-uniform, near Zipf's law: page 0 comes most."""
    return [int(pages ** chance.random()) - 1 for _ in range(n)]


def listed(http, **params):
    answer = http.question("/hotkeys", **params)
    assert set(answer) == {"pages"}
    for page in answer["pages"]:
        assert set(page) == {"site", "page", "reads_per_s", "writes_per_s", "error"}
    return answer["pages"]


def test_a_skewed_load_shows_the_right_pages(start_tallyd, site, chance):
    """3,000 pages, more than there are counters; what is listed is right within its error, and the hot ones are there."""
    http = start_tallyd(*TALLYD_ARGS).client()  # its own: what is full of other pages is less exact for those who come next
    begin = time.monotonic()
    drawn = skewed(chance, 60_000, 3000)
    for i in range(0, len(drawn), 5000):
        http.accept([{"site": site, "page": f"/{p}", "user": i + n} for n, p in enumerate(drawn[i:i + 5000])])
    reads = {p: 40 - 5 * p for p in range(4)}  # page 3 is read more than some are, and so on
    for p, n in reads.items():
        for _ in range(n):
            http.count("pv", site=site, page=f"/{p}")
    pages = [p for p in listed(http, limit=1000) if p["site"] == site]
    # rates are over the time since the oldest slot began: between this test's length and 30 s
    elapsed = time.monotonic() - begin
    seconds = max(drawn.count(0) / (pages[0]["writes_per_s"] or 1), 1)
    assert elapsed * 0.5 < seconds < elapsed + 31, (elapsed, seconds)
    assert [p["page"] for p in pages[:8]] == sorted(
        (p["page"] for p in pages[:8]), key=lambda name: -(drawn.count(int(name[1:])) + reads.get(int(name[1:]), 0)))
    found = {p["page"]: p for p in pages}
    slack = 0.2 * pages[0]["writes_per_s"] / drawn.count(0) + 0.05  # the seconds are not known exactly
    for number in sorted(set(drawn), key=drawn.count, reverse=True)[:40]:
        count = drawn.count(number)
        assert f"/{number}" in found or count < 600, f"/{number}: {count} of {len(drawn)}"
        if f"/{number}" in found:
            page = found[f"/{number}"]
            assert abs(page["writes_per_s"] * seconds - count) <= (page["error"] + slack) * seconds + count * 0.02
    for number, n in reads.items():
        assert abs(found[f"/{number}"]["reads_per_s"] * seconds - n) <= (found[f"/{number}"]["error"] + slack) * seconds
    assert all(p["error"] * seconds < 600 for p in pages), "an error of a hundredth of the load"


def test_the_site_as_a_whole_is_no_page(http, site):
    http.accept({"site": site, "page": "/only", "user": 1})
    for _ in range(5):
        http.count("uv", site=site)
    mine = [p for p in listed(http, limit=1000) if p["site"] == site]
    assert [(p["page"], p["reads_per_s"]) for p in mine] == [("/only", 0)]


def test_both_sides_of_an_overlap_are_read(http, site):
    for name in ("/a", "/b", "/c"):
        http.accept({"site": site, "page": name, "user": 1})
    for _ in range(5):
        http.question("/overlap", site=site, page=["/a", "/b"])
        http.question("/overlap", site=site, from2="now-2d", to2="now-1d")
    mine = {p["page"]: p["reads_per_s"] for p in listed(http, limit=1000) if p["site"] == site}
    assert mine["/a"] == mine["/b"] > 0 == mine["/c"]


def test_order_and_limit(http, site):
    for name, n in (("/b", 30), ("/a", 30), ("/c", 50)):
        http.accept([{"site": site, "page": name, "user": i} for i in range(n)])
    mine = [p["page"] for p in listed(http, limit=1000) if p["site"] == site]
    assert mine == ["/c", "/a", "/b"], "ties by name"
    assert len(listed(http, limit=2)) <= 2
    assert len(listed(http)) <= 10


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "x", "1.5", "", "99999999999999999999", "+5"])
def test_bad_limits(http, limit):
    answer = http.get("/hotkeys", limit=limit)
    assert answer.status == 400, answer
    assert answer.errors[0]["parameter"] == "limit"


def test_unknown_parameter(http):
    assert http.get("/hotkeys", site="x").errors[0]["parameter"] == "site"


# Several processes on one Redis


def hottest(http, site):
    """{page: (reads_per_s > 0, writes_per_s)} of the site."""
    return {p["page"]: (p["reads_per_s"] > 0, p["writes_per_s"]) for p in listed(http, limit=1000) if p["site"] == site}


@pytest.fixture
def fleet(start_redis, start_tallyd):
    redis = start_redis()
    return redis, [start_tallyd(*TALLYD_ARGS, redis=redis, name=f"tallyd{i}") for i in range(3)]


def test_any_process_answers_for_all(fleet, site):
    """A page's rates are added up over the processes, and what only one of them has seen is in everybody's answer, at most 5 s old."""
    https = [tallyd.client() for tallyd in fleet[1]]
    for n, http in enumerate(https):
        http.accept([{"site": site, "page": page, "user": i} for page in ("/all", f"/only{n}") for i in range(100)])
    https[0].count("pv", site=site, page="/only2")
    written = time.monotonic()
    pages = {"/all", "/only0", "/only1", "/only2"}
    for http in https:
        wait_until(lambda h=http: set(hottest(h, site)) == pages, "all pages", deadline_s=5 - (time.monotonic() - written))
        found = hottest(http, site)
        assert found["/only2"][0] and not found["/only1"][0], "reads, too"
        alone = [found[f"/only{n}"][1] for n in range(3)]
        assert abs(found["/all"][1] - sum(alone)) < 0.1 * sum(alone), (found, "its rates are added up")
        assert next(iter(found)) == "/all"


def test_a_process_that_died_is_forgotten(fleet, site):
    _, (first, second, third) = fleet
    for tallyd, page in ((first, "/a"), (second, "/b"), (third, "/c")):
        tallyd.client().accept([{"site": site, "page": page, "user": i} for i in range(50)])
    http = first.client()
    wait_until(lambda: set(hottest(http, site)) == {"/a", "/b", "/c"}, "all pages", deadline_s=5)
    second.kill()
    dead = time.monotonic()
    third.signal(signal.SIGSTOP)
    wait_until(lambda: set(hottest(http, site)) == {"/a"}, "neither counts any more", deadline_s=7)
    assert time.monotonic() - dead < 7
    third.signal(signal.SIGCONT)
    wait_until(lambda: set(hottest(http, site)) == {"/a", "/c"}, "it is back", deadline_s=5)


def test_what_lies_in_redis_is_bounded(fleet, site):
    """Whatever is written, a list has so many bytes, and all of it expires."""
    redis, tallyds = fleet
    for n, tallyd in enumerate(tallyds):
        tallyd.client().accept([{"site": site, "page": f"/{n}/{i}/" + "x" * 2000, "user": i} for i in range(600)])
    lists = wait_until(lambda: [k for k in (redis.command("KEYS", "t:*:hot:*")) if redis.command("STRLEN", k) > 10_000][2:],
                       "three lists", deadline_s=6) and redis.command("KEYS", "t:*:hot*")
    for key in lists:
        assert 0 < redis.command("PTTL", key) <= 10_000, key
        if key.count(":") == 3:
            assert redis.command("STRLEN", key) <= 64 * 1024 + 64, key
    assert len(listed(tallyds[0].client(), limit=1000)) > 60


def test_without_redis_it_is_this_process_s(start_redis, start_tallyd, site):
    redis = start_redis()
    http = start_tallyd(*TALLYD_ARGS, redis=redis).client()
    http.accept([{"site": site, "page": "/a", "user": i} for i in range(50)])
    redis.kill()
    assert set(hottest(http, site)) == {"/a"}


def test_foreign_lists_do_no_harm(fleet, site):
    """A process of another version has published bytes of another form."""
    redis, tallyds = fleet
    http = tallyds[0].client()
    http.accept([{"site": site, "page": "/a", "user": i} for i in range(50)])
    fleet_key = wait_until(lambda: redis.command("KEYS", "t:*:hot"), "the fleet is known")[0]
    redis.command("ZADD", fleet_key, int(redis.time() * 1000), "f" * 16)
    redis.command("SET", f"{fleet_key}:{'f' * 16}", "h2 and what follows", "PX", 4000)
    assert set(hottest(http, site)) == {"/a"}
    redis.command("DEL", f"{fleet_key}:{'f' * 16}")
    redis.command("HSET", f"{fleet_key}:{'f' * 16}", "a", "b")
    assert set(hottest(http, site)) == {"/a"}, "what Redis refuses to read is not waited for"


@pytest.mark.parametrize("n", [1, 2])
def test_a_list_is_published_where_another_process_reads_it(start_redis, start_tallyd, site, n):
    redis = start_redis()
    https = [start_tallyd(*TALLYD_ARGS, redis=redis, name=f"tallyd{i}").client() for i in range(n)]
    wait_until(lambda: redis.command("KEYS", "t:*:hot"), "the processes are known")
    https[0].accept([{"site": site, "page": "/a", "user": i} for i in range(50)])
    if n > 1:
        wait_until(lambda: set(hottest(https[1], site)) == {"/a"}, "the other one's page", deadline_s=6)
    else:
        time.sleep(2.5)  # a list is published every 2 s
        assert not redis.command("KEYS", "t:*:hot:*"), "nobody reads it"


def test_others_are_waited_for_for_a_second(start_redis, start_tallyd, site):
    """Then the answer has what this process has counted."""
    redis = start_redis()
    http = start_tallyd(*TALLYD_ARGS, redis=redis).client()
    http.accept([{"site": site, "page": "/a", "user": i} for i in range(50)])
    assert set(hottest(http, site)) == {"/a"}
    redis.pause()
    begin = time.monotonic()
    assert set(hottest(http, site)) == {"/a"}
    waited = time.monotonic() - begin
    redis.resume()
    assert 0.9 < waited < 3.5
