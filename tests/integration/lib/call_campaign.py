"""Campaigns of system calls that fail (failing_calls.py): each call of the hot path once, with each error that Linux has for
it, and each call of a start.

under_load(): a round is requests of all kinds; in the first one the first call of a kind fails, in the second one the second,
until a round has no such call any more.  In the end the counts are audited; no thread is gone, no descriptor is left open,
and nothing spins.
starts(): tallyd serves, or it ends with a sentence, and takes its Redis with it.

Left out, because Linux never does it: a non-blocking eventfd_write() fails only when its counter is full; clock_gettime() does
not fail.  Left out, because a call alone cannot act it: EAGAIN and half of the bytes on a client's socket.  The kernel tells
the edge-triggered epoll of libmicrohttpd when there is more, and here there would be no edge.
"""

import errno
import json
import os
import subprocess
import time
from dataclasses import dataclass

from .client import Unknown
from .failing_calls import HALF, FailingCalls
from .ledger import Ledger
from .process import Redis, Tallyd, cpu_s, free_port, orphans, short_directory
from .report import Faults
from .waiting import wait_until

FEW = ("--partitions", "2", "--readers", "1", "--threads", "1")
TIMEOUT_S = 2.0
LATE_S = TIMEOUT_S + 0.7  # an answer; the machine may be busy
IDLE_S = 0.3
BIG = 3000  # events
POSITIONS_MOST = 80  # beyond them are others of the same kind: what runs in the background makes calls all the time
JSON = {"Content-Type": "application/json"}

E = errno
NO_DESCRIPTOR = (E.EMFILE, E.ENFILE)
NO_MEMORY = (E.ENOMEM, E.ENOBUFS)
CUT_OFF = (E.ECONNRESET, E.ETIMEDOUT)

# name: errors.  A call that a round does not make fails the campaign.
UNDER_LOAD = {
    "read unix": (E.EINTR, E.EAGAIN, *CUT_OFF, E.ENOMEM, HALF),
    "send unix": (E.EINTR, E.EAGAIN, E.EPIPE, E.ECONNRESET, *NO_MEMORY, HALF),
    "recv inet": (E.EINTR, *CUT_OFF, E.ENOMEM),
    "sendmsg inet": (E.EINTR, E.EPIPE, E.ECONNRESET, *NO_MEMORY),
    "poll": (E.EINTR, E.ENOMEM),
    "epoll_wait": (E.EINTR,),
    "epoll_ctl": (E.ENOMEM, E.ENOSPC),
    "eventfd_read": (E.EINTR, E.EAGAIN),
    "accept4": (E.EINTR, E.EAGAIN, E.ECONNABORTED, E.EPROTO, E.EPERM, *NO_DESCRIPTOR, *NO_MEMORY),
    "socket": (*NO_DESCRIPTOR, *NO_MEMORY, E.EACCES),
    "connect unix": (E.EAGAIN, E.ECONNREFUSED, E.ENOENT, E.ENOMEM),
    "getsockopt unix": (E.ENOBUFS,),
    "close unix": (E.EINTR, E.EIO),
    "close inet": (E.EINTR, E.EIO),
    "write file": (E.EINTR, E.EAGAIN, E.EIO, E.ENOSPC, E.EPIPE, HALF),  # the log
    "MHD_create_response_from_buffer": (E.ENOMEM,),
}
# The same where Redis is found by a name and reached over TCP: the name is looked up on a thread.
UNDER_LOAD_TCP = {
    "socket": (E.EMFILE, E.ENOBUFS),
    "connect inet": (E.ECONNREFUSED, E.ETIMEDOUT, E.ENETUNREACH, E.EADDRNOTAVAIL),
    "getsockopt inet": (E.ENOBUFS,),
    "setsockopt inet": (E.ENOMEM,),
    "pthread_create": (E.EAGAIN, E.EPERM),
    "read inet": (E.EINTR, E.EAGAIN, *CUT_OFF, E.ENETUNREACH, HALF),
    "send inet": (E.EINTR, E.EAGAIN, E.EPIPE, *CUT_OFF, *NO_MEMORY, HALF),
}
RECONNECTS = ("connect inet", "getsockopt inet", "setsockopt inet", "pthread_create", "socket", "connect unix", "getsockopt unix", "close unix", "write file")
START = {
    "socket": NO_DESCRIPTOR, "bind": (E.EADDRINUSE, E.ENOMEM), "listen": (E.EADDRINUSE,), "setsockopt inet": (E.ENOMEM,),
    "eventfd": (E.EMFILE,), "epoll_create1": (E.EMFILE,), "epoll_ctl": (E.ENOMEM,), "signalfd": (E.EMFILE,), "pipe2": (E.EMFILE,),
    "fork": (E.EAGAIN, E.ENOMEM), "open": (E.EMFILE, E.EACCES), "open to write": (E.EROFS, E.ENOSPC), "pthread_create": (E.EAGAIN,),
    "getrandom": (E.EINTR,), "poll": (E.EINTR, E.ENOMEM), "read pipe": (E.EINTR,),
    "write file": (E.EIO,), "pwrite file": (E.EIO, E.ENOSPC), "connect unix": (E.ECONNREFUSED,),
    "read unix": (E.ECONNRESET,), "send unix": (E.EPIPE,),
}


