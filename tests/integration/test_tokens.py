"""Tokens: who may do what, where, and that nothing of it is ever written down."""

import hashlib
import json
import os
import re
import signal
import threading

import pytest

from lib.process import run
from lib.raw import Raw
from lib.tokens import token_line
from lib.waiting import wait_until

AGENT, USER, ADDRESS = "Secret-Agent/1.0", "secret-user", "203.0.113.77"


LINES = (token_line("t-ingest", "ingest backend") + token_line("t-read", "read dashboard") + token_line("t-admin", "admin ops")
         + token_line("t-both", "ingest,read site=shop,shop-2 shop"))


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def start(start_redis, start_tallyd, directory):
    """A tallyd with a file of tokens, which has the given text."""
    path = directory / "tokens"

    def begin(text=LINES, *args, **options):
        directory.mkdir(exist_ok=True)
        path.write_text(text)
        tallyd = start_tallyd("--tokens", path, *args, redis=options.pop("redis", None) or start_redis(directory),
                              wait_ready=False, **options)
        tallyd.wait_ready_line()
        tallyd.tokens = path
        wait_until(lambda: tallyd.client().get("/readyz").status in (200, 401), "it is ready")
        return tallyd

    return begin


def test_scopes(start):
    http = start().client()
    event = json.dumps({"page": "/"})
    for method, path, body, scope in (("POST", "/events", event, "ingest"), ("GET", "/uv", None, "read"),
                                      ("HEAD", "/pv", None, "read")):
        for token in ("ingest", "read", "admin"):
            response = http.request(method, path, body, bearer("t-" + token))
            if token == scope:
                assert response.status in (200, 202), response
                continue
            assert response.status == 403, response
            assert f'scope="{scope}"' in response.headers["WWW-Authenticate"]
            if method != "HEAD":
                assert scope in response.json["detail"]
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.yaml", "/openapi.json"):
        assert http.get(path).status == 200
    assert http.request("GET", "/uv", headers=bearer("t-read")).json["uv"] == 0  # nobody counted: no user
    assert http.request("GET", "/pv", headers=bearer("t-read")).json["pv"] == 1


@pytest.mark.parametrize("value", [None, "", "t-read", "Bearer", "Bearer ", "Basic dC1yZWFk", "Bearer t-rea", "Bearer t-read x",
                                   "Bearer T-READ", "Bearer " + "t" * 5000, "Bearer ,t-read"])
def test_what_is_no_token_is_401(start, value):
    http = start().client()
    response = http.request("GET", "/uv", headers={} if value is None else {"Authorization": value})
    assert response.status == 401, response
    assert response.headers["WWW-Authenticate"].startswith('Bearer realm="tallyd"')
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "t-rea" not in str(response)


def test_two_tokens_are_refused(start):
    """A proxy that adds one of its own must not decide by chance which of the two counts."""
    tallyd = start()
    for first, second in (("t-read", "t-admin"), ("t-read", "t-read"), ("unknown", "t-read")):
        with Raw(tallyd.port) as raw:
            raw.send(f"GET /pv HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {first}\r\nAuthorization: Bearer {second}\r\n\r\n")
            status, _, body = raw.receive()
            assert status == 400 and b"Authorization" in body, body


def test_the_scheme_is_a_word_of_any_case(start):
    http = start().client()
    assert http.request("GET", "/uv", headers={"Authorization": "Bearer t-read \t"}).status == 200  # blanks behind are none of it
    for scheme in ("bearer", "BEARER", "Bearer  "):
        assert http.request("GET", "/uv", headers={"Authorization": f"{scheme} t-read"}).status == 200


def test_sites(start):
    http = start().client()
    mine = bearer("t-both")
    for site, status in (("shop", 200), ("shop-2", 200), ("shop-3", 403), ("default", 403), (None, 403)):
        query = f"?site={site}" if site else ""
        response = http.request("GET", "/uv" + query, headers=mine)
        assert response.status == status, response
        if status == 403:
            assert (site or "default") in response.json["detail"]
    for events, status in (([{"page": "/", "site": "shop"}], 202), ([{"page": "/"}], 403),
                           ([{"page": "/", "site": "shop"}, {"page": "/", "site": "blog"}], 403)):
        response = http.request("POST", "/events", json.dumps(events), mine)
        assert response.status == status, response
    assert "blog" in response.json["detail"]
    assert response.json["errors"] == [{"pointer": "/site", "detail": "the token is not for site blog"}]  # of the body
    assert http.request("GET", "/pv?site=shop", headers=mine).json["pv"] == 1  # of the refused batch nothing counts


