"""Real trackers in a real browser: tally.js, and Plausible's npm packages as they are."""

import http.server
import json
import os
import shutil
import subprocess
import threading

import pytest

from lib.browser import Browser, need_browser
from lib.process import ROOT
from lib.waiting import wait_until

NPM = ROOT / "build/npm-trackers"
PACKAGES = {"plausible-tracker": "0.3.9", "@plausible-analytics/tracker": "0.4.6"}


@pytest.fixture(scope="module")
def browser():
    need_browser()
    window = Browser()
    yield window
    window.close()


@pytest.fixture(scope="module")
def packages():
    """Directories of the npm packages, fetched once."""
    wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
    if not all((NPM / "node_modules" / name / "package.json").exists() for name in PACKAGES):
        if shutil.which("npm") is None:
            pytest.skip("npm is missing")
        NPM.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--prefix", NPM, "--ignore-scripts", "--no-audit", "--no-fund", *wanted],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "npm_config_fetch_retries": "0"})
        if done.returncode != 0:
            pytest.skip("npm could not fetch the trackers")
    return NPM / "node_modules"


class Pages:
    """Serves {path: (type, text)} to the browser; its own page at every other path."""

    def __init__(self, files, page):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, text = files.get(self.path, ("text/html; charset=utf-8", page))
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def pages(cleanup):
    def serve(files, page):
        server = Pages(files, page)
        cleanup.append(server.close)
        return f"http://www.test:{server.port}"

    return serve


def views(http, site):
    """{page: page views}, of pages that a test asks for."""
    return lambda *paths: [http.count("pv", site=site, page=path, from_="now-1h") for path in paths]


def see(http, site, expected):
    """All of {page: views} and nothing else is counted, for one visitor."""
    count = views(http, site)
    wait_until(lambda: count(*expected) == list(expected.values()), f"{expected} is counted, not {count(*expected)}")
    assert http.count("pv", site=site, from_="now-1h") == sum(expected.values())
    assert http.count("uv", site=site, from_="now-1h") == 1


def test_tally_js(browser, pages, tallyd, http, site):
    origin = pages({}, f'<!doctype html><script defer src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"></script>')
    browser.open(origin + "/a?x=1#y")
    see(http, site, {"/a": 1})
    browser.run("history.pushState({}, '', '/b'); history.replaceState({}, '', '/b?q=1'); location.hash = 'z'")
    see(http, site, {"/a": 1, "/b": 1})
    browser.run("history.replaceState({}, '', '/c')")
    see(http, site, {"/a": 1, "/b": 1, "/c": 1})
    browser.run("history.go(-2)")  # past the hash
    wait_until(lambda: browser.run("return location.pathname") != "/c", "it went back")
    path = browser.run("return location.pathname")
    see(http, site, {"/a": 1, "/b": 1, "/c": 1, path: {"/a": 1, "/b": 1}[path] + 1})


def test_tally_js_tells_once_where_a_visitor_came_from(browser, pages, tallyd, http, site):
    """A change of the path is a step within the site, though document.referrer stays what it was."""
    origin = pages({}, f'<!doctype html><script defer src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"></script>')
    browser.open(pages({}, f'<!doctype html><a href="{origin}/a">to it</a>').replace("www.test", "from.test") + "/")
    browser.run("document.querySelector('a').click()")
    see(http, site, {"/a": 1})
    assert browser.run("return document.referrer").startswith("http://from.test")
    browser.run("history.pushState({}, '', '/b')")
    see(http, site, {"/a": 1, "/b": 1})
    rows = http.question("/breakdown", site=site, by="source", from_="now-1h")["rows"]
    assert {row["value"]: row["pv"] for row in rows} == {"from.test": 1, "(none)": 1}


def test_tally_js_takes_the_host_for_the_site(browser, pages, tallyd, http):
    origin = pages({}, f'<!doctype html><script src="http://tally.test:{tallyd.port}/tally.js"></script>')
    browser.open(origin + "/%C3%A4")
    see(http, "www.test", {"/%C3%A4": 1})


def test_tally_js_is_silent_in_the_console(browser, pages, start_tallyd, redis, site):
    """With the page's origin allowed the browser has nothing to complain about."""
    tallyd = start_tallyd("--cors-origins", "*", redis=redis)
    origin = pages({}, f'<!doctype html><script defer src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"></script>')
    browser.complaints()
    browser.open(origin + "/")
    see(tallyd.client(), site, {"/": 1})
    assert browser.complaints() == []


def test_tally_js_respects_who_asks_not_to_be_tracked(browser, pages, start_tallyd, redis, site):
    tallyd = start_tallyd("--respect-dnt", redis=redis)
    say = "Object.defineProperty(Navigator.prototype, 'globalPrivacyControl', {get: () => location.pathname === '/no'})"
    origin = pages({}, f'<!doctype html><script>{say}</script>'
                       f'<script defer src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"></script>')
    browser.open(origin + "/no")
    browser.open(origin + "/yes")
    see(tallyd.client(), site, {"/yes": 1, "/no": 0})


def quiet(browser):
    """Nothing was put into the queue of beacons, and no request was made by fetch()."""
    return browser.run("return performance.getEntriesByType('resource').filter(e => e.name.endsWith('/api/event')).length") == 0


