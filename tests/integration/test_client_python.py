"""deploy/clients/python alone: its README's examples, WSGI, ASGI, forks, signals, threads, the interpreter's exit."""

import asyncio
import fcntl
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
import wsgiref.simple_server

import pytest

from lib.http_proxy import Answer, harm
from lib.process import ROOT
from lib.sender import PYTHON
from lib.waiting import wait_until

FOLDER = ROOT / "deploy/clients/python"
sys.path.insert(0, str(FOLDER))

from tallyd_client import AsgiMiddleware, Batch, Client, WsgiMiddleware  # noqa: E402  pylint: disable=wrong-import-position

README = re.findall(r"^```python\n(.*?)^```$", (FOLDER / "README.md").read_text(), re.M | re.S)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.fixture
def client(tallyd, site, cleanup):
    ours = Client(tallyd.url, site=site, interval_s=0.02)
    cleanup.append(lambda: ours.close(0))
    return ours


@pytest.fixture
def script(directory, cleanup):
    """script(text): a program's process; its output is read by communicate()."""
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))

    def start(text):
        process = subprocess.Popen([PYTHON, "-B", "-c", text], cwd=directory, env={**os.environ, "PYTHONPATH": str(FOLDER)},
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        cleanup.append(process.wait)
        cleanup.append(process.kill)
        return process

    return start


def views(http, site):
    return {row["page"]: row["pv"] for row in http.question("/pages", site=site, from_="now-1h", limit=1000)["pages"]}


def here(text, tallyd, site):
    """An example of the README, with this test's tallyd and site."""
    assert "http://127.0.0.1:8080" in text and 'site="shop"' in text
    return text.replace("http://127.0.0.1:8080", tallyd.url).replace('site="shop"', f'site="{site}"')


def test_the_quick_start(script, tallyd, http, site):
    process = script(here(README[0], tallyd, site))
    assert process.communicate(timeout=20)[0] == "" and process.returncode == 0
    assert views(http, site) == {"/pricing": 1} and http.question("/dau", site=site)["users"] == 1


def serve(application, cleanup):
    """A real WSGI server with it: its URL."""
    class Quiet(wsgiref.simple_server.WSGIRequestHandler):
        def log_message(self, *_args):
            pass

    server = wsgiref.simple_server.make_server("127.0.0.1", 0, application, handler_class=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cleanup.append(server.server_close)
    cleanup.append(server.shutdown)
    return f"http://127.0.0.1:{server.server_port}"


def test_the_readmes_application(tallyd, http, site, cleanup):
    names = {}
    exec(compile(here(README[1], tallyd, site), "README.md", "exec"), names)  # pylint: disable=exec-used
    url = serve(names["application"], cleanup)
    headers = {"User-Agent": FIREFOX, "X-Forwarded-For": "203.0.113.9"}
    for path in ("/", "/a%20b?c=d", "/%C3%A9", "/style.css"):
        with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers)) as answer:
            assert answer.read() == b"<h1>Hello</h1>"
    assert names["tally"].close(10)
    assert views(http, site) == {"/": 1, "/a%20b": 1, "/%C3%A9": 1}
    assert [http.count(metric, site=site, from_="now-1h") for metric in ("uv", "ips", "visits")] == [1, 1, 1]


def test_wsgi_counts_answers_of_people(client, http, site, cleanup):
    def application(environ, start_response):
        start_response(environ["QUERY_STRING"] + " X", [("Content-Length", "0")])
        return [b""]

    def user(environ):
        return environ["HTTP_X_USER"]  # raises where there is none

    url = serve(WsgiMiddleware(application, client, user=user), cleanup)
    for method, path, status, headers in (("GET", "/ok", 200, {}), ("POST", "/ok", 201, {"X-User": "u1"}), ("GET", "/ok", 304, {}),
                                          ("HEAD", "/head", 200, {}), ("PUT", "/put", 200, {}), ("GET", "/none", 404, {}),
                                          ("GET", "/moved", 302, {}), ("GET", "/broken", 500, {}), ("GET", "/x.PNG", 200, {}),
                                          ("GET", "/early", 200, {"Sec-Purpose": "prefetch;prerender"})):
        request = urllib.request.Request(f"{url}{path}?{status}", method=method, headers=headers, data=b"" if method == "POST" else None)
        opener = urllib.request.build_opener(NoRedirect)
        try:
            opener.open(request).close()
        except urllib.error.HTTPError as error:
            assert error.code == status
    assert client.flush()
    assert views(http, site) == {"/ok": 3} and http.question("/dau", site=site)["users"] == 1


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args):
        return None


