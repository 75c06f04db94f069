"""`tallyd import` a second time: what an earlier run has counted counts nothing, however that run ended."""

import json
import subprocess
import threading

import pytest

from lib.process import binary, environment, run
from lib.truth import Model
from lib.waiting import wait_until

TALLYD_ARGS = ("--keep-minutes", "forever", "--keep-hours", "forever", "--keep-days", "forever")
BEGIN = 1_700_000_000


def make_events(n):
    return [{"page": f"/{i % 97}", "user": f"u{i % 1201}", "ts": BEGIN + 5 * i} for i in range(n)]


def lines(events):
    return "".join(json.dumps(e) + "\n" for e in events)


@pytest.fixture
def file(tmp_path):
    def write(text, name="events.ndjson"):
        (tmp_path / name).write_text(text)
        return tmp_path / name
    return write


def start(tallyd, site, path, stdin=subprocess.DEVNULL, url=None):
    return subprocess.Popen([binary(), "import", "--site", site, "--url", url or tallyd.url, str(path)],
                            env=environment(), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def whole(http, metric, site):
    return http.count(metric, site=site, from_="2023-01-01", to="now")


def check(http, site, events):
    """PV and visits of the whole, and of pieces, are the truth's."""
    model = Model()
    for event in events:
        model.add({"site": site, **event})
    end = max(e["ts"] for e in events) // 60 * 60 + 60
    for from_s, to_s in ((BEGIN // 60 * 60, end), (BEGIN // 60 * 60 + 3600, BEGIN // 60 * 60 + 7200)):
        expected = model.counts(site, from_s, to_s)
        for metric in ("pv", "visits"):
            assert http.count(metric, site=site, from_=from_s, to=to_s) == expected[metric], metric


def test_the_same_file_again_counts_nothing(tallyd, http, site, file):
    events = make_events(2500)
    path = file(lines(events))
    first = run("import", "--site", site, "--url", tallyd.url, path)
    assert first.returncode == 0 and "events accepted 2500" in first.stdout and "counted before" not in first.stdout
    for name, stdin in ((path, None), (file(lines(events), "copy.ndjson"), None), ("-", lines(events))):
        again = run("import", "--site", site, "--url", tallyd.url, name, stdin=stdin)
        assert again.returncode == 0, again
        assert "events accepted 0" in again.stdout and "counted before  2500" in again.stdout, again.stdout
    check(http, site, events)


def test_the_same_lines_elsewhere_count(tallyd, http, site, file):
    """In another place of the file, or for another site, they are other page views."""
    text = lines([{"page": "/", "ts": BEGIN}] * 3000)
    assert run("import", "--site", site, "--url", tallyd.url, file(text)).returncode == 0
    assert whole(http, "pv", site) == 3000
    other = site[:60] + "-2"
    assert run("import", "--site", other, "--url", tallyd.url, file(text)).returncode == 0
    assert whole(http, "pv", other) == 3000


def test_killed_in_the_middle(tallyd, http, site, file, chance):
    """SIGKILL at any moment, several times; then one run to the end."""
    events = make_events(20000)
    path = file(lines(events))
    for share in sorted(chance.sample(range(1, 19), 4)):
        child = start(tallyd, site, path)
        wait_until(lambda share=share, child=child: whole(http, "pv", site) >= share * 1000 or child.poll() is not None,
                   f"{share}/20 of it", pause_s=0.001)
        child.kill()
        child.communicate()
    last = run("import", "--site", site, "--url", tallyd.url, path)
    assert last.returncode == 0, last.stdout + last.stderr
    assert "counted before" in last.stdout
    check(http, site, events)


def test_killed_while_the_file_grows(tallyd, http, site, file):
    """What came through a pipe in pieces counts as what comes as a file."""
    events = make_events(32000)
    child = start(tallyd, site, "-", stdin=subprocess.PIPE)
    child.stdin.write(lines(events[:30000]))
    child.stdin.flush()
    wait_until(lambda: whole(http, "pv", site) >= 2000, "some batches are counted")
    child.kill()
    child.communicate()
    assert run("import", "--site", site, "--url", tallyd.url, file(lines(events))).returncode == 0
    check(http, site, events)


def test_the_server_is_killed(start_redis, start_tallyd, site, file):
    """The import waits for it, sends again what was not answered, and counts all of it once."""
    redis = start_redis(appendonly=True)
    port_of = start_tallyd(*TALLYD_ARGS, "--request-timeout", "1s", redis=redis)
    port = port_of.port
    port_of.listen = f"127.0.0.1:{port}"
    events = make_events(20000)
    child = start(port_of, site, file(lines(events)))
    said = []
    reader = threading.Thread(target=lambda: said.append(child.communicate()[0]))
    reader.start()
    for share in (3, 11):
        http = port_of.client()
        wait_until(lambda h=http, share=share: whole(h, "pv", site) >= share * 1000 or child.poll() is not None,
                   "some of it", pause_s=0.001)
        http.close()
        port_of.kill()
        port_of.start()
    reader.join(90)
    assert child.returncode == 0 and "events accepted 20000" in said[0], said
    check(port_of.client(), site, events)
