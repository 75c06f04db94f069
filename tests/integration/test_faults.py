"""Short fault runs: what was answered 202 is counted exactly once, 503 not at all, anything else at most once.

Every event has a page of its own, so that each can be asked for; TALLYD_SEED repeats a run.
"""

import concurrent.futures
import json
import os
import signal
import threading
import time

import pytest

from lib.ledger import EVENTS, Clients, Ledger
from lib.log import OfTheLog, is_append
from lib.memory import MIB, resident
from lib.process import sanitized
from lib.proxy import CUTS, Fault, is_any
from lib.raw import Raw
from lib.resp import RespError
from lib.waiting import wait_until

FEW = ("--partitions", "4")
MANY = 2000  # events of an entry that no socket takes at once


# Processes killed under load


def test_embedded_redis_killed_under_load(start_tallyd, site, chance, seed):
    print(f"TALLYD_SEED={seed}")
    tallyd, ledger = start_tallyd(*FEW), Ledger(site)
    with Clients(ledger, tallyd) as clients:
        for _ in range(4):
            clients.more()
            time.sleep(chance.uniform(0, 0.05))  # not to wait: somewhere in an append or a fold
            # it may be starting again at this moment
            os.kill(wait_until(tallyd.redis_pids, "Redis runs")[0], signal.SIGKILL)
        clients.more()
    ledger.check(tallyd)
    assert ledger.statuses[202] >= 50


def test_redis_killed_and_restarted_under_load(start_redis, start_tallyd, site, chance, seed):
    print(f"TALLYD_SEED={seed}")
    redis = start_redis(appendonly=True)
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    with Clients(ledger, tallyd) as clients:
        for _ in range(5):
            clients.more()
            time.sleep(chance.uniform(0, 0.05))
            redis.kill()
            redis.start()
        clients.more()
    ledger.check(tallyd)
    assert ledger.statuses[202] >= 50


def test_tallyd_killed_under_load(start_tallyd, site, chance, seed):
    """With its own Redis, which is left an orphan each time."""
    print(f"TALLYD_SEED={seed}")
    tallyd, ledger = start_tallyd(*FEW), Ledger(site)
    with Clients(ledger, tallyd) as clients:
        for _ in range(5):
            clients.more()
            time.sleep(chance.uniform(0, 0.05))
            tallyd.kill()
            tallyd.start()
        clients.more()
    ledger.check(tallyd)
    assert ledger.statuses[202] >= 50


def test_both_killed_under_load(start_redis, start_tallyd, site, chance, seed):
    print(f"TALLYD_SEED={seed}")
    redis = start_redis(appendonly=True)
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    with Clients(ledger, tallyd) as clients:
        for _ in range(3):
            clients.more()
            for victim in chance.sample([redis, tallyd], 2):
                victim.kill()
                time.sleep(chance.uniform(0, 0.02))
            redis.start()
            tallyd.start()
        clients.more()
    ledger.check(tallyd)


def test_redis_stands_still_under_load(start_redis, start_tallyd, site):
    """SIGSTOP for longer than the deadline: 504 or 503 in time, and what was sent counts at most once."""
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, "--request-timeout", "500ms", redis=redis), Ledger(site)
    with Clients(ledger, tallyd) as clients:
        for _ in range(2):
            clients.more()
            redis.signal(signal.SIGSTOP)
            try:
                stopped = sum(v for k, v in ledger.statuses.items() if k != 202)
                wait_until(lambda n=stopped: sum(v for k, v in ledger.statuses.items() if k != 202) >= n + 8,
                           "requests are answered while Redis stands still")
            finally:
                redis.signal(signal.SIGCONT)
        clients.more()
    ledger.check(tallyd)
    assert not ledger.silent, "every request is answered within its deadline"


