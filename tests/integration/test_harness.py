"""The harness itself: a clock that does not move or a proxy that does not cut would let bad code pass."""

import random
import re
import shlex
import subprocess
import sys

import pytest

from lib.cluster import Cluster
from lib.clock import FakeClock, epoch, rfc3339
from lib.process import ROOT
from lib.proxy import CUTS, Fault, is_any
from lib.resp import Resp, RespError, encode, frame_end, parse
from lib.sentinel import SentinelGroup
from lib.truth import Estimates, Model, collisions, is_close
from lib.waiting import wait_until

SCRIPT = "#!lua\nreturn redis.call('INCR', KEYS[1])\n"


def test_clock_moves_while_redis_runs(directory, start_redis):
    clock = FakeClock(directory, "2026-03-10 10:56:20")
    redis = start_redis(directory, clock=clock)
    assert abs(redis.time() - epoch("2026-03-10 10:56:20")) < 5

    redis.command("SET", "key", "1")
    redis.command("PEXPIREAT", "key", epoch("2026-03-10 11:30") * 1000)
    clock.set("2026-03-10 11:29:00")
    assert redis.command("GET", "key") == "1"
    assert redis.command("EVAL", "#!lua\nreturn redis.call('TIME')[1]\n", 0).startswith("17731421")
    clock.set("2026-03-10 11:30:01")
    assert redis.command("GET", "key") is None
    clock.advance(3600)
    assert rfc3339(redis.time()).startswith("2026-03-10T12:30:")
    with pytest.raises(AssertionError, match="only moves forward"):
        clock.advance(-1)


def test_clock_survives_a_restart(directory, start_redis):
    clock = FakeClock(directory, "2026-03-10 10:56:20")
    redis = start_redis(directory, clock=clock, appendonly=True)
    redis.command("SET", "key", "1")
    clock.advance(7200)
    redis.kill()
    redis.start()
    assert redis.command("GET", "key") == "1"
    assert rfc3339(redis.time()).startswith("2026-03-10T12:56:")


@pytest.mark.parametrize("point", CUTS)
@pytest.mark.parametrize("nth", [1, 3])
def test_proxy_cuts_at_the_chosen_command(point, nth, start_redis, start_proxy):
    redis = start_redis()
    proxy = start_proxy(redis)
    with Resp.unix(proxy.path, 5) as connection:
        fault = proxy.arm(Fault(point, nth=nth))
        # in one piece: the cut is quicker than ten sends
        connection.socket.sendall(5 * (encode(["PING"]) + encode(["EVAL", SCRIPT, 1, "n"])))
        answers = []
        with pytest.raises(OSError):
            while True:
                answers.append(connection.receive())
    assert fault.done.is_set()
    # pipelined: what Redis has answered before it, arrives or is lost with the connection
    full = [v for i in range(1, nth + (point == "reply-after")) for v in ("PONG", i)]
    most = [*full, "PONG"]
    assert answers in (full, most) or (point.startswith("command") and answers == most[:len(answers)])
    runs = nth - (point in ("command-before", "command-inside"))
    if point.startswith("reply"):  # Redis has run at least these; the rest may have reached it too
        assert int(redis.command("GET", "n")) >= runs
    else:
        wait_until(lambda: int(redis.command("GET", "n") or 0) == runs, f"{runs} runs")


def test_proxy_injects_errors_in_order(start_redis, start_proxy):
    proxy = start_proxy(start_redis())
    with Resp.unix(proxy.path, 5) as connection:
        proxy.arm(Fault("error", nth=2, times=2, text="OOM command not allowed", match=is_any))
        for _ in range(5):
            connection.send("INCR", "n")
        answers = []
        for _ in range(5):
            try:
                answers.append(connection.receive())
            except RespError as error:
                answers.append(str(error))
    assert answers == [1, "OOM command not allowed", "OOM command not allowed", 2, 3]


