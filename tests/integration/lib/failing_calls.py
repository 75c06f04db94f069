"""System calls of a program that fail, or take long, where a test says so (tests/preload/failing_calls.c).

    calls = FailingCalls(directory, "tallyd")
    tallyd = Tallyd(env=calls.environment())
    calls.arm("read unix", errno.ECONNRESET, nth=3)    # the third read() from a Unix socket from now on
"""

import mmap
import os
import pathlib
import struct

from .process import ROOT

HALF = "half"  # in place of an errno: it is made with half of the bytes
LAYOUT = struct.Struct("=IiiiIIII32s")  # struct plan
AT = {name: 4 * i for i, name in enumerate(("armed", "nth", "times", "error", "half", "delay_ms", "seen", "fired"))}
FOREVER = 2**30


class FailingCalls:
    """What the processes with this environment, of a program's name, meet.  Nothing until arm()."""

    made = 0

    def __init__(self, directory, program):
        self.path = pathlib.Path(directory) / f"calls{FailingCalls.made}"
        FailingCalls.made += 1
        self.program = program
        self.path.write_bytes(bytes(LAYOUT.size))
        with open(self.path, "r+b") as file:
            self.plan = mmap.mmap(file.fileno(), LAYOUT.size)

    def environment(self):
        library = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "failing_calls.so").resolve()
        assert library.exists(), f"{library} is missing: make {library}"
        return {"LD_PRELOAD": str(library), "FAILING_CALLS": str(self.path), "FAILING_CALLS_OF": self.program}

    def arm(self, call, error=0, nth=1, times=1, delay_ms=0):
        """The nth call of this name from now on, and so many in all.  error: an errno, HALF, or 0 where it is only delayed."""
        self._put("armed", 0)
        half = error == HALF
        LAYOUT.pack_into(self.plan, 0, 0, nth, times, 0 if half else error, half, delay_ms, 0, 0, call.encode())
        self._put("armed", 1)

    def disarm(self):
        """How many calls were harmed."""
        self._put("armed", 0)
        return self.fired

    def _put(self, name, value):
        struct.pack_into("=I", self.plan, AT[name], value)

    def _get(self, name):
        return struct.unpack_from("=I", self.plan, AT[name])[0]

    @property
    def fired(self):
        return self._get("fired")

    @property
    def seen(self):
        """Calls of this name since arm()."""
        return self._get("seen")

    def close(self):
        self.plan.close()
        self.path.unlink()
