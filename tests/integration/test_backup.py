"""deploy/backup.sh: a copy made under load has all that was acknowledged before; restored, it answers the same."""

import os
import shutil
import signal
import subprocess
import threading

import pytest

from lib.process import ROOT, Tallyd, short_directory
from lib.waiting import wait_until

SCRIPT = ROOT / "deploy/backup.sh"


def backup(*args, status=0, path=os.environ["PATH"]):
    done = subprocess.run(["sh", SCRIPT, *args], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "PATH": path})
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def figures(http):
    return {metric: http.count(metric, site="s", page="/before", from_="now-2h", to="now") for metric in ("pv", "uv", "ips", "visits")}


@pytest.fixture
def place(directory, cleanup):
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: subprocess.run(["rm", "-rf", directory], check=True))
    return directory


def serve(data_dir, cleanup, name):
    daemon = Tallyd("--data-dir", data_dir, "--redis-memory", "64MiB", directory=short_directory(), name=name)
    cleanup.append(daemon.stop)
    cleanup.append(lambda: subprocess.run(["rm", "-rf", daemon.directory], check=True))
    return daemon.start()


def events(page, n):
    return [{"site": "s", "page": page, "user": f"u{i % 50}", "ip": f"192.0.2.{i % 70}"} for i in range(n)]


def test_a_copy_under_load_restores_what_was_acknowledged(place, cleanup):
    data, copy, other = place / "data", place / "copy", place / "other"
    first = serve(data, cleanup, "first")
    http = first.client()
    http.accept(events("/before", 500))
    expected, day = figures(http), http.question("/dau", site="s")["users"]
    assert expected["pv"] == 500 and day == 50
    stop, sent = threading.Event(), []

    def load():
        client = first.client()
        while not stop.is_set():
            client.accept(events("/during", 200))
            sent.append(200)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        assert "saved" in backup("save", data, copy)
    finally:
        stop.set()
        thread.join()
    assert copy.stat().st_mode & 0o077 == 0
    assert "is there already" in backup("save", data, copy, status=1)
    assert "stop tallyd first" in backup("restore", copy, data, status=1)
    assert figures(http) == expected  # and it is served on
    backup("restore", copy, other)
    second = serve(other, cleanup, "second").client()
    assert figures(second) == expected and second.question("/dau", site="s")["users"] == day
    assert 0 <= second.count("pv", site="s", page="/during", from_="now-2h") <= sum(sent)
    second.accept(events("/before", 10))  # the same secret: the same visitors
    assert figures(second) == {**expected, "pv": 510}


def test_rewriting_goes_on_after_a_backup(place, cleanup):
    data = place / "data"
    serve(data, cleanup, "tallyd").client().accept(events("/", 1))
    setting = ["redis-cli", "-s", str(data / "redis.sock"), "config", "get", "auto-aof-rewrite-percentage"]
    before = subprocess.run(setting, capture_output=True, text=True, check=True).stdout
    assert before.split()[1] != "0"
    backup("save", data, place / "copy")
    assert subprocess.run(setting, capture_output=True, text=True, check=True).stdout == before