def test_redis_comes_back_empty(start_redis, start_tallyd, site):
    """All data is gone (no persistence): what is acknowledged from then on counts, exactly once."""
    redis = start_redis()
    tallyd, before, after = start_tallyd(*FEW, redis=redis), Ledger(site), Ledger(site + "-2")
    http = tallyd.client()
    for i in range(20):
        before.send(http, i)
    redis.kill()
    redis.start()
    wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    with Clients(after, tallyd, limit=60) as clients:
        clients.more(40)
    after.check(tallyd)
    assert http.count("pv", site=site, from_="now-1h") == 0


# The connection cut at every position


@pytest.fixture
def between(start_redis, start_proxy, start_tallyd):
    """(tallyd, proxy, redis): a proxy in the middle; the cuts are quick, so the reconnects must be too."""
    redis = start_redis()
    proxy = start_proxy(redis)
    return start_tallyd(*FEW, redis=proxy), proxy, redis


@pytest.mark.some(2)
@pytest.mark.parametrize("point", CUTS)
def test_cut_at_an_append(between, site, point):
    """A batch over all partitions, the connection lost before, inside and behind its append and the reply: tallyd sends it
    again, and it is acknowledged and counted once."""
    tallyd, proxy, _ = between
    ledger, http = Ledger(site, MANY), tallyd.client()
    ledger.send(http, "warm")  # users and scripts known
    for n in range(4):
        fault = proxy.arm(Fault(point, match=is_append))
        status = ledger.send(http, f"{point}/{n}")
        assert fault.fired == 1 and status == 202, f"cut at {point} {n}: {status}"
    ledger.check(tallyd)


@pytest.mark.some(2)
@pytest.mark.parametrize("point", CUTS)
def test_cut_again_and_again(between, site, chance, point):
    """The same entry is cut each time that it is sent; it is sent until it is through."""
    tallyd, proxy, _ = between
    ledger, http = Ledger(site, MANY), tallyd.client()
    for n in range(3):
        fault = proxy.arm(Fault(point, times=chance.randint(2, 4), match=is_append))
        assert ledger.send(http, f"{point}/{n}") in (202, 504)
        assert fault.fired > 1 or point == "reply-after"
        proxy.disarm()
    ledger.check(tallyd)


@pytest.mark.some(2)
@pytest.mark.parametrize("point", CUTS)
def test_cut_anywhere_in_the_log(between, site, chance, point):
    """Appends and folds of several clients, each time at another one of their commands."""
    tallyd, proxy, _ = between
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=4, limit=600, keyed=2) as clients:
        for _ in range(10):
            fault = proxy.arm(Fault(point, nth=chance.randint(1, 60), match=OfTheLog()))
            clients.more(5)
            tallyd.client().get("/pv", site=site)
            fault.done.wait(1)
    proxy.disarm()
    ledger.check(tallyd)


def test_cut_while_the_connection_is_made(between, site):
    """Each command of the greeting, in turn."""
    tallyd, proxy, _ = between
    ledger, http = Ledger(site), tallyd.client()
    for nth in range(1, 13):
        proxy.cut_all()
        proxy.arm(Fault(("command-before", "reply-inside", "reply-before")[nth % 3], nth=nth, match=is_any))
        assert ledger.send(http, nth) in (202, 503, 504)
        proxy.disarm()
        wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    ledger.check(tallyd)
    assert ledger.statuses[202] >= 6


def test_cut_at_random_under_load(between, site, chance, seed):
    """Several requests in an entry, two entries on their way, cuts anywhere."""
    print(f"TALLYD_SEED={seed}")
    tallyd, proxy, _ = between
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=8, limit=600) as clients:
        for _ in range(25):
            fault = proxy.arm(Fault(chance.choice(CUTS), nth=chance.randint(1, 20)))
            clients.more(5)
            fault.done.wait(1)
    proxy.disarm()
    ledger.check(tallyd)
    assert ledger.statuses.get(202, 0) > 100


