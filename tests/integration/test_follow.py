"""`tallyd import --follow`: a log that grows and rotates counts once, whatever is killed meanwhile."""

import contextlib
import errno
import fcntl
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import time

import pytest

from lib.failing_calls import FailingCalls
from lib.follow import Follower, Log, Replay, row
from lib.http_proxy import Answer, HttpProxy, harm
from lib.process import binary, free_port, run, sanitized
from lib.tokens import token_line
from lib.waiting import wait_until
from lib.world import FOREVER

TALLYD_ARGS = FOREVER
BEGIN = 1_700_000_000


def rows(n, start=0):
    return "".join(row(BEGIN + i, i) for i in range(start, start + n))


def pv(http, site):
    return http.count("pv", site=site, from_="2023-01-01", to="now")


def await_pv(http, site, n):
    wait_until(lambda: pv(http, site) >= n, f"{n} page views of {site}")
    assert pv(http, site) == n


@pytest.fixture
def log(tmp_path, cleanup):
    log = Log(tmp_path)
    cleanup.append(log.close)
    return log


@pytest.fixture
def follow(tallyd, site, log, cleanup):
    def start(*options, url=None, path=None):
        follower = Follower(path or log.path, url or tallyd.url, *options, site=site)
        cleanup.append(follower.stop)
        return follower.start()
    return start


def test_what_is_written_counts_within_a_second(http, site, log, follow):
    log.write(rows(5))
    follower = follow()
    await_pv(http, site, 5)
    took_s = []
    for n in (6, 9, 700, 800, 2000):
        log.write(rows(n - pv(http, site), pv(http, site)))
        begin = time.monotonic()
        await_pv(http, site, n)
        took_s.append(time.monotonic() - begin)
    assert sorted(took_s)[2] < 1.0, took_s  # the median: a machine that is shared may stand still
    summary = follower.end()
    assert summary["lines"] == summary["events accepted"] == 2000


def test_a_log_that_never_rests_counts_too(http, site, log, follow):
    """Lines come faster than any silence."""
    follow()
    n, end = 0, time.monotonic() + 20
    while pv(http, site) == 0 and time.monotonic() < end:
        log.write(rows(1, n))
        n += 1
    assert 0 < pv(http, site) and time.monotonic() < end
    await_pv(http, site, n)


def test_a_line_counts_when_it_ends(http, site, log, follow):
    follow()
    text = rows(2)
    log.write(text[:-20])
    await_pv(http, site, 1)
    log.write(text[-20:-1])
    log.write("\n" + rows(1, 2))
    await_pv(http, site, 3)


def test_people_are_counted_and_formats_are_known(http, site, log, follow):
    log.write(row(BEGIN, 1) + row(BEGIN, 1, target="/a.css") + row(BEGIN, 2, status=500) + "nonsense\n" + row(BEGIN, 3))
    follower = follow("--json")
    await_pv(http, site, 2)
    follower.terminate()
    summary = json.loads(follower.out.read_text())
    assert (summary["lines"], summary["counted"]) == (5, 2)
    assert {k: v for k, v in summary["left_out"].items() if v} == {"malformed": 1, "file": 1, "error": 1}
    assert follower.said("line 4 is malformed")


def test_rotation_by_rename(http, site, log, follow):
    """The server goes on with the renamed file for a while."""
    follower = follow()
    log.write(rows(10))
    await_pv(http, site, 10)
    log.write(rows(5, 10))
    log.rename(late=rows(3, 15))
    log.write(rows(4, 18))
    await_pv(http, site, 22)
    for n in range(5):
        log.rename(late=rows(1, 22 + 2 * n))
        log.write(rows(1, 23 + 2 * n))
    await_pv(http, site, 32)
    assert follower.end()["events accepted"] == 32


