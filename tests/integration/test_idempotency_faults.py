"""Requests with Idempotency-Keys while everything breaks: a client that asks until it has a 202 has counted once.

Every position of the conversation with Redis is cut once, with tallyd going on, with tallyd killed, and with Redis killed.
"""

import concurrent.futures
import json
import threading
import time

import pytest

from lib.client import Unknown
from lib.log import HELD, OfTheLog, is_append, is_exec, records
from lib.proxy import CUTS, Fault, is_any
from lib.raw import Raw
from lib.waiting import wait_until

FEW = ("--partitions", "4", "--request-timeout", "1s")
SMALL, LARGE = 6, 300  # events
POSITIONS = [*range(1, 12), *(int(12 * 1.7 ** i) for i in range(14))]  # commands of append and fold at which it is cut
LEAST = 12  # positions that there are at least


def make_batch(site, n):
    """Events over all partitions; some from the past, some without a visitor."""
    return [{"site": site, "page": f"/{i}"} | ({"user": f"u{i}"} if i % 5 else {}) |
            ({"ts": 1_790_000_000 + 7 * i} if i % 3 == 0 else {}) for i in range(n)]


def visits(n):
    return sum(1 for i in range(n) if i % 5)


def post(client, body, key):
    """(status, replayed); (None, False) without an answer."""
    try:
        answer = client.post(body, headers={"Idempotency-Key": key})
    except Unknown:
        return None, False
    assert answer.status in (202, 503, 504), answer
    if answer.status == 503:
        assert int(answer.headers["Retry-After"]) >= 1
    if answer.status == 202:
        assert answer.json == {"accepted": len(body), "rejected": 0, "errors": []}
    return answer.status, "Idempotency-Replayed" in answer.headers


def until_202(tallyds, body, key):
    """A client's way: the same request again, to any process, until it is taken."""
    turn = iter(range(10**6))

    def attempt():
        tallyd = tallyds[next(turn) % len(tallyds)]
        return post(tallyd.client(), body, key)[0] == 202

    wait_until(attempt, f"a 202 for {key}", pause_s=0.05)


def count(http, metric, **params):
    """Of the first answer: a second, which is all that FEW allows, may pass on a busy machine."""
    answer = wait_until(lambda: (r := http.get("/" + metric, **params)).status not in (503, 504) and r, f"an answer to /{metric}")
    assert answer.status == 200, answer
    return answer.json[metric]


def check_once(http, site, n):
    whole = {"site": site, "from_": "2026-01-01", "to": "now"}
    assert count(http, "pv", **whole) == n
    assert count(http, "visits", **whole) == visits(n)
    for i in (0, 1, n - 1):
        assert count(http, "pv", page=f"/{i}", **whole) == 1


class Scene:
    def __init__(self, start_redis, start_proxy, start_tallyd, appendonly):
        self.redis = start_redis(appendonly=appendonly)
        self.proxy = start_proxy(self.redis)
        self.cut = start_tallyd(*FEW, redis=self.proxy, name="cut")
        self.other = start_tallyd(*FEW, redis=self.redis, name="other")
        self.sites = []

    def warm_up(self):
        """All connections stand: the next append is the first of what a test does."""
        self.proxy.disarm()
        until_202([self.cut], [{"site": "warm-up", "page": "/"}], f"warm-up {len(self.sites)} {time.time()}")
        count(self.cut.client(), "pv", site="warm-up")  # so that it is folded

    def site(self, n):
        self.sites.append((f"s{len(self.sites)}", n))
        return self.sites[-1][0]

    def post_and_ask(self, site, n, statuses):
        """In the background: a request, and a question that has it folded."""
        def run():
            statuses.append(post(self.cut.client(), make_batch(site, n), site)[0])
            try:
                self.cut.client().get("/pv", site=site)
            except Unknown:
                pass

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def settle(self):
        """Every request is repeated until it is taken, and counts once; then it is replayed everywhere."""
        self.proxy.disarm()
        assert self.sites
        for site, n in self.sites:
            until_202([self.other, self.cut], make_batch(site, n), site)
        for site, n in self.sites:
            for tallyd in (self.other, self.cut):
                assert post(tallyd.client(), make_batch(site, n), site) == (202, True)
            check_once(self.other.client(), site, n)


@pytest.fixture
def scene(start_redis, start_proxy, start_tallyd):
    return lambda appendonly=False: Scene(start_redis, start_proxy, start_tallyd, appendonly)