def test_reads_survive_cuts(between, site):
    """A question whose connection is cut is asked again or refused, never answered wrongly."""
    tallyd, proxy, _ = between
    http = tallyd.client()
    http.accept([{"site": site, "page": f"/{i}", "user": i} for i in range(50)])
    for point in CUTS:
        for nth in range(1, 8):
            proxy.arm(Fault(point, nth=nth, match=lambda args: not args[0].upper().startswith(b"EVAL")))
            answer = http.get("/pv", site=site, from_="now-1h")
            assert answer.status in (200, 503, 504), answer
            if answer.status == 200:
                assert answer.json["pv"] == 50
            proxy.disarm()
            wait_until(lambda: http.get("/uv", site=site).status == 200, "questions are answered again")


def test_ready_is_who_takes_requests(between, site):
    """Redis is back, and a probe can write, but the writer has not come back to it yet: requests are refused."""
    tallyd, proxy, _ = between
    http = tallyd.client()
    fault = Fault("error", times=10**6, match=lambda args: args[0].upper() == b"INFO", text="LOADING")  # the writer asks for it
    proxy.arm(fault)
    proxy.cut_all()
    wait_until(lambda: tallyd.client().get("/uv", site=site).status == 503, "refused at once")
    wait_until(lambda: fault.fired > 5, "Redis is there, and the writer tries")
    assert tallyd.client().get("/readyz").status == 503
    proxy.disarm()
    wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    assert http.get("/uv", site=site).status == 200
    http.accept({"site": site, "page": "/"})


def test_the_log_says_why_redis_takes_no_script(between):
    tallyd, proxy, _ = between
    text = "LOADING Redis is loading the dataset in memory"
    proxy.arm(Fault("error", times=10**6, match=lambda args: args[0].upper() == b"SCRIPT", text=text))
    proxy.cut_all()
    wait_until(lambda: text in tallyd.log_text(), "the log has Redis's words")
    proxy.disarm()
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready again")


def test_black_hole(start_redis, start_proxy, start_tallyd, site):
    """Nothing comes back, nothing is closed: the deadline holds, and the connection is given up."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd, ledger = start_tallyd(*FEW, "--request-timeout", "1s", redis=proxy), Ledger(site)
    http = tallyd.client()
    for n in range(2):
        assert ledger.send(http, f"before/{n}") == 202
        proxy.black_hole()
        begin = time.monotonic()
        assert ledger.send(http, f"in/{n}") in (503, 504)
        assert http.get("/pv").status in (503, 504)
        assert time.monotonic() - begin < 4
        proxy.black_hole(False)
        wait_until(lambda k=n: ledger.send(tallyd.client(), f"after/{k}/{time.monotonic_ns()}") == 202, "counted again")
    ledger.check(tallyd)


def test_questions_outlive_connections_that_fall_silent(start_redis, start_proxy, start_tallyd, site):
    """As where a firewall forgets what was idle: nothing comes back, nothing is closed; a new connection would do.  Within
    the deadline of one question (10 s) it is made, and asked again."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(*FEW, redis=proxy)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/"}])
    assert http.count("pv", site=site) == 1
    proxy.freeze()
    for path in ("/uv", "/pages"):  # of a count, and of a pipeline
        begin = time.monotonic()
        assert http.get(path, site=site).status == 200
        assert time.monotonic() - begin < 9


