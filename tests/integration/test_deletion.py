"""DELETE /sites/{site} and DELETE /pages: all of it goes, nothing else does, whatever breaks; and Redis is never held."""

import itertools
import json
import pathlib
import re
import threading
import time
from urllib.parse import quote, unquote

import pytest

from lib.client import Unknown
from lib.clock import epoch, rfc3339
from lib.cluster import Cluster
from lib.log import counted
from lib.tokens import token_line
from lib.truth import is_close
from lib.waiting import wait_until
from lib.world import FOREVER, World

NOON = epoch("2026-03-10T12:00:00Z")
DAY = ("2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z")
SLOW_US = 5000


def keys_of(redis, site):
    """Every key with the site's name behind its kind, and every member of a set of all sites."""
    with redis.connect(60) as connection:
        found = [k for k in connection.command("KEYS", "t:*") if re.match(rf"t:\{{\d+\}}:[a-z]+:{re.escape(site)}(:|$)", k)]
        for key in connection.command("KEYS", "t:*"):
            kind = key.split(":")[2]
            if kind in ("open", "gone", "sites") and key.count(":") == 2:
                found += [m for m in connection.command("SMEMBERS", key) if m.split(":")[0] == site]
            if kind == "acts" and key.count(":") == 2:
                found += [m for m in connection.command("ZRANGE", key, 0, -1) if m.split(":")[0] == site]
            if kind == "deletions":
                found += [f for f in connection.command("HKEYS", key) if f.split("\n")[0] == site]
    return found


class Held:
    """How long commands hold Redis from here on.  A command that is interrupted for another process takes long by itself: so the
    time for which Redis waited for a processor is left out, and as many long commands as there were interruptions."""

    def __init__(self, redis):
        self.redis, self.before = redis, self._waits(redis)
        redis.command("CONFIG", "RESETSTAT")

    @staticmethod
    def _waits(redis):
        """(us that Redis's thread was ready and did not run, how often it was interrupted)"""
        task = pathlib.Path(f"/proc/{redis.pid}/task/{redis.pid}")
        interrupted = re.search(r"nonvoluntary_ctxt_switches:\s+(\d+)", (task / "status").read_text())[1]
        return int((task / "schedstat").read_text().split()[1]) / 1000, int(interrupted)

    def check(self, names):
        waited_us, interrupted = (now - then for now, then in zip(self._waits(self.redis), self.before))
        means = re.findall(r"cmdstat_(\w+):calls=(\d+),usec=(\d+)", self.redis.command("INFO", "commandstats"))
        calls = {name: (int(n), int(took_us)) for name, n, took_us in means if name in names}
        for name, (n, took_us) in calls.items():
            assert took_us - waited_us < n * SLOW_US / 5, (name, n, took_us, waited_us)
            histogram = dict(zip(*[iter(self.redis.command("LATENCY", "HISTOGRAM", name))] * 2))[name]
            buckets = histogram[histogram.index("histogram_usec") + 1]
            quick = max(count for us, count in zip(*[iter(buckets)] * 2) if us < SLOW_US)
            assert n - quick <= n / 100 + interrupted, (name, n, n - quick, interrupted)
        return calls


def delete(http, path, **params):
    query = "&".join(f"{k}={v}" for k, v in params.items())
    answer = http.request("DELETE", path + ("?" + query if query else ""))
    assert answer.status == 202, answer
    assert answer.json["state"] == "deleting" and 0 <= answer.json["done"] <= 1
    return answer.json


def await_gone(http, site, deadline_s=60):
    """`done` only grows, until the site is not there."""
    seen = [0]

    def gone():
        answer = http.get(f"/sites/{site}")
        if answer.status == 404:
            return True
        assert answer.status == 200 and answer.json["site"] == site, answer
        if answer.json["state"] != "deleting" or not seen[-1] <= answer.json["done"] <= 1:
            raise RuntimeError(f"{answer} after {seen}")
        seen.append(answer.json["done"])
        return False

    wait_until(gone, f"{site} is gone", deadline_s)
    return seen


def await_pages(redis):
    wait_until(lambda: not any(redis.command("EXISTS", k) for k in redis.command("KEYS", "t:*:deletions")), "no deletion is left", 120)


def visit(site, page, user, at, **more):
    return {"site": site, "page": page, "user": user, "ip": f"10.0.{hash(user) % 200}.7", "ua": "x", "ts": at, **more}


