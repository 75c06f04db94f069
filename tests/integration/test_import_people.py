"""`tallyd import` counts people: what is left out, class by class, is what a count made here leaves out."""

import collections
import json
import re

import pytest

from lib import access_log
from lib.process import run
from lib.truth import Model
from lib.world import FOREVER

TALLYD_ARGS = FOREVER
CLASSES = ("malformed", "method", "robot", "error", "redirect", "file")
PERSON = "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"
ROBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def line(path="/", status=200, method="GET", ua=PERSON, ip="192.0.2.1"):
    return f'{ip} - - [10/Mar/2026:10:56:20 +0000] "{method} {path} HTTP/1.1" {status} 5 "-" "{ua}"\n'


def imported(tallyd, site, path, *options):
    """The summary as --json has it."""
    done = run("import", "--site", site, "--url", tallyd.url, *FOREVER, "--json", *options, path, timeout_s=300)
    assert done.returncode == 0, done
    assert done.stdout.count("\n") == 1, done.stdout
    return json.loads(done.stdout)


def pages(http, site):
    found = http.question("/pages", site=site, from_="2026-03-10", to="2026-03-11", limit=1000)
    return {row["page"]: row["pv"] for row in found["pages"]}


@pytest.fixture
def log(tmp_path):
    def write(*lines):
        path = tmp_path / "access.log"
        path.write_text("".join(lines))
        return path
    return write


# A line of each class and of several, with a page that tells which.
MIXED = (line("/page"), line("/form", method="POST"), line("/again", 304), line("/head", method="HEAD"),
         line("/put", method="PUT"), line("/robot", ua=ROBOT), line("/robots.txt", 404, ua=ROBOT), line("/gone", 404),
         line("/broken.css", 500), line("/moved", 301), line("/a.CSS"), line("/b.woff2?v=1"), line("/admin/x"), "nonsense\n")


@pytest.mark.parametrize("options, counted, left_out", [
    ((), "/page /form /again /admin/x", {"malformed": 1, "method": 2, "robot": 2, "error": 2, "redirect": 1, "file": 2}),
    (("--all",), "/page /form /again /admin/x /head /robot /robots.txt /gone /broken.css /moved /a.CSS /b.woff2",
     {"malformed": 1, "method": 1}),
    (("--include", "robot"), "/page /form /again /admin/x /robot /robots.txt",
     {"malformed": 1, "method": 2, "error": 2, "redirect": 1, "file": 2}),
    (("--include=error", "--include", "file"), "/page /form /again /admin/x /gone /broken.css /a.CSS /b.woff2",
     {"malformed": 1, "method": 2, "robot": 2, "redirect": 1}),
    (("--include", "method"), "/page /form /again /admin/x /head /put",
     {"malformed": 1, "robot": 2, "error": 2, "redirect": 1, "file": 2}),
    (("--all", "--exclude", "robot"), "/page /form /again /admin/x /head /gone /broken.css /moved /a.CSS /b.woff2",
     {"malformed": 1, "method": 1, "robot": 2}),
    (("--all", "--exclude", "file", "--exclude=error"), "/page /form /again /admin/x /head /robot /moved",
     {"malformed": 1, "method": 1, "error": 3, "file": 2}),
    (("--exclude", "/admin"), "/page /form /again",
     {"malformed": 1, "method": 2, "robot": 2, "error": 2, "redirect": 1, "file": 2, "path": 1}),
    (("--only", "/page", "--only", "/adm"), "/page /admin/x",
     {"malformed": 1, "method": 2, "robot": 2, "error": 2, "redirect": 1, "file": 2, "path": 2}),
])
def test_classes_and_options(tallyd, http, site, log, options, counted, left_out):
    summary = imported(tallyd, site, log(*MIXED), *options)
    classes = dict.fromkeys(CLASSES, 0) | left_out
    assert summary == {"lines": len(MIXED), "counted": len(counted.split()), "left_out": classes}
    assert pages(http, site) == dict.fromkeys(counted.split(), 1)


def test_a_sentence_says_what_was_left_out(tallyd, site, log):
    done = run("import", "--site", site, "--url", tallyd.url, *FOREVER, log(*MIXED))
    assert done.stdout.splitlines()[-1] == (
        "4 of 14 lines are page views; left out: 1 malformed, 2 method, 2 robot, 2 error, 1 redirect, 2 file "
        "(--include CLASS counts one, --all all that are GET, HEAD or POST)"), done.stdout
    done = run("import", "--site", site, "--url", tallyd.url, *FOREVER, log(line()))
    assert done.stdout.splitlines()[-1] == "1 of 1 lines are page views"


def test_what_was_counted_before_is_no_class(tallyd, site, log):
    path = log(*MIXED)
    assert imported(tallyd, site, path)["counted"] == 4
    again = imported(tallyd, site, path)
    assert again["counted"] == 0 and again["counted_before"] == 4 and again["left_out"]["robot"] == 2


def test_events_are_left_as_they_are(tallyd, http, site, log):
    """Whoever wrote NDJSON has decided what counts."""
    events = [{"page": page, "ua": ROBOT, "ts": "2026-03-10T10:56:20Z"} for page in ("/a", "/b.css", "/admin")]
    path = log(*(json.dumps(event) + "\n" for event in events), "\n", "nonsense\n")
    done = run("import", "--site", site, "--url", tallyd.url, *FOREVER, "--json", "--exclude", "/admin", path)
    summary = json.loads(done.stdout)
    assert summary["counted"] == 3 and summary["blank"] == 1 and summary["left_out"]["malformed"] == 1
    assert pages(http, site) == {"/a": 1, "/b.css": 1, "/admin": 1}
    assert "the lines are events, so no class and no path was left out" in done.stderr


