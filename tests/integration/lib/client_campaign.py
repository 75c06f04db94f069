"""Campaigns of system calls that fail (failing_calls.py) in the commands of a client: each call once, with errors that Linux
has for it, at each position until the command makes no such call any more.

A command does all of its work, or it ends with status 1 and a sentence.  What was sent then counts once when the same command
runs again.  `tallyd cluster status` and `tallyd query` print the right text, or none and a sentence.
"""

import contextlib
import errno
import pathlib
import re
import signal
import tempfile
import time
from dataclasses import dataclass

from .call_campaign import name_of
from .failing_calls import HALF, FailingCalls
from .follow import Follower, Log, row
from .process import Redis, Tallyd, run
from .report import Faults
from .waiting import wait_until
from .world import FOREVER

E = errno
NETWORK = {
    "socket": (E.EMFILE, E.ENOBUFS), "connect inet": (E.ECONNREFUSED, E.ENETUNREACH, E.ENOMEM), "getsockopt inet": (E.ENOBUFS,),
    "send inet": (E.EPIPE, E.ECONNRESET, HALF), "recv inet": (E.ECONNRESET, E.ETIMEDOUT, HALF), "poll": (E.EINTR, E.ENOMEM),
}
IMPORT = {**NETWORK, "open": (E.EMFILE, E.EACCES), "read file": (E.EIO, HALF)}
FOLLOW = {
    **NETWORK, "open": (E.EMFILE, E.EACCES), "open to write": (E.ENOSPC, E.EROFS), "open without waiting": (E.EMFILE, E.EIO),
    "pread file": (E.EIO, E.ESTALE), "write file": (E.ENOSPC, E.EINTR, HALF), "fsync": (E.EIO, E.ENOSPC), "rename": (E.ENOSPC, E.EIO),
    "flock": (E.ENOLCK,), "stat": (E.ENOMEM, E.EIO), "opendir": (E.EMFILE, E.EACCES), "readdir": (E.EIO,),
    "realpath": (E.ENOMEM, E.EIO),
}
CLUSTER = {"socket": (E.EMFILE,), "connect unix": (E.ECONNREFUSED, E.EAGAIN), "getsockopt unix": (E.ENOBUFS,),
           "read unix": (E.EINTR, E.EAGAIN, E.ECONNRESET, HALF), "send unix": (E.EINTR, E.EAGAIN, E.EPIPE, HALF), "poll": (E.EINTR, E.ENOMEM)}
PATIENCE_S = 30
POSITIONS_MOST = 16  # beyond them are others of the same kind: a follower looks at its log all the time


@dataclass
class ClientReport(Faults):
    rounds: int = 0
    fired: int = 0
    ended: int = 0

    def line(self):
        return f"calls of clients: {self.fired} failed in {self.rounds} rounds, {self.ended} ended with a sentence; {len(self.faults)} faults"


def strike(report, calls, call, error, nth, round_of):
    """One round.  True if the call failed."""
    calls.arm(call, error, nth=nth)
    wrong = round_of()
    fired = calls.disarm() > 0
    report.faults += [f"{call} {name_of(error)} at {nth}: {text}" for text in wrong]
    report.rounds += 1
    report.fired += fired
    return fired


def sweep(report, calls, table, round_of, steps=1, chance=None):
    """round_of() runs a command with the call that is armed, and says what was wrong.  `steps` and `chance`: one error of each
    call, the first position and one of so many, by chance."""
    for call, errors in table.items():
        for error in [chance.choice(errors)] if chance else errors:
            if not strike(report, calls, call, error, 1, round_of):
                report.faults.append(f"no command makes a {call}, so nothing was tested")
            nth = 1 + (chance.randint(1, steps) if chance else 1)
            while nth <= POSITIONS_MOST and strike(report, calls, call, error, nth, round_of):
                nth += steps


def pv(http, site):
    return http.count("pv", site=site, from_="2023-01-01", to="now")


def says_why(report, status, said):
    """What is wrong with the end of a command that was not done."""
    report.ended += 1
    return [] if status == 1 and re.search(r"^tallyd( \w+)?: ", said, re.M) else [f"ended with {status}: {said[-600:]!r}"]


class Imports:
    """`tallyd import` of a log of nine views; each round has a site of its own."""

    def __init__(self, report, tallyd, calls, site, directory):
        self.report, self.tallyd, self.calls, self.site = report, tallyd, calls, site
        self.path, self.n = directory / "import.log", 0
        self.path.write_text("".join(row(int(time.time()) - 900 + i, i) for i in range(9)))

    def run(self, env=None):
        return run("import", "--site", f"{self.site}.{self.n}", "--url", self.tallyd.url, "--json", self.path, env=env)

    def __call__(self):
        self.n += 1
        http, faults = self.tallyd.client(), []
        done = self.run(self.calls.environment())
        counted = pv(http, f"{self.site}.{self.n}")
        if done.returncode != 0:
            faults += says_why(self.report, done.returncode, done.stderr)
        elif counted != 9 or '"counted":9' not in done.stdout:
            faults.append(f"done, and {counted} of 9 are counted: {done.stdout}")
        again = self.run()
        if again.returncode != 0 or pv(http, f"{self.site}.{self.n}") != 9:
            faults.append(f"{pv(http, f'{self.site}.{self.n}')} of 9: {done.stderr} {again.stderr}")
        http.close()
        return faults


