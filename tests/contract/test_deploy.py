"""What is in deploy/ works: the unit, the Redis configuration and its permissions, the proxy, make install."""

import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import threading
import time

import pytest

from lib.client import Client
from lib.clock import FakeClock, epoch
from lib.follow import row
from lib.log import counted
from lib.process import ROOT, Redis, binary, environment, free_port
from lib.resp import Resp
from lib.truth import is_close
from lib.waiting import wait_until

DEPLOY = ROOT / "deploy"
UNIT, FOLLOW_UNIT = DEPLOY / "tallyd.service", DEPLOY / "tallyd-follow@.service"
REDIS_CONF = (DEPLOY / "redis.conf").read_text(encoding="utf-8")
PASSWORD = "5b1c0f6a"


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None and not os.path.exists(f"/usr/sbin/{program}"),
                              reason=f"{program} is missing")


# The unit


@needs("systemd-analyze")
@pytest.mark.parametrize("unit", [UNIT, FOLLOW_UNIT], ids=["serve", "follow"])
def test_the_unit_is_hardened(unit):
    """Exposure at most 1.5 of 10."""
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", unit],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


@needs("systemd-analyze")
@pytest.mark.parametrize("source, name", [(UNIT, "tallyd.service"), (FOLLOW_UNIT, "tallyd-follow@blog.service")])
def test_the_unit_has_no_mistakes(tmp_path, source, name):
    unit = tmp_path / name  # with a program that is there
    unit.write_text(source.read_text().replace("ExecStart=/usr/bin/tallyd ", "ExecStart=/bin/true "))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and name not in done.stderr, done.stderr


def test_the_follower_runs_as_its_unit_says(tmp_path, start_redis, start_tallyd):
    """What ExecStart and the environment file say, with the places that systemd gives."""
    tallyd = start_tallyd(redis=start_redis())
    log, state = tmp_path / "access.log", tmp_path / "state"
    log.write_text(row(time.time() - 60))
    start = re.search(r"^ExecStart=/usr/bin/tallyd (.*)$", FOLLOW_UNIT.read_text(), re.M)[1]
    words = [w.replace("${LOG}", str(log)).replace("%S/tallyd-follow/%i/state", str(state)) for w in start.split()]
    assert "%" not in "".join(words)
    env = environment({"TALLYD_SITE": "blog", "TALLYD_URL": tallyd.url})
    with subprocess.Popen([binary(), *words], env=env, stdout=subprocess.PIPE, text=True) as follower:
        wait_until(lambda: tallyd.client().count("pv", site="blog", from_="now-1h") == 1, "the line is counted")
        follower.terminate()
        assert follower.wait(10) == 0
        assert "1 of 1 lines" in follower.stdout.read()
    assert state.stat().st_size > 0


def test_the_unit_waits_for_the_drain():
    """TimeoutStopSec is longer than all that service_stop() may wait for, one after the other."""
    source = "".join((ROOT / "service" / f).read_text() for f in ("parts.c", "redis/process.h"))
    limits = {name: int(ms) for name, ms in re.findall(r"#define (\w+_MS)\s+(\d+)", source)}
    request = re.search(r'"request-timeout".*?fallback = "(\d+)s"', (ROOT / "service/options/option_table.c").read_text(), re.S)
    needed = int(request[1]) + sum(limits[n] for n in ("HTTP_STOP_MS", "REDIS_STOP_MS", "PROCESS_KILL_MS")) / 1000
    stop = int(re.search(r"^TimeoutStopSec=(\d+)$", UNIT.read_text(), re.M)[1])
    assert stop > needed
    assert re.search(r"^KillMode=mixed$", UNIT.read_text(), re.M)  # or Redis would end before its clients


@pytest.fixture
def manager(directory, cleanup):
    """A service manager's socket: (what NOTIFY_SOCKET says, the socket)."""
    path = directory / "notify"
    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    cleanup.append(lambda: (s.close(), path.unlink(missing_ok=True)))
    s.bind(str(path))
    s.settimeout(10)
    return str(path), s


