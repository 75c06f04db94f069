"""`tallyd import` a second time: what an earlier run has counted counts nothing, however that run ended."""

import gzip
import json
import subprocess
import threading

import pytest

from lib.http_proxy import Answer, HttpProxy, harm
from lib.process import binary, environment, run
from lib.truth import Model
from lib.waiting import wait_until
from lib.world import FOREVER

TALLYD_ARGS = FOREVER
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
    port_of.client().await_counted(site)
    check(port_of.client(), site, events)


@pytest.mark.parametrize("applied", [False, True], ids=["lost", "counted"])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_answer_that_leaves_open_what_happened(tallyd, cleanup, site, file, status, applied):
    """A fault of the server's, or a proxy's: the same request goes again under the same key, and counts once."""
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    between.plan = harm(None, Answer(status, (("Retry-After", "0"),), b"<html>", applied), Answer(status, (), b"", applied))
    events = make_events(3000)
    done = run("import", "--site", site, "--url", between.url, file(lines(events)))
    assert done.returncode == 0, done.stdout + done.stderr
    first, *tries = [(r.key, r.text()) for r in between.requests]
    assert tries[0] == tries[1] == tries[2] and tries[0][0] and len({key for key, _ in [first, *tries]}) == len(tries) - 1
    assert f"the server answers {status}" in done.stderr
    if not (status == 503 and applied):  # tallyd's 503 means that nothing counts, so a batch that does was another run's
        assert "events accepted 3000" in done.stdout and "counted before" not in done.stdout, "it was this run that had it counted"
    check(tallyd.client(), site, events)


# A file that has grown


def taken(tallyd, site, path, *options, status=0):
    """One more run: (events accepted, counted before)."""
    done = run("import", *(("--site", site) if site else ()), "--url", tallyd.url, *options, path)
    assert done.returncode == status, done.stdout + done.stderr
    numbers = {name.strip(): int(value) for name, value in
               (row.rsplit(None, 1) for row in done.stdout.splitlines()) if value.isdigit()}
    return numbers["events accepted"], numbers.get("counted before", 0)


def test_a_log_that_grows_counts_once(tallyd, http, site, file, chance):
    """Imported again and again while it grows, within batches and over them, by every number of lines."""
    events = make_events(5000)
    ends = [1, 2, 3, 700, 701, 1023, 1024, 1025, 2047, *chance.sample(range(2048, 4999), 4), 5000]
    before = 0
    for end in sorted(ends):
        path = file(lines(events[:end]))
        assert taken(tallyd, site, path) == (end - before, before), end
        assert taken(tallyd, site, path) == (0, end), end
        before = end
    check(http, site, events)


@pytest.mark.parametrize("applied", [False, True], ids=["lost", "counted"])
def test_a_log_that_grows_and_an_answer_that_is_lost(tallyd, http, cleanup, site, file, applied):
    """A request that nobody answered, and then a key that has another body: that body is looked for."""
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    events = make_events(40)
    assert taken(between, site, file(lines(events[:3]))) == (3, 0)
    between.plan = harm(Answer(500, applied=applied), Answer(502, applied=applied))
    assert taken(between, site, file(lines(events))) == (37, 3)
    check(http, site, events)


def test_a_log_that_grows_by_a_piece_of_a_line(tallyd, http, site, file):
    """The last line is read while it is being written.  (Without --site lines go out unparsed.)"""
    events = [{**event, "site": site} for event in make_events(12)]
    text = lines(events)
    cut = [text.index(lines(events[n:n + 1])) + 20 for n in (4, 5, 7, 8)]
    for length in [*cut, len(text) - 1, len(text)]:
        taken(tallyd, None, file(text[:length]))
    assert taken(tallyd, None, file(text)) == (0, 12)
    check(http, site, events)


@pytest.mark.parametrize("form", ["ndjson", "combined"])
def test_a_log_that_grows_by_a_piece_of_a_line_that_is_no_event_yet(tallyd, http, site, file, form):
    """What was whole before is cut as before: the piece is none of the events."""
    rows = [json.dumps({"page": f"/{i % 9}", "user": f"u{i}", "ts": BEGIN + i}) if form == "ndjson" else
            f'192.0.2.{i % 200} - - [10/Mar/2024:10:{i // 60 % 60:02}:{i % 60:02} +0000] "GET /{i % 9} HTTP/1.1" 200 5 "-" "ua"'
            for i in range(1100)]
    for whole_rows, before in ((928, 0), (1056, 928)):  # the last piece that is sent has 32 events
        path = file("".join(row + "\n" for row in rows[:whole_rows]))
        assert taken(tallyd, site, path) == (whole_rows - before, before)
        for piece in (rows[whole_rows][:30], " ", rows[whole_rows][:30] + "\n"):
            path.write_text("".join(row + "\n" for row in rows[:whole_rows]) + piece)
            assert taken(tallyd, site, path) == (0, whole_rows), piece
    assert taken(tallyd, site, file("".join(row + "\n" for row in rows))) == (44, 1056)
    assert whole(http, "pv", site) == 1100