@pytest.mark.some(1)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_every_position_is_cut(scene, n):
    """tallyd goes on: it sends again by itself, or says that the client should."""
    s = scene()
    for point in CUTS:
        fired = 0
        for nth in POSITIONS:
            s.warm_up()
            site = s.site(n)
            fault = s.proxy.arm(Fault(point, nth=nth, match=OfTheLog()))
            status, again = post(s.cut.client(), make_batch(site, n), site)
            assert status in (202, 503, 504) and not again
            asked = s.cut.client().get("/pv", site=site, from_="2026-01-01")
            assert asked.status == 503 or asked.json["pv"] == n or (status != 202 and asked.json["pv"] == 0), asked
            if not fault.fired:
                break
            fired += 1
        assert fired >= LEAST, point
    s.settle()


@pytest.mark.some(1)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_tallyd_is_killed_at_every_position(scene, n):
    """It dies between any two steps of an append and a fold; other processes go on, and so does its successor."""
    s = scene()
    for point in ("command-before", "command-inside", "command-after", "reply-before"):
        fired = 0
        for nth in POSITIONS:
            s.warm_up()
            site, statuses = s.site(n), []
            fault = s.proxy.arm(Fault(point, nth=nth, match=OfTheLog()))
            thread = s.post_and_ask(site, n, statuses)
            wait_until(lambda fault=fault, thread=thread: fault.fired or not thread.is_alive(), "a cut, or an answer", pause_s=0.001)
            s.cut.kill()
            thread.join()
            if statuses == [202]:  # it holds already, without another try
                check_once(s.other.client(), site, n)
            s.cut.start()
            if not fault.fired:
                break
            fired += 1
        assert fired >= LEAST, point
    s.settle()


@pytest.mark.some(1)
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_redis_is_killed_at_every_position(scene, n):
    """appendfsync always: what was answered is there when it is back."""
    s = scene(appendonly=True)
    acknowledged = 0
    for point in ("command-after", "reply-before"):
        for nth in POSITIONS[::4]:  # a restart of Redis takes its time
            s.warm_up()
            site, statuses = s.site(n), []
            fault = s.proxy.arm(Fault(point, nth=nth, match=OfTheLog()))
            thread = s.post_and_ask(site, n, statuses)
            wait_until(lambda fault=fault, thread=thread: fault.fired or not thread.is_alive(), "a cut, or an answer", pause_s=0.001)
            s.redis.kill()
            s.redis.start()
            thread.join()
            if statuses == [202]:  # it holds already, without another try
                acknowledged += 1
                wait_until(lambda: s.other.client().get("/readyz").status == 200, "ready")
                check_once(s.other.client(), site, n)
            if not fault.fired:
                break
    s.settle()
    assert acknowledged >= 4


@pytest.mark.parametrize("point, again", [("command-before", False), ("command-inside", False), ("command-after", True), ("reply-before", True)])
def test_the_key_of_a_dead_process(scene, point, again):
    """Whoever repeats the request is answered at once: it counts now, or it was in the log."""
    s = scene()
    s.warm_up()
    site, statuses = s.site(SMALL), []
    batch, before = make_batch(site, SMALL), len(records(s.redis))
    fault = s.proxy.arm(Fault(point, match=is_append, then=Fault("command-before", times=10**6, match=is_append)))
    thread = s.post_and_ask(site, SMALL, statuses)
    assert fault.done.wait(10)
    if again:
        wait_until(lambda: len(records(s.redis)) > before, "it is in the log")
    s.cut.kill()
    thread.join()
    assert statuses == [None]
    begin = time.monotonic()
    assert post(s.other.client(), batch, site) == (202, again)
    assert time.monotonic() - begin < 0.9
    check_once(s.other.client(), site, SMALL)
    s.cut.start()
    s.settle()


def test_a_key_of_a_log_that_nobody_has_folded(scene, start_tallyd):
    """The record says that it counts, and it does, though its process died before it folded."""
    s = scene()
    dead = start_tallyd(*FEW, redis=s.redis, env=HELD, name="dead")
    site = s.site(LARGE)
    assert post(dead.client(), make_batch(site, LARGE), site) == (202, False)
    dead.kill()
    assert post(s.other.client(), make_batch(site, LARGE), site) == (202, True)
    check_once(s.other.client(), site, LARGE)
    s.settle()


