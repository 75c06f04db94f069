"""A disk that is slow for seconds, fails once, or is read-only for a while: requests are answered within their deadline, and
what was acknowledged counts once.

It is the embedded Redis whose calls are harmed (failing_calls.py)."""

import errno
import time

import pytest

from lib.failing_calls import FOREVER, HALF, FailingCalls
from lib.ledger import Clients, Ledger
from lib.process import sanitized
from lib.waiting import wait_until

pytestmark = pytest.mark.skipif(sanitized(), reason="a sanitizer's library must be the first")

FEW = ("--partitions", "4", "--request-timeout", "1s")
SLOW_MS = 2500  # each sync: longer than a request may take


@pytest.fixture
def disk(directory, cleanup):
    calls = FailingCalls(directory, "redis-server")
    cleanup.append(calls.close)
    return calls


def answered_in_time(ledger):
    assert not ledger.silent, ledger.silent[:3]
    assert ledger.slowest_s < 2, f"{ledger.slowest_s:.2f} s with a deadline of 1 s"


def not_202(ledger):
    return sum(n for status, n in ledger.statuses.items() if status != 202)


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_every_sync_takes_seconds(start_tallyd, disk, site, fsync):
    tallyd = start_tallyd(*FEW, "--fsync", fsync, env=disk.environment())
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=4, limit=10**6, keyed=2) as clients:
        clients.more()
        disk.arm("fdatasync", nth=1, times=FOREVER, delay_ms=SLOW_MS)
        wait_until(lambda: disk.fired >= 2, "Redis has waited for its disk", pause_s=0.1)
        assert tallyd.client().get("/healthz").status == 200
        if fsync == "always":
            wait_until(lambda: not_202(ledger) > 0, "requests are answered while the disk is slow")
        disk.disarm()
        clients.more()
    ledger.check(tallyd)
    answered_in_time(ledger)


def test_every_write_takes_long(start_tallyd, disk, site):
    """0.1 s each: little is taken, and nothing is lost."""
    tallyd = start_tallyd(*FEW, env=disk.environment())
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=4, limit=10**6, keyed=2) as clients:
        clients.more()
        disk.arm("write file", nth=1, times=FOREVER, delay_ms=100)
        wait_until(lambda: disk.fired >= 20, "Redis has written slowly", pause_s=0.1)
        disk.disarm()
        clients.more()
    ledger.check(tallyd)
    answered_in_time(ledger)


@pytest.mark.some(3)
@pytest.mark.parametrize("call, error", [
    ("fdatasync", errno.EIO), ("fdatasync", errno.ENOSPC), ("fdatasync", errno.EINTR), ("write file", errno.EIO),
    ("write file", errno.ENOSPC), ("write file", errno.EROFS), ("write file", errno.EINTR), ("write file", HALF)],
    ids=lambda value: errno.errorcode.get(value, value))
def test_one_call_fails(start_tallyd, disk, site, chance, call, error):
    """Redis repeats it, or ends with a word and is started again, with the end of its file mended."""
    tallyd = start_tallyd(*FEW, env=disk.environment())
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=4, limit=10**6, keyed=2) as clients:
        for _ in range(4):
            clients.more(5)
            disk.arm(call, error, nth=chance.randint(1, 20))
            wait_until(lambda: disk.fired > 0, "the call has failed")
            disk.disarm()
            clients.more(5)
    ledger.check(tallyd)


def test_read_only_for_a_while(start_tallyd, disk, site):
    """Writes fail, and no file opens to be written: Redis cannot even start.  /readyz and the 503 say so, and when the disk is
    as before the service goes on by itself."""
    tallyd = start_tallyd(*FEW, env=disk.environment())
    ledger = Ledger(site)
    with Clients(ledger, tallyd, n=4, limit=10**6, keyed=2) as clients:
        clients.more()
        disk.arm("write file", errno.EROFS, times=FOREVER)
        wait_until(lambda: disk.fired > 0, "a write has failed", pause_s=0.002)
        disk.arm("open to write", errno.EROFS, times=FOREVER)
        wait_until(lambda: disk.fired > 0, "a start has failed")
        ready = wait_until(lambda: (a := tallyd.client().get("/readyz")).status == 503 and a, "it is not ready")
        assert ready.json["detail"], ready
        begin = time.monotonic()
        assert tallyd.client().post({"page": "/"}).status in (503, 504)
        assert time.monotonic() - begin < 2
        disk.disarm()
        clients.more()
    ledger.check(tallyd)
    answered_in_time(ledger)
    assert "redis-server could not be started" in tallyd.log_text() or "redis-server ended" in tallyd.log_text()
