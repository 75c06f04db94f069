"""A question is answered once everything is counted that was acknowledged before it came, or says at its deadline how far the
log is behind."""

import random
import re
import threading
import time

import pytest

from lib.client import query
from lib.log import FakeLog, commands, is_append, states
from lib.process import Redis, short_directory
from lib.proxy import Fault
from lib.waiting import wait_until

HOUR = {"from_": "now-1h", "to": "now"}
WAITING = {  # what must come after what was acknowledged
    "uv": ("GET", "/uv", HOUR), "pv": ("GET", "/pv", HOUR), "ips": ("GET", "/ips", HOUR), "visits": ("GET", "/visits", HOUR),
    "stats": ("GET", "/stats", HOUR), "series": ("GET", "/pv", {**HOUR, "step": "1m"}), "pages": ("GET", "/pages", HOUR),
    "overlap": ("GET", "/overlap", {**HOUR, "page": ["/", "/x"]}), "sites": ("GET", "/sites", {}), "dau": ("GET", "/dau", {}),
    "active": ("GET", "/active/users", {}), "user": ("GET", "/users/u/activity", {}), "seen": ("GET", "/seen", {"user": "u", "page": "/"}), "forget": ("DELETE", "/users/u", {}),
}
AT_ONCE = {  # what has nothing to do with logs, and its answer
    "rollup": ("GET", "/rollup", {}, 200), "ready": ("GET", "/readyz", {}, 200), "healthy": ("GET", "/healthz", {}, 200),
    "filter": ("GET", "/filters/f", {"site": "s"}, 404),
    "page set": ("GET", "/pagesets/f", {"site": "s"}, 404),
}


class Asking(threading.Thread):
    """A question on its way."""

    def __init__(self, tallyd, what, site):
        super().__init__(daemon=True)
        self.client, self.what, self.site, self.answer = tallyd.client(timeout_s=30), what, site, None
        self.begin = time.monotonic()
        self.start()

    def run(self):
        method, path, params = self.what
        more = {} if path == "/sites" else {"site": self.site}
        self.answer = self.client.request(method, path + query({**params, **more}))

    def done(self):
        return not self.is_alive() and self.answer


@pytest.fixture
def server(start_redis):
    return start_redis()


@pytest.fixture
def tallyd(server, start_tallyd):
    return start_tallyd("--partitions", "4", "--request-timeout", "3s", redis=server)


def still_waits(redis, asking):
    """It has read the heads twice more, and is not answered."""
    n = commands(redis, "hgetall")
    wait_until(lambda: asking.done() or commands(redis, "hgetall") >= n + 2, "it looks again")
    assert not asking.done(), asking.answer


@pytest.mark.parametrize("name", WAITING)
def test_a_question_waits_and_goes_on(server, tallyd, site, name):
    log = FakeLog(server, 3)
    log.cursor("2")
    asking = Asking(tallyd, WAITING[name], site)
    still_waits(server, asking)
    log.cursor("3")
    assert wait_until(asking.done, "it is answered").status in (200, 204, 404), asking.answer
    assert time.monotonic() - asking.begin < 3


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_needs_no_counts_does_not_wait(server, tallyd, site, name):
    FakeLog(server, 3)
    method, path, params, status = AT_ONCE[name]
    begin = time.monotonic()
    answer = tallyd.client().request(method, path + query(params))
    assert answer.status == status and time.monotonic() - begin < 2, answer
    assert status != 404 or "filter" in answer.json["detail"] or "page set" in answer.json["detail"], answer