def test_a_question_waits_for_no_other_beyond_its_deadline(start_redis, start_tallyd, site):
    """Redis stands still and all readers with it: the probe of /readyz, which has 2 s, is answered before they are (10 s)."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, "--readers", "2", redis=redis)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/"}])
    redis.signal(signal.SIGSTOP)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(tallyd.client().get, "/uv", site=site, page=f"/{i}") for i in range(2)]
            wait_until(lambda: http.metric("tallyd_http_suspended") == 2, "both readers are taken")
            wait_until(lambda: http.get("/readyz").status == 503, "the probe is answered")
            assert not any(question.done() for question in asked)
            redis.signal(signal.SIGCONT)
            assert [question.result().status for question in asked] == [200, 200]
    finally:
        redis.signal(signal.SIGCONT)


@pytest.mark.skipif(sanitized(), reason="a sanitizer's allocator keeps what is freed")
def test_requests_that_wait_hold_little(start_redis, start_tallyd, site):
    """Redis stands still.  Of five requests with 3.3 MB each tallyd keeps the bytes for the log, not body and events."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    body = json.dumps([{"site": site, "page": "/", "user": i % 100, "of_no_meaning": "x" * 256} for i in range(9900)])
    http.accept([{"site": site, "page": "/"}])
    redis.signal(signal.SIGSTOP)
    try:
        before = resident(tallyd.pid)
        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            posts = [pool.submit(tallyd.client().post, body.encode()) for _ in range(5)]
            wait_until(lambda: http.metric("tallyd_http_suspended") == 5, "all wait for Redis")
            wait_until(lambda: resident(tallyd.pid) - before < 8 * MIB, "what they were decoded from is given back")
            redis.signal(signal.SIGCONT)
            assert [post.result().status for post in posts] == [202] * 5
    finally:
        redis.signal(signal.SIGCONT)
    assert http.count("pv", site=site) == 1 + 5 * 9900
    assert http.metrics()[f'tallyd_site_events_total{{site="{site}"}}'] == 1 + 5 * 9900


def test_who_comes_while_a_connection_is_made(start_redis, start_proxy, start_tallyd, site):
    """The writer tries for a second to connect to a Redis that stands still; who comes then has 300 ms."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd(*FEW, "--request-timeout", "300ms", redis=proxy)
    http = tallyd.client()
    for _ in range(3):
        wait_until(lambda: http.post({"site": site, "page": "/"}).status == 202, "connected")
        before = proxy.accepted
        proxy.black_hole()
        proxy.cut_all()
        wait_until(lambda: proxy.accepted > before, "it connects")
        begin = time.monotonic()
        assert http.post({"site": site, "page": "/"}).status == 503
        assert time.monotonic() - begin < 0.7, "late"
        proxy.black_hole(False)


def test_a_pass_is_asked_for_while_redis_stands_still(start_redis, start_proxy, start_tallyd):
    """The leader waits for its lock, 0.8 s at a time; who comes meanwhile and wants a pass has 300 ms."""
    proxy = start_proxy(start_redis())
    http = start_tallyd(*FEW, "--request-timeout", "300ms", redis=proxy).client()
    proxy.black_hole()
    for _ in range(15):
        begin = time.monotonic()
        assert http.request("POST", "/rollup").status in (503, 504)
        assert time.monotonic() - begin < 0.65, "late"
    proxy.black_hole(False)


def test_the_end_does_not_wait_for_redis(start_redis, start_tallyd, site):
    """SIGTERM while Redis stands still: when the time of the last request is over nobody waits for anything."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, "--request-timeout", "4s", redis=redis)
    tallyd.client().accept([{"site": site, "page": "/"}])
    redis.signal(signal.SIGSTOP)
    try:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            under_way = [pool.submit(tallyd.client().post, {"site": site, "page": "/late"}),
                         pool.submit(tallyd.client().request, "POST", "/rollup")]
            wait_until(lambda: tallyd.client().metric("tallyd_http_suspended") == 2, "requests under way")
            begin = time.monotonic()
            assert tallyd.terminate() == 0
            assert time.monotonic() - begin < 7.5
            assert [request.result().status for request in under_way] == [504, 503]
    finally:
        redis.signal(signal.SIGCONT)


