"""A question behind a write: right after its 202 on a quiet server, and the first one after a tallyd was killed."""

import contextlib
import time

from . import load
from .bench import Contender
from .results import Limit, Section
from .servers import HELD, PeerRedis, TallydServer
from .settings import EVENT

PAIRS_A_SECOND = 100  # of one connection: a quiet server
EVENT_OF_PAIR = '{"page":"/asked/{n}","user":"user-{n}"}'
KILLS, KILLS_QUICK = 10, 2
QUESTION_OF_PAIR = "/uv?page=/asked/{n}&from=now-1h"


def pairs(bench, server, seed, seconds, written):
    """An event on a page of its own, and once it is acknowledged that page's visitors, which must be 1."""
    del seconds
    event, answer = (EVENT_OF_PAIR, '"uv":1,') if written else ("", '"uv":0,')
    n = bench.settings.questions * 3 // 10
    return load.measure(server.roles, load.after_write(
        server.port, 60, seed, QUESTION_OF_PAIR, event, answer, "-c", 1, "-r", PAIRS_A_SECOND, "-e", n), 60)


def after_202(bench):
    section = Section("ask_after_202", "GET /uv of a page right after the 202 of its only event, quiet server, "
                                       f"{PAIRS_A_SECOND} such pairs a second; us of the question alone")
    with contextlib.ExitStack() as stack:
        contenders = []
        for fsync in ("everysec", "always"):
            server = stack.enter_context(bench.serving(TallydServer, "--fsync", fsync))
            contenders += [
                Contender(f"{fsync} {key}", f"--fsync {fsync}, {label}",
                          lambda seed, t, server=server, written=written: pairs(bench, server, seed, t, written))
                for key, label, written in (("written", "behind a 202", True), ("idle", "nothing was written", False))]
        bench.in_turn(section, contenders)
    section.limits.append(Limit("behind a 202, everysec: median", section.find("everysec written").median("p50_us") / 1000, 3, "ms"))
    return section


# The first question after a SIGKILL


class Deaths:
    """Tallyds on one Redis that are killed with events in their logs, and how long the first question behind that takes.

    others: the tallyd that is asked runs already; else the killed one is started again first, and only the question counts.
    """

    def __init__(self, bench, redis, survivor, total, events, others):
        self.bench, self.redis, self.survivor, self.total = bench, redis, survivor, total
        self.events, self.others = events, others

    def one(self, seed):
        """us"""
        with self.bench.serving(TallydServer, redis=self.redis, env=HELD) as dying:
            figures = load.run_json([load.PROGRAMS / "rate", "-c", 8, "-b", 1000, "-e", self.events, "-d", 20, "-S", seed,
                                     dying.port, "/events", EVENT], 40)
            self.total["pv"] += figures["events"]
            if figures["refused"] or figures["events"] != self.events:
                raise load.LoadFailed(f"{self.events} events were sent to be left behind: {figures}")
            http = self.survivor.tallyd.client(60)
            http.get("/healthz")  # the connection stands
            dying.tallyd.kill()
            if not self.others:
                dying.tallyd.env = {}
                dying.tallyd.start(wait_ready=False)
                dying.tallyd.wait_ready_line()
                http = dying.tallyd.client(60)
            begun = time.monotonic()
            http.question("/uv", from_="now-1h")
            took = time.monotonic() - begun
            counted = http.count("pv", from_="now-2h")
            if counted != self.total["pv"]:
                self.bench.errors.append(f"ask_after_kill: {self.total['pv']} events acknowledged, {counted} counted")
            http.close()
        return took * 1e6

    def run(self, seed, seconds):
        del seconds
        took = sorted(self.one(seed * 100 + i) for i in range(KILLS_QUICK if self.bench.settings.quick else KILLS))
        return {"p50_us": took[len(took) // 2], "p99_us": took[-1]}


def after_kill(bench):
    kills = KILLS_QUICK if bench.settings.quick else KILLS
    section = Section("ask_after_kill", f"GET /uv as the first question after SIGKILL of a tallyd with events in its log, {kills} "
                                        "kills a run, --fsync everysec; p99 is the slowest of a run")
    with bench.serving(PeerRedis, ["--appendfsync", "everysec"]) as redis, \
            bench.serving(TallydServer, redis=redis) as survivor:
        total = {"pv": 0}
        bench.in_turn(section, [
            Contender(f"{who} {events}", f"{events:,} events, {label}", Deaths(bench, redis, survivor, total, events, others).run)
            for events in (1000, 50_000)
            for who, label, others in (("another", "another tallyd is asked", True),
                                       ("again", "it was started again", False))], warm_up=False)
    return section


def ask(bench):
    return [after_202(bench), after_kill(bench)]