def test_tally_js_leaves_out_who_has_the_mark(browser, pages, tallyd, http, site):
    origin = pages({}, f'<!doctype html><script src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"></script>')
    for path in ("/a#tally-ignore", "/b", "/b#tally-ignore"):
        browser.open(origin + path)
        browser.run("history.pushState({}, '', '/c')")
        assert browser.run("return 'tally_ignore' in localStorage") and quiet(browser)
    browser.open(origin + "/d#tally-count")
    browser.open(origin + "/e")
    see(http, site, {"/d": 1, "/e": 1, "/a": 0, "/b": 0, "/c": 0})


def test_tally_js_is_silent_on_localhost_unless_asked(browser, pages, tallyd, http, site):
    def origin(more):
        page = f'<!doctype html><script src="http://tally.test:{tallyd.port}/tally.js" data-site="{site}"{more}></script>'
        return pages({}, page).replace("www.test", "{}").format

    for host in ("localhost", "127.0.0.1", "sub.localhost"):
        browser.open(origin("")(host) + "/no")
        browser.run("history.pushState({}, '', '/no-2')")
        assert quiet(browser)
    browser.open(origin(" data-local")("localhost") + "/yes")
    see(http, site, {"/yes": 1, "/no": 0, "/no-2": 0})


def test_the_pixel_is_shown(browser, pages, tallyd, http, site):
    origin = pages({}, f'<!doctype html><img src="http://tally.test:{tallyd.port}/pixel.gif?page=/p&site={site}">'
                       f'<img src="http://tally.test:{tallyd.port}/pixel.gif?site={site}">')
    browser.open(origin + "/")
    see(http, site, {"/p": 1})
    assert browser.run("return [...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight])") == [[True, 1, 1]] * 2


def test_plausible_tracker(browser, packages, pages, tallyd, http, site):
    """npm plausible-tracker: its own modules, loaded by an import map's worth of paths."""
    build = packages / "plausible-tracker/build/module"
    files = {}
    for name in ("index", "lib/tracker", "lib/request"):
        files[f"/m/{name}.js"] = files[f"/m/{name}"] = ("text/javascript", (build / f"{name}.js").read_text())
    files["/m/"] = files["/m/index.js"]
    page = f"""<!doctype html><script type="module">
        import Plausible from "/m/index.js";
        const p = Plausible({json.dumps({"domain": site, "apiHost": f"http://tally.test:{tallyd.port}"})});
        p.enableAutoPageviews();
        window.p = p;
    </script>"""
    browser.open(pages(files, page) + "/a")
    see(http, site, {"/a": 1})
    browser.run("history.pushState({}, '', '/b')")
    see(http, site, {"/a": 1, "/b": 1})
    assert browser.run("return new Promise(done => p.trackEvent('Signup', {callback: () => done('called'), props: {plan: 'x'}}))") == "called"
    wait_until(lambda: http.count("pv", site=site, event="Signup", from_="now-1h") == 1, "the custom event came")
    see(http, site, {"/a": 1, "/b": 1})


def test_plausible_analytics_tracker(browser, packages, pages, start_tallyd, redis, site):
    """npm @plausible-analytics/tracker: its fetch() reads the answer, so the origin must be allowed."""
    tallyd = start_tallyd("--cors-origins", "*", redis=redis)
    http = tallyd.client()
    options = {"domain": site, "endpoint": f"http://tally.test:{tallyd.port}/api/event", "outboundLinks": True, "fileDownloads": True,
               "formSubmissions": True}
    page = f"""<!doctype html><script>window.__plausible = true /* it looks for drivers of browsers */</script>
    <script type="module">
        import {{ init, track }} from "/t.js";
        init({json.dumps(options)});
        window.t = track;
    </script>
    <a id="out" target="_blank" href="http://other.test:1/">out</a> <a id="file" download href="/report.pdf">file</a>
    <iframe name="nowhere"></iframe><form target="nowhere" action="http://other.test:1/form"><button id="send">send</button></form>"""
    source = (packages / "@plausible-analytics/tracker/plausible.js").read_text()
    browser.complaints()
    browser.open(pages({"/t.js": ("text/javascript", source)}, page) + "/a?b=c")
    see(http, site, {"/a": 1})
    browser.run("history.pushState({}, '', '/b')")
    see(http, site, {"/a": 1, "/b": 1})
    ask = "return new Promise(done => t('%s', {callback: done, props: {plan: 'x'}}))"
    assert browser.run(ask % "Signup") == {"status": 202}
    for control in ("out", "file", "send"):
        browser.run(f"document.getElementById('{control}').click()")

    def events():
        return {row["value"]: row["pv"] for row in http.question("/breakdown", site=site, by="event", from_="now-1h")["rows"]}

    expected = {"Signup": 1, "Outbound Link: Click": 1, "File Download": 1, "Form: Submission": 1}
    wait_until(lambda: events() == expected, f"{expected} is counted, not {events()}")
    assert browser.run(ask % "pageview") == {"status": 202}
    see(http, site, {"/a": 1, "/b": 2})
    assert [text for text in browser.complaints() if "report.pdf" not in text] == []  # of the download: it is not encrypted
