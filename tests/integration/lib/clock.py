"""A clock for redis-server that a test moves forward, while it runs (libfaketime).

tallyd knows no other clock than Redis's, so this moves tallyd's time too.  Only redis-server gets it;
its monotonic clock stays true.  Debian's redis-server is linked with jemalloc, on which libfaketime
recurses while it starts (wolfcw/libfaketime#130): libc is put before it, so its malloc is taken.
"""

import glob
import os
import time
from datetime import datetime, timezone


def epoch(text):
    """'2026-03-10 10:56', '2026-03-10T10:56:20Z', '2026-03-10' -> epoch seconds, UTC."""
    return int(datetime.fromisoformat(text.replace("Z", "")).replace(tzinfo=timezone.utc).timestamp())


def rfc3339(at_s):
    return datetime.fromtimestamp(int(at_s), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def find_library(name):
    for pattern in (f"/usr/lib/*/faketime/{name}", f"/usr/lib/*/{name}", f"/lib/*/{name}"):
        found = sorted(glob.glob(pattern))
        if found:
            return found[0]
    raise RuntimeError(f"{name} is missing: apt install libfaketime")


class FakeClock:
    """Runs at the real speed from the moment it is given; only forward, but by set_back()."""

    def __init__(self, directory, start):
        self.file = os.path.join(directory, "faketime")
        self.offset_s = None
        self._write(epoch(start) - time.time() if isinstance(start, str) else start - time.time())

    def environment(self):
        return {
            "LD_PRELOAD": f"{find_library('libfaketime.so.1')}:{find_library('libc.so.6')}",
            "FAKETIME_TIMESTAMP_FILE": self.file,
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_DISABLE_SHM": "1",
            "TZ": "UTC",
        }

    def _write(self, offset_s):
        assert self.offset_s is None or offset_s >= self.offset_s - 1e-3, "the clock only moves forward"
        self.offset_s = offset_s
        with open(self.file + ".new", "w", encoding="ascii") as out:
            out.write(f"{offset_s:+.3f}s\n")
        os.rename(self.file + ".new", self.file)

    def stand_still(self, at, back=False):
        """At a whole second (of epoch), until it is set again: what a request takes does not show.  back: it may be earlier."""
        if back:
            self.offset_s = None
        self.set(at)
        with open(self.file + ".new", "w", encoding="ascii") as out:
            out.write(datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%d %H:%M:%S\n"))
        os.rename(self.file + ".new", self.file)

    def now(self):
        return time.time() + self.offset_s

    def advance(self, seconds):
        self._write(self.offset_s + seconds)

    def set_back(self, seconds):
        """As an administrator does with a clock that was wrong."""
        self.offset_s -= seconds
        self._write(self.offset_s)

    def set(self, at):
        """Move to a time: epoch seconds or a text that epoch() reads."""
        self._write((epoch(at) if isinstance(at, str) else at) - time.time())