def test_readiness_is_told(manager, start_tallyd, redis):
    address, s = manager
    tallyd = start_tallyd(redis=redis, env={"NOTIFY_SOCKET": address}, wait_ready=False)
    assert s.recv(100) == b"READY=1"
    tallyd.wait_ready_line()  # it was there before
    assert tallyd.client().get("/readyz").status == 200
    assert tallyd.terminate() == 0
    assert s.recv(100) == b"STOPPING=1"
    s.setblocking(False)
    with pytest.raises(BlockingIOError):
        s.recv(100)


def test_not_ready_before_redis_is(manager, start_tallyd, directory):
    address, s = manager
    redis = Redis(directory / "r")
    redis.directory.mkdir()
    tallyd = start_tallyd(redis=redis, env={"NOTIFY_SOCKET": address}, wait_ready=False)
    wait_until(lambda: "cannot use Redis" in tallyd.log_text(), "tallyd finds no Redis")
    s.setblocking(False)
    with pytest.raises(BlockingIOError):
        s.recv(100)
    s.settimeout(10)
    try:
        redis.start()
        assert s.recv(100) == b"READY=1"
    finally:
        redis.stop()


def test_a_manager_that_is_gone_does_no_harm(start_tallyd, redis):
    tallyd = start_tallyd(redis=redis, env={"NOTIFY_SOCKET": "/tmp/there/is/none"})
    assert "could not be told" in tallyd.log_text()
    assert tallyd.terminate() == 0


# A Redis of one's own


def shipped(directory, clock=None, port=0, extra=""):
    """A Redis with deploy/redis.conf, in a directory of the test; with a port: its TCP section taken."""
    text = REDIS_CONF
    if port:
        text = re.sub(r"^(user default|port) .*$", "", text, flags=re.M)
        text = re.sub(r"^# (?=(bind|port|tcp-keepalive|user default|user tallyd) )", "", text, flags=re.M)
        text = text.replace("CHANGE-ME", PASSWORD).replace("bind 10.1.2.3 ", "bind ")
        text = re.sub(r"^port .*$", f"port {port}", text, flags=re.M)
    redis = Redis(directory, clock=clock)
    text = re.sub(r"^unixsocket .*$", f"unixsocket {redis.path}", text, flags=re.M)
    text = re.sub(r"^dir .*$", f"dir {redis.directory}", text, flags=re.M)
    conf = redis.directory / "redis.conf"
    conf.write_text(f"{text}\nuser admin on >admin allchannels allkeys +@all\n{extra}\n")
    redis.argv = ["redis-server", conf]
    return redis


def admin(redis, *command):
    with redis.connect() as connection:
        assert connection.command("AUTH", "admin", "admin") == "OK"
        return connection.command(*command)


def permissions():
    """What the two lines allow, which must be the same."""
    lines = re.findall(r"^(?:# )?user (?:default on|tallyd on) .*$", REDIS_CONF, re.M)
    assert len(lines) == 2
    allowed = [set(re.findall(r" \+(\S+)", line)) for line in lines]
    assert allowed[0] == allowed[1]
    return allowed[0]


def test_permissions_are_the_commands_that_the_source_names(redis):
    """No command is missing, none is allowed for nothing."""
    known = {str(name).upper() for name in redis.command("COMMAND", "LIST")}
    named = set()
    several = ("cluster/", "session/server.c", "session/dispatcher.c")  # for clusters and Sentinels
    sources = [p for p in (ROOT / "storage").rglob("*.c") if not any(s in str(p) for s in several)]
    for path in [*sources, *(ROOT / "storage/lua").glob("*.lua")]:
        named |= set(re.findall(r"""["']([A-Z_]{3,})["']""", path.read_text())) & known
    named -= {"AUTH", "SELECT"}  # always allowed; only with a database number in the URL
    named -= {"READONLY"}  # an error's code
    named -= {"WAIT", "ASKING", "CLUSTER"}  # of clusters and Sentinels: test_deploy_cluster.py
    assert {name.upper().partition("|")[0] for name in permissions()} == named