def some_events(site, n=600, start=NOON - 3 * 3600):
    return [visit(site, f"/{i % 7}", f"u{i % 50}", start + i * 15, actions=["buy"] if i % 9 == 0 else []) for i in range(n)]


@pytest.fixture
def world(cleanup):
    made = World("2026-03-10T12:00:00Z", *FOREVER, "--partitions", "4", "--seen", "on")
    cleanup.append(made.close)
    return made


def test_all_of_a_site_goes_and_nothing_of_another(world):
    """Keys of all kinds.  The other site has a page that is named like a key of the one that goes."""
    http = world.http
    world.post(some_events("gone"))
    world.post(some_events("gone.too"))
    world.post([visit("stays", f"/{i}", f"u{i}", NOON - 60 * i) for i in range(100)] +
               [visit("stays", ":gone:m202603101200:/", "a", NOON), visit("stays", "gone:/1", "b", NOON)])
    http.accept([{"site": "gone", "event": "sign-up", "user": "u1", "ts": NOON}])
    assert http.request("PUT", "/pagesets/few?site=gone", json.dumps({"pages": ["/1"]}), {"Content-Type": "application/json"}).status in (200, 201, 204)
    assert http.request("PUT", "/filters/f?site=gone", json.dumps({"capacity": 100}), {"Content-Type": "application/json"}).status in (200, 201)
    world.move(NOON + 4000)
    world.wait_cover("gone", "2026-03-10T09:00:00Z", "2026-03-10T10:00:00Z", hour=1)
    assert http.question("/sites/gone") == {"site": "gone", "state": "live", "done": 0}
    assert http.request("POST", "/rollup").status == 200  # else that would find the next ones
    for state in world.redis.command("KEYS", "t:*:state"):  # a user was being forgotten when its process was killed
        world.redis.command("SADD", state.replace(":state", ":gone"), "gone:7")
    delete(http, "/sites/gone")
    await_gone(http, "gone")
    wait_until(lambda: keys_of(world.redis, "gone") == [], "the record too")
    assert http.question("/sites")["sites"] == ["gone.too", "stays"]
    world.check("gone.too", *DAY)
    world.check("stays", *DAY)
    world.check("stays", *DAY, pages=[":gone:m202603101200:/"])
    assert http.question("/pv", site="gone", from_=DAY[0], to=DAY[1])["pv"] == 0
    assert http.question("/dau", site="gone", date="2026-03-10")["users"] == 0
    assert http.question("/seen", site="gone", user="u1", page="/1")["seen"] is False
    assert http.get("/filters/f", site="gone").status == http.get("/pagesets/few", site="gone").status == 404
    assert http.request("DELETE", "/sites/gone").status == 404


def test_a_site_that_comes_back_counts_from_zero(world):
    """Also in buckets that were closed and remembered: by the cache, and by the fold that knows users, sets and expiries."""
    http = world.http
    world.post(some_events("again") + some_events("beside"))
    world.move(NOON + 4000)
    for site in ("again", "beside"):
        world.check(site, *DAY)
    for _ in range(2):
        delete(http, "/sites/again")
        await_gone(http, "again")
        world.model.__init__()
        world.post(some_events("again", 150, NOON - 3600))
        world.check("again", *DAY)
        assert http.question("/dau", site="again", date="2026-03-10")["users"] == 50
        assert "again" in http.question("/sites")["sites"]
        world.move(world.now() + 3600)
        world.check("again", *DAY)
    assert http.question("/pv", site="beside", from_=DAY[0], to=DAY[1])["pv"] == 600


