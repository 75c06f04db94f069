"""`tallyd import`: access logs and NDJSON, and real logs against the counts that others made of them."""

import bz2
import gzip
import json
import lzma
import os
import pty
import re
import signal
import subprocess
import time

import pytest

from lib import access_log, process
from lib.clock import epoch, rfc3339
from lib.process import ROOT, binary, environment, run
from lib.truth import Estimates, Model, is_close
from lib.waiting import wait_until
from lib.world import FOREVER

# windows to the minute, thirteen years back
TALLYD_ARGS = FOREVER
KEEP = ("--keep-minutes", "forever")

SAMPLE = ROOT / "tests" / "data" / "sample_access.log"
ELASTIC, SRHEGDE = "elastic_apache_logs", "srhegde_access_2005-2018"
# One line of this log is two lines spliced together.  Read from the left it is a view of an image on August
# 29, 2008; the truth reads it as the view of /robots.txt on the day after that it ends with.
SPLICED = {"log": SRHEGDE, "page": "/robots.txt", "at": "2008-08-30T06:22:00Z", "days": ("2008-08-29", "2008-08-30")}
METRICS = {"pv": "pv", "uv": "uv", "ips": "unique_ips", "visits": "visits"}

LINE = '{ip} - - [{time}] "{method} {target} HTTP/1.1" 200 5 "-" "{ua}"'


def line(ip="192.0.2.1", time="10/Mar/2026:10:56:20 +0000", method="GET", target="/", ua="Mozilla/5.0"):
    return LINE.format(ip=ip, time=time, method=method, target=target, ua=ua)


def imported(tallyd, site, path, *options, status=0, stdin=None):
    """Run it; its summary as {name: number}, and all it said."""
    site_option = ("--site", site) if site else ()
    done = run("import", *site_option, "--url", tallyd.url, *KEEP, *options, path, stdin=stdin, timeout_s=300)
    said = done.stdout + done.stderr
    assert done.returncode == status, f"exit {done.returncode}:\n{said[-3000:]}"
    summary = {m[1].strip(): int(m[2]) for m in re.finditer(r"^([a-z ]+?)\s+(\d+)$", done.stdout, re.M)}
    return summary, said


def whole(http, metric, site, **params):
    return http.count(metric, site=site, from_="2000-01-01", to="now", **params)


