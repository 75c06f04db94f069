"""deploy/'s files for proxies: nginx's auth_request and mirror on a real nginx, and what Traefik's forwardAuth sends."""

import http.server
import re
import threading

import pytest
import yaml

from lib.client import Client
from lib.process import ROOT
from lib.waiting import wait_until

DEPLOY = ROOT / "deploy"
POLICY = "policy.site = funnel 3/3600s burst 2\n"


@pytest.fixture
def application(cleanup):
    """Something to protect: its port, and the requests that reached it."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            seen.append(dict(self.headers))
            self.send_response(500 if self.path == "/broken" else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        do_POST = do_HEAD = do_GET

        def log_message(self, *_args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cleanup.append(server.server_close)
    cleanup.append(server.shutdown)
    return server.server_address[1], seen


@pytest.fixture
def limiter(start_redis, start_tallyd, directory):
    directory.mkdir(exist_ok=True)
    (directory / "config").write_text(POLICY)
    return start_tallyd("--config", directory / "config", redis=start_redis())


@pytest.fixture
def nginx(start_nginx, limiter, application):
    """nginx with deploy/nginx-ratelimit.conf: its port."""
    return start_nginx("nginx-ratelimit.conf", {"127.0.0.1:8080": f"127.0.0.1:{limiter.port}",
                                                "127.0.0.1:3000": f"127.0.0.1:{application[0]}"})


def test_nginx_asks_and_refuses(nginx, limiter, application):
    client = Client("127.0.0.1", nginx)
    for i in range(3):
        response = client.get("/page")
        assert (response.status, response.body) == (200, b"ok")
        assert response.headers["RateLimit"].startswith(f'"site";r={2 - i};t=')
        assert response.headers["RateLimit-Policy"] == '"site";q=3;w=3600'
    for _ in range(2):
        response = client.get("/page")
        assert response.status == 429, response
        assert 1100 < int(response.headers["Retry-After"]) <= 1200
        assert response.headers["RateLimit"].startswith('"site";r=0;')
    assert len(application[1]) == 3
    assert limiter.client().request("DELETE", "/ratelimit?key=127.0.0.1&policy=site").status == 204
    assert client.get("/page").status == 200
    assert client.get("/broken").status == 500  # the application's own, and not taken for a refusal


def test_nginx_when_tallyd_is_away(nginx, limiter, application):
    limiter.kill()
    assert Client("127.0.0.1", nginx).get("/page").status == 503
    assert not application[1]


@pytest.fixture
def mirrored(start_nginx, start_tallyd, start_redis, application):
    """(a tallyd that trusts the nginx with deploy/nginx-mirror.conf, nginx's port)."""
    tallyd = start_tallyd("--trusted-proxies", "127.0.0.1", redis=start_redis())
    return tallyd, start_nginx("nginx-mirror.conf", {"127.0.0.1:8080": f"127.0.0.1:{tallyd.port}",
                                                     "127.0.0.1:3000": f"127.0.0.1:{application[0]}"})


def test_nginx_tells_of_each_page(mirrored, application):
    tallyd, port = mirrored
    client, http = Client("127.0.0.1", port), tallyd.client()
    firefox = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
               "Cookie": "session=1", "X-Original-URI": "/forged", "X-Forwarded-Uri": "/forged"}
    robot = {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}
    found = {**firefox, "Referer": "https://www.google.de/"}
    sent = [("GET", "/a", found), ("GET", "/a?page=/forged&user=u&site=other", firefox), ("POST", "/a%20b/%C3%A9?x#y", firefox),
            ("GET", "/style.css?v=2", firefox), ("GET", "/Logo.PNG", firefox), ("HEAD", "/head", firefox), ("GET", "/robot", robot)]
    for method, path, headers in sent:
        response = client.request(method, path, b"body" if method == "POST" else None, headers)
        assert response.status == 200
    counted = {"/a": 2, "/a%20b/%C3%A9": 1}

    def figures():
        return {row["page"]: row["pv"] for row in http.question("/pages", site="blog", from_="now-1h")["pages"]}

    wait_until(lambda: figures() == counted, "the pages are counted")
    assert http.count("uv", site="blog", from_="now-1h") == 1 and http.question("/sites")["sites"] == ["blog"]
    sources = http.question("/breakdown", site="blog", by="source", from_="now-1h")["rows"]
    assert {row["value"]: row["pv"] for row in sources} == {"google": 1, "(none)": 2}
    assert client.get("/tallyd-mirror").status == 404, "internal"
    assert len(application[1]) == len(sent)


def test_nginx_serves_when_nobody_counts(mirrored, application):
    tallyd, port = mirrored
    tallyd.kill()
    for _ in range(3):
        assert Client("127.0.0.1", port).get("/page").body == b"ok"
    assert len(application[1]) == 3


def test_what_traefik_asks(limiter):
    """The address of the file, with what forwardAuth sends besides: a GET with X-Forwarded-*; 2xx lets pass, the rest is handed on."""
    forward = yaml.safe_load((DEPLOY / "traefik-ratelimit.yml").read_text())["http"]["middlewares"]["within-limit"]["forwardAuth"]
    target = re.fullmatch(r"http://127\.0\.0\.1:8080(/\S+)", forward["address"])[1]
    sent = {"X-Forwarded-Method": "POST", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "www.example.org",
            "X-Forwarded-Uri": "/x?y=1", "X-Forwarded-For": "192.0.2.7", "Accept": "*/*"}
    client = limiter.client()
    statuses = []
    for _ in range(4):
        response = client.request("GET", target, headers=sent)
        statuses.append(response.status)
        assert all(response.headers[name] for name in forward["authResponseHeaders"])
    assert statuses == [204, 204, 204, 429] and response.headers["Retry-After"]