EVERYTHING = token_line("t-site", "ingest,read,admin site=shop owner")


@pytest.mark.parametrize("method, target, body", [
    ("GET", "/uv", None), ("GET", "/stats", None), ("GET", "/pages", None), ("GET", "/overlap?page=/a&page=/b", None),
    ("GET", "/seen?user=u&page=/", None), ("GET", "/dau", None), ("GET", "/active", None), ("GET", "/active/users", None),
    ("GET", "/retention?cohort=2026-11-20", None), ("GET", "/users/u/activity", None), ("DELETE", "/users/u", None),
    ("PUT", "/filters/f", "{}"), ("GET", "/filters/f", None), ("POST", "/filters/f/add", '{"items":["a"]}'),
    ("POST", "/filters/f/check", '{"items":["a"]}'), ("POST", "/seen", '{"user":"u","pages":["/"]}'), ("DELETE", "/filters/f", None),
    ("PUT", "/pagesets/p", '{"pages":["/"]}'), ("GET", "/pagesets/p", None), ("DELETE", "/pagesets/p", None)])
def test_a_token_of_one_site_reaches_no_other(start, method, target, body):
    """Every operation that takes a site, also by default."""
    http = start(EVERYTHING).client()
    for site, refused in (("shop", False), ("blog", True), (None, True)):
        query = f"{'&' if '?' in target else '?'}site={site}" if site else ""
        response = http.request(method, target + query, body, bearer("t-site"))
        assert (response.status == 403) == refused, (site, response)


def test_a_token_of_one_site_asks_for_no_other_in_the_body(start):
    http = start(EVERYTHING).client()
    for site, status in (("shop", 200), ("blog", 403), ("default", 403)):
        body = json.dumps({"site": site, "user": "u", "pages": ["/"]})
        response = http.request("POST", "/seen", body, bearer("t-site"))
        assert response.status == status and ("seen" in response.json) == (status == 200), (site, response)


@pytest.mark.parametrize("method, target, body", [
    ("GET", "/pixel.gif?page=/", None), ("HEAD", "/pixel.gif?page=/", None), ("POST", "/api/event", None)])
def test_a_token_of_one_site_sends_for_no_other(start, method, target, body):
    """Of what browsers send, too.  HEAD foretells what GET would be told."""
    http = start(EVERYTHING + token_line("t-ingest", "ingest,read all")).client()
    for site, refused in (("shop", False), ("blog", True), ("default", True)):
        if method == "POST":
            body = json.dumps({"n": "pageview", "u": "https://x.example/", "d": site})
        query = f"{target}&site={site}" if target.startswith("/pixel") else target
        response = http.request(method, query, body, bearer("t-site"))
        assert response.status == (403 if refused else 202), (site, response)
        if method != "HEAD":
            assert http.request("GET", f"/pv?site={site}", headers=bearer("t-ingest")).json["pv"] == (0 if refused else 1)


def test_hot_pages_of_other_sites_are_not_listed(start):
    http = start(LINES + EVERYTHING).client()
    for site in ("shop", "blog"):
        assert http.request("POST", "/events", json.dumps({"page": f"/{site}", "site": site}), bearer("t-ingest")).status == 202
    listed = {name: [p["site"] for p in http.request("GET", "/hotkeys", headers=bearer(name)).json["pages"]]
              for name in ("t-site", "t-read")}
    assert listed == {"t-site": ["shop"], "t-read": ["blog", "shop"]}
    for name in ("t-site", "t-read"):  # whichever page is first in the list of all
        assert len(http.request("GET", "/hotkeys?limit=1", headers=bearer(name)).json["pages"]) == 1


@pytest.mark.parametrize("method, path", [("GET", "/cluster"), ("GET", "/rollup"), ("POST", "/rollup"), ("GET", "/metrics")])
def test_a_token_of_one_site_is_told_nothing_of_all(start, method, path):
    """Where the servers are, how far they are, and which other sites there are."""
    http = start(LINES + EVERYTHING + token_line("t-all", "read,admin all"), "--metrics-token").client()
    refused = http.request(method, path, headers=bearer("t-site"))
    assert refused.status == 403 and "all of them" in refused.json["detail"], refused
    assert http.request(method, path, headers=bearer("t-all")).status == 200