def test_nothing_is_forgotten_when_redis_loses_all(scene):
    """Redis comes back empty: keys are free again, as is everything else, and no request hangs."""
    s = scene()
    s.warm_up()
    site = s.site(SMALL)
    assert post(s.cut.client(), make_batch(site, SMALL), site) == (202, False)
    s.redis.command("FLUSHALL")
    until_202([s.cut, s.other], make_batch(site, SMALL), site)
    check_once(s.other.client(), site, SMALL)
    s.redis.command("SCRIPT", "FLUSH")
    site = s.site(SMALL)
    until_202([s.cut], make_batch(site, SMALL), site)
    check_once(s.other.client(), site, SMALL)


@pytest.mark.parametrize("text, status", [("OOM command not allowed", 503), ("MISCONF no disk", 503), ("LOADING wait", 202),
                                          ("BUSY wait", 202), ("NOSCRIPT none", 202), ("READONLY no", 202)])
@pytest.mark.parametrize("n", [SMALL, LARGE])
def test_refusals(scene, text, status, n):
    """What Redis refuses was not appended: 503, and the key is free at once; what passes is waited for."""
    s = scene()
    s.warm_up()
    site = "refused"
    batch = [{"site": site, "page": "/"}] * n
    fault = s.proxy.arm(Fault("error", match=is_append, text=text))
    first = post(s.cut.client(), batch, site)[0]
    assert fault.fired == 1 and first == status
    if first == 503:
        assert post(s.cut.client(), batch, site) == (202, False)
    assert post(s.other.client(), batch, site) == (202, True)
    assert s.other.client().count("pv", site=site) == len(batch)


def test_random_walk(scene, chance):
    """Requests, repeats, other bodies, cuts and kills in any order, against a model of two dictionaries."""
    s = scene(appendonly=True)
    bodies, taken = {}, set()
    for step in range(60):
        tallyd = chance.choice([s.cut, s.other])
        what = chance.random()
        if what < 0.1:
            s.cut.kill()
            s.cut.start()
        elif what < 0.15:
            s.redis.kill()
            s.redis.start()
        elif what < 0.4:
            s.proxy.arm(Fault(chance.choice(CUTS), nth=chance.randint(1, 30), match=OfTheLog()))
        elif what < 0.5 and taken:
            key = chance.choice(sorted(taken))
            try:
                answer = tallyd.client().post(make_batch(key, 3), headers={"Idempotency-Key": key})
            except Unknown:
                continue
            assert answer.status in (422, 503, 504), answer
        else:
            if chance.random() < 0.6 or not bodies:
                key = f"w{step}"
                bodies[key] = chance.choice([SMALL, 70, LARGE])
            else:
                key = chance.choice(sorted(bodies))
            status, again = post(tallyd.client(), make_batch(key, bodies[key]), key)
            assert status != 202 or again == (key in taken) or not again, (key, status, again)
            assert key not in taken or status in (202, 503, 504), (key, status)
            if status == 202:
                taken.add(key)
    s.sites = sorted(bodies.items())
    s.settle()


@pytest.mark.parametrize("limit", [100_000, 1000])
@pytest.mark.parametrize("point", ["command-before", "reply-before"])
def test_what_is_sent_again_is_not_charged_again(scene, start_tallyd, limit, point):
    """The append goes once more, not to the guard, which may not have as much again, nor into /hotkeys."""
    s, n = scene(), 600
    limited = start_tallyd(*FEW, "--ingest-limit", f"{limit}/100d", "--ingest-limit-by", "site", redis=s.proxy, name="limited")
    http = limited.client()
    assert http.post([{"site": "plain", "page": "/"}] * n).status == 202
    fault = s.proxy.arm(Fault(point, match=is_append))
    answer = http.post([{"site": "cut", "page": "/"}] * n, headers={"Idempotency-Key": "cut"})
    assert fault.fired == 1 and answer.status == 202, answer
    assert answer.headers["RateLimit"].startswith(f'"ingest";r={limit - n};'), answer.headers["RateLimit"]
    assert count(http, "pv", site="cut") == n
    written = {page["site"]: page["writes_per_s"] for page in http.question("/hotkeys")["pages"]}
    assert written["cut"] == written["plain"]


def test_a_repeat_is_not_charged(scene, start_tallyd):
    """With a key that was used the guard is not asked."""
    s, n = scene(), 600
    limited = start_tallyd(*FEW, "--ingest-limit", "1000/100d", "--ingest-limit-by", "site", redis=s.redis, name="limited")
    http, batch = limited.client(), [{"site": "again", "page": "/"}] * n
    for again in (False, True, True):
        assert post(http, batch, "again") == (202, again)
    assert count(http, "pv", site="again") == n


