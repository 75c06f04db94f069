"""Rate limits, forgetting, filters, page sets, hot pages and readiness on a real cluster: each key at its own node, while slots move
and nodes fail.  TALLYD_REDIS_SERVER= chooses the server."""

import json
import threading
import time

import pytest

from lib.cluster import Cluster
from lib.process import Tallyd
from lib.waiting import wait_until

PARTITIONS = 16

pytestmark = pytest.mark.cluster


def send(http, method, target, body):
    return http.request(method, target, json.dumps(body).encode())


class Fleet:
    """A cluster, and tallyds on it."""

    def __init__(self):
        self.cluster, self.tallyds = Cluster(options=("--appendonly", "yes")), []

    def start(self):
        self.cluster.start()
        self.add()
        return self

    def add(self, *args):
        tallyd = Tallyd("--partitions", str(PARTITIONS), "--log-hold", "1s", *args, redis=self.cluster.url, name=f"tallyd{len(self.tallyds)}")
        self.tallyds.append(tallyd)
        return tallyd.start()

    @property
    def http(self):
        return self.tallyds[0].client()

    def slots(self):
        """{slot: a key of it}: those of the partitions' states."""
        found = {}
        for node in self.cluster.primaries():
            for key in node.command("KEYS", "t:*:state"):
                found[node.command("CLUSTER", "KEYSLOT", key)] = key
        assert len(found) == PARTITIONS
        return found

    def slot_of_limit(self, http, key):
        """The slot that has the limit of a key."""
        send(http, "POST", "/ratelimit", {"key": key, "algorithm": "sliding", "limit": 3, "period_s": 60, "cost": 1})
        found = [(n, k) for n in self.cluster.primaries() for k in n.command("KEYS", f"t:*:rl:*:{key}")]
        return found[0][0].command("CLUSTER", "KEYSLOT", found[0][1])

    def stop(self):
        for process in (*self.tallyds, self.cluster):
            process.stop()


@pytest.fixture(scope="module")
def fleet():
    one = Fleet()
    try:
        yield one.start()
    finally:
        one.stop()


@pytest.fixture
def moving(fleet):
    """Slots move to and fro, with their keys, as long as the test lasts."""
    stop, faults, moved = threading.Event(), [], []

    def move():
        try:
            slots = sorted(fleet.slots())
            while not stop.is_set():
                slot = slots[len(moved) % len(slots)]
                source = fleet.cluster.owner(slot)
                primaries = fleet.cluster.primaries()  # to the next one: no node is left without any
                fleet.cluster.move_slots(slot, slot, primaries[(primaries.index(source) + 1) % len(primaries)])
                moved.append(slot)
                stop.wait(0.2)  # a question that meets a move begins anew
        except Exception as error:  # pylint: disable=broad-except
            faults.append(error)

    mover = threading.Thread(target=move, daemon=True)
    mover.start()
    yield moved
    stop.set()
    mover.join()
    assert not faults and moved, (faults, moved)
    fleet.cluster.wait_ok()


def limit(http, key, algorithm="sliding", n=5, **more):
    return send(http, "POST", "/ratelimit", {"key": key, "algorithm": algorithm, "limit": n, "period_s": 600, **more})


def test_many_at_once(fleet):
    """Requests that wait together go to the servers of their keys: no call of a script has keys of two slots."""
    n, refused = 16, []

    def ask(i):
        http = fleet.tallyds[0].client()
        for k in range(30):
            answers = [limit(http, f"many{i}-{k}", n=1) for _ in range(2)]
            if [a.status for a in answers] != [200, 429]:
                refused.append(answers)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not refused, refused[0]