def name_of(error):
    return error if error == HALF else errno.errorcode[error]


@dataclass
class CallReport(Faults):
    rounds: int = 0
    fired: int = 0
    starts: int = 0
    ended: int = 0

    def line(self):
        return (f"calls: {self.fired} failed in {self.rounds} rounds, slowest answer {self.slowest_s:.2f} s; {self.starts} starts, "
                f"{self.ended} of them ended with a sentence; {len(self.faults)} faults")


# ---- under load ----


QUESTIONS = (
    ("GET", "/stats?site={site}&from=now-1h", None),
    ("GET", "/seen?site={site}&user=u&page=/", None),
    ("GET", "/dau?site={site}", None),
    ("POST", "/ratelimit", {"key": "k", "algorithm": "funnel", "limit": 1000000, "period_s": 1}),
    ("POST", "/filters/f/add?site={site}", {"items": ["x"]}),
    ("PUT", "/pagesets/set?site={site}", {"pages": ["/a"]}),
    ("POST", "/rollup", None),
)


class Load:
    """A tallyd whose calls fail, on a Redis of its own, and what it was sent."""

    def __init__(self, report, tcp=False):
        self.report = report
        self.redis = Redis(appendonly=True, port=free_port() if tcp else 0).start()
        self.calls = FailingCalls(self.redis.directory, "tallyd")
        self.tallyd = Tallyd(*FEW, "--request-timeout", f"{TIMEOUT_S:g}s", env=self.calls.environment(),
                             redis=f"redis://localhost:{self.redis.port}" if tcp else self.redis)
        self.ledger, self.after = Ledger("calls"), Ledger("calls-after", 1)
        self.n = self.n_big = 0

    def close(self):
        self.tallyd.stop()
        self.calls.close()
        self.redis.stop()

    def start(self):
        self.tallyd.start()
        for _ in range(3):
            self.round()
        self.report.faults += [f"the beginning: {text}" for text in self.big_batch()]  # the fold's second thread connects, too
        self.recover("the beginning")
        self.threads, self.descriptors = self._threads(), self._descriptors()

    def _threads(self):
        return len(os.listdir(f"/proc/{self.tallyd.pid}/task"))

    def _descriptors(self):
        return len(os.listdir(f"/proc/{self.tallyd.pid}/fd"))

    def fault(self, what, text):
        self.report.faults.append(f"{what}: {text}")

    def round(self, rollup=True):
        """Requests of all kinds; the last ones over one connection.  Returns what was wrong."""
        self.n += 1
        for keyed in (False, True):
            http = self.tallyd.client(LATE_S)
            self._timed(lambda h=http, k=keyed: self.ledger.send(h, f"{self.n}-{k:d}", k))
            http.close()
        http, wrong = self.tallyd.client(LATE_S), []
        for method, path, body in QUESTIONS:
            if path == "/rollup" and not rollup:
                continue
            try:
                answer = self._timed(lambda m=method, p=path, b=body: http.request(
                    m, p.format(site=self.ledger.site), None if b is None else json.dumps(b), JSON if b else {}))
            except Unknown as error:
                if "timed out" in str(error):
                    wrong.append(f"no answer: {error}")
                continue  # the connection was the one that failed
            if answer.status not in (200, 201, 503, 504):
                wrong.append(f"{method} {path}: {answer}")
        return wrong + self._audit_total(http)

    def big_batch(self):
        """So many events that a fold takes a second thread.  Sent until it is taken, it counts once."""
        batch = [{"site": "calls-big", "page": f"/{i % 50}", "user": f"u{i}"} for i in range(BIG)]
        key = {"Idempotency-Key": f"big {self.n}"}

        def taken():
            try:
                return self.tallyd.client().post(batch, headers=key).status == 202
            except Unknown:
                return False

        wait_until(taken, "a big batch is taken")
        self.n_big += BIG
        answer = wait_until(lambda: (a := self.tallyd.client().get("/pv", site="calls-big", from_="now-1h")).status == 200 and a, "pv")
        return [] if answer.json["pv"] == self.n_big else [f"{answer.json['pv']} of {self.n_big}"]

    def _timed(self, act):
        begin = time.monotonic()
        try:
            return act()
        finally:
            self.report.slowest_s = max(self.report.slowest_s, time.monotonic() - begin)

    def _audit_total(self, http):
        """All that was acknowledged so far is in the answer, and no more than what was sent."""
        least = len(self.ledger.counted)
        most = least + len(self.ledger.unknown) + sum(map(len, self.ledger.open_keyed.values()))
        try:
            answer = http.get("/pv", site=self.ledger.site, from_="now-1h")
        except Unknown:
            return []
        finally:
            http.close()
        if answer.status in (503, 504) or answer.status == 200 and least <= answer.json["pv"] <= most:
            return []
        return [f"{answer}, not {least} to {most}"]

    def recover(self, what):
        """Keyed requests go again until they are taken; a plain one is taken soon."""
        again = iter(range(10**6))
        begin = time.monotonic()
        wait_until(lambda: not self.tallyd.alive() or self._send_again() and self.after.send(self.tallyd.client(LATE_S), f"{what}/{self.n}/{next(again)}") == 202,
                   f"{what}: it serves on", pause_s=0.005)
        if time.monotonic() - begin > LATE_S:
            self.fault(what, f"{time.monotonic() - begin:.1f} s until it served on")

    def _send_again(self):
        http = self.tallyd.client(LATE_S)
        try:
            return all(self.ledger.send(http, name, True) == 202 for name in list(self.ledger.open_keyed))
        finally:
            http.close()

    def look_at_process(self, what):
        """Nothing is lost, left open or spinning."""
        for name, count, goal in (("descriptors", self._descriptors, self.descriptors), ("threads", self._threads, self.threads)):
            try:
                wait_until(lambda c=count, g=goal: c() <= g, name, deadline_s=5)
            except AssertionError:
                self.fault(what, f"{count()} {name}, not {goal}")
        if self._threads() < self.threads:
            self.fault(what, f"{self._threads()} threads, not {self.threads}: one has ended")
        begin_s = cpu_s(self.tallyd.pid)
        time.sleep(IDLE_S)  # what is measured
        spent_s = cpu_s(self.tallyd.pid) - begin_s
        if spent_s > IDLE_S / 2:
            self.fault(what, f"{spent_s:.2f} s of processor in {IDLE_S} s without a request")