def work(tallyd, clock):
    """Writes and questions of every kind, rollups up to a month, expiry."""
    http = tallyd.client()

    def to(at):
        clock.set(at)
        wait_until(lambda: http.question("/pv", from_="now-1m")["to"][:16] > at.replace(" ", "T"), f"it is {at}")

    def post(at, n):
        http.accept([{"page": f"/{i % 3}", "user": f"{at}{i}", "ip": f"192.0.2.{i % 9}", "ts": epoch(at)} for i in range(n)])

    for at in ("2026-02-27 22:50", "2026-02-27 23:59", "2026-02-28 01:00", "2026-02-28 04:00", "2026-03-01 00:02"):
        to(at)
        post(at, 1)
        post(at, 20)
    post("2026-02-28 02:00", 5)  # late
    wait_until(lambda: http.question("/uv", from_="2026-02-01", to="2026-03-01")["cover"]["keys"] == 1, "a month key")
    for metric, n in (("pv", 110), ("visits", 105), ("uv", 105), ("ips", 9)):
        got = http.count(metric, from_="2026-02-01", to="now")
        assert is_close(got, n) if metric in ("uv", "ips") else got == n, f"{metric}: {got}, not {n}"
    http.count("uv", page=["/1", "/2"], from_="2026-02-27T23:30:00Z", to="2026-02-28T02:30:00Z")
    for algorithm in ("funnel", "sliding"):
        body = json.dumps({"key": "k", "algorithm": algorithm, "limit": 3, "period_s": 60})
        assert [http.request("POST", "/ratelimit", body).status for _ in range(5)][-1] == 429
        clock.advance(30)
        http.request("POST", "/ratelimit", body)
        clock.advance(31)
        assert http.request("POST", "/ratelimit", body).status == 200
    assert http.request("DELETE", "/ratelimit?key=k").status == 204
    assert http.get("/readyz").status == 200
    http.close()


def use_filters(tallyd, redis):
    """Filters of every kind, made, grown and deleted; who saw what, and a log that is folded."""
    http = tallyd.client()
    items = json.dumps({"items": [str(i) for i in range(300)]})
    for name, capacity in (("small", 100), ("large", 20_000_000)):
        assert http.request("PUT", f"/filters/{name}", json.dumps({"capacity": capacity})).status == 201
        for method, tail, status in (("POST", "/add", 200), ("POST", "/add", 200), ("POST", "/check", 200), ("GET", "", 200),
                                     ("DELETE", "", 204)):
            assert http.request(method, f"/filters/{name}{tail}", items if tail else None).status == status
    assert http.request("POST", "/filters/small/add", items).status == 200  # where one was deleted
    http.accept({"page": "/seen", "user": "u", "site": "seen"})
    counted(http)
    (log,) = admin(redis, "KEYS", "t:*:seen:seen:*:log")
    admin(redis, "APPEND", log, "x" * ((128 << 10) - 16))
    http.accept({"page": "/seen", "user": "u", "site": "seen"})
    wait_until(lambda: http.metric("tallyd_seen_folds_total") > 0, "the log is folded")
    assert http.question("/seen", page="/seen", user="u", site="seen")["seen"]
    http.close()


@pytest.mark.parametrize("tcp", [False, True], ids=["socket", "tcp"])
def test_permissions_suffice(directory, start_tallyd, cleanup, tcp):
    clock = FakeClock(directory, "2026-02-27 22:45:00")
    port = free_port() if tcp else 0
    redis = shipped(directory, clock, port)
    cleanup.append(redis.stop)
    redis.start()
    url = f"redis://tallyd:{PASSWORD}@127.0.0.1:{port}"
    tallyd = start_tallyd("--partitions", "4", redis=url if tcp else redis)
    work(tallyd, clock)
    use_filters(tallyd, redis)
    denied = admin(redis, "ACL", "LOG")
    assert not [entry for entry in denied if "ping" not in entry], denied  # ping: the harness's
    assert tallyd.terminate() == 0
    again = start_tallyd("--partitions", "4", "--keep-days", "2000d", redis=url if tcp else redis)  # a script more
    again.terminate()
    assert not [entry for entry in admin(redis, "ACL", "LOG") if "ping" not in entry]
    if tcp:
        with Resp.unix(redis.path, 5) as nobody, pytest.raises(Exception, match="NOAUTH"):
            nobody.command("INFO")


