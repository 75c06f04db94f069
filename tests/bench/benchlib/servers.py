"""The servers that are measured: each has roles (who uses CPU for it), a port or a socket, start() and stop()."""

import os
import pwd
import re
import shutil
import sys
import sysconfig
import time

from .settings import BENCH, BUILD, PROGRAMS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ.setdefault("TALLYD_BIN", str(BUILD / "tallyd"))

from lib.client import Unknown  # noqa: E402, F401
from lib.log import HELD  # noqa: E402, F401
from lib.process import Process, Redis, Tallyd, children, environment, free_port  # noqa: E402, F401
from lib.waiting import wait_until  # noqa: E402

import socket  # noqa: E402

# What decides how durable, and how slow, a write is: the peers' Redis gets tallyd's values.
SAME = ("appendfsync", "no-appendfsync-on-rewrite", "auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size",
        "aof-use-rdb-preamble", "maxmemory", "maxmemory-policy", "lazyfree-lazy-expire", "lazyfree-lazy-server-del")

MULTIARCH = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"


def minute():
    return time.strftime("%Y%m%d%H%M", time.gmtime())


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


class BuiltTallyd(Tallyd):
    """A tallyd of any build."""

    def __init__(self, program, *args, **more):
        super().__init__(*args, **more)
        self.program = program

    def command_line(self):
        return [self.program, *super().command_line()[1:]]


class TallydServer:
    """program: of which build; more: what Tallyd takes beside its options."""

    def __init__(self, directory, *options, program=BUILD / "tallyd", **more):
        self.tallyd = BuiltTallyd(program, *options, "--log-level", "warn", directory=directory, **more)

    def start(self):
        self.tallyd.start()
        self.port = self.tallyd.port
        self.socket = None if self.tallyd.redis_url or "--redis" in self.tallyd.args else self.tallyd.redis_socket()
        self.client = self.tallyd.client()
        return self

    def stop(self):
        self.tallyd.stop()
        shutil.rmtree(self.tallyd.directory, ignore_errors=True)

    @property
    def pid(self):
        return self.tallyd.pid

    @property
    def roles(self):
        return {"tallyd": [self.tallyd.pid], "redis": self.tallyd.redis_pids()}

    def redis(self, *args):
        return self.tallyd.redis_command(*args)

    def settle(self):
        """Everything that was acknowledged is counted when this returns: a question is answered no sooner."""
        def counted():
            http = self.tallyd.client(60)  # of its own: one that was idle may be closed
            try:
                return http.get("/pv", from_="now-1m").status == 200  # 503: it is not counted at the deadline yet
            finally:
                http.close()

        wait_until(counted, "all events are counted", deadline_s=120, pause_s=0)

    def command_us(self, command):
        """For how long the command held Redis so far, by Redis's own account; EXEC's time is that of all that it runs."""
        stats = re.search(rf"^cmdstat_{command}:calls=\d+,usec=(\d+)", self.redis("INFO", "commandstats"), re.M)
        return int(stats[1]) if stats else 0

    def redis_options(self):
        words = []
        for name in SAME:
            words += [f"--{name}", self.redis("CONFIG", "GET", name)[1]]
        return words


class BareServer(Process):
    """bare_mhd: libmicrohttpd and nothing else, with as many threads as tallyd takes."""

    def __init__(self, directory, threads):
        super().__init__(directory, "bare_mhd")
        self.threads = threads

    def start(self):
        self.port = free_port()
        self.spawn([PROGRAMS / "bare_mhd", self.port, self.threads])
        wait_until(lambda: self.alive() and listens(self.port), "bare_mhd listens")
        return self

    @property
    def roles(self):
        return {"server": [self.pid]}


class PeerRedis(Redis):
    def __init__(self, directory, options):
        super().__init__(directory, appendonly=True, options=options)

    @property
    def roles(self):
        return {"redis": [self.pid]}

    @property
    def socket(self):
        return self.path