def test_events_are_refused_until_it_is_done(start_redis, start_tallyd, site):
    """By every way in, by every process, whole requests; other sites are not touched.  A process that has not heard yet may
    take some: they are deleted with the site."""
    redis = start_redis()
    clients = [start_tallyd("--partitions", "4", redis=redis).client() for _ in range(2)]
    http, other = clients
    http.accept([{"site": site, "page": "/", "user": "a"}, {"site": "beside", "page": "/", "user": "a"}])
    delete(http, f"/sites/{site}")
    heard, taken, n = False, [], 0

    def deletes():
        answer = http.get(f"/sites/{site}")
        return answer.status == 200 and answer.json["state"] == "deleting"

    while deletes():
        for client in clients:
            n += 1
            answer = client.post([{"site": "beside", "page": f"/{n}"}, {"site": site, "page": f"/{n}", "user": "late"}])
            if not deletes():
                break  # it was over meanwhile, perhaps
            if answer.status == 202:
                assert client is other and not heard, "a process that had not heard yet"
                taken.append(f"/{n}")
                continue
            assert answer.status == 503 and answer.headers["Retry-After"], answer
            assert answer.json["detail"] == "the site is being deleted"
            heard = heard or client is other
        view = {"n": "pageview", "d": site, "u": f"http://{site}/by-script"}
        answer = http.request("POST", "/api/event", json.dumps(view), {"Content-Type": "application/json", "User-Agent": "Mozilla/5.0"})
        pixel = http.get("/pixel.gif", site=site, page="/by-pixel")
        assert not deletes() or answer.status == pixel.status == 503
        http.accept({"site": "beside", "page": "/y"})
        time.sleep(0.05)
    assert heard, "the other process heard of it"
    for page in taken:
        assert http.count("pv", site=site, page=page) == 0 and http.count("pv", site="beside", page=page) == 1, "whole requests"
    for i, client in enumerate(clients):
        wait_until(lambda c=client, i=i: c.post({"site": site, "page": f"/new/{i}", "user": "new"}).status == 202, "it is taken again", 5)
        assert http.count("pv", site=site, page=f"/new/{i}") == 1


def test_filters_are_not_filled_until_it_is_done(start_redis, start_tallyd, site):
    """What they get would be deleted with the site.  Questions are answered, and a filter may be deleted by itself."""
    http = start_tallyd("--partitions", "4", redis=start_redis()).client()
    http.accept([{"site": site, "page": f"/{i}", "user": "a"} for i in range(1000)])

    def ask(method, tail="", body=None):
        return http.request(method, f"/filters/f{tail}?site={site}", json.dumps(body) if body else None, {"Content-Type": "application/json"})

    assert ask("PUT", body={"capacity": 100}).status == 201
    delete(http, f"/sites/{site}")
    answers = [ask("POST", "/add", {"items": ["a"]}), ask("PUT", body={"capacity": 100})]
    if http.get(f"/sites/{site}").status == 200:  # else it was over meanwhile, perhaps
        assert [a.status for a in answers] == [503, 503] and "being deleted" in answers[0].json["detail"], answers
        assert ask("POST", "/check", {"items": ["a"]}).status in (200, 404)
    await_gone(http, site)
    wait_until(lambda: ask("POST", "/add", {"items": ["a"]}).status == 200, "it is filled again", 5)
    assert ask("POST", "/check", {"items": ["a", "b"]}).json["seen"] == [True, False]


@pytest.mark.parametrize("what", ["site", "page"])
def test_a_full_redis_gets_room_by_deletions(start_redis, start_tallyd, site, what):
    redis = start_redis()
    http = start_tallyd("--partitions", "4", redis=redis).client()
    http.accept([{"site": site, "page": f"/{i % 20}", "user": f"u{i}"} for i in range(1000)])
    assert http.count("pv", site=site) == 1000
    redis.command("CONFIG", "SET", "maxmemory", "1")
    if what == "site":
        delete(http, f"/sites/{site}")
        await_gone(http, site)
        wait_until(lambda: keys_of(redis, site) == [], "the record too")
    else:
        delete(http, "/pages", site=site, page="/1")
        await_pages(redis)
        assert http.count("pv", site=site, page="/1") == 0 and http.count("pv", site=site, page="/2") == 50


def test_many_sites_were_deleted(start_redis, start_tallyd):
    """Each leaves a line in every partition's state for ten minutes: here 200 of them, as if so many had been deleted.  All else is
    counted beside them, and another deletion goes its way."""
    redis = start_redis()
    http = start_tallyd("--partitions", "2", redis=redis).client()
    http.accept([{"site": "beside", "page": "/", "user": "u"}, {"site": "goes", "page": "/"}])
    assert http.count("pv", site="beside") == 1
    lines = "".join(f"{'x' * 50}{i} {int(redis.time() * 1000)} {i:016x}\n" for i in range(200))
    for state in redis.command("KEYS", "t:*:state"):
        redis.command("HSET", state, "deleted", lines)
    http.accept({"site": "beside", "page": "/", "user": "u"})
    assert http.count("pv", site="beside") == 2
    delete(http, "/sites/goes")
    await_gone(http, "goes")
    http.accept({"site": "beside", "page": "/", "user": "u"})
    assert http.count("pv", site="beside") == 3


