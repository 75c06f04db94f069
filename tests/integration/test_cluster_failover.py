"""A cluster whose nodes change under load: failovers that ask nobody, nodes that come back at other addresses, and limits, filters,
users and folds in the middle of a failover.  TALLYD_REDIS_SERVER= chooses the cluster's server."""

import json
import threading

import pytest

from lib.cluster import BUS, Cluster, free_ports, server_missing
from lib.ledger import Clients, Ledger
from lib.waiting import wait_until

FEW = ("--partitions", "24")
SAFE = ("--appendonly", "yes", "--appendfsync", "always")

pytestmark = pytest.mark.skipif(server_missing() is not None, reason=str(server_missing()))


@pytest.fixture(scope="module")
def cluster():
    one = Cluster(options=SAFE, node_timeout_ms=2000)
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture
def healed(cluster):
    yield cluster
    cluster.wait_ok()


def hand_over(cluster, clients, how, work=()):
    """Each primary's replica takes over, one after the other, under load; before and behind each all kinds of work go on."""
    def more():
        clients.more(15)
        goals = [(w, w.n + 3) for w in work]
        wait_until(lambda: all(w.faults or w.n >= goal for w, goal in goals), "all goes on", deadline_s=30)

    for primary in cluster.primaries():
        more()
        cluster.failover(cluster.replicas_of(primary)[0], how)
        more()
        cluster.wait_ok()


def test_replicas_that_do_not_ask_their_primaries(healed, start_tallyd, site):
    """CLUSTER FAILOVER FORCE: the primary goes on until it hears of it.  Nothing is lost that was acknowledged, nothing doubled."""
    one, two, ledger = start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "FORCE")
    ledger.check(two)


def test_replicas_that_ask_nobody(healed, start_tallyd, site):
    """CLUSTER FAILOVER TAKEOVER may lose what was acknowledged, and says so in deploy/README.md.  It doubles nothing and takes no
    request for counted that was refused."""
    one, two, ledger = start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), Ledger(site)
    with Clients(ledger, one, limit=10**6, keyed=2) as clients:
        hand_over(healed, clients, "TAKEOVER")
    found = ledger.audit(two)
    assert not found["doubled"] and not found["phantom"], {what: pages[:5] for what, pages in found.items()}
    assert len(found["lost"]) < len(ledger.counted) / 10, "and it is an exception"


def test_all_nodes_at_other_addresses(healed, start_tallyd, site):
    """One after the other, replicas first, under load: in the end tallyd knows no address that it was started with."""
    tallyd, ledger = start_tallyd(*FEW, redis=healed), Ledger(site)
    old = {node.port for node in healed.nodes}
    with Clients(ledger, tallyd, limit=10**6, keyed=1) as clients:
        for node in sorted(healed.nodes, key=lambda n: n.is_primary()):
            node.stop()  # for less than the node timeout, as a rule; else its replica takes over
            node.port = free_ports(1, BUS)[0]
            for option, value in (("--port", node.port), ("--cluster-port", node.port + BUS)):
                node.argv[node.argv.index(option) + 1] = value
            node.start()
            healed.wait_ok()
            clients.more(10)
    assert not old & {node.port for node in healed.nodes}
    ledger.check(tallyd)
    known = {node["address"] for node in tallyd.client().question("/cluster")["nodes"]}
    assert known == {node.address for node in healed.primaries()}


# ---- in the middle ----


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
    found, cursor = set(), {}
    while True:
        answer = http.question("/active/users", site=site, from_="now/d", to="now+1d/d", limit=1000, **cursor)
        found |= set(answer["users"])
        cursor = {"cursor": answer["next_cursor"]}
        if cursor["cursor"] is None:
            return found


def test_limits_filters_users_and_folds_in_the_middle(healed, start_tallyd, site):
    """All primaries hand over while each kind of work is under way.  A limit lets as many through as it allows; a filter knows what
    it was given; a user who was forgotten stays so; no figure is wrong."""
    tallyd, other, ledger = start_tallyd(*FEW, redis=healed), start_tallyd(*FEW, redis=healed), Ledger(site)
    people, limits = "people" + site[-9:], []

    def limit(http, n):
        body = {"key": f"{site}{n}", "algorithm": "sliding", "limit": 3, "period_s": 600}
        answers = [served(http, "POST", "/ratelimit", body, also=(429,)) for _ in range(5)]
        again = sum(again for _, again in answers)  # what had no answer may have been charged
        limits.append((sum(answer.status == 200 for answer, _ in answers), again))

    def put_into_filter(http, n):
        served(http, "POST", f"/filters/f{n % 3}/add?site={site}", {"items": [f"item{n}"]})

    def come_and_be_forgotten(http, n):
        served(http, "POST", "/events", [{"site": people, "page": "/", "user": f"u{n}"}], key=f"{people} {n}")
        if n % 2 == 0:
            served(http, "DELETE", f"/users/u{n}?site={people}")

    def ask(http, _):
        served(http, "GET", f"/stats?site={site}&from=now-1h")

    with Clients(ledger, tallyd, n=2, limit=10**6, keyed=1) as clients:
        work = [Work(tallyd, do) for do in (limit, put_into_filter, come_and_be_forgotten, ask)]
        hand_over(healed, clients, None, work)
        n_limits, n_items, n_users, n_asked = [w.end() for w in work]
    assert min(n_limits, n_items, n_users, n_asked) >= 18
    assert all(3 - again <= allowed <= 3 for allowed, again in limits), limits
    http = other.client()
    for i in range(n_items):
        answer, _ = served(http, "POST", f"/filters/f{i % 3}/check?site={site}", {"items": [f"item{i}"]})
        assert answer.json["seen"] == [True], i
    assert active_users(http, people) == {f"u{n}" for n in range(1, n_users, 2)}
    ledger.check(other)
