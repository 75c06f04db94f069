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

from .delivery import Endpoint, Verdict
from .spool import take_all

log = logging.getLogger("tallyd_client")

EVENT_BYTES = 64 << 10  # one event
BATCH_BYTES = 1 << 20   # one request, before gzip
KEY_LIFE_S = 23 * 3600  # tallyd knows a key for 24 hours; one of them is for clocks that differ
LOCK_S = 1.0            # so long track() waits at most, for a slow disk
BACK_OFF_S, BACK_OFF_MAX_S = 0.25, 30.0

_clients = weakref.WeakSet()


@dataclass
class Lane:
    """Lines to send in order, and the spool that keeps them: this process's own, or one that was left behind."""

    spool: object = None
    lines: collections.deque = field(default_factory=collections.deque)  # (line, is it in the spool?)
    begun: tuple = None  # by a process that is gone: (how many lines, key, since), to be sent as they were

    def __post_init__(self):
        if self.spool is not None:
            self.lines.extend((line, True) for line in self.spool.lines)
            self.begun, self.spool.lines = self.spool.batch, []


@dataclass
class Batch:
    lane: Lane
    lines: list
    spooled: bool
    key: str
    doubt_since: float = None  # time.time() of the first attempt whose outcome is not known

    def __post_init__(self):
        self.body = gzip.compress(b"\n".join(self.lines) + b"\n", mtime=0)