def test_an_access_log_that_grows_and_lines_that_are_none(tallyd, http, site, file):
    text = "".join(
        "# rotated\n" if i % 50 == 7 else
        f'192.0.2.{i % 200} - - [10/Mar/2024:10:{i // 60 % 60:02}:{i % 60:02} +0000] "GET /{i % 9} HTTP/1.1" 200 5 "-" "ua {i % 3}"\n'
        for i in range(3000))
    rows = text.splitlines(keepends=True)
    for end in (30, 1100, 1101, 2500, 3000):
        taken(tallyd, site, file("".join(rows[:end])))
    assert taken(tallyd, site, file(text)) == (0, 2940)
    assert whole(http, "pv", site) == 2940


def test_batches_that_are_cut_by_their_size(tallyd, http, site, file):
    """1 MiB ends a batch before its number of events does."""
    events = [{"page": f"/{i}", "user": f"u{i % 7}", "ts": BEGIN + i, "more": "x" * (500 + 997 * i % 4000)} for i in range(1500)]
    for end in (100, 290, 301, 777, 1499, 1500):
        taken(tallyd, site, file(lines(events[:end])))
    assert taken(tallyd, site, file(lines(events))) == (0, 1500)
    assert whole(http, "pv", site) == 1500


def test_a_log_that_grows_after_lines_that_were_rejected(tallyd, http, site, file):
    """What is rejected as a whole is remembered by no server: what was sent behind it is found all the same."""
    events = make_events(40)
    bad = {"page": "", "ts": BEGIN}
    for i in (0, 1, 4, 5, 16, 17, 18, 19, 20, 21, 22, 23, 32):
        events[i] = bad
    good = [e for e in events if e is not bad]
    for end in (2, 3, 7, 25, 33, 34, 40, 40):
        taken(tallyd, site, file(lines(events[:end])), status=1)
    assert taken(tallyd, site, file(lines(events)), status=1) == (0, len(good))
    check(http, site, good)


def test_files_that_begin_alike(tallyd, http, site, file):
    """Another file may begin with the same lines; it counts, once."""
    head = [{"page": "/", "user": "u", "ts": BEGIN}]
    files = [lines(head + [{"page": f"/{n}/{i}", "user": "u", "ts": BEGIN + i} for i in range(300 + n)]) for n in range(3)]
    for text in files:
        assert taken(tallyd, site, file(text))[1] == 0
    for n, text in enumerate(files):
        assert taken(tallyd, site, file(text)) == (0, 301 + n)
        more = text + lines([{"page": "/more", "user": "u", "ts": BEGIN + 400}])
        assert taken(tallyd, site, file(more)) == (1, 301 + n)
    assert whole(http, "pv", site) == 3 * 301 + 3 + 3


def test_a_file_that_could_not_be_read_to_its_end(tallyd, http, site, tmp_path):
    """What stands before a fault is sent; mended, the file counts what is missing."""
    events = make_events(4000)
    packed = gzip.compress(lines(events).encode())
    path = tmp_path / "events.ndjson.gz"
    for share in (0.3, 0.5, 0.9):
        path.write_bytes(packed[:int(len(packed) * share)])
        taken(tallyd, site, path, status=1)
        assert 0 < whole(http, "pv", site) < 4000
    path.write_bytes(packed)
    counted, before = taken(tallyd, site, path)
    assert counted > 0 and counted + before == 4000
    check(http, site, events)


def test_a_log_that_grows_under_a_guard(start_redis, start_tallyd, site, file):
    """A server that takes no more than 100 events at once, and one that takes more later."""
    redis = start_redis()
    events = make_events(3000)
    for limit, end in ((100, 900), (100000, 1900), (300, 1950), (100000, 3000)):
        tallyd = start_tallyd(*TALLYD_ARGS, "--ingest-limit", "100000/1s", "--ingest-burst", str(limit), redis=redis)
        taken(tallyd, site, file(lines(events[:end])))
        tallyd.stop()
    tallyd = start_tallyd(*TALLYD_ARGS, redis=redis)
    assert taken(tallyd, site, file(lines(events))) == (0, 3000)
    check(tallyd.client(), site, events)