def test_a_probe_whose_client_left(start_redis, start_tallyd):
    """What looks at /readyz gives up after a second, as many do, while Redis stands still: the next ones are told the truth."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    redis.signal(signal.SIGSTOP)
    try:
        wait_until(lambda: http.get("/readyz").status == 503, "a probe failed")

        def waits_in_vain():
            with Raw(tallyd.port) as hasty:
                return not hasty.send("GET /readyz HTTP/1.1\r\nHost: t\r\n\r\n").readable(0.3)

        wait_until(waits_in_vain, "somebody leaves a probe alone")
        wait_until(lambda: http.metric("tallyd_http_suspended") == 0, "it is over")
    finally:
        redis.signal(signal.SIGCONT)
    wait_until(lambda: http.get("/readyz").status == 200, "ready again", deadline_s=10)


def test_an_old_probe_tells_nothing(start_redis, start_tallyd):
    """Redis stands still.  Of two that ask at once none is told what was so when somebody asked last."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis)
    assert tallyd.client().get("/readyz").status == 200
    time.sleep(3.2)
    redis.signal(signal.SIGSTOP)
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(tallyd.client().get, "/readyz") for _ in range(4)]
            assert [answer.result().status for answer in asked] == [503] * 4
    finally:
        redis.signal(signal.SIGCONT)


# Error replies


def test_a_question_tells_which_command_redis_refused(start_redis, start_tallyd, site):
    """And not only that a transaction was discarded for it."""
    redis = start_redis()
    http = start_tallyd(*FEW, redis=redis).client()
    http.accept({"site": site, "page": "/", "user": "u"})
    assert http.count("uv", site=site, from_="now-1h") == 1
    redis.command("ACL", "SETUSER", "default", "-mget", "-hget", "-zmscore")
    for question in ("uv", "pv"):
        answer = http.get(f"/{question}?site={site}&from=now-2h")
        assert answer.status == 503 and answer.json["detail"].startswith("NOPERM"), answer
    redis.command("ACL", "SETUSER", "default", "+@all")
    assert http.count("uv", site=site, from_="now-2h") == 1


def test_a_start_that_may_not_write_tells_why(start_redis, start_tallyd):
    redis = start_redis()
    start_tallyd(*FEW, redis=redis).terminate()  # all is there but the log of the next process
    redis.command("ACL", "SETUSER", "default", "-hsetnx")
    tallyd = start_tallyd(*FEW, redis=redis, wait_ready=False)
    line = wait_until(lambda: [x for x in tallyd.log_text().splitlines() if "cannot use Redis" in x], "it says that it waits")[0]
    assert 'reason="ERR ' in line and "script" in line, line
    redis.command("ACL", "SETUSER", "default", "+@all")
    tallyd.wait_ready_line()


@pytest.mark.some(10)
@pytest.mark.parametrize("text", [
    "OOM command not allowed when used memory > 'maxmemory'.",
    "LOADING Redis is loading the dataset in memory",
    "READONLY You can't write against a read only replica.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "BUSY Redis is busy running a script.",
    "NOREPLICAS Not enough good replicas to write.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    "NOPERM this user has no permissions to run the 'evalsha' command",
    "ERR something that nobody expects",
    "NOSCRIPT No matching script. Please use EVAL.",
], ids=lambda text: text.split()[0])
@pytest.mark.parametrize("nth, times", [(1, 1), (2, 1), (1, 10**9)], ids=["the first", "the second", "all"])
def test_error_replies(start_redis, start_proxy, start_tallyd, site, text, nth, times):
    """An honest answer in time, nothing half-hidden, and all is well once the errors end."""
    proxy = start_proxy(start_redis())
    tallyd, ledger = start_tallyd(*FEW, "--request-timeout", "2s", redis=proxy), Ledger(site)
    http = tallyd.client()
    assert ledger.send(http, "before") == 202
    fault = proxy.arm(Fault("error", nth=nth, times=times, text=text))
    begin = time.monotonic()
    status = ledger.send(http, "in")
    assert time.monotonic() - begin < 4
    if times > 1:
        assert status in (503, 504), "Redis never took it"
        assert fault.fired < 400, "a busy loop of attempts"
    if text.startswith("NOSCRIPT") and times == 1:
        assert status == 202, "a script that Redis forgot is no failure"
    proxy.disarm()
    wait_until(lambda: ledger.send(http, f"after/{time.monotonic_ns()}") == 202, "counted again")
    ledger.check(tallyd)


