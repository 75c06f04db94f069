"""A Redis Cluster on loopback: primaries and replicas, each a process of its own.

`TALLYD_REDIS_SERVER=` names the server (default `redis-server`; `valkey-server` works).  A node keeps its port and its
directory over kill() and start(), so it comes back as the node that it was.
"""

import binascii
import contextlib
import os
import re
import shutil
import socket

import pytest

from .process import RespServer, mend_append_only, short_directory
from .resp import Resp, RespError
from .waiting import wait_until

SLOTS = 16384
NODE_TIMEOUT_MS = 1000
BUS = 10000  # a node's bus listens so far above its port


def server_binary():
    """The server under test: TALLYD_REDIS_SERVER, a name or a path."""
    return os.environ.get("TALLYD_REDIS_SERVER", "redis-server")


def server_missing():
    """Why no cluster can be started here, or None."""
    return None if shutil.which(server_binary()) else f"{server_binary()} is not installed"


def skip_without_clock(clock):
    if clock is not None and "valkey" in server_binary():
        pytest.skip("nobody has tried valkey-server with a clock that is moved (tests/preload/moved_clock.c)")


def free_ports(n, above=0):
    """n ports of loopback that nobody listens on; with `above`, the port so far above each is free, too."""
    found, held = [], []
    try:
        while len(found) < n:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            port = port if port + above < 65536 else port - above
            pair = []
            try:
                for p in {port, port + above}:
                    pair.append(socket.socket())
                    pair[-1].bind(("127.0.0.1", p))
            except OSError:
                for s in pair:
                    s.close()
                continue
            held += pair
            found.append(port)
    finally:
        for s in held:
            s.close()
    return found


def tag_and_slot(partition, partitions):
    """As storage/schema/partition.h: the smallest number whose slot lies in the partition's range, as text, and that slot."""
    for number in range(100 * partitions):
        slot = binascii.crc_hqx(str(number).encode(), 0) % SLOTS
        if slot * partitions // SLOTS == partition:
            return str(number), slot
    raise AssertionError(partition)


@contextlib.contextmanager
def running(servers):
    """A Cluster, a Tallyd, or what else has start() and stop(), from its start to its end."""
    try:
        yield servers.start()
    finally:
        servers.stop()


def wait_ready(ready, what, deadline_s):
    """wait_until() for servers that may close connections meanwhile, or still load."""
    def attempt():
        try:
            return ready()
        except (OSError, RespError) as error:
            raise AssertionError(f"not yet: {error}") from error

    wait_until(attempt, what, deadline_s=deadline_s)


def mend_shard_ids(file):
    """A replica has its primary's shard-id; before a node starts.  Valkey 8.0.1 may write another one while a failover is being
    told, and refuses to start with that file (valkey-io/valkey#2171)."""
    if not file.exists():
        return
    lines = file.read_text().splitlines(keepends=True)
    shards = {line.split()[0]: match[0] for line in lines if (match := re.search("shard-id=[0-9a-f]{40}", line))}
    for i, line in enumerate(lines):
        node_id, _, _, primary, *_ = [*line.split(), *"----"]
        if node_id in shards and primary in shards:
            lines[i] = line.replace(shards[node_id], shards[primary])
    file.write_text("".join(lines))


