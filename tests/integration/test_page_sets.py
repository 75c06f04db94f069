"""/pagesets/{name}, and pageset= wherever page= is taken."""

import json
import string
import time

import pytest

from lib.proxy import Fault

METRICS = ("pv", "uv", "ips", "visits")
NAMES = string.ascii_lowercase + string.ascii_uppercase


def put(http, name, pages, site=None, status=201):
    response = http.request("PUT", f"/pagesets/{name}" + (f"?site={site}" if site else ""), json.dumps({"pages": pages}))
    assert response.status == status, response
    return response


def test_put_get_delete(http, site):
    path = f"/pagesets/landing?site={site}"
    assert http.request("GET", path).status == 404
    first = put(http, "landing", ["/b", "/a", "/b", "/ä \"x\""], site)
    expected = {"site": site, "name": "landing", "pages": ["/b", "/a", "/ä \"x\""]}
    assert first.json == expected and http.request("GET", path).json == expected
    assert put(http, "landing", ["/c"], site, 200).json["pages"] == ["/c"]
    assert http.request("GET", path).json["pages"] == ["/c"]
    assert http.request("GET", "/pagesets/landing").status == 404, "of another site"
    gone = http.request("DELETE", path)
    assert (gone.status, gone.body) == (204, b"")
    assert http.request("DELETE", path).status == http.request("GET", path).status == 404


def test_a_delete_whose_answer_is_lost_is_done(start_redis, start_proxy, start_tallyd, site):
    """It is sent again, and then there is nothing to delete: that was this very request."""
    proxy = start_proxy(start_redis())
    http = start_tallyd("--partitions", "4", "--readers", "1", redis=proxy).client()
    put(http, "landing", ["/a"], site)
    path = f"/pagesets/landing?site={site}"
    fault = proxy.arm(Fault("reply-before", match=lambda args: args[0].upper() == b"HDEL" and b"landing" in args))
    assert http.request("DELETE", path).status == 204 and fault.fired == 1
    assert http.request("DELETE", path).status == http.request("GET", path).status == 404


def test_two_addresses_of_one_page_count_as_one(http, site):
    """As in the README: nobody is counted twice who has seen both."""
    http.accept([{"site": site, "page": page, "user": user, "ip": "192.0.2.1"}
                 for page, users in (("/a", range(300)), ("/a?variant=2", range(200, 500)), ("/c", range(500, 600))) for user in users])
    put(http, "landing", ["/a", "/a?variant=2"], site)
    for metric in METRICS:
        by_set = http.question("/" + metric, site=site, pageset="landing", from_="now-1h")
        by_name = http.question("/" + metric, site=site, page=["/a", "/a?variant=2"], from_="now-1h")
        assert by_set == by_name
    window = {"site": site, "from_": "now-1h/h", "step": "1h", "tz": "Asia/Kathmandu"}
    by_set = http.question("/stats", pageset="landing", **window)
    assert by_set == http.question("/stats", page=["/a", "/a?variant=2"], **window)
    assert by_set["pv"] == sum(point["pv"] for point in by_set["series"]) == 600
    assert http.count("pv", site=site, pageset="landing") == 600
    assert abs(http.count("uv", site=site, pageset="landing") - 500) <= 20
    both = http.question("/pv", site=site, pageset="landing", page=["/c", "/a"])
    assert both["pv"] == 700 and both["pages"] == ["/c", "/a", "/a?variant=2"], "each once"
    top = http.question("/pages", site=site, pageset="landing", by="uv")
    assert top["total_pages"] == 2 and {r["page"] for r in top["pages"]} == {"/a", "/a?variant=2"}


def test_a_changed_set_is_in_the_very_next_answer(http, site):
    http.accept([{"site": site, "page": page} for page in ("/1", "/2", "/2")])
    put(http, "s", ["/1"], site)
    for _ in range(3):
        assert http.count("pv", site=site, pageset="s") == 1
        put(http, "s", ["/2"], site, 200)
        assert http.count("pv", site=site, pageset="s") == 2
        put(http, "s", ["/1"], site, 200)


