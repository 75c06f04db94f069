"""GET /overlap: what two pages have in common, with honest errors."""

import json
import random
import time

import pytest

from lib.clock import epoch
from lib.truth import SIGMA


def seed_pages(http, site, a, b):
    """/a is visited by users of range a, /b by those of b."""
    events = [{"site": site, "page": page, "user": user} for page, users in (("/a", a), ("/b", b)) for user in users]
    for i in range(0, len(events), 10_000):
        http.accept(events[i:i + 10_000])


def figures(answer):
    return {name: answer[name].get("uv", answer[name].get("value")) for name in ("a", "b", "union", "intersection", "jaccard")}


@pytest.mark.parametrize("n_a, n_b, both", [(20_000, 20_000, 2000), (30_000, 3000, 3000), (5000, 10_000, 100), (100, 200, 50)])
def test_figures_and_errors(http, site, n_a, n_b, both):
    seed_pages(http, site, range(n_a), range(n_a - both, n_a - both + n_b))
    answer = http.question("/overlap", site=site, page=["/a", "/b"])
    union = n_a + n_b - both
    truth = {"a": n_a, "b": n_b, "union": union, "intersection": both, "jaccard": both / union}
    for name, value in truth.items():
        error, got = answer[name]["error"], figures(answer)[name]
        deviation = error["relative"] * got
        assert abs(got - value) <= 4.5 * deviation + (0.6 if name != "jaccard" else 2 / union), (name, got, value, error)
        assert error["low"] <= got <= error["high"]
    assert answer["intersection"]["error"]["relative"] * both < 2 * SIGMA * union, "no worse than inclusion and exclusion"
    assert abs(figures(answer)["jaccard"] - figures(answer)["intersection"] / figures(answer)["union"]) < 0.001 + 1 / n_b


def test_nothing_in_common(http, site):
    """The figure may not be 0, but it is said to mean nothing."""
    seed_pages(http, site, range(30_000), range(30_000, 60_000))
    answer = http.question("/overlap", site=site, page=["/a", "/b"])
    for name in ("intersection", "jaccard"):
        assert answer[name]["significant"] is False and answer[name]["error"]["low"] == 0
    for name in ("a", "b", "union"):
        assert "significant" not in answer[name]


def test_the_same_page_and_no_page(http, site):
    seed_pages(http, site, range(500), [])
    same = http.question("/overlap", site=site, page=["/a", "/a"])
    assert same["jaccard"]["value"] > 0.999 and same["intersection"]["uv"] == same["union"]["uv"]
    none = http.question("/overlap", site=site, page=["/x", "/y"])
    assert figures(none) == {"a": 0, "b": 0, "union": 0, "intersection": 0, "jaccard": 0}


def test_order_of_the_pages(http, site):
    seed_pages(http, site, range(1000), range(900, 1200))
    one = http.question("/overlap", site=site, page=["/a", "/b"])
    other = http.question("/overlap", site=site, page=["/b", "/a"])
    assert (one["a"]["page"], one["b"]["page"], other["a"]["page"]) == ("/a", "/b", "/b")
    assert abs(one["intersection"]["uv"] - other["intersection"]["uv"]) <= 1


def test_window_and_cover(http, site):
    seed_pages(http, site, range(10), range(5, 15))
    answer = http.question("/overlap", site=site, page=["/a", "/b"], from_="now-3m", explain="1")
    assert figures(answer)["intersection"] == 5
    assert answer["cover"]["keys"] == len(answer["cover"]["list"]) >= 6
    assert {item["key"].rpartition(":")[2] for item in answer["cover"]["list"]} == {"/a", "/b"}
    before = http.question("/overlap", site=site, page=["/a", "/b"], from_="now-2d", to="now-1d")
    assert figures(before)["union"] == 0


@pytest.mark.parametrize("pages", [[], ["/a"], ["/a", "/b", "/c"]])
def test_two_pages_it_must_be(http, site, pages):
    refused = http.get("/overlap", site=site, page=pages)
    assert refused.status == 400 and refused.errors[0]["parameter"] == "page"
    assert http.get("/overlap", page=["/a", "/b"], pageset="s").errors[0]["parameter"] == "pageset"


def put_set(http, site, name, pages):
    assert http.request("PUT", f"/pagesets/{name}?site={site}", json.dumps({"pages": pages})).status == 201