def test_one_deletion_is_remembered_beside_the_next(start_redis, start_tallyd):
    """An entry of the first site may be appended again for ten minutes: it must not count then."""
    redis = start_redis()
    http = start_tallyd("--partitions", "2", redis=redis).client()
    for site in ("first", "second"):
        http.accept({"site": site, "page": "/"})
        delete(http, f"/sites/{site}")
        await_gone(http, site)
    for state in redis.command("KEYS", "t:*:state"):
        lines = redis.command("HGET", state, "deleted").splitlines()
        assert sorted(line.split()[0] for line in lines) == ["first", "second"], lines


def test_no_more_than_64_at_a_time(start_redis, start_tallyd):
    """A process knows of so many sites whose events it must refuse.  One more waits until another is done."""
    redis = start_redis()
    http = start_tallyd("--partitions", "2", redis=redis).client()
    http.accept({"site": "late", "page": "/"})
    wait_until(lambda: redis.command("KEYS", "t:*:lock"), "somebody leads")
    deletions = redis.command("KEYS", "t:*:lock")[0].replace("lock", "deletions")
    # each takes seconds, so there are 64 of these for a while
    redis.command("HSET", deletions, *(word for i in range(80) for word in (f"away{i}", f"{i:016x} 0 0")))
    refused = http.request("DELETE", "/sites/late")
    assert refused.status == 503 and "64 deletions are under way" in refused.json["detail"]
    assert http.get("/sites/late").json["state"] == "live" and http.count("pv", site="late") == 1
    redis.command("DEL", deletions)
    delete(http, "/sites/late")
    await_gone(http, "late")


@pytest.mark.some(2)
@pytest.mark.parametrize("after_ms", [0, 30, 120, 400, 1000, 2200])
def test_killed_half_way_it_goes_on(start_redis, start_tallyd, site, after_ms):
    """The process that does it is killed, with requests that it has acknowledged and not counted; another one finishes."""
    redis = start_redis()
    tallyds = [start_tallyd("--partitions", "8", redis=redis) for _ in range(2)]
    http, other = (t.client() for t in tallyds)
    other.accept([{"site": "beside", "page": f"/{i}", "user": f"u{i}"} for i in range(500)])
    for i in range(10):
        http.accept([{"site": site, "page": f"/{i}/{j}", "user": f"u{j}"} for j in range(1000)])
    delete(http, f"/sites/{site}")
    time.sleep(after_ms / 1000)
    tallyds[0].kill()
    await_gone(other, site)
    wait_until(lambda: keys_of(redis, site) == [], "the record too")
    assert other.count("pv", site=site) == 0 and other.count("pv", site="beside") == 500
    other.accept([{"site": site, "page": "/", "user": f"n{i}"} for i in range(10)])
    assert (other.count("pv", site=site), other.count("uv", site=site)) == (10, 10)
    assert other.question("/sites")["sites"] == sorted(["beside", site])


def test_never_half_of_a_request(start_redis, start_tallyd, chance, site):
    """Writers go on through deletions, at both processes.  A request has a page view for each partition and more: it counts
    whole, or not at all."""
    redis = start_redis()
    tallyds = [start_tallyd("--partitions", "8", redis=redis) for _ in range(2)]
    stop = threading.Event()

    def write(tallyd):
        http = tallyd.client()
        while not stop.is_set():
            try:
                http.post([{"site": site, "page": f"/{i}", "user": f"u{i}"} for i in range(40)])
            except Unknown:
                http = tallyd.client()

    http = tallyds[0].client()
    http.accept({"site": site, "page": "/0", "user": "a"})
    writers = [threading.Thread(target=write, args=(t,)) for t in tallyds]
    for writer in writers:
        writer.start()
    try:
        for _ in range(3):
            wait_until(lambda: http.get(f"/sites/{site}").status == 200, "it is there")
            delete(http, f"/sites/{site}")
            assert wait_until(lambda: http.get(f"/sites/{site}").json.get("state") != "deleting", "it is done", 60)
            time.sleep(chance.random() / 4)
    finally:
        stop.set()
        for writer in writers:
            writer.join(30)
    rows = {r["page"]: r for r in http.question("/pages", site=site, limit=100)["pages"]}
    requests = http.count("pv", site=site) / 40
    assert requests == int(requests) and {r["pv"] for r in rows.values()} <= {int(requests)} and len(rows) in (0, 40), rows