@pytest.mark.parametrize("age_s, silent_s, least", [(None, 100, 100), (40, 0, 40), (None, 0, 3)], ids=["silent", "old entry", "just now"])
def test_at_the_deadline_the_answer_says_how_far_the_log_is_behind(server, tallyd, site, age_s, silent_s, least):
    FakeLog(server, 3, silent_s=silent_s, age_s=age_s)
    asking = Asking(tallyd, WAITING["pv"], site)
    answer = wait_until(asking.done, "it is answered")
    assert answer.status == 503 and answer.headers["Retry-After"] == "1", answer
    seconds = int(re.match(r"the log is (\d+) s behind", answer.json["detail"])[1])
    assert least <= seconds <= least + 5, answer
    assert 2.5 < time.monotonic() - asking.begin < 4


def test_every_partition_counts(server, tallyd, site):
    keys = states(server)
    assert len(keys) == 4
    for key in keys:
        for text in (None, "2", "3:1"):  # nothing; not the last one; of the last one an event
            log = FakeLog(server, 3)
            log.cursor("3", [k for k in keys if k != key])
            if text is not None:
                log.cursor(text, [key])
            asking = Asking(tallyd, WAITING["uv"], site)
            still_waits(server, asking)
            log.cursor("4:7", [key])  # entry 3, and something of the next one
            assert wait_until(asking.done, "it is answered").status == 200


def test_cursors_are_read_again_when_a_log_has_grown(server, tallyd, site):
    log = FakeLog(server, 3)
    log.cursor("3")
    http = tallyd.client()
    for _ in range(20):  # each reader thread knows that it is counted
        assert http.get("/uv", site=site, **HOUR).status == 200
    log.append()
    asking = Asking(tallyd, WAITING["uv"], site)
    still_waits(server, asking)
    log.cursor("4")
    assert wait_until(asking.done, "it is answered").status == 200


def test_what_is_appended_meanwhile_is_not_waited_for(server, tallyd, site):
    log = FakeLog(server, 3)
    asking = Asking(tallyd, WAITING["uv"], site)
    still_waits(server, asking)
    log.append()
    FakeLog(server, 5)
    still_waits(server, asking)
    log.cursor("3")
    assert wait_until(asking.done, "it is answered").status == 200
    late = Asking(tallyd, WAITING["uv"], site)  # this one came later
    still_waits(server, late)
    assert wait_until(late.done, "it is answered").status == 503


def test_a_log_that_is_closed_is_counted(server, tallyd, site):
    logs = [FakeLog(server, n) for n in (1, 2, 0)]
    asking = Asking(tallyd, WAITING["uv"], site)
    still_waits(server, asking)
    logs[0].close()
    still_waits(server, asking)
    logs[1].close()
    assert wait_until(asking.done, "it is answered").status == 200
    assert tallyd.client().get("/uv", site=site, **HOUR).status == 200  # an empty log has nothing to wait for


def test_many_logs(server, tallyd, site):
    logs = [FakeLog(server, 1) for _ in range(50)]
    for log in logs:
        log.cursor("1")
    assert tallyd.client().get("/uv", site=site, **HOUR).status == 200
    logs[17].append()
    asking = Asking(tallyd, WAITING["uv"], site)
    still_waits(server, asking)
    logs[17].cursor("2")
    assert wait_until(asking.done, "it is answered").status == 200


@pytest.mark.parametrize("spoil", ["head", "cursor", "type"])
def test_foreign_data_is_named(server, tallyd, site, spoil):
    log = FakeLog(server, 3)
    if spoil == "head":
        server.command("HSET", log.heads, log.id, "x")
    elif spoil == "cursor":
        log.cursor("-1")
    else:
        server.command("DEL", log.heads)
        server.command("SET", log.heads, "x")
    answer = tallyd.client().get("/uv", site=site, **HOUR)
    assert answer.status == 503 and re.search("foreign data|WRONGTYPE", answer.json["detail"]), answer


class Gate:
    """Holds the first command that matches, before Redis gets it."""

    def __init__(self, proxy, match):
        self.reached, self.go, self.match = threading.Event(), threading.Event(), match
        self.judge, proxy.judge = proxy.judge, self.look

    def look(self, args):
        if not self.reached.is_set() and self.match(args):
            self.reached.set()
            self.go.wait(60)
        return self.judge(args)