def test_sets_of_pages(http, site):
    """A set stands for one of the two: who has seen any of its pages, once."""
    events = [{"site": site, "page": f"/a/{i % 40}", "user": i} for i in range(3000)]
    events += [{"site": site, "page": f"/a/{(i + 1) % 40}", "user": i} for i in range(3000)]
    events += [{"site": site, "page": f"/b/{i % 3}", "user": i} for i in range(2000, 4000)]
    http.accept(events)
    put_set(http, site, "a", [f"/a/{i}" for i in range(40)] + ["/never"])
    put_set(http, site, "b", ["/b/0", "/b/1", "/b/2"])
    put_set(http, site, "one", ["/b/1"])
    query = f"/overlap?site={site}&from=now-1h&explain=1"
    answer = http.get(query + "&pageset=a&pageset=b").json
    truth = {"a": 3000, "b": 2000, "union": 4000, "intersection": 1000, "jaccard": 0.25}
    for name, value in truth.items():
        assert abs(figures(answer)[name] - value) <= 4.5 * answer[name]["error"]["relative"] * figures(answer)[name] + 0.6, name
    assert (answer["a"]["pageset"], answer["b"]["pageset"]) == ("a", "b") and "page" not in answer["a"]
    assert answer["cover"]["keys"] == len(answer["cover"]["list"]) and answer["cover"]["keys"] % 44 == 0
    mixed = http.get(query + "&page=/b/1&pageset=a").json
    other = http.get(query + "&pageset=one&pageset=a").json
    assert mixed["a"]["page"] == "/b/1" and mixed["b"]["pageset"] == "a", "in the order in which they were given"
    assert figures(mixed) == figures(other)
    assert http.get(query + "&pageset=a&page=/b/1").json["a"]["pageset"] == "a"


def test_a_list_of_keys_is_bounded(http, site):
    """Two sets over an hour and a half had a list of 180,000 keys: of long names 390 MB of JSON, made on an HTTP thread."""
    put_set(http, site, "a", [f"/a/{i}" for i in range(1000)])
    put_set(http, site, "b", [f"/b/{i}" for i in range(1000)])
    put_set(http, site, "long", [f"/{i}".ljust(2048, "x") for i in range(1000)])
    for sets, from_ in ((["a", "b"], "now-55m"), (["a", "long"], "now-8m")):
        asked = {"site": site, "pageset": sets, "from_": from_}
        refused = http.get("/overlap", **asked, explain="1")
        assert refused.status == 422 and "too many keys: ask without explain" in refused.json["detail"], refused
        assert http.question("/overlap", **asked)["cover"]["keys"] > 8000


def test_the_keys_of_a_question_are_bounded(http, site):
    """Two sets of 1,000 pages over two broken hours and a day between."""
    put_set(http, site, "a", [f"/a/{i}" for i in range(1000)])
    put_set(http, site, "b", [f"/b/{i}" for i in range(1000)])
    hour = int(time.time()) // 3600 * 3600
    asked = {"site": site, "pageset": ["a", "b"], "from_": hour - 40 * 3600 + 60, "to": hour - 60}
    refused = http.get("/overlap", **asked)
    assert refused.status == 422 and "too many keys" in refused.json["detail"], refused
    assert http.get("/overlap", **{**asked, "pageset": ["a", "a"], "from_": hour - 3600}).status == 200


def test_sets_that_are_refused(http, site):
    put_set(http, site, "s", ["/a"])
    for query, status in (("pageset=s", 400), ("pageset=s&pageset=s&pageset=s", 400), ("page=/a&page=/b&pageset=s", 400),
                          ("page=/a&pageset=s!", 400), ("page=/a&pageset=none", 404), ("pageset=s&pageset=none", 404)):
        refused = http.get(f"/overlap?site={site}&{query}")
        assert refused.status == status and refused.errors[0]["parameter"] == "pageset", query
        assert status == 400 or "none" in refused.errors[0]["detail"]
    assert http.get(f"/overlap?site={site}&pageset=s&pageset=s").status == 200


# Two windows


def test_who_came_back(start_world):
    """New and returning visitors of the site, a page and a set, known users and strangers, beside sets of Python."""
    world = start_world("2026-03-16 00:00:10")
    chance = random.Random(7)
    weeks = {"a": ("2026-03-09", 0, 3000), "b": ("2026-03-02", 2000, 5000)}  # of a, 1,000 were there the week before
    seen = {(week, page): set() for week in weeks for page in (None, "/a", "/b")}
    for week, (start, first, last) in sorted(weeks.items(), key=lambda item: item[1][0]):
        events = []
        for i in range(first, last):
            page = chance.choice(("/a", "/b"))
            who = {"user": f"u{i}"} if i % 2 else {"ip": f"198.18.{i // 250}.{i % 250}", "ua": "Firefox"}
            events.append({"site": "shop", "page": page, "ts": epoch(start) + 200 * (i - first), **who})
            seen[week, None].add(i)
            seen[week, page].add(i)
        world.post(events)
    put_set(world.http, "shop", "both", ["/a", "/b", "/none"])
    window = {"site": "shop", "from_": "2026-03-09", "to": "2026-03-16", "from2": "2026-03-02", "to2": "2026-03-09"}
    for asked, a, b in (({}, None, None), ({"page": "/a"}, "/a", "/a"), ({"page": ["/a", "/b"]}, "/a", "/b"),
                        ({"pageset": "both"}, None, None), ({"page": ["/b", "/b"]}, "/b", "/b")):
        answer = world.http.question("/overlap", **window, **asked)
        of_a, of_b = seen["a", a], seen["b", b]
        truth = {"a": len(of_a), "b": len(of_b), "union": len(of_a | of_b), "intersection": len(of_a & of_b), "new": len(of_a - of_b)}
        for name, value in truth.items():
            error = answer[name]["error"]
            assert abs(answer[name]["uv"] - value) <= 4.5 * error["relative"] * answer[name]["uv"] + 0.6, (asked, name, answer)
            assert error["low"] <= answer[name]["uv"] <= error["high"]
        assert (answer["from2"], answer["to2"]) == ("2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z")
        assert "spans_rotation" not in answer
    assert world.http.question("/overlap", **window)["a"]["page"] is None


