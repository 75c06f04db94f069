"""Questions to a cluster that holds tallyd's data, through reader_tool: the figures are those of one Redis, also while slots move
and primaries fail.  The data was written to one Redis and copied.  TALLYD_REDIS_SERVER= chooses the cluster's server."""

import os
import subprocess
import threading
import time

import pytest

from lib.cluster import Cluster, running
from lib.process import ROOT, Redis, Tallyd
from lib.waiting import wait_until

PARTITIONS = 16
METRICS = ("pv", "uv", "ips", "visits")

pytestmark = pytest.mark.cluster


def copy(redis, cluster):
    """Each key to the node that owns its slot, as it is."""
    slots = {}
    for key in redis.command("KEYS", "*"):
        slots.setdefault(cluster.nodes[0].command("CLUSTER", "KEYSLOT", key), []).append(key)
    for slot, keys in slots.items():
        node = cluster.owner(slot)
        for i in range(0, len(keys), 100):
            redis.command("MIGRATE", node.host, node.port, "", 0, 10_000, "COPY", "KEYS", *keys[i:i + 100])
    return slots


class Reader:
    def __init__(self, url):
        tool = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "reader_tool").resolve()
        self.process = subprocess.Popen([tool, url, str(PARTITIONS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question):
        self.process.stdin.write(question + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"reader_tool ended with {self.process.wait()}"
        return line.rstrip("\n")

    def close(self):
        self.process.stdin.close()
        assert self.process.wait(15) == 0
        self.process.stdout.close()


class World:
    """A cluster with copied data, and what is right: {question: answer}."""

    def __init__(self):
        self.cluster, self.redis = Cluster(), Redis()
        self.tallyd = None

    def start(self):
        self.redis.start()
        self.tallyd = Tallyd("--partitions", str(PARTITIONS), redis=self.redis).start()
        http = self.tallyd.client()
        for n in range(40):
            http.accept([{"site": f"s{i % 3}", "page": f"/p{(n * i) % 50}", "user": f"u{(n + i) % 200}", "ip": f"10.0.{n}.{i % 250}"}
                         for i in range(100)])
        now = int(self.redis.time())
        window = f"{now // 3600 * 3600 - 7200} {now // 3600 * 3600 + 3600}"
        self.right = {"sites": "s0 s1 s2"}
        for site in ("s0", "s1", "s2"):
            for metric in METRICS:
                self.right[f"count {metric} {site} {window}"] = str(http.count(metric, site=site, from_="now-1h"))
            for page in ("/p0", "/p7", "/p49"):
                for metric in METRICS:
                    self.right[f"count {metric} {site} {window} {page}"] = str(
                        http.count(metric, site=site, page=page, from_="now-1h"))
            rows = http.question("/pages", site=site, from_="now-1h", limit=1000)["pages"]
            self.right[f"pages {site} {window}"] = " ".join(f"{r['page']}={r['pv']}" for r in rows)
        self.cluster.start()
        self.slots = copy(self.redis, self.cluster)
        assert len({self.cluster.owner(slot).id for slot in self.slots}) == 3
        for node in self.cluster.primaries():
            node.command("WAIT", 1, 2000)
        return self

    def stop(self):
        for process in (self.tallyd, self.redis, self.cluster):
            if process is not None:
                process.stop()


@pytest.fixture(scope="module")
def world():
    with running(World()) as one:
        yield one


@pytest.fixture
def reader(world, cleanup):
    one = Reader(world.cluster.url)
    cleanup.append(one.close)
    return one


def check(world, reader):
    for question, right in world.right.items():
        assert reader.ask(question) == right, question


def test_the_figures_are_those_of_one_redis(world, reader):
    assert len(world.right) > 40
    check(world, reader)
    check(world, reader)


def test_while_slots_move(world, reader):
    """To and fro, with their keys, under questions: no answer is wrong, and none fails."""
    stop, faults = threading.Event(), []

    def move():
        try:
            n = 0
            while not stop.is_set():
                slot = sorted(world.slots)[n % len(world.slots)]
                source = world.cluster.owner(slot)
                world.cluster.move_slots(slot, slot, next(p for p in world.cluster.primaries() if p is not source))
                n += 1
        except Exception as error:  # pylint: disable=broad-except
            faults.append(error)

    mover = threading.Thread(target=move, daemon=True)
    mover.start()
    end, rounds = time.monotonic() + 6, 0
    try:
        while time.monotonic() < end:
            check(world, reader)
            rounds += 1
    finally:
        stop.set()
        mover.join()
    assert not faults and rounds >= 2, (faults, rounds)


def test_a_primary_fails_over(world, reader):
    check(world, reader)
    world.cluster.wait_ok()
    old = world.cluster.owner(sorted(world.slots)[0])
    old.kill()
    wait_until(lambda: len(world.cluster.primaries()) == 3, "a replica took over")
    check(world, reader)
    old.start()
    world.cluster.wait_ok()
    check(world, reader)