class Peer(Process):
    """A peer with a Redis of its own, which has the same persistence as tallyd's."""

    def __init__(self, directory, name, redis_options):
        super().__init__(directory, name)
        self.redis = PeerRedis(self.directory / "redis", redis_options)

    def begin(self, argv, root):
        env = dict(os.environ)
        if root:
            env["LD_LIBRARY_PATH"] = f"{root}/usr/lib/{MULTIARCH}:{root}/lib/{MULTIARCH}"
        self.spawn(argv, env)
        wait_until(lambda: self.alive() and listens(self.port), f"{self.name} listens:\n{self.tail()}")

    @property
    def roles(self):
        return {"server": [self.pid, *children(self.pid)], "redis": [self.redis.pid]}

    def stop(self):
        super().stop()
        self.redis.stop()


class Webdis(Peer):
    def __init__(self, directory, redis_options, settings):
        super().__init__(directory, "webdis", redis_options)
        self.root, self.threads = settings.peers_root, max(1, settings.cores // 2)

    @staticmethod
    def installed(settings):
        return find(settings, "usr/bin/webdis") is not None

    def start(self):
        self.redis.start()
        self.sha = self.redis.command("SCRIPT", "LOAD", (BENCH / "peers" / "event.lua").read_text())
        self.port = free_port()
        config = self.directory / "webdis.json"
        config.write_text(
            f'{{"redis_host": "{self.redis.path}", "redis_port": 0, "http_host": "127.0.0.1", '
            f'"http_port": {self.port}, "threads": {self.threads}, "daemonize": false, '
            f'"database": 0, "verbosity": 1, "logfile": "{self.directory}/webdis.log"}}\n')
        self.begin([self.root + "/usr/bin/webdis", config], self.root)
        return self

    def event(self):
        """An event in the words of rate.c.  The minute is fixed: webdis and its Redis need not work it out."""
        m, page = minute(), "%2Fpage%2Fnumber%2F{page}"
        return (f"EVALSHA/{self.sha}/5/uv:m{m}:{page}/uv:m{m}:/ip:m{m}:{page}/ip:m{m}:/pv:m{m}"
                f"/user-{{user}}/{{ip}}/{page}")


class Nginx(Peer):
    def __init__(self, directory, redis_options, settings):
        super().__init__(directory, "nginx", redis_options)
        self.root, self.workers = settings.peers_root, settings.cores

    @staticmethod
    def installed(settings):
        return all(find(settings, path) for path in (
            "usr/sbin/nginx", "usr/lib/nginx/modules/ngx_http_lua_module.so", "usr/share/lua/5.1/nginx/redis.lua",
            f"usr/lib/{MULTIARCH}/lua/5.1/cjson.so"))

    def start(self):
        self.directory.mkdir(parents=True, exist_ok=True)
        self.redis.start()
        self.port = free_port()
        text = (BENCH / "peers" / "nginx.conf.in").read_text()
        for name, value in {
                "USER": pwd.getpwuid(os.getuid()).pw_name, "WORKERS": self.workers, "DIR": self.directory,
                "MODULES": f"{self.root}/usr/lib/nginx/modules", "LUA": self.root,
                "LUA_C": f"{self.root}/usr/lib/{MULTIARCH}", "PORT": self.port, "SOCKET": self.redis.path,
                "HERE": BENCH / "peers"}.items():
            text = text.replace(f"@{name}@", str(value))
        (self.directory / "nginx.conf").write_text(text)
        self.begin([self.root + "/usr/sbin/nginx", "-p", self.directory, "-c", self.directory / "nginx.conf",
                    "-e", self.directory / "error.log"], self.root)
        return self


def find(settings, path):
    """The path where it is installed (or unpacked, with BENCH_PEERS_ROOT)."""
    full = f"{settings.peers_root}/{path}"
    return full if os.path.exists(full) else None