def test_the_user_may_do_nothing_else(directory, cleanup):
    redis = shipped(directory)
    cleanup.append(redis.stop)
    redis.start()
    for command in (("FLUSHALL",), ("CONFIG", "SET", "appendonly", "no"), ("KEYS", "*"), ("SHUTDOWN",), ("GET", "other"), ("SET", "x", "1"),
                    ("SCRIPT", "FLUSH"), ("ACL", "LIST"), ("PUBLISH", "c", "m"), ("EVAL", "return 1", "0")):
        with pytest.raises(Exception, match="NOPERM"):
            redis.command(*command)


def test_the_same_promises_as_the_embedded_one(directory, start_tallyd, cleanup):
    """Where deploy/redis.conf and tallyd's own command line set the same thing, they set it alike."""
    tallyd = start_tallyd()
    redis = shipped(directory)
    cleanup.append(redis.stop)
    redis.start()
    spawn = (ROOT / "service/redis/redis_child.c").read_text()
    for name in re.findall(r'"--((?:lazyfree|append|save|maxmemory-policy)[a-z-]*)"', spawn):
        assert admin(redis, "CONFIG", "GET", name)[1] == tallyd.redis_command("CONFIG", "GET", name)[1], name


def test_a_copy_of_the_files_is_a_backup(directory, start_tallyd, cleanup):
    """As deploy/README.md says: keep Redis from replacing files, copy while writes go on, start on the copy."""
    tallyd = start_tallyd()
    http, written, stop = tallyd.client(), [0], threading.Event()
    cleanup.append(stop.set)
    writer = threading.Thread(target=keep_writing, args=(tallyd.client(), written, stop))
    writer.start()
    wait_until(lambda: written[0] > 500, "some events")
    tallyd.redis_command("CONFIG", "SET", "auto-aof-rewrite-percentage", "0")
    wait_until(lambda: "aof_rewrite_in_progress:0" in tallyd.redis_command("INFO", "persistence"), "no rewrite")
    before = written[0]
    shutil.copytree(tallyd.data_dir / "appendonlydir", directory / "data" / "appendonlydir")
    after = written[0]
    wait_until(lambda: written[0] > after, "writes go on")
    stop.set()
    writer.join()
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    restored = start_tallyd(directory=directory)
    got = restored.client().count("pv", from_="now-1h")
    assert before <= got <= after + 10, f"{before} <= {got} <= {after}"
    assert http.count("pv", from_="now-1h") == written[0]
    assert is_close(restored.client().count("uv", from_="now-1h"), 10)


def keep_writing(http, written, stop):
    while not stop.is_set():
        http.accept([{"page": "/", "user": f"u{i}"} for i in range(10)])
        written[0] += 10
    http.close()


# The proxy


CLOSED = {  # on purpose: they change or forget what is there, or tell about the process
    ("PUT", "/pagesets/{name}"), ("DELETE", "/pagesets/{name}"), ("PUT", "/filters/{name}"), ("DELETE", "/filters/{name}"),
    ("DELETE", "/ratelimit"), ("DELETE", "/users/{user}"),
    ("DELETE", "/users/{user}/activity"), ("POST", "/rollup"), ("GET", "/readyz"), ("GET", "/metrics"),
    ("GET", "/cluster"), ("GET", "/ops"), ("DELETE", "/pages"), ("DELETE", "/sites/{site}")}