def test_a_file_of_another_format_behind_more_than_are_remembered(http, site, log, follow):
    """The oldest of 57 files is forgotten: the next one is not taken for the one that had its number."""
    follow()
    for n in range(56):
        log.write(rows(1, n))
        log.path.rename(log.path.with_name(f"access.log-{20260101 + n}"))
        log.open()
    log.write(rows(1, 56))
    await_pv(http, site, 57)
    state = log.path.with_name(".access.log.tallyd")
    wait_until(lambda: len(json.loads(state.read_text())["files"]) == 56, "the oldest file is forgotten")
    for n, line in ((57, row(BEGIN, 57)), (58, json.dumps({"page": "/", "ts": BEGIN}) + "\n")):
        log.path.rename(log.path.with_name(f"access.log-{20260101 + n}"))
        log.open()
        log.write(line)
        await_pv(http, site, n + 1)


def test_the_renamed_file_is_written_on_after_the_new_one_was_opened(http, site, log, follow):
    follow()
    log.write(rows(10))
    old = os.dup(log.file)
    log.rename()
    log.write(rows(1, 10))
    await_pv(http, site, 11)
    os.write(old, rows(2, 11).encode())
    os.close(old)
    await_pv(http, site, 13)


def test_the_last_line_of_a_replaced_file_needs_no_end(http, site, log, follow):
    follow()
    log.write(rows(2)[:-1])
    await_pv(http, site, 1)
    log.rename()
    log.write(rows(1, 2))
    await_pv(http, site, 3)


def test_rotation_by_truncation(http, site, log, follow):
    follow()
    log.write(rows(100))
    await_pv(http, site, 100)
    log.copytruncate()
    log.write(rows(7, 100))
    await_pv(http, site, 107)
    log.write(rows(50, 107))
    log.copytruncate()  # what was not read yet is in the copy
    log.write(rows(60, 157))
    await_pv(http, site, 217)


@pytest.mark.parametrize("is_killed", [False, True])
@pytest.mark.parametrize("times", [1, 2])
def test_truncation_of_a_log_that_was_seen_only_empty(http, site, log, follow, is_killed, times):
    """Nothing tells its content from what comes behind, but that there is a rotated file that nobody has seen."""
    follower = follow()
    log.write(rows(10))
    await_pv(http, site, 10)
    log.rename()
    path = log.path.with_name(".access.log.tallyd")
    wait_until(lambda: len(json.loads(path.read_text())["files"]) == 2, "the empty log was seen")
    if is_killed:
        follower.kill()
    else:
        follower.signal(signal.SIGSTOP)
    for n in range(times):
        log.write(rows(5, 10 + 5 * n))
        log.copytruncate()
    log.write(rows(3, 10 + 5 * times))
    if is_killed:
        follower.start()
    else:
        follower.signal(signal.SIGCONT)
    await_pv(http, site, 13 + 5 * times)


def test_truncation_without_a_copy_is_said_in_bytes(http, site, log, follow):
    follower = follow()
    log.write(rows(3))
    await_pv(http, site, 3)
    read = log.path.stat().st_size
    follower.signal(signal.SIGSTOP)
    os.truncate(log.path, 0)
    log.write(rows(1, 50))
    follower.signal(signal.SIGCONT)
    await_pv(http, site, 4)
    follower.kill()
    log.write(rows(5, 60))
    size = log.path.stat().st_size
    os.truncate(log.path, 0)
    log.write(rows(1, 90))
    assert size > read
    follower.start()
    await_pv(http, site, 5)


def test_a_hole_at_the_beginning(http, site, log, follow):
    """A server without O_APPEND writes on where it was in a log that was truncated."""
    log.close()
    log.file = os.open(log.path, os.O_WRONLY | os.O_CREAT)
    follow()
    log.write(rows(3000))
    await_pv(http, site, 3000)
    os.truncate(log.path, 0)
    log.write(rows(5, 3000))
    await_pv(http, site, 3005)


@pytest.mark.parametrize("rotations", [0, 1, 3])
def test_killed_and_started_again(http, site, log, follow, rotations):
    follower = follow()
    log.write(rows(1500))
    wait_until(lambda: pv(http, site) > 0, "some of it")
    follower.kill()
    log.write(rows(10, 1500))
    for n in range(rotations):
        log.rename(late=rows(1, 1510 + 11 * n))
        log.write(rows(10, 1511 + 11 * n))
    follower.start()
    await_pv(http, site, 1510 + 11 * rotations)
    assert "missing" not in follower.log_text()