def test_asgi(client, http, site):
    served = []

    async def application(scope, _receive, send):
        served.append(scope["type"])
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": scope["status"], "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async def nothing(*_args):
        return {}

    counted = AsgiMiddleware(application, client, user=lambda scope: scope.get("user"), trusted_proxies=["10.0.0.0/8"])

    def ask(path, status=200, kind="http", headers=(), **more):
        asyncio.run(counted({"type": kind, "method": "GET", "path": path, "status": status, "client": ("10.0.0.1", 4711),
                             "headers": [(b"user-agent", FIREFOX.encode()), (b"x-forwarded-for", b"6.6.6.6, 203.0.113.9"), *headers], **more},
                            nothing, nothing))

    ask("/a b", raw_path=b"/a%20b?c=d")
    ask("/é", user="u1")
    ask("/none", 404)
    ask("/early", headers=[(b"sec-purpose", b"prefetch")])
    ask("", kind="lifespan")
    ask("/chat", kind="websocket")
    assert client.flush() and len(served) == 6
    assert views(http, site) == {"/a%20b": 1, "/%C3%A9": 1}
    assert [http.count(metric, site=site, from_="now-1h") for metric in ("uv", "ips")] == [2, 1]


@pytest.mark.parametrize("peer, forwarded, expected", [
    ("192.0.2.1", "6.6.6.6", "192.0.2.1"), ("10.0.0.1", "6.6.6.6, 192.0.2.1", "192.0.2.1"), ("10.0.0.1", "192.0.2.1:80,10.9.9.9", "192.0.2.1"),
    ("10.0.0.1", "[2001:db8::1]:80", "2001:db8::1"), ("::1", None, "::1"), ("10.0.0.1", "192.0.2.1, unknown", "10.0.0.1"), ("", "192.0.2.1", None),
    ("::ffff:10.0.0.1", "192.0.2.1", "192.0.2.1"), (None, None, None),
    ("10.0.0.1", " , ,198.51.100.7,, ", "198.51.100.7"), ("10.0.0.1", "198.51.100.7:", "198.51.100.7"),
    ("fe80::1%eth0", None, "fe80::1"), ("10.1.1.1", "203.0.113.9, fe80::1%eth0", "10.1.1.1")])
def test_whose_address(peer, forwarded, expected):
    """The same rows as tallyd's own: tests/unit/handlers/access/test_client.c."""
    assert WsgiMiddleware(None, None, trusted_proxies=["10.0.0.0/8", "::1"]).address(peer, forwarded) == expected


QUERIES = [
    (b"", {}), (b"a=b&utm_id=1&utm=2&xutm_source=3&utm_source", {}), (b"utm_source=news&utm_source=late&utm_medium=e%2Dmail", ["news", "e-mail"]),
    (b"utm_source=&utm_source=%ff&utm_source=a%00b&utm_source=a%1bb&utm_source=%7f&utm_source=good", ["good"]),
    (b"utm_source=a+b%2Bc%zz%4", ["a b+c%zz%4"]), ("utm_source=é%C3%A9".encode(), ["éé"]), (b"utm_source=%EF%BB%BFx", ["\ufeffx"]),
    (b"utm_source=" + b"x" * 300, ["x" * 256]), (b"utm_source=" + b"x" * 255 + b"%C3%A9%C3%A9", ["x" * 255]),
    (b"utm_source=" + b"%F0%9F%98%80" * 64 + b"x", ["\U0001f600" * 64]), (b"utm_source=" + b"x" * 300 + b"%00", {}),
    (b"utm_source=1&utm_medium=2&utm_campaign=3&utm_term=4&utm_content=5=6", ["1", "2", "3", "4", "5=6"])]
REFERRERS = [  # and the host that was asked: is it sent?
    ("https://example.org/a?b", "shop.example", True), ("http://shop.example/", "shop.example", False), ("https://WWW.Shop.Example:8443/x", "shop.example:80", False),
    ("https://shop.example./", "www.shop.example", False), ("https://blog.shop.example/", "shop.example", True), ("https://shop.example/", None, True),
    ("http://[2001:db8::1]:80/", "[2001:db8::1]", False), ("android-app://com.google.android.gm/", "shop.example", True),
    ("android-app://Shop.Example/", "shop.example", False),
    ("https://u:p@shop.example/", "shop.example", False), ("", "shop.example", False), (None, "shop.example", False), ("https://a/\x7f", "shop.example", False),
    ("https://\u00e9/", "shop.example", False), ("https://a/ b", "shop.example", False), ("https://a/" + "x" * 5000, "shop.example", False)]


@pytest.mark.parametrize("query, expected", QUERIES)
def test_the_campaign_is_that_of_the_query(query, expected):
    names = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
    assert said(query=query) == dict(zip(names, expected))


