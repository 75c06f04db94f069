"""Caps: whoever makes up names costs an hour its places, and every answer says how much a cap may hide."""

import collections
import json
import random

import pytest

from lib.clock import epoch, rfc3339
from lib.cluster import running
from lib.process import Tallyd, run, sanitized
from lib.waiting import wait_until
from lib.world import FOREVER, World


def breakdown(http, site, by="source", **params):
    answer = http.question("/breakdown", site=site, by=by, **{"from_": "now-1h", "limit": 1000, **params})
    assert answer["total"] == answer["other"] + sum(r["pv"] for r in answer["rows"])
    assert answer.get("capped", False) == (answer["other"] > 0)
    return answer


def holds(answer, truth):
    """Each row's truth lies between its two figures."""
    for row in answer["rows"]:
        assert row["pv"] <= truth[row["value"]] <= row["at_most"], (row, truth[row["value"]])


def views(site, names, **more):
    return [{"site": site, "page": "/", "ip": "192.0.2.1", "referrer": f"https://{name}/", **more} for name in names]


def test_beyond_the_cap_names_are_put_together():
    with running(Tallyd("--max-values", "5", "--max-events", "0")) as tallyd:
        http = tallyd.client()
        http.accept(views("s", [f"h{i}.example" for i in range(5)] * 2))
        http.accept(views("s", [f"g{i}.example" for i in range(50)] + ["h0.example"]))
        answer = breakdown(http, "s")
        assert [(r["value"], r["pv"], r["at_most"]) for r in answer["rows"]] == [("h0.example", 3, 3)] + [
            (f"h{i}.example", 2, 2) for i in range(1, 5)]
        assert answer["other"] == 50 and answer["total"] == 61
        assert http.metric("tallyd_names_capped_total") == 50
        http.accept(views("t", ["a.example"]))  # another site has places of its own
        assert breakdown(http, "t")["other"] == 0
        http.accept([{"site": "s", "event": f"e{i}"} for i in range(600)])  # 0 is no cap
        assert breakdown(http, "s", by="event")["other"] == 0


def test_tables_without_json_say_what_was_put_together():
    with running(Tallyd("--max-values", "2")) as tallyd:
        http = tallyd.client()
        http.accept(views("s", ["a.example", "b.example", "c.example", "c.example"]))
        text = http.request("GET", "/breakdown?site=s&by=source", headers={"Accept": "text/csv"}).body.decode()
        assert text == ("site,value,pv,uv,at_most\r\ns,a.example,1,1,1\r\ns,b.example,1,1,1\r\ns,(other),2,,2\r\n")
        assert len(breakdown(http, "s")["rows"]) == 2  # in JSON it has a member
        asked = ("query", "breakdown", "--by", "source", "--site", "s", "--url", f"http://127.0.0.1:{tallyd.port}")
        assert "a cap put names together: 2 are counted as (other)" in run(*asked).stderr
        assert run(*asked, "--to", "now-1d", "--from", "now-2d").stderr == ""


def test_pages_and_events():
    with running(Tallyd("--max-pages", "4", "--max-events", "3", "--partitions", "1")) as tallyd:
        http = tallyd.client()
        http.accept([{"page": f"/{i}", "user": f"u{i}", "ip": "192.0.2.1"} for i in range(10)] + [{"event": f"e{i}", "user": "u", "ip": "192.0.2.1"} for i in range(10)])
        listed = http.question("/pages", from_="now-1h", limit=100)
        assert [r["page"] for r in listed["pages"]] == ["/0", "/1", "/2", "/3", "(other)"] and listed["capped"] is True
        assert listed["pages"][-1] == {"page": "(other)", "pv": 6, "uv": None, "capped": True} and listed["total_pages"] == 4
        few = http.question("/pages", from_="now-1h", page=["/1", "/9"])["pages"]  # what was put together is none of these
        assert [(r["page"], r["pv"]) for r in few] == [("/1", 1)]
        assert http.question("/stats", from_="now-1h")["pv"] == 10 and http.count("uv", from_="now-1h") == 10
        assert http.count("visits", from_="now-1h") == 10
        for metric, most in (("pv", 7), ("uv", 7), ("ips", 1), ("visits", 7), ("stats", 7)):
            for _ in range(2):  # the second time what is over is recalled
                assert http.question("/" + metric, page="/0", from_="now-1h")["at_most"] == most, metric
            assert http.question("/" + metric, page="/0", from_="now-3h", step="1h")["at_most"] == most, metric
            assert "at_most" not in http.question("/" + metric, page="/0", from_="now-2d", to="now-1d")
            assert "at_most" not in http.question("/" + metric, from_="now-1h")
            assert http.question("/" + metric, page="/9", from_="now-1h")["at_most"] == most - (metric != "ips")
            if metric != "visits":
                events = {"pv": 8, "uv": 1, "ips": 1, "stats": 8}[metric]
                assert http.question("/" + metric, event="e0", from_="now-1h")["at_most"] == events, metric
        answer = breakdown(http, "default", by="event")
        assert [r["value"] for r in answer["rows"]] == ["e0", "e1", "e2"] and answer["other"] == 7


