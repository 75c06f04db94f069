"""Segment's HTTP API: what its SDKs send is counted, once; what is refused, they are told."""

import base64
import gzip
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

from lib.client import query
from lib.clock import rfc3339
from lib.process import ROOT
from lib.proxy import Fault
from lib.tokens import token_line
from lib.waiting import wait_until

NPM = ROOT / "build/npm-segment"
SDKS = {"1.3.0": "Basic", "2.2.1": "writeKey"}  # the versions that run on Debian 12's Node 18, and where the token is
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
OK = {"success": True}


TOKENS = (token_line("t-all", "ingest backend") + token_line("t-read", "read dashboard") + token_line("t-shop", "ingest site=shop shop")
          + token_line("t-two", "ingest site=shop,blog two"))


def page(path="/", **members):
    return {"type": "page", "properties": {"url": f"https://a.example{path}?q=1#f"}, **members}


def send(http, call, body, headers=None, **params):
    if not isinstance(body, (str, bytes)):
        body = json.dumps(body)
    return http.request("POST", f"/v1/{call}" + query(params), body, {"Content-Type": "application/json", **(headers or {})})


def batch(http, *messages, headers=None, top=None, **params):
    return send(http, "batch", {"batch": messages, **(top or {})}, headers, **params)


def basic(user, password=""):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def refused(response, words):
    assert response.status == 400 and response.headers["Content-Type"] == "application/json", response
    assert set(response.json) == {"success", "code", "message"} and response.json["success"] is False
    assert words in response.json["message"], response
    return True


def told(response):
    """What SDKs log of a refusal.  That for Python raises KeyError without `code`, and tries again."""
    phrase = http.HTTPStatus(response.status).phrase if response.status != 413 else "Content Too Large"
    assert response.json["success"] is False and response.json["message"], response
    assert response.json["code"] == phrase.lower().replace(" ", "_")
    return True


def figures(http, site, **params):
    return [http.count(metric, site=site, from_="now-1d", **params) for metric in ("pv", "uv", "ips")]


# What is counted


def test_pages_are_counted(http, site):
    who = {"userId": "u1", "context": {"ip": "192.0.2.1", "userAgent": "Mozilla/5.0"}}
    assert batch(http, page("/a", **who), page("/b", userId=42), site=site).json == OK
    assert send(http, "page", page("", **who), site=site).json == OK  # an empty path is /
    by_path = {"properties": {"path": "/c", "url": None}, "anonymousId": "x"}
    assert send(http, "page", by_path, {"Content-Type": "text/plain"}, site=site).status == 200
    assert send(http, "page", {"properties": {"url": "/relative", "path": "/c"}}, site=site).status == 200
    assert figures(http, site) == [5, 3, 1]  # u1, 42 and x
    assert [figures(http, site, page=p)[0] for p in ("/a", "/b", "/", "/c")] == [1, 1, 1, 2]
    assert http.question("/dau", site=site)["users"] == 2


def test_a_message_counts_when_it_happened(http, site):
    when = rfc3339(int(time.time()) - 7200)
    assert batch(http, page(timestamp=when, messageId=site), site=site).json == OK
    assert http.count("pv", site=site, from_="now-1h") == 0 and figures(http, site)[0] == 1


def test_a_track_is_a_named_event(http, site):
    accepted = http.metric("tallyd_events_accepted_total")
    signup = {"event": "Signup", "userId": "u", "properties": {"plan": [1, {"a": {}}], "path": "/a"}, "context": {"ip": "192.0.2.1"}}
    assert send(http, "track", signup, site=site).json == OK
    assert batch(http, {"type": "track", **signup}, {"type": "track", "event": "Signup", "userId": 7}, page("/a", userId="u"),
                 {"type": "track", "event": "Outbound \\ \u00fc"}, {"type": "track", "event": "x" * 128}, site=site).json == OK
    assert figures(http, site, event="Signup") == [3, 2, 1]
    assert figures(http, site) == figures(http, site, page="/a") == [1, 1, 0]  # of the page view alone
    rows = http.question("/breakdown", site=site, by="event", from_="now-1h")["rows"]
    assert {row["value"]: row["pv"] for row in rows} == {"Signup": 3, "Outbound \\ \u00fc": 1, "x" * 128: 1}
    assert http.question("/dau", site=site)["users"] == 2
    assert http.metric("tallyd_events_accepted_total") == accepted + 6


