"""`tallyd import --follow` and the log that it follows: written, rotated and harmed."""

import os
import pathlib
import re
import shutil
import time

from .process import Process, Redis, Tallyd, binary, environment
from .truth import Estimates, Model
from .waiting import wait_until
from .world import FOREVER

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:{}) Gecko/20100101 Firefox/{}"
LINE = '{ip} - - [{time}] "{method} {target} HTTP/1.1" {status} 512 "-" "{ua}"\n'
SUMMARY = re.compile(r"^([a-z ]+?)\s+([\d.]+)$", re.M)


def row(at_s, n=0, target=None, status=200, method="GET", ua=None):
    """A line of a combined log."""
    when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at_s))
    return LINE.format(ip=f"192.0.2.{n % 200}", time=when, method=method, status=status,
                       target=f"/{n % 11}?q={n}" if target is None else target, ua=AGENT.format(n % 7, n % 7) if ua is None else ua)


class Log:
    """A log as a server writes it, and as logrotate treats it."""

    def __init__(self, directory, name="access.log"):
        self.path = pathlib.Path(directory) / name
        self.file = None
        self.open()

    def open(self):
        """As a server that is told to open its log again."""
        self.close()
        self.file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def close(self):
        if self.file is not None:
            os.close(self.file)
        self.file = None

    def write(self, text):
        os.write(self.file, text.encode("utf-8", "surrogateescape"))

    def rotated(self, n):
        return self.path.with_name(f"{self.path.name}.{n}")

    def shift(self):
        """access.log.1 becomes .2, and so on."""
        last = 1
        while self.rotated(last).exists():
            last += 1
        for n in range(last, 1, -1):
            self.rotated(n - 1).rename(self.rotated(n))

    def rename(self, late=""):
        """Rotation by rename; `late` is written to the renamed file before the server opens a new one."""
        self.shift()
        self.path.rename(self.rotated(1))
        self.write(late)
        self.open()

    def copytruncate(self):
        """The copy is made elsewhere and renamed: nothing follows half a copy, and nothing is written meanwhile."""
        self.shift()
        shutil.copyfile(self.path, self.rotated(1))
        os.truncate(self.path, 0)


class Follower(Process):
    """`tallyd import --follow` of a log."""

    def __init__(self, path, url, *options, site=None):
        super().__init__(pathlib.Path(path).parent, "follower")
        site_option = ("--site", site) if site else ()
        self.argv = [binary(), "import", "--follow", *site_option, "--url", url, *FOREVER, *options, path]
        self.env = None

    def start(self):
        """Returns when it can be ended cleanly, or has ended."""
        self.log.write_bytes(b"")
        self.spawn(self.argv, environment(self.env))
        begun = ("following ", "is not there yet", "Permission denied")
        wait_until(lambda: not self.alive() or any(map(self.said, begun)), "it follows, or waits for the log", pause_s=0.002)
        return self

    def end(self):
        """SIGTERM; its summary as {name: number}."""
        status = self.terminate()
        assert status == 0, f"exit {status}:\n{self.tail()}"
        return {m[1].strip(): float(m[2]) for m in SUMMARY.finditer(self.out.read_text())}

    def said(self, text):
        return text in self.log_text()


def hour(chance, n, until_s):
    """n lines of the hour before until_s, and the page views of people among them, as a person would read it."""
    lines, events = [], []
    for i in range(n):
        at_s = until_s - 3600 + i * 3600 // n
        visitor, kind = chance.randrange(chance.choice((20, 1400))), chance.random()  # 192.0.2.n and 7 agents: 1,400 visitors
        page = f"/{chance.randrange(40)}"
        if kind < 0.1:
            lines.append(row(at_s, visitor, target=f"{page}.css"))
        elif kind < 0.15:
            lines.append(row(at_s, visitor, target=page, status=404))
        elif kind < 0.17:
            lines.append(row(at_s, visitor, target=page, ua="Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"))
        elif kind < 0.18:
            lines.append("no line of an access log\n")
        else:
            lines.append(row(at_s, visitor, target=page + chance.choice(["", "?a=b", "?page=/x"])))
            events.append({"page": page, "ts": at_s, "ip": f"192.0.2.{visitor % 200}", "ua": AGENT.format(visitor % 7, visitor % 7)})
    return lines, events


