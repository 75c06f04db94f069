"""Fault campaigns: clients post all the while, something is killed or a connection harmed, and in the end the counts are
audited.  Everything by chance comes from one seed.

kills(): SIGKILL of tallyd, of Redis, of both, and again while they come back; node_campaign.py has the same for several
servers.  Half of the clients send Idempotency-Keys, and each batch until it is acknowledged.
race(): clients check the same user in, all at once, while processes are killed: exactly one is told to be the first.
positions(): an append and the fold behind it are harmed at their first command, the second.. until none is left that could
be, as SQLite tests I/O errors; in each way that the proxy knows.
"""

import os
import signal
import time

from .firsts import Race
from .ledger import EVENTS, Clients, Ledger
from .log import OfTheLog
from .process import Redis, Tallyd
from .proxy import CUTS, Fault, Proxy
from .waiting import wait_until

UNCAPPED = ("--max-pages", "0")  # each event has a page of its own, and a fast machine posts more of them than an hour's cap
FEW = ("--partitions", "4", *UNCAPPED)
KINDS = {"tallyd": {"tallyd"}, "Redis": {"redis"}, "both": {"tallyd", "redis"}}
ERRORS = (
    "LOADING Redis is loading the dataset in memory",
    "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY You can't write against a read only replica.",
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
    "BUSY Redis is busy running a script.",
    "NOSCRIPT No matching script. Please use EVAL.",
)


# ---- killing ----


class Victims:
    """A tallyd and its Redis: a Redis of one's own (always synced), or the embedded one."""

    def __init__(self, embedded):
        self.redis = None if embedded else Redis(appendonly=True)
        self.tallyd = Tallyd(*FEW, redis=self.redis)

    def start(self):
        if self.redis is not None:
            self.redis.start()
        self.tallyd.start()

    def close(self):
        self.tallyd.stop()
        if self.redis is not None:
            self.redis.stop()

    def harm(self, chance, killed):
        """Kill something, and start what is dead without waiting for it; returns what.  `killed` counts SIGKILLs by name."""
        what = chance.choice(list(KINDS))
        killed[what] += self._kill(KINDS[what])
        while chance.random() < 0.4:
            self._spawn()
            time.sleep(chance.uniform(0, 0.15))
            killed["while it starts"] += self._kill(chance.choice(list(KINDS.values())))
        self._spawn()
        return what

    def wait(self):
        self.tallyd.wait_ready_line()

    def _kill(self, names):
        """Returns how many processes that were."""
        kills = 0
        if "redis" in names:
            kills += self._kill_redis()
        if "tallyd" in names and self.tallyd.alive():
            self.tallyd.kill()
            kills += 1
        return kills

    def _kill_redis(self):
        if self.redis is not None:
            was = self.redis.alive()
            self.redis.kill()
            return int(was)
        pids = self.tallyd.redis_pids() if self.tallyd.alive() else []
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return len(pids)

    def _spawn(self):
        if self.redis is not None and not self.redis.alive():
            self.redis.path.unlink(missing_ok=True)
            self.redis.spawn(self.redis.argv)
        if not self.tallyd.alive():
            self.tallyd.start(wait_ready=False)