def most(answer, *names):
    return [answer[name].get("at_most") for name in names]


def test_what_two_names_have_in_common(tmp_path):
    """Visitors put together may be those of either side, or of both."""
    config = tmp_path / "tallyd.conf"
    config.write_text("section.zero = /0\n")
    with running(Tallyd("--max-pages", "4", "--max-events", "3", "--partitions", "1", "--config", str(config))) as tallyd:
        http = tallyd.client()
        http.accept([{"page": f"/{i}", "user": f"u{i}"} for i in range(10)])
        http.accept([{"event": f"e{i}", "user": f"u{i}"} for i in range(3)])
        for _ in range(2):  # the second time what is over is recalled
            answer = http.question("/overlap", page=["/0", "/1"], from_="now-1h")
            assert [answer[n]["uv"] for n in ("a", "b", "union", "intersection")] == [1, 1, 2, 0]
            assert most(answer, "a", "b", "union", "intersection", "jaccard") == [7, 7, 8, 6, 1]
        answer = http.question("/overlap", page="/0", event="e0", from_="now-1h")  # no event was put together
        assert most(answer, "a", "b", "union", "intersection", "jaccard") == [7, None, 7, 1, 1]
        http.accept([{"event": f"f{i}", "user": f"u{i}"} for i in range(5)])
        answer = http.question("/overlap", page="/0", event="e0", from_="now-1h")
        assert most(answer, "a", "b", "union", "intersection", "jaccard") == [7, 5, 10, 2, 1]
        assert http.request("PUT", "/pagesets/both", json.dumps({"pages": ["/0", "/1"]}).encode()).status == 201
        answer = http.question("/overlap", page="/0", pageset="both", from_="now-1h")
        assert most(answer, "a", "b", "union", "intersection") == [7, 8, 8, 7]
        answer = http.question("/overlap", page="/0", from_="now-1h", from2="now-2d", to2="now-1d")
        assert most(answer, "a", "b", "new") == [7, None, 7] and answer["new"]["uv"] == 1
        answer = http.question("/overlap", page="/0", from_="now-2d", to="now-1d", from2="now-1h", to2="now")
        assert most(answer, "a", "b", "new") == [None, 7, None]
        for whole in ({}, {"section": "zero"}):
            answer = http.question("/overlap", from_="now-1h", from2="now-2d", to2="now-1d", **whole)
            assert most(answer, "a", "b", "union", "new") == [None] * 4, whole
        assert most(http.question("/overlap", page=["/0", "/1"], from_="now-2d", to="now-1d"), "a", "union") == [None] * 2


def test_few_of_many_may_be_in_common():
    """What was put together is a part of what both sides have, at the most; so is the share of it."""
    with running(Tallyd("--max-pages", "4", "--partitions", "1")) as tallyd:
        http = tallyd.client()
        http.accept([{"page": "/0", "user": f"u{i}"} for i in range(20)])
        http.accept([{"page": f"/{i}", "user": "v"} for i in range(1, 4)] + [{"page": f"/{i}", "user": f"w{i}"} for i in range(4, 7)])
        answer = http.question("/overlap", page=["/0", "/1"], from_="now-1h")
        for at_most, wanted in zip(most(answer, "a", "b", "union", "intersection"), (23, 4, 24, 3)):
            assert at_most == pytest.approx(wanted, abs=2), answer  # two of 24 share a register once in sixty runs
        assert answer["jaccard"]["value"] == 0 and answer["jaccard"]["at_most"] == pytest.approx(3 / 21, rel=0.15)