def test_metrics_token(start):
    http = start(LINES, "--metrics-token").client()
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.yaml", "/openapi.json"):
        assert http.get(path).status == 401
        assert http.request("GET", path, headers=bearer("t-ingest")).status == 403
        assert http.request("GET", path, headers=bearer("t-read")).status == 200


def test_sighup_reads_the_tokens_again(start):
    tallyd = start()
    http = tallyd.client()

    def status(token):
        return http.request("GET", "/uv", headers=bearer(token)).status

    tallyd.tokens.write_text(token_line("new-token", "read next"))
    assert status("t-read") == 200 and status("new-token") == 401
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: status("new-token") == 200, "the new token is good")
    assert status("t-read") == 401
    tallyd.tokens.write_text(token_line("new-token", "read next") + "broken\n")
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: re.search("level=error .*tokens:2: ", tallyd.log_text()), "the log tells the line")
    assert status("new-token") == 200
    tallyd.tokens.unlink()
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: "No such file" in tallyd.log_text(), "the log tells that it is gone")
    assert status("new-token") == 200


def test_a_pipe_is_read_at_the_start_only(start_redis, start_tallyd, directory):
    """Behind its one text whoever opens the pipe again waits for ever."""
    directory.mkdir(exist_ok=True)
    path = directory / "fifo"
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=(LINES,), daemon=True).start()
    tallyd = start_tallyd("--tokens", path, redis=start_redis())
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: re.search("level=error .*those of before stay.*not a regular file", tallyd.log_text()), "the log says so")
    assert tallyd.client().request("GET", "/uv", headers=bearer("t-read")).status == 200
    assert tallyd.terminate() == 0


@pytest.mark.parametrize("text", ["", "# nothing\n", "abc read x\n", "g" * 64 + " read x\n", "a" * 64 + " write x\n",
                                  "a" * 64 + " read\n", "a" * 64 + " read, x\n", "a" * 64 + " read site= x\n",
                                  "a" * 64 + " read site=A x\n", "a" * 64 + " read site=a\n", "a" * 64 + " read x y\n",
                                  ("a" * 64 + " read x\n") * 2, "a" * 64 + " read x\n" + "b" * 64 + " read x\n"])
def test_a_broken_file_at_the_start_is_refused(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text)
    done = run("serve", "--listen", "127.0.0.1:0", "--tokens", path, "--data-dir", tmp_path / "d")
    assert done.returncode == 2 and "--tokens: " in done.stderr, done
    assert "aaaa" not in done.stderr


def test_metrics_token_without_tokens_is_refused(tmp_path):
    done = run("serve", "--listen", "127.0.0.1:0", "--metrics-token", "--data-dir", tmp_path / "d")
    assert done.returncode == 2 and "--metrics-token" in done.stderr, done


def test_with_tokens_it_listens_beyond_loopback(start):
    tallyd = start(listen="0.0.0.0:0")
    assert tallyd.alive() and tallyd.host == "0.0.0.0"


def test_token_new(start):
    done = run("token", "new", "ingest,read", "site=a,b", "my-backend")
    token, entry = done.stdout.splitlines()
    assert entry + "\n" == token_line(token, "ingest,read site=a,b my-backend")
    assert len(token) > 40 and run("token", "new", "ingest", "x").stdout.splitlines()[0] != token
    http = start("# tokens\r\n\n  " + entry.replace(" ", "\t", 1) + "\r\n").client()
    assert http.request("GET", "/uv?site=b", headers=bearer(token)).status == 200
    assert http.request("GET", "/uv?site=c", headers=bearer(token)).status == 403


@pytest.mark.parametrize("args", [["new"], ["new", "read"], ["old", "read", "x"], [], ["new", "write", "x"],
                                  ["new", "read", "a b"], ["new", "read,", "x"], ["new", "read", "site=A", "x"],
                                  ["new", "read", "site=a"], ["new", "", "x"], ["new", "read", ""]])
def test_token_new_with_bad_words(args):
    done = run("token", *args)
    assert done.returncode == 2 and done.stdout == "" and "usage" in done.stderr, done


