"""An output of a command that cannot be written."""

import errno
import os
import subprocess

import pytest

from lib.process import binary, environment, run
from lib.world import FOREVER

TALLYD_ARGS = FOREVER

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