@pytest.mark.parametrize("nth, answers, n", [
    (1, ["OOM", 1, 2, "ERR EXEC without MULTI"], "2"), (2, ["OK", "OOM", "QUEUED", "EXECABORT"], None),
    (4, ["OK", "QUEUED", "QUEUED", "OOM"], None)], ids=["MULTI", "in it", "EXEC"])
def test_a_transaction_of_which_a_command_is_refused(start_redis, start_proxy, nth, answers, n):
    """As Redis does it: nothing is done; but where MULTI is refused, the others are no transaction."""
    redis = start_redis()
    proxy = start_proxy(redis)
    with Resp.unix(proxy.path, 5) as connection:
        proxy.arm(Fault("error", nth=nth, text="OOM", match=is_any))
        found = []
        for words in (("MULTI",), ("INCR", "n"), ("INCR", "n"), ("EXEC",)):
            try:
                found.append(connection.command(*words))
            except RespError as error:
                found.append(str(error).split()[0] if answers[len(found)] == "EXECABORT" else str(error))
        assert found == answers
        assert redis.command("GET", "n") == n
        assert connection.command("PING") == "PONG"


def test_proxy_holds(start_redis, start_proxy):
    redis = start_redis()
    proxy = start_proxy(redis)
    with Resp.unix(proxy.path, 0.2) as connection:
        proxy.hold_replies()
        connection.send("INCR", "n")
        with pytest.raises(TimeoutError):
            connection.receive()
        assert redis.command("GET", "n") == "1"
        proxy.hold_replies(False)
        assert connection.receive() == 1
        proxy.black_hole()
        connection.send("INCR", "n")
        with pytest.raises(TimeoutError):
            connection.receive()
        assert redis.command("GET", "n") == "1"
        proxy.black_hole(False)
        assert connection.receive() == 2


def test_resp_framing():
    whole = b"*2\r\n$3\r\nGET\r\n*2\r\n:1\r\n$-1\r\n+OK\r\n"
    assert frame_end(whole) == len(whole) - 5
    for n in range(len(whole) - 5):
        assert frame_end(whole[:n]) is None
    assert parse(whole)[0] == [b"GET", [1, None]]


def test_model_counts_visits_as_the_contract_says():
    model = Model()
    t = 1_000_000
    for at, page in ((0, "/a"), (1800, "/b"), (3601, "/c"), (3000, "/d"), (5401, "/e"), (7202, "/f")):
        model.add({"site": "s", "page": page, "user": "u", "ts": t + at})
    # a gap of exactly the timeout continues the visit, an older event starts none
    assert [e.page for e in model.events if e.starts_visit] == ["/a", "/c", "/f"]
    model.add({"site": "s", "page": "/a", "ts": t})
    assert model.counts("s", t, t + 60) == {"pv": 2, "uv": 1, "ips": 0, "visits": 1}
    assert model.counts("s", t, t + 9000, ["/c", "/d"]) == {"pv": 2, "uv": 1, "ips": 0, "visits": 1}


def test_estimates_refuse_what_is_no_estimate():
    assert is_close(10_300, 10_000) and not is_close(10_400, 10_000)
    assert is_close(0, 0) and not is_close(1, 0) and not is_close(0, 1)
    assert [collisions(n) for n in (2, 12, 42, 128, 300)] == [1, 2, 3, 7, 12]
    draw = random.Random(1)  # how many registers 128 elements take
    lost = [128 - len({draw.randrange(16384) for _ in range(128)}) for _ in range(10_000)]
    assert 5 <= max(lost) <= collisions(128), "no less than that is needed"
    good, bad = Estimates(), Estimates()
    for n in range(1, 500):
        good.add("x", n, n)
        bad.add("x", n + 1 if n < 8 else n, n)
    good.check()
    with pytest.raises(AssertionError):
        bad.check()