def _strike(load, call, error, nth):
    """One round.  A rollup takes long where the connection was lost: it is asked for where nothing else made the call.
    True if the call failed."""
    what = f"{call} {name_of(error)} at {nth}"
    for rollup in (False, True):
        load.calls.arm(call, error, nth=nth)
        if call in RECONNECTS:
            load.redis.command("CLIENT", "KILL", "TYPE", "normal")
        wrong = load.round(rollup) + (load.big_batch() if call == "pthread_create" else [])
        struck = load.calls.disarm() > 0
        load.report.rounds += 1
        load.report.faults += [f"{what}: {text}" for text in wrong]
        load.recover(what)
        if struck or not load.tallyd.alive():
            break
    if not load.tallyd.alive():
        load.fault(what, f"it ended with {load.tallyd.process.returncode}: {load.tallyd.tail(3)}")
        load.start()
    return struck


def _sweep(load, call, error, steps, first):
    """Each position of the call (or one of so many, from `first` on) with this error.  Returns how many failed."""
    nth, fired = first, 0
    while nth <= POSITIONS_MOST and _strike(load, call, error, nth):
        fired += 1
        nth += steps
    return fired


def under_load(report, tcp=False, only=None, steps=1, chance=None):
    """`steps` and `chance`: two errors of each call, and one position of so many, by chance."""
    load = Load(report, tcp)
    try:
        load.start()
        for call, errors in (UNDER_LOAD_TCP if tcp else UNDER_LOAD).items():
            if only is not None and call not in only:
                continue
            fired = 0
            for error in chance.sample(errors, min(2, len(errors))) if chance else errors:
                first = chance.randint(1, steps) if chance else 1
                fired += _sweep(load, call, error, steps, first)
            report.fired += fired
            if fired == 0 and steps == 1:
                load.fault(call, "no round makes this call, so nothing was tested")
            load.look_at_process(call)
        load.calls.disarm()
        for ledger in (load.ledger, load.after):
            for what, pages in ledger.audit(load.tallyd).items():
                if pages:
                    load.fault(ledger.site, f"{len(pages)} {what}: {pages[:3]}")
    finally:
        load.close()