@pytest.mark.parametrize("args, says", [(["read", "x", "site=a"], "site= stands before NAME"),
                                        (["read", "site=a"], "a NAME is needed behind site=")])
def test_token_new_says_where_its_words_stand(args, says):
    done = run("token", "new", *args)
    assert done.returncode == 2 and says in done.stderr, done


def test_import_with_a_token(start, tmp_path):
    tallyd = start()
    log = tmp_path / "events"
    log.write_text('{"page":"/imported"}\n')
    for token, status in (("t-ingest", 0), ("t-read", 1)):
        done = run("import", "--url", tallyd.url, "--token", token, log)
        assert done.returncode == status, done
    assert token not in done.stderr + done.stdout
    assert tallyd.client().request("GET", "/pv?page=/imported", headers=bearer("t-read")).json["pv"] == 1


def test_nothing_secret_is_logged(start):
    """Neither tokens nor visitors, whatever is sent and however it ends."""
    tallyd = start(LINES, "--log-level", "debug")
    http = tallyd.client()
    sent = {"User-Agent": AGENT, "X-Forwarded-For": ADDRESS}
    event = {"page": "/", "user": USER, "ip": ADDRESS, "ua": AGENT}
    for token in ("t-ingest", "t-read", "t-unknown"):
        for body in (json.dumps(event), json.dumps({**event, "ts": "x"}), json.dumps([event])[:-1]):
            http.request("POST", "/events", body, {**sent, **bearer(token)})
        http.request("GET", f"/uv?user={USER}", headers={**sent, **bearer(token)})
    tallyd.tokens.write_text(LINES + "t-unknown " + USER + "\n")
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: "could not be read again" in tallyd.log_text(), "the log tells of the broken file")
    tallyd.terminate()
    for text in (tallyd.log_text(), tallyd.out.read_text()):
        for secret in ("t-ingest", "t-read", "t-unknown", AGENT, USER, ADDRESS, hashlib.sha256(b"t-read").hexdigest()):
            assert secret not in text, text


# Browsers without a token

PAGE = "https://blog.example.org"


@pytest.fixture
def with_origins(start, directory):
    def begin(text, *args):
        directory.mkdir(exist_ok=True)
        (directory / "tallyd.conf").write_text(text)
        return start(LINES, "--config", directory / "tallyd.conf", *args)

    return begin


# the lines of a site stand in any order
ORIGINS = (f"site.blog.tz = UTC\nsite.blog.origins = {PAGE}, http://b.example:8080\nsite.zone.tz = UTC\n"
           "site.other.origins = https://other.example\nsite.other.tz = UTC\n")


def ask(http, headers, site="blog"):
    """The statuses of the pixel and of /api/event.  HEAD of the pixel foretells the first one."""
    event = json.dumps({"n": "pageview", "u": "https://x.example/", "d": site})
    target = f"/pixel.gif?page=/&site={site}"
    pixel = http.request("GET", target, headers=headers)
    assert http.request("HEAD", target, headers=headers).status == pixel.status
    return pixel.status, http.request("POST", "/api/event", event, {"Content-Type": "text/plain", **headers}).status


def views_of(http, site="blog"):
    return http.request("GET", f"/pv?site={site}", headers=bearer("t-read")).json["pv"]


@pytest.mark.parametrize("headers, status", [
    ({"Origin": PAGE}, 202), ({"Referer": f"{PAGE}/a?b#c"}, 202), ({"Referer": f"{PAGE}?b"}, 202), ({"Referer": PAGE}, 202),
    ({"Origin": f"{PAGE}:443"}, 202), ({"Origin": "HTTPS://Blog.Example.Org"}, 202), ({"Origin": "http://b.example:8080"}, 202),
    ({"Origin": PAGE, "Referer": "https://evil.example/"}, 202), ({"Origin": "https://evil.example", "Referer": f"{PAGE}/"}, 403),
    ({"Origin": "http://blog.example.org"}, 403), ({"Origin": f"{PAGE}:8443"}, 403), ({"Origin": "http://b.example"}, 403),
    ({"Origin": f"{PAGE}.evil.example"}, 403), ({"Origin": "https://x.blog.example.org"}, 403), ({"Origin": "null"}, 403),
    ({"Referer": f"https://evil.example/{PAGE}/"}, 403), ({"Referer": "https://blog.example.org@evil.example/"}, 403),
    ({"Origin": "https://other.example"}, 403), ({"Referer": "blog.example.org"}, 403), ({"Origin": "://"}, 403),
    ({}, 401), ({"Origin": ""}, 401), ({"Origin": PAGE, "Authorization": "Bearer wrong"}, 401), ({"Origin": PAGE, "Authorization": ""}, 401),
    ({"Origin": "https://evil.example", **bearer("t-ingest")}, 202), (bearer("t-ingest"), 202), (bearer("t-read"), 403),
])
def test_browsers_of_a_declared_site_need_no_token(with_origins, headers, status):
    http = with_origins(ORIGINS).client()
    assert ask(http, headers) == (status, status)
    assert views_of(http) == (2 if status == 202 else 0)
    for site in ("zone", "nobody", "default"):  # without origins all is as it was
        assert ask(http, headers, site)[0] == (401 if "Authorization" not in headers else status)