def passes(method, path):
    """Does nginx.conf let it through, from where it may come?"""
    locations = re.findall(r"^    location (=|~|) ?(\S+) {\n(.*?)^    }", (DEPLOY / "nginx.conf").read_text(), re.M | re.S)
    for kind, pattern, text in locations:  # each path is in one, so their order does not matter
        if path == pattern if kind == "=" else kind == "~" and re.search(pattern, path):
            only = re.search(r"limit_except ([A-Z ]+) {", text)
            return only is None or method in only[1].split()
    return False


def test_the_proxy_knows_every_route():
    sources = [p.read_text() for layer in ("handlers", "service") for p in (ROOT / layer).rglob("*.[ch]")]
    routes = set(sum((re.findall(r'\bHTTP_(\w+), "(/[^"]*)",', text) for text in sources), []))
    assert len(routes) > 40
    assert {(method, path) for method, path in routes if not passes(method, re.sub("{.*}", "name", path))} == CLOSED


@pytest.fixture
def nginx(start_nginx, tallyd):
    """nginx with deploy/nginx.conf before the shared tallyd: its port."""
    return start_nginx("nginx.conf", {"127.0.0.1:8080": f"127.0.0.1:{tallyd.port}"})


def test_the_proxy_passes_what_it_should(nginx, tallyd, site):
    http = Client("127.0.0.1", nginx)
    before = tallyd.client().metric("tallyd_http_connections")
    for i in range(50):
        http.accept([{"page": "/", "user": f"u{i}", "site": site}])
    assert is_close(http.count("uv", site=site, from_="now-1h"), 50)
    assert http.count("pv", site=site, from_="now-1h") == 50
    assert tallyd.client().metric("tallyd_http_connections") <= before + 3  # kept, not one a request
    answer = http.get("/uv", nonsense="1")
    assert answer.status == 400 and answer.headers["Content-Type"] == "application/problem+json"
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])
    assert http.get("/healthz").status == 200
    for path in ("/metrics", "/readyz", "/ops", "/cluster", "/none"):
        assert http.get(path).status == 404, path
    assert http.request("DELETE", "/events").status == 403
    for method, path in (("POST", "/uv"), ("POST", "/rollup"), ("PUT", "/filters/f"), ("DELETE", "/ratelimit")):
        assert http.request(method, path, b"").status == 403, path
    for path in ("/", "/web/app.js", "/sites", "/active/users?day=today", "/users/u/activity", "/pagesets/none", "/grafana/"):
        assert "X-Request-Id" in http.get(path).headers, path  # tallyd's answer: nginx's own have none
    assert http.request("POST", "/grafana/metrics", b"{}").status == 200
    http.close()


def test_nobody_chooses_the_address_that_a_limit_is_of(start_nginx, start_tallyd, start_redis):
    """A backend behind the proxy has one limit, whatever it says of where it is."""
    tallyd = start_tallyd("--trusted-proxies", "127.0.0.1", "--ingest-limit", "1/1h", "--ingest-burst", "0", "--ingest-limit-by", "ip",
                          redis=start_redis())
    port = start_nginx("nginx.conf", {"127.0.0.1:8080": f"127.0.0.1:{tallyd.port}"})
    statuses = []
    for i in range(3):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=("127.0.0.2", 0))  # no proxy's address
        connection.request("POST", "/events", '{"page":"/"}', {"Content-Type": "application/json", "X-Forwarded-For": f"192.0.2.{i}"})
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [202, 429, 429]


def test_the_proxy_takes_as_much_as_tallyd(nginx, tallyd):
    def body(n):
        return b'[{"page":"/x"}' + b" " * (n - 15) + b"]"

    for n, status in ((8 << 20, 202), ((8 << 20) + 1, 413)):
        http = Client("127.0.0.1", nginx)
        assert http.post(body(n)).status == status
        http.close()
        assert tallyd.client().post(body(n)).status == status