def test_what_the_server_drops_is_said(start_tallyd, redis, site, log):
    """The server's answer says that it dropped events: the import neither waits for more nor is in doubt."""
    other = start_tallyd("--bots", "drop", "--ignore-ip", "203.0.113.0/24", *TALLYD_ARGS, redis=redis)
    path = log(line("/office", ip="203.0.113.9"), line("/person"), line("/robot", ua=ROBOT))
    none = dict.fromkeys(CLASSES, 0)
    assert imported(other, site, path) == {"lines": 3, "counted": 1, "left_out": none | {"robot": 1}, "dropped": 1}
    assert pages(other.client(), site) == {"/person": 1}
    assert imported(other, f"{site}-all", path, "--all") == {"lines": 3, "counted": 2, "left_out": none, "dropped": 1}
    assert pages(other.client(), f"{site}-all") == {"/person": 1, "/robot": 1}
    events = log(*(json.dumps({"page": "/n", "ua": ua, "ts": "2026-03-10T10:56:20Z"}) + "\n" for ua in (ROBOT, PERSON)))
    assert imported(other, f"{site}-nd", events) == {"lines": 2, "counted": 1, "left_out": none, "dropped": 1}
    done = run("import", "--site", f"{site}-text", "--url", other.url, *FOREVER, log('{"page":"","ts":1700000000}\n', *events.read_text().splitlines(True)))
    assert done.returncode == 1 and re.search(r"^dropped +1$", done.stdout, re.M), done
    assert done.stdout.splitlines()[-1] == (
        "1 of 3 lines are page views; dropped by the server: 1 (its --bots or ignore-ip); rejected: 1")
    done = run("import", "--site", f"{site}-log", "--url", other.url, *FOREVER,
               log(line("/office", ip="203.0.113.9"), line("/person"), line("/robot", ua=ROBOT)))
    assert done.stdout.splitlines()[-1] == (
        "1 of 3 lines are page views; left out: 1 robot (--include CLASS counts one, --all all that are GET, HEAD or POST)"
        "; dropped by the server: 1 (its --bots or ignore-ip)")


@pytest.mark.parametrize("options, told", [
    (("--include", "bots"), "--include must be method, robot, error, redirect or file"),
    (("--exclude", "admin"), "--exclude must be method, robot, error, redirect or file, or /PREFIX"),
    (("--only", "admin"), "--only must be /PREFIX"),
])
def test_wrong_options(site, log, options, told):
    done = run("import", "--site", site, *options, log(line()))
    assert done.returncode == 2 and told in done.stderr and done.stdout == ""


# Real logs


def robots_by_pixel(http, site, agents):
    """The agents of which the server's pixel counts no view: the same list, asked by the way of a browser."""
    people = set()
    for first in range(0, len(agents), 500):
        some, name = agents[first:first + 500], f"{site[:50]}-{first}"
        for i, agent in enumerate(some):
            http.request("GET", f"/pixel.gif?site={name}&page=/{i}", headers={"User-Agent": agent})
        answer = http.question("/pages", site=name, from_="now-1h", to="now", limit=1000)
        people |= {some[int(row["page"][1:])] for row in answer["pages"]}
    return set(agents) - people


@pytest.mark.parametrize("name", ["elastic_apache_logs", "srhegde_access_2005-2018"])
def test_real_log_by_default(tallyd, http, site, log, name):
    """People in two real logs, against a count made here; only the robots are asked of the server.  (A line that is two
    lines spliced together, of which test_import.py tells, can be read in two ways and is left away.)"""
    whole_log, _ = access_log.real(name)
    lines = [text for text in access_log.lines(whole_log) if len(re.findall(r" \[\d\d/\w{3}/\d{4}:", text)) == 1]
    path = log(*(text + "\n" for text in lines))
    agents = sorted({found["ua"] for found in map(access_log.request, lines) if found})
    robots = robots_by_pixel(http, site, agents)
    assert len(agents) * 0.05 < len(robots) < len(agents) * 0.6
    left_out, model = collections.Counter(), Model()
    for text in lines:
        class_, event = access_log.class_of(text, robots.__contains__)
        if class_:
            left_out[class_] += 1
        else:
            model.add({"site": site, **event})
    summary = imported(tallyd, site, path)
    assert summary["left_out"] == {class_: left_out[class_] for class_ in CLASSES}
    assert summary["lines"] == len(lines) and summary["counted"] == len(model.events) < len(lines) / 4
    whole = model.counts(site, 0, 2_000_000_000)
    for metric in ("pv", "visits") if name.startswith("srh") else ("pv",):
        assert http.count(metric, site=site, from_="1990-01-01", to="now") == whole[metric], metric
    top = collections.Counter(event.page for event in model.events)
    found = http.question("/pages", site=site, from_="1990-01-01", to="now", limit=20)["pages"]
    assert [row["pv"] for row in found] == [n for _, n in top.most_common(20)]


def test_progress_is_of_lines_that_count(tallyd, site, log):
    """A class that is left out is never sent: the summary's events are those of the sentence."""
    path = log(*([line("/x.png")] * 3000 + [line()] * 5))
    done = run("import", "--site", site, "--url", tallyd.url, *FOREVER, path)
    assert re.search(r"^events accepted 5$", done.stdout, re.M)
    assert "5 of 3005 lines are page views; left out: 3000 file (" in done.stdout
