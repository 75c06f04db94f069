"""Arrays beside PostgreSQL with hll: COPY, and sketches of pages and of the site merged in the same transaction."""

import glob
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile

from . import load
from .bench import Contender
from .results import Section
from .servers import Process, TallydServer, wait_until
from .settings import BENCH, PAGES, USERS

CONNECTIONS = 8
USER = "postgres"  # the server refuses to run as root


def programs():
    """Where initdb and the rest are, of the newest version that has hll; None."""
    found = sorted(glob.glob("/usr/share/postgresql/*/extension/hll.control"))
    version = found[-1].split("/")[4] if found else ""
    return f"/usr/lib/postgresql/{version}/bin" if found and importlib.util.find_spec("psycopg2") else None


class Postgres(Process):
    def __init__(self, directory):
        super().__init__(directory, "postgres")
        self.data = tempfile.mkdtemp(prefix="tbench-pg-", dir="/tmp")  # the user must reach it
        self.roles = {}

    def as_user(self):
        if os.getuid() != 0:
            return []
        return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups"]

    def start(self):
        if os.getuid() == 0:
            os.chown(self.data, pwd.getpwnam(USER).pw_uid, pwd.getpwnam(USER).pw_gid)
        subprocess.run([*self.as_user(), f"{programs()}/initdb", "-D", self.data, "-U", "bench", "-A", "trust", "-E", "UTF8"],
                       check=True, capture_output=True)
        self.spawn([*self.as_user(), f"{programs()}/postgres", "-D", self.data, "-k", self.data, "-c", "listen_addresses=",
                    "-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB", "-c", "synchronous_commit=on"])
        wait_until(lambda: self.sql("-c", "SELECT 1"), "PostgreSQL answers")
        assert self.sql("-f", BENCH / "peers" / "postgres.sql"), "postgres.sql"
        return self

    def sql(self, *args):
        return subprocess.run([f"{programs()}/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", self.data, "-U", "bench", "-d", "postgres",
                               *args], capture_output=True, check=False).returncode == 0

    def stop(self):
        super().stop()
        shutil.rmtree(self.data, ignore_errors=True)


def postgres(bench):
    if programs() is None:
        bench.say("postgres: not installed, make bench-peers installs it")
        return []
    section = Section("postgres", f"arrays of 1000 events, {CONNECTIONS} connections, each synced to disk before the answer")
    with bench.serving(TallydServer, "--fsync", "always") as tallyd, bench.serving(Postgres) as peer:
        ours = bench.http("tallyd", "tallyd", tallyd, lambda seed, t: load.batches(tallyd.port, t, seed))
        bench.in_turn(section, [ours, Contender("postgres", "PostgreSQL with hll, COPY", lambda seed, t: load.measure(
            peer.roles, ["/usr/bin/python3", BENCH / "peers" / "postgres_copy.py", peer.data, CONNECTIONS, int(t), seed, 1000,
                         PAGES, USERS], t))])
        bench.note_memory(section.key, tallyd.pid)
    section.ratio("tallyd / PostgreSQL with hll", "tallyd", "postgres", metric="counted_rate", goal=4)
    return [section]