@pytest.fixture
def file(tmp_path):
    def write(name, text):
        path = tmp_path / name
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path
    return write


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_import_says_how_to_go_on(tallyd, http, site, tmp_path, number):
    """It ends by the signal, as a shell expects, and the same command counts what is missing."""
    text = "".join(line(ip=f"192.0.2.{i % 7}", target=f"/{i}") + "\n" for i in range(9000))
    pipe, path = tmp_path / "pipe", tmp_path / "access.log"
    os.mkfifo(pipe)
    path.write_text(text)
    child = subprocess.Popen([binary(), "import", "--site", site, "--url", tallyd.url, *KEEP, str(pipe)],
                             env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with open(pipe, "w", encoding="utf-8") as log:
        log.write(text)
        log.flush()
        wait_until(lambda: whole(http, "pv", site) > 0, "a part of it is counted")
        child.send_signal(number)
        _, said = child.communicate(timeout=20)
    assert child.returncode == -number and "interrupted; run the same command again within a day" in said, said
    summary, _ = imported(tallyd, site, path)
    assert summary["counted before"] >= 1024 and whole(http, "pv", site) == 9000


@pytest.mark.parametrize("name", ["access.log", "access.log.gz", "-"])
def test_file_gzip_and_standard_input(tallyd, http, site, file, name):
    text = "\n".join(line(ip=f"192.0.2.{i % 7}", target=f"/{i % 3}?q={i}") for i in range(2500)) + "\n"
    if name == "-":
        summary, _ = imported(tallyd, site, "-", stdin=text)
    else:
        summary, _ = imported(tallyd, site, file(name, text))
    assert (summary["events accepted"], summary["malformed"], summary["rejected"]) == (2500, 0, 0)
    assert whole(http, "pv", site) == 2500
    assert whole(http, "pv", site, page="/1") == 833  # without the query
    # two of seven share a register of a sketch once in 780 times, and are taken for one
    assert {whole(http, "uv", site), whole(http, "ips", site)} <= {6, 7}


def test_an_address_with_the_path_of_a_route(tallyd, site, tmp_path):
    path = tmp_path / "access.log"
    path.write_text(line() + "\n")
    done = subprocess.run([binary(), "import", "--site", site, "--url", tallyd.url + "/events", path], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 1 and "404 Not Found: no such path; GET /openapi.yaml lists all of them (is --url right? it ends before /events)\n" in done.stderr


@pytest.mark.parametrize("program, head", [
    ("xz", lzma.compress(b"x")), ("bzip2", bz2.compress(b"x")), ("zstd", b"\x28\xb5\x2f\xfd\0"), ("lz4", b"\x04\x22\x4d\x18\0")])
@pytest.mark.parametrize("name", ["access.log.1", "-"])
def test_compressed_by_another_program(tallyd, site, tmp_path, program, head, name):
    """logrotate's compresscmd may be any: nothing is read as lines, and the command says what would be."""
    path = tmp_path / "access.log.1"
    path.write_bytes(head)
    with path.open("rb") as stdin:
        done = subprocess.run([binary(), "import", "--site", site, "--url", tallyd.url, path if name != "-" else "-"], stdin=stdin,
                              capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"{program} has compressed it: pipe what `{program} -dc` makes of it into `tallyd import -`" in done.stderr
    assert "malformed:" not in done.stderr


def test_last_line_without_an_end_and_crlf(tallyd, http, site, file):
    imported(tallyd, site, file("a.log", f"{line()}\r\n{line()}"))
    assert whole(http, "pv", site) == 2


def test_empty_file(tallyd, site, file):
    summary, _ = imported(tallyd, site, file("a.log", ""))
    assert summary["events accepted"] == 0


def test_time_and_offset(tallyd, http, site, file):
    imported(tallyd, site, file("a.log", "\n".join([
        line(time="10/Mar/2026:10:56:20 +0000"), line(time="10/Mar/2026:16:26:59 +0530"),
        line(time="10/Mar/2026:06:56:00 -0400"), line(time="29/Feb/2024:23:59:59 -0001")])))
    assert http.count("pv", site=site, from_="2026-03-10T10:56:00Z", to="2026-03-10T10:57:00Z") == 3
    assert http.count("pv", site=site, from_="2024-03-01T00:00:00Z", to="2024-03-01T00:01:00Z") == 1


def test_methods_and_malformed_lines(tallyd, http, site, file):
    """With --all GET, HEAD and POST count whatever their status; the rest is counted as what it is, with line numbers."""
    lines = [line(), line(method="HEAD"), line(method="POST"), line(method="PUT"), line(method="OPTIONS", target="*"),
             "nonsense", line(time="32/Mar/2026:10:56:20 +0000"), line(time="10/Mar/2026:10:56:20"),
             line(target="/with?query=1"), line(target="?x"), line() + ' "more" fields', line()[:-20],
             line(ua='a \\"quoted\\" agent'), line(method=""), line().replace(" 200 ", " 404 ")]
    summary, said = imported(tallyd, site, file("a.log", "\n".join(lines)), "--format", "combined", "--all")
    malformed = [i for i, text in enumerate(lines, 1) if access_log.parse(text) == "malformed"]
    others = sum(access_log.parse(text) == "other_method" for text in lines)
    assert summary["malformed"] == len(malformed) and summary["other methods"] == others == 2
    assert summary["events accepted"] == len(lines) - len(malformed) - others
    for number in malformed:
        assert re.search(rf"\b{number}\b.*malformed|malformed.*\b{number}\b", said), f"line {number} in:\n{said}"
    assert whole(http, "pv", site) == summary["events accepted"]


def test_common_format(tallyd, http, site, file):
    """Without user agents the address alone is the visitor."""
    common = '192.0.2.{} - frank [10/Mar/2026:10:56:20 +0000] "GET /a HTTP/1.0" 200 2326'
    text = "\n".join(common.format(i % 3) for i in range(9))
    for option in ("auto", "common"):
        imported(tallyd, site, file("a.log", text), "--format", option)
    assert whole(http, "pv", site) == 9  # the second one counts nothing
    assert whole(http, "uv", site) == 3
    summary, _ = imported(tallyd, site, file("b.log", text), "--format", "combined")
    assert summary["malformed"] == 9


def test_ndjson(tallyd, http, site, file):
    events = [{"page": f"/{i % 5}", "user": f"u{i % 40}", "ts": 1_700_000_000 + i, "extra": [1, {}]} for i in range(3000)]
    text = "\n".join(json.dumps(e) for e in events)
    summary, _ = imported(tallyd, site, file("events.ndjson.gz", text))
    assert summary["events accepted"] == 3000
    assert whole(http, "pv", site) == 3000
    assert is_close(whole(http, "uv", site), 40)


def test_rejected_lines_end_in_exit_1_and_are_named(tallyd, http, site, file):
    good = json.dumps({"page": "/", "ts": 1_700_000_000})
    text = "\n".join([good, '{"page":"","ts":1700000000}', good, '{"page":"/","user":true,"ts":1700000000}', good])
    summary, said = imported(tallyd, site, file("a.ndjson", text), status=1)
    assert (summary["events accepted"], summary["rejected"]) == (3, 2)
    assert re.search(r"line 2\b", said) and re.search(r"line 4\b", said)
    assert whole(http, "pv", site) == 3


def test_no_bar_without_a_terminal(tallyd, site, file):
    _, said = imported(tallyd, site, file("a.log", "\n".join([line()] * 5000)))
    assert "\r" not in said and "\033" not in said


def test_bar_on_a_terminal(tallyd, site, file):
    path = file("a.log", "\n".join([line()] * 60_000))
    master, slave = pty.openpty()
    child = subprocess.Popen([binary(), "import", "--site", site, "--url", tallyd.url, *KEEP, str(path)],
                             stdout=subprocess.DEVNULL, stderr=slave, env=environment())
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 65536):
            seen += chunk
    except OSError:  # the terminal's other end is closed
        pass
    finally:
        os.close(master)
        assert child.wait(60) == 0
    assert b"\r" in seen and b"events/s" in seen and b"%" in seen


@pytest.mark.parametrize("make_arguments, word", [
    (lambda t: ("--url", f"http://127.0.0.1:{process.free_port()}", "{file}"), ""),
    (lambda t: ("--url", t.url, "/no/such/file"), "/no/such/file"),
    (lambda t: ("--url", t.url, "--frob", "{file}"), "--frob"),
    (lambda t: ("--url", t.url, "--format", "xml", "{file}"), "--format"),
    (lambda t: ("--url", t.url), ""),
    (lambda t: ("--url", t.url, "--site", "No Site", "{file}"), ""),
])
def test_failures_are_told(tallyd, file, make_arguments, word):
    path = file("a.log", "nonsense\n" + line())
    arguments = [a.replace("{file}", str(path)) for a in make_arguments(tallyd)]
    child = subprocess.Popen([binary(), "import", *arguments], env=environment(), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        # what is refused (or does not come up) is tried again for about a minute
        _, stderr = child.communicate(timeout=100)
    finally:
        child.kill()
    assert child.returncode in (1, 2) and stderr.strip() and word in stderr, stderr


@pytest.mark.parametrize("days, options, said", [
    (0, (), None),
    (3, (), "2 lines are older than 48h: their hours, days and months are kept, their minutes are not (a longer --keep-minutes"),
    (3, ("--keep-minutes", "forever"), None),
    (100, (), "2 lines are older than 62d: their days and months are kept, their minutes and hours are not "
              "(a longer --keep-minutes and --keep-hours"),
    (100, ("--keep-hours", "200d"), "2 lines are older than 48h: their hours, days and months are kept"),
    (1200, (), "2 lines are older than 1100d: their months are kept, their minutes, hours and days are not"),
    (1200, ("--keep-minutes", "forever", "--keep-hours", "forever"),
     "2 lines are older than 1100d: their minutes, hours and months are kept, their days are not (a longer --keep-days"),
])
def test_old_lines_are_said_with_what_is_kept_of_them(tallyd, site, file, days, options, said):
    last = int(time.time()) - days * 86400
    first = last - 7
    lines = [line(time=time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))) for at in (last, first)]
    done = run("import", "--site", site, "--url", tallyd.url, *options, file("a.log", "\n".join(lines)))
    assert done.returncode == 0
    if said:
        assert said in done.stderr
        times = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)) for at in (first, last)]
        assert "the page views are from {} to {}".format(*times) in done.stderr
    else:
        assert "older than" not in done.stderr


