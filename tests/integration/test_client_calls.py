"""System calls of the commands of a client that fail once, and an output that cannot be written.  TALLYD_SEED repeats a run."""

import errno
import os
import subprocess

import pytest

from lib.client_campaign import CLUSTER, FOLLOW, IMPORT, NETWORK, ClientReport, Follows, Imports, Prints, Resets, sweep
from lib.failing_calls import FailingCalls
from lib.process import binary, environment, run, sanitized
from lib.world import FOREVER

TALLYD_ARGS = FOREVER
STEPS = 5  # of so many positions one, another one in each run


@pytest.fixture
def calls(directory):
    if sanitized():
        pytest.skip("a sanitizer's library must be the first")
    calls = FailingCalls(directory, "tallyd")
    yield calls
    calls.close()


def check(report, table):
    print(report.line())
    report.check()
    assert report.fired >= len(table)


def test_calls_of_an_import(tallyd, site, tmp_path, calls, chance):
    report = ClientReport()
    sweep(report, calls, IMPORT, Imports(report, tallyd, calls, site, tmp_path), steps=STEPS, chance=chance)
    check(report, IMPORT)


@pytest.mark.parametrize("part", [0, 1])
def test_calls_of_a_follower(tallyd, site, tmp_path, calls, chance, part):
    report = ClientReport()
    names = sorted(FOLLOW)[part::2]
    table = {name: FOLLOW[name] for name in chance.sample(names, 3)}
    sweep(report, calls, table, Follows(report, tallyd, calls, site, tmp_path), steps=STEPS, chance=chance)
    check(report, table)


@pytest.mark.parametrize("form", [(), ("--csv",), ("--json",)])
def test_calls_of_a_query(tallyd, http, site, calls, chance, form):
    http.accept([{"site": site, "page": f"/{n}", "user": "u"} for n in range(40)])
    report = ClientReport()
    words = ("query", "pages", "--site", site, "--from", "now-1d/d", "--to", "now+1d/d", "--url", tallyd.url, *form)
    sweep(report, calls, NETWORK, Prints(report, calls, *words), steps=2, chance=chance)
    check(report, NETWORK)


def test_calls_of_cluster_status(tallyd, redis, calls, chance):
    report = ClientReport()
    sweep(report, calls, CLUSTER, Prints(report, calls, "cluster", "status", "--redis", redis.url), steps=2, chance=chance)
    check(report, CLUSTER)


def test_calls_of_resetting_a_partition(start_redis, start_tallyd, calls, chance):
    """It is reset, or it is said that it may be; and never twice."""
    redis = start_redis()
    start_tallyd("--partitions", "4", redis=redis).terminate()
    report = ClientReport()
    sweep(report, calls, CLUSTER, Resets(report, calls, redis), steps=2, chance=chance)
    check(report, CLUSTER)


PRINTING = {
    "help": ("--help",), "version": ("--version",), "import help": ("import", "--help"), "query help": ("query", "--help"),
    "cluster help": ("cluster", "--help"), "token help": ("token", "--help"), "config": ("config",), "token": ("token", "new", "read", "me"),
    "table": ("query", "pages", "URL"), "csv": ("query", "pages", "--csv", "URL"), "json": ("query", "pages", "--json", "URL"),
    "import": ("import", "LOG", "URL"), "import in JSON": ("import", "--json", "LOG", "URL"), "status": ("cluster", "status", "REDIS"),
}


@pytest.mark.parametrize("words", PRINTING.values(), ids=PRINTING)
def test_an_output_that_cannot_be_written(tallyd, redis, tmp_path, words):
    """Whoever reads the exit status alone knows that the text is not there."""
    log = tmp_path / "empty.log"
    log.write_text("")
    meant = {"URL": ("--url", tallyd.url), "REDIS": ("--redis", redis.url), "LOG": (str(log),)}
    argv = [word for given in words for word in meant.get(given, (given,))]
    assert run(*argv).returncode == 0
    with open("/dev/full", "w") as full:
        done = subprocess.run([binary(), *argv], stdout=full, stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    assert done.returncode == 1 and os.strerror(errno.ENOSPC) in done.stderr, done


def test_an_output_that_takes_a_part(tallyd, http, site):
    """A pipe that does not wait takes some of a long answer, and the rest is lost: that is no success."""
    http.accept([{"site": site, "page": f"/{n:0400}", "user": "u"} for n in range(400)])
    read, write = os.pipe()
    os.set_blocking(write, False)
    try:
        done = subprocess.run([binary(), "query", "pages", "--limit", "400", "--csv", "--site", site, "--url", tallyd.url], stdout=write,
                              stderr=subprocess.PIPE, text=True, env=environment(), timeout=60)
    finally:
        os.close(write)
        os.close(read)
    assert done.returncode == 1 and os.strerror(errno.EAGAIN) in done.stderr, done