def test_who_a_visitor_is(http, site):
    """anonymousId, else userId, else address and agent; the user beside it is active."""
    assert batch(http, page(anonymousId="a", userId="u1"), page(anonymousId="a", userId="u2", context={"ip": "192.0.2.1"}),
                 page(userId="u1", anonymousId=None), page(userId="u1", anonymousId=""), page(context={"ip": "192.0.2.1"}),
                 {"type": "track", "event": "e", "anonymousId": "a"}, {"type": "track", "event": "e", "anonymousId": "b"}, site=site).json == OK
    assert figures(http, site) == [5, 3, 1] and figures(http, site, event="e") == [2, 2, 0]
    assert http.question("/dau", site=site)["users"] == 2


def test_what_is_no_event_is_answered_and_not_counted(http, site):
    before = http.metric('tallyd_events_dropped_total{reason="other"}')
    for call in ("identify", "alias", "group", "screen"):
        assert send(http, call, {"userId": "u", "traits": {"email": "a@b.example"}}, site=site).json == OK
        assert batch(http, {"type": call, "userId": "u"}, {"type": call, "event": "e", "anonymousId": "a"}, site=site).json == OK
    assert batch(http, site=site).json == OK
    assert figures(http, site) == [0, 0, 0]
    assert http.question("/breakdown", site=site, by="event", from_="now-1d")["total"] == 0
    assert http.metric('tallyd_events_dropped_total{reason="other"}') == before + 12


def test_the_first_letter_of_a_call(http, site):
    """What @segment/analytics-next (a message as text/plain) and analytics-kotlin (a batch, packed) ask for."""
    plain = {"Content-Type": "text/plain"}
    for call in ("p", "t", "i", "a", "g", "s"):
        assert send(http, call, {**page("/a"), "event": "Signup", "anonymousId": "x", "writeKey": "k"}, plain, site=site).json == OK
    packed = gzip.compress(json.dumps({"batch": [page("/b", anonymousId="y"), {"type": "screen"}], "writeKey": "k"}).encode())
    assert send(http, "b", packed, {**plain, "Content-Encoding": "gzip"}, site=site).json == OK
    assert figures(http, site) == [2, 2, 0] and figures(http, site, event="Signup") == [1, 1, 0]
    for call in ("x", "B", "pa"):
        assert send(http, call, page(), site=site).status == 404
    refused(batch(http, {**page(), "type": "p"}, site=site), "type: must be page, track")


def test_gzip(http, site):
    body = gzip.compress(json.dumps({"batch": [page()] * 3}).encode())
    assert send(http, "batch", body, {"Content-Encoding": "gzip"}, site=site).json == OK
    assert figures(http, site)[0] == 3


def test_robots_and_ones_own_visits(start_tallyd, redis, site):
    http = start_tallyd("--bots", "drop", "--ignore-ip", "192.0.2.0/24", redis=redis).client()
    messages = [page(context={"userAgent": GOOGLEBOT}), page(context={"ip": "192.0.2.7"}), page()]
    assert batch(http, *messages, site=site).json == OK
    assert batch(http, *messages[:2], site=site).json == OK
    assert figures(http, site)[0] == 1
    assert [http.metric(f'tallyd_events_dropped_total{{reason="{reason}"}}') for reason in ("robot", "ignored")] == [2, 2]


# Once


def test_a_batch_that_is_sent_again_counts_once(http, site):
    messages = [page(f"/{i}", messageId=f"{site}-{i}") for i in range(3)]
    first = batch(http, *messages, top={"sentAt": "2026-11-22T00:00:00Z"}, site=site)
    again = batch(http, *messages, top={"sentAt": "2026-11-22T00:00:09Z"}, site=site)
    assert first.json == again.json == OK
    assert first.headers["Idempotency-Replayed"] is None and again.headers["Idempotency-Replayed"] == "true"
    assert figures(http, site)[0] == 3
    assert batch(http, *messages[:2], site=site).headers["Idempotency-Replayed"] is None  # another batch
    for _ in range(2):  # one message without its id: no key
        batch(http, *messages, page(), site=site)
    assert figures(http, site)[0] == 5 + 8
    for _ in range(2):
        send(http, "page", page(messageId=f"{site}-x"), site=site)
    assert figures(http, site)[0] == 5 + 8 + 1


def test_the_same_messages_for_another_site(http, site):
    """A source that is sent to two sites is not the first site's repeat."""
    messages, other = [page(messageId=site)], f"{site[:50]}-other"
    for name in (site, other):
        assert batch(http, *messages, site=name).headers.get("Idempotency-Replayed") is None
        assert batch(http, *messages, site=name).headers["Idempotency-Replayed"] == "true"
        assert figures(http, name)[0] == 1