@pytest.mark.parametrize("name", ["SIGHUP", "SIGTERM"])
def test_rewriting_goes_on_after_a_backup_that_was_ended(place, cleanup, name):
    """SIGHUP: as when the connection of a terminal breaks."""
    data, tools = place / "data", place / "tools"
    serve(data, cleanup, "tallyd").client().accept(events("/", 1))
    setting = ["redis-cli", "-s", str(data / "redis.sock"), "config", "get", "auto-aof-rewrite-percentage"]
    before = subprocess.run(setting, capture_output=True, text=True, check=True).stdout
    tools.mkdir()
    (tools / "cp").write_text(f"#!/bin/sh\ntouch {place}/begun\nsleep 1\n")
    (tools / "cp").chmod(0o755)
    save = subprocess.Popen(["sh", SCRIPT, "save", data, place / "copy"], env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    wait_until((place / "begun").exists, "it copies")
    assert subprocess.run(setting, capture_output=True, text=True, check=True).stdout != before
    save.send_signal(getattr(signal, name))
    assert save.wait(20) == 1
    assert subprocess.run(setting, capture_output=True, text=True, check=True).stdout == before


def test_a_rewrite_that_begins_amid_the_copy(place, cleanup):
    """Such as the one that tallyd asks for each night: the first copy has a manifest whose files it lacks."""
    data, copy, tools = place / "data", place / "copy", place / "tools"
    first = serve(data, cleanup, "first")
    first.client().accept(events("/before", 30))
    expected = figures(first.client())
    tools.mkdir()
    (tools / "cp").write_text(f"""#!/bin/sh
# cp -R, once: the files that were there when it began, and the manifest last.
if mkdir {place}/once 2>/dev/null; then
  mkdir "$3"
  for file in $(ls "$2" | grep -v manifest); do {shutil.which("cp")} "$2/$file" "$3"; done
  before=$(cat "$2/appendonly.aof.manifest")
  redis-cli -s {data}/redis.sock bgrewriteaof >/dev/null
  while redis-cli -s {data}/redis.sock info persistence | grep -Eq 'aof_rewrite_(in_progress|scheduled):1'; do sleep 0.1; done
  [ "$before" != "$(cat "$2/appendonly.aof.manifest")" ] || exit 9
  exec {shutil.which("cp")} "$2/appendonly.aof.manifest" "$3"
fi
exec {shutil.which("cp")} "$@"
""")
    (tools / "cp").chmod(0o755)
    backup("save", data, copy, path=f"{tools}:{os.environ['PATH']}")
    assert (place / "once").exists()
    backup("restore", copy, place / "other")
    assert figures(serve(place / "other", cleanup, "second").client()) == expected


def test_what_was_there_is_moved_aside(place, cleanup):
    data, copy = place / "data", place / "copy"
    tallyd = serve(data, cleanup, "tallyd")
    tallyd.client().accept(events("/before", 20))
    expected = figures(tallyd.client())
    backup("save", data, f"{copy}/")
    tallyd.client().accept(events("/before", 20))
    tallyd.stop()
    assert "appendonlydir.before." in backup("restore", copy, data)
    assert figures(serve(data, cleanup, "again").client()) == expected
    assert len(list(data.glob("appendonlydir.before.*"))) == 1


def test_a_restore_that_is_cut_short_changes_nothing(place, cleanup):
    data, copy, tools = place / "data", place / "copy", place / "tools"
    tallyd = serve(data, cleanup, "tallyd")
    tallyd.client().accept(events("/before", 20))
    backup("save", data, copy)
    tallyd.client().accept(events("/before", 20))
    expected = figures(tallyd.client())
    tallyd.stop()
    tools.mkdir()
    (tools / "cp").write_text(f"""#!/bin/sh
{shutil.which("cp")} "$@"
for file in "$3"/*.incr.aof; do truncate -s -100 "$file"; done
echo "cp: no space left on device" >&2
exit 1
""")
    (tools / "cp").chmod(0o755)
    backup("restore", copy, data, status=1, path=f"{tools}:{os.environ['PATH']}")
    assert sorted(path.name for path in data.glob("appendonlydir*")) == ["appendonlydir"]
    assert figures(serve(data, cleanup, "again").client()) == expected


def test_no_restore_under_a_tallyd_whose_redis_is_away(place, cleanup):
    data, copy = place / "data", place / "copy"
    tallyd = serve(data, cleanup, "tallyd")
    tallyd.client().accept(events("/", 1))
    backup("save", data, copy)
    (data / "redis.sock").rename(data / "away")  # as while Redis is started again
    assert "a tallyd runs" in backup("restore", copy, data, status=1)
    (data / "away").rename(data / "redis.sock")
    assert len(list(data.glob("appendonlydir*"))) == 1


def test_what_it_refuses(place):
    assert "not a data directory" in backup("save", place, place / "copy", status=1)
    assert "no manifest" in backup("restore", place, place / "data", status=1)
    assert "save DATA_DIR TARGET" in backup("save", status=2)