def test_redis_goes_back_between_the_heads_and_the_reading(start_proxy, start_tallyd, cleanup, site):
    """The log was closed when the question came.  Then Redis dies, and comes back as it was before: what it counted is
    gone.  The question does not read that: it begins again."""
    redis = Redis(short_directory(), appendonly=True)
    cleanup.append(redis.stop)
    redis.start()
    proxy = start_proxy(redis)
    daemon = start_tallyd("--partitions", "4", "--request-timeout", "10s", redis=proxy)
    log = FakeLog(redis, 3)
    files = redis.directory / "appendonlydir"
    before = {f.name: f.read_bytes() for f in files.iterdir()}  # fsync always: all of it is there
    log.cursor("3")
    log.close()
    gate = Gate(proxy, lambda args: args[0].upper() == b"MULTI")
    asking = Asking(daemon, WAITING["uv"], site)
    assert gate.reached.wait(20), "it has read the heads, and reads the buckets now"
    redis.kill()
    for f in files.iterdir():
        f.unlink()
    for name, data in before.items():
        (files / name).write_bytes(data)
    redis.start()
    assert log.is_open() and set(log.cursors()) == {None}
    gate.go.set()
    still_waits(redis, asking)
    log.cursor("3")
    assert wait_until(asking.done, "it is answered").status == 200


def test_a_pass_that_is_asked_for_does_not_wait_for_ever(server, tallyd):
    """It counts first what it can; what comes late goes into the buckets that it has closed."""
    FakeLog(server, 3)
    wait_until(tallyd.leads, "it leads")
    answer = tallyd.client().request("POST", "/rollup")
    assert answer.status == 200, answer


def test_the_heads_are_read_once_when_nothing_is_missing(server, tallyd, site):
    for log in [FakeLog(server, n) for n in (3, 7)]:
        log.cursor("7")
    http = tallyd.client()
    for _ in range(20):  # each reader thread has seen the logs
        assert http.get("/uv", site=site, **HOUR).status == 200
    n, cursors = commands(server, "hgetall"), commands(server, "hmget")
    for _ in range(20):
        assert http.get("/uv", site=site, **HOUR).status == 200
    assert n + 20 <= commands(server, "hgetall") <= n + 22  # the leader looks now and then, too
    # four partitions have a state each, which is read each time, and cursors, which are not
    assert (read := commands(server, "hmget") - cursors) < 6 * 20, read


def test_what_one_question_finds_counted_holds_for_those_that_wait(server, start_tallyd, site):
    """Few readers, many questions: each fold answers all that came before it, not one a reader."""
    tallyd = start_tallyd("--partitions", "4", redis=server)
    log = FakeLog(server, 3)
    first = [Asking(tallyd, ("GET", "/uv", {**HOUR, "page": f"/{i}"}), site) for i in range(8)]
    still_waits(server, first[0])  # all readers have one
    behind = [Asking(tallyd, ("GET", "/pv", {**HOUR, "page": f"/{i}"}), site) for i in range(40)]
    still_waits(server, behind[0])
    log.cursor("3")
    before = commands(server, "hgetall")
    wait_until(lambda: all(a.done() for a in first + behind), "all are answered")
    assert {a.answer.status for a in first + behind} == {200}
    assert commands(server, "hgetall") - before < 20


@pytest.mark.parametrize("waits", (False, True), ids=("alone", "behind one that waits"))
@pytest.mark.parametrize("path, params, member, right", (("/pv", HOUR, "pv", 1), ("/seen", {"user": "u", "page": "/k"}, "seen", True)),
                         ids=("pv", "seen"))