@pytest.mark.skipif(sanitized(), reason="a sanitizer's library must be the first")
def test_a_file_that_is_renamed_while_it_is_looked_for_is_read_first(tallyd, http, site, tmp_path, cleanup):
    """Its open() finds nothing, once, at each position.  What was written behind it waits: else a visit were missing."""
    calls, minute, n = FailingCalls(tmp_path, "tallyd"), int(time.time()) // 60 * 60 - 7200, 0
    while n == 0 or calls.fired:
        n += 1
        (tmp_path / str(n)).mkdir()
        log, name = Log(tmp_path / str(n)), f"{site}.{n}"
        cleanup.append(log.close)
        follower = Follower(log.path, tallyd.url, site=name)
        cleanup.append(follower.stop)
        follower.start()
        log.write(row(minute, 1))
        await_pv(http, name, 1)
        follower.kill()
        log.write(row(minute + 60, 2))
        log.rename()
        log.write(row(minute + 60 + 2400, 2))
        follower.env = calls.environment()
        calls.arm("open without waiting", errno.ENOENT, nth=n)
        follower.start()
        await_pv(http, name, 3)
        assert http.count("visits", site=name, from_=minute, to=minute + 7200) == 3, (n, follower.log_text())
        calls.disarm()
    assert n > 3
    calls.close()


def test_killed_and_truncated_twice_meanwhile(http, site, log, follow):
    follower = follow()
    log.write(rows(20))
    await_pv(http, site, 20)
    follower.kill()
    for n in range(2):
        log.write(rows(20, 20 + 20 * n))
        log.copytruncate()
    log.write(rows(5, 60))
    follower.start()
    await_pv(http, site, 65)


@pytest.mark.parametrize("rotation", ["rename", "copytruncate", "compressed"])
@pytest.mark.parametrize("back_s", [600, 3 * 86400])
@pytest.mark.parametrize("is_written", [False, True])
def test_a_clock_that_was_set_back_while_it_was_away(http, site, log, follow, rotation, back_s, is_written):
    """Before the log rotated twice: what was written between has an earlier time than what was read.  Not even the log's last lines
    need be written after that (is_written)."""
    def age(*paths):
        for path in paths:
            os.utime(path, ns=2 * (time.time_ns() - back_s * 10**9,))

    def rotate():
        if rotation == "copytruncate":
            log.copytruncate()
            age(log.rotated(1))
        else:
            log.rename()
        age(log.path)

    log.rename()
    log.rotated(1).write_text(rows(1))
    os.utime(log.rotated(1), (time.time() - 30 * 86400,) * 2)
    log.write(rows(10, 1))
    follower = follow()
    await_pv(http, site, 10)
    follower.kill()
    if is_written:
        log.write(rows(5, 11))
        age(log.path)
    unread = log.path.stat().st_size if is_written else 0
    rotate()
    log.write(rows(7, 16))
    age(log.path)
    rotate()
    if rotation == "compressed":
        squeeze(log.rotated(2))
        second = log.rotated(1).stat().st_size
        squeeze(log.rotated(1))
    follower.start()
    if rotation == "compressed":
        wait_until(lambda: follower.said(f"missing: {second} bytes of {log.rotated(1)}.gz, from byte 0 on"), "it is said")
        assert not is_written or f"missing: {unread - len(rows(10, 1))} bytes of {log.rotated(2)}.gz" in follower.log_text()
    else:
        await_pv(http, site, 22 if is_written else 17)
    log.write(rows(2, 23))
    await_pv(http, site, 12 if rotation == "compressed" else 24 if is_written else 19)
    assert follower.said("missing") == (rotation == "compressed")


def test_what_had_rotated_before_the_first_start_is_not_counted(http, site, log, follow):
    log.write(rows(10))
    log.rename()
    log.write(rows(3, 10))
    follower = follow()
    await_pv(http, site, 3)
    follower.kill()
    log.rename()
    log.write(rows(2, 13))
    follower.start()
    await_pv(http, site, 5)


