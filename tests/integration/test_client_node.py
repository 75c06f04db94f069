"""deploy/clients/node alone: its README's examples, the middleware, worker threads and processes, ends of a process."""

import json
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from lib.process import ROOT, free_port
from lib.sender import node
from lib.waiting import wait_until
from test_client_python import FIREFOX, QUERIES, REFERRERS, views

pytestmark = pytest.mark.skipif(node() is None, reason="node 18 is not installed (apt-get install nodejs)")

FOLDER = ROOT / "deploy/clients/node"
README = re.findall(r"^```js\n(.*?)^```$", (FOLDER / "README.md").read_text(), re.M | re.S)


@pytest.fixture
def script(directory, cleanup):
    """script(text): a program's process, in a directory where the client is installed."""
    (directory / "node_modules").mkdir(parents=True)
    (directory / "node_modules/tallyd-client").symlink_to(FOLDER)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))

    def start(text):
        (directory / "program.js").write_text(text)
        process = subprocess.Popen([node(), "program.js"], cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, text=True)
        cleanup.append(process.wait)
        cleanup.append(process.kill)
        return process

    return start


def here(text, tallyd, site, port=None):
    """An example of the README, with this test's tallyd, site and port."""
    assert "http://127.0.0.1:8080" in text and "site: 'shop'" in text
    return (text.replace("http://127.0.0.1:8080", tallyd.url).replace("site: 'shop'", f"site: '{site}'")
            .replace("listen(3000)", f"listen({port}, () => console.log('listening'))"))


def ask(url, status=200, method="GET", **headers):
    """One request to an application; its redirects are not followed."""
    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_args):
            return None

    names = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, method=method, headers=names, data=b"" if method == "POST" else None)
    try:
        urllib.request.build_opener(NoRedirect).open(request).close()
    except urllib.error.HTTPError as error:
        assert error.code == status


def test_the_quick_start(script, tallyd, http, site):
    process = script(here(README[0], tallyd, site))
    assert process.communicate(timeout=20)[0] == "" and process.returncode == 0
    assert views(http, site) == {"/pricing": 1} and http.question("/dau", site=site)["users"] == 1


def test_the_readmes_application(script, tallyd, http, site):
    port = free_port()
    process = script(here(README[1], tallyd, site, port))
    assert process.stdout.readline() == "listening\n"
    for path in ("/", "/a%20b?c=d", "/style.css"):
        ask(f"http://127.0.0.1:{port}{path}", User_Agent=FIREFOX, X_Forwarded_For="6.6.6.6, 203.0.113.9")
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=20)[0] == "" and process.returncode == 0
    assert views(http, site) == {"/": 1, "/a%20b": 1}
    assert [http.count(metric, site=site, from_="now-1h") for metric in ("uv", "ips", "visits")] == [1, 1, 1]


SERVER = """
const http = require('http');
const { Client, middleware } = require('tallyd-client');
const tally = new Client('%(url)s', { site: '%(site)s', intervalMs: 20 });
const count = middleware(tally, { user: (req) => req.headers['x-user'].trim() });
const server = http.createServer((req, res) => count(req, res, () => {
  if (req.url === '/cut') return req.socket.destroy();
  req.url = '/rewritten';  // as Express does in a router
  res.statusCode = Number(new URL(req.originalUrl, 'http://x').searchParams.get('status'));
  res.end();
}));
server.on('request', () => {});
server.prependListener('request', (req) => { req.originalUrl = req.url; });
server.listen(%(port)d, '127.0.0.1', () => console.log('listening'));
process.stdin.once('data', async () => { console.log(JSON.stringify([await tally.flush(), tally.stats()])); process.exit(); });
"""


def test_the_middleware_counts_answers_of_people(script, tallyd, http, site):
    port = free_port()
    process = script(SERVER % {"url": tallyd.url, "site": site, "port": port})
    assert process.stdout.readline() == "listening\n"
    for method, path, status, headers in (("GET", "/ok", 200, {}), ("POST", "/ok", 201, {"X_User": "u1"}), ("GET", "/ok", 304, {}),
                                          ("HEAD", "/head", 200, {}), ("PUT", "/put", 200, {}), ("GET", "/none", 404, {}),
                                          ("GET", "/moved", 302, {}), ("GET", "/broken", 500, {}), ("GET", "/x.PNG", 200, {}),
                                          ("GET", "/early", 200, {"Sec_Purpose": "prefetch;prerender"})):
        ask(f"http://127.0.0.1:{port}{path}?status={status}", status, method, **headers)
    with pytest.raises(OSError):
        ask(f"http://127.0.0.1:{port}/cut")
    flushed, stats = json.loads(process.communicate("\n", timeout=20)[0])
    assert flushed and stats["accepted"] == 3
    assert views(http, site) == {"/ok": 3} and http.question("/dau", site=site)["users"] == 1