class Client:
    """Sends page views to the tallyd at `url`, in the background.  Thread-safe; after a fork each process has its own queue.

    `site` is for events without one.  `bots`: "drop" or "count" events of known robots; None: as the server does.  `spool`:
    a path where the queue outlives the process.  At the interpreter's exit close() waits for `exit_s` at most.
    """

    def __init__(self, url, token=None, site=None, *, bots="drop", spool=None, queue_events=10_000, queue_bytes=16 << 20,
                 batch_events=500, interval_s=1.0, timeout_s=15.0, exit_s=5.0):
        self._endpoint = Endpoint(url, token, bots)
        self._site, self._spool_path = site, spool and os.fspath(spool)
        self._queue_events, self._queue_bytes = queue_events, queue_bytes
        self._batch_events, self._interval_s = batch_events, interval_s
        self._timeout_s, self._exit_s = timeout_s, exit_s
        self._begin()
        self._open()
        _clients.add(self)
        atexit.register(self.close)

    def _begin(self):
        """Nothing queued, no thread.  In the child of a fork too, where another thread may have held the lock."""
        self._changed = threading.Condition(threading.Lock())
        self._mine = threading.local()  # .tracking: this thread is in track()
        self._lanes = [Lane()]  # the last one is this process's own, the ones before were left behind
        self._thread = None
        self._opened = False
        self._bytes = 0         # in the own lane
        self._queued = self._finished = self._hurry = 0  # lines of the own lane: ever queued, done with, wanted at once
        self._oldest = 0.0      # time.monotonic(): since when an event waits
        self._batch_limit = self._batch_events
        self._close_by = None   # time.monotonic(): close() waits until then
        self._counts, self._dropped, self._said = collections.Counter(), collections.Counter(), {}

    def _open(self):
        """Take a spool file, and what processes that are gone have left in theirs."""
        self._opened = True
        if self._spool_path:
            own, left = take_all(self._spool_path)
            self._lanes = [Lane(spool) for spool in [*left, own]]
            recovered = [len(lane.lines) for lane in self._lanes]
            self._counts["recovered"] += sum(recovered)
            self._queued = recovered[-1]
            self._bytes = sum(len(line) for line, _ in self._lanes[-1].lines)
            if sum(recovered):
                self._start()

    def _start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tallyd-client", daemon=True)
            self._thread.start()

    # ---- events in ----------------------------------------------------------------------------------

    def track(self, page=None, *, ts=None, **members):
        """Queue an event of POST /events: page, user, ip, ua, actions and so on; members that are None are left out.  `ts` is
        now if it is not given.  False: the event is dropped, and stats() says why.  Never raises, never waits for the network."""
        event = {"page": page, "ts": ts, **members}
        if getattr(self._mine, "tracking", False):  # a signal's handler, and this thread has the lock already
            self._dropped["busy"] += 1
            return False
        self._mine.tracking = True
        try:
            return self._track(event)
        finally:
            self._mine.tracking = False

    def _track(self, event):
        try:
            line = self._line(event)
        except (TypeError, ValueError, RecursionError) as error:
            line = None
            self._complain("invalid", f"an event cannot be sent: {error}")
        if not self._changed.acquire(timeout=LOCK_S):
            self._dropped["busy"] += 1
            return False
        try:
            return self._queue(line)
        except Exception as error:  # pylint: disable=broad-exception-caught  # an application does not fail for its statistics
            self._drop("invalid", 1, f"an event cannot be queued: {error!r}")
            return False
        finally:
            self._changed.release()

    def _line(self, event):
        ts = event["ts"]
        if ts is None:
            event["ts"] = time.time_ns() // 1_000_000
        elif isinstance(ts, datetime.datetime):
            if ts.tzinfo is None:
                raise ValueError("ts has no time zone")
            event["ts"] = ts.isoformat()
        if event.get("site") is None:
            event["site"] = self._site
        line = json.dumps({k: v for k, v in event.items() if v is not None}, allow_nan=False, separators=(",", ":")).encode()
        if len(line) > EVENT_BYTES:
            raise ValueError(f"{len(line)} bytes, {EVENT_BYTES} at most")
        return line

    def _queue(self, line):
        self._counts["tracked"] += 1
        if line is None or self._close_by is not None:
            self._dropped["invalid" if line is None else "closed"] += 1
            return False
        if not self._opened:
            try:
                self._open()
            except OSError as error:
                self._complain("spool", f"no spool: {error}")
        own = self._lanes[-1]
        if len(own.lines) >= self._queue_events or self._bytes + len(line) > self._queue_bytes:
            self._drop("full", 1, f"{len(own.lines)} events wait: more are dropped")
            return False
        self._start()
        spooled = own.spool is not None and own.spool.append(line)
        if own.spool is not None and not spooled:
            self._counts["unspooled"] += 1
            self._complain("spool", "the spool takes no more: is the disk full? Events are kept in memory only")
        if not own.lines:
            self._oldest = time.monotonic()
        own.lines.append((line, spooled))
        self._bytes += len(line)
        self._queued += 1
        if len(own.lines) in (1, self._batch_limit) or self._bytes >= BATCH_BYTES:
            self._changed.notify_all()
        return True

    # ---- what became of them --------------------------------------------------------------------------

    def stats(self):
        """Counters: tracked + recovered == queued + accepted + rejected + filtered + the sum of dropped + left."""
        with self._changed:
            counts = {name: self._counts[name] for name in
                      ("tracked", "recovered", "accepted", "rejected", "filtered", "left", "requests", "retries", "unspooled")}
            counts["tracked"] += self._dropped["busy"]
            return {**counts, "queued": sum(len(lane.lines) for lane in self._lanes), "dropped": dict(self._dropped)}

    def _drop(self, why, n, text):
        self._dropped[why] += n
        self._complain(why, text)

    def _complain(self, about, text):
        """Into the log, once a minute for each thing."""
        now = time.monotonic()
        if now - self._said.get(about, -60) >= 60:
            self._said[about] = now
            log.warning("%s", text)

    # ---- events out -----------------------------------------------------------------------------------

    def flush(self, timeout_s=30.0):
        """Send what is queued now, without waiting for more.  True: all of it is done with."""
        with self._changed:
            target = self._hurry = self._queued
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._finished >= target and len(self._lanes) == 1, timeout_s)

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
            for lane in self._lanes:
                kept = sum(spooled for _, spooled in lane.lines)
                self._counts["left"] += kept
                if len(lane.lines) > kept:
                    self._drop("exit", len(lane.lines) - kept, f"{len(lane.lines) - kept} events were not sent before the end")
                lane.lines.clear()
                if lane.spool is not None and (self._thread is None or not self._thread.is_alive()):
                    lane.spool.close()
                    lane.spool = None
            return self._counts["left"] + self._dropped["exit"] == 0

    def _run(self):
        while True:
            with self._changed:
                while not self._due():
                    self._changed.wait(self._until_due())
                if self._over():
                    return
                lane, n, key, since = self._choose()
                run = [lane.lines[i] for i in range(n)]
            try:
                goes_on = self._deliver(Batch(lane, [line for line, _ in run], run[0][1], key, since))
            except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
                self._complain("again", f"page views wait: {error!r}")
                goes_on = self._pause(1.0)
            if not goes_on:
                return

    def _over(self):
        """close() was called, and there is nothing left or no time."""
        return self._close_by is not None and (time.monotonic() >= self._close_by or not any(lane.lines for lane in self._lanes))

    def _due(self):
        own = self._lanes[-1].lines
        return (len(self._lanes) > 1 or self._close_by is not None or self._lanes[-1].begun is not None
                or len(own) >= self._batch_limit or self._bytes >= BATCH_BYTES
                or bool(own) and (self._finished < self._hurry or time.monotonic() >= self._oldest + self._interval_s))

    def _until_due(self):
        return max(0.0, self._oldest + self._interval_s - time.monotonic()) if self._lanes[-1].lines else None

    def _choose(self):
        """(lane, how many of its lines, key, in doubt since): what another process began is sent as it was."""
        lane = next(lane for lane in self._lanes if lane.lines)
        if lane.begun is not None:
            (n, key, since), lane.begun = lane.begun, None
            return lane, n, key, since
        n, size, spooled = 0, 0, lane.lines[0][1]
        for line, is_spooled in lane.lines:
            if n == self._batch_limit or is_spooled != spooled or n and size + len(line) >= BATCH_BYTES:
                break
            n, size = n + 1, size + len(line) + 1
        return lane, n, uuid.uuid4().hex, None

    def _deliver(self, batch):
        """Try until the batch is done with or is found too large.  False: close() has no more time for it."""
        attempt = 0
        while True:
            now = time.time()
            if batch.doubt_since is not None and now + self._timeout_s > batch.doubt_since + KEY_LIFE_S:
                return self._finish(batch, "expired", "an attempt a day ago was not answered, and tallyd has forgotten its key: sent again "
                                    "the events might count twice")
            if batch.spooled and batch.doubt_since is None:
                self._keep(lambda: batch.lane.spool.begin(batch.lines, batch.key, now))
            outcome = self._endpoint.post(batch.body, batch.key, self._patience())
            self._counts["requests"] += 1
            if outcome.in_doubt and batch.doubt_since is None:
                batch.doubt_since = now
            if outcome.verdict is Verdict.TAKEN:
                return self._finish(batch, None, "", outcome.answer)
            if outcome.verdict is Verdict.REFUSED or outcome.verdict is Verdict.TOO_LARGE and len(batch.lines) == 1:
                return self._finish(batch, "refused", f"tallyd refuses a batch: {outcome.text}")
            if outcome.verdict is Verdict.TOO_LARGE and batch.doubt_since is None:
                self._batch_limit = len(batch.lines) // 2  # nothing of it was counted: its halves are batches of their own
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
            closing = self._close_by is not None
            if closing and until >= self._close_by:
                return False
            while True:
                now = time.monotonic()
                if self._close_by is not None and not closing:
                    return now < self._close_by
                if now >= until:
                    return True
                self._changed.wait(until - now)

    def _keep(self, change):
        """Change the spool.  Where its disk fails a kill may now count a batch twice, and the log says so."""
        try:
            change()
        except OSError as error:
            self._complain("spool", f"the spool cannot be written: {error}")

    def _finish(self, batch, why, text, answer=None):
        """The batch's lines are done with: counted by tallyd, or dropped because of `why`.  True."""
        n, lane = len(batch.lines), batch.lane
        with self._changed:
            if len(lane.lines) < n:
                return True  # close() has given up on them meanwhile
            if why is not None:
                self._drop(why, n, text)
            else:
                self._said.pop("again", None)
                filtered, rejected = (answer.get(name) if isinstance(answer.get(name), int) else 0 for name in ("dropped_total", "rejected"))
                self._counts.update(filtered=filtered, rejected=rejected, accepted=n - filtered - rejected)
                if rejected:
                    self._complain("rejected", f"tallyd rejects {rejected} of {n} events, the first ones: {answer.get('errors', [])[:3]}")
            for _ in range(n):
                lane.lines.popleft()
            if batch.spooled:
                self._keep(lambda: lane.spool.done(batch.lines))
            if lane is self._lanes[-1]:
                self._finished += n
                self._bytes -= sum(map(len, batch.lines))
                self._oldest = time.monotonic()
            elif not lane.lines:
                self._lanes.remove(lane)
                lane.spool.close()
            self._changed.notify_all()
        return True

    def _after_fork(self):
        """In the child.  What is queued is the parent's to send, and so are its connection, its spool and its lock on the file."""
        for lane in self._lanes:
            if lane.spool is not None:
                lane.spool.close()  # this copy of the descriptor; the parent's has the lock still
        self._endpoint.forget()
        self._begin()


def _after_fork():
    for client in list(_clients):
        client._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