def test_a_repeat_over_the_limit_gets_its_first_answer(start_tallyd, redis, site):
    http = start_tallyd("--ingest-limit", "2/1h", "--ingest-limit-by", "site", redis=redis).client()
    messages = [page(messageId=f"{site}-{i}") for i in range(2)]
    assert batch(http, *messages, site=site).status == 200
    limited = batch(http, page(messageId=f"{site}-2"), site=site)
    assert limited.status == 429 and told(limited) and limited.headers["Retry-After"]
    assert batch(http, *messages, site=site).headers["Idempotency-Replayed"] == "true"
    assert figures(http, site)[0] == 2


def test_an_answer_that_is_lost(start_redis, start_proxy, start_tallyd, site):
    redis = start_redis()
    proxy = start_proxy(redis)
    http = start_tallyd(redis=proxy).client()
    messages = [page(messageId=f"{site}-{i}") for i in range(3)]
    assert batch(http, page(messageId=f"{site}-warm"), site=site).status == 200
    proxy.arm(Fault("reply-before", match=lambda args: args[0] == b"EVALSHA" and any(b"log" in a for a in args)))
    statuses = []

    def succeeds():
        statuses.append(batch(http, *messages, site=site).status)
        return statuses[-1] == 200

    wait_until(succeeds, "the batch is counted")
    assert figures(http, site)[0] == 4, statuses


# What is refused


@pytest.mark.parametrize("member, words", [
    ({"type": "view"}, "type"), ({"type": None}, "type"), ({"type": "batch"}, "type"), ({"type": 1}, "type"),
    ({"type": "track"}, "event"), ({"type": "track", "event": ""}, "event"), ({"type": "track", "event": 1}, "event"),
    ({"type": "track", "event": "x" * 129}, "event"), ({"type": "track", "event": "a\nb"}, "event"),
    ({"anonymousId": "a" * 257}, "anonymousId"), ({"anonymousId": 7}, "anonymousId"), ({"anonymousId": "\x7f"}, "anonymousId"),
    ({"properties": {}}, "properties.url"), ({"properties": None}, "properties.url"), ({"properties": {"url": "a"}}, "properties.url"),
    ({"properties": {"url": 1}}, "properties.url"), ({"properties": {"path": "p" * 2049}}, "properties.path"),
    ({"properties": {"path": "/\n"}}, "properties.path"), ({"properties": {"url": "https://a/\x7f"}}, "properties.url"),
    ({"userId": "u" * 257}, "userId"), ({"userId": 1.5}, "userId"), ({"userId": ["u"]}, "userId"), ({"userId": "\t"}, "userId"),
    ({"context": {"ip": "localhost"}}, "context.ip"), ({"context": {"ip": 1}}, "context.ip"),
    ({"context": {"userAgent": "a" * 16385}}, "context.userAgent"),
    ({"timestamp": "yesterday"}, "timestamp"), ({"timestamp": "2026-11-22T00:00:00"}, "timestamp"),
    ({"timestamp": "0000-01-01T00:00:00Z"}, "timestamp"), ({"timestamp": "9999-12-31T23:59:59Z"}, "timestamp"),
    ({"timestamp": 1}, "timestamp"), ({"messageId": 1}, "messageId"),
])
def test_a_bad_message(http, site, member, words):
    before = http.metric("tallyd_events_rejected_total")
    bad = page(**{"userId": "u", **member})
    assert refused(batch(http, bad, site=site), f"message 0: {words}")
    partial = batch(http, page(), bad, page(), site=site)
    assert partial.status == 200 and partial.json == {"success": True, "rejected": 1, "message": partial.json["message"]}
    assert partial.json["message"].startswith(f"message 1: {words}")
    assert figures(http, site)[0] == 2
    assert http.metric("tallyd_events_rejected_total") == before + 2


@pytest.mark.parametrize("body, words", [
    (b"", "line 1, column 1"), (b"[]", "an object is expected"), (b"{}", "batch is missing"), (b'{"batch":{}}', "batch must be an array"),
    (b'{"batch":[{}', "line 1, column 13"), (b'{"batch":[]}x', "line 1, column 13"), (b'{"batch":[],"batch":[]}', "twice"),
    (b'{"batch":[1]}', "must be an object"), (b'\xef\xbb\xbf{"batch":[]}', "line 1"), (b'{"batch":[{"a":' + b"[" * 100, "line 1"),
    (b'{"batch":[{"type":"page","properties":{"path":"/\xff"}}]}', "text"), (b'{"batch":[{"type":"page","properties":{"path":"/\\u0000"}}]}', "text"),
    (b'{"batch":[{"type":"page","userId":"\\ud800","properties":{"path":"/"}}]}', "text"), (b"\0" * 100, "line 1"),
])
def test_a_bad_body(http, site, body, words):
    assert refused(send(http, "batch", body, site=site), words)
    assert figures(http, site)[0] == 0


