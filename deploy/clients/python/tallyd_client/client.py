"""A bounded queue and the thread that empties it: 500 events or one second a batch, and each batch counts once."""

import atexit
import collections
import datetime
import gzip
import json
import logging
import os
import random
import threading
import time
import uuid
import weakref
from dataclasses import dataclass, field

from . import spool as spools
from .delivery import Endpoint, Verdict

log = logging.getLogger("tallyd_client")

EVENT_BYTES = 64 << 10  # one event
BATCH_BYTES = 1 << 20   # one request, before gzip
KEY_LIFE_S = 23 * 3600  # tallyd knows a key for 24 hours; one of them is for clocks that differ
LOCK_S = 1.0            # so long track() waits at most, for a slow disk
BACK_OFF_S, BACK_OFF_MAX_S = 0.25, 30.0

_clients = weakref.WeakSet()


@dataclass(eq=False)
class Batch:
    """Lines, of which the first `done` are done with and the next `n` are a request, first sent at `since`."""

    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    lines: list = field(default_factory=list)
    size: int = 0
    file: spools.File = None  # which has all the lines, or none
    open: bool = True         # takes more lines
    done: int = 0
    n: int = 0
    since: float = 0.0        # time.time(); 0: nothing can have been counted of these n

    def left(self):
        return len(self.lines) - self.done


