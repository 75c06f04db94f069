"""The process: its command line, its embedded Redis, how it starts, stops and is killed, its logs."""

import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import threading
import time

import pytest

from lib.client import Client
from lib.log import entries
from lib.process import Redis, alive, binary, environment, free_port, orphans, run
from lib.raw import Raw
from lib.resp import encode
from lib.waiting import wait_until

OPTIONS = """listen redis data-dir config fsync redis-memory redis-server partitions keep-minutes keep-hours
keep-days keep-months max-body max-body-memory max-future visit-timeout visitor-rotation request-timeout
max-connections threads readers queue log-format log-level insecure tokens metrics-token
ingest-limit ingest-burst ingest-limit-by""".split()


@pytest.fixture
def embedded(start_tallyd):
    """A tallyd with its own Redis under its own data directory."""
    return start_tallyd()


def count(tallyd, site="default", **params):
    return tallyd.client().count("pv", site=site, from_="now-1h", **params)


def post_until_accepted(tallyd, event):
    """Post until it is counted; the statuses on the way.  A lost answer is a failure."""
    statuses = []

    def accepted():
        statuses.append(tallyd.client().post(event).status)
        assert statuses[-1] in (202, 503, 504), statuses
        return statuses[-1] == 202

    wait_until(accepted, "an event is accepted again")
    return statuses


# Command line


def test_version():
    done = run("--version")
    assert done.returncode == 0 and re.fullmatch(r"tallyd \d+\.\d+\.\d+\S*\n", done.stdout), done


def test_config_prints_the_burst_that_is_in_effect(tmp_path):
    """`limit` is one less than the limit counts, as in a policy: RateLimit-Policy says q=1000 then."""
    for args, value in ((("--ingest-limit", "1000/1s"), "999"), (("--ingest-limit", "1000/1s", "--ingest-burst", "2000"), "2000"),
                        (("--ingest-limit", "1/1s"), "0"), ((), "limit")):
        done = run("config", *args)
        assert done.returncode == 0, done
        row = next(line.split() for line in done.stdout.splitlines() if line.startswith("ingest-burst"))
        assert row[1] == value, row


def test_help_names_every_option_and_command():
    done = run("--help")
    assert done.returncode == 0 and done.stderr == ""
    for option in OPTIONS:
        assert f"--{option}" in done.stdout, option
    for command in ("serve", "import", "config"):
        assert command in done.stdout


@pytest.mark.parametrize("command", [[], ["serve"], ["config"], ["import"], ["query"], ["token"], ["cluster"]], ids=str)
def test_h_is_help_too(command):
    wanted = run(*command, "--help").stdout
    assert run(*command, "-h").stdout == wanted and "--help" in run("--help").stdout
    assert run("help").stdout == run("--help").stdout


def test_h_is_no_help_where_it_is_a_value():
    assert "a value" in run("serve", "--listen", "-h", "--data-dir").stderr


def test_variables_of_the_import_are_no_unknown_ones():
    """They may stand in the environment of a shell; those that are options here, too, must be right."""
    options = re.findall(r"^  --([a-z-]+)", run("import", "--help").stdout, re.M)
    names = {f"TALLYD_{option.upper().replace('-', '_')}" for option in options} - {"TALLYD_HELP"}
    assert len(names) > 10
    done = run("config", env=dict.fromkeys(names, "48h") | {"TALLYD_KEEP_DAYS": "1100d", "TALLYD_KEEP_MONTHS": "forever"})
    assert done.returncode == 0, done


def test_ready_line(embedded):
    """Port 0 picks one, and it is printed."""
    lines = embedded.out.read_text().splitlines()
    assert len(lines) == 1
    assert re.fullmatch(r"tallyd \S+ listening on http://127\.0\.0\.1:\d+ \(redis: .+\)", lines[0])
    assert embedded.port > 0
    assert embedded.version == run("--version").stdout.split()[1]


def test_config_prints_every_option_with_value_and_origin(tmp_path):
    config = tmp_path / "tallyd.conf"
    config.write_text("# a comment\n\nkeep-hours = 30d\nqueue = 20000\nmax-future = 1m\n")
    done = run("config", "--config", config, "--queue", "30000", env={"TALLYD_MAX_FUTURE": "2m", "TALLYD_QUEUE": "40000"})
    assert done.returncode == 0, done
    row = {}
    for text in done.stdout.splitlines():
        for option in OPTIONS:
            if re.match(rf"\s*(--)?{option}\b(?!-)", text):
                row[option] = text
    assert set(row) == set(OPTIONS), set(OPTIONS) - set(row)
    # flag, environment, file, default
    assert "30000" in row["queue"] and "flag" in row["queue"]
    assert "2m" in row["max-future"] and "env" in row["max-future"]
    assert "30d" in row["keep-hours"] and "62d" in row["keep-hours"] and "file" in row["keep-hours"]
    assert "48h" in row["keep-minutes"] and "default" in row["keep-minutes"]