def answered_in_time(tallyd, timeout_s, key):
    begin = time.monotonic()
    assert post(tallyd.client(), [{"site": key, "page": "/"}] * SMALL, key)[0] in (503, 504)
    assert time.monotonic() - begin < timeout_s + 0.4, "late"


def test_the_deadline_holds_while_redis_cannot_be_had(scene, start_tallyd):
    """Nothing comes back over the connection that stands, nor over the ones that are made then."""
    s = scene()
    hasty = start_tallyd("--partitions", "4", "--request-timeout", "500ms", redis=s.proxy, name="hasty")
    until_202([hasty], [{"site": "warm-up", "page": "/"}] * SMALL, "warm-up of the hasty")
    s.proxy.black_hole()
    for i in range(3):
        answered_in_time(hasty, 0.5, f"in the hole {i}")
    s.proxy.black_hole(False)


def test_the_deadline_holds_behind_what_nobody_waits_for(scene, start_tallyd):
    """A request is done, and the fold behind it is not answered."""
    s = scene()
    hasty = start_tallyd("--partitions", "4", "--request-timeout", "500ms", redis=s.proxy, name="hasty")
    judge, folded = s.proxy.judge, threading.Event()
    of_the_log = OfTheLog()

    def judge_and_stop(args):
        if of_the_log(args) and is_exec(args):
            s.proxy.black_hole()
            folded.set()
        return judge(args)

    s.proxy.judge = judge_and_stop
    until_202([hasty], [{"site": "folded", "page": "/"}] * SMALL, "folded")
    assert folded.wait(10)
    answered_in_time(hasty, 0.5, "behind it")
    s.proxy.judge = judge
    s.proxy.black_hole(False)
    s.warm_up()


def test_the_deadline_holds_behind_others_with_more_time(scene, start_tallyd):
    """A body comes slowly; when it is there, the append of one that came later is under way, and not answered."""
    s = scene()
    slow = start_tallyd("--partitions", "4", "--request-timeout", "2s", redis=s.proxy, name="slow")
    until_202([slow], [{"site": "warm-up", "page": "/"}] * SMALL, "warm-up of the slow")
    body = json.dumps([{"site": "slow", "page": "/"}] * SMALL)
    with Raw(slow.port) as client, concurrent.futures.ThreadPoolExecutor(1) as pool:
        begin = time.monotonic()
        client.send(f"POST /events HTTP/1.1\r\nHost: t\r\nIdempotency-Key: slow\r\nContent-Length: {len(body)}\r\n\r\n{body[:9]}")
        assert not client.readable(1.3)
        s.proxy.black_hole()
        later = pool.submit(post, slow.client(), [{"site": "later", "page": "/"}] * SMALL, "later")
        wait_until(lambda: slow.client().metric("tallyd_http_suspended") == 1, "it is asked for")
        assert client.send(body[9:]).receive()[0] in (503, 504)
        assert time.monotonic() - begin < 2.4, "late"
        assert not later.done(), "it has more time"
        assert later.result()[0] in (503, 504)
        s.proxy.black_hole(False)


@pytest.mark.parametrize("point, then", [("command-before", "hangs"), ("command-after", "hangs"), ("command-before", "is gone"),
                                         ("command-after", "is gone"), ("reply-before", "is gone")])
def test_an_outcome_that_is_unknown_is_no_503(scene, point, then):
    """The answer to an append is lost; nobody can be asked what became of it."""
    s = scene()
    s.warm_up()
    site, judge = s.site(SMALL), s.proxy.judge
    cut = Fault("command-before", match=is_any)  # also the connections that stand

    def judge_and_stop(args):
        if then == "is gone" and fault.fired:
            return cut
        hit = judge(args)
        if hit is not None and then == "hangs":
            s.proxy.hold_replies()
        elif hit is not None:
            s.proxy.upstream = f"{s.proxy.upstream}.gone"
        return hit

    fault = s.proxy.arm(Fault(point, match=is_append))
    s.proxy.judge = judge_and_stop
    status, _ = post(s.cut.client(), make_batch(site, SMALL), site)
    assert fault.fired == 1 and status == 504
    s.proxy.hold_replies(False)
    s.proxy.upstream, s.proxy.judge = str(s.redis.path), judge
    s.warm_up()
    s.settle()
