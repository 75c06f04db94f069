"""A clock for redis-server that a test moves forward, while it runs (tests/preload/moved_clock.c).

tallyd knows no other clock than Redis's, so this moves tallyd's time too.  Only redis-server gets it;
its monotonic clock stays true.
"""

import mmap
import os
import pathlib
import struct
import time
from datetime import datetime, timezone

NS_PER_S = 10**9
LAYOUT = struct.Struct("@qq")  # struct moved.  Native: each number is written at once


def epoch(text):
    """'2026-03-10 10:56', '2026-03-10T10:56:20Z', '2026-03-10' -> epoch seconds, UTC."""
    return int(datetime.fromisoformat(text.replace("Z", "")).replace(tzinfo=timezone.utc).timestamp())


def rfc3339(at_s):
    return datetime.fromtimestamp(int(at_s), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeClock:
    """Runs at the real speed from the moment it is given; only forward, but by set_back()."""

    def __init__(self, directory, start):
        self.path = pathlib.Path(directory) / "clock"
        self.path.write_bytes(bytes(LAYOUT.size))
        with open(self.path, "r+b") as file:
            self.moved = mmap.mmap(file.fileno(), LAYOUT.size)
        self.offset_s = None
        self._write(epoch(start) - time.time() if isinstance(start, str) else start - time.time())

    def environment(self):
        library = (pathlib.Path(__file__).parents[3] / os.environ.get("TALLYD_TOOLS", "build/tools") / "moved_clock.so").resolve()
        assert library.exists(), f"{library} is missing: make {library}"
        return {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self.path), "TZ": "UTC"}

    def _write(self, offset_s, still_s=0):
        assert self.offset_s is None or offset_s >= self.offset_s - 1e-3, "the clock only moves forward"
        self.offset_s = offset_s
        struct.pack_into("@q", self.moved, 0, round(offset_s * NS_PER_S))
        struct.pack_into("@q", self.moved, 8, still_s * NS_PER_S)

    def stand_still(self, at, back=False):
        """At a whole second (of epoch), until it is set again: what a request takes does not show.  back: it may be earlier."""
        if back:
            self.offset_s = None
        self._write(at - time.time(), still_s=int(at))

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