def test_a_second_window_is_read_as_the_first_one(http, site):
    http.accept([{"site": site, "page": "/a", "user": i} for i in range(50)])
    answer = http.question("/overlap", site=site, page="/a", from_="now-1h", from2="now-1h", to2="now", explain="1")
    assert answer["new"]["uv"] == 0
    assert answer["intersection"]["uv"] == answer["a"]["uv"] == answer["union"]["uv"]
    assert abs(answer["a"]["uv"] - 50) <= 3  # two of 50 may share a register: 7 runs in 100
    for cover in ("cover", "cover2"):
        assert answer[cover]["keys"] == len(answer[cover]["list"]) > 0
    alone = http.question("/overlap", site=site, page=["/a", "/b"])
    assert not {"from2", "to2", "new", "cover2"} & alone.keys()


@pytest.mark.parametrize("query, parameter", [
    ("from2=now-2h", "to2"), ("to2=now", "from2"), ("from2=now&to2=now-1h", "to2"), ("from2=2026-03-02&to2=2026-03-02", "to2"), ("from2=x&to2=now", "from2"),
    ("page=/a&page=/b&page=/c&from2=now-2h&to2=now", "page"), ("pageset=a&page=/b&page=/c&from2=now-2h&to2=now", "pageset")])
def test_second_windows_that_are_refused(http, site, query, parameter):
    refused = http.get(f"/overlap?site={site}&{query}")
    assert refused.status == 400 and refused.errors[0]["parameter"] == parameter, refused


def test_a_second_window_that_is_not_kept(http, site):
    refused = http.get("/overlap", site=site, from2="2020-01-01T10:07:00Z", to2="2020-01-01T10:30:00Z")
    assert refused.status == 422 and refused.errors[0]["parameter"] == "from2", refused


def test_a_border_of_rotation_between_the_windows(start_world):
    world = start_world("2026-03-02 12:00:10", "--visitor-rotation", "day")
    windows = {"from_": "2026-03-02T11:00:00Z", "to": "2026-03-02T12:00:00Z"}
    assert "spans_rotation" not in world.http.question("/overlap", **windows, from2="2026-03-02T08:00:00Z", to2="2026-03-02T09:00:00Z")
    between = world.http.question("/overlap", **windows, from2="2026-03-01T08:00:00Z", to2="2026-03-01T09:00:00Z")
    assert between["spans_rotation"] is True
    one = {"page": ["/a", "/b"], "to": "2026-03-02T12:00:00Z"}
    assert "spans_rotation" not in world.http.question("/overlap", **one, from_="2026-03-02")
    assert world.http.question("/overlap", **one, from_="2026-03-01T23:59:00Z")["spans_rotation"] is True
    events = {"by": "event", "to": "2026-03-02T12:00:00Z"}
    assert "spans_rotation" not in world.http.question("/breakdown", **events, from_="2026-03-02")
    assert world.http.question("/breakdown", **events, from_="2026-03-01T23:59:00Z")["spans_rotation"] is True


def test_who_cannot_be_recognised_beyond_a_border_of_rotation(start_world):
    """A stranger of both days is new; a user and an anonymous id are not: why the answer says spans_rotation."""
    world = start_world("2026-03-02 12:00:10", "--visitor-rotation", "day")
    world.http.accept([{"page": "/", "ts": epoch(day), **who} for day in ("2026-03-01 09:00", "2026-03-02 09:00")
                       for who in ({"ip": "192.0.2.1"}, {"user": "u"}, {"visitor": "v"})])
    answer = world.http.question("/overlap", from_="2026-03-02", to="2026-03-02T12:00:00Z", from2="2026-03-01", to2="2026-03-02")
    assert [answer[figure]["uv"] for figure in ("a", "b", "union", "intersection", "new")] == [3, 3, 4, 2, 1]
    assert answer["spans_rotation"] is True