def test_a_repeat_is_acknowledged_before_its_first_sender(start_redis, start_proxy, start_tallyd, site, waits, path, params, member, right):
    """By another process: the record says so already, while Redis's answer to the first one is still on its way."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd("--partitions", "4", redis=proxy)
    other = start_tallyd("--partitions", "4", redis=redis).client()
    http = tallyd.client()
    event, key = {"site": site, "page": "/k", "user": "u"}, {"Idempotency-Key": site}
    if waits:
        http.accept({"site": site + "-x", "page": "/x"})
    proxy.arm(Fault("reply-late", match=is_append, late_s=1.5))
    first = threading.Thread(target=tallyd.client().post, args=(event,), kwargs={"headers": key})
    first.start()
    wait_until(lambda: redis.command("KEYS", "t:*:key:*"), "its key is used")
    again = other.post(event, headers=key)
    assert again.status == 202 and again.headers["Idempotency-Replayed"] == "true" and first.is_alive()
    assert http.question(path, site=site, **params)[member] == right
    first.join()


def views(site, n):
    return [{"site": site, "page": f"/{i % 7}", "user": f"u{i}", "ip": f"10.0.{i // 250}.{i % 250}"} for i in range(n)]


@pytest.mark.parametrize("options", [(), ("--fsync", "always")])
def test_what_was_acknowledged_is_in_the_answer(start_redis, start_tallyd, site, options):
    """Two processes, senders of large and small requests, with keys and without; each looks for its own behind each acknowledgement."""
    redis = start_redis()
    servers = [start_tallyd("--partitions", "4", redis=redis) for _ in range(2)] if not options else [start_tallyd(*options)]
    until_s = time.monotonic() + 4
    failed, asked = [], []

    def send(number):
        dice = random.Random(number)
        clients, sent, mine = [s.client() for s in servers], 0, f"{site}{number}"
        while time.monotonic() < until_s and not failed:
            n = dice.choice([1, 100, 150, 400])
            key = {"Idempotency-Key": f"{mine}.{sent}"} if dice.random() < 0.2 else {}
            answer = dice.choice(clients).post(views(mine, n), headers=key)
            sent += n
            counted = dice.choice(clients).count("pv", site=mine, **HOUR)
            if answer.status != 202 or counted != sent:
                failed.append((number, sent, counted, answer.status))
        clients[0].connection.close()

    def ask():
        client = random.choice(servers).client()
        while time.monotonic() < until_s:
            asked.append(client.count("pv", site=site + "0", **HOUR))

    threads = [threading.Thread(target=send, args=(i,)) for i in range(6)] + [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed and len(asked) > 10


def test_who_joins_a_look_is_not_told_what_was_remembered_before(start_redis, start_proxy, start_tallyd, site):
    """A reader has looked for a question, and its connection is slow.  Then something is acknowledged, and the same question
    comes again: a round of folds settles it, and the reader takes it along.  What the look has seen is too old for it."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd("--partitions", "4", redis=proxy)
    http, pages = tallyd.client(), 5
    http.accept([{"site": site, "page": "/"}] * pages)
    for _ in range(10):
        unchanged = http.metric("tallyd_queries_unchanged_total")
        wait_until(lambda: http.count("pv", site=site, **HOUR) == pages and http.metric("tallyd_queries_unchanged_total") > unchanged,
                   "the answer is remembered")
        slow = proxy.arm(Fault("reply-held", match=lambda args: args[0].upper() == b"HGETALL" and args[1].endswith(b":heads")))
        first = Asking(tallyd, WAITING["pv"], site)
        wait_until(slow.done.is_set, "somebody looks")
        folded = http.metric("tallyd_fold_events_total")
        http.accept({"site": site, "page": "/"})
        pages += 1
        second = Asking(tallyd, WAITING["pv"], site)
        wait_until(lambda: second.done() or http.metric("tallyd_fold_events_total") > folded, "it is counted")
        slow.release()
        assert wait_until(second.done, "it is answered").json["pv"] == pages
        assert wait_until(first.done, "it is answered").json["pv"] >= pages - 1
