"""A bounded queue and the thread that empties it: 500 events or one second a batch, and each batch counts once."""

import atexit
import json
import logging
import os
import random
import threading
import time
from collections import Counter

from .delivery import Endpoint
from .spool import Batch, take_left

log = logging.getLogger("tallyd_client")

EVENT_BYTES = 64 << 10  # one event
BATCH_BYTES = 1 << 20   # one request, before gzip
KEY_LIFE_S = 23 * 3600  # tallyd knows a key for 24 hours; one of them is for clocks that differ
BACK_OFF_S, BACK_OFF_MAX_S = 0.25, 30.0
COUNTERS = ("tracked", "recovered", "accepted", "rejected", "filtered", "left", "requests", "retries", "unspooled")

_clients = set()  # that are not closed


class Client:
    """Sends page views to the tallyd at `url`, in the background.  Thread-safe; after a fork each process has its own queue.

    `site` is for events without one.  `bots`: "drop" or "count" events of known robots; None: as the server does.  `spool`:
    the beginning of names of files, so that the queue outlives the process.  At the interpreter's exit close() waits for `exit_s`.
    """

    def __init__(self, url, token=None, site=None, *, bots="drop", spool=None, queue_events=10_000, queue_bytes=16 << 20,
                 batch_events=500, interval_s=1.0, timeout_s=15.0, exit_s=5.0):
        self._endpoint = Endpoint(url, token, bots)
        self._site, self._spool = site, spool and os.path.abspath(spool)
        self._queue_events, self._queue_bytes, self._batch_events = queue_events, queue_bytes, batch_events
        self._interval_s, self._timeout_s, self._exit_s = interval_s, timeout_s, exit_s
        self._begin(take_left(self._spool) if spool else [])
        _clients.add(self)

    def _begin(self, batches):
        """Also in the child of a fork, where another thread may have held the lock."""
        self._changed = threading.Condition()  # whose lock a signal's handler may have already
        self._tracking = False           # someone is in track()
        self._batches = batches          # the last one may be open
        self._most = self._batch_events  # in a request
        self._closed = False
        self._counts, self._dropped, self._said = Counter(recovered=self._queued()), Counter(), {}
        self._thread = threading.Thread(target=self._run, name="tallyd-client", daemon=True)
        if batches:
            self._thread.start()

    def track(self, page=None, *, ts=None, **members):
        """Queue an event of POST /events: page, user, ip, ua, actions and so on; members that are None are left out.  `ts` is
        now if it is not given.  False: the event is dropped, and stats() says why.  Never raises, never waits for the network."""
        event = {"page": page, "ts": time.time_ns() // 1_000_000 if ts is None else ts, **members}
        with self._changed:
            self._counts["tracked"] += 1
            if self._tracking:  # and is interrupted by a signal, whose handler this is
                self._dropped["busy"] += 1
                return False
            self._tracking = True
            try:
                return self._queue(self._line(event))
            except Exception as error:  # pylint: disable=broad-exception-caught  # an application does not fail for its statistics
                return self._drop("invalid", 1, f"an event cannot be sent: {error!r}")
            finally:
                self._tracking = False

    def _line(self, event):
        if event.get("site") is None:
            event["site"] = self._site
        line = json.dumps({k: v for k, v in event.items() if v is not None}, allow_nan=False, separators=(",", ":")).encode()
        if len(line) > EVENT_BYTES:
            raise ValueError(f"{len(line)} bytes, {EVENT_BYTES} at most")
        return line

    def _queue(self, line):
        queued, batches = self._queued(), self._batches
        if self._closed:
            return self._drop("closed", 1, "the client is closed")
        if queued >= self._queue_events or sum(batch.size for batch in batches) + len(line) > self._queue_bytes:
            return self._drop("full", 1, f"{queued} events wait: more are dropped")
        if not batches or not batches[-1].open:
            batches.append(Batch(self._spool))
        if not batches[-1].append(line):
            batches.append(Batch())  # the file has the lines before this one
            batches[-1].append(line)
        batch = batches[-1]
        if self._spool and batch.fd is None:
            self._counts["unspooled"] += 1
            self._complain("spool", "the spool takes no more: is the disk full? Events are kept in memory only")
        batch.open = len(batch.lines) < self._most and batch.size < BATCH_BYTES - EVENT_BYTES
        if len(batch.lines) == 1 or not batch.open:
            self._changed.notify_all()
        if self._thread.ident is None:
            self._thread.start()
        return True

    def _queued(self):
        return sum(batch.left() for batch in self._batches)

    def stats(self):
        """Counters: tracked + recovered == queued + accepted + rejected + filtered + the sum of dropped + left."""
        with self._changed:
            return {**dict.fromkeys(COUNTERS, 0), **self._counts, "queued": self._queued(), "dropped": dict(self._dropped)}

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

    def _keep(self, change, *args):
        """Change the spool.  Where its disk fails a kill may now count a batch twice, and the log says so."""
        try:
            change(*args)
        except OSError as error:
            self._complain("spool", f"the spool cannot be written: is the disk full? {error}")

    def flush(self, timeout_s=30.0):
        """Send what is queued now, without waiting for more.  True: all of it is done with."""
        with self._changed:
            if not self._batches:
                return True
            last = self._batches[-1]
            last.open = False
            self._changed.notify_all()
            return self._changed.wait_for(lambda: last not in self._batches, timeout_s)

    def close(self, timeout_s=None):
        """Send what is queued, for `timeout_s` at most (exit_s), and take no more.  What is left stays in the spool, for the next
        process; without a spool it is dropped.  True: nothing is left."""
        _clients.discard(self)
        self._closed = True
        self.flush(self._exit_s if timeout_s is None else timeout_s)
        with self._changed:
            for batch in self._batches:
                if batch.fd is not None:
                    self._counts["left"] += batch.left()
                    batch.close(keep=True)
                else:
                    self._drop("exit", batch.left(), f"{batch.left()} events were not sent before the end")
            self._batches.clear()
            self._changed.notify_all()
            return self._counts["left"] + self._dropped["exit"] == 0

    def _run(self):
        failed = 0  # attempts since one that ended a request
        while (batch := self._next_batch()) is not None:
            try:
                wait_s = self._attempt(batch)
            except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
                self._complain("again", f"page views wait: {error!r}")
                wait_s = 1.0
            failed = 0 if wait_s is None else failed + 1
            if failed:
                back_off = min(BACK_OFF_S * 2 ** failed, BACK_OFF_MAX_S)
                with self._changed:
                    was = self._closed  # a close() ends the first wait: there is no time for a long one
                    self._changed.wait_for(lambda: self._closed != was, max(wait_s, random.uniform(back_off / 2, back_off)))

    def _next_batch(self):
        """The first batch, when it is due; None: close() has been called and there is no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._closed)
            if not self._batches:
                return None
            first = self._batches[0]
            due_s = first.born + self._interval_s - time.monotonic()
            self._changed.wait_for(lambda: not first.open or self._batches[-1:] != [first], due_s)
            first.open = False
            return first

    def _attempt(self, batch):
        """Send the batch's next lines.  None: they are done with, or too many; else so many seconds tallyd wants to be left alone."""
        now = time.time()
        if batch.since and now + self._timeout_s > batch.since + KEY_LIFE_S:
            return self._finish(batch, "expired", "an attempt a day ago was not answered, and tallyd has forgotten its key: sent again "
                                "the events might count twice")
        if not batch.since:
            batch.n = min(self._most, batch.left())
            self._keep(batch.mark, now)
        lines, key = batch.lines[batch.done:batch.done + batch.n], f"{batch.key}-{batch.done}-{batch.n}"
        verdict, text, wait_s, answer = self._endpoint.post(lines, key, self._timeout_s)
        self._counts["requests"] += 1
        if verdict == "taken":
            return self._finish(batch, answer=answer)
        if verdict == "refused" or verdict == "too large" and batch.n == 1:
            return self._finish(batch, "refused", f"tallyd refuses a batch: {text}")
        if verdict == "too large" and not batch.since:
            self._most = batch.n // 2  # nothing of it is counted: its halves are requests of their own
            return None
        if verdict == "in doubt":
            batch.since = batch.since or now
        self._complain("again", f"page views wait: {text}")
        self._counts["retries"] += 1
        return wait_s

    def _finish(self, batch, why=None, text="", answer=None):
        """The batch's request is done with: counted by tallyd, or dropped because of `why`."""
        with self._changed:
            if batch not in self._batches:
                return  # close() has given up on it meanwhile
            if why is not None:
                self._drop(why, batch.n, text)
            else:
                filtered, rejected = (answer.get(name) if isinstance(answer.get(name), int) else 0 for name in ("dropped_total", "rejected"))
                self._counts.update(filtered=filtered, rejected=rejected, accepted=batch.n - filtered - rejected)
                if rejected:
                    self._complain("rejected", f"tallyd rejects {rejected} of {batch.n} events, the first ones: {str(answer.get('errors'))[:300]}")
            batch.done, batch.n, batch.since = batch.done + batch.n, 0, 0
            if batch.left():
                self._keep(batch.mark, 0)
            else:
                self._batches.remove(batch)
                self._keep(batch.close)
            self._changed.notify_all()


@atexit.register
def _close_all():
    for client in list(_clients):
        client.close()


def _after_fork():
    """In the child.  What is queued is the parent's to send."""
    for client in list(_clients):
        for batch in client._batches:
            batch.close(keep=True)  # this copy of the descriptor; the parent's has the lock still
        client._begin([])


os.register_at_fork(after_in_child=_after_fork)