def kills(report, chance, goal, victims, stopping=None, clients=4):
    """Rounds until `goal` processes were killed, or `stopping` is set; then all is audited."""
    ledger = Ledger(f"kills-{chance.getrandbits(32):08x}")
    try:
        victims.start()
        with Clients(ledger, victims.tallyd, n=clients, limit=10**9, keyed=clients // 2) as load:
            while report.killed() < goal and not (stopping is not None and stopping.is_set()):
                load.more(4)
                time.sleep(chance.uniform(0, 0.03))  # somewhere in an append or a fold
                what = victims.harm(chance, report.kills)
                before, begin = ledger.statuses.get(202, 0), time.monotonic()
                victims.wait()
                wait_until(lambda n=before: load.faults or ledger.statuses.get(202, 0) > n, "a first 202", pause_s=0.002)
                report.first(f"killed {what}", time.monotonic() - begin)
                report.rounds += 1
        report.add(ledger, victims.tallyd)
    finally:
        victims.close()


def race(report, chance, goal, rounds, clients=64):
    """Check-ins of `rounds` users, each by all clients at once, over two processes, of which at least `goal` are killed."""
    redis = Redis(appendonly=True).start()
    tallyds = [Tallyd(*FEW, redis=redis, name=name) for name in ("one", "two")]
    site = f"race-{chance.getrandbits(32):08x}"
    try:
        for tallyd in tallyds:
            tallyd.start()
        with Race(tallyds, site, rounds, clients) as race_of:
            while race_of.running() and not race_of.faults:
                time.sleep(chance.uniform(0, 0.2))
                if report.killed() >= goal and race_of.round < rounds - 1:
                    continue
                victims = chance.choice([[redis], [tallyds[0]], [tallyds[1]], [redis, tallyds[0]], [tallyds[0], tallyds[1]]])
                for victim in victims:
                    victim.kill()
                    report.kills["Redis" if victim is redis else "tallyd"] += 1
                for victim in victims:
                    victim.start() if victim is redis else victim.start(wait_ready=False)
                for victim in victims:
                    if victim is not redis:
                        victim.wait_ready_line()
        report.rounds += rounds
        race_of.check()
    finally:
        for tallyd in tallyds:
            tallyd.stop()
        redis.stop()


# ---- positions ----


def ways():
    """(name, fault at a position, statuses that a request may be answered whose append is harmed)."""
    for point in CUTS:
        yield point, (lambda n, p=point: Fault(p, nth=n, match=OfTheLog())), {202, 504}
    yield "delay", (lambda n: Fault("reply-late", nth=n, late_s=0.1, match=OfTheLog())), {202}
    yield "delay beyond the deadline", (lambda n: Fault("reply-late", nth=n, late_s=1.3, match=OfTheLog())), {202, 504}
    yield "black hole", (lambda n: Fault("reply-hole", nth=n, late_s=1.3, match=OfTheLog())), {202, 504}
    for text in ERRORS:
        transient = text.split()[0] in ("LOADING", "BUSY", "NOSCRIPT", "READONLY")
        yield text.split()[0], (lambda n, t=text: Fault("error", nth=n, text=t, match=OfTheLog())), {202} if transient else {503, 504}


def position(report, http, ledger, name, nth, fault, allowed):
    """One request and one question while the fault is armed."""
    status = ledger.send(http, f"{nth}")
    begin = time.monotonic()
    asked = http.get("/pv", site=ledger.site, from_="now-1h")
    took_s = max(time.monotonic() - begin, ledger.slowest_s)
    least, most = len(ledger.counted), len(ledger.counted) + len(ledger.unknown)
    if status not in (allowed if nth == 1 else {202}):  # the first command is the append
        report.faults.append(f"{name} at {nth}: {status}")
    if asked.status != 503 and not (asked.status == 200 and least <= asked.json["pv"] <= most):
        report.faults.append(f"{name} at {nth}: {asked}, not {least} to {most}")
    if took_s > 1.15:
        report.faults.append(f"{name} at {nth}: answered after {took_s:.2f} s, not within 1 s")
    return fault.fired


def positions(report, only=None, steps=1):
    """Every position of an append and its fold, in every way (or those whose names are in `only`); with `steps` the first
    ones, and then one of so many."""
    redis = Redis().start()
    proxy = Proxy(redis.directory, redis.path)
    tallyd = Tallyd(*FEW, "--request-timeout", "1s", redis=proxy)
    try:
        tallyd.start()
        http = tallyd.client()
        for way, (name, fault_at, allowed) in enumerate(ways()):
            if only is not None and name not in only:
                continue
            ledger = Ledger("positions-" + name.lower().replace(" ", "-"), EVENTS)
            after = Ledger(ledger.site + "-after", 1)
            assert ledger.send(http, "warm") == 202
            nth = 1
            while True:
                http.await_counted(ledger.site)
                fault = proxy.arm(fault_at(nth))
                fired = position(report, http, ledger, name, nth, fault, allowed)
                proxy.disarm()
                if not fired:
                    break  # append and fold have no such position
                report.positions += 1
                begin = time.monotonic() + (fault.late_s if name == "black hole" else 0)
                again = iter(range(10**6))
                wait_until(lambda n=nth, a=again: after.send(http, f"{n}/{next(a)}") == 202, "a first 202", pause_s=0.002)
                report.first(f"{name} at {nth}", time.monotonic() - begin)
                nth += 1 if nth < 4 else steps if nth > 4 else 1 + way % steps
            report.rounds += 1
            report.add(ledger, tallyd)
            report.add(after, tallyd)
    finally:
        tallyd.stop()
        proxy.close()
        redis.stop()
