"""What caps put together is remembered hour by hour, so that a page's `at_most` is the same as without memory."""

import pytest

from lib.clock import epoch
from lib.log import counted
from lib.remembering import clients, two_and_plain, window

HOUR = 3600


@pytest.fixture(scope="module")
def world():
    yield from two_and_plain("--partitions", "1", "--max-pages", "2")


@pytest.mark.parametrize("first", [0, 1])
def test_a_page_may_be_among_the_others_of_hours_without_it_only(clients, site, first):
    """/a has its place in the first hour and none in the last one, so what was put together in the first one is not /a's.  With
    @first 1 the last hour is known when both are asked for: the table of both is made of one that is remembered and one that is read."""
    http, _, plain = clients
    begin = epoch("2026-02-03 05:00")
    for hour, pages in ((0, ["/a", "/b"] + ["/x"] * 5), (3, ["/c", "/d"] + ["/a"] * 7)):
        for page in pages:
            http.accept({"site": site, "page": page, "user": page, "ts": begin + hour * HOUR + 60})
            counted(http)  # one after the other: the first two get the places
    for from_s in (begin + first * HOUR, begin, begin):
        asked = {"site": site, "by": "pv", "limit": 10, **window(from_s, begin + 4 * HOUR)}
        rows = http.question("/pages", **asked)["pages"]
        assert rows == plain.question("/pages", **asked)["pages"]
    assert next(row["at_most"] for row in rows if row["page"] == "/a") == 1 + 7
