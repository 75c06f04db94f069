"""A full disk: what is refused says so, and what was acknowledged is there when the disk has room again."""

import ctypes
import os
import secrets
import subprocess

import pytest

from lib.waiting import wait_until

# Names that cannot be compressed: a log is.
PIECE = [{"site": "s", "page": f"/{secrets.token_hex(450)}{n}", "user": n} for n in range(400)]


@pytest.fixture
def small_disk(directory, cleanup):
    """A file system of 3 MiB."""
    libc = ctypes.CDLL(None, use_errno=True)
    where = str(directory / "small").encode()
    os.mkdir(where)
    if libc.mount(b"tmpfs", where, b"tmpfs", 0, b"size=3m") != 0:
        pytest.skip(f"no file system can be mounted: {os.strerror(ctypes.get_errno())}")
    cleanup.append(lambda: libc.umount2(where, 2))
    return directory / "small"


def post_until_refused(tallyd):
    """(the first refusal, how many events were acknowledged)."""
    taken = 0
    for _ in range(200):
        answer = tallyd.client().post(PIECE)
        if answer.status != 202:
            return answer, taken
        taken += len(PIECE)
    raise AssertionError("nothing was refused")


def views(tallyd):
    answer = tallyd.client().get("/pv", site="s", from_="now-1h")
    return answer.json["pv"] if answer.status == 200 else None


@pytest.mark.parametrize("fsync", ["always", "everysec"])
def test_a_full_disk_is_named(start_tallyd, small_disk, fsync):
    """Redis ends where it syncs always, and refuses writes where it syncs every second."""
    tallyd = start_tallyd(argv=["serve", "--listen", "127.0.0.1:0", "--data-dir", small_disk / "data", "--fsync", fsync,
                                "--request-timeout", "2s"])
    refusal, taken = post_until_refused(tallyd)
    assert refusal.status in (503, 504), refusal
    wait_until(lambda: "disk is full" in tallyd.client().post(PIECE[:1]).json["detail"], "the 503 says why")
    assert "disk_full=true" in tallyd.log_text() or "No space left on device" in tallyd.log_text()
    wait_until(lambda: "disk is full" in tallyd.client().get("/readyz").json["detail"], "/readyz says why")
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    unknown = len(PIECE) if refusal.status == 504 else 0
    wait_until(lambda: views(tallyd) in (taken, taken + unknown), "all that was acknowledged counts", deadline_s=40)
    assert tallyd.client().post(PIECE[:1]).status == 202