def test_too_much(http, site):
    assert refused(batch(http, *[page()] * 10001, site=site), "at most 10000 messages")
    assert batch(http, *[page()] * 10000, site=site).json == OK
    too_large = send(http, "batch", b" " * (9 << 20), site=site)
    assert too_large.status == 413 and told(too_large)
    assert figures(http, site)[0] == 10000


def test_other_paths_parameters_and_types(http, site):
    for path in ("/v1/other", "/v1/", "/v1/batch/x", "/v1"):
        response = http.request("POST", path, "{}")
        assert response.status == 404 and response.json["message"]
    assert told(http.request("POST", "/v1/other", "{}"))
    for method, path in (("GET", "/v1/batch"), ("DELETE", "/v1/other")):
        answer = http.request(method, path)
        assert answer.status == 405 and answer.headers["Allow"] == "POST" and told(answer)
    for method in ("POST", "GET"):
        answer = http.request(method, "/v1/batch/")
        assert answer.status == 404 and told(answer)
    for name, value in (("sites", site), ("site", "A")):
        assert refused(send(http, "page", page(), **{name: value}), f"{name}: ")
    for headers, status in (({"Content-Type": "application/x-www-form-urlencoded"}, 415), ({"Content-Encoding": "br"}, 415),
                            ({"Content-Encoding": "gzip"}, 400)):
        response = send(http, "page", page(), headers, site=site)
        assert response.status == status and told(response)


def test_sites_that_nobody_declared(start_tallyd, redis, site):
    http = start_tallyd("--only-declared-sites", "on", redis=redis).client()
    assert refused(batch(http, page(), site=site), "site")
    assert figures(http, site)[0] == 0
    assert send(http, "identify", {"userId": "u"}, site=site).json == OK, "no site counts it"


def test_without_redis(start_redis, start_tallyd):
    redis = start_redis()
    http = start_tallyd(redis=redis).client()
    redis.kill()
    response = batch(http, page(messageId="m"))
    assert response.status in (503, 504) and told(response)


# Who may send


@pytest.fixture
def guarded(start_tallyd, redis, directory):
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text(TOKENS)
    return start_tallyd("--tokens", directory / "tokens", redis=redis).client()


@pytest.mark.parametrize("token, params, status", [
    ("t-all", {}, 200), ("t-all", {"site": "blog"}, 200), ("t-shop", {}, 200), ("t-shop", {"site": "shop"}, 200), ("t-shop", {"site": "blog"}, 403),
    ("t-two", {}, 403), ("t-two", {"site": "blog"}, 200), ("t-read", {}, 403), ("t-wrong", {}, 401), ("", {}, 401), ("t" * 300, {}, 401),
])
def test_a_token_in_three_places(guarded, token, params, status):
    answers = [batch(guarded, page(), headers=basic(token), **params), batch(guarded, page(), headers=basic(token, "x"), **params),
               batch(guarded, page(), top={"writeKey": token}, **params), send(guarded, "page", page(writeKey=token), **params),
               batch(guarded, page(), headers={"Authorization": f"Bearer {token}"}, **params)]
    for answer in answers:
        assert answer.status == status, answer
        assert answer.json == OK if status == 200 else told(answer)
        if status == 401:
            assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="tallyd"')


def test_no_token_and_tokens_that_cannot_be_read(guarded):
    assert batch(guarded, page()).status == send(guarded, "batch", "[").status == 401
    good = {"writeKey": "t-all"}
    for value in ("Basic", "Basic ", "Basic !", "Basic dA==", "Digest x", "", "Basic " + "QUFB" * 200):
        assert batch(guarded, page(), headers={"Authorization": value}, top=good).status == 401, value
    assert batch(guarded, page(), headers=basic("t-all"), top={"writeKey": "t-wrong"}).status == 200  # the header comes first
    assert guarded.request("POST", "/events", '{"page":"/"}', basic("t-all")).status == 401  # Basic is Segment's alone