@pytest.mark.parametrize("flush", [("SCRIPT", "FLUSH"), ("CLIENT", "KILL", "TYPE", "NORMAL")])
def test_a_connection_that_is_there_again_is_no_reason(start_redis, start_tallyd, site, flush):
    """The writer has another connection at once, and nobody who asks about readiness learns of it."""
    redis = start_redis()
    http = start_tallyd(*FEW, redis=redis).client()
    http.accept({"site": site, "page": "/"})
    wait_until(lambda: http.get("/readyz").status == 200, "ready")
    time.sleep(1.1)  # the connection has been a good one, and the next probe is new
    assert http.get("/readyz").status == 200
    redis.command(*flush)
    http.accept({"site": site, "page": "/"})
    assert http.get("/readyz").status == 200


def test_out_of_memory(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    http = tallyd.client()
    assert ledger.send(http, "before") == 202
    assert http.get("/readyz").status == 200
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert http.get("/readyz").status in (200, 503)  # within a second it asks Redis no more
    answer = http.post({"site": site, "page": "/full"})
    assert answer.status == 503 and "memory" in answer.json["detail"], answer
    ready = http.get("/readyz")
    assert ready.status == 503 and "memory" in ready.json["detail"], "a refused write is a reason at once"
    assert int(answer.headers["Retry-After"]) >= 1
    for i in range(3):
        assert ledger.send(http, f"full/{i}") == 503
    # Redis queues no MULTI when it is full: a question is answered or refused for the true reason
    answer = http.get("/pv", site=site)
    assert answer.status == 200 and answer.json["pv"] == EVENTS or (
        answer.status == 503 and "memory" in answer.json["detail"]), answer
    wait_until(lambda: http.get("/readyz").status == 503, "readyz tells")
    assert http.metric("tallyd_redis_oom_total") > 0
    redis.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: ledger.send(http, f"after/{time.monotonic_ns()}") == 202, "counted again")
    ledger.check(tallyd)


@pytest.mark.parametrize("method, path, body, headers", [
    ("POST", "/events", {"page": "/"}, {}), ("POST", "/events", {"page": "/"}, {"Idempotency-Key": "full"}),
    ("PUT", "/pagesets/full", {"pages": ["/"]}, {}), ("PUT", "/filters/full", {}, {}),
    ("POST", "/filters/full/add", {"items": ["a"]}, {}),
    ("POST", "/ratelimit", {"key": "k", "algorithm": "funnel", "limit": 1, "period_s": 60}, {})])
def test_every_refusal_of_a_full_redis_says_so_and_is_counted(start_redis, start_tallyd, method, path, body, headers):
    redis = start_redis()
    http = start_tallyd(*FEW, redis=redis).client()
    assert http.get("/readyz").status == 200
    redis.command("CONFIG", "SET", "maxmemory", "1")
    before = http.metric("tallyd_redis_oom_total")
    answer = http.request(method, path, json.dumps(body), headers)
    assert answer.status == 503 and "out of memory" in answer.json["detail"], answer
    assert "maxmemory" not in answer.json["detail"], "Redis's words are for the log"
    assert http.metric("tallyd_redis_oom_total") > before


def test_read_only_replica(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, "--request-timeout", "2s", redis=redis), Ledger(site)
    http = tallyd.client()
    assert ledger.send(http, "before") == 202
    redis.command("REPLICAOF", "127.0.0.1", "1")
    assert ledger.send(http, "in") in (503, 504)
    wait_until(lambda: http.get("/readyz").status == 503, "readyz tells")
    redis.command("REPLICAOF", "NO", "ONE")
    wait_until(lambda: ledger.send(http, f"after/{time.monotonic_ns()}") == 202, "counted again")
    ledger.check(tallyd)


