"""Processes under test: redis-server and tallyd, each with its own directory and socket or port.

Every process is registered in `running` until it is stopped; it is always killed by its pid.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from .client import Client
from .resp import Resp, RespError
from .waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY = re.compile(r"^tallyd (\S+) listening on http://(.+):(\d+) \(redis: (.*)\)$", re.M)

running = []  # for the logs of a failed test
own_groups = False  # a ^C at the terminal goes to each process of its group: with groups of their own not to these


def binary():
    """The tallyd under test, absolute: TALLYD_BIN, default build/tallyd."""
    return (ROOT / os.environ.get("TALLYD_BIN", "build/tallyd")).resolve()


def sanitized():
    """A build with a sanitizer takes several times the memory and the processor, from Redis too on a small machine."""
    return "TALLYD_SAN_LOGS" in os.environ or re.search(rb"__(asan|tsan)_init", binary().read_bytes()) is not None


def short_directory():
    """A directory whose name leaves room for a socket's path (107 bytes)."""
    return pathlib.Path(tempfile.mkdtemp(prefix="tallyd-", dir="/tmp"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def alive(pid):
    """False too for a zombie: it runs no more."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def cpu_s(pid):
    """Seconds of processor that a process took so far, all its threads together."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    """Pids of the processes whose parent is pid."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


class Process:
    """A child with its output in files; start() and kill() may alternate."""

    def __init__(self, directory, name):
        self.directory = pathlib.Path(directory)
        self.name = name
        self.process = None
        self.log = self.directory / f"{name}.log"
        self.out = self.directory / f"{name}.out"

    def spawn(self, argv, env=None):
        assert not self.alive(), f"{self.name} runs already"
        self.directory.mkdir(parents=True, exist_ok=True)
        self.out.write_bytes(b"")
        with open(self.log, "ab") as log, open(self.out, "ab") as out:
            self.process = subprocess.Popen(
                [str(a) for a in argv], cwd=self.directory, env=environment() if env is None else env, stdin=subprocess.DEVNULL,
                stdout=out, stderr=log, process_group=0 if own_groups else None)
        if self not in running:
            running.append(self)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    @property
    def pid(self):
        return self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def pause(self):
        """SIGSTOP, and no thread does anything more when this returns.  Connections stand."""
        self.signal(signal.SIGSTOP)
        threads = list(pathlib.Path(f"/proc/{self.pid}/task").glob("*/stat"))
        wait_until(lambda: all(t.read_text().rpartition(")")[2].split()[0] in "tT" for t in threads), "it stands still")

    def resume(self):
        self.signal(signal.SIGCONT)

    def wait(self, timeout_s=15):
        """The exit status."""
        return self.process.wait(timeout_s)

    def kill(self):
        """SIGKILL, and gone when this returns."""
        if self.alive():
            self.process.kill()
            self.process.wait()

    def terminate(self, timeout_s=15):
        """SIGTERM; the exit status."""
        self.process.terminate()
        return self.wait(timeout_s)

    def stop(self):
        """Teardown: SIGTERM, then SIGKILL."""
        if self.alive():
            self.resume()
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        if self in running:
            running.remove(self)

    def log_text(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def tail(self, lines=40):
        return "\n".join(self.log_text().splitlines()[-lines:])


def mend_append_only(directory, server="redis-server"):
    """What a kill cut off in the middle of a transaction is taken away, as redis-check-aof does; before a server starts.  Each
    server reads its own files alone: Valkey's snapshots are too new for Redis's tool.

    Redis 7.0 by itself cuts behind the last whole command *within* it, goes on writing behind the open MULTI, and the next
    start runs the half transaction together with the first one written since (valkey-io/valkey#4342).
    """
    manifest = directory / "appendonlydir" / "appendonly.aof.manifest"
    if manifest.exists():
        tool = re.sub("-(server|sentinel)$", "-check-aof", str(server))
        done = subprocess.run([tool, "--fix", manifest], input="y\n", text=True, capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done


class RespServer(Process):
    """A server that speaks RESP: connect() leads to it."""

    def answers(self):
        assert self.alive(), self.tail()
        try:
            # NOAUTH is an answer; LOADING is not yet
            return self.command("PING") == "PONG"
        except RespError as error:
            return not str(error).startswith("LOADING")
        except OSError:
            return False

    def command(self, *args):
        with self.connect() as connection:
            return connection.command(*args)


class Redis(RespServer):
    """A redis-server on a unix socket (and a TCP port, if asked for)."""

    def __init__(self, directory=None, *, appendonly=False, port=0, clock=None, options=()):
        super().__init__(directory or short_directory(), "redis")
        self.path = self.directory / "r.sock"
        self.port = port
        self.clock = clock
        self.argv = [
            "redis-server", "--port", port, "--bind", "127.0.0.1", "--unixsocket", self.path,
            "--dir", self.directory, "--save", "", "--loglevel", "notice",
            "--appendonly", "yes" if appendonly else "no", "--appendfsync", "always", *options]

    @property
    def url(self):
        return f"unix:{self.path}"

    def spawn(self, argv, env=None):
        mend_append_only(self.directory)
        super().spawn(argv, env)

    def start(self):
        env = dict(os.environ)
        if self.clock is not None:
            env.update(self.clock.environment())
        self.path.unlink(missing_ok=True)
        self.spawn(self.argv, env)
        self.log = self.out  # redis-server logs on stdout
        wait_until(self.answers, f"redis-server answers:\n{self.tail()}", pause_s=0.005)
        return self

    def connect(self, timeout_s=10):
        return Resp.unix(self.path, timeout_s)

    def processor(self):
        """Nanoseconds that its main thread (ran, was ready and waited for a processor)."""
        ran, waited, _ = pathlib.Path(f"/proc/{self.process.pid}/schedstat").read_text().split()
        return int(ran), int(waited)

    def longest_turns(self):
        """us that Redis was held by a MULTI, {"p50", "p99", "p99.9"}, since CONFIG RESETSTAT; none is in the slow log."""
        found = re.search(r"_usec_exec:(.*)", self.command("INFO", "latencystats"))
        return {k: float(v) for k, v in re.findall(r"(p[\d.]+)=([\d.]+)", found[1])}

    def time(self):
        seconds, microseconds = self.command("TIME")
        return int(seconds) + int(microseconds) / 1e6

    def stop(self):
        super().stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Tallyd(Process):
    """`tallyd serve` on a port of its own choice.

    redis: a Redis, a Proxy, a URL, or None for the embedded one under data_dir.
    """

    def __init__(self, *args, redis=None, directory=None, env=None, listen="127.0.0.1:0",
                 name="tallyd", argv=None):
        super().__init__(directory or short_directory(), name)
        self.owns_directory = directory is None
        self.data_dir = self.directory / "data"
        self.args = args
        self.env = env or {}
        self.redis_url = getattr(redis, "url", redis)
        self.listen = listen
        self.whole_argv = argv  # everything behind the program, instead of the usual
        self.host = self.port = self.version = self.redis_text = None

    def command_line(self):
        assert os.access(binary(), os.X_OK), f"{binary()} is missing: run make, or set TALLYD_BIN"
        if self.whole_argv is not None:
            return [binary(), *self.whole_argv]
        where = ["--redis", self.redis_url] if self.redis_url else ["--data-dir", self.data_dir]
        return [binary(), "serve", "--listen", self.listen, *where, *self.args]

    def start(self, wait_ready=True):
        self.spawn(self.command_line(), environment(self.env))
        if wait_ready:
            self.wait_ready_line()
            wait_until(lambda: self.client().get("/readyz").status == 200, "/readyz is 200")
        return self

    def wait_ready_line(self):
        def ready_line():
            match = READY.search(self.out.read_text())
            if match is None and not self.alive():
                raise RuntimeError(
                    f"tallyd ended with {self.process.returncode} before it was ready:\n{self.tail()}")
            return match

        match = wait_until(ready_line, "tallyd's ready line")
        self.version, self.host, self.port = match[1], match[2].strip("[]"), int(match[3])
        self.redis_text = match[4]

    @property
    def url(self):
        return f"http://{self.host}:{self.port}"

    def client(self, timeout_s=15):
        """A new client with a connection of its own."""
        return Client(self.host, self.port, timeout_s)

    def leads(self):
        """Is it the process that rolls up?"""
        return self.client().get("/rollup").json["leader"]

    def stop(self):
        super().stop()
        for pid in orphans(self.data_dir):
            os.kill(pid, signal.SIGKILL)
        if self.owns_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    # The embedded Redis, found from outside.

    def redis_pids(self):
        return [pid for pid in children(self.pid) if command_of(pid).startswith("redis-server")]

    def redis_socket(self):
        return next(p for p in self.data_dir.rglob("*") if p.is_socket())

    def redis_command(self, *args):
        with Resp.unix(self.redis_socket(), 10) as connection:
            return connection.command(*args)


def command_of(pid):
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # redis-server writes its title over its arguments: "redis-server unixsocket:/path"
    return os.path.basename(words[0].decode(errors="replace").partition(" ")[0])


def orphans(directory):
    """Redis servers that work in `directory` (or below), whoever started them."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and command_of(entry.name).startswith("redis-server"):
            try:
                cwd = os.readlink(entry / "cwd")
            except OSError:
                continue
            if (cwd + "/").startswith(str(directory) + "/") and alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def environment(more=None):
    """The environment for tallyd: no TALLYD_* of ours (an unknown one is an error), sanitizer logs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("TALLYD_")}
    logs = os.environ.get("TALLYD_SAN_LOGS")
    if logs:
        for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            given = [env[name]] if env.get(name) else []
            env[name] = ":".join([*given, f"log_path={pathlib.Path(logs).resolve()}/san"])
    env.update(more or {})
    return env


def run(*args, env=None, stdin=None, timeout_s=60, cwd=None):
    """`tallyd ARGS` to its end: a CompletedProcess with text output."""
    return subprocess.run(
        [str(binary()), *map(str, args)], env=environment(env), input=stdin, timeout=timeout_s,
        cwd=cwd, capture_output=True, text=not isinstance(stdin, bytes))
