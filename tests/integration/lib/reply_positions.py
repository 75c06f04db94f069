"""Every position in the conversation of every kind of request (request_kinds.py) is harmed, in each way of HARMS.

The first command of a request and its reply are harmed, the second.. until the request has no such command any more.  A
question is answered as ever, or 503.  A change is applied once where the answer is 2xx, not at all where it is 503, and once or
not at all where it is 504; done again until it is taken, it is applied once.

"doubled": tallyd's side of the connection is cut, the command lies in the network, tallyd asks again over another
connection; then Redis gets the first copy, too.
"""

import time
from dataclasses import dataclass, field

from .client import Unknown
from .process import Redis, Tallyd
from .proxy import CUTS, Fault, Proxy
from .report import Faults
from .request_kinds import CHANGES, QUESTIONS, ask, prepare
from .waiting import wait_until

TIMEOUT_S = 2.0
MOST = 80  # commands of a request; a sweep that goes on beyond them meets something else
DELAYED, LATE, DOUBLED = "delayed", "delayed beyond the deadline", "doubled"
HARMS = (*CUTS, DELAYED, LATE, DOUBLED)
NOT_OF_A_REQUEST = (b"HELLO", b"AUTH", b"SELECT", b"PING", b"SCRIPT", b"CONFIG", b"INFO", b"CLIENT", b"ROLE")


def of_a_request(args):
    """Not the leader's lock, and not what a new connection begins with."""
    return args[0].upper() not in NOT_OF_A_REQUEST and not any(a.endswith((b":lock", b":meta", b":secret", b":wish")) for a in args[1:5])


def fault_of(harm, nth, match=of_a_request):
    if harm == DOUBLED:
        return Fault("command-stuck", nth=nth, match=match)
    if harm in (DELAYED, LATE):
        return Fault("reply-late", nth=nth, match=match, late_s=0.05 if harm == DELAYED else TIMEOUT_S + 0.3)
    return Fault(harm, nth=nth, match=match)


@dataclass
class Sweep(Faults):
    tried: dict = field(default_factory=dict)  # kind: positions that were harmed

    def line(self):
        return (f"replies: {sum(self.tried.values())} positions of {len(self.tried)} kinds of requests, slowest answer "
                f"{self.slowest_s:.2f} s; {len(self.faults)} faults")


class Scene:
    """A Redis that loses nothing, so that nothing waits until it is safe; a proxy; a tallyd."""

    def __init__(self, sweep):
        self.sweep = sweep
        self.redis = Redis(appendonly=True).start()
        self.proxy = Proxy(self.redis.directory, self.redis.path)
        self.tallyd = Tallyd("--partitions", "2", "--readers", "2", "--request-timeout", f"{TIMEOUT_S:g}s", redis=self.proxy)
        self.n = 0

    def start(self):
        self.tallyd.start()
        self.http = self.tallyd.client()
        prepare(self.http)

    def close(self):
        self.tallyd.stop()
        self.proxy.close()
        self.redis.stop()

    def settle(self):
        """Everything is answered, with the connections that that takes."""
        wait_until(lambda: ask(self.http, "uv").status == 200 and ask(self.http, "filter").status == 200
                   and self.http.post({"page": "/settle"}).status == 202, "all is as before")

    def harmed(self, fault, act):
        """The answer of act() meanwhile."""
        self.proxy.arm(fault)
        begin = time.monotonic()
        try:
            answer = act()
        finally:
            self.proxy.disarm()
            took_s = time.monotonic() - begin
        self.sweep.slowest_s = max(self.sweep.slowest_s, took_s)
        if took_s > TIMEOUT_S + 0.7:
            raise RuntimeError(f"answered after {took_s:.1f} s: {answer}")
        return answer

    def deliver(self, fault):
        if fault.point == "command-stuck" and fault.fired:
            fault.deliver()


def judge_question(scene, name, fault, right):
    answer = scene.harmed(fault, lambda: ask(scene.http, name))
    scene.deliver(fault)
    if answer.status not in (200, 503) or answer.status == 200 and answer.body != right:
        raise RuntimeError(f"{answer}, not {right[:500]}")
    again = wait_until(lambda: (a := ask(scene.http, name)).status == 200 and a, "it is answered again")
    if again.body != right:
        raise RuntimeError(f"asked again {again}, not {right[:500]}")


def judge_change(scene, name, fault):
    change, http, n = CHANGES[name], scene.http, scene.n
    answer = scene.harmed(fault, lambda: change.act(http, n))
    scene.deliver(fault)
    if not (200 <= answer.status < 300 or answer.status in (503, 504)):
        raise RuntimeError(str(answer))
    scene.settle()
    if answer.status < 300:
        wait_until(lambda: change.applied(http, n), f"applied, as {answer} says", change.soon_s)
    elif answer.status == 503 and change.applied(http, n):
        raise RuntimeError(f"applied, though {answer}")
    else:
        change.applied(http, n)  # once or not at all
    if change.repeats:
        wait_until(lambda: change.act(http, n).status in change.done_again, "it is taken")
        wait_until(lambda: change.applied(http, n), "applied when it was done again", change.soon_s)


def sweep_kind(scene, name, harm, steps=1, first=1):
    """All positions of a kind, or one of so many from `first` on."""
    sweep, nth, tried = scene.sweep, first, 0
    is_question = name in QUESTIONS
    while nth <= MOST:
        scene.n += 1
        fault = fault_of(harm, nth)
        try:
            scene.settle()
            if is_question:
                judge_question(scene, name, fault, ask(scene.http, name).body)
            else:
                if CHANGES[name].before is not None:
                    CHANGES[name].before(scene.http, scene.n)
                judge_change(scene, name, fault)
        except (RuntimeError, AssertionError, Unknown) as error:
            sweep.faults.append(f"{name}, command {nth} {harm}: {error}")
            if not scene.tallyd.alive():
                sweep.faults.append(f"it ended with {scene.tallyd.process.returncode}: {scene.tallyd.tail(5)}")
                scene.start()
            fault.way.set()
            scene.proxy.disarm()
        if not fault.fired:
            break
        tried += 1
        nth += steps
    sweep.tried[name] = sweep.tried.get(name, 0) + tried


def positions_of_all(sweep, harms=HARMS, steps=1, chance=None):
    """Every kind in every way; with `chance` one way a kind, and one position of so many."""
    scene = Scene(sweep)
    try:
        scene.start()
        for name in (*QUESTIONS, *CHANGES):
            for harm in [chance.choice(harms)] if chance else harms:
                sweep_kind(scene, name, harm, steps, chance.randint(1, steps) if chance else 1)
            if not sweep.tried[name] and steps == 1:
                sweep.faults.append(f"{name}: no command was harmed, so nothing was tested")
    finally:
        scene.close()