# ---- starts ----


def _one_start(report, call, error, nth):
    """True if a call failed."""
    directory = short_directory()
    calls = FailingCalls(directory, "tallyd")
    tallyd = Tallyd(*FEW, env=calls.environment(), name="start")
    what = f"a start, {call} {name_of(error)} at {nth}"
    calls.arm(call, error, nth=nth)
    report.starts += 1
    try:
        tallyd.start(wait_ready=False)
        try:
            tallyd.wait_ready_line()
            wait_until(lambda: _is_taken(tallyd), "a first 202")
        except RuntimeError:
            _judge_end(report, tallyd, what)
        except AssertionError as error_text:
            report.faults.append(f"{what}: neither serves nor ends: {error_text}; {tallyd.tail(3)}")
        struck = calls.disarm() > 0
        if tallyd.alive() and (status := _end(tallyd)) != 0:
            report.faults.append(f"{what}: it stopped with {status}")
        return struck
    finally:
        tallyd.stop()
        calls.close()
        directory.rmdir()


def _is_taken(tallyd):
    """An event; the first connection may be the one that fails."""
    try:
        return tallyd.client(LATE_S).post({"page": "/"}).status == 202
    except Unknown:
        return False


def _end(tallyd):
    try:
        return tallyd.terminate(8)
    except subprocess.TimeoutExpired:
        return "no end"


def why_it_ended(tallyd):
    """The sentences that a start which cannot be ends with."""
    return [line for line in tallyd.log_text().splitlines() if "level=error" in line or line.startswith("tallyd: ")]


def _judge_end(report, tallyd, what):
    """It ended before it served: by itself, with a word, and without leaving a Redis behind."""
    report.ended += 1
    status = tallyd.process.returncode
    if status not in (1, 2):
        report.faults.append(f"{what}: it ended with {status}: {tallyd.tail(3)}")
    elif not why_it_ended(tallyd):
        report.faults.append(f"{what}: it ended with {status} and says nothing: {tallyd.tail(3)!r}")
    left = orphans(tallyd.data_dir)
    if left:
        report.faults.append(f"{what}: it ended and left a Redis: {left}")


def starts(report, only=None, steps=1, chance=None):
    for call, errors in START.items():
        if only is not None and call not in only:
            continue
        for error in errors:
            nth, fired = chance.randint(1, steps) if chance else 1, 0
            while _one_start(report, call, error, nth):
                nth, fired = nth + steps, fired + 1
            report.fired += fired
            if fired == 0 and steps == 1:
                report.faults.append(f"a start makes no {call}, so nothing was tested")