@pytest.mark.parametrize("peer, forwarded, expected", [
    ("192.0.2.1", "6.6.6.6", "192.0.2.1"), ("10.0.0.1", "6.6.6.6, 192.0.2.1", "192.0.2.1"), ("10.0.0.1", "192.0.2.1:80,10.9.9.9", "192.0.2.1"),
    ("10.0.0.1", "[2001:db8::1]:80", "2001:db8::1"), ("::1", None, "::1"), ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"), ("", "192.0.2.1", None),
    ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"), (None, None, None),
    ("10.0.0.1", " , ,198.51.100.7,, ", "198.51.100.7"), ("10.0.0.1", "198.51.100.7:", "198.51.100.7"),
    ("fe80::1%eth0", None, "fe80::1"), ("10.1.1.1", "203.0.113.9, fe80::1%eth0", "10.1.1.1")])
def test_whose_address(script, peer, forwarded, expected):
    """The same rows as tallyd's own: tests/unit/handlers/access/test_client.c."""
    process = script(f"""
const {{ EventEmitter }} = require('events');
const {{ middleware }} = require('tallyd-client');
const count = middleware({{ track: (page, {{ ip }}) => console.log(JSON.stringify(ip ?? null)) }}, {{ trustedProxies: ['10.0.0.0/8', '::1'] }});
const res = Object.assign(new EventEmitter(), {{ headersSent: true, statusCode: 200 }});
const headers = {{ 'x-forwarded-for': {json.dumps(forwarded)} ?? undefined }};
count({{ method: 'GET', url: '/', headers, socket: {{ remoteAddress: {json.dumps(peer)} ?? undefined }} }}, res);
res.emit('close');
""")
    assert json.loads(process.communicate(timeout=20)[0]) == expected


def test_where_from_is_said_as_by_the_python_client(script):
    """The rows are that client's: QUERIES are campaigns, REFERRERS hosts of one's own and others."""
    names = ["utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content"]
    cases = [({"url": "/a?" + query.decode("latin-1"), "headers": {}}, dict(zip(names, expected))) for query, expected in QUERIES]
    cases += [({"url": "/a", "headers": {"referer": referrer, "host": host}}, {"referrer": referrer} if is_sent else {})
              for referrer, host, is_sent in REFERRERS]
    cases += [({"url": "http://shop.example/a?utm_term=1#?utm_term=2", "headers": {}}, {"utm_term": "1"})]
    process = script(f"""
const {{ EventEmitter }} = require('events');
const {{ middleware }} = require('tallyd-client');
const count = middleware({{ track: (page, {{ ts, ...said }}) => console.log(JSON.stringify([page, said])) }});
for (const request of {json.dumps([request for request, _ in cases])}) {{
  for (const name in request.headers) request.headers[name] ??= undefined;
  const res = Object.assign(new EventEmitter(), {{ headersSent: true, statusCode: 200 }});
  count({{ method: 'GET', socket: {{}}, ...request }}, res);
  res.emit('close');
}}
""")
    out = process.communicate(timeout=20)[0].splitlines()
    assert [json.loads(line) for line in out] == [["/a", expected] for _, expected in cases]


def test_sources_and_campaigns_are_counted(script, tallyd, http, site):
    port = free_port()
    process = script(SERVER % {"url": tallyd.url, "site": site, "port": port})
    assert process.stdout.readline() == "listening\n"
    for target, referrer in (("/a?status=200&utm_campaign=M%C3%A4rz", "https://www.google.de/"), ("/a?status=200", f"http://127.0.0.1:{port}/")):
        ask(f"http://127.0.0.1:{port}{target}", Referer=referrer, User_Agent=FIREFOX)
    process.communicate("\n", timeout=20)
    assert views(http, site) == {"/a": 2}
    for by, expected in (("source", {"google": 1, "(none)": 1}), ("utm_campaign", {"März": 1, "(none)": 1})):
        rows = http.question("/breakdown", site=site, by=by, from_="now-1h")["rows"]
        assert {row["value"]: row["pv"] for row in rows} == expected


