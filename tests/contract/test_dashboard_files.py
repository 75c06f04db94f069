"""The files of the dashboard, as openapi.yaml has them: small, for everybody, from nowhere else."""

import re

import pytest

from description import Description
from lib.process import ROOT, Tallyd

API = Description((ROOT / "openapi.yaml").read_text(encoding="utf-8"))
OPERATIONS = {o.id: o for o in API.operations if "Dashboard" in o.tags}
PAGE, OPS, FILE = OPERATIONS["getDashboard"], OPERATIONS["getOperatorsPage"], OPERATIONS["getDashboardFile"]
PAGES = {"/": "index.html", "/ops": "ops.html"}
NAMES = next(p["schema"]["enum"] for p in FILE.parameters if p["name"] == "file")
TARGETS = [(PAGE, "/"), (OPS, "/ops")] + [(FILE, f"/web/{name}") for name in NAMES]
each = pytest.mark.parametrize("operation, target", TARGETS, ids=[t for _, t in TARGETS])


@each
def test_a_file(http, operation, target):
    response = API.check(operation, http.get(target))
    assert response.status == 200
    source = ROOT / "handlers/web" / PAGES.get(target, target.removeprefix("/web/"))
    if source.suffix in (".svg", ".txt"):
        assert response.body == source.read_bytes()
    policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'" and policy["script-src"] == "'self'" and policy["style-src"] == "'self'"
    # a query is the page's own
    assert API.check(operation, http.get(target + "?range=7d&anything=%zz")).body == response.body


@each
def test_it_is_sent_once(http, operation, target):
    tag = http.get(target).headers["ETag"]
    for known in (tag, "W/" + tag, f'"other", {tag}', "*"):
        assert API.check(operation, http.request("GET", target, headers={"If-None-Match": known})).status == 304, known
    assert API.check(operation, http.request("GET", target, headers={"If-None-Match": '"other"'})).status == 200
    head = API.check(operation, http.request("HEAD", target), head=True)
    assert head.status == 200 and head.headers["ETag"] == tag


def test_etags_differ(http):
    assert len({http.get(target).headers["ETag"] for _, target in TARGETS}) == len(TARGETS)


OWN = [target for _, target in TARGETS if "chart" not in target]  # but Chart.js and its licence
SOURCES = [path for path in sorted((ROOT / "handlers/web").iterdir()) if path.suffix in (".js", ".css", ".html") and path.name != "tally.js"]


def test_all_of_it_is_small(http):
    """Beside Chart.js under 60 KiB, as it is sent without compression, both pages together."""
    sizes = {target: len(http.get(target).body) for _, target in TARGETS}
    assert sum(sizes.values()) < 300_000
    assert sum(sizes[target] for target in OWN) < 60 * 1024, sizes


def test_the_sources_are_for_readers():
    """What makes them small is the build: no long lines, no file of more than 400 lines, each script says what it is."""
    for source in SOURCES:
        lines = source.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 400 and max(map(len, lines)) <= 165, source.name
        if source.suffix == ".js":
            assert lines[0].startswith(f"// {source.name} - "), source.name
            names = re.findall(r"(?:const|let|function) (\w+)", source.read_text(encoding="utf-8"))
            assert sum(map(len, names)) / len(names) > 4, source.name


def test_it_asks_nobody_else(http):
    """No address of another host in what a browser would load, no script or style inside the page."""
    for _, target in TARGETS:
        text = http.get(target).body.decode()
        if "chart" not in target:
            assert not re.findall(r"""(?:src|href|url|import|fetch)\s*[=(]\s*["']?(?:https?:)?//[^"')\s]+""", text), target
    named = set()
    for target in PAGES:
        page = http.get(target).body.decode()
        assert not re.search(r"<style|\sstyle=|<script(?! src=)|\son\w+=", page)
        named |= set(re.findall(r'="?(web/[^">\s]+)', page))
    assert {f"web/{name}" for name in NAMES} == named


def test_a_page_has_one_script_of_its_own(http):
    """A browser finds out nothing one by one: no script imports another."""
    for page, script in (("/", "app.js"), ("/ops", "ops.js")):
        assert re.findall(r'<script src="?web/([^">\s]+)"? type="?module"?>', http.get(page).body.decode()) == [script]
        assert not re.search(r"""["'][./\w]+\.js["']""", http.get(f"/web/{script}").body.decode()), script


def test_the_licence_of_chart_js_is_there(http):
    text = http.get("/web/chart-license.txt").body.decode()
    assert "Chart.js Contributors" in text and "Permission is hereby granted" in text
    assert b"Chart.js v" in http.get("/web/chart.min.js").body[:200]


def test_other_files_are_404(http):
    for name in ("index.html", "app.js.tag", "..", "%2e%2e", "APP.JS", "app.js%00"):
        response = http.get(f"/web/{name}")
        assert response.status in (400, 404), name
        API.check(FILE, response)
    assert http.get("/web/").status == 404
    for operation, target in TARGETS[:2]:
        assert API.check(operation, http.request("POST", target)).status == 405


def test_no_token_is_needed(redis):
    daemon = Tallyd("--tokens", "tokens", "--metrics-token", redis=redis, name="closed")
    daemon.directory.mkdir(exist_ok=True)
    (daemon.directory / "tokens").write_text("0" * 64 + " read nobody\n")
    try:
        daemon.spawn(daemon.command_line())
        daemon.wait_ready_line()
        for operation, target in TARGETS:
            assert API.check(operation, daemon.client().get(target)).status == 200
        assert daemon.client().get("/pv").status == 401
    finally:
        daemon.stop()
