"""A clock for redis-server that a test moves forward, while it runs (tests/preload/moved_clock.c).

tallyd knows no other clock than Redis's, so this moves tallyd's time too.  Only redis-server gets it;
its monotonic clock stays true.
"""

import ctypes
import mmap
import os
import pathlib
import time
from datetime import datetime, timezone

from .process import ROOT

NS_PER_S = 10**9


class Moved(ctypes.Structure):
    """struct moved.  Each number is written at once, and never 0 in between, as struct.pack_into() has it."""

    _fields_ = [("offset_ns", ctypes.c_int64), ("still_ns", ctypes.c_int64)]


def epoch(text):
    """'2026-03-10 10:56', '2026-03-10T10:56:20Z', '2026-03-10' -> epoch seconds, UTC."""
    return int(datetime.fromisoformat(text.replace("Z", "")).replace(tzinfo=timezone.utc).timestamp())


def rfc3339(at_s):
    return datetime.fromtimestamp(int(at_s), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class FakeClock:
    """Runs at the real speed from the moment it is given; only forward, but by set_back()."""

    def __init__(self, directory, start):
        self.path = pathlib.Path(directory) / "clock"
        self.path.write_bytes(bytes(ctypes.sizeof(Moved)))
        with open(self.path, "r+b") as file:
            self.moved = Moved.from_buffer(mmap.mmap(file.fileno(), ctypes.sizeof(Moved)))
        self.offset_s = None
        self._write(epoch(start) - time.time() if isinstance(start, str) else start - time.time())

    def environment(self):
        library = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "moved_clock.so").resolve()
        assert library.exists(), f"{library} is missing: make {library}"
        return {"LD_PRELOAD": str(library), "MOVED_CLOCK": str(self.path), "TZ": "UTC"}

    def _write(self, offset_s, still_s=0):
        assert self.offset_s is None or offset_s >= self.offset_s - 1e-3, "the clock only moves forward"
        self.offset_s = offset_s
        self.moved.offset_ns = round(offset_s * NS_PER_S)
        self.moved.still_ns = still_s * NS_PER_S

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