class Client:
    """Sends page views to the tallyd at `url`, in the background.  Thread-safe; after a fork each process has its own queue.

    `site` is for events without one.  `bots`: "drop" or "count" events of known robots; None: as the server does.  `spool`:
    the beginning of names of files, so that the queue outlives the process.  At the interpreter's exit close() waits for `exit_s`.
    """

    def __init__(self, url, token=None, site=None, *, bots="drop", spool=None, queue_events=10_000, queue_bytes=16 << 20,
                 batch_events=500, interval_s=1.0, timeout_s=15.0, exit_s=5.0):
        self._endpoint = Endpoint(url, token, bots)
        self._site, self._spool = site, spool and os.fspath(spool)
        self._queue_events, self._queue_bytes = queue_events, queue_bytes
        self._batch_events, self._interval_s = batch_events, interval_s
        self._timeout_s, self._exit_s = timeout_s, exit_s
        self._begin()
        for file in spools.take_left(self._spool) if spool else ():
            lines, key, done, n, since = file.left
            self._batches.append(Batch(key, lines, sum(map(len, lines)), file, False, done, n, since))
            self._counts["recovered"] += len(lines) - done
            self._start()
        _clients.add(self)
        atexit.register(self.close)

    def _begin(self):
        """Nothing queued, no thread.  In the child of a fork too, where another thread may have held the lock."""
        self._changed = threading.Condition(threading.Lock())
        self._mine = threading.local()  # .tracking: this thread is in track()
        self._batches = collections.deque()
        self._thread = self._hurry = None  # the last batch that flush() waits for
        self._oldest = 0.0       # time.monotonic(): since when an event of the first batch waits
        self._batch_limit = self._batch_events
        self._close_by = None    # time.monotonic(): close() waits until then
        self._counts, self._dropped, self._said = collections.Counter(), collections.Counter(), {}

    def _start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tallyd-client", daemon=True)
            self._thread.start()

    # ---- events in ----------------------------------------------------------------------------------

    def track(self, page=None, *, ts=None, **members):
        """Queue an event of POST /events: page, user, ip, ua, actions and so on; members that are None are left out.  `ts` is
        now if it is not given.  False: the event is dropped, and stats() says why.  Never raises, never waits for the network."""
        if getattr(self._mine, "tracking", False):  # a signal's handler, and this thread has the lock already
            self._dropped["busy"] += 1
            return False
        self._mine.tracking = True
        try:
            line = self._line({"page": page, "ts": ts, **members})
            if not self._changed.acquire(timeout=LOCK_S):
                self._dropped["busy"] += 1
                return False
            try:
                return self._queue(line)
            finally:
                self._changed.release()
        except Exception as error:  # pylint: disable=broad-exception-caught  # an application does not fail for its statistics
            self._counts["tracked"] += 1
            return self._drop("invalid", 1, f"an event cannot be sent: {error!r}")
        finally:
            self._mine.tracking = False

    def _line(self, event):
        ts = event["ts"]
        if isinstance(ts, datetime.datetime):
            if ts.tzinfo is None:
                raise ValueError("ts has no time zone")
            ts = ts.isoformat()
        event["ts"] = time.time_ns() // 1_000_000 if ts is None else ts
        if event.get("site") is None:
            event["site"] = self._site
        line = json.dumps({k: v for k, v in event.items() if v is not None}, allow_nan=False, separators=(",", ":")).encode()
        if len(line) > EVENT_BYTES:
            raise ValueError(f"{len(line)} bytes, {EVENT_BYTES} at most")
        return line

    def _queue(self, line):
        waiting = self._waiting()
        full = waiting >= self._queue_events or sum(batch.size for batch in self._batches) + len(line) > self._queue_bytes
        self._counts["tracked"] += 1
        if self._close_by is not None or full:
            return self._drop("full" if full else "closed", 1, f"{waiting} events wait: more are dropped")
        self._start()
        batch = self._batch_for(line)
        if batch.file is not None and not batch.file.append(line):
            batch.open = False  # the file has the lines before this one
            batch = self._new_batch(spooled=False)
        if self._spool and batch.file is None:
            self._counts["unspooled"] += 1
            self._complain("spool", "the spool takes no more: is the disk full? Events are kept in memory only")
        batch.lines.append(line)
        batch.size += len(line) + 1
        batch.open = len(batch.lines) < self._batch_limit and batch.size < BATCH_BYTES
        if len(batch.lines) == 1 or not batch.open:
            self._changed.notify_all()
        return True

    def _batch_for(self, line):
        if self._batches and self._batches[-1].open and self._batches[-1].size + len(line) < BATCH_BYTES:
            return self._batches[-1]
        return self._new_batch(spooled=bool(self._spool))

    def _new_batch(self, spooled):
        batch = Batch()
        if spooled:
            self._keep(lambda: setattr(batch, "file", spools.create(self._spool, batch.key)))
        if not self._batches:
            self._oldest = time.monotonic()
        self._batches.append(batch)
        return batch

    # ---- what became of them --------------------------------------------------------------------------

    def _waiting(self):
        return sum(batch.left() for batch in self._batches)

    def stats(self):
        """Counters: tracked + recovered == queued + accepted + rejected + filtered + the sum of dropped + left."""
        with self._changed:
            counts = {name: self._counts[name] for name in
                      ("tracked", "recovered", "accepted", "rejected", "filtered", "left", "requests", "retries", "unspooled")}
            counts["tracked"] += self._dropped["busy"]
            return {**counts, "queued": self._waiting(), "dropped": {why: n for why, n in self._dropped.items() if n}}

    def _drop(self, why, n, text):
        self._dropped[why] += n
        self._complain(why, text)
        return False

    def _complain(self, about, text):
        """Into the log, once a minute for each thing."""
        now = time.monotonic()
        if now - self._said.get(about, -60) >= 60:
            self._said[about] = now
            log.warning("%s", text)

    def _keep(self, change):
        """Change the spool.  Where its disk fails a kill may now count a batch twice, and the log says so."""
        try:
            change()
        except OSError as error:
            self._complain("spool", f"the spool cannot be written: is the disk full? {error}")

    # ---- events out -----------------------------------------------------------------------------------

    def flush(self, timeout_s=30.0):
        """Send what is queued now, without waiting for more.  True: all of it is done with."""
        with self._changed:
            if not self._batches:
                return True
            last = self._hurry = self._batches[-1]
            last.open = False
            self._changed.notify_all()
            return self._changed.wait_for(lambda: last not in self._batches, timeout_s)

    def close(self, timeout_s=None):
        """Send what is queued, for `timeout_s` at most (exit_s), and take no more.  What is left stays in the spool, for the next
        process; without a spool it is dropped.  True: nothing is left."""
        with self._changed:
            if self._close_by is None:
                self._close_by = time.monotonic() + (self._exit_s if timeout_s is None else timeout_s)
                self._changed.notify_all()
        atexit.unregister(self.close)
        if self._thread is not None:
            self._thread.join(max(0.0, self._close_by - time.monotonic()) + 0.1)
        with self._changed:
            for batch in self._batches:
                if batch.file is not None:
                    self._counts["left"] += batch.left()
                    batch.file.close(keep=True)
                else:
                    self._drop("exit", batch.left(), f"{batch.left()} events were not sent before the end")
            self._batches.clear()
            return self._counts["left"] + self._dropped["exit"] == 0

    def _run(self):
        while True:
            with self._changed:
                while not self._due():
                    first = self._batches[0].lines if self._batches else None
                    self._changed.wait(max(0.0, self._oldest + self._interval_s - time.monotonic()) if first else None)
                if self._close_by is not None and (time.monotonic() >= self._close_by or not self._batches):
                    return
                batch = self._batches[0]
                batch.open = False
            try:
                goes_on = self._deliver(batch)
            except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
                self._complain("again", f"page views wait: {error!r}")
                goes_on = self._pause(1.0)
            if not goes_on:
                return

    def _due(self):
        if not self._batches or self._close_by is not None:
            return self._close_by is not None
        return not self._batches[0].open or self._hurry in self._batches or time.monotonic() >= self._oldest + self._interval_s

    def _deliver(self, batch):
        """Send the batch's next lines until they are done with or found too many.  False: close() has no more time for it."""
        attempt = 0
        if not batch.since:
            batch.n = min(self._batch_limit, batch.left())
        lines = batch.lines[batch.done:batch.done + batch.n]
        body = gzip.compress(b"\n".join(lines) + b"\n", mtime=0)
        while True:
            now = time.time()
            if batch.since and now + self._timeout_s > batch.since + KEY_LIFE_S:
                return self._finish(batch, "expired", "an attempt a day ago was not answered, and tallyd has forgotten its key: sent again "
                                    "the events might count twice")
            if batch.file is not None and not batch.since:
                self._keep(lambda: batch.file.mark(batch.key, batch.done, batch.n, now))
            outcome = self._endpoint.post(body, f"{batch.key}-{batch.done}-{batch.n}", self._patience())
            self._counts["requests"] += 1
            if outcome.in_doubt and not batch.since:
                batch.since = now
            if outcome.verdict is Verdict.TAKEN:
                return self._finish(batch, None, "", outcome.answer)
            if outcome.verdict is Verdict.REFUSED or outcome.verdict is Verdict.TOO_LARGE and batch.n == 1:
                return self._finish(batch, "refused", f"tallyd refuses a batch: {outcome.text}")
            if outcome.verdict is Verdict.TOO_LARGE and not batch.since:
                self._batch_limit = batch.n // 2  # nothing of it was counted: its halves are requests of their own
                return True
            self._complain("again", f"page views wait: {outcome.text}")
            self._counts["retries"] += 1
            attempt += 1
            back_off = min(BACK_OFF_S * 2 ** attempt, BACK_OFF_MAX_S)
            if not self._pause(max(outcome.wait_s, random.uniform(back_off / 2, back_off))):
                return False

    def _patience(self):
        close_by = self._close_by
        return self._timeout_s if close_by is None else min(self._timeout_s, max(0.1, close_by - time.monotonic()))

    def _pause(self, seconds):
        """Wait before the next attempt; a close() meanwhile makes that the last one.  False: there is no time for one."""
        until = time.monotonic() + seconds
        with self._changed:
            if self._close_by is None:
                if not self._changed.wait_for(lambda: self._close_by is not None, seconds):
                    return True
                return time.monotonic() < self._close_by
            if until < self._close_by:
                self._changed.wait_for(lambda: False, seconds)
            return until < self._close_by

    def _finish(self, batch, why, text, answer=None):
        """The batch's request is done with: counted by tallyd, or dropped because of `why`.  True."""
        with self._changed:
            if batch not in self._batches:
                return True  # close() has given up on it meanwhile
            if why is not None:
                self._drop(why, batch.n, text)
            else:
                self._said.pop("again", None)
                filtered, rejected = (answer.get(name) if isinstance(answer.get(name), int) else 0 for name in ("dropped_total", "rejected"))
                self._counts.update(filtered=filtered, rejected=rejected, accepted=batch.n - filtered - rejected)
                if rejected:
                    self._complain("rejected", f"tallyd rejects {rejected} of {batch.n} events, the first ones: {answer.get('errors', [])[:3]}")
            batch.done, batch.n, batch.since = batch.done + batch.n, 0, 0.0
            if batch.left() == 0:
                self._batches.remove(batch)
                self._oldest = time.monotonic()
                if batch.file is not None:
                    self._keep(lambda: batch.file.close(keep=False))
            elif batch.file is not None:
                self._keep(lambda: batch.file.mark(batch.key, batch.done, 0, 0))
            self._changed.notify_all()
        return True

    def _after_fork(self):
        """In the child.  What is queued is the parent's to send, and so are its connection, its files and their locks."""
        for batch in self._batches:
            if batch.file is not None:
                batch.file.close(keep=True)  # this copy of the descriptor; the parent's has the lock still
        self._endpoint.forget()
        self._begin()


def _after_fork():
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