class Follows:
    """`tallyd import --follow`, started behind a rotation; each round has a log of its own, which a link leads to."""

    def __init__(self, report, tallyd, calls, site, directory):
        self.report, self.tallyd, self.calls, self.site, self.directory, self.n = report, tallyd, calls, site, directory, 0

    def follow(self, views, env=None):
        """(exit status, what it said), ended by SIGTERM when so many views are counted, or by itself."""
        follower = Follower(self.path, self.tallyd.url, site=f"{self.site}.{self.n}")
        follower.env = env
        follower.start()
        with contextlib.suppress(AssertionError):  # what is counted is looked at in the end
            wait_until(lambda: not follower.alive() or self.counted() >= views, f"{views} views, or an end")
        follower.signal(signal.SIGTERM)
        try:
            return follower.wait(PATIENCE_S), follower.log_text()
        finally:
            follower.stop()

    def counted(self):
        http = self.tallyd.client()
        try:
            return pv(http, f"{self.site}.{self.n}")
        finally:
            http.close()

    def __call__(self):
        self.n += 1
        home = self.directory / str(self.n)
        (home / "logs").mkdir(parents=True)
        self.log, begin, faults = Log(home / "logs"), int(time.time()) - 900, []
        self.path = home / "link.log"
        self.path.symlink_to(self.log.path)
        self.log.write("".join(row(begin + i, i) for i in range(3)))
        assert self.follow(0)[0] == 0 and self.counted() == 3
        self.log.rename(late=row(begin + 3, 3))
        self.log.write("".join(row(begin + 4 + i, 4 + i) for i in range(3)))
        status, said = self.follow(7, self.calls.environment())
        if status != 0:
            faults += says_why(self.report, status, said)
        status, later = self.follow(7)
        if status != 0 or self.counted() != 7 or "missing" in said + later or "is not there any more" in said + later:
            faults.append(f"then {status}, {self.counted()} of 7: {said}{later}")
        self.log.close()
        return faults


class Prints:
    """A command that only prints: the right text, or a sentence."""

    def __init__(self, report, calls, *words):
        self.report, self.calls, self.words = report, calls, words
        self.right = run(*words)
        assert self.right.returncode == 0, self.right

    def __call__(self):
        done = run(*self.words, env=self.calls.environment())
        if done.returncode == 1 and self.words[0] == "cluster" and "does not answer" in done.stdout:
            return []  # a connection that is lost is what the command is asked for
        if done.returncode != 0:
            return says_why(self.report, done.returncode, done.stderr) + ([f"it prints {done.stdout!r}"] if done.stdout else [])
        return [] if done.stdout == self.right.stdout else [f"it prints {done.stdout!r}, not {self.right.stdout!r}"]


class Resets:
    """`tallyd cluster reset-partition` of a partition that has lost its state."""

    def __init__(self, report, calls, redis):
        self.report, self.calls, self.redis = report, calls, redis
        self.state = sorted(redis.command("KEYS", "t:*:state"))[0]
        self.words = ("cluster", "reset-partition", str(self._number()), "--redis", redis.url)

    def _number(self):
        """Of the partition of the state: what the command says of each other one is that it has its state."""
        self.redis.command("DEL", self.state)
        return next(n for n in range(16) if "has a first state" in run("cluster", "reset-partition", str(n), "--redis", self.redis.url).stdout)

    def __call__(self):
        self.redis.command("DEL", self.state)
        done = run(*self.words, env=self.calls.environment())
        is_there, faults = self.redis.command("EXISTS", self.state) == 1, []
        if done.returncode != 0:
            faults += says_why(self.report, done.returncode, done.stderr)
            if is_there and "whether it was done" not in done.stderr:
                faults.append(f"it was done, and it says {done.stderr!r}")
        elif not is_there:
            faults.append("it was not done")
        again = run(*self.words)
        if (again.returncode, "has its state" in again.stderr) != ((1, True) if is_there else (0, False)):
            faults.append(f"asked again: {again}")
        return faults


def all_clients(report):
    """Every call of every command, at each position."""
    redis, tallyd = Redis().start(), None
    with tempfile.TemporaryDirectory(prefix="tallyd-clients-") as name:
        directory = pathlib.Path(name)
        try:
            calls = FailingCalls(directory, "tallyd")
            tallyd = Tallyd(*FOREVER, redis=redis).start()
            sweep(report, calls, IMPORT, Imports(report, tallyd, calls, "imports", directory))
            sweep(report, calls, FOLLOW, Follows(report, tallyd, calls, "follows", directory))
            for form in ((), ("--csv",), ("--json",)):
                words = ("query", "pages", "--site", "imports.1", "--from", "now-1d/d", "--to", "now+1d/d", "--url", tallyd.url, *form)
                sweep(report, calls, NETWORK, Prints(report, calls, *words))
            sweep(report, calls, CLUSTER, Prints(report, calls, "cluster", "status", "--redis", redis.url))
            tallyd.terminate()
            sweep(report, calls, CLUSTER, Resets(report, calls, redis))
            calls.close()
        finally:
            if tallyd is not None:
                tallyd.stop()
            redis.stop()
