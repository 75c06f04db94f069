"""Work of each kind that a tallyd does beside page views, all at once, and what must be true behind it: limits, filters, users
who come and are forgotten, questions.

Only page views wait for replicas.  What else a primary was told, and its replica had not received, is gone with the primary
(deploy/README.md).  So a test says which pieces of work a fault may have taken: doubt().
"""

import json
import threading

from .activity import pages
from .waiting import wait_until


def served(http, method, target, body=None, key=None, also=()):
    """Sent again while the service says that nothing was done, or that this is not known; (the answer, was it sent again?)."""
    answers = []

    def attempt():
        answers.append(http.request(method, target, None if body is None else json.dumps(body).encode(),
                                    {"Idempotency-Key": key} if key else None))
        return answers[-1].status not in (503, 504)

    wait_until(attempt, target, deadline_s=30)
    assert answers[-1].status in (200, 201, 202, 204, *also), answers[-1]
    return answers[-1], len(answers) > 1


def replica_has_all(primary, replica):
    """All that the primary has at this moment."""
    goal = int(primary.info("replication")["master_repl_offset"])
    wait_until(lambda: int(replica.info("replication")["slave_repl_offset"]) >= goal, "the replica has it")


class Work:
    """A thread that does one thing again and again, do(http, n), until it is told to stop."""

    def __init__(self, tallyd, do):
        self.http, self.do, self.n, self.faults = tallyd.client(), do, 0, []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            while not self.stop.wait(0.01):
                self.do(self.http, self.n)
                self.n += 1
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)

    def end(self):
        """How often it was done."""
        self.stop.set()
        self.thread.join(30)
        assert not self.faults and not self.thread.is_alive(), self.faults
        return self.n


def active_users(http, site):
    """Of today."""
    return set(pages(http, site, 1000, from_="now/d", to="now+1d/d"))


class Works:
    """Each kind of work, on a site of its own, and what is true behind it."""

    def __init__(self, tallyd, site):
        self.site, self.people, self.limits = site, "people" + site[-9:], []
        self.all = [Work(tallyd, do) for do in (self.limit, self.put_into_filter, self.come_and_be_forgotten, self.ask)]
        self.in_doubt = [set() for _ in self.all]

    def __enter__(self):
        return self

    def __exit__(self, fault, *_):
        for work in self.all:
            work.stop.set()
        if fault is None:
            self.end()

    def limit(self, http, n):
        body = {"key": f"{self.site}{n}", "algorithm": "sliding", "limit": 3, "period_s": 600}
        answers = [served(http, "POST", "/ratelimit", body, also=(429,)) for _ in range(5)]
        again = sum(again for _, again in answers)  # what had no answer may have been charged
        self.limits.append((sum(answer.status == 200 for answer, _ in answers), again))

    def put_into_filter(self, http, n):
        served(http, "POST", f"/filters/f{n % 3}/add?site={self.site}", {"items": [f"item{n}"]})

    def come_and_be_forgotten(self, http, n):
        served(http, "POST", "/events", [{"site": self.people, "page": "/", "user": f"u{n}"}], key=f"{self.people} {n}")
        if n % 2 == 0:
            served(http, "DELETE", f"/users/u{n}?site={self.people}")

    def ask(self, http, _):
        served(http, "GET", f"/stats?site={self.site}&from=now-1h")

    def more(self, n=3):
        """Wait until each kind was done so often again."""
        goals = [(w, w.n + n) for w in self.all]
        wait_until(lambda: all(w.faults or w.n >= goal for w, goal in goals), "all goes on", deadline_s=30)

    def done(self):
        return [w.n for w in self.all]

    def doubt(self, since):
        """What was under way since then, or done, may be lost."""
        for doubted, first, last in zip(self.in_doubt, since, self.done()):
            doubted |= set(range(first, last + 1))

    def end(self):
        return [w.end() for w in self.all]

    def check(self, http, events_too=False):
        """events_too: page views may be lost with the rest."""
        n_limits, n_items, n_users, _ = self.done()
        of_limits, of_items, of_users, _ = self.in_doubt
        assert n_limits == len(self.limits)
        for n, (allowed, again) in enumerate(self.limits):
            assert 3 - again <= allowed <= (5 if n in of_limits else 3), (n, allowed, again)
        for i in set(range(n_items)) - of_items:
            answer, _ = served(http, "POST", f"/filters/f{i % 3}/check?site={self.site}", {"items": [f"item{i}"]})
            assert answer.json["seen"] == [True], i
        found, stay = active_users(http, self.people), set(range(1, n_users, 2))
        least = stay - of_users if events_too else stay
        most = stay | of_users
        assert {f"u{n}" for n in least} <= found <= {f"u{n}" for n in most}, found ^ {f"u{n}" for n in stay}