def test_what_lies_in_several_partitions_may_all_be_in_common():
    with running(Tallyd("--max-pages", "16", "--partitions", "4")) as tallyd:
        http = tallyd.client()
        http.accept([{"page": f"/{i}", "user": f"u{i}"} for i in range(80)])
        listed = [row["page"] for row in http.question("/pages", from_="now-1h", limit=100)["pages"] if row["page"] != "(other)"]
        n = len(listed)
        assert 4 < n < 60
        for name, pages in (("a", listed[:n // 2]), ("b", listed[n // 2:])):
            assert http.request("PUT", f"/pagesets/{name}", json.dumps({"pages": pages}).encode()).status == 201
        answer = http.question("/overlap", pageset=["a", "b"], from_="now-1h")
        for at_most, wanted in zip(most(answer, "a", "b", "union", "intersection"), (80 - n + n // 2, 80 - n // 2, 80, 80 - n)):
            assert at_most == pytest.approx(wanted, abs=3), answer


def test_a_deleted_site_gives_its_places_back():
    """A process remembers which names have places; of a site that was deleted nothing of that holds."""
    with running(Tallyd("--max-pages", "3", "--partitions", "1")) as tallyd:
        http = tallyd.client()

        def pages():
            return {row["page"] for row in http.question("/pages", site="s")["pages"]} - {"(other)"}

        http.accept([{"site": "s", "page": page} for page in ("/a", "/b", "/c", "/d")])
        assert "/d" not in pages()
        assert http.request("DELETE", "/sites/s").status == 202
        wait_until(lambda: http.get("/sites/s").status == 404, "it is gone", deadline_s=30)
        wait_until(lambda: http.post({"site": "s", "page": "/a"}).status == 202, "it is taken again")
        http.accept([{"site": "s", "page": page} for page in ("/x", "/y", "/z")])
        assert pages() == {"/a", "/x", "/y"}


def test_a_name_of_the_hour_before_keeps_its_place():
    world = World("2026-03-10 10:10", *FOREVER, "--max-values", "3", "--partitions", "2")
    try:
        truth = collections.Counter()

        def post(at, names):
            world.move(at)
            for event in views("s", names, ts=epoch(at)):
                world.http.accept([event])
            truth.update(names)

        post("2026-03-10 10:20", ["a.example", "b.example", "c.example", "d.example"])
        post("2026-03-10 11:10", ["x.example", "y.example", "z.example", "w.example"])
        post("2026-03-10 11:20", ["a.example", "c.example", "d.example"])
        world.move("2026-03-10 11:30")
        answer = breakdown(world.http, "s", from_="2026-03-10T11:00:00Z", to="2026-03-10T11:30:00Z")
        assert {r["value"]: (r["pv"], r["at_most"]) for r in answer["rows"]} == {
            name: (1, 1) for name in ("a.example", "c.example", "x.example", "y.example", "z.example")}
        assert answer["other"] == 2
        answer = breakdown(world.http, "s", from_="2026-03-10T10:00:00Z", to="2026-03-10T11:30:00Z")
        holds(answer, truth)
        assert {r["value"] for r in answer["rows"] if r["at_most"] == r["pv"]} == {"a.example", "c.example"}
    finally:
        world.close()


@pytest.mark.parametrize("seed", [3])
def test_random_histories(seed):
    """Several processes, rollups, late events: what is listed and what is hidden is all there is."""
    rng = random.Random(seed)
    world = World("2026-03-10 09:00", *FOREVER, "--max-values", "6", "--partitions", "2")
    try:
        world.add_tallyd()
        events = []
        for at in ("2026-03-10 11:00", "2026-03-10 12:40", "2026-03-11 01:00", "2026-03-11 14:00"):
            world.move(at)
            for tallyd in world.tallyds:
                names = [f"n{int(rng.paretovariate(0.7))}.example" for _ in range(120)]
                sent = [event for name in names for event in views("s", [name], ts=epoch(at) - rng.randrange(7200))]
                tallyd.client().accept(sent)
                events += list(zip(names, (e["ts"] for e in sent)))
            for from_, to in (("2026-03-10 09:00", at), (at[:10] + " 00:00", at), ("2026-03-10 10:13", "2026-03-10 12:07")):
                truth = collections.Counter(n for n, ts in events if epoch(from_) <= ts < epoch(to))
                for tallyd in world.tallyds:
                    answer = breakdown(tallyd.client(), "s", from_=rfc3339(epoch(from_)), to=rfc3339(epoch(to)))
                    assert answer["total"] == sum(truth.values())
                    holds(answer, truth)
                    assert answer["other"] > 0 and len(answer["rows"]) >= 6
    finally:
        world.close()


def test_a_repeated_request_gets_the_same_places():
    """A keyed request is repeated, and tallyd killed in between: it counts once, listed or put together."""
    with running(Tallyd("--max-values", "50")) as tallyd:
        body = views("s", [f"h{i}.example" for i in range(400)], ts=None)
        body = [{k: v for k, v in e.items() if v is not None} for e in body]
        first = tallyd.client().post(body, headers={"Idempotency-Key": "k"})
        tallyd.kill()
        tallyd.start()
        http = tallyd.client()
        again = http.post(body, headers={"Idempotency-Key": "k"})
        assert first.status == again.status == 202
        answer = breakdown(http, "s")
        assert answer["total"] == 400 and len(answer["rows"]) == 50


def test_a_flood_costs_an_hour():
    """A million made-up referrers: Redis holds the places of an hour, and nothing of the year is harmed."""
    with running(Tallyd("--partitions", "2")) as tallyd:
        http = tallyd.client()
        http.accept(views("s", ["good.example"] * 10))
        before = http.metric("process_resident_memory_bytes")
        rng = random.Random(7)
        for i in range(100):
            http.accept(views("s", [f"{rng.getrandbits(64):x}.example" for _ in range(10_000)]))
        answer = breakdown(http, "s", limit=1000)
        assert answer["total"] == 1_000_010 and len(answer["rows"]) == 500
        assert answer["rows"][0]["value"] == "good.example" and answer["rows"][0]["at_most"] == 10
        assert sanitized() or http.metric("process_resident_memory_bytes") - before < 128 << 20