@needs("nginx")
@needs("openssl")
def test_nginx_conf_as_it_is(tmp_path):
    """`nginx -t` on the file itself, with a certificate for this test."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=tally.example.org",
                    "-keyout", tmp_path / "key", "-out", tmp_path / "pem"], check=True, capture_output=True)
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"(ssl_certificate) \S+;", rf"\1 {tmp_path}/pem;", text)
    text = re.sub(r"(ssl_certificate_key) \S+;", rf"\1 {tmp_path}/key;", text)
    conf = tmp_path / "nginx.conf"
    conf.write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{text}\n}}\n")
    done = subprocess.run([shutil.which("nginx") or "/usr/sbin/nginx", "-t", "-c", conf], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# make install


def make(*args):
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "DESTDIR", "PREFIX")}
    binary = pathlib.Path(os.environ.get("TALLYD_BIN", "build/tallyd"))
    return subprocess.run(["make", "--no-print-directory", f"B={binary.parent}", *args], cwd=ROOT, env=env,
                          capture_output=True, text=True, check=False)


def files(directory):
    return {str(p.relative_to(directory)): p.stat().st_mode & 0o777 for p in directory.rglob("*") if p.is_file()}


def broken_links(directory):
    """Links of the pages in the directory that lead nowhere, but for those to sources, which are not installed."""
    links = [(page, link.split("#")[0]) for page in directory.rglob("*.md")
             for link in re.findall(r"\]\(([^)#][^)]*)\)", page.read_text()) if "://" not in link]
    assert len(links) > 100
    return [(str(page), link) for page, link in links
            if not link.endswith((".c", ".h", ".py")) and not (page.parent / link).exists()]


@pytest.mark.parametrize("prefix", ["/usr/local", "/opt/tallyd-0.1_x+y"])
def test_make_install_and_uninstall(tmp_path, prefix):
    unit = f"{prefix[1:]}/lib/systemd/system/tallyd.service"
    destination = tmp_path / "dest dir"
    mine = destination / prefix[1:] / "bin" / "other"
    mine.parent.mkdir(parents=True)
    mine.write_text("not of tallyd")
    done = make("install", f"DESTDIR={destination}", f"PREFIX={prefix}")
    assert done.returncode == 0, done.stderr
    there = files(destination)
    here = prefix[1:]
    assert there.pop(f"{here}/bin/other")
    pages = {"README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "openapi.yaml", *(
        str(path.relative_to(ROOT)) for part in ("service", "handlers", "storage", "tests", "deploy")
        for path in (ROOT / part).rglob("*" if part == "deploy" else "*.md")
        if path.is_file() and not {"__pycache__", "node_modules"} & set(path.parts))}
    assert there == {
        f"{here}/bin/tallyd": 0o755, unit: 0o644, unit.replace("tallyd.service", "tallyd-follow@.service"): 0o644,
        **{f"{here}/share/doc/tallyd/{name}": 0o644 for name in pages}}
    assert broken_links(destination / here / "share/doc/tallyd") == []
    assert (destination / here / "share/doc/tallyd/deploy/tallyd.service").read_text() == (destination / unit).read_text()
    text = (destination / unit).read_text()
    assert f"\nExecStart={prefix}/bin/tallyd serve " in text
    assert f"file:{prefix}/share/doc/tallyd/deploy/README.md\n" in text and "/usr/bin" not in text
    version = subprocess.run([destination / here / "bin/tallyd", "--version"], capture_output=True, text=True, check=True)
    assert version.stdout.startswith("tallyd ")
    done = make("uninstall", f"DESTDIR={destination}", f"PREFIX={prefix}")
    assert done.returncode == 0, done.stderr
    assert files(destination) == {f"{here}/bin/other": 0o644}
    assert not (destination / here / "share/doc/tallyd").exists()


@pytest.mark.parametrize("prefix", ["usr", "/opt/tally d", "/a|b", "/a&b"])
def test_make_install_refuses_a_prefix_that_needs_quotes(tmp_path, prefix):
    done = make("install", f"DESTDIR={tmp_path}", f"PREFIX={prefix}")
    assert done.returncode != 0 and "PREFIX" in done.stderr
    assert not files(tmp_path)