def test_config_shows_no_password():
    done = run("config", "--redis", "redis://app:secretword@127.0.0.1:6379")
    assert done.returncode == 0 and "secretword" not in done.stdout + done.stderr


@pytest.mark.parametrize("arguments, names", [
    (["serve", "--frobnicate"], "frobnicate"),
    (["serve", "--frobnicate=1"], "frobnicate"),
    (["serve", "--queue"], "queue"),
    (["serve", "--queue", "many"], "queue"),
    (["serve", "--queue", "-1"], "queue"),
    (["serve", "--queue", "1"], "queue"),
    (["serve", "--partitions", "0"], "partitions"),
    (["serve", "--partitions", "100000"], "partitions"),
    (["serve", "--keep-minutes", "48"], "keep-minutes"),
    (["serve", "--keep-minutes", "1m"], "keep-minutes"),
    (["serve", "--keep-days", "forevr"], "keep-days"),
    (["serve", "--max-body", "8 MB"], "max-body"),
    (["serve", "--fsync", "sometimes"], "fsync"),
    (["serve", "--visitor-rotation", "year"], "visitor-rotation"),
    (["serve", "--log-format", "xml"], "log-format"),
    (["serve", "--listen", "127.0.0.1"], "listen"),
    (["serve", "--listen", "127.0.0.1:99999"], "listen"),
    (["serve", "--redis", "http://127.0.0.1"], "redis"),
    (["serve", "--redis", "redis-cluster://127.0.0.1:7001/0"], "no databases"),
    (["serve", "--redis", "redis-sentinel://127.0.0.1:7001"], "name of the master"),
    (["serve", "--config", "/no/such/file"], "/no/such/file"),
    (["serve", "surplus"], "surplus"),
    (["frobnicate"], "frobnicate"),
    (["--frobnicate"], "frobnicate"),
    (["cluster", "status", "--frobnicate"], 'unexpected argument "--frobnicate"'),
])
def test_wrong_command_line_is_exit_2_and_named(arguments, names):
    done = run(*arguments, timeout_s=10)
    assert done.returncode == 2, done
    assert names in done.stderr and done.stdout == ""


@pytest.mark.parametrize("text, names", [
    ("frobnicate = 1", "frobnicate"), ("queue = many", "queue"), ("queue", "tallyd.conf:2"), ("queue = 20000\nqueue = 20000", "queue"),
    ("config = /x", "config"),
])
def test_wrong_config_file_is_exit_2_and_named_with_its_line(tmp_path, text, names):
    config = tmp_path / "tallyd.conf"
    config.write_text("# first\n" + text + "\n")
    done = run("serve", "--config", config, timeout_s=10)
    assert done.returncode == 2 and names in done.stderr, done
    assert re.search(r"\b[23]\b", done.stderr)


@pytest.mark.parametrize("name, value", [("TALLYD_FROBNICATE", "1"), ("TALLYD_QUEUE", "many"), ("TALLYD_KEEP_MINUTES", "1s")])
def test_wrong_environment_is_exit_2_and_named(name, value):
    done = run("serve", env={name: value}, timeout_s=10)
    assert done.returncode == 2 and name in done.stderr, done