def test_a_thousand_pages_over_all_partitions(http, site):
    pages = [f"/a/page/of/some/length/{i}" for i in range(1000)]
    put(http, "all", pages, site)
    assert http.question("/pagesets/all", site=site)["pages"] == pages
    for i in range(0, 1000, 250):
        http.accept([{"site": site, "page": page, "user": n} for n, page in enumerate(pages[i:i + 250])] + [{"site": site, "page": "/other"}])
    window = {"site": site, "pageset": "all", "from_": "now-1h"}
    assert http.count("pv", **window) == 1000
    assert http.count("visits", **window) == 250, "a user's four page views are one visit"
    answer = http.question("/uv", **window)
    stats = http.question("/stats", **window)
    assert (stats["pv"], stats["visits"]) == (1000, 250) and abs(stats["uv"] - 250) <= 10
    assert abs(answer["uv"] - 250) <= 10 and answer["cover"]["keys"] == 1000 * (answer["cover"]["keys"] // 1000)
    assert http.question("/pages", limit=1000, **window)["total_pages"] == 1000
    longest = [f"/{i}".ljust(2048, "x") for i in range(1000)]
    put(http, "longest", longest, site)
    assert http.question("/pagesets/longest", site=site)["pages"] == longest
    refused = http.request("PUT", f"/pagesets/more?site={site}", json.dumps({"pages": pages + ["/y"]}))
    assert refused.status == 422 and refused.errors[0]["pointer"] == "/pages"


def test_many_pages_in_a_window_that_is_not_kept(start_redis, start_tallyd):
    """A set and more pages than fit into one: several portions of each partition have to agree on what can be answered."""
    client = start_tallyd("--partitions", "64", "--keep-minutes", "2h", redis=start_redis()).client()
    put(client, "all", [f"/{i}" for i in range(1000)])
    day = int(time.time()) // 86400 * 86400 - 3 * 86400
    asked = {"pageset": "all", "page": [a + b for a in NAMES for b in NAMES][:1300], "from_": day + 1800, "to": day + 7200}
    assert len(asked["page"]) == 1300
    for metric in ("stats", "uv", "visits"):
        refused = client.get(f"/{metric}", **asked)
        assert refused.status == 422 and "the nearest one that can be answered" in refused.json["detail"], refused
        assert client.get(f"/{metric}", **asked, round="outer").status == 200


@pytest.mark.parametrize("window, step, finer", [
    ({"from_": "now-1d"}, "1h", "15m"), ({"from_": "now-14d/d", "to": "now/d"}, "1d", "1h")])
def test_a_step_that_needs_too_many_keys(http, site, window, step, finer):
    """auto takes the finest one that works; who asks for a finer one is told of it."""
    put(http, "all", [f"/{i}" for i in range(1000)], site)
    asked = {"site": site, "pageset": "all", **window}
    chosen = http.question("/stats", step="auto", **asked)
    assert chosen["step"] == step and len(chosen["series"]) <= 500
    refused = http.get("/stats", step=finer, **asked)
    assert refused.status == 422 and f"too many keys; step={step} works" in refused.json["detail"], refused


def test_what_needs_too_many_keys_says_what_would_help(http, site):
    def advice(**asked):
        refused = http.get("/stats", site=site, **asked)
        assert refused.status == 422 and "too many keys: ask" in refused.json["detail"], refused
        return refused.json["detail"].partition(": ask ")[2]

    assert advice(from_=0, to="9999-12-31") == "with to=now, or for a shorter one"
    put(http, "long", [f"/{i}".ljust(2045, "x") for i in range(1000)], site)
    assert advice(pageset="long", from_="now-50m") == "for fewer pages, or for a shorter one"
    put(http, "all", [f"/{i}" for i in range(1000)], site)
    assert advice(pageset="all", from_="now-50m", explain="1") == "without explain, or for fewer pages, or for a shorter one"
    listed = http.question("/uv", site=site, pageset="all", from_="now-30m", explain="1")["cover"]
    assert len(listed["list"]) == listed["keys"] >= 30_000
    long = "/".ljust(2048, "x")
    ahead = {"page": long, "from_": "now", "to": "now+6d", "explain": "1"}  # minutes that nobody reads, but for the list
    for step in ({}, {"step": "1h"}):
        assert advice(**ahead, **step) == f"without explain, or {'without step, or ' if step else ''}with to=now, or for a shorter one"


@pytest.mark.parametrize("path", [*("/" + m for m in METRICS), "/stats", "/pages"])
def test_unknown_sets(http, site, path):
    unknown = http.get(path, site=site, pageset="nobodys", page="/a")
    assert unknown.status == 404 and unknown.errors[0]["parameter"] == "pageset"
    assert "nobodys" in unknown.json["detail"]
    assert http.get(path, site=site, pageset="a/b").status == 400


@pytest.mark.parametrize("name", ["a%20b", "%C3%A4", "a" * 65, "a%3Ab", "a%0Ab"])
def test_bad_names(http, name):
    for method in ("PUT", "GET", "DELETE"):
        refused = http.request(method, f"/pagesets/{name}", '{"pages":["/"]}' if method == "PUT" else None)
        assert refused.status == 400 and refused.errors[0]["parameter"] == "name"


@pytest.mark.parametrize("body, status, pointer", [
    ("", 400, None), ("{", 400, None), ('{"pages":["/a"],"pages":["/b"]}', 400, None), ('{"pages":["\\ud800"]}', 400, None),
    ('{"pages":["\\u0000"]}', 422, "/pages/0"), ('{"pages":["/a"],"x":99999999999999999999}', 422, ""),
    ("[]", 422, ""), ("1", 422, ""), ("{}", 422, "/pages"), ('{"pages":"/a"}', 422, "/pages"), ('{"pages":[]}', 422, "/pages"),
    ('{"pages":["/a"],"page":"/b"}', 422, ""), ('{"pages":["/a",""]}', 422, "/pages/1"), ('{"pages":["/a\\n/b"]}', 422, "/pages/0"),
    ('{"pages":[null]}', 422, "/pages/0"), ('{"pages":["' + "x" * 2049 + '"]}', 422, "/pages/0")])
def test_bad_bodies(http, site, body, status, pointer):
    refused = http.request("PUT", f"/pagesets/s?site={site}", body)
    assert refused.status == status, refused
    if pointer is None:
        assert refused.json["detail"].startswith("line 1, column "), refused
        assert not refused.json["detail"].startswith("line 1, column 0:") and "near" not in refused.json["detail"]
    else:
        assert [e["pointer"] for e in refused.errors] == [pointer]
    assert http.request("GET", f"/pagesets/s?site={site}").status == 404


def test_a_set_that_somebody_else_wrote(http, redis, site):
    """No set can stand for the whole site, and foreign bytes are pages that nobody has."""
    http.accept([{"site": site, "page": "/a"}, {"site": site, "page": "/b"}])
    put(http, "s", ["/a"], site)
    key = next(k for k in redis.command("KEYS", "t:*:sets:*") if k.endswith(site))
    for value, status, pv in (("", 404, None), ("\n\n", 404, None), ("/a", 200, 1), ("/a\n\n/a\n/b", 200, 2), ("x" * 5000, 404, None)):
        redis.command("HSET", key, "s", value)
        answer = http.get("/pv", site=site, pageset="s")
        assert answer.status == status and (pv is None or answer.json["pv"] == pv), (value[:20], answer)


def test_seen_any_page_of_a_set(http, site):
    """One of its pages, or the page that is named: false stays certain."""
    http.accept([{"site": site, "page": "/b", "user": "u"}, {"site": site, "page": "/x", "user": "v"}])
    put(http, "s", ["/a", "/b", *(f"/{i}" for i in range(998))], site)
    put(http, "t", ["/a"], site)
    ask = {"site": site}
    assert http.question("/seen", user="u", pageset="s", **ask)["seen"] is True
    for params in ({"user": "v", "pageset": "s"}, {"user": "u", "pageset": "t"}, {"user": "w", "pageset": "s", "page": "/b"}):
        answer = http.question("/seen", **params, **ask)
        assert answer["seen"] is False and answer["certain"] is True, params
    assert http.question("/seen", user="u", pageset="t", page="/b", **ask)["seen"] is True
    assert http.question("/seen", user="u", pageset="t", **ask)["false_positive_rate"] == http.question(
        "/seen", user="u", page="/a", **ask)["false_positive_rate"]


def test_seen_refuses_sets_that_are_none(http, site):
    unknown = http.get("/seen", site=site, user="u", pageset="none")
    assert unknown.status == 404 and unknown.errors[0]["parameter"] == "pageset"
    assert http.get("/seen", site=site, user="u", pageset="a b").status == 400
    assert http.get("/seen", site=site, user="u").errors[0]["parameter"] == "page"


def test_every_route_that_takes_page_takes_pageset(http, site):
    """CONTRACT 4; found in openapi.yaml, but for events, whose page is no question."""
    put(http, "s", ["/a"], site)
    document, asked = http.get("/openapi.json").json, set()
    for path, item in document["paths"].items():
        refs = [p["$ref"].rpartition("/")[2] for p in item.get("get", {}).get("parameters", []) if "$ref" in p]
        names = {document["components"]["parameters"][ref]["name"] for ref in refs}
        if "page" in names and path != "/pixel.gif":
            user = {"user": "u"} if "user" in names else {}
            pages = {"page": "/a"} if "TwoPages" in refs else {}
            assert http.get(path, site=site, pageset="s", **user, **pages).status == 200, path
            asked.add(path)
    assert asked >= {"/uv", "/pv", "/ips", "/visits", "/stats", "/pages", "/overlap", "/seen"}


def test_a_thousand_pages_of_one_partition_do_not_hold_redis_up(start_redis, start_tallyd, site):
    """Sketches of 12 KB each, all in one partition: no MULTI may take 5 ms, and what comes is right."""
    redis = start_redis()
    client = start_tallyd("--partitions", "1", redis=redis).client()
    at = int(redis.time()) // 60 * 60 - 600
    client.accept([{"site": site, "page": "/0", "user": i, "ip": f"10.0.{i // 250}.{i % 250}", "ts": at} for i in range(5000)])
    pages = [f"/{i}" for i in range(1000)]
    asked = {"site": site, "from_": at, "to": at + 120}
    keys = {}
    for metric in ("uv", "ips"):
        keys[metric] = client.question(f"/{metric}", page="/0", explain="1", **asked)["cover"]["list"][0]["key"]
    with redis.connect() as connection:
        assert connection.command("STRLEN", keys["uv"]) > 12_000, "dense"
        for key in keys.values():
            connection.command(
                "EVAL", "for p = 1, 999 do redis.call('COPY', KEYS[1], ARGV[1] .. p) end", 1, key, key.removesuffix("0"))
    assert client.request("PUT", f"/pagesets/all?site={site}", json.dumps({"pages": pages})).status == 201
    alone = client.question("/stats", page="/0", **asked)
    redis.command("CONFIG", "RESETSTAT")
    before = redis.processor()
    for _ in range(5):
        for more in ({}, {"step": "1m"}):
            answer = client.question("/stats", pageset="all", **asked, **more)
            assert [answer[m] for m in ("pv", "uv", "ips", "visits")] == [alone[m] for m in ("pv", "uv", "ips", "visits")]
        assert client.count("uv", pageset="all", **asked) == client.count("uv", page="/0", **asked)
    turns = redis.longest_turns()
    ran, waited = (b - a for a, b in zip(before, redis.processor()))
    print(f"EXEC in us: {turns}; ran {ran / 1e6:.0f} ms, waited {waited / 1e6:.0f} ms for a processor")
    assert turns["p50"] < 1000 and (turns["p99"] < 5000 or waited > 0.1 * ran)
    # named twice, in and beside the set: once, wherever it went
    assert client.count("pv", pageset="all", page=["/0", "/999", "/0"], **asked) == alone["pv"]