def test_pages_go_and_the_site_keeps_its_sums(world):
    http = world.http
    world.post(some_events("shop"))
    world.post([visit("shop", p, f"v{i}", NOON - 7200 + i) for i, p in enumerate(
        ["/reset?token=*[a]^\\", "/reset?token=*[a]^\\b", "/reset?token=XX", "/resett", "/Ä/ö"] * 3)])
    world.move(NOON + 4000)
    world.wait_cover("shop", "2026-03-10T10:00:00Z", "2026-03-10T11:00:00Z", hour=1)
    world.check("shop", *DAY)

    def top():
        return {r["page"] for r in http.question("/pages", site="shop", from_=DAY[0], to=DAY[1], limit=100)["pages"]}

    before = top()
    body = delete(http, "/pages", site="shop", page="/3")
    assert {r["what"] for r in body["remains"]} == {"site", "users", "seen", "pagesets"} and all(r["why"] for r in body["remains"])
    await_pages(world.redis)
    assert top() == before - {"/3"}
    delete(http, "/pages", site="shop", prefix="/reset?token=*[a]^%5C")
    await_pages(world.redis)
    assert top() == before - {"/3", "/reset?token=*[a]^\\", "/reset?token=*[a]^\\b"}
    delete(http, "/pages", site="shop", prefix="/%C3%84")
    await_pages(world.redis)
    assert "/Ä/ö" not in top()
    for page in ("/3", "/Ä/ö"):
        for metric in ("pv", "uv", "ips", "visits"):
            assert http.question("/" + metric, site="shop", page=page, from_=DAY[0], to=DAY[1])[metric] == 0
    world.check("shop", *DAY)
    world.check("shop", *DAY, pages=["/1", "/resett"])
    world.move(NOON + 40 * 3600)  # days are made of what is left
    assert "/3" not in top()
    world.check("shop", *DAY)
    http.accept([visit("shop", "/3", "new", NOON)])
    assert http.question("/pv", site="shop", page="/3", from_=DAY[0], to=DAY[1])["pv"] == 1


class Writers:
    """Views of a page, all the while: each of another visitor.  events(n) makes a request."""

    def __init__(self, tallyd, events, n=2):
        self.stop, self.sent, self.threads = threading.Event(), 0, []
        for i in range(n):
            self.threads.append(threading.Thread(target=self.write, args=(tallyd.client(), events, i)))
            self.threads[-1].start()

    def write(self, http, events, writer):
        for n in itertools.count():
            if self.stop.is_set():
                break
            http.accept(events(writer, n))
            self.sent += 1
            if n % 3 == 0:  # so there are folds of few events
                http.question("/pv", site="shop", page="/x")

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)


def test_a_page_that_is_written_to_is_counted_in_all_its_buckets_or_in_none(world):
    """Old views, which go into minutes, hours and days."""
    http, hour = world.http, ("2026-03-10T10:00:00Z", "2026-03-10T11:00:00Z")
    world.post([visit("shop", f"/{i % 3000}", f"u{i % 50}", NOON - 7200 + i % 3600) for i in range(20000)])
    world.move(NOON + 40 * 3600)
    world.wait_cover("shop", *hour, hour=1)
    writers = Writers(world.tallyd, lambda writer, n: [
        visit("shop", "/x", f"v{writer}-{n}-{i}", NOON - 7200 + (n * 7 + i * 60) % 3600) for i in range(20)])
    for _ in range(3):
        sent = writers.sent
        wait_until(lambda: writers.sent > sent + 20, "some views")
        delete(http, "/pages", site="shop", page="/x")
        await_pages(world.redis)
    writers.end()

    def count(metric, from_, to):
        return http.question("/" + metric, site="shop", page="/x", from_=from_, to=to)[metric]

    minutes = [rfc3339(NOON - 7200 + 60 * i) for i in range(61)]
    in_minutes = {m: sum(count(m, a, b) for a, b in zip(minutes, minutes[1:])) for m in ("pv", "visits")}
    assert count("pv", *DAY) == count("pv", *hour) == in_minutes["pv"]
    assert count("visits", *DAY) == count("visits", *hour) == in_minutes["visits"]
    if not count("pv", *DAY):
        http.accept([visit("shop", "/x", "last", NOON - 7200)])
    uv = count("uv", *DAY)
    assert is_close(count("uv", *hour), uv) and is_close(uv, count("pv", *DAY))