@pytest.mark.parametrize("referrer, host, is_sent", REFERRERS)
def test_the_referrer_is_no_page_of_the_host_itself(referrer, host, is_sent):
    assert said(HTTP_REFERER=referrer, HTTP_HOST=host) == ({"referrer": referrer} if is_sent else {})


def said(query=b"", **headers):
    """Where from, as WSGI and ASGI both say of one request, in the events' members."""
    events = []

    class Client:  # pylint: disable=too-few-public-methods
        @staticmethod
        def track(_page, **members):
            events.append({name: value for name, value in members.items() if name.startswith(("utm_", "referrer")) and value is not None})

    async def application(_scope, _receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def nothing(*_args):
        return {}

    headers = {name: value for name, value in headers.items() if value is not None}
    WsgiMiddleware(lambda _, start: start("200 OK", []), Client)(
        {"REQUEST_METHOD": "GET", "PATH_INFO": "/", "QUERY_STRING": query.decode("latin-1"), **headers}, lambda *_: None)
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": query,
             "headers": [(name[5:].lower().encode(), value.encode("latin-1")) for name, value in headers.items()]}
    asyncio.run(AsgiMiddleware(application, Client)(scope, nothing, nothing))
    assert events[0] == events[1]
    return events[0]


def test_sources_and_campaigns_are_counted(client, http, site, cleanup):
    """The page stays a path; what another host linked counts, what the application's own pages linked does not."""
    def application(_environ, start_response):
        start_response("200 OK", [("Content-Length", "0")])
        return [b""]

    url = serve(WsgiMiddleware(application, client), cleanup)
    for target, referrer in (("/", "https://www.google.de/"), ("/a?utm_source=news&utm_campaign=M%C3%A4rz", "https://example.org/x"), ("/a", url + "/"),
                             ("/a?utm_campaign=" + "x" * 9000 + "%00", "https://example.org/" + "y" * 20_000)):
        request = urllib.request.Request(url + target, headers={"Referer": referrer, "User-Agent": FIREFOX})
        urllib.request.urlopen(request).close()
    assert client.flush() and client.stats()["accepted"] == 4 and views(http, site) == {"/": 1, "/a": 3}
    assert breakdown(http, site, "source") == {"google": 1, "news": 1, "(none)": 2}
    assert breakdown(http, site, "utm_campaign") == {"März": 1, "(none)": 3}


def breakdown(http, site, by):
    return {row["value"]: row["pv"] for row in http.question("/breakdown", site=site, by=by, from_="now-1h")["rows"]}


def test_threads(client, http, site):
    def work(i):
        for j in range(200):
            assert client.track(f"/{i}-{j % 20}")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert client.flush()
    assert views(http, site) == {f"/{i}-{j}": 10 for i in range(8) for j in range(20)}


# Processes

FORKS = """
import os, sys
from tallyd_client import Client
tally = Client({url!r}, site={site!r}, interval_s={interval}, spool={spool!r})
tally.track("/before")
children = []
for i in range(3):
    pid = os.fork()
    if pid == 0:
        for j in range(40):
            assert tally.track(f"/child{{i}}-{{j}}")
        sys.exit(0)
    children.append(pid)
    tally.track(f"/parent{{i}}")
assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
"""


@pytest.mark.parametrize("spool", [None, "spool"])
@pytest.mark.parametrize("interval", [0.001, 30])
def test_after_a_fork_each_process_sends_its_own(script, directory, tallyd, http, site, spool, interval):
    """As gunicorn's workers do where the application is loaded before."""
    process = script(FORKS.format(url=tallyd.url, site=site, interval=interval, spool=spool))
    assert process.communicate(timeout=30)[0] == "" and process.returncode == 0
    expected = ["/before", *(f"/parent{i}" for i in range(3)), *(f"/child{i}-{j}" for i in range(3) for j in range(40))]
    assert views(http, site) == dict.fromkeys(expected, 1)
    assert not list(directory.glob("spool*")), "nothing is left"


def test_a_fork_while_a_batch_is_under_way(script, proxy, http, site):
    """The child does not touch the parent's connection, and a lock that the sender held is not its own."""
    proxy.plan = harm("silence")
    process = script(f"""
import os, sys
from tallyd_client import Client
tally = Client({proxy.url!r}, site={site!r}, interval_s=0.001, timeout_s=1)
tally.track("/parent")
sys.stdin.readline()
pid = os.fork()
if pid == 0:
    assert tally.track("/child") and tally.flush(10)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0 and tally.flush(10)
""")
    wait_until(lambda: proxy.requests, "the batch is under way")
    out, _ = process.communicate("\n", timeout=30)
    assert process.returncode == 0 and re.fullmatch(r"page views wait: no answer: TimeoutError.*\n", out), out
    assert views(http, site) == {"/parent": 1, "/child": 1}