@pytest.mark.parametrize("spool", [None, "spool"])
def test_workers_and_children_send_their_own(script, directory, tallyd, http, site, spool):
    process = script(f"""
const {{ fork }} = require('child_process');
const {{ Worker, isMainThread }} = require('worker_threads');
const {{ Client }} = require('tallyd-client');
const name = !isMainThread ? 'thread' : process.argv[2] || 'parent';
const tally = new Client('{tallyd.url}', {{ site: '{site}', intervalMs: 5, spool: {json.dumps(spool)} }});
const other = new Client('{tallyd.url}', {{ site: '{site}', intervalMs: 5, spool: {json.dumps(spool)} }});
for (let i = 0; i < 30; i++) tally.track(`/${{name}}-${{i}}`);
other.track(`/${{name}}-other`);
if (name === 'parent') fork(__filename, ['child']);
if (name === 'parent') new Worker(__filename);
if (name === 'thread') Promise.all([tally.close(), other.close()]);
""")
    assert process.communicate(timeout=30)[0] == "" and process.returncode == 0
    names = ("parent", "child", "thread")
    assert views(http, site) == dict.fromkeys([f"/{name}-{i}" for name in names for i in [*range(30), "other"]], 1)
    assert not list(directory.glob("spool*")), "nothing is left"


@pytest.mark.parametrize("how, sent", [("", True), ("tally.close().then(() => process.exit());", True), ("setTimeout(() => {}, 50);", True),
                                       ("process.exit();", False), ("throw new Error('broken');", False),
                                       ("process.kill(process.pid, 'SIGTERM'); setTimeout(() => {}, 20000);", False)])
def test_ends_of_a_process(script, tallyd, http, site, how, sent):
    """Whatever its end does not send, the next process does."""
    begin = f"""
const {{ Client }} = require('tallyd-client');
const tally = new Client('{tallyd.url}', {{ site: '{site}', intervalMs: 60000, spool: 'spool' }});
"""
    script(begin + "for (let i = 0; i < 30; i++) tally.track('/a');\n" + how).communicate(timeout=20)
    assert views(http, site) == ({"/a": 30} if sent else {})
    assert script(begin).communicate(timeout=20)[0] == ""
    assert views(http, site) == {"/a": 30}


def test_a_process_does_not_stay_for_an_idle_client(script, tallyd, proxy):
    """No timer and no kept connection holds it."""
    process = script(f"""
const {{ Client }} = require('tallyd-client');
const tally = new Client('{proxy.url}', {{ spool: 'spool' }});
tally.track('/');
tally.flush().then(() => console.log('flushed'));
""")
    assert process.communicate(timeout=5)[0] == "flushed\n" and process.returncode == 0


def test_a_killed_process_that_nobody_has_reaped_is_gone(script, directory, tallyd, http, site):
    """As in a container whose first process reaps none: the zombie keeps its number and its start."""
    program = f"""
const {{ Client }} = require('tallyd-client');
const tally = new Client('{tallyd.url}', {{ site: '{site}', intervalMs: 60000, spool: 'spool' }});
"""
    process = script(program + "tally.track('/a'); console.log('ready'); setTimeout(() => {}, 20000);")
    assert process.stdout.readline() == "ready\n"
    (file,) = directory.glob("spool.*")
    assert script(program).communicate(timeout=20)[0] == "" and views(http, site) == {} and file.exists(), "it lives"
    process.kill()
    wait_until(lambda: " Z " in pathlib.Path(f"/proc/{process.pid}/stat").read_text(), "it is a zombie")
    assert script(program).communicate(timeout=20)[0] == "" and views(http, site) == {"/a": 1}
    assert not list(directory.glob("spool*"))


def test_bad_arguments_and_events(script, tallyd):
    process = script(f"""
const assert = require('assert');
const {{ Client }} = require('tallyd-client');
for (const url of ['127.0.0.1:8080', 'ftp://x', '']) assert.throws(() => new Client(url));
assert.throws(() => new Client('http://127.0.0.1', {{ token: 'a\\r\\nb' }}));
assert.throws(() => new Client('http://127.0.0.1', {{ spool: 'missing/spool' }}));
const tally = new Client('{tallyd.url}', {{ log: () => {{ throw new Error('log'); }} }});
const loop = {{}};
loop.loop = loop;
for (const members of [{{ user: 1n }}, {{ user: NaN }}, loop]) assert.strictEqual(tally.track('/', members), false);
assert.deepStrictEqual(tally.stats().dropped, {{ invalid: 3 }});
""")
    assert process.communicate(timeout=20)[0] == "" and process.returncode == 0


def test_it_can_be_installed(directory, cleanup):
    """`npm install` of this folder, and both ways to import it."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed (apt-get install npm)")
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", "--install-links", FOLDER], cwd=directory, check=True,
                   capture_output=True, timeout=120)
    assert not (directory / "node_modules/tallyd-client").is_symlink()
    (directory / "program.mjs").write_text("import { Client, middleware } from 'tallyd-client';\nconsole.log(Client.name, middleware.name);\n")
    out = subprocess.run([node(), "program.mjs"], cwd=directory, check=True, capture_output=True, text=True, timeout=30).stdout
    assert out == "Client middleware\n"