def test_a_log_whose_name_has_a_number_is_another_one(http, site, log, follow):
    """It grows all the time, and is no rotated file of this log."""
    other = log.path.with_name("access-443.log")
    other.write_text(rows(5))
    log.write(rows(3))
    follower = follow()
    await_pv(http, site, 3)
    with other.open("a") as file:
        file.write(rows(5))
    log.rename()
    log.write(rows(2, 3))
    await_pv(http, site, 5)
    follower.terminate()
    follower.start()
    log.write(rows(2, 5))
    await_pv(http, site, 7)


def squeeze(path):
    """As gzip does: the times stay."""
    about = path.stat()
    packed = path.with_name(path.name + ".gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    os.utime(packed, ns=(about.st_atime_ns, about.st_mtime_ns))
    path.unlink()
    return packed


def test_compressed_meanwhile_is_said_in_bytes(http, site, log, follow):
    """To the byte, with the command that counts them."""
    follower = follow()
    log.write(rows(10))
    await_pv(http, site, 10)
    follower.terminate()
    read = log.path.stat().st_size
    log.write(rows(4, 10))
    missing = log.path.stat().st_size - read
    log.rename()
    log.write(rows(3, 14))
    whole = log.path.stat().st_size
    log.rename()
    first, second = squeeze(log.rotated(2)), squeeze(log.rotated(1))
    log.write(rows(2, 17))
    follower.start()
    await_pv(http, site, 12)
    said = follower.log_text()
    assert f"missing: {missing} bytes of {first}, from byte {read} on" in said, said
    assert f"missing: {whole} bytes of {second}, from byte 0 on" in said, said
    assert f"zcat {first} | tail -c +{read + 1} | tallyd import -` counts them, with this site, token and other options" in said


def test_the_command_for_what_is_missing_names_the_fields_too(http, site, log, follow, tallyd):
    """Of a W3C log: a line is nothing without the line "#Fields:"."""
    fields = "#Fields: date time cs-method cs-uri-stem c-ip sc-status cs(User-Agent)\n"

    def lines(n, start):
        return "".join(f"2023-11-14 22:13:{start + i} GET /{i} 192.0.2.{i} 200 Firefox\n" for i in range(n))

    follower = follow()
    log.write("#Version: 1.0\n" + fields + lines(3, 10))
    await_pv(http, site, 3)
    follower.terminate()
    log.write(lines(4, 20))
    log.rename()
    squeeze(log.rotated(1))
    follower.start()
    wait_until(lambda: follower.said("counts them"), "what is missing is said")
    command = re.search("`(.*) \\| tallyd import -`", follower.log_text())[1]
    missing = subprocess.run(["sh", "-c", command], capture_output=True, check=True, timeout=20).stdout
    rest = log.path.with_name("rest")
    rest.write_bytes(missing)
    assert run("import", "--url", tallyd.url, "--site", site, rest).returncode == 0
    await_pv(http, site, 7)


def test_deleted_meanwhile_is_said(http, site, log, follow):
    follower = follow()
    log.write(rows(10))
    await_pv(http, site, 10)
    follower.terminate()
    read = log.path.stat().st_size
    log.rename()
    log.rotated(1).unlink()
    log.write(rows(2, 10))
    follower.start()
    await_pv(http, site, 12)
    assert follower.said(f"read up to byte {read}; whether more was written is not known")


def test_compressed_or_deleted_while_it_runs_misses_nothing(http, site, log, follow):
    """The file stays open.  (Also when nobody answers: the log is the queue.)"""
    follower = follow()
    log.write(rows(10))
    await_pv(http, site, 10)
    log.write(rows(4, 10))
    log.rename(late=rows(1, 14))
    squeeze(log.rotated(1))
    log.write(rows(2, 15))
    await_pv(http, site, 17)
    assert "missing" not in follower.log_text()


def test_a_log_that_is_not_there_yet(http, site, tmp_path, follow):
    path = tmp_path / "later.log"
    follower = follow(path=path)
    wait_until(lambda: follower.said("is not there yet"), "it waits")
    assert not follower.said("following")
    path.write_text(rows(3))
    await_pv(http, site, 3)
    assert follower.said(f"following {path} from byte 0 on")


def test_a_directory_that_is_not_there_yet(tallyd, http, site, tmp_path, cleanup):
    """It is not said to be one that may not be read."""
    path = tmp_path / "later" / "access.log"
    follower = Follower(tmp_path / "access.log", tallyd.url, "--state", tmp_path / "state", site=site)
    follower.argv[-1] = path  # the follower's own output is there
    cleanup.append(follower.stop)
    follower.start()
    wait_until(lambda: follower.said(f"cannot read {path.parent}/: No such file or directory"), "it says why")
    path.parent.mkdir()
    path.write_text(rows(3))
    await_pv(http, site, 3)
    assert not follower.said("denied")


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if os.geteuid() == 0 else ()


@pytest.mark.skipif(NOBODY != () and subprocess.run([*NOBODY, binary(), "--version"], capture_output=True, check=False).returncode != 0,
                    reason="root may read everything, and nobody else may run this tallyd")
def test_a_log_that_may_not_be_read(tallyd, http, site, directory, cleanup):
    """Neither at the first look nor after a rotation; what was written meanwhile counts when it may be.  If the log is replaced
    before, its bytes are missing."""
    directory.chmod(0o777)
    log = Log(directory)
    cleanup.append(lambda: shutil.rmtree(directory))
    log.path.chmod(0)
    follower = Follower(log.path, tallyd.url, site=site)
    follower.argv = [*NOBODY, *follower.argv]
    cleanup.append(follower.stop)
    follower.start()
    log.write(rows(3))
    wait_until(lambda: follower.said("Permission denied"), "it says so")
    log.path.chmod(0o644)
    await_pv(http, site, 3)
    log.rename()
    log.path.chmod(0)
    log.write(rows(2, 3))
    log.path.chmod(0o644)
    await_pv(http, site, 5)
    log.rename()
    log.path.chmod(0)
    log.write(rows(2, 5))
    log.rename()
    log.write(rows(2, 7))
    await_pv(http, site, 7)
    log.close()
    assert follower.said(f"missing: {log.rotated(1).stat().st_size} bytes of {log.rotated(1)}: it cannot be read: Permission denied")


@pytest.mark.parametrize("make, options, status, word", [
    (lambda p: p.mkdir(), (), 1, "is a directory"),
    (lambda p: os.mkfifo(p), (), 1, "is no regular file"),
    (lambda p: p.write_text(""), ("--state", "/no/such/directory/state"), 1, "/no/such/directory/state"),
    (lambda p: p.with_name(".it.tallyd").write_text("{}"), (), 1, "is no state"),
    (lambda p: p.with_name(".it.tallyd").write_text("\0" * 100), (), 1, "is no state"),
])
def test_what_cannot_be_followed(tallyd, tmp_path, make, options, status, word):
    path = tmp_path / "it"
    make(path)
    done = run("import", "--follow", "--url", tallyd.url, *options, path)
    assert done.returncode == status and word in done.stderr, done


def test_standard_input_cannot_be_followed(tallyd):
    done = run("import", "--follow", "--url", tallyd.url, "-")
    assert done.returncode == 2 and "--follow needs a file" in done.stderr


def test_one_follower_a_state(tallyd, http, site, log, follow, tmp_path):
    state = tmp_path / "elsewhere"
    log.write(rows(1))
    follow("--state", state)
    await_pv(http, site, 1)
    assert stat.S_IMODE(state.stat().st_mode) == 0o600 and not log.path.with_name(".access.log.tallyd").exists()
    log.write(rows(1, 1))
    await_pv(http, site, 2)
    done = run("import", "--follow", "--state", state, "--url", tallyd.url, log.path)
    assert done.returncode == 1 and "in use" in done.stderr


@pytest.mark.parametrize("other", [("--site", "other"), (), ("--site-from-host", "--site", "{site}")],
                         ids=["other", "default", "host"])
def test_a_state_is_of_one_site(tallyd, http, site, log, follow, other):
    """What was read has counted for that site, and another one would begin in the middle of the log."""
    log.write(rows(3))
    follower = follow()
    await_pv(http, site, 3)
    follower.end()
    log.write(rows(1, 3))
    done = run("import", "--follow", *(word.format(site=site) for word in other), "--url", tallyd.url, *FOREVER, log.path)
    assert done.returncode == 1
    assert f".access.log.tallyd says how far a log was read with --site {site}, not with --site" in done.stderr
    follow()
    await_pv(http, site, 4)


def test_a_state_of_an_older_version_gets_the_site_of_the_next_follower(http, site, log, follow):
    log.write(rows(2))
    follow().end()
    await_pv(http, site, 2)
    path = log.path.with_name(".access.log.tallyd")
    state = json.loads(path.read_text())
    assert state.pop("sites") == f"--site {site}"
    path.write_text(json.dumps(state))
    log.write(rows(1, 2))
    follow().end()
    await_pv(http, site, 3)
    assert json.loads(path.read_text())["sites"] == f"--site {site}"


def test_who_was_just_killed_may_have_the_state_for_a_moment(tallyd, http, site, log, tmp_path, cleanup):
    """The kernel takes a killed process's locks when it is done with it, and kill -9 does not wait for that."""
    state = tmp_path / "state"
    log.write(rows(1))
    follower = Follower(log.path, tallyd.url, "--state", state, site=site)
    cleanup.append(follower.stop)
    with open(state, "wb") as killed:
        fcntl.flock(killed, fcntl.LOCK_EX)
        follower.spawn(follower.argv)
        wait_until(lambda: not follower.alive() or state in opened(follower.pid), "it has tried", pause_s=0.002)
    await_pv(http, site, 1)
    follower.end()


def opened(pid):
    """The files that a process has open."""
    paths = set()
    for link in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            paths.add(link.readlink())
    return paths


def follow_alone(follow):
    """A follower that waits for a server, and where that is to be."""
    address = f"127.0.0.1:{free_port()}"
    follower = follow(url=f"http://{address}")
    wait_until(lambda: follower.said("waiting, and trying again"), "it waits")
    return follower, address


def test_the_server_comes_later(start_redis, start_tallyd, site, log, follow):
    log.write(rows(1100))
    follower, address = follow_alone(follow)
    log.rename()
    log.write(rows(3, 1100))
    http = start_tallyd(*FOREVER, redis=start_redis(), listen=address).client()
    await_pv(http, site, 1103)
    wait_until(lambda: follower.said("answers again"), "it says so")


def test_what_is_written_while_the_server_is_away_counts_when_it_is_back(start_redis, start_tallyd, site, log, follow):
    """Without a further line."""
    log.write(rows(3))
    _, address = follow_alone(follow)
    log.write(rows(4, 3))
    http = start_tallyd(*FOREVER, redis=start_redis(), listen=address).client()
    await_pv(http, site, 7)


def test_what_is_there_at_sigterm_counts(http, site, log, follow):
    """Lines that were written a moment ago wait for more; when it ends they do not."""
    log.write(rows(5))
    follower = follow()
    await_pv(http, site, 5)
    log.write(rows(3, 5))
    assert follower.end()["events accepted"] == 8 and pv(http, site) == 8


def test_sigterm_while_the_server_is_away(site, log, follow):
    log.write(rows(10))
    follower = follow(url=f"http://127.0.0.1:{free_port()}")
    wait_until(lambda: follower.said("waiting, and trying again"), "it waits")
    follower.end()


def test_a_server_that_refuses_ends_it(start_redis, start_tallyd, site, log, follow, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(token_line("secret", "ingest,read me"))
    tallyd = start_tallyd(*FOREVER, "--tokens", tokens, redis=start_redis())
    log.write(rows(10))
    follower = follow(url=tallyd.url)
    assert follower.wait() == 1
    assert follower.said("401") and follower.said("nothing is lost")


def test_lines_that_are_none(http, site, log, follow):
    """A line of 1 MiB that comes in pieces, NUL, half of a UTF-8 sequence, an impossible date."""
    follower = follow()
    log.write(rows(1))
    await_pv(http, site, 1)
    for _ in range(16):
        log.write("x" * 65536)
    await_pv(http, site, 1)
    log.write("y\n" + rows(1, 1) + row(BEGIN, 2, target="/a\0b") + row(BEGIN, 2, target="/\udcc3") +
              row(BEGIN, 2).replace("/2023:", "/9999:").replace("/Nov/", "/Foo/") + "\n" + rows(1, 2))
    await_pv(http, site, 3)
    assert follower.end()["malformed"] == 5, follower.tail()


def test_a_server_that_takes_few_events_at_once(start_redis, start_tallyd, site, log, follow):
    tallyd = start_tallyd(*FOREVER, "--ingest-limit", "100000/1s", "--ingest-burst", "100", redis=start_redis())
    log.write(rows(1500))
    follower = follow(url=tallyd.url)
    await_pv(tallyd.client(), site, 1500)
    assert follower.end()["events accepted"] == 1500


def kill_in_doubt(follower, log, age_s=0, cut=0):
    """Kill it, and leave the state of one killed age_s ago before the answer to its first piece, which was `cut` bytes shorter than
    what was counted.  How many bytes were."""
    path = log.path.with_name(".access.log.tallyd")
    wait_until(lambda: "piece" not in json.loads(path.read_text()), "its offset is saved")
    follower.kill()
    state = json.loads(path.read_text())
    sent = state["files"][0]["offset"]
    state["files"][0].update(offset=0, lines=0)
    state["piece"] = {"file": 0, "to": sent - cut, "sent_at": int(time.time()) - age_s, "last": False}
    path.write_text(json.dumps(state))
    return sent


def test_other_options_count_nothing_twice(http, site, log, follow, tallyd, cleanup):
    """A piece that another follower may have sent counts as that one sent it."""
    follower = follow()
    log.write(rows(30))
    await_pv(http, site, 30)
    kill_in_doubt(follower, log)
    log.write(rows(1, 30))
    follower = follow("--exclude", "/1")
    await_pv(http, site, 31)


def test_a_piece_that_was_sent_more_than_a_day_ago(http, site, log, follow):
    """Its key is forgotten: it is not sent again, and that is said."""
    follower = follow()
    log.write(rows(30))
    await_pv(http, site, 30)
    sent = kill_in_doubt(follower, log, age_s=86400)
    log.write(rows(1, 30))
    follower.start()
    await_pv(http, site, 31)
    assert follower.said(f"{sent} bytes of {log.path}, from byte 0 on, are in doubt")


def test_a_question_whose_answer_is_lost(tallyd, http, site, log, follow, cleanup):
    """The server has an empty list under the piece's key then: the piece is not counted."""
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    between.plan = harm(Answer(500), Answer(413), Answer(502, applied=True))
    log.write(rows(30))
    follower = follow(url=between.url)
    await_pv(http, site, 30)
    assert [len(request.body) for request in between.requests].count(2) == 2, "asked, and asked again"
    assert follower.end()["events accepted"] == 30


@pytest.mark.parametrize("is_counted", [True, False])
def test_a_piece_in_doubt_whose_bytes_are_compressed(http, site, log, follow, is_counted):
    """Its key is asked."""
    follower = follow()
    log.write(rows(30))
    await_pv(http, site, 30)
    sent = kill_in_doubt(follower, log, cut=0 if is_counted else 1)
    log.write(rows(1, 30))
    size = log.path.stat().st_size
    log.rename()
    squeeze(log.rotated(1))
    log.write(rows(1, 31))
    follower.start()
    await_pv(http, site, 31)
    read = sent if is_counted else 0
    assert follower.said(f"missing: {size - read} bytes of"), follower.log_text()


def test_an_hour_in_ten_seconds(chance, tmp_path, site, cleanup):
    """Rotations, and kills of the follower, of tallyd and of Redis; the long one is part of `make test-faults`."""
    replay = Replay(chance, tmp_path, site, lines=6000, seconds=10)
    cleanup.append(replay.close)
    replay.run(harms=14)
    replay.check()
