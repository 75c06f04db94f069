"""`tallyd query`: questions on the command line."""

import csv
import io
import json
import pathlib

import pytest

from lib.process import Tallyd, run
from lib.tokens import token_line


def asked(tallyd, *args, status=0, url=True, env=None):
    done = run("query", *args, *(("--url", tallyd.url) if url else ()), env=env)
    assert done.returncode == status, f"exit {done.returncode}: {done.stdout}{done.stderr}"
    return done


@pytest.fixture
def filled(http, site):
    http.accept([{"site": site, "page": page, "user": user, "ip": "192.0.2.1"}
                 for page, users in (("/a", range(12)), ('/b,"c"', range(5)), ("/ä", range(100, 103))) for user in users])
    return site


def columns(line):
    return line.split()


@pytest.mark.parametrize("metric, figure", [("uv", 15), ("pv", 20), ("ips", 1), ("visits", 15)])
def test_one_figure(tallyd, http, filled, metric, figure):
    head, rule, row = asked(tallyd, metric, "--site", filled).stdout.splitlines()
    estimate = metric in ("uv", "ips")
    if estimate:  # two visitors in one register of 16,384 would be one: the service's figure, whichever that is
        truth, figure = figure, http.count(metric, site=filled)
        assert truth - 2 <= figure <= truth + 2
    assert columns(head) == ["from", "to", metric, *(["low", "high"] if estimate else [])]
    assert set(rule) == {"-", " "} and len(rule) == max(len(head), len(row))
    assert columns(row)[2] == str(figure)
    assert json.loads(asked(tallyd, metric, "--site", filled, "--json").stdout)[metric] == figure
    rows = list(csv.reader(io.StringIO(asked(tallyd, metric, f"--site={filled}", "--csv").stdout)))
    assert rows[0] == columns(head) and rows[1][2] == str(figure) and len(rows) == 2


def test_pages_in_columns(tallyd, http, filled):
    uv = {row["page"]: str(row["uv"]) for row in http.question("/pages", site=filled)["pages"]}
    lines = asked(tallyd, "pages", "--site", filled).stdout.splitlines()
    assert lines == ["page    pv  uv", "------  --  --", f"/a      12  {uv['/a']:>2}", f"""/b,"c"   5  {uv['/b,"c"']:>2}""",
                     f"/ä       3  {uv['/ä']:>2}"]
    rows = list(csv.reader(io.StringIO(asked(tallyd, "pages", "--site", filled, "--csv", "--limit", "2", "--by", "uv").stdout)))
    assert rows == [["page", "pv", "uv"], ["/a", "12", uv["/a"]], ['/b,"c"', "5", uv['/b,"c"']]]


def test_without_rows_there_are_columns(tallyd):
    assert asked(tallyd, "pages", "--site", "nobodys", "--csv").stdout == "page,pv,uv\n"
    assert asked(tallyd, "pages", "--site", "nobodys").stdout == "page  pv  uv\n----  --  --\n"


def test_options_are_the_questions_parameters(tallyd, http, filled):
    def uv(*args):
        return json.loads(asked(tallyd, "uv", "--site", filled, "--json", *args).stdout)

    assert uv("--page", "/a", "--page", "/ä")["pages"] == ["/a", "/ä"]
    assert uv("--page=/a&page=/ä")["uv"] == 0, "one page with a strange name"
    assert uv("--from", "2026-01-01", "--to=2026-02-01")["from"] == "2026-01-01T00:00:00Z"
    assert http.request("PUT", f"/pagesets/s?site={filled}", '{"pages":["/a"]}').status == 201
    assert uv("--pageset", "s")["uv"] == uv("--page", "/a")["uv"] > 9
    listing = asked(tallyd, "uv", "--site", filled, "--explain", "--from", "now-2m").stdout
    assert "\n\nlevel" in listing and f":uv:{filled}:m" in listing


def test_series_and_days(tallyd, filled):
    rows = list(csv.reader(io.StringIO(asked(tallyd, "dau", "--site", filled, "--from", "now-2d", "--csv").stdout)))
    assert rows[0] == ["date", "users"] and [r[1] for r in rows[1:]] == ["0", "0", "15"]
    assert columns(asked(tallyd, "dau", "--site", filled).stdout.splitlines()[0]) == ["date", "users"]


