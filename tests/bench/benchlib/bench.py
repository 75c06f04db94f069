"""What the sections share: settings, directories, servers that are stopped whatever happens, runs in turn."""

import contextlib
import sys
import time

from . import load
from .machine import memory_kib
from .results import Series


class Contender:
    """Who takes part in a section: run(seed, seconds) gives a record."""

    def __init__(self, key, label, run):
        self.key, self.label, self.run = key, label, run


class Bench:
    def __init__(self, settings, directory):
        self.settings = settings
        self.directory = directory
        self.used = 0
        self.sections = []
        self.peak_kib = {}  # of tallyd, by section
        self.seed = 0
        self.errors = []

    @contextlib.contextmanager
    def serving(self, make, *args, **more):
        """A server in a directory of its own."""
        self.used += 1
        server = make(self.directory / str(self.used), *args, **more)
        try:
            yield server.start()
        finally:
            server.stop()

    def say(self, text):
        print(f"  .. {text}", file=sys.stderr, flush=True)

    def note_memory(self, section, pid):
        kib = memory_kib(pid)
        self.peak_kib[section] = max(kib, self.peak_kib.get(section, 0))

    def in_turn(self, section, contenders, seconds=None, warm_up=True):
        """Warm each up, then run them in turn, the order reversed every other time; their series.

        warm_up: False where a run begins with a fresh server.
        """
        seconds = seconds or self.settings.seconds
        records = {c.key: [] for c in contenders}
        if self.settings.warm_up_s and warm_up:
            for contender in contenders:
                self.seed += 1
                contender.run(self.seed, self.settings.warm_up_s)
        for i in range(self.settings.runs):
            self.say(f"{section.key}: run {i + 1} of {self.settings.runs}")
            for contender in contenders if i % 2 == 0 else reversed(contenders):
                self.seed += 1
                time.sleep(0.2)  # what the one before left to be done
                record = contender.run(self.seed, seconds)
                if record.get("errors"):
                    self.errors.append(f"{section.key}: {contender.label}: {record['errors']} requests failed: " +
                                       ", ".join(f"{record[k]} {k}" for k in load.FAILURES if k in record))
                records[contender.key].append(record)
        section.series += [Series(c.key, c.label, records[c.key]) for c in contenders]

    def http(self, key, label, server, argv_of):
        """A contender that answers HTTP; argv_of(seed, seconds) is the load.  A tallyd's run ends when it has counted."""
        settle = getattr(server, "settle", None)
        return Contender(key, label, lambda seed, seconds: load.measure(
            server.roles, argv_of(seed, seconds), seconds, settle))