def test_a_page_that_is_viewed_while_it_is_deleted(start_redis, start_tallyd):
    """What is left has a page view, a visitor and a visit each; the site has lost nothing."""
    redis = start_redis()
    tallyd = start_tallyd("--partitions", "4", redis=redis)
    http = tallyd.client()
    for first in range(0, 9000, 3000):
        http.accept([{"site": "shop", "page": f"/{first + i}", "user": f"u{i % 50}"} for i in range(3000)])
    writers = Writers(tallyd, lambda writer, n: [{"site": "shop", "page": "/x", "user": f"v{writer}-{n}-{i}"} for i in range(5)], 3)
    for _ in range(3):
        sent = writers.sent
        wait_until(lambda: writers.sent > sent + 20, "some views")
        delete(http, "/pages", site="shop", page="/x")
        await_pages(redis)
    sent = writers.sent
    wait_until(lambda: writers.sent > sent + 20, "some views")
    writers.end()
    left = http.question("/stats", site="shop", page="/x")
    assert left["pv"] == left["visits"] > 20 and is_close(left["uv"], left["pv"])
    assert http.count("pv", site="shop") == 9000 + 5 * writers.sent


def test_a_page_that_was_deleted_counts_anew(world):
    """A fold remembers what the sketches of a busy page hold, but not beyond a deletion."""
    http = world.http
    views = [visit("shop", "/p", f"u{i}", NOON - 100) for i in range(500)]

    def visitors():
        http.accept(views)
        return http.question("/uv", site="shop", page="/p", from_="2026-03-10T11:50:00Z", to="2026-03-10T12:00:00Z")["uv"]

    first = visitors()
    assert 480 < first < 520 and visitors() == first
    delete(http, "/pages", site="shop", page="/p")
    await_pages(world.redis)
    assert visitors() == first


def test_a_page_that_comes_back_expires_as_before(cleanup):
    """A fold remembers which keys of late events have an expiry, but not beyond a deletion."""
    world = World("2026-03-10T12:00:00Z", "--partitions", "4")
    cleanup.append(world.close)
    late = [visit("shop", "/p", f"u{i}", NOON - 3 * 3600) for i in range(5)]

    def sketches():
        world.http.accept(late)
        assert world.http.question("/uv", site="shop", page="/p", from_="2026-03-10T08:00:00Z", to="2026-03-10T10:00:00Z")["uv"] == 5
        return {key: world.redis.command("PTTL", key) > 0 for key in keys_of(world.redis, "shop") if key.endswith(":/p")}

    first = sketches()
    assert first and any(first.values()), first
    delete(world.http, "/pages", site="shop", page="/p")
    await_pages(world.redis)
    assert sketches() == first


def test_a_big_site_does_not_hold_redis(start_redis, start_tallyd, chance):
    """100,000 pages; no command takes 5 ms, and the questions of others are answered meanwhile."""
    redis = start_redis()
    http = start_tallyd("--partitions", "16", "--max-pages", "200000", redis=redis).client()
    beside = [{"site": "beside", "page": f"/{i % 300}", "user": f"u{chance.randrange(900)}"} for i in range(3000)]
    http.accept(beside)
    for i in range(0, 100_000, 5000):
        http.accept([{"site": "big", "page": f"/p/{j}", "user": f"u{j % 700}"} for j in range(i, i + 5000)])
    assert http.count("pv", site="big") == 100_000
    for path, params in (("/pages", {"site": "big", "prefix": "/p/1"}), ("/sites/big", {})):
        held = Held(redis)
        delete(http, path, **params)
        if path == "/pages":
            await_pages(redis)
            rest = sum(not str(i).startswith("1") for i in range(100_000))
            names = redis.command("KEYS", "t:*:uv:big:*:/p/*")
            assert len({n.rsplit("/", 1)[1] for n in names}) == rest
            assert http.count("pv", site="big") == 100_000
        else:
            assert len(await_gone(http, "big", 120)) > 3
        assert {"scan", "evalsha"} <= held.check(("scan", "hscan", "zscan", "sscan", "evalsha", "unlink")).keys()
    wait_until(lambda: keys_of(redis, "big") == [], "the record too")
    assert http.count("pv", site="beside") == 3000
    assert {r["page"]: r["pv"] for r in http.question("/pages", site="beside", limit=400)["pages"]} == {f"/{i}": 10 for i in range(300)}