def is_busy(redis):
    try:
        redis.command("PING")
    except RespError as error:
        return str(error).startswith("BUSY")
    return False


def test_somebody_s_endless_script(start_redis, start_tallyd, site):
    """BUSY: answered in time, and well again after SCRIPT KILL."""
    redis = start_redis(options=["--busy-reply-threshold", "50"])
    tallyd, ledger = start_tallyd(*FEW, "--request-timeout", "1s", redis=redis), Ledger(site)
    http = tallyd.client()
    assert ledger.send(http, "before") == 202
    with redis.connect() as connection:
        connection.send("EVAL", "while true do end", 0)
        wait_until(lambda: is_busy(redis), "Redis is busy")
        assert ledger.send(http, "in") in (503, 504)
        wait_until(lambda: redis.command("SCRIPT", "KILL") == "OK", "the script is stopped")
    wait_until(lambda: ledger.send(http, f"after/{time.monotonic_ns()}") == 202, "counted again")
    ledger.check(tallyd)


def test_script_flush_and_client_kill(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    http = tallyd.client()
    for i in range(5):
        redis.command("SCRIPT", "FLUSH")
        assert ledger.send(http, f"unknown-script/{i}") == 202
        redis.command("CLIENT", "KILL", "TYPE", "normal")
        assert ledger.send(http, f"kill/{i}") == 202
        assert http.count("pv", site=site, from_="now-1h") == (2 * i + 2) * EVENTS
    ledger.check(tallyd)


# Load


def test_requests_gather_while_an_entry_is_on_its_way(between, site):
    """Group commit: 40 requests behind one slow round trip need a few entries, not 40."""
    tallyd, proxy, _ = between
    ledger, http = Ledger(site), tallyd.client()
    ledger.send(http, "warm")
    appends = http.metrics()["tallyd_appends_total"]
    proxy.hold_replies()
    senders = [threading.Thread(target=lambda i=i: ledger.send(tallyd.client(), i), daemon=True) for i in range(40)]
    for sender in senders:
        sender.start()
    wait_until(lambda: http.metrics()["tallyd_queue_events"] >= 20 * EVENTS, "requests gather")
    proxy.hold_replies(False)
    for sender in senders:
        sender.join(20)
    assert ledger.statuses == {202: 41}
    assert 1 < http.metrics()["tallyd_appends_total"] - appends <= 12
    ledger.check(tallyd)


def test_the_queue_is_bounded(start_redis, start_proxy, start_tallyd, site):
    """More than --queue events wait for Redis: 503 with Retry-After, at once; nothing of them is counted."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd(*FEW, "--queue", "10000", "--request-timeout", "5s", redis=proxy)
    http = tallyd.client()
    batch = [{"site": site, "page": "/"}] * 4000
    http.accept(batch)
    proxy.hold_replies()
    answers = []
    senders = [threading.Thread(target=lambda: answers.append(tallyd.client().post(batch)), daemon=True) for _ in range(15)]
    for sender in senders:
        sender.start()
    wait_until(lambda: any(a.status == 503 for a in answers), "the queue is full")
    assert http.metric("tallyd_queue_events") <= 10_000
    proxy.hold_replies(False)
    for sender in senders:
        sender.join(20)
    statuses = [a.status for a in answers]
    assert len(statuses) == 15 and set(statuses) <= {202, 503}, statuses
    assert all(int(a.headers["Retry-After"]) >= 1 for a in answers if a.status == 503)
    assert http.metric("tallyd_queue_refused_total") == statuses.count(503)
    assert http.count("pv", site=site, from_="now-1h") == 4000 * (1 + statuses.count(202))
