"""Redis's clock steps, by minutes and hours in both directions, under load: what is acknowledged counts once, in every
answer whose window contains it, and a repeat with its key is no second event."""

import threading

import pytest

from lib.client import Unknown
from lib.clock import epoch, rfc3339
from lib.ledger import Threads
from lib.log import counted
from lib.world import FOREVER

START = "2026-03-10 10:20:10"
FAR = "2026-04-20"  # beyond every step
SAMPLE = 40
MINUTE, HOUR, DAY = 60, 3600, 86400
HARMLESS = (90, -90, 10 * MINUTE, -10 * MINUTE, HOUR, -HOUR, 5 * HOUR, -5 * HOUR, -30 * MINUTE, 2 * HOUR)
FORWARD = (31, 5 * MINUTE, HOUR, 3 * HOUR, 7 * HOUR)
BACK = (-31, -5 * MINUTE, -HOUR, -3 * HOUR, -7 * HOUR)


class Senders(Threads):
    """Threads that post, each event of a page and a user of its own; every second one with a key, until it is taken."""

    def __init__(self, world, site, n=4):
        super().__init__(n)
        self.world, self.site = world, site
        self.lock = threading.Lock()
        self.counted, self.unknown, self.keyed = [], [], []

    def event(self, name):
        return {"site": self.site, "page": f"/{name}", "user": f"u{name}"}

    def post(self, http, name, keyed):
        return http.post(self.event(name), headers={"Idempotency-Key": f"{self.site} {name}"} if keyed else None)

    def _run(self, me):
        http, n = self.world.tallyds[me % len(self.world.tallyds)].client(), 0
        while not self.stopping.is_set():
            name, keyed = f"{me}-{n}", n % 2 == 1
            try:
                status = self.post(http, name, keyed).status
            except Unknown as error:
                status = None
                self.faults.append(str(error))
            with self.lock:
                if status == 202:
                    self.counted.append(name)
                    self.keyed += [name] if keyed else []
                elif status == 504 and not keyed:
                    self.unknown.append(name)
                elif status not in (503, 504):
                    self.faults.append(f"{name}: {status}")
            n += 0 if keyed and status != 202 else 1
            self.stopping.wait(0.01)

    def least(self):
        with self.lock:
            return len(self.counted)


def whole(site):
    return {"site": site, "from_": rfc3339(epoch(START) - 2 * 86400), "to": FAR}


def check_at_once(senders, http):
    """While they post: nothing that was acknowledged before the question is missing."""
    least = senders.least()
    answer = http.get("/stats", **whole(senders.site))
    assert answer.status in (200, 503), answer
    if answer.status == 200:
        assert least <= answer.json["pv"] and least <= answer.json["visits"], (least, answer)


def check_all(senders, world, chance):
    """Every figure, from each process; every sampled page, user and key."""
    n, site = len(senders.counted), senders.site
    for tallyd in world.tallyds:
        http = tallyd.client()
        stats = http.question("/stats", **whole(site))
        most = n + len(senders.unknown)
        assert n <= stats["pv"] <= most and n <= stats["visits"] <= most, (n, most, stats)
        active = http.question("/active", site=site, match="any", from_="2026-03-08", to=FAR)["users"]
        assert n <= active <= most, (n, active)
        for name in chance.sample(senders.counted, min(n, SAMPLE)):
            assert http.count("pv", page=f"/{name}", **whole(site)) == 1, name
            assert http.question("/seen", site=site, user=f"u{name}", page=f"/{name}")["seen"], name
        for name in senders.keyed[-SAMPLE:]:
            again = senders.post(http, name, True)
            assert again.status == 202 and again.headers["Idempotency-Replayed"] == "true", (name, again)
        assert http.count("pv", **whole(site)) == stats["pv"], "repeats count nothing"


@pytest.mark.some(1)
@pytest.mark.parametrize("steps", [HARMLESS, FORWARD, BACK], ids=["to and fro", "forward", "back"])
def test_steps_under_load(start_world, site, chance, steps):
    world = start_world(START, "--partitions", "4", *FOREVER, appendonly=True)
    world.add_tallyd()
    http = world.http
    with Senders(world, site) as senders:
        for step in chance.sample(steps, len(steps)):
            goal = senders.least() + 20
            while senders.least() < goal and not senders.faults:
                check_at_once(senders, http)
            (world.clock.advance if step > 0 else lambda s: world.clock.set_back(-s))(step)
            check_at_once(senders, http)
        goal = senders.least() + 20
        while senders.least() < goal and not senders.faults:
            check_at_once(senders, http)
    assert len(senders.counted) > 20 * len(steps)
    check_all(senders, world, chance)
    world.clock.advance(26 * HOUR)  # hours and a day end; keys of requests are forgotten
    senders.keyed.clear()
    assert http.request("POST", "/rollup").status == 200
    check_all(senders, world, chance)


@pytest.mark.parametrize("start", ["2026-03-10 11:00:20", "2026-03-10 11:30:20"])
def test_a_step_back_begins_no_visit(start_world, site, start):
    """Also over the border of an hour, by which the last events of visitors are kept."""
    world = start_world(start, "--partitions", "4", *FOREVER)
    http, window = world.http, {"site": site, "from_": "2026-03-09", "to": "2026-03-20"}
    for back_s in (0, 40):
        world.clock.set_back(back_s)
        for _ in range(3):
            http.accept({"site": site, "page": "/p", "user": "ann"})
            assert http.count("visits", **window) == 1


def test_a_step_back_out_of_a_month(start_world, site):
    """What was seen in the month that has not begun yet, by the clock now: a no is certain."""
    world = start_world("2026-04-01 00:02:00", "--partitions", "4", *FOREVER)
    http, window = world.http, {"site": site, "from_": "2026-03-30", "to": "2026-04-20"}
    http.accept({"site": site, "page": "/p", "user": "ann"})
    assert http.count("pv", **window) == 1
    world.clock.set_back(10 * MINUTE)
    http.accept({"site": site, "page": "/q", "user": "bob"})
    assert http.count("pv", **window) == 2
    for user, page in ("ann", "/p"), ("bob", "/q"):
        assert http.question("/seen", site=site, user=user, page=page)["seen"], user


@pytest.mark.parametrize("back_s", [2 * DAY, 3 * DAY, 60 * DAY, 600 * DAY])
@pytest.mark.parametrize("when", ["counted", "not counted yet"])
def test_steps_back_of_days_out_of_a_month(start_world, site, back_s, when):
    """What was seen while the clock was ahead: a no is certain, also of a process that was not there."""
    world = start_world("2026-04-01 12:02:00", "--partitions", "4", *FOREVER)
    world.http.accept({"site": site, "page": "/p", "user": "ann"})
    if when == "counted":
        counted(world.http)
    world.tallyd.kill()
    world.clock.set_back(back_s)
    world.restart()
    world.http.accept({"site": site, "page": "/q", "user": "bob"})
    world.add_tallyd()
    for tallyd in world.tallyds:
        for user, page in ("ann", "/p"), ("bob", "/q"):
            assert tallyd.client().question("/seen", site=site, user=user, page=page)["seen"], user
        assert not tallyd.client().question("/seen", site=site, user="bob", page="/p")["seen"]