def test_users_and_their_days(tallyd, http, site):
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "actions": ["view", "cart"][:1 + i % 2]} for i in range(8)])
    today = http.question("/dau", site=site)["date"]

    def rows(*args):
        return list(csv.reader(io.StringIO(asked(tallyd, *args, "--site", site, "--csv").stdout)))

    assert rows("funnel", "--step", "view", "--step=cart") == [["action", "users", "rate", "step_rate"], ["view", "8", "1", "1"], ["cart", "4", "0.5", "0.5"]]
    assert rows("frequency", "--from", "now-1d", "--action", "cart") == [["n", "users"], ["1", "4"], ["2", "0"]]
    assert rows("retention", "--cohort", "2026-11-01", "--days", "1", "--return", "view", "--new-within", "9d", "--period", "week") == [
        ["cohort", "size", "offset", "users", "rate"], ["2026-10-26", "0", "1", "0", "0"]]
    assert rows("retention", "--cohort", today, "--cohorts=3") == [["cohort", "size"], [today, "8"]]
    assert rows("dau", "--new-within=30d") == [["date", "users", "new"], [today, "8", "8"]]
    assert "--new-within: must be a number of days" in asked(tallyd, "dau", "--new-within", "x", status=1).stderr


def test_named_events(tallyd, http, site):
    http.accept([{"site": site, "event": name, "visitor": f"v{i}"} for name, n in (("signup", 9), ("a, b", 3)) for i in range(n)])
    http.accept([{"site": site, "page": "/p", "visitor": f"v{i}"} for i in range(4)])
    uv = {row["value"]: str(row["uv"]) for row in http.question("/breakdown", site=site, by="event")["rows"]}
    head, _, first, second = asked(tallyd, "events", "--site", site).stdout.splitlines()
    assert head.split() == ["value", "pv", "uv", "low", "high", "at_most"]
    assert first.split()[:3] == ["signup", "9", uv["signup"]] and second.split()[:4] == ["a,", "b", "3", uv["a, b"]]

    def rows(*args):
        return list(csv.reader(io.StringIO(asked(tallyd, *args, "--site", site, "--csv").stdout)))

    assert [row[:3] for row in rows("events", "--metric=uv", "--limit", "1")] == [["value", "pv", "uv"], ["signup", "9", uv["signup"]]]
    names, *points = rows("events", "--step", "1h", "--from", "now-2h/h")
    assert names == ["value", "from", "to", "pv"] and [row[3] for row in points if row[0] == "signup"] == ["0", "0", "9"]
    assert rows("pv", "--event", "signup", "--event", "a, b")[1][2] == "12"
    table = asked(tallyd, "overlap", "--event", "signup", "--page", "/p", "--site", site).stdout.splitlines()
    assert [line.split()[0] for line in table[2:6]] == ["signup", "/p", "union", "intersection"]
    assert rows("events", "--from", "now-2d", "--to", "now-1d") == [["value", "pv", "uv", "low", "high", "at_most"]]


def test_overlap_of_two_windows(tallyd, filled):
    done = asked(tallyd, "overlap", "--site", filled, "--from2", "now-2d", "--to2", "now-1d")
    assert [line.split()[0] for line in done.stdout.splitlines()[2:8]] == ["a", "b", "union", "intersection", "new", "jaccard"], done.stdout


def test_overlap_and_sites(tallyd, filled):
    done = asked(tallyd, "overlap", "--site", filled, "--page", "/a", "--page", "/ä")
    table = [line.rsplit(None, 3) for line in done.stdout.splitlines()]
    assert table[0] == ["of", "uv", "low", "high"] and [row[0] for row in table[2:]] == ["/a", "/ä", "union", "intersection", "jaccard"]
    assert "may as well be nothing" in done.stderr
    assert filled in asked(tallyd, "sites", "--csv").stdout.splitlines()