# Real logs


def test_sample_log_against_a_naive_reading(tallyd, http, site):
    if not SAMPLE.exists():
        pytest.skip(f"{SAMPLE.relative_to(ROOT)} is missing")
    model, kinds = Model(), {"malformed": 0, "other_method": 0}
    for text in access_log.lines(SAMPLE):
        event = access_log.parse(text)
        if isinstance(event, str):
            kinds[event] += 1
        else:
            model.add({"site": site, **event})
    summary, _ = imported(tallyd, site, SAMPLE, "--all")
    assert summary["events accepted"] == len(model.events) > 0
    assert (summary["malformed"], summary["other methods"]) == (kinds["malformed"], kinds["other_method"])
    begin, end = min(e.at_s for e in model.events) // 60 * 60, max(e.at_s for e in model.events) // 60 * 60 + 60
    step = (end - begin) // 60 // 7 * 60 or 60
    estimates = Estimates()
    for from_s in range(begin, end, step):
        for to_s in (from_s + step, end):
            expected = model.counts(site, from_s, to_s)
            for metric in METRICS:
                got = http.count(metric, site=site, from_=from_s, to=to_s)
                if metric in ("uv", "ips"):
                    estimates.add(f"{metric} {from_s} {to_s}", got, expected[metric])
                else:
                    assert got == expected[metric], f"{metric} {rfc3339(from_s)}..{rfc3339(to_s)}"
    estimates.check()


