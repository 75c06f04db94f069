"""Every system call of the hot path fails once, short; `make test-faults` has each position.  TALLYD_SEED repeats a run."""

import errno
import json
import signal
import time

import pytest

from lib.call_campaign import START, UNDER_LOAD_TCP, CallReport, Load, starts, under_load, why_it_ended
from lib.client import Unknown
from lib.failing_calls import FOREVER, FailingCalls
from lib.process import Tallyd, cpu_s, sanitized
from lib.waiting import wait_until

STEPS = 9  # of so many positions one, another one in each run

pytestmark = pytest.mark.skipif(sanitized(), reason="a sanitizer's library must be the first")


@pytest.mark.some(1)
@pytest.mark.parametrize("tcp", [False, True], ids=["unix", "tcp"])
def test_calls_under_load(chance, seed, tcp):
    print(f"TALLYD_SEED={seed}")
    report = CallReport()
    under_load(report, tcp, steps=STEPS, chance=chance)
    print(report.line())
    report.check()
    assert report.fired > len(UNDER_LOAD_TCP)


def test_calls_of_a_start(chance, seed):
    print(f"TALLYD_SEED={seed}")
    report = CallReport()
    starts(report, only=set(chance.sample(sorted(START), 6)), steps=STEPS, chance=chance)
    print(report.line())
    report.check()
    assert report.starts > 6


LASTING = {"accept4": errno.EMFILE, "socket": errno.EMFILE, "connect unix": errno.ECONNREFUSED, "read unix": errno.ECONNRESET,
           "send unix": errno.EPIPE, "epoll_ctl": errno.ENOSPC, "write file": errno.ENOSPC}
LASTING_S = 1.0


@pytest.mark.some(3)
@pytest.mark.parametrize("call", LASTING)
def test_a_call_that_fails_for_a_second(cleanup, call):
    """Nothing spins, and afterwards all is as before."""
    load = Load(CallReport())
    cleanup.append(load.close)
    load.start()
    load.calls.arm(call, LASTING[call], times=FOREVER)
    load.redis.command("CLIENT", "KILL", "TYPE", "normal")
    begin_s, end = cpu_s(load.tallyd.pid), time.monotonic() + LASTING_S
    waiting = []
    while time.monotonic() < end or not load.calls.fired:
        waiting.append(load.tallyd.client(0.1))
        try:
            assert waiting[-1].post({"page": "/"}).status in (202, 503, 504)
        except Unknown:
            pass
        assert time.monotonic() < end + 10, "it is called"
    spent_s = cpu_s(load.tallyd.pid) - begin_s
    assert spent_s < 0.5 * LASTING_S, f"{spent_s:.2f} s of processor"
    assert load.calls.disarm() > 0
    for http in waiting:
        http.close()
    load.recover(call)
    load.look_at_process(call)
    load.report.check()


def test_the_main_thread_waits_on(start_redis, start_tallyd, directory):
    """A poll() for which there is no memory ends no service."""
    calls = FailingCalls(directory, "tallyd")
    tallyd = start_tallyd(redis=start_redis(), env=calls.environment())
    calls.arm("poll", errno.ENOMEM, times=30)
    while calls.fired < 30:
        tallyd.signal(signal.SIGHUP)  # wakes the main thread
        assert tallyd.client().post({"page": "/"}).status == 202
    assert tallyd.terminate() == 0
    calls.close()


@pytest.mark.parametrize("query", ["", "?first=1"])
def test_an_answer_that_cannot_be_made(start_redis, start_tallyd, directory, query):
    """The connection is closed, and what was acknowledged counts once, in /metrics, too."""
    calls = FailingCalls(directory, "tallyd")
    tallyd = start_tallyd(redis=start_redis(), env=calls.environment())
    for i in range(5):
        calls.arm("MHD_create_response_from_buffer", errno.ENOMEM)
        with pytest.raises(Unknown):
            tallyd.client().request("POST", "/events" + query, json.dumps({"page": "/", "user": f"u{i}"}), {"Content-Type": "application/json"})
        assert calls.disarm() == 1
    http = tallyd.client()
    assert http.count("pv") == 5 and http.metric("tallyd_events_accepted_total") == 5
    wait_until(lambda: http.metric("tallyd_http_connections") == 1, "the other connections are closed")
    assert tallyd.terminate() == 0
    calls.close()


@pytest.mark.parametrize("call", ["signalfd", "eventfd", "epoll_create1", "pipe2", "fork"])
def test_a_start_that_cannot_be_says_why(directory, cleanup, call):
    calls = FailingCalls(directory, "tallyd")
    tallyd = Tallyd(env=calls.environment())
    cleanup.append(tallyd.stop)
    calls.arm(call, errno.EMFILE if call != "fork" else errno.EAGAIN)
    tallyd.start(wait_ready=False)
    assert tallyd.wait() == 1 and calls.disarm() == 1
    assert why_it_ended(tallyd), tallyd.tail()
    calls.close()


def test_the_harness_harms_what_it_says(start_redis, start_tallyd, directory):
    """One call, as often as it says, and none afterwards."""
    calls = FailingCalls(directory, "tallyd")
    http = start_tallyd(redis=start_redis(), env=calls.environment()).client()
    calls.arm("read unix", errno.ECONNRESET, nth=2, times=3)
    while calls.seen < 5:
        http.get("/pv")
    assert calls.disarm() == 3
    http.accept({"page": "/"})
    calls.arm("read unix", errno.ECONNRESET, nth=10**6)
    http.question("/pv")
    assert calls.fired == 0 < calls.seen
    calls.close()