def test_half_a_transaction_in_redis_s_file_is_none(start_redis):
    """Killed while it wrote, and killed again: neither is the half one there, nor is what followed lost."""
    redis = start_redis(appendonly=True)
    redis.command("SET", "before", "1")
    redis.kill()
    (file,) = (redis.directory / "appendonlydir").glob("*.incr.aof")
    with open(file, "ab") as out:
        out.write(encode((b"MULTI",)) + encode((b"SET", b"half", b"1")) + encode((b"SET", b"other", b"1"))[:-9])
    redis.start()
    with redis.connect() as connection:
        for words in (("MULTI",), ("SET", "behind", "1"), ("EXEC",)):
            connection.command(*words)
    redis.kill()
    redis.start()
    assert [redis.command("EXISTS", key) for key in ("before", "half", "other", "behind")] == [1, 0, 0, 1]


# Clusters and Sentinels

@pytest.mark.cluster
def test_a_cluster_fails_over_and_reshards(cleanup):
    cluster = Cluster()
    cleanup.append(cluster.stop)
    cluster.start()
    assert len(cluster.primaries()) == 3 and all(len(cluster.replicas_of(n)) == 1 for n in cluster.nodes[:3])
    slot = cluster.nodes[0].command("CLUSTER", "KEYSLOT", "x")
    source = cluster.owner(slot)
    target = next(n for n in cluster.primaries() if n is not source)
    for i in range(30):
        source.command("SET", f"{{x}}{i}", i)

    cluster.open_slot(slot, target)
    assert cluster.move_keys(slot, source, target, most=10) == 10
    gone = next(i for i in range(30) if not source.command("CLUSTER", "GETKEYSINSLOT", slot, 30).count(f"{{x}}{i}"))
    with pytest.raises(RespError, match=f"ASK {slot} {target.address}"):
        source.command("GET", f"{{x}}{gone}")
    with pytest.raises(RespError, match="TRYAGAIN"):
        source.command("MGET", *(f"{{x}}{i}" for i in range(30)))
    assert cluster.move_keys(slot, source, target) == 20
    cluster.close_slot(slot, target)
    assert cluster.owner(slot, asked=source) is target and target.command("GET", "{x}29") == "29"
    cluster.move_slots(slot, slot, source)
    cluster.wait_ok()

    replica = cluster.replicas_of(source)[0]
    wait_until(lambda: replica.info("replication")["slave_repl_offset"] == source.info("replication")["master_repl_offset"], "in step")
    source.pause()
    wait_until(replica.is_primary, "promoted")
    source.resume()
    cluster.wait_ok()
    assert cluster.owner(slot) is replica and replica.command("GET", "{x}7") == "7"
    source.kill()
    source.start()
    cluster.wait_ok()
    assert cluster.replicas_of(replica) == [source], "the node that it was"
    cluster.failover(source)
    cluster.wait_ok()
    assert cluster.owner(slot) is source


@pytest.mark.cluster
def test_sentinels_fail_over(cleanup):
    group = SentinelGroup()
    cleanup.append(group.stop)
    group.start()
    old = group.master()
    old.command("SET", "x", "1")
    wait_until(lambda: group.servers[1].info("replication")["slave_repl_offset"] == old.info("replication")["master_repl_offset"], "in step")
    old.kill()
    new = group.wait_new_master(old)
    assert new is group.servers[1] and new.command("GET", "x") == "1"
    old.start()
    group.wait_ok()
    assert not old.is_master()


def test_a_test_that_failed_is_found_again():
    """`make integration` tries once more what failed.  It is found by its id: one that is no path below the root would be left out."""
    made = subprocess.run(["make", "-n", "integration"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    options = shlex.split(re.search(r"-m pytest (.*?-o cache_dir=\S+)", made)[1])
    root = ROOT / (options[options.index("--rootdir") + 1] if "--rootdir" in options else "tests/integration")
    listed = subprocess.run([sys.executable, "-B", "-m", "pytest", *options, "--collect-only", "tests/integration/test_harness.py", "tests/contract/test_docs.py"],
                            cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = {line.split("::")[0] for line in listed.splitlines() if "::" in line}
    assert len(files) == 2 and all((root / name).is_file() for name in files), files
