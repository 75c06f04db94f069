"""GET /hotkeys: the pages that are hot, by writes and reads, with bounded errors."""

import time

import pytest

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