@pytest.mark.parametrize("algorithm", ["sliding", "funnel"])
def test_limits_are_exact_while_slots_move(fleet, moving, algorithm):
    """Nothing was done for what a node refused, so each key lets through exactly what its limit allows."""
    http = fleet.http
    more = {"burst": 4} if algorithm == "funnel" else {}
    n = 1 if algorithm == "funnel" else 5
    wait_until(lambda: len(moving) > 2, "slots move")
    for i in range(60):
        key = f"{algorithm}{i}"
        statuses = [limit(http, key, algorithm, n, **more).status for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2, (key, statuses)


def test_a_limit_in_a_slot_that_stays_open(fleet):
    """A new key of the slot is asked for at the node that gets the slot; other slots do not wait for it."""
    http = fleet.http
    slot = fleet.slot_of_limit(http, "open0")
    keys = [f"open{i}" for i in range(1, 200)]
    in_slot = [k for k in keys if fleet.slot_of_limit(http, k) == slot][:5]
    source = fleet.cluster.owner(slot)
    target = next(p for p in fleet.cluster.primaries() if p is not source)
    for key in in_slot:
        assert http.request("DELETE", f"/ratelimit?key={key}").status in (200, 204)
    fleet.cluster.open_slot(slot, target)
    try:
        for key in in_slot:
            begin = time.monotonic()
            assert [limit(http, key, n=2).status for _ in range(3)] == [200, 200, 429]
            assert time.monotonic() - begin < 2
        assert any("rl:" in k for k in target.command("CLUSTER", "GETKEYSINSLOT", slot, 100)), "they were made there"
        begin = time.monotonic()
        for key in (k for k in keys if k not in in_slot):
            assert limit(http, key, n=1000).status == 200
        assert time.monotonic() - begin < 10
    finally:
        fleet.cluster.move_keys(slot, source, target)
        fleet.cluster.close_slot(slot, target)
    assert [limit(http, key, n=2).status for key in in_slot] == [429] * len(in_slot), "what was taken stays taken"


def test_users_filters_and_page_sets_while_slots_move(fleet, moving):
    http = fleet.http
    http.accept([{"site": "f", "page": f"/{i}", "user": f"u{i}"} for i in range(60)])
    wait_until(lambda: len(moving) > 2, "slots move")
    assert len(http.question("/active/users", site="f", from_="now/d", to="now+1d/d", limit=1000)["users"]) == 60
    for i in range(0, 60, 2):
        answer = http.request("DELETE", f"/users/u{i}?site=f")
        assert answer.status == 200, answer
    left = http.question("/active/users", site="f", from_="now/d", to="now+1d/d", limit=1000)["users"]
    assert sorted(left) == sorted(f"u{i}" for i in range(1, 60, 2))
    for n in range(5):
        assert send(http, "PUT", f"/pagesets/s{n}?site=f", {"pages": [f"/{n}", "/x"]}).status == 201
        assert http.question(f"/pagesets/s{n}", site="f")["pages"] == [f"/{n}", "/x"]
        assert send(http, "PUT", f"/filters/b{n}?site=f", {"capacity": 1000}).status == 201
        items = [f"{n}-{i}" for i in range(200)]
        assert send(http, "POST", f"/filters/b{n}/add?site=f", {"items": items}).status == 200
        assert all(send(http, "POST", f"/filters/b{n}/check?site=f", {"items": items}).json["seen"])
        assert http.request("DELETE", f"/filters/b{n}?site=f").status == 204
        assert http.request("DELETE", f"/pagesets/s{n}?site=f").status == 204


def test_the_hot_pages_of_all(fleet):
    if len(fleet.tallyds) < 2:
        fleet.add()
    for n, tallyd in enumerate(fleet.tallyds):
        tallyd.client().accept([{"site": "hot", "page": f"/{n}", "user": i} for i in range(50)])
    for tallyd in fleet.tallyds:
        wait_until(lambda t=tallyd: {p["page"] for p in t.client().question("/hotkeys", limit=1000)["pages"] if p["site"] == "hot"} ==
                   {f"/{n}" for n in range(len(fleet.tallyds))}, "all pages", deadline_s=5)


def test_a_node_that_is_away(fleet):
    """With its replica: what needs its slots is a 503 that names it, the rest goes on, and /readyz says so."""
    http = fleet.http
    keys = [f"away{i}" for i in range(40)]
    slots = {key: fleet.slot_of_limit(http, key) for key in keys}
    owners = {key: fleet.cluster.owner(slots[key]) for key in keys}
    victim = owners[keys[0]]
    replicas = fleet.cluster.replicas_of(victim)
    mine = [k for k in keys if owners[k] is victim]
    others = [k for k in keys if k not in mine]
    assert mine and others
    for replica in replicas:
        replica.kill()
    victim.kill()
    try:
        degraded = wait_until(lambda: http.get("/readyz").json.get("degraded"), "it is noticed", deadline_s=10)
        assert http.get("/readyz").status == 200 and degraded[0].startswith(victim.address), degraded
        wait_until(lambda: limit(http, mine[0], n=1000).status == 503, "the key has no server", deadline_s=10)
        for key in mine:
            begin = time.monotonic()
            answer = limit(http, key, n=1000)
            assert answer.status == 503 and victim.address in answer.json["detail"], answer
            assert time.monotonic() - begin < 1.5
        begin = time.monotonic()
        assert [limit(http, key, n=1000).status for key in others] == [200] * len(others)
        assert time.monotonic() - begin < 5
    finally:
        for node in (victim, *replicas):
            node.start()
    fleet.cluster.wait_ok()
    wait_until(lambda: "degraded" not in http.get("/readyz").json, "it is whole again", deadline_s=20)
    wait_until(lambda: [limit(http, key, n=1000).status for key in mine] == [200] * len(mine), "they are served", deadline_s=10)