@pytest.mark.parametrize("listen", ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"])
def test_listening_beyond_loopback_needs_insecure(listen, tmp_path):
    done = run("serve", "--listen", listen, "--data-dir", tmp_path, timeout_s=10)
    assert done.returncode == 2 and "--insecure" in done.stderr, done


def test_insecure_listens_beyond_loopback(start_redis, start_tallyd):
    tallyd = start_tallyd("--insecure", redis=start_redis(), listen="0.0.0.0:0", wait_ready=False)
    tallyd.wait_ready_line()
    tallyd.host = "127.0.0.1"
    assert tallyd.client().get("/healthz").status == 200


def test_port_in_use(embedded, tmp_path):
    done = run("serve", "--listen", f"127.0.0.1:{embedded.port}", "--data-dir", tmp_path, timeout_s=20)
    assert done.returncode not in (0, None) and str(embedded.port) in done.stderr and "in use" in done.stderr, done
    assert not orphans(tmp_path)


# The embedded Redis and its data directory


def test_embedded_redis_is_private_and_durable(embedded):
    assert len(embedded.redis_pids()) == 1
    assert (embedded.data_dir.stat().st_mode & 0o777) == 0o700
    def setting(name):
        return embedded.redis_command("CONFIG", "GET", name)[1]

    assert setting("port") == "0"
    assert (setting("appendonly"), setting("appendfsync")) == ("yes", "always")
    assert setting("maxmemory-policy") == "noeviction" and int(setting("maxmemory")) > 1 << 28
    with Raw(embedded.port) as raw:  # nobody but tallyd listens
        raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert raw.receive()[0] == 200


def test_fsync_everysec_and_memory(start_tallyd):
    tallyd = start_tallyd("--fsync", "everysec", "--redis-memory", "64MiB")
    assert tallyd.redis_command("CONFIG", "GET", "appendfsync")[1] == "everysec"
    assert tallyd.redis_command("CONFIG", "GET", "maxmemory")[1] == str(64 << 20)


def test_second_tallyd_on_the_same_directory_is_refused(embedded):
    done = run("serve", "--listen", "127.0.0.1:0", "--data-dir", embedded.data_dir, timeout_s=20)
    assert done.returncode not in (0, None) and str(embedded.data_dir) in done.stderr, done
    embedded.client().accept({"page": "/"})


def test_socket_path_that_is_too_long_is_refused(tmp_path):
    deep = tmp_path / ("d" * 100)
    done = run("serve", "--listen", "127.0.0.1:0", "--data-dir", deep, timeout_s=10)
    assert done.returncode in (1, 2) and re.search("107|too long", done.stderr), done
    assert not (deep / "redis.sock").exists() and not orphans(deep)


def test_data_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "file" / "data", timeout_s=10)
    assert done.returncode not in (0, None) and "file" in done.stderr, done