def test_environment(tallyd, filled):
    env = {"TALLYD_URL": tallyd.url + "/", "TALLYD_SITE": filled, "TALLYD_TOKEN": ""}
    assert json.loads(asked(tallyd, "pv", "--json", url=False, env=env).stdout)["site"] == filled
    assert json.loads(asked(tallyd, "pv", "--json", "--site", "other", url=False, env=env).stdout)["site"] == "other"
    asked(tallyd, "sites", url=False, env=env)
    assert "TALLYD_URL must be" in asked(tallyd, "pv", status=2, url=False, env={"TALLYD_URL": "ftp://x"}).stderr
    assert "TALLYD_TOKEN must be" in asked(tallyd, "pv", status=2, env={"TALLYD_TOKEN": "a b"}).stderr


def test_tokens(redis, filled):
    daemon = Tallyd("--tokens", "tokens", redis=redis, name="guarded")
    daemon.directory.mkdir(exist_ok=True)
    (daemon.directory / "tokens").write_text(token_line("secret", "read reader"))
    try:
        daemon.start(False)
        daemon.wait_ready_line()
        for args, env in ((("--token", "secret"), None), ((), {"TALLYD_TOKEN": "secret"})):
            assert asked(daemon, "pages", "--site", filled, *args, env=env).stdout.startswith("page ")
        for args in ((), ("--token", "wrong")):
            assert "the server answers 401: " in asked(daemon, "pv", *args, status=1).stderr
    finally:
        daemon.stop()


@pytest.mark.parametrize("args, says", [
    ((), "a question is missing"), (("uvs",), "unknown question uvs"), (("uv", "pv"), "one question at a time"), (("uv", "--form", "x"), "unknown option --form"),
    (("uv", "--from"), "--from needs a value"), (("uv", "--json", "--csv"), "--csv must be alone"), (("uv", "--json=1"), "--json takes no value"),
    (("uv", "--url", "localhost:8080"), "--url must be"), (("uv", "--url", "http://u:p@x"), "--url must be"), (("uv", "--token", "a b"), "--token must be")])
def test_wrong_command_lines(tallyd, args, says):
    done = asked(tallyd, *args, status=2, url=False)
    assert says in done.stderr and done.stdout == ""


def test_help(tallyd):
    done = asked(tallyd, "uv", "--help", url=False)
    assert "usage: tallyd query" in done.stdout and "--step" in done.stdout and done.stderr == ""


def test_refusals(tallyd, filled):
    done = asked(tallyd, "uv", "--from", "now", "--to", "now-1h", status=1)
    assert done.stderr == "tallyd query: --to: must be later than from\n" and done.stdout == ""
    assert "--pageset: site default has no page set no" in asked(tallyd, "pv", "--pageset", "no", status=1).stderr
    assert "--limit: unknown parameter; this path takes site, page, " in asked(tallyd, "uv", "--limit", "3", status=1).stderr
    done = asked(tallyd, "uv", "--url", "http://127.0.0.1:1", "--json", status=1, url=False)
    assert "http://127.0.0.1:1: " in done.stderr and done.stdout == ""
    done = asked(tallyd, "uv", "--url", f"http://127.0.0.1:{tallyd.port}/uv", status=1, url=False)
    assert done.stderr == "tallyd query: the server answers 404 (is --url right?): no such path; GET /openapi.yaml lists all of them\n"


def test_a_dimension_that_is_not_counted_is_told(tallyd, filled):
    done = asked(tallyd, "breakdown", "--by", "prop:colour", "--site", filled)
    assert columns(done.stdout.splitlines()[0])[0] == "value"
    assert done.stderr == "tallyd query: note: the server does not count this: see its options dimensions and props\n"
    assert asked(tallyd, "breakdown", "--by", "os", "--site", filled).stderr == ""


def test_only_a_client_loads_libcurl(tallyd, tmp_path):
    """The server would hold 22 libraries for nothing; a client without its own says which one it misses."""
    assert "libcurl" not in pathlib.Path(f"/proc/{tallyd.pid}/maps").read_text()
    (tmp_path / "libcurl.so.4").write_bytes(b"")
    done = asked(tallyd, "uv", env={"LD_LIBRARY_PATH": str(tmp_path)}, status=127)
    assert done.stderr == f"tallyd: {tmp_path}/libcurl.so.4: file too short\n" and done.stdout == ""
