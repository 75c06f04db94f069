"""Rolling up a real cluster: each server its own partitions, while a slot is open, a node is away, the leader is killed, and in the
middle of all that happens to primaries; and a master that Sentinels name.  TALLYD_REDIS_SERVER= chooses the server."""

import contextlib
import functools
import re
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.clock import FakeClock, epoch, rfc3339
from lib.cluster import Cluster, running, skip_without_clock
from lib.process import Tallyd, binary, short_directory
from lib.sentinel import SentinelGroup
from lib.truth import Model, is_close
from lib.waiting import wait_until

pytestmark = pytest.mark.cluster

PARTITIONS = 16
BEGIN = "2026-03-10 08:20:00"


class World:
    """A cluster whose clock moves, tallyds on it, and the model of what was posted."""

    def __init__(self, servers=None):
        directory = short_directory()
        directory.mkdir(exist_ok=True)
        self.clock = FakeClock(directory, BEGIN)
        # a node must not be taken for dead because the clock was moved
        self.cluster = (servers or functools.partial(Cluster, node_timeout_ms=10**8, options=("--appendonly", "yes")))(clock=self.clock)
        self.model, self.tallyds, self.site = Model(), [], "s"

    def start(self):
        self.cluster.start()
        for _ in range(2):
            self.tallyds.append(Tallyd("--partitions", str(PARTITIONS), redis=self.cluster.url, name=f"tallyd{len(self.tallyds)}").start())
        return self

    def stop(self):
        for process in (*self.tallyds, self.cluster):
            process.stop()

    @property
    def http(self):
        return next(t for t in self.tallyds if t.alive()).client()

    def post(self, n=300):
        """Some events of now."""
        minute = rfc3339(self.clock.now())[:16]
        wait_until(lambda: self.http.question("/pv", from_="now-1m")["to"][:16] > minute, "it knows the time", deadline_s=30)
        now = int(self.clock.now())
        events = [{"site": f"{self.site}{i % 4}", "page": f"/p{i % 25}", "user": f"u{i % 70}", "ip": f"10.0.0.{i % 200}", "ts": now - 20 + 20 * i // n}
                  for i in range(n)]
        self.http.accept(events)
        for event in events:
            self.model.add(event, now)

    def next_hour(self):
        """The clock goes on to behind the next hour and its time of grace; that hour, as /rollup says it."""
        end = int(self.clock.now()) // 3600 * 3600 + 3600
        self.clock.set(end + 40)
        return rfc3339(end)

    def rollup(self, method="GET"):
        return self.http.request(method, "/rollup")

    def check(self):
        """Every figure is the model's."""
        from_s = epoch(BEGIN) // 86400 * 86400
        to_s = int(self.clock.now()) // 60 * 60 + 60
        for site in (f"{self.site}{i}" for i in range(4)):
            right = self.model.counts(site, from_s, to_s, None)
            for metric in ("pv", "uv", "ips", "visits"):
                answer = self.http.question("/" + metric, site=site, from_=rfc3339(from_s), to=rfc3339(to_s))
                got = answer[metric]
                assert is_close(got, right[metric]) if metric in ("uv", "ips") else got == right[metric], (metric, site, got, right)

    def states(self):
        """{key of a partition's state: its st}, of the nodes that run."""
        return {key: node.command("HGET", key, "st") for node in self.cluster.primaries() for key in node.command("KEYS", "t:*:state")}

    def slot(self, key):
        return self.cluster.nodes[0].command("CLUSTER", "KEYSLOT", key)


@pytest.fixture(scope="module")
def world():
    with running(World()) as one:
        yield one


def watermark(world):
    return world.rollup().json["watermarks"]["hour"]


def test_all_servers_roll_up(world):
    world.post()
    hour = world.next_hour()
    wait_until(lambda: watermark(world) == hour, "it is rolled up", deadline_s=30)
    begin = rfc3339(epoch(hour[:19]) - 3600)
    cover = world.http.question("/uv", site="s0", from_=begin, to=hour)["cover"]
    assert cover["hour"] == 1 and cover["minute"] == 0, cover
    world.check()


def test_a_slot_that_stays_open(world):
    """Its partition waits, the others do not; when the slot is closed it is completed."""
    world.post()
    states = world.states()
    key = sorted(states)[3]
    slot, source = world.slot(key), world.cluster.owner(world.slot(key))
    target = next(p for p in world.cluster.primaries() if p is not source)
    world.http.question("/pv")  # what was posted is counted
    world.cluster.open_slot(slot, target)
    try:
        world.cluster.move_keys(slot, source, target, most=2)
        hour = world.next_hour()
        wait_until(lambda: sum(st != states.get(k) for k, st in world.states().items()) >= PARTITIONS - 1, "all others", deadline_s=30)
        assert world.rollup().status != 200 or watermark(world) != hour, "not all of them"
    finally:
        world.cluster.move_keys(slot, source, target)
        world.cluster.close_slot(slot, target)
    wait_until(lambda: watermark(world) == hour, "the last one, too", deadline_s=30)
    world.check()


def test_a_node_that_is_away_stops_its_own_partitions(world):
    world.post()
    lock = wait_until(lambda: next((k for n in world.cluster.primaries() for k in n.command("KEYS", "t:*:fence")), None), "somebody leads")
    home = world.cluster.owner(world.slot(lock))
    victim = next(p for p in world.cluster.primaries() if p is not home)
    theirs = set(victim.command("KEYS", "t:*:state"))
    states = world.states()
    assert theirs and len(theirs) < PARTITIONS
    world.http.question("/pv")  # what was posted is counted
    victim.kill()
    try:
        hour = world.next_hour()
        wait_until(lambda: all(st != states[k] for k, st in world.states().items() if k not in theirs), "all others", deadline_s=40)
        assert world.rollup().status == 503, "of all partitions nobody can tell"
    finally:
        victim.start()
    wait_until(lambda: world.rollup().status == 200 and watermark(world) == hour, "its own, too", deadline_s=40)
    world.check()


def leads(tallyd):
    answer = tallyd.client().request("GET", "/rollup")
    return answer.status == 200 and answer.json["leader"]


def test_the_leader_is_killed(world):
    world.post()
    leader = wait_until(lambda: [t for t in world.tallyds if leads(t)], "one leads", deadline_s=30)[0]
    leader.kill()
    try:
        hour = world.next_hour()
        wait_until(lambda: watermark(world) == hour, "the other one leads and is through", deadline_s=40)
        world.check()
    finally:
        leader.start()


def test_a_pass_that_is_asked_for(world):
    """By a process that does not lead."""
    world.post()
    wait_until(lambda: any(leads(t) for t in world.tallyds), "one leads", deadline_s=30)
    end = int(world.clock.now()) // 3600 * 3600 + 3600
    world.clock.set(end + 2)
    other = wait_until(lambda: next((t for t in world.tallyds if not leads(t)), None), "one of them does not lead", deadline_s=30)
    answer = other.client().request("POST", "/rollup")
    assert answer.status == 200 and answer.json["watermarks"]["hour"] == rfc3339(end), answer
    world.check()


@pytest.mark.some(2)
@pytest.mark.parametrize("how", ["a replica takes over", "nobody hears of it"])
def test_a_pass_is_lost_before_it_is_over_everywhere(world, start_tallyd, how):
    """A server goes back behind what the pass did there, while another server is slow.  The wish is not fulfilled by that pass: who
    asked hears of the next one, which does not wait for another look at the wish."""
    world.post()
    wait_until(lambda: any(leads(t) for t in world.tallyds), "one leads", deadline_s=30)
    cluster = world.cluster
    world.http.question("/pv")  # what was posted is counted
    home = wait_until(lambda: next((n for n in cluster.primaries() if n.command("KEYS", "t:*:lock")), None), "its lock is there")
    victim, slow = (n for n in cluster.primaries() if n is not home)
    replica, states = cluster.replicas_of(victim)[0], victim.command("KEYS", "t:*:state")
    before = world.states()
    end = int(world.clock.now()) // 3600 * 3600 + 3600
    world.clock.set(end + 2)
    wait_until(lambda: home.command("KEYS", "t:*:lock"), "the lock, which the clock's jump has ended, is taken again")
    # who comes now does not lead
    other = start_tallyd("--partitions", str(PARTITIONS), "--request-timeout", "60s", redis=cluster)

    def is_over():
        return all(int(victim.command("HGET", key, "st").split()[1]) == end and
                   not victim.command("HEXISTS", key.replace(":state", ":pass"), "pass") for key in states)

    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(other.client(70).request, "POST", "/rollup")
        wait_until(lambda: home.command("KEYS", "t:*:wish"), "the wish")
        replica.pause()
        victim.command("CLIENT", "KILL", "TYPE", "replica")
        with slow.connect() as connection:
            theirs = [key.replace(":state", ":pass") for key in connection.command("KEYS", "t:*:state")]
            wait_until(lambda: any(connection.command("HEXISTS", key, "pass") for key in theirs), "the pass begins", pause_s=0)
        slow.pause()
        wait_until(is_over, "the pass on this server", pause_s=0.001)
        if how == "a replica takes over":
            victim.kill()
            replica.resume()
            cluster.failover(replica, "TAKEOVER")
        else:
            for key in states:
                victim.command("HSET", key, "st", before[key])
            replica.resume()
        lock = wait_until(lambda: home.command("KEYS", "t:*:lock"), "somebody leads")[0]
        if how == "a replica takes over":
            wait_until(lambda: home.command("PTTL", lock) > 9800, "the lock is renewed, and with that the wish looked at", pause_s=0.01)
        left_ms, begin = home.command("PTTL", lock), time.monotonic()
        slow.resume()
        answer, took_s = answer.result(), time.monotonic() - begin
        renewed = home.command("PTTL", lock) > left_ms
    if not victim.alive():
        victim.start()
    cluster.wait_ok()
    assert how == "a replica takes over" or not renewed or took_s > 4, "the pass waited for the next look at the wish"
    assert answer.status == 200 and answer.json["watermarks"]["hour"] == rfc3339(end), answer


@pytest.fixture
def own_world():
    with running(World()) as one:
        yield one


def replace(cluster, primary, how):
    """Its replica takes over.  As the clock is moved, the node timeout is a day: no node is taken for dead, and none votes twice
    for a shard's replica.  So the replica of a primary that is dead or stands still asks nobody."""
    replica = cluster.replicas_of(primary)[0]
    if how not in ("kill", "pause"):
        cluster.failover(replica, how)
        return
    getattr(primary, how)()
    cluster.failover(replica, "TAKEOVER")
    (primary.start if how == "kill" else primary.resume)()


def slots_move(world):
    """Every other partition goes to the next primary."""
    primaries = world.cluster.primaries()
    for key in sorted(world.states())[::2]:
        slot = world.slot(key)
        world.cluster.move_slots(slot, slot, primaries[(primaries.index(world.cluster.owner(slot)) + 1) % len(primaries)])


def replicas_have_all(primaries, replicas):
    for primary, replica in zip(primaries, replicas):
        goal = int(primary.info("replication")["master_repl_offset"])
        wait_until(lambda r=replica, n=goal: int(r.info("replication")["slave_repl_offset"]) >= n, "its replica has all")


@contextlib.contextmanager
def rolling_up(world):
    """A pass is asked for and goes on; the hour that it completes."""
    world.post(3000)
    world.http.question("/pv")  # what was posted is counted
    primaries = world.cluster.primaries()
    replicas_have_all(primaries, [world.cluster.replicas_of(primary)[0] for primary in primaries])
    hour = world.next_hour()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(lambda: world.tallyds[0].client().request("POST", "/rollup"))
        yield hour
        assert asked.result().status in (200, 503, 504)


def through(world, hour):
    world.cluster.wait_ok()
    wait_until(lambda: world.rollup().status == 200 and watermark(world) == hour, "it is rolled up", deadline_s=40)
    world.check()


@pytest.mark.some(2)
@pytest.mark.parametrize("how", [None, "TAKEOVER", "kill", "pause", "slots move"])
def test_rolled_up_in_the_middle(world, how):
    """While the pass goes on each primary's replica takes over, one after the other, or slots move."""
    with rolling_up(world) as hour:
        if how == "slots move":
            slots_move(world)
        else:
            for primary in world.cluster.primaries():
                replace(world.cluster, primary, how)
    through(world, hour)


def test_rolled_up_while_nodes_change_their_addresses_and_are_failed_over_by_force(own_world):
    """A cluster of its own: in that of the other tests each shard has had its only vote."""
    with rolling_up(own_world) as hour:
        for node in own_world.cluster.primaries():
            own_world.cluster.move_node(node)
    through(own_world, hour)
    with rolling_up(own_world) as hour:
        for primary in own_world.cluster.primaries():
            replace(own_world.cluster, primary, "FORCE")
    through(own_world, hour)


def test_a_primary_comes_back_empty_while_it_is_rolled_up(own_world):
    """What it has is the pass that other primaries' partitions get; its own have lost their states, and nothing makes them anew.
    With states given by hand all goes on, and what came since is right."""
    world = own_world
    lock = wait_until(lambda: next((k for n in world.cluster.primaries() for k in n.command("KEYS", "t:*:fence")), None), "somebody leads")
    victim = next(p for p in world.cluster.primaries() if p is not world.cluster.owner(world.slot(lock)))
    states, theirs = world.states(), set(victim.command("KEYS", "t:*:state"))
    with rolling_up(world) as hour:
        victim.kill()
        shutil.rmtree(victim.directory / "appendonlydir")
        victim.start()
    world.cluster.wait_ok()
    wait_until(lambda: all(st != states[k] for k, st in world.states().items() if k not in theirs), "all others", deadline_s=40)
    detail = wait_until(lambda: world.rollup().json.get("detail"), "of all partitions nobody can tell")
    assert "has lost its state" in detail and victim.command("KEYS", "t:*:state") == [], detail
    assert theirs and set(world.states()) == set(states) - theirs
    said = subprocess.run([binary(), "cluster", "status", "--redis", world.cluster.url], capture_output=True, text=True, timeout=30, check=False)
    lost = re.findall(r"partition (\d+) has lost its state", said.stdout)
    assert len(lost) == len(theirs), said
    for partition in lost:
        subprocess.run([binary(), "cluster", "reset-partition", partition, "--redis", world.cluster.url], timeout=30, check=True)
    world.model = Model()
    world.site = "t"
    world.post()
    hour = world.next_hour()
    through(world, hour)


class Masters:
    """A master that Sentinels name, as the nodes of a cluster for World: one of them is its primary."""

    def __init__(self, clock):
        skip_without_clock(clock)
        self.group = SentinelGroup(replicas=1, options=("--appendonly", "yes", "--appendfsync", "always", "--repl-timeout", 10**8))
        for server in self.group.servers:
            server.clock = clock

    def start(self):
        return self.group.start()

    def stop(self):
        self.group.stop()

    def wait_ok(self):
        self.group.wait_ok(60)

    @property
    def url(self):
        return self.group.url

    def primaries(self):
        return [self.group.master()]

    def replicas_of(self, master):
        return [s for s in self.group.servers if s is not master]


@pytest.mark.parametrize("how", ["kill", "pause"])
def test_sentinels_name_another_master_while_it_is_rolled_up(how):
    world = World(Masters)
    try:
        world.start()
        with rolling_up(world) as hour:
            (old,) = world.cluster.primaries()
            (replica,) = world.cluster.replicas_of(old)  # if it had the time of before it would say that it was without a master for an hour
            wait_until(lambda: int(replica.info("server")["server_time_usec"]) > epoch(hour) * 10**6, "it knows the time")
            getattr(old, how)()
            world.cluster.group.wait_new_master(old)
            (old.start if how == "kill" else old.resume)()
        through(world, hour)
    finally:
        world.stop()