class TcpServer(RespServer):
    """A server on a port of 127.0.0.1."""

    def __init__(self, directory, name, port, argv):
        super().__init__(directory, name)
        self.host, self.port, self.argv = "127.0.0.1", port, argv
        self.clock, self.login = None, None  # login: (user, password) of the tests' own connections

    @property
    def address(self):
        return f"{self.host}:{self.port}"

    def start(self):
        mend_append_only(self.directory, self.argv[0])
        self.spawn(self.argv, {**os.environ, **(self.clock.environment() if self.clock else {})})
        self.log = self.out  # the servers log on stdout
        wait_until(self.answers, f"{self.name} answers", pause_s=0.005)
        return self

    def connect(self, timeout_s=10):
        connection = Resp(socket.create_connection((self.host, self.port), timeout_s))
        if self.login is not None:
            connection.command("AUTH", *self.login)
        return connection

    def info(self, section):
        lines = self.command("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)


class Node(TcpServer):
    """One node of a cluster."""

    def __init__(self, root, number, port, options):
        directory = root / f"n{number}"
        super().__init__(directory, f"node{number}", port, [
            server_binary(), "--port", port, "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--loglevel", "notice",
            "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-port", port + BUS,
            "--repl-diskless-sync-delay", "0", *options])
        self.id = None

    def start(self):
        mend_shard_ids(self.directory / "nodes.conf")
        super().start()
        self.id = self.command("CLUSTER", "MYID")
        return self

    def cluster_info(self):
        lines = self.command("CLUSTER", "INFO").splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def state_is(self, state):
        try:
            return self.cluster_info()["cluster_state"] == state
        except OSError:
            return False

    def is_primary(self):
        return self.command("ROLE")[0] == "master"

    def followed(self):
        """{node: the node that it follows, or "-"}, as this node sees it."""
        return {line.split()[0]: line.split()[3] for line in self.command("CLUSTER", "NODES").splitlines()}

    def epoch(self):
        return int(self.cluster_info()["cluster_current_epoch"])

    def in_sync(self):
        """Of a replica: has it all that its primary has, and does it follow?"""
        info = self.info("replication")
        return info["role"] == "slave" and info["master_link_status"] == "up"


class Cluster:
    """`primaries` nodes with equal ranges of slots, and `replicas` replicas of each.

    clock: a FakeClock of all nodes; a node timeout must then be longer than what it is moved by.
    options: of every node, for example ("--appendonly", "yes").  nodes[0:primaries] begin as primaries; nodes[primaries + i]
    follows nodes[i % primaries].
    """

    def __init__(self, primaries=3, replicas=1, *, node_timeout_ms=NODE_TIMEOUT_MS, full_coverage=False, clock=None, options=()):
        skip_without_clock(clock)
        self.directory = short_directory()
        self.n_primaries, self.node_timeout_ms = primaries, node_timeout_ms
        more = ["--cluster-node-timeout", node_timeout_ms, "--cluster-require-full-coverage", "yes" if full_coverage else "no",
                "--cluster-allow-replica-migration", "no", *options]
        ports = free_ports(primaries * (1 + replicas), BUS)
        self.nodes = [Node(self.directory, i, port, more) for i, port in enumerate(ports)]
        for node in self.nodes:
            node.clock = clock

    # ---- begin and end ----

    def start(self):
        """All nodes, joined and ready for failovers."""
        self.start_nodes().node_timeout(NODE_TIMEOUT_MS).join().wait_ok()  # half a node timeout, and every node has heard of all
        return self.node_timeout(self.node_timeout_ms)

    def start_nodes(self):
        """The nodes, which do not know each other and have no slots."""
        for node in self.nodes:
            node.start()
        return self

    def node_timeout(self, ms):
        for node in self.nodes:
            node.command("CONFIG", "SET", "cluster-node-timeout", ms)
        return self

    def join(self):
        """Make a cluster of them; it is not ok yet."""
        first = self.nodes[0]
        for i, node in enumerate(self.nodes):
            node.command("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if node is not first:
                node.command("CLUSTER", "MEET", first.host, first.port, first.port + BUS)
        for i, node in enumerate(self.nodes[:self.n_primaries]):
            node.command("CLUSTER", "ADDSLOTSRANGE", i * SLOTS // self.n_primaries, (i + 1) * SLOTS // self.n_primaries - 1)
        for i, node in enumerate(self.nodes[self.n_primaries:]):
            primary = self.nodes[i % self.n_primaries]
            wait_until(lambda n=node, p=primary: p.id in n.command("CLUSTER", "NODES"), f"{node.name} knows {primary.name}")
            node.command("CLUSTER", "REPLICATE", primary.id)
        return self

    def wait_ok(self, deadline_s=30):
        """Every node that runs says ok, all agree on who owns what and who follows whom, and every replica is in sync."""
        living = [n for n in self.nodes if n.alive()]
        ids = {n.id for n in living}

        def ready():
            self.adopt_deposed(living)
            assert all(n.state_is("ok") for n in living), "cluster_state"
            owners = {tuple(map(str, self.owners(n))) for n in living}
            assert len(owners) == 1, f"{len(owners)} opinions"
            followed = {str(sorted((i, f) for i, f in n.followed().items() if i in ids)) for n in living}
            assert len(followed) == 1, f"{len(followed)} opinions of who follows whom"
            assert all(n.is_primary() or n.in_sync() for n in living), "replicas in sync"
            return True

        wait_ready(ready, "the cluster is ready", deadline_s)
        return self

    def can_be_elected(self, replica):
        """It gets no vote of a primary that takes it for a primary still, nor for an epoch that was used; and it asks again only after
        four node timeouts."""
        primary, epoch = replica.followed()[replica.id], replica.epoch()
        return all(voter.followed()[replica.id] == primary and voter.epoch() <= epoch for voter in self.primaries())

    def adopt_deposed(self, living):
        """Valkey 8.0.1 may leave a deposed primary a primary without slots, if its shard-id differs (valkey-io/valkey#2171).  It is told
        to follow the primary that has no replica, as an operator would."""
        if "valkey" not in server_binary():
            return
        owners = {owner for _, _, owner in self.owners()}
        for node in (n for n in living if n.is_primary() and n not in owners):
            alone = next((owner for owner in owners if not self.replicas_of(owner)), None)
            if alone is not None:
                node.command("CLUSTER", "REPLICATE", alone.id)

    def bring_back(self):
        """All nodes run again, whether they were killed or paused."""
        for node in self.nodes:
            if node.process is not None and node.alive():
                node.resume()
            else:
                node.start()
        return self.wait_ok()

    def stop(self):
        for node in self.nodes:
            node.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    # ---- who is who ----

    @property
    def url(self):
        return "redis-cluster://" + ",".join(n.address for n in self.nodes)

    def node(self, node_id):
        return next(n for n in self.nodes if n.id == node_id)

    def owners(self, asked=None):
        """[(first slot, last slot, node)] as `asked` sees it (default: the first primary, which is told of moves first)."""
        asked = asked or self.primaries()[0]
        return [(first, last, self.node(primary[2])) for first, last, primary, *_ in asked.command("CLUSTER", "SLOTS")]

    def owner(self, slot, asked=None):
        return next((n for first, last, n in self.owners(asked) if first <= slot <= last), None)

    def primaries(self):
        """The nodes that run and call themselves primaries."""
        return [n for n in self.nodes if n.alive() and n.is_primary()]

    def replicas_of(self, node):
        return [n for n in self.nodes if n is not node and n.alive() and
                n.info("replication").get("master_port") == str(node.port)]

    # ---- what happens to it ----

    def failover(self, replica, how=None):
        """An ordered failover to `replica`; how: None, "FORCE" or "TAKEOVER".  Waits until it is a primary.

        An ordered one gives up after a while, and a replica whose link is just being made refuses it: both are asked again.
        """
        if how != "TAKEOVER":
            wait_ready(lambda: self.can_be_elected(replica), f"{replica.name} can be elected", deadline_s=30)

        def promoted():
            if not replica.is_primary():
                replica.command("CLUSTER", "FAILOVER", *([how] if how else []))
            return wait_until(replica.is_primary, "promoted", deadline_s=2)

        wait_ready(promoted, f"{replica.name} is a primary", deadline_s=30)

    def move_node(self, node):
        """It stops for less than the node timeout, as a rule, and comes back at another address; else its replica takes over."""
        node.stop()
        node.port = free_ports(1, BUS)[0]
        for option, value in (("--port", node.port), ("--cluster-port", node.port + BUS)):
            node.argv[node.argv.index(option) + 1] = value
        node.start()
        self.wait_ok()

    def open_slot(self, slot, target):
        """MIGRATING at its owner and IMPORTING at `target`: left open until close_slot(); the source."""
        source = self.owner(slot)
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", target.id)
        return source

    def move_keys(self, slot, source, target, most=None):
        """MIGRATE keys of an open slot, all or at most so many; how many were moved."""
        moved = 0
        while most is None or moved < most:
            keys = source.command("CLUSTER", "GETKEYSINSLOT", slot, 100 if most is None else min(100, most - moved))
            if not keys:
                break
            source.command("MIGRATE", target.host, target.port, "", 0, 10_000, "KEYS", *keys)
            moved += len(keys)
        return moved

    def close_slot(self, slot, owner):
        """The slot is `owner`'s: told to the new owner first, then to the other primaries."""
        for node in [owner, *[n for n in self.primaries() if n is not owner]]:
            node.command("CLUSTER", "SETSLOT", slot, "NODE", owner.id)

    def move_slots(self, first, last, target):
        """Move the slots with their keys, one after another; each must have an owner."""
        for slot in range(first, last + 1):
            if self.owner(slot) is not target:
                source = self.open_slot(slot, target)
                self.move_keys(slot, source, target)
                self.close_slot(slot, target)