@pytest.mark.cluster
def test_a_site_is_deleted_on_all_servers(start_tallyd):
    """Each partition is searched where it lies."""
    cluster = Cluster(replicas=0)
    try:
        cluster.start()
        http = start_tallyd("--partitions", "12", "--ack-replicas", "0", redis=cluster).client()
        for i in range(5):
            http.accept([{"site": s, "page": f"/{i}/{j}", "user": f"u{j}"} for j in range(300) for s in ("gone", "stays")])
        assert http.count("pv", site="gone") == 1500
        delete(http, "/pages", site="gone", prefix="/4/")
        wait_until(lambda: http.count("pv", site="gone", page="/4/7") == 0 and not any(
            n.command("KEYS", "t:*:deletions") for n in cluster.primaries()), "the pages are gone")
        assert http.count("pv", site="gone") == 1500 and http.count("pv", site="gone", page="/3/7") == 1
        delete(http, "/sites/gone")
        await_gone(http, "gone")
        left = [k for n in cluster.primaries() for k in n.command("KEYS", "t:*") if re.match(r"t:\{\d+\}:[a-z]+:gone(:|$)", k)]
        assert left == []
        assert http.question("/sites")["sites"] == ["stays"]
        assert http.count("pv", site="stays") == 1500 and http.count("uv", site="stays", page="/4/7") == 1
        http.accept([{"site": "gone", "page": "/", "user": f"u{j}"} for j in range(20)])
        assert http.count("pv", site="gone") == 20 and http.count("uv", site="gone") in (19, 20)  # two may share a register
    finally:
        cluster.stop()


@pytest.mark.cluster
def test_marks_whose_deletion_is_lost_are_ended(start_tallyd):
    """A server has gone back behind the DELETE, and others keep its marks; or one has gone back behind the end.  By hand here:
    partitions of other servers get the marks of a site whose deletion is over, of one that was never deleted, and of pages."""
    cluster = Cluster(replicas=0)
    try:
        cluster.start()
        tallyd = start_tallyd("--partitions", "12", "--ack-replicas", "0", redis=cluster)
        http = tallyd.client()
        pages = [f"/{i}" for i in range(200)]  # in all partitions
        for site in ("over", "never", "pages"):
            http.accept([{"site": site, "page": p, "user": p} for p in pages])
            assert http.count("pv", site=site) == len(pages)
        delete(http, "/sites/over")
        await_gone(http, "over")
        wait_until(lambda: not any(n.command("KEYS", "t:*:deletions") for n in cluster.primaries()), "the deletion is over")
        with_record = next(n for n in cluster.primaries() if n.command("KEYS", "t:{3}:state"))  # the tag of partition 0 is 3
        others = [n for n in cluster.primaries() if n is not with_record]
        states = [(n, key) for n in others for key in n.command("KEYS", "t:*:state")]
        marks = (("over", "over 0 a\n"), ("never", "never 0 b\nover 0 a\n"), ("pages", None))
        for (_, deleted), (node, key) in zip(marks * len(states), states):
            node.command("HSET", key, "deleting", "00000000000000aa", *(("deleted", deleted) if deleted else ()))
        instants = {node.command("HGET", key, "deleted") for node in [with_record] for key in node.command("KEYS", "t:*:state")}
        for node in others:
            node.command("CLIENT", "KILL", "TYPE", "normal")  # the leader connects again

        def are_ended():
            found = [node.command("HMGET", key, "deleting", "deleted") for node, key in states]
            return all(deleting is None and " 0 " not in (deleted or "") for deleting, deleted in found)

        wait_until(are_ended, "the marks are ended", 20)
        for node, key in states:  # as partition 0 says it, or from the beginning
            for line in (node.command("HGET", key, "deleted") or "").splitlines():
                site, instant, _ = line.split()
                assert (site, instant) == ("never", "1") or any(line.rsplit(" ", 1)[0] in i for i in instants), line
        # A partition with the mark of a site has lost what it had of the site: it may have been swept in part.
        for site, counts in (("over", {1}), ("never", {1, 2}), ("pages", {2})):
            http.accept([{"site": site, "page": p, "user": p} for p in pages])
            assert {http.count("pv", site=site, page=p) for p in pages} == counts, site
        assert {site for site in ("over", "never", "pages") if f"site={site}" in tallyd.log_text()} == {"over", "never", "pages"}
    finally:
        cluster.stop()