def test_the_site_is_that_of_the_token(guarded, http):
    before = {name: http.count("pv", site=name, from_="now-1h") for name in ("shop", "default", "blog")}
    assert batch(guarded, page(), headers=basic("t-shop")).status == 200
    assert batch(guarded, page(), top={"writeKey": "t-all"}).status == 200
    assert batch(guarded, page(), headers=basic("t-two"), site="blog").status == 200
    assert all(http.count("pv", site=name, from_="now-1h") == n + 1 for name, n in before.items())


def test_a_repeat_belongs_to_its_token(guarded, site):
    message = page(messageId=site)
    replayed = [batch(guarded, message, headers=basic(t), site="shop").headers["Idempotency-Replayed"]
                for t in ("t-all", "t-two", "t-all", "t-two")]
    assert replayed == [None, None, "true", "true"]


# The official SDK


@pytest.fixture(scope="module", params=SDKS)
def sdk(request):
    """The directory of npm's @segment/analytics-node, fetched once."""
    home = NPM / request.param
    module = home / "node_modules/@segment/analytics-node"
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    complete = home / "package-lock.json"  # npm writes it last
    if not complete.exists():
        if shutil.which("npm") is None:
            pytest.skip("npm is missing")
        home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(["npm", "install", "--prefix", home, "--ignore-scripts", "--no-audit", "--no-fund",
                               f"@segment/analytics-node@{request.param}"],
                              capture_output=True, text=True, timeout=120, check=False,
                              env={**os.environ, "npm_config_fetch_retries": "0"})
        if done.returncode != 0:
            pytest.skip("npm could not fetch @segment/analytics-node")
    return module


PROGRAM = """
const {Analytics} = require(process.argv[1]);
const [port, key, n] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const analytics = new Analytics({writeKey: key, host: `http://127.0.0.1:${port}`, flushAt: 20, flushInterval: 50, maxRetries: 5});
let errors = 0;
analytics.on('error', (e) => { errors++; console.error(e.reason ? e.reason.message : e.code); });
for (let i = 0; i < n; i++) {
  analytics.page({userId: `u${i % 7}`, properties: {url: `https://a.example/p${i % 3}?x=${i}`},
    context: {ip: '192.0.2.1', userAgent: 'Mozilla/5.0'}, timestamp: new Date()});
  analytics.track({anonymousId: `a${i % 50}`, event: 'Signup', properties: {plan: 'pro'}});
}
analytics.identify({userId: 'u1', traits: {email: 'a@b.example'}});
analytics.closeAndFlush(); // what fails is told later
process.on('exit', () => process.stdout.write(JSON.stringify({errors})));
"""


class LosesAnswers(http.server.ThreadingHTTPServer):
    """Passes requests on to tallyd, and loses the first answers: the connection is cut in their place."""

    def __init__(self, tallyd, n):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = tallyd.client().request("POST", self.path, body, {"Content-Type": self.headers["Content-Type"]})
                self.server.bodies.append(body)
                if len(self.server.bodies) <= n:
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies = []
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


def run_sdk(sdk, server, key, n):
    done = subprocess.run(["node", "-e", PROGRAM, sdk, str(server.port), key, str(n)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["errors"], done.stderr


def test_the_node_sdk_counts(sdk, start_redis, start_tallyd, directory):
    redis = start_redis()
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text(TOKENS)
    tallyd = start_tallyd("--tokens", directory / "tokens", redis=redis)
    beside = start_tallyd(redis=redis).client()
    assert run_sdk(sdk, tallyd, "t-shop", 100) == (0, "")
    assert figures(beside, "shop") == [100, 7, 1] and figures(beside, "shop", page="/p0")[0] == 34
    times, users, visits = figures(beside, "shop", event="Signup")
    assert (times, visits) == (100, 0) and abs(users - 50) <= 3  # two of fifty may share a register: 7 runs in 100
    errors, said = run_sdk(sdk, tallyd, "t-wrong", 1)
    assert errors >= 1 and "401" in said
    assert figures(beside, "shop")[0] == 100


def test_the_node_sdk_counts_once_though_answers_are_lost(sdk, start_redis, start_tallyd, cleanup):
    tallyd = start_tallyd(redis=start_redis())
    between = LosesAnswers(tallyd, 3)
    cleanup.append(between.close)
    assert run_sdk(sdk, between, "any", 30) == (0, "")
    ids = [tuple(m["messageId"] for m in json.loads(body)["batch"]) for body in between.bodies]
    assert len(ids) > len(set(ids)) and len(between.bodies) == len(set(between.bodies))  # sent again, with other bytes
    assert figures(tallyd.client(), "default")[0] == figures(tallyd.client(), "default", event="Signup")[0] == 30