def test_an_origin_opens_nothing_else(with_origins):
    http = with_origins(ORIGINS).client()
    headers = {"Origin": PAGE, "Referer": f"{PAGE}/"}
    event = json.dumps({"page": "/", "site": "blog"})
    assert http.request("POST", "/events", event, headers).status == 401
    for path in ("/pv?site=blog", "/sites", "/ratelimit/check?policy=x&key=y"):
        response = http.request("GET", path, headers=headers)
        assert response.status == 401 and response.headers["WWW-Authenticate"] == 'Bearer realm="tallyd"'
    assert ask(http, headers, "blog,other")[1] == 403 and ask(http, headers, "blog,zone")[1] == 401
    refused = http.request("POST", "/api/event", json.dumps({"n": "x", "u": "https://x.example/", "d": "other"}), headers)
    assert refused.status == 403 and PAGE in refused.json["detail"]
    pixel = http.request("GET", "/pixel.gif?page=/&site=zone", headers=headers)
    assert pixel.headers["WWW-Authenticate"] == 'Bearer realm="tallyd"' and pixel.headers["X-Tallyd"] == "rejected"
    assert views_of(http) == 0


def test_origins_are_read_again(with_origins, directory):
    tallyd = with_origins("")
    http = tallyd.client()
    assert ask(http, {"Origin": PAGE}) == (401, 401)
    assert http.request("GET", "/pixel.gif", headers={"Origin": PAGE}).status == 401  # before anything is said of the parameters
    (directory / "tallyd.conf").write_text(ORIGINS)
    tallyd.process.send_signal(signal.SIGHUP)
    wait_until(lambda: ask(http, {"Origin": PAGE}) == (202, 202), "the origins are in effect")


@pytest.mark.parametrize("text", ["site.blog.origins = *", "site.blog.origins = https://a.example/", "site.blog.origins = a.example",
                                  "site.blog.origins = https://a.example,,https://b.example", "site.Blog.origins = https://a.example",
                                  "site.blog.origins = https://a.example\nsite.blog.origins = https://b.example"])
def test_origins_that_are_none(start_tallyd, redis, directory, text):
    directory.mkdir(exist_ok=True)
    (directory / "tallyd.conf").write_text(text + "\n")
    tallyd = start_tallyd("--config", directory / "tallyd.conf", redis=redis, wait_ready=False)
    assert tallyd.wait() == 2
    assert "tallyd.conf:" in tallyd.log_text() and "origins" in tallyd.log_text()


def test_a_token_of_one_site_does_not_learn_of_drops_at_another(start):
    """What is dropped is not counted, and yet the token must be for its site."""
    http = start(EVERYTHING, "--ignore-ip", "203.0.113.0/24").client()
    robot, ignored = {"ua": "Googlebot/2.1"}, {"ip": "203.0.113.9"}
    for dropped in (robot, ignored):
        for site, status in (("shop", 202), ("blog", 403)):
            event = {"page": "/", "site": site, **dropped}
            for events in ([event], [{"page": "/", "site": "shop"}, event], [event, {"page": "/", "site": "shop"}]):
                answer = http.request("POST", "/events?bots=drop", json.dumps(events), bearer("t-site"))
                assert answer.status == status, (events, answer)
                assert status == 202 or answer.json["errors"] == [{"pointer": "/site", "detail": "the token is not for site blog"}]
    assert http.request("GET", "/pv?site=shop", headers=bearer("t-site")).json["pv"] == 4