def test_who_may(start_tallyd, start_redis, directory):
    """admin deletes, and a token of one site that site alone; read looks."""
    directory.mkdir(exist_ok=True)
    path = directory / "tokens"
    path.write_text("".join(
        token_line(name, f"{scopes} {sites}{name}") for name, scopes, sites in (
            ("root", "admin,ingest,read", ""), ("one", "admin,read", "site=one "), ("reader", "read", ""), ("writer", "ingest", ""))))
    http = start_tallyd("--tokens", path, "--partitions", "2", redis=start_redis(directory)).client()

    def ask(method, target, token):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return http.request(method, target, headers=headers).status

    for site in ("one", "two"):
        assert http.post({"site": site, "page": "/"}, headers={"Authorization": "Bearer root"}).status == 202
    for target in ("/sites/two", "/pages?site=two&page=/"):
        assert [ask("DELETE", target, t) for t in ("", "reader", "writer", "one")] == [401, 403, 403, 403], target
    assert [ask("GET", "/sites/two", t) for t in ("", "writer", "one", "reader", "root")] == [401, 403, 403, 200, 200]
    assert ask("DELETE", "/pages?site=one&page=/", "one") == ask("DELETE", "/sites/one", "one") == ask("DELETE", "/sites/two", "root") == 202


@pytest.mark.parametrize("path, parameter", [
    ("/pages?site=x", "page"), ("/pages?site=x&page=/a&prefix=/b", "prefix"), ("/pages?site=x&page=", "page"),
    ("/pages?site=x&prefix=%01", "prefix"), ("/pages?site=X!&page=/", "site"), ("/sites/X!", "site"), ("/sites/x?force=1", "force")])
def test_bad_requests(http, path, parameter):
    answer = http.request("DELETE", path)
    assert answer.status == 400 and answer.errors[0]["parameter"] == parameter, answer


def test_what_is_not_there(http, site):
    assert http.get(f"/sites/{site}").status == http.request("DELETE", f"/sites/{site}").status == 404
    assert http.request("DELETE", f"/pages?site={site}&page=/").status == 404
    assert http.request("POST", f"/sites/{site}", b"").status == 405


def test_partitions_learn_the_name_as_it_is(redis, http, site):
    """A line of the field `deleted` has no blank, newline or percent sign of the name: they are written by their codes."""
    page = "/50% off%20"
    http.accept({"site": site, "page": page, "user": "a"})
    counted(http)
    delete(http, "/pages", site=site, page=quote(page))
    await_pages(redis)
    for key in redis.command("KEYS", "t:*:state"):
        names = [unquote(line.split(" ")[0]) for line in redis.command("HGET", key, "deleted").splitlines()]
        assert [name[len(site) + 2:] for name in names if name.startswith(f"{site}\n")] == [page], names


# What a process learns while pages are being deleted


@pytest.fixture
def swept(start_redis, start_tallyd, site):
    """Pages of a partition are being deleted, as far as its mark says."""
    redis = start_redis()
    http = start_tallyd("--partitions", "1", redis=redis).client()
    http.accept({"site": site, "page": "/p", "user": "x"})
    counted(http)
    redis.command("HSET", "t:{0}:state", "deleting", "d" * 32, "users", "e" * 32)
    return redis, http


def test_visitors_that_were_taken_away_are_counted_again(swept, site):
    redis, http = swept
    wait_until(lambda: time.time() % 60 < 40, "a minute with time left", 25)
    events = [{"site": site, "page": "/p", "visitor": f"v{i}"} for i in range(500)]
    http.accept(events)
    counted(http)
    for key in redis.command("KEYS", f"t:*:uv:{site}:m*:/p") + redis.command("KEYS", f"t:*:ip:{site}:m*:/p"):
        redis.command("DEL", key)
    for key in redis.command("KEYS", f"t:*:pv:{site}:m*") + redis.command("KEYS", f"t:*:vv:{site}:m*"):
        redis.command("HDEL", key, "/p")
    http.accept(events)
    counted(http)
    redis.command("HDEL", "t:{0}:state", "deleting")
    redis.command("HSET", "t:{0}:state", "users", "f" * 32, "ver", "f" * 32, "fold", "f" * 32)
    assert http.count("pv", site=site, page="/p") == 500 and http.count("uv", site=site, page="/p") > 450


def test_keys_that_were_taken_away_get_their_expiry_again(swept, site):
    redis, http = swept
    event = {"site": site, "page": "/p", "visitor": "v", "ts": int(time.time()) // 86400 * 86400 - 40000}
    http.accept(event)
    counted(http)
    late = [key for key in redis.command("KEYS", f"t:*:uv:{site}:*:/p") if redis.command("PTTL", key) > 0]
    assert late
    for key in late:
        redis.command("DEL", key)
    http.accept(event)
    counted(http)
    assert all(redis.command("PTTL", key) > 0 for key in late)