def test_redis_server_that_is_missing(tmp_path):
    done = run("serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path, "--redis-server", "/no/redis-server", timeout_s=20)
    assert done.returncode not in (0, None) and "/no/redis-server" in done.stderr, done
    assert "install redis-server" in done.stderr and "--redis URL" in done.stderr, done


def test_redis_server_that_is_missing_where_there_is_data(embedded):
    """Its append-only file would be looked at first, by the same program."""
    embedded.client().accept({"page": "/"})
    embedded.terminate()
    done = run("serve", "--listen", "127.0.0.1:0", "--data-dir", embedded.data_dir, "--redis-server", "/no/redis-server", timeout_s=20)
    assert done.returncode not in (0, None) and "/no/redis-server" in done.stderr, done
    assert "install redis-server" in done.stderr and "--redis URL" in done.stderr, done


# Stop, restart, kill


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stops_with_its_redis(embedded, number):
    embedded.client().accept({"page": "/"})
    with Raw(embedded.port) as idle:
        idle.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.receive()[0] == 200
        pids = embedded.redis_pids()
        embedded.signal(number)
        assert embedded.wait(10) == 0  # the idle connection does not hold it
    wait_until(lambda: not any(map(alive, pids)), "Redis ends with it")
    assert not orphans(embedded.data_dir)


def test_data_survives_a_restart(embedded):
    embedded.client().accept([{"page": "/", "user": f"u{i}", "ip": f"192.0.2.{i}"} for i in range(5)])
    before = [embedded.client().count(m, from_="now-1h") for m in ("pv", "uv", "ips", "visits")]
    assert embedded.terminate() == 0
    embedded.start()
    assert [embedded.client().count(m, from_="now-1h", to="now") for m in ("pv", "uv", "ips", "visits")] == before
    embedded.client().accept({"page": "/", "user": "u0", "ip": "192.0.2.0"})  # the hashing secret too
    assert [embedded.client().count(m, from_="now-1h") for m in ("pv", "uv", "ips", "visits")] == [6, *before[1:]]


def test_sigterm_lets_requests_in_flight_finish(start_redis, start_proxy, start_tallyd, site):
    """An event that Redis has taken but not yet answered gets its 202; new connections are refused."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(redis=proxy)
    proxy.hold_replies()
    with Raw(tallyd.port) as raw:
        body = f'{{"page":"/","site":"{site}"}}'
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n{body}")
        wait_until(lambda: entries(redis) == 1, "Redis has the event")
        tallyd.signal(signal.SIGTERM)

        def refused():
            try:
                Raw(tallyd.port).close()
            except OSError:
                return True
            return False

        wait_until(refused, "no new connection is accepted")
        assert tallyd.alive()
        proxy.hold_replies(False)
        assert raw.receive()[0] == 202
    assert tallyd.wait(10) == 0


def connects(port):
    try:
        Raw(port).close()
    except OSError:
        return False
    return True


def test_sigterm_lets_a_body_that_is_still_coming_finish(start_tallyd, start_redis):
    tallyd = start_tallyd(redis=start_redis())
    with Raw(tallyd.port) as raw:
        raw.send('POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 4012\r\n\r\n' + 4000 * " " + '{"pag')
        wait_until(lambda: tallyd.client().metric("tallyd_http_body_bytes") > 0, "the body is coming")
        tallyd.signal(signal.SIGTERM)
        wait_until(lambda: not connects(tallyd.port), "no new connection is accepted")
        raw.send('e":"/"}')
        assert raw.receive()[0] == 202
    assert tallyd.wait(10) == 0


def test_sigterm_waits_no_longer_than_a_deadline(start_redis, start_proxy, start_tallyd):
    """Redis never answers: the request is told so (504), and the process ends."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd("--request-timeout", "1s", redis=proxy)
    proxy.black_hole()
    with Raw(tallyd.port) as raw:
        raw.send('POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\n{"page":"/"}')
        assert not raw.readable(0.1)
        tallyd.signal(signal.SIGTERM)
        answer = raw.receive()
        assert answer is None or answer[0] in (503, 504)
    assert tallyd.wait(15) == 0


def test_orphan_of_a_killed_tallyd_is_replaced(embedded):
    embedded.client().accept([{"page": "/", "user": "u"}] * 3)
    before = embedded.redis_pids()
    embedded.kill()
    embedded.start()
    assert count(embedded) == 3
    wait_until(lambda: len(orphans(embedded.data_dir)) == 1, "one Redis works in the data directory")
    assert embedded.redis_pids() == orphans(embedded.data_dir) or orphans(embedded.data_dir) == before
    embedded.client().accept({"page": "/"})
    assert count(embedded) == 4
    assert embedded.terminate() == 0
    wait_until(lambda: not orphans(embedded.data_dir), "none is left")


def test_redis_that_dies_is_started_again(embedded):
    http = embedded.client()
    http.accept({"page": "/"})
    sent = 1
    for _ in range(3):
        victim = embedded.redis_pids()[0]
        os.kill(victim, signal.SIGKILL)
        statuses = post_until_accepted(embedded, {"page": "/"})
        sent += 1 + statuses.count(504)  # a 504 may count or not
        wait_until(lambda: embedded.client().get("/readyz").status == 200, "ready again")
        assert embedded.redis_pids() not in ([], [victim])
        assert sent - statuses.count(504) <= count(embedded) <= sent
        sent = count(embedded)
    assert embedded.alive()
    assert http.metric("tallyd_redis_connects_total") >= 4


def half_a_transaction(tallyd):
    """What a kill in the middle of a write leaves at the end of the append-only file."""
    (file,) = (tallyd.data_dir / "appendonlydir").glob("*.incr.aof")
    with open(file, "ab") as out:
        out.write(encode((b"MULTI",)) + encode((b"SET", b"half", b"1")) + encode((b"SET", b"other", b"1"))[:-9])


def test_half_a_transaction_is_none(embedded):
    """Redis 7.0 alone would run it together with what is written behind it, at the start after the next one."""
    embedded.client().accept([{"page": "/"}])
    assert embedded.terminate() == 0
    half_a_transaction(embedded)
    embedded.start()
    embedded.client().accept([{"page": "/"}] * 2)
    before = embedded.redis_pids()
    os.kill(before[0], signal.SIGKILL)
    wait_until(lambda: embedded.client().request("GET", "/readyz").status == 200 and embedded.redis_pids() != before,
               "Redis is there again")
    assert embedded.client().count("pv", from_="now-1h") == 3
    assert [embedded.redis_command("EXISTS", key) for key in ("half", "other")] == [0, 0]


def test_what_was_cut_off_is_told(embedded):
    embedded.client().accept([{"page": "/"}])
    assert embedded.terminate() == 0
    half_a_transaction(embedded)
    embedded.start()
    assert 'msg="took an unfinished write off the end of the append-only file" bytes=67' in embedded.log.read_text()
    assert embedded.client().count("pv", from_="now-1h") == 1


def test_damage_in_the_middle_throws_nothing_away(embedded):
    """redis-check-aof --fix would cut there, and with it goes all that was acknowledged since."""
    wait_until(lambda: "AOF rewrite finished" in (embedded.data_dir / "redis.log").read_text(), "the first rewrite, at the start")
    embedded.client().accept([{"page": "/"}] * 3)
    assert embedded.terminate() == 0
    (file,) = (embedded.data_dir / "appendonlydir").glob("*.incr.aof")
    whole = file.read_bytes()
    at = whole.find(b"\r\n*", len(whole) // 3) + 2
    damaged = whole[:at] + b"\0" + whole[at + 1:]
    file.write_bytes(damaged)
    with pytest.raises(RuntimeError):
        embedded.start()
    assert f"is damaged at byte {at} of {len(whole)}" in embedded.log.read_text() + embedded.out.read_text()
    assert file.read_bytes() == damaged
    file.write_bytes(whole + bytes(4096))  # but what a power cut leaves is no damage
    embedded.start()
    assert embedded.client().count("pv", from_="now-1h") == 3


def test_a_file_that_cannot_be_mended_is_told(embedded):
    embedded.client().accept([{"page": "/"}])
    assert embedded.terminate() == 0
    (base,) = (embedded.data_dir / "appendonlydir").glob("*.base.rdb")
    whole = base.read_bytes()
    base.write_bytes(whole[:-20])
    with pytest.raises(RuntimeError):
        embedded.start()
    assert "redis-check-aof cannot mend the append-only file" in embedded.log.read_text() + embedded.out.read_text()
    base.write_bytes(whole)
    embedded.start()
    assert embedded.client().count("pv", from_="now-1h") == 1


def test_a_manifest_that_names_no_file_is_told(embedded):
    """Nothing was looked at then, so nothing may be served.  redis-check-aof would empty it."""
    embedded.client().accept([{"page": "/"}])
    assert embedded.terminate() == 0
    (manifest,) = (embedded.data_dir / "appendonlydir").glob("*.manifest")
    whole = manifest.read_bytes()
    manifest.write_bytes(b"nothing of this\n")
    with pytest.raises(RuntimeError):
        embedded.start()
    assert "names no file: restore a backup" in embedded.log.read_text() + embedded.out.read_text()
    assert manifest.read_bytes() == b"nothing of this\n"
    manifest.write_bytes(whole)
    embedded.start()
    assert embedded.client().count("pv", from_="now-1h") == 1


def test_redis_that_stands_still_is_told(embedded):
    """/readyz is 503 with the reason, /healthz stays; then all is well."""
    pid = embedded.redis_pids()[0]
    os.kill(pid, signal.SIGSTOP)
    try:
        slow = embedded.client(30)
        answer = wait_until(lambda: (r := slow.get("/readyz")).status == 503 and r, "readyz tells", deadline_s=30)
        assert answer.json["detail"] and answer.headers["Content-Type"] == "application/problem+json"
        assert embedded.client().get("/healthz").json == {"status": "pass"}
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: embedded.client().get("/readyz").status == 200, "ready again")
    embedded.client().accept({"page": "/"})


# Redis of one's own


def test_redis_url_with_user_password_and_database(start_redis, start_tallyd):
    port = free_port()
    redis = start_redis(port=port, options=["--user", "app", "on", ">pa:ss@w%rd", "~*", "&*", "+@all"])
    tallyd = start_tallyd(redis=f"redis://app:pa%3Ass%40w%25rd@127.0.0.1:{port}/3")
    tallyd.client().accept({"page": "/"})
    assert count(tallyd) == 1
    with redis.connect() as connection:
        connection.command("SELECT", 3)
        assert connection.command("DBSIZE") > 0
        connection.command("SELECT", 0)
        assert connection.command("DBSIZE") == 0
    for text in (tallyd.log_text(), tallyd.out.read_text()):
        assert "w%rd" not in text and "w%25rd" not in text
    cmdline = pathlib.Path(f"/proc/{tallyd.pid}/cmdline").read_bytes()
    assert b"redis://" in cmdline  # given there by this test, not by tallyd


def test_wrong_password_is_told(start_redis, start_tallyd):
    port = free_port()
    start_redis(port=port, options=["--requirepass", "right"])
    tallyd = start_tallyd(redis=f"redis://:wrong@127.0.0.1:{port}", listen=f"127.0.0.1:{free_port()}", wait_ready=False)
    wait_until(lambda: re.search("WRONGPASS|password|NOAUTH|auth", tallyd.log_text(), re.I), "the log says so")
    assert "wrong@" not in tallyd.log_text()
    if tallyd.alive() and "listening" in tallyd.out.read_text():
        tallyd.wait_ready_line()
        assert tallyd.client().get("/readyz").status == 503
        assert tallyd.client().post({"page": "/"}).status == 503


def test_a_password_that_is_missing_is_told(start_redis, start_tallyd):
    port = free_port()
    start_redis(port=port, options=["--requirepass", "right"])
    tallyd = start_tallyd(redis=f"redis://127.0.0.1:{port}", listen=f"127.0.0.1:{free_port()}", wait_ready=False)
    wait_until(lambda: "Redis asks for a password, and its URL has none: NOAUTH" in tallyd.log_text(), "the log says so")


@pytest.mark.parametrize("by", ["socket", "port"])
def test_a_redis_without_room_for_connections_is_told(start_redis, start_tallyd, by):
    """Redis says so before it is asked anything, and closes: what is sent meanwhile fails."""
    port = free_port()
    redis = start_redis(port=port)
    tallyd = start_tallyd(redis=redis if by == "socket" else f"redis://127.0.0.1:{port}")
    with redis.connect() as admin:
        admin.command("CONFIG", "SET", "maxclients", 1)
        admin.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        wait_until(lambda: "max number of clients reached" in tallyd.log_text(), "the log says why")
        wait_until(lambda: tallyd.client().post({"page": "/"}).status == 503, "requests are refused")
        assert "could not be loaded\"" not in tallyd.log_text(), "no reason is lost"
        admin.command("CONFIG", "SET", "maxclients", 1000)
        wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready again")
    tallyd.client().accept({"page": "/"})
    assert count(tallyd) == 1


def test_a_question_that_cannot_connect_is_told(start_redis, start_tallyd):
    """The writer's connection stands: only the threads that come later have no room."""
    redis = start_redis()
    tallyd = start_tallyd(redis=redis)
    with redis.connect() as admin:
        admin.command("CONFIG", "SET", "maxclients", 1)
        wait_until(lambda: tallyd.client().get("/uv").status == 503, "questions are refused")
        told = [line for line in tallyd.log_text().splitlines() if "cannot open another connection to Redis" in line]
        assert told and all("max number of clients reached" in line for line in told)
        assert len(told) == 1, "the same is told once a minute"
        assert "cannot use Redis" not in tallyd.log_text()
        admin.command("CONFIG", "SET", "maxclients", 1000)
    assert tallyd.client().question("/uv")["uv"] == 0


def test_refused_writes_are_told_once_and_their_end(start_redis, start_tallyd):
    redis = start_redis()
    tallyd = start_tallyd(redis=redis)
    http = tallyd.client()
    with redis.connect() as admin:
        for _ in range(2):
            admin.command("CONFIG", "SET", "maxmemory", 1)
            for _ in range(4):
                assert http.post({"page": "/"}).status == 503
            admin.command("CONFIG", "SET", "maxmemory", 0)
            http.accept({"page": "/"})
    wait_until(lambda: tallyd.log_text().count("Redis takes writes again") == 2, "the end is told")
    assert tallyd.log_text().count("Redis refuses a write") == 2
    assert count(tallyd) == 2


def test_starts_before_its_redis(start_tallyd, directory, cleanup):
    redis = Redis(directory)
    cleanup.append(redis.stop)
    tallyd = start_tallyd(redis=redis, wait_ready=False)
    wait_until(lambda: tallyd.log_text() or tallyd.out.read_text(), "it says something")
    assert tallyd.alive()
    redis.start()
    tallyd.wait_ready_line()
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready", deadline_s=30)
    tallyd.client().accept({"page": "/"})


def test_it_takes_all_the_descriptors_that_it_may(start_redis, cleanup):
    """The system allows fewer than there may be connections: what it allows is taken, and the log says so."""
    process = subprocess.Popen(["/bin/sh", "-c", 'ulimit -S -n 64; ulimit -H -n 400; exec "$0" "$@"', str(binary()), "serve",
                                "--redis", start_redis().url, "--listen", "127.0.0.1:0"],
                               env=environment(), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    cleanup.append(process.stderr.close)
    cleanup.append(process.wait)
    cleanup.append(process.terminate)
    told = next(line for line in process.stderr if "file descriptors" in line)
    assert "descriptors=400" in told and resource.prlimit(process.pid, resource.RLIMIT_NOFILE) == (400, 400)


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_what_the_starter_closed_is_no_file_of_its_own(start_redis, cleanup, closed):
    """Else the log goes into a connection, or the follower's words into its state file."""
    redis, port = start_redis(), free_port()
    process = subprocess.Popen(["/bin/sh", "-c", f'exec "$0" "$@" {closed}', str(binary()), "serve", "--redis", redis.url,
                                "--listen", f"127.0.0.1:{port}"], env=environment())
    cleanup.append(process.wait)
    cleanup.append(process.terminate)

    def answers():
        try:
            return Client("127.0.0.1", port).get("/healthz").status == 200
        except Exception:
            return False

    wait_until(answers, "it answers")
    places = [os.readlink(f"/proc/{process.pid}/fd/{n}") for n in range(3)]
    assert [places[int(redirect[0])] for redirect in closed.split()] == ["/dev/null"] * len(closed.split()), places


def test_redis_stopped_and_started(start_redis, start_tallyd):
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(redis=redis)
    http = tallyd.client()
    http.accept({"page": "/"})
    assert http.get("/readyz").status == 200  # what the next second could be answered from
    redis.kill()
    wait_until(lambda: http.metric("tallyd_redis_connected") == 0, "the loss is seen")
    answer = http.get("/readyz")
    assert answer.status == 503, "a lost connection is a reason at once"
    assert answer.json["status"] == 503 and answer.json["detail"]
    for path in ("/uv", "/pv"):
        refused = http.get(path)
        assert refused.status == 503 and int(refused.headers["Retry-After"]) >= 1, refused
    posted = http.post({"page": "/"})
    assert posted.status == 503 and int(posted.headers["Retry-After"]) >= 1
    assert http.get("/healthz").status == 200 and http.get("/metrics").status == 200
    redis.start()
    wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    post_until_accepted(tallyd, {"page": "/"})
    assert count(tallyd) == 2


def test_keys_carry_hash_tags(start_redis, start_tallyd):
    """Every key lies in its partition's slot: one tag in braces, right behind `t:`."""
    redis = start_redis()
    tallyd = start_tallyd("--partitions", "8", redis=redis)
    tallyd.client().accept([{"page": f"/{{{i}}}:{{x}}", "user": f"{{u{i}}}", "ip": f"192.0.2.{i}"} for i in range(100)])
    keys = redis.command("KEYS", "*")
    tags = {re.match(r"t:\{(\w+)\}:", key)[1] for key in keys}
    assert len(tags) == 8
    assert "cmdstat_scan:" not in redis.command("INFO", "commandstats")


# Logs and metrics


SECRETS = ["visitor-4711", "203.0.113.77", "2001:db8::beef", "SecretBrowser/9.9", "ref.example"]


@pytest.mark.parametrize("log_format", ["logfmt", "json"])
def test_logs_and_data_hold_no_visitors(start_tallyd, log_format):
    tallyd = start_tallyd("--log-format", log_format, "--log-level", "debug")
    http = tallyd.client()
    http.accept([{"page": "/", "user": SECRETS[0]}, {"page": "/", "ip": SECRETS[1], "ua": SECRETS[3]},
                 {"page": "/", "ip": SECRETS[2], "ua": SECRETS[3], "referrer": SECRETS[4]}])
    for bad in ('{"page":"","user":"%s"}' % SECRETS[0], '{"page":"/","ip":"%s/8"}' % SECRETS[1],
                '{"page":"/","ua":["%s"]}' % SECRETS[3], "{%s" % SECRETS[0]):
        assert http.post(bad).status in (400, 422)
    http.get("/uv", user=SECRETS[0])
    http.request("GET", "/nothing", headers={"User-Agent": SECRETS[3]})
    os.kill(tallyd.redis_pids()[0], signal.SIGKILL)
    post_until_accepted(tallyd, {"page": "/", "user": SECRETS[0]})
    assert tallyd.terminate() == 0

    text = tallyd.log_text()
    lines = [line for line in text.splitlines() if line]
    assert lines
    if log_format == "json":
        for line in lines:
            record = json.loads(line)
            assert isinstance(record, dict) and any(k in record for k in ("msg", "message"))
            assert {"level"} <= record.keys() and any(k in record for k in ("time", "ts", "at"))
    else:
        assert all(re.search(r"level=\w+", line) for line in lines), lines[:3]
    for secret in SECRETS:
        assert secret not in text
    for path in tallyd.data_dir.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            for secret in SECRETS[1:]:
                assert secret.encode() not in data, f"{secret} in {path}"


def test_a_flood_of_bad_requests_does_not_flood_the_log(start_redis, start_tallyd):
    tallyd = start_tallyd(redis=start_redis())
    http = tallyd.client()
    for _ in range(500):
        http.post("{")
    assert len(tallyd.log_text().splitlines()) < 200


def test_metrics(tallyd, http, site):
    http.accept([{"site": site, "page": "/"}] * 5)
    http.count("pv", site=site)
    answer = http.get("/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    text = answer.body.decode()
    assert text.endswith("\n")
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
    helped = set(re.findall(r"^# HELP (\S+) \S", text, re.M))
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = re.fullmatch(r'([a-z_]\w*)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? (\S+)', line)
        assert match, line
        float(match[4])
        family = re.sub("_(bucket|sum|count)$", "", match[1])
        assert family in types or match[1] in types, line
    assert set(types) == helped and all(name.startswith("tallyd_") for name in types if not name.startswith("process_"))
    for name in ("tallyd_events_accepted_total", "tallyd_events_rejected_total", "tallyd_redis_connects_total",
                 "tallyd_appends_total", "tallyd_append_events_total", "tallyd_appends_repeated_total", "tallyd_folds_total",
                 "tallyd_fold_events_total", "tallyd_fold_seconds", "tallyd_ingest_log_events", "tallyd_ingest_log_bytes",
                 "tallyd_ingest_log_age_seconds", "tallyd_queue_events", "tallyd_redis_errors_total"):
        assert name in types, name
    by_route = "tallyd_http_request_duration_seconds"
    assert types[by_route] == types["tallyd_fold_seconds"] == "histogram"
    for route in ("/events", "/pv"):
        assert any(route in line for line in text.splitlines() if line.startswith(by_route)), route
    # no label carries what a user sent
    assert not [line for line in text.splitlines() if site in line and not line.startswith("tallyd_site_events_total")]


def test_histograms_are_cumulative(http):
    http.get("/healthz")
    series = {}
    for name, value in http.metrics().items():
        match = re.match(r'(\w+)_bucket\{(.*?),?le="([^"]+)"(.*)\}', name)
        if match:
            series.setdefault((match[1], match[2] + match[4]), []).append((float(match[3].replace("+Inf", "inf")), value))
    assert series
    for buckets in series.values():
        values = [v for _, v in sorted(buckets)]
        assert values == sorted(values) and sorted(buckets)[-1][0] == float("inf")


def test_probes_share_one_write_a_second(tallyd, redis):
    """Many /readyz cost one write probe a second."""
    before = int(redis.command("INFO", "stats").partition("total_commands_processed:")[2].split()[0])
    http, begin = tallyd.client(), time.monotonic()
    for _ in range(200):
        assert http.get("/readyz").status == 200
    seconds = time.monotonic() - begin
    after = int(redis.command("INFO", "stats").partition("total_commands_processed:")[2].split()[0])
    assert after - before < 50 + 100 * seconds


def test_idle_server_uses_no_cpu(start_redis, start_tallyd):
    """Measured over two seconds: no polling loops."""
    tallyd = start_tallyd(redis=start_redis())
    tallyd.client().accept({"page": "/"})

    def ticks():
        fields = pathlib.Path(f"/proc/{tallyd.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = ticks()
    threading.Event().wait(2)  # the measurement itself
    assert ticks() - before <= 4


def test_embedded_redis_inherits_nothing(embedded):
    """Neither the lock nor a socket of tallyd's: an orphan would keep them."""
    def open_files(pid):
        return {os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2}

    mine = open_files(embedded.pid)
    for pid in embedded.redis_pids():
        shared = {link for link in mine & open_files(pid) if not link.startswith(("anon_inode:", "/dev/"))}
        assert not shared, shared


def test_deadline_of_every_request(start_redis, start_tallyd):
    """Redis stands still: one after another, reads and writes are answered within --request-timeout."""
    redis = start_redis()
    tallyd = start_tallyd("--request-timeout", "500ms", redis=redis)
    redis.signal(signal.SIGSTOP)
    try:
        for _ in range(4):  # the first ones are sent to Redis, the later ones cannot even be sent
            for ask in (lambda c: c.post({"page": "/"}), lambda c: c.get("/uv"), lambda c: c.get("/readyz")):
                begin = time.monotonic()
                answer = ask(tallyd.client())
                assert answer.status in (503, 504) or b'"ready"' in answer.body, answer  # a probe of a second ago
                assert time.monotonic() - begin < 2
    finally:
        redis.signal(signal.SIGCONT)
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready again")
    tallyd.client().accept({"page": "/after"})
    assert count(tallyd, page="/after") == 1
    assert count(tallyd, page="/") <= 4