@pytest.mark.parametrize("how", ["sys.exit(0)", "raise ValueError", "os.kill(os.getpid(), signal.SIGTERM); time.sleep(20)", "pass"])
def test_however_the_interpreter_ends_the_queue_is_sent(script, tallyd, http, site, how):
    process = script(f"""
import os, signal, sys, time
from tallyd_client import Client
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
tally = Client({tallyd.url!r}, site={site!r}, interval_s=30)
for i in range(30):
    tally.track("/a")
{how}
""")
    process.communicate(timeout=20)
    assert views(http, site) == {"/a": 30}


def test_a_signal_that_nobody_handles_leaves_it_to_the_spool(script, tallyd, http, site):
    program = f"""
import time
from tallyd_client import Client
tally = Client({tallyd.url!r}, site={site!r}, interval_s=30, spool="spool")
assert tally.track("/a")
print("ready", flush=True)
time.sleep(60)
"""
    first = script(program)
    assert first.stdout.readline() == "ready\n"
    first.send_signal(signal.SIGTERM)
    assert first.wait() == -signal.SIGTERM
    second = script(program.replace("time.sleep(60)", "").replace('assert tally.track("/a")', ""))
    assert second.communicate(timeout=20)[0] == "ready\n" and views(http, site) == {"/a": 1}


def test_a_new_file_is_nobody_elses(directory, cleanup, monkeypatch):
    """Another process that begins just then, and locks what it finds, finds only files that are locked."""
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    lock, others = fcntl.flock, []

    def late(fd, how):
        for file in directory.iterdir():
            if re.fullmatch("spool[.][0-9a-f]{32}", file.name):
                others.append(file.open("r+b"))
                lock(others[-1], how)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", late)
    batch = Batch(str(directory / "spool"))
    assert batch.write(b"{}") and not others
    assert [len(file.name) for file in directory.iterdir()] == [len("spool.") + 32]
    batch.close()
    assert not list(directory.iterdir())


# What a program may do wrong


def test_bad_arguments(directory):
    for url in ("127.0.0.1:8080", "ftp://x", "http://", "", "http://x:99999", "http://x:y", "http://a b/", "http://a\x01b/"):
        with pytest.raises(ValueError):
            Client(url)
    with pytest.raises(ValueError):
        Client("http://127.0.0.1", token="a\r\nb")
    with pytest.raises(OSError):
        Client("http://127.0.0.1", spool=directory / "missing" / "spool")


def test_bad_events_are_false_and_not_an_exception(client):
    loop = []
    loop.append(loop)
    for members in ({"user": object()}, {"user": float("nan")}, {"user": {1, 2}}, {"user": b"u"}, {"x": loop}):
        assert client.track("/", **members) is False
    assert client.stats()["dropped"] == {"invalid": 5} and client.stats()["tracked"] == 5


def test_a_thread_that_cannot_be_had_is_tried_for_again(client, http, site, monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert client.track("/a") and client.stats()["queued"] == 1
    assert client.track("/b") and client.flush()
    assert views(http, site) == {"/a": 1, "/b": 1} and client.stats()["dropped"] == {}


def test_answers_that_are_no_json(proxy, site, cleanup):
    """A proxy's own pages, or a 202 whose body is something else: nothing breaks."""
    client = Client(proxy.url, site=site, interval_s=0.01)
    cleanup.append(lambda: client.close(0))
    proxy.plan = harm(Answer(502, body=b"<html>"), Answer(429, (("Retry-After", "0"),), body=b"[1]"),
                      then=Answer(202, body=b'{"rejected": "x", "dropped_total": null}'))
    client.track("/")
    assert client.flush() and client.stats()["accepted"] == 1
    proxy.plan = harm(then=Answer(202, body=b'{"rejected": 1, "errors": 7}'))
    client.track("/")
    assert client.flush() and client.stats()["rejected"] == 1


def test_it_can_be_installed(directory, cleanup):
    """`pip install` of this folder, where pip, setuptools and wheel are there."""
    if subprocess.run([PYTHON, "-c", "import setuptools, wheel, pip"], capture_output=True, check=False).returncode:
        pytest.skip("pip, setuptools and wheel are not installed (apt-get install python3-pip python3-setuptools python3-wheel)")
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))
    source = pathlib.Path(shutil.copytree(FOLDER, directory / "source"))
    subprocess.run([PYTHON, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "--target", directory / "target", source],
                   check=True, capture_output=True, timeout=120)
    subprocess.run([PYTHON, "-B", "-c", "import tallyd_client; tallyd_client.Client"], check=True, cwd=directory,
                   env={**os.environ, "PYTHONPATH": str(directory / "target")})
