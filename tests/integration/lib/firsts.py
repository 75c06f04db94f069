"""Check-ins that race: many clients, one user at a time, and who of them was told to be the first."""

import collections
import threading

from .client import Unknown
from .ledger import Threads


def told(answer):
    """{index: actions} of a 202."""
    assert answer.status == 202, answer
    found = answer.json["first"]
    assert [f["index"] for f in found] == sorted({f["index"] for f in found}), found
    assert all(f["actions"] for f in found), found
    return {f["index"]: f["actions"] for f in found}


def notes(redis):
    return sorted(redis.command("KEYS", "t:*:first:*"))


class Race(Threads):
    """`clients` threads check the users in, round by round: in each round all of them send one event for the same user,
    each with a key of its own, until it is answered with 202; and some send theirs once more.

    tallyds: processes that may be killed and started again meanwhile."""

    def __init__(self, tallyds, site, rounds, clients=64, params=None):
        super().__init__(clients)
        self.tallyds, self.site, self.rounds, self.clients = tallyds, site, rounds, clients
        self.params = params or {}
        self.answers = collections.defaultdict(set)  # (round, client) -> what each 202 said
        self.lock = threading.Lock()
        self.barrier = threading.Barrier(clients)
        self.round = 0

    def __exit__(self, *_):
        """All rounds are over."""
        for thread in self.threads:
            thread.join(300)
        assert not any(thread.is_alive() for thread in self.threads), "clients are at work still"
        assert not self.faults, self.faults[:3]

    def running(self):
        return any(thread.is_alive() for thread in self.threads)

    def _send(self, n, me, turn):
        """One attempt; True: it was answered."""
        tallyd = self.tallyds[(me + turn) % len(self.tallyds)]
        body = {"site": self.site, "user": f"u{n}", "actions": ["checkin"]}
        try:
            http = tallyd.client()
            answer = http.post(body, first=1, headers={"Idempotency-Key": f"{self.site} {n} {me}"}, **self.params)
            http.close()
        except Unknown:
            return False
        if answer.status in (503, 504):
            return False
        with self.lock:
            self.answers[n, me].add(bool(told(answer)))
        return True

    def _run(self, me):
        try:
            for n in range(self.rounds):
                self.barrier.wait(120)
                self.round = n
                turn = 0
                while not self._send(n, me, turn):
                    turn += 1
                    self.stopping.wait(0.02)
                if me % 4 == 0:
                    self._send(n, me, turn + 1)  # a retry of what was answered
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)
            self.barrier.abort()

    def check(self):
        """Of each user and day exactly one event was the first one, and every answer about it said the same."""
        for (n, me), said in self.answers.items():
            assert len(said) == 1, f"client {me} was told both in round {n}"
        for n in range(self.rounds):
            winners = [me for me in range(self.clients) if self.answers[n, me] == {True}]
            assert len(winners) == 1, f"round {n}: {winners} of {self.clients} clients were told to be the first"