class Replay:
    """An hour of a log, written in `seconds`, while it rotates, and the follower, tallyd and Redis are killed."""

    def __init__(self, chance, directory, site, lines, seconds):
        self.chance, self.site, self.seconds = chance, site, seconds
        self.redis = Redis(appendonly=True).start()
        self.tallyd = Tallyd(*FOREVER, "--request-timeout", "2s", redis=self.redis).start()
        self.tallyd.listen = f"127.0.0.1:{self.tallyd.port}"
        self.log = Log(directory)
        self.follower = Follower(self.log.path, self.tallyd.url, site=site)
        self.until_s = int(time.time()) // 60 * 60
        self.lines, self.events = hour(chance, lines, self.until_s)
        self.done = {"rename": 0, "late": 0, "copytruncate": 0, "follower": 0, "tallyd": 0, "redis": 0, "away": 0}

    def close(self):
        self.follower.stop()
        self.log.close()
        self.tallyd.stop()
        self.redis.stop()

    def harm(self, what, write):
        """One of the things that happen to a log; write(n) writes the next n lines."""
        self.done[what] += 1
        if what == "rename":
            self.log.rename()
        elif what == "late":
            self.log.shift()
            self.log.path.rename(self.log.rotated(1))
            write(7)
            self.log.open()
        elif what == "copytruncate":
            self.log.copytruncate()
        elif what == "follower":
            self.follower.kill()
            self.follower.start()
        elif what == "away":  # while it is away the log goes on, and rotates twice
            self.follower.kill()
            for _ in range(2):
                write(50)
                self.log.rename()
            write(20)
            self.follower.start()
        elif what == "redis":
            self.redis.kill()
            self.redis.path.unlink(missing_ok=True)
            self.redis.spawn(self.redis.argv)
        else:
            self.tallyd.kill()
            self.tallyd.start(wait_ready=False)

    def run(self, harms):
        """Write all of it, with so many harms in between."""
        names = (list(self.done) * (harms // len(self.done) + 1))[:harms]
        self.chance.shuffle(names)
        plan = list(zip(sorted(self.chance.uniform(0.03, 0.95) for _ in names), names))
        position = 0

        def write(n):
            nonlocal position
            self.log.write("".join(self.lines[position:position + n]))
            position += n

        self.follower.start()
        begin = time.monotonic()
        while position < len(self.lines):
            share = (time.monotonic() - begin) / self.seconds
            write(max(0, int(share * len(self.lines)) - position))
            if plan and share >= plan[0][0]:
                self.harm(plan.pop(0)[1], write)
            time.sleep(0.01)  # the pace of the log, which is a part of the test
        assert not plan, plan

    def check(self):
        """All of it is counted, once, whoever is asked, and a follower that starts again finds nothing more."""
        self.tallyd.wait_ready_line()
        http = self.tallyd.client()
        window = {"site": self.site, "from_": self.until_s - 3600, "to": self.until_s}
        wait_until(lambda: http.count("pv", **window) >= len(self.events), "all is counted", deadline_s=60)
        self.follower.end()
        summary = self.follower.start().end()
        assert summary["events accepted"] == 0, summary
        model = Model()
        for event in self.events:
            model.add({"site": self.site, **event})
        estimates = Estimates()
        for from_s in range(self.until_s - 3600, self.until_s, 600):
            expected = model.counts(self.site, from_s, from_s + 600)
            got = {m: http.count(m, site=self.site, from_=from_s, to=from_s + 600) for m in ("pv", "visits", "uv", "ips")}
            assert (got["pv"], got["visits"]) == (expected["pv"], expected["visits"]), (from_s, got, expected)
            estimates.add(f"uv {from_s}", got["uv"], expected["uv"])
            estimates.add(f"ips {from_s}", got["ips"], expected["ips"])
        estimates.check()
        for page in sorted({e["page"] for e in self.events}):
            expected = sum(e["page"] == page for e in self.events)
            assert http.count("pv", page=page, **window) == expected, page
        assert "missing" not in self.follower.log_text() and "in doubt" not in self.follower.log_text(), self.follower.tail()
