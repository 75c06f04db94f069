"""A master, its replicas and Sentinels on loopback.  `TALLYD_REDIS_SERVER=` names the server, as for lib/cluster.py."""

import contextlib
import shutil
import time

from .cluster import TcpServer, free_ports, server_binary, wait_ready
from .process import short_directory

MASTER = "mymaster"
DOWN_AFTER_MS = 1500  # not 1000: a Sentinel asks a server that was promoted each second, and holds it for down until its first PONG
INFO_PERIOD_MS = 1000
PUBLISH_PERIOD_MS = 2000  # a Sentinel's own


def as_dict(flat):
    """A Sentinel's reply of names and values in turn."""
    return dict(zip(flat[::2], flat[1::2]))


class Server(TcpServer):
    """A master or a replica, with a configuration of its own that remembers whom it follows."""

    def __init__(self, root, number, port, options):
        directory = root / f"s{number}"
        directory.mkdir(parents=True)
        (directory / "redis.conf").touch()
        super().__init__(directory, f"server{number}", port, [
            server_binary(), directory / "redis.conf", "--port", port, "--bind", "127.0.0.1", "--dir", directory, "--save", "", "--loglevel", "notice",
            "--repl-diskless-sync-delay", "0", *options])

    def is_master(self):
        return self.command("ROLE")[0] == "master"

    def replicas_online(self):
        """Of a master: how many replicas follow it."""
        replicas = self.info("replication")
        return sum("state=online" in value for name, value in replicas.items() if name.startswith("slave"))

    def in_sync(self):
        return self.info("replication").get("master_link_status") == "up"


class Sentinel(TcpServer):
    """A Sentinel: the server itself, with a configuration of its own that it rewrites."""

    def __init__(self, root, number, port):
        self.configuration = root / f"sentinel{number}.conf"
        super().__init__(root / f"t{number}", f"sentinel{number}", port, [server_binary(), self.configuration, "--sentinel"])

    def configure(self, master, quorum, failover_timeout_ms):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.configuration.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.directory}\n"
            f"sentinel monitor {MASTER} {master.host} {master.port} {quorum}\n"
            f"sentinel down-after-milliseconds {MASTER} {DOWN_AFTER_MS}\n"
            f"sentinel failover-timeout {MASTER} {failover_timeout_ms}\n")

    def start(self):
        """Servers are asked for INFO each second, not each 10 s: a Sentinel promotes no replica that it has not seen in sync."""
        super().start().command("SENTINEL", "DEBUG", "info-period", INFO_PERIOD_MS)
        return self

    def master_port(self):
        return int(self.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)[1])

    def master_fields(self):
        return as_dict(self.command("SENTINEL", "MASTER", MASTER))

    def replicas(self):
        """What it knows of each replica, also of those that are gone."""
        return [as_dict(flat) for flat in self.command("SENTINEL", "REPLICAS", MASTER)]

    def promotes(self, server, master):
        """Would it promote this replica?  It looks at replicas each 10 s, and remembers what they said."""
        known = next((r for r in self.replicas() if int(r["port"]) == server.port), {})
        return (known.get("flags") == "slave" and known.get("role-reported") == "slave" and
                known.get("master-link-status") == "ok" and known.get("master-port") == str(master.port))