@pytest.fixture(scope="module")
def real(tallyd):
    """Import a real log once: real(name) -> (its truth, its site)."""
    done = {}

    def load(name):
        log, truth = access_log.real(name)
        if name not in done:
            site = name.replace("_", "-").lower()
            done[name] = (json.loads(truth.read_text()), site, *imported(tallyd, site, log, "--all"))
            tallyd.client().await_counted(site)
        return done[name]

    return load


@pytest.mark.parametrize("name, accepted, malformed, others", [(ELASTIC, 9998, 1, 1), (SRHEGDE, 105_172, 2, 3)])
def test_real_log_is_read_line_by_line(real, http, name, accepted, malformed, others):
    truth, site, summary, said = real(name)
    assert truth["windows"][0]["site"]["pv"] == accepted
    assert summary["events accepted"] == accepted, said
    assert (summary["malformed"], summary["other methods"], summary["rejected"]) == (malformed, others, 0)
    assert whole(http, "pv", site) == accepted
    assert summary.get("in doubt", 0) == 0


def assert_equal_or_close(http, estimates, site, window, page, truth, metrics):
    spliced = page == SPLICED["page"] and window["from"] <= SPLICED["at"] < window["to"]
    for metric in metrics:
        got = http.count(metric, site=site, page=page, from_=window["from"], to=window["to"])
        expected = truth[METRICS[metric]]
        where = f"{metric} {page} {window['from']}..{window['to']}"
        if metric in ("uv", "ips"):
            estimates.add(f"{metric} {page}", got, expected, where)
        else:
            assert got == expected or (spliced and got == expected - 1), where


@pytest.mark.parametrize("name", [ELASTIC, SRHEGDE])
def test_real_log_in_all_windows(real, http, name):
    """Visits are comparable for the log in time order only, and for the whole site."""
    truth, site, *_ = real(name)
    estimates = Estimates()
    site_metrics = METRICS if name == SRHEGDE else ("pv", "uv", "ips")
    for window in truth["windows"]:
        assert_equal_or_close(http, estimates, site, window, None, window["site"], site_metrics)
        for page, numbers in window["pages"].items():
            assert_equal_or_close(http, estimates, site, window, page, numbers, ("pv", "uv", "ips"))
    estimates.check()


@pytest.mark.parametrize("name", [ELASTIC, SRHEGDE])
def test_real_log_day_by_day(real, http, name, chance):
    truth, site, *_ = real(name)
    estimates = Estimates()
    days = sorted(set(truth["daily"]) - set(SPLICED["days"]))
    for day in chance.sample(days, min(len(days), 150)):
        numbers = truth["daily"][day]
        window = {"from": day, "to": rfc3339(epoch(day) + 86400)}
        daily = {"pv": numbers["pv"], "uv": numbers["dau"], "unique_ips": numbers["unique_ips"], "visits": numbers["visits"]}
        assert_equal_or_close(http, estimates, site, window, None, daily,
                              METRICS if name == SRHEGDE else ("pv", "uv", "ips"))
    estimates.check()


@pytest.mark.parametrize("name", [ELASTIC, SRHEGDE])
def test_real_log_minute_by_minute(real, http, name):
    """Each minute of the busiest hour."""
    truth, site, *_ = real(name)
    begin = epoch(truth["busiest_hour"]["from"])
    for i, (pv, uv) in enumerate(truth["busiest_hour"]["minutes_pv_uv"]):
        window = {"from_": begin + i * 60, "to": begin + i * 60 + 60}
        assert http.count("pv", site=site, **window) == pv
        assert abs(http.count("uv", site=site, **window) - uv) <= (2 if uv > 12 else 1 if uv > 3 else 0)