class SentinelGroup:
    """servers[0] begins as the master, the others as its replicas."""

    def __init__(self, replicas=1, sentinels=3, *, failover_timeout_ms=3000, options=()):
        self.directory = short_directory()
        ports = free_ports(1 + replicas + sentinels)
        self.servers = [Server(self.directory, i, port, options) for i, port in enumerate(ports[:1 + replicas])]
        self.sentinels = [Sentinel(self.directory, i, port) for i, port in enumerate(ports[1 + replicas:])]
        self.failover_timeout_ms = failover_timeout_ms

    def start(self):
        first = self.servers[0].start()
        for replica in self.servers[1:]:
            replica.start().command("REPLICAOF", first.host, first.port)
            replica.command("CONFIG", "REWRITE")
        for sentinel in self.sentinels:
            sentinel.configure(first, len(self.sentinels) // 2 + 1, self.failover_timeout_ms)
            sentinel.start()
        return self.wait_ok()

    def wait_ok(self, deadline_s=30):
        """All Sentinels that run agree on the master and know each other; every replica that runs is in sync and known."""
        living = [s for s in self.servers if s.alive()]
        watching = [s for s in self.sentinels if s.alive()]

        def ready():
            assert len({s.master_port() for s in watching}) == 1, "Sentinels agree"
            for fields in (s.master_fields() for s in watching):
                assert int(fields["num-other-sentinels"]) == len(self.sentinels) - 1, fields
                assert int(fields["num-slaves"]) >= len(living) - 1 and fields["flags"] == "master", fields
            assert sum(s.is_master() for s in living) == 1, "one master"
            assert all(s.is_master() or s.in_sync() for s in living), "replicas in sync"
            assert len(self.master().command("ROLE")[2]) == len(living) - 1, "replicas online, as the master says"
            return True

        with self.hurried():
            wait_ready(ready, "master, replicas and Sentinels are ready", deadline_s)
        return self

    @contextlib.contextmanager
    def hurried(self):
        """As long as this lasts Sentinels tell each other more often who they are and whom they hold for the master.  A master that
        was replaced becomes a replica four such periods after its return: in a second instead of eight."""
        watching = [s for s in self.sentinels if s.alive()]

        def publish_each(ms):
            for sentinel in watching:
                sentinel.command("SENTINEL", "DEBUG", "publish-period", ms)

        publish_each(PUBLISH_PERIOD_MS // 8)
        try:
            yield
        finally:
            publish_each(PUBLISH_PERIOD_MS)

    def master(self):
        """The server that the Sentinels name."""
        port = next(s for s in self.sentinels if s.alive()).master_port()
        return next(s for s in self.servers if s.port == port)

    def replica(self):
        """One that follows the master."""
        return next(s for s in self.servers if s.alive() and not s.is_master())

    @property
    def url(self):
        return "redis-sentinel://" + ",".join(s.address for s in self.sentinels) + f"/{MASTER}"

    def failover(self, deadline_s=60):
        """An ordered failover; the new master, when all Sentinels name it and it is one.

        An order is accepted also where no replica can be promoted in time: after failover-timeout the Sentinel gives up,
        and says so to nobody.  So it is ordered when each Sentinel has seen a replica in sync, and ordered again after
        that.
        """
        old = self.master()
        end = time.monotonic() + deadline_s
        while True:
            self.wait_promotable(old)
            wait_ready(lambda: self.sentinels[0].command("SENTINEL", "FAILOVER", MASTER) == "OK", "an ordered failover", 20)
            wait_ready(lambda: self.is_over(old), "the failover ends", 20)
            if self.sentinels[0].master_port() != old.port:
                return self.wait_new_master(old)
            assert time.monotonic() < end, f"failovers of {old.name} are given up again and again"

    def wait_promotable(self, master):
        """Some replica is in sync, and every Sentinel that runs has seen it so."""
        replicas = [s for s in self.servers if s is not master and s.alive()]
        watching = [s for s in self.sentinels if s.alive()]
        wait_ready(lambda: any(r.in_sync() and all(s.promotes(r, master) for s in watching) for r in replicas),
                   "every Sentinel would promote a replica", 30)

    @contextlib.contextmanager
    def patient(self):
        """As long as this lasts no master that gives no answer is taken for dead."""
        def wait_for_answers(ms):
            for sentinel in (s for s in self.sentinels if s.alive()):
                sentinel.command("SENTINEL", "SET", MASTER, "down-after-milliseconds", ms)

        wait_for_answers(600_000)
        try:
            yield
        finally:
            wait_for_answers(DOWN_AFTER_MS)

    def is_over(self, old):
        """An ordered failover has ended: with a new master, or without one."""
        one = self.sentinels[0]
        return one.master_port() != old.port or "failover_in_progress" not in one.master_fields()["flags"]

    def wait_new_master(self, old, deadline_s=20):
        def named():
            ports = {s.master_port() for s in self.sentinels if s.alive()}
            return len(ports) == 1 and old.port not in ports and self.master().is_master()

        wait_ready(named, "the Sentinels name a new master", deadline_s)
        return self.master()

    def bring_back(self):
        """All servers and Sentinels run again, whether they were killed or paused."""
        for process in [*self.servers, *self.sentinels]:
            if process.alive():
                process.resume()
            else:
                process.start()
        return self.wait_ok()

    def stop(self):
        for process in [*self.sentinels, *self.servers]:
            process.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
