"""The server and openapi.yaml say the same: every operation, parameter, status, header and body."""

import gzip
import json
import re

import pytest

from description import Description, Validator
from lib.client import Response, query
from lib.process import ROOT, Redis, Tallyd
from lib.proxy import Fault, Proxy
from lib.raw import Raw
from lib.tokens import token_line
from lib.waiting import wait_until

TALLYD_ARGS = ("--max-body", "1MiB", "--config", ROOT / "tests/contract/tallyd.conf")

API = Description((ROOT / "openapi.yaml").read_text(encoding="utf-8"))
OPERATIONS = {operation.id: operation for operation in API.operations}
POST_EVENTS = OPERATIONS["postEvents"]
PLAUSIBLE, PIXEL, SEGMENT = OPERATIONS["postPlausibleEvent"], OPERATIONS["getPixel"], OPERATIONS["postSegment"]
TAKES_ANY_QUERY = {"getPixel", "getScript"}
POST_ROLLUP = OPERATIONS["postRollup"]
# The dashboard's and Grafana's have rules of their own: test_dashboard_files.py, test_grafana_api.py
PLAIN = [o for o in API.operations if not {"Dashboard", "Grafana"} & set(o.tags)]
GETS = [o for o in PLAIN if o.method == "GET" and not any(o.needs(p) for p in o.parameters)]
EVENT = {"$ref": "#/components/schemas/Event"}

each_operation = pytest.mark.parametrize("operation", PLAIN, ids=lambda o: o.id)
each_get = pytest.mark.parametrize("operation", GETS, ids=lambda o: o.id)


def ask(http, operation, params=None, status=None, body=None, headers=None):
    """One request; its answer, which the document allows.  Another test may have deleted the site, and that goes on for seconds."""
    if body is None:
        body = b"[]" if operation is POST_EVENTS else operation.example_body()
    target = operation.target + query({**operation.required(), **(params or {})})

    def answered():
        got = http.request(operation.method, target, body, headers or {})
        return got if got.status != 503 or b"is being deleted" not in got.body else None

    response = API.check(operation, wait_until(answered, "the site's deletion is over", 20))
    assert status is None or response.status == status, response
    return response


def target_of(operation, **params):
    """Path and query of a good question."""
    return operation.target + query({**operation.required(), **params})


@pytest.fixture(autouse=True)
def a_filter(tallyd):
    """The one of the examples is there, and as it is described."""
    http = tallyd.client()
    http.request("DELETE", OPERATIONS["deleteFilter"].target)
    http.request("PUT", OPERATIONS["putFilter"].target, b"{}")
    http.close()


def raw_answer(tallyd, text, head_only=False):
    """The answer to a request by hand."""
    with Raw(tallyd.port) as raw:
        raw.try_send(text)
        status, headers, body = raw.receive(head_only)
    return Response(status, Headers(headers), body)


class Headers(dict):
    """Of Raw, whose names are in lower case."""

    def __getitem__(self, name):
        return super().__getitem__(name.lower())


def request_text(operation, extra="", method=None, target=None):
    length = "Content-Length: 2\r\n" if operation.method == "POST" and "Content-Length" not in extra else ""
    return (f"{method or operation.method} {target or target_of(operation)} HTTP/1.1\r\nHost: x\r\n{extra}{length}\r\n"
            + ("[]" if length else ""))


# The document itself


def test_every_example_is_valid():
    examples = list(API.examples())
    assert len(examples) > 50
    assert not [(place, faults) for place, schema, value in examples if (faults := API.faults(schema, value))]


def test_every_schema_is_one():
    schemas = list(API.schemas())
    assert len(schemas) > 100
    for _, schema in schemas:
        Validator.check_schema(schema)


def test_answers_have_no_members_that_are_not_listed():
    open_ones = [place for place, schema in API.schemas()
                 if schema.get("type") == "object" and schema.get("additionalProperties") is not False]
    in_json = [place for place in open_ones if place.startswith("#/paths//openapi.json/")]
    assert set(open_ones) - set(in_json) == {
        f"#/components/schemas/{name}" for name in ("Event", "GrafanaBody", "PlausibleEvent", "SegmentMessage", "SegmentBatch")}


def test_headers_of_every_answer_are_said_once():
    """They stand in x-every-answer; an answer without one of them fails wherever an answer is checked."""
    assert API.every_answer.keys() == {"X-Request-Id", "X-Content-Type-Options"}
    assert all(header["required"] for header in API.every_answer.values())
    assert not [place for place, node in API.nodes() if place.endswith("/headers") and place != "#/x-every-answer/headers"
                and node.keys() & API.every_answer.keys()]


@each_operation
def test_examples_of_problems_have_their_status(operation):
    for status, response in operation.responses.items():
        media = response.get("content", {}).get("application/problem+json")
        assert (media is not None) == (status >= 400) or response["name"] == "Image"
        media = media or {}
        for example in [media["example"]] if "example" in media else [e["value"] for e in media.get("examples", {}).values()]:
            assert (example["status"], example["message"]) == (status, example["detail"])


def test_version_is_the_programs(tallyd):
    assert API.document["info"]["version"] == tallyd.version


def test_described_as_the_file_is(http):
    response = http.get("/openapi.yaml")
    assert response.status == 200 and response.headers["Content-Type"] == "application/yaml"
    assert response.body == (ROOT / "openapi.yaml").read_bytes()
    response = http.get("/openapi.json")
    assert response.status == 200 and response.headers["Content-Type"] == "application/json"
    assert response.json == API.document


# Paths and methods


def test_paths_are_the_routes(http):
    """/metrics has a histogram for every route of the program, asked for or not."""
    routes = re.findall(r'^tallyd_http_request_duration_seconds_count\{method="(\w+)",route="([^"]+)"\}',
                        http.get("/metrics").body.decode(), re.M)
    assert sorted(routes) == sorted((o.method, o.path) for o in API.operations)


def test_operation_ids_are_the_tables():
    entries = [re.findall(r'[{(]HTTP_(\w+),\s+"(/[^"]*)",[\s\\]+"(\w+)",', path.read_text(encoding="utf-8"))
               for layer in ("handlers", "service") for path in (ROOT / layer).rglob("*.[ch]")]
    assert sorted(sum(entries, [])) == sorted((o.method, o.path, o.id) for o in API.operations)
    assert len(OPERATIONS) == len(API.operations)


@each_operation
def test_a_path_beside_it_is_404(http, operation):
    own = operation.target
    for path in (own + "/", own + "x", own.upper(), "/" + own, own[:2] + "%" + own[2:], own[:-1], "/"):
        if any(re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(known)), path) for known in API.document["paths"]):
            continue
        response = http.request("GET", path)
        assert response.status == 404, (path, response)
        assert not API.faults({"$ref": "#/components/schemas/Problem"}, response.json)
        API.check_headers({}, response.headers, path)


@pytest.mark.parametrize("path", API.document["paths"])
def test_other_methods_are_405(http, path):
    item = API.document["paths"][path]
    operations = [o for o in API.operations if o.path == path]
    takes = {o.method for o in operations} | ({"HEAD"} if "get" in item else set())
    for method in {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"} - takes:
        response = http.request(method, operations[0].target)
        assert response.status == 405, (method, response)
        assert set(re.split(", *", response.headers["Allow"])) == takes
        API.check(operations[0], response, head=method == "HEAD")


@each_get
def test_head_is_get_without_the_body(tallyd, operation):
    for target, status in ((target_of(operation), 200), (target_of(operation, x=1), 200 if operation.id in TAKES_ANY_QUERY else 400)):
        head = raw_answer(tallyd, request_text(operation, method="HEAD", target=target), head_only=True)
        got = raw_answer(tallyd, request_text(operation, target=target))
        assert head.status == got.status == status
        API.check(operation, head, head=True)
        assert head.headers.keys() == got.headers.keys()
        assert head.headers["Content-Type"] == got.headers["Content-Type"]
        if operation.path not in ("/metrics", "/hotkeys"):  # their numbers move
            assert abs(int(head.headers["Content-Length"]) - len(got.body)) <= 8
        assert got.body


# Statuses


@pytest.fixture(scope="module")
def without_redis():
    """A tallyd that has lost its Redis."""
    redis = Redis().start()
    daemon = Tallyd("--request-timeout", "1s", *TALLYD_ARGS[2:], redis=redis, name="deserted")
    try:
        daemon.start()
        redis.kill()
        wait_until(lambda: daemon.client().get("/readyz").status == 503, "it is noticed")
        yield daemon
    finally:
        daemon.stop()
        redis.stop()


@pytest.fixture(scope="module")
def without_answers():
    """A tallyd whose Redis takes everything and answers nothing; `beside` is another one that is answered."""
    redis = Redis(appendonly=True).start()
    proxy = Proxy(redis.directory, redis.path)
    daemon = Tallyd("--request-timeout", "1s", "--readers", "1", *TALLYD_ARGS[2:], redis=proxy, name="unheard")
    try:
        daemon.start()
        daemon.proxy = proxy
        daemon.client().count("pv")  # the reader is connected
        daemon.beside = Tallyd(redis=redis, name="beside")
        daemon.beside.start()
        daemon.redis = redis
        assert daemon.client().post(b"[]", headers={"Idempotency-Key": "first"}).status == 202  # all connections stand
        proxy.hold_replies()
        yield daemon
    finally:
        proxy.hold_replies(False)
        daemon.beside.stop()
        daemon.stop()
        proxy.close()
        redis.stop()


SCOPES = ("ingest", "read", "admin")


@pytest.fixture(scope="module")
def guarded(redis):
    """A tallyd with a token for each scope, named like it, and for each on site a alone: <scope>-a."""
    daemon = Tallyd("--tokens", "tokens", "--metrics-token", "--ingest-limit", "1/366d", redis=redis, name="guarded")
    daemon.directory.mkdir(exist_ok=True)
    lines = [token_line(name, f"{scope} {site}{name}")
             for scope in SCOPES for name, site in ((scope, ""), (scope + "-a", "site=a "))]
    (daemon.directory / "tokens").write_text("".join(lines))
    try:
        daemon.spawn(daemon.command_line())
        daemon.wait_ready_line()
        yield daemon
    finally:
        daemon.stop()


def refused(guarded, operation):
    """What an operation answers to tokens that are none, or not for it."""
    def send(token=None):
        extra = f"Authorization: Bearer {token}\r\n" if token else ""
        return raw_answer(guarded, request_text(operation, extra))

    if not operation.scope:
        assert send().status == send("nobody's").status == 200
        return
    yield 401, send()
    yield 401, send("nobody's")
    if operation is POST_EVENTS:
        body = b'[{"page":"/"},{"page":"/"}]'  # one is all that ever fits
        yield 429, guarded.client().post(body, headers={"Authorization": "Bearer ingest"})
    if operation is PLAUSIBLE:
        body = b'{"n":"pageview","u":"https://x/","d":"a,b"}'
        yield 429, guarded.client().request("POST", operation.path, body, {"Authorization": "Bearer ingest"})
    if operation is SEGMENT:
        body = b'{"batch":[%s,%s]}' % (MESSAGE, MESSAGE)
        yield 429, guarded.client().request("POST", operation.target, body, {"Authorization": "Bearer ingest"})
    if operation is PIXEL:
        bearer = {"Authorization": "Bearer ingest-a", "User-Agent": "Mozilla/5.0"}
        yield 202, guarded.client().request("GET", "/pixel.gif?page=/&site=a", headers=bearer)
        yield 429, guarded.client().request("GET", "/pixel.gif?page=/&site=a", headers=bearer)
    for scope in SCOPES:
        response = send(scope)
        if scope != operation.scope:
            yield 403, response
            assert operation is PIXEL or operation.scope in response.json["detail"]
        else:
            assert response.status not in (401, 403), response


COUNT_STATUSES = {
    200: [{}, {"explain": "1"}, {"page": ["/a", "/b"], "explain": "true"}, {"from": "now-40d", "round": "outer"}],
    400: [{"from": "now", "to": "now-1h"}, {"from": "1970-01-02", "to": "1970-01-01"}],
    404: [{"pageset": "nobodys"}, {"pageset": "nobodys", "page": "/a"}],
    422: [{"from": "2020-01-01T10:07:00Z", "to": "2020-01-01T10:30:00Z"}, {"from": "1970-01-01", "to": "9999-12-31"}],
}
FUNNEL = b'{"key":"k","algorithm":"funnel","limit":1000,"period_s":1,"burst":1000}'
NEVER = b'{"key":"k","algorithm":"sliding","limit":1,"period_s":1,"cost":2}'
LIMITS = {  # operation: status: [(query string, body)..]
    "postRateLimit": {200: [("", FUNNEL), ("", b'{"key":"k","policy":"login","cost":0}')], 400: [("", b""), ("", b"[")],
                      415: [], 422: [("", b"{}"), ("", b'{"key":"k","policy":"no"}')], 429: [("", NEVER)] + [("", b'{"key":"k","policy":"several"}')] * 3},
    "checkRateLimit": {204: [("?key=k&policy=login", None)], 400: [("", None), ("?key=k", None), ("?policy=login", None)],
                       422: [("?key=k&policy=no", None)], 429: [("?key=k&policy=used", None)]},
    "deleteRateLimit": {204: [("?key=k", None), ("?key=k&policy=login", None)], 400: [("", None)],
                        422: [("?key=k&policy=no", None)]},
}
WINDOW_OF_DAYS = {
    200: [{}, {"from": "now-40d"}, {"from": "now-3d", "to": "now-1d"}],
    400: [{"from": "now", "to": "now-3d"}, {"from": "1970-01-02", "to": "1970-01-01"}],
    422: [{"from": "2000-01-01", "to": "2000-01-02"}, {"from": "1970-01-01", "to": "9999-12-31"}],
}
PAGE_SET = b'{"pages":["/a","/b"]}'
PAGE_SETS = {  # in this order
    "putPageSet": {201: [("?site=new", PAGE_SET)], 200: [("?site=new", PAGE_SET)],
                   400: [("?site=new", b""), ("?site=new", b'{"pages":["/a"],"pages":["/b"]}')],
                   422: [("", b"[]"), ("", b'{"pages":[]}'), ("", b'{"pages":["/a"],"x":1}'), ("", b'{"pages":["/a",1]}'), ("", b'{"pages":["a\\n"]}')]},
    "getPageSet": {200: [("?site=kept", None)], 404: [("?site=nobodys", None)]},
    "deletePageSet": {204: [("?site=kept", None)], 404: [("?site=kept", None)]},
}
STATUSES = {
    "getPages": {200: [*COUNT_STATUSES[200], {"by": "uv"}, {"prefix": "/none"}],
                 **{status: COUNT_STATUSES[status] for status in (400, 404, 422)}},
    "getOverlap": {status: [{"page": ["/a"] if "pageset" in params else ["/a", "/b"], **params} for params in questions
                            if "page" not in params] for status, questions in COUNT_STATUSES.items()},
    "getBreakdown": {200: [{"by": "event"}, {"by": "event", "metric": "uv", "explain": "1"}, {"by": "event", "step": "1h"}], 400: [{}, {"by": "colour"}],
                     422: [{"by": "event", **params} for params in COUNT_STATUSES[422]]},
    "getSites": {200: [{}, {"from": "now-3h"}], 400: [{"from": "now", "to": "now-1h"}],
                 422: [{"from": "2020-01-01T10:07:00Z", "to": "2020-01-01T10:30:00Z"}]},
    "getHotkeys": {200: [{}, {"limit": 3}]},
    "getDau": {200: [*WINDOW_OF_DAYS[200], {"date": "9999-12-31"}], 400: [*WINDOW_OF_DAYS[400], {"date": "2026-11-20", "to": "now"}],
               422: [*WINDOW_OF_DAYS[422], {"date": "2000-01-01"}]},
    "getActive": WINDOW_OF_DAYS,
    "getActiveUsers": WINDOW_OF_DAYS,
    "getFrequency": WINDOW_OF_DAYS,
    "getFunnel": {status: [{"step": ["a", "b"], **params} for params in questions] for status, questions in WINDOW_OF_DAYS.items()},
    "getUserActivity": WINDOW_OF_DAYS,
    "getRetention": {200: [{"cohort": "9999-12-31", "period": "month"}], 400: [{"cohort": "now"}], 422: [{"cohort": "2000-01-01"}]},
    "deleteUser": {200: [{}, {}]},
    "deleteUserActivity": {204: [{"action": "a", "date": "2026-11-20"}], 400: [{}, {"action": "a"}, {"date": "2026-11-20"}],
                           422: [{"action": "a", "date": "2000-01-01"}]},
}
POST_STATUSES = {
    202: [b'{"page":"/"}', b'{"event":"signup"}', b'{"user":"u","actions":["checkin"]}', b'[{"page":"/"},{"page":""}]', b"[]"],
    400: [b"", b"{", b'"text"', b"\xef\xbb\xbf[]", b"[" * 33 + b"]" * 33],
    413: [b"[" + b'{"page":"/"},' * 10_000 + b'{"page":"/"}]', b" " * (1 << 20) + b"[]"],
    422: [b'{"page":""}', b"[1]", b'[{"user":"u"},{"page":"/","ts":1e12345}]'],
}


def everywhere(tallyd, operation):
    """What any operation answers to requests that are bad for any."""
    def send(extra, **more):
        return raw_answer(tallyd, request_text(operation, extra, **more))

    if operation.id not in TAKES_ANY_QUERY:
        yield 400, send("", target=target_of(operation, nothing=1))
    yield 400, send("Host: x\r\n")
    yield 405, send("", method="PATCH")
    yield 413, send("Content-Length: 99999999\r\n")
    if operation.body and operation not in (POST_EVENTS, PLAUSIBLE, SEGMENT):
        yield 415, send("Content-Type: text/plain\r\n")
    if operation.body:
        yield 415, send("Content-Encoding: br\r\n")
    yield 431, send("A:\r\n" * 257)


def good_and_bad(http, operation):
    """What an operation answers to its own requests."""
    http.accept({"page": "/"})  # where there is no site, no window is asked for
    if operation.id in LIMITS:
        for policy in ("used", "several"):
            http.request("GET", f"/ratelimit/check?key=k&policy={policy}")
        for status, requests in LIMITS[operation.id].items():
            for target, body in requests:
                yield status, http.request(operation.method, operation.path + target, body)
        return
    if operation.id in PAGE_SETS:
        http.request("PUT", "/pagesets/landing?site=kept", PAGE_SET)
        http.request("DELETE", "/pagesets/landing?site=new")
        for status, requests in PAGE_SETS[operation.id].items():
            for target, body in requests:
                yield status, http.request(operation.method, operation.target + target, body)
        return
    if operation is POST_EVENTS:
        for status, bodies in POST_STATUSES.items():
            for body in bodies:
                yield status, http.post(body)
        yield 422, http.post(b'[{"page":"/"},{"page":""}]', strict="1")
        yield 422, http.post(b'{"page":"/"}', dedupe="body")
        yield 202, http.post(b'[{"page":"/","ua":"Somebot/1.0"},{"page":"/"}]', bots="drop")
        yield 202, http.post(b'[{"page":"/"},{"user":"first","actions":["checkin","active"]}]', first="1")
        yield 415, http.post(b"[]", content_type="text/plain")
        yield 415, http.post(b"[]", headers={"Content-Encoding": "br"})
        yield 400, http.post(b"[]", headers={"Content-Encoding": "gzip"})
        return
    if operation in (PLAUSIBLE, PIXEL, SEGMENT):
        for status, method, target, body, headers in BROWSERS[operation.id]:
            yield status, http.request(method, target, body, headers)
        return
    if "Filters" in operation.tags:
        yield from filters(http, operation)
        return
    if operation.id in DELETIONS:
        wait_until(lambda: http.post({"site": "left", "page": "/"}).status == 202, "what another operation deleted is gone")
        for status, target in DELETIONS[operation.id]:
            yield status, http.request(operation.method, target)
        return
    first = 204 if operation.id == "deleteUserActivity" else 200
    yield first, http.request(operation.method, operation.target + query(operation.required()))
    if operation.id == "getScript":
        yield 304, http.request("GET", operation.target, headers={"If-None-Match": "*"})
    if operation.id == "getRetention":
        yield 400, http.request(operation.method, operation.target)
    for status, questions in STATUSES.get(operation.id, COUNT_STATUSES).items() if operation.in_query() else ():
        for params in questions:
            yield status, http.request(operation.method, operation.target + query(params))


# What a browser sends: (status, method, target, body, headers)
VIEW = b'{"name":"pageview","url":"https://example.org/a","domain":"example.org"}'
MESSAGE = b'{"type":"page","userId":"u","properties":{"url":"https://example.org/a"}}'
BROWSERS = {
    "postSegment": [
        (200, "POST", "/v1/page", MESSAGE, {}), (200, "POST", "/v1/batch?site=s", b'{"batch":[%s]}' % MESSAGE, {"Content-Type": "text/plain"}),
        (200, "POST", "/v1/batch", b'{"batch":[%s,{}]}' % MESSAGE, {}), (200, "POST", "/v1/alias", b"{}", {}),
        (200, "POST", "/v1/track", b'{"event":"e","messageId":"m"}', {}), (400, "POST", "/v1/track", b"{}", {}),
        (400, "POST", "/v1/batch", b"{}", {}), (400, "POST", "/v1/page", b"", {}), (400, "POST", "/v1/page?site=A", MESSAGE, {}),
        (404, "POST", "/v1/other", MESSAGE, {}), (415, "POST", "/v1/page", MESSAGE, {"Content-Type": "text/html"})],
    "getPixel": [(202, "GET", "/pixel.gif?page=/", None, {}), (202, "GET", "/pixel.gif?page=/&user=u&site=s&utm=1&x", None, {}),
                 (400, "GET", "/pixel.gif?page=%2", None, {}), (422, "GET", "/pixel.gif?page=/&page=/", None, {}),
                 (422, "GET", "/pixel.gif", None, {}), (422, "GET", "/pixel.gif?page=%FF", None, {}), (422, "GET", "/pixel.gif?page=", None, {}),
                 (202, "GET", "/pixel.gif?page=/", None, {"User-Agent": "Somebot/1.0"})],
    "postPlausibleEvent": [
        (202, "POST", "/api/event", VIEW, {"Content-Type": "text/plain"}), (202, "POST", "/api/event", VIEW, {}),
        (202, "POST", "/api/event", VIEW.replace(b"pageview", b"Signup"), {"Content-Type": "application/json"}),
        (202, "POST", "/api/event", VIEW, {"User-Agent": "Somebot/1.0"}),
        (400, "POST", "/api/event", b"", {}), (400, "POST", "/api/event", b"{}", {}), (400, "POST", "/api/event", b"[]", {}),
        (400, "POST", "/api/event", VIEW.replace(b"https://", b""), {}), (400, "POST", "/api/event", VIEW.replace(b"example.org\"}", b"a b\"}"), {}),
        (400, "POST", "/api/event?x=1", VIEW, {}), (413, "POST", "/api/event", b" " * (1 << 16) + VIEW, {}),
        (415, "POST", "/api/event", VIEW, {"Content-Type": "application/x-www-form-urlencoded"}),
        (415, "POST", "/api/event", VIEW, {"Content-Encoding": "br"})],
}

DELETIONS = {
    "getSite": [(200, "/sites/left"), (404, "/sites/nobodys"), (400, "/sites/A")],
    "deleteSite": [(202, "/sites/left"), (202, "/sites/left"), (404, "/sites/nobodys"), (400, "/sites/A")],
    "deletePages": [(202, "/pages?site=left&page=/a"), (202, "/pages?site=left&prefix=/a"), (404, "/pages?site=nobodys&page=/"), (400, "/pages")],
}
WITHOUT_REDIS = {"/tally.js", "/healthz", "/metrics", "/openapi.yaml", "/openapi.json", "/hotkeys"}


FILTER_STATUSES = {
    "getSeen": [(200, "", None), (400, "", None), (404, "?user=u&pageset=none", None)],
    "postSeen": [(200, "", '{"user":"u","pages":["/a"]}'), (400, "", "["), (422, "", '{"user":"u","pages":[]}')],
    "putFilter": [(200, "", "{}"), (201, "?site=new", "{}"), (409, "", '{"capacity":1}'), (422, "", '{"capacity":0}'),
                  (400, "", "{")],
    "getFilter": [(200, "", None), (404, "?site=none", None), (400, "?site=A", None)],
    "deleteFilter": [(204, "", None), (404, "?site=none", None)],
    "addToFilter": [(200, "", '{"items":["a",1]}'), (200, "?site=made", '{"items":["a"]}'), (400, "", ""),
                    (409, "?site=full", '{"items":["a","b"]}'), (422, "", '{"items":[]}'), (422, "", '{"items":[""]}')],
    "checkFilter": [(200, "", '{"items":["a",1]}'), (404, "?site=none", '{"items":["a"]}'), (422, "", '{"items":[null]}'),
                    (400, "", "[")],
}


def filters(http, operation):
    """What /seen and /filters answer, with a filter that has room for one item and no more."""
    put = OPERATIONS["putFilter"]
    http.request("PUT", put.target, b"{}")
    http.request("PUT", put.target + "?site=full", '{"capacity":1,"expansion":0}')
    http.request("DELETE", put.target + "?site=new")
    for status, more, body in FILTER_STATUSES[operation.id]:
        target = target_of(operation) if status == 200 and not more else operation.target + more
        yield status, http.request(operation.method, target, body)
    if operation.body:
        yield 415, http.request(operation.method, operation.target, body, {"Content-Type": "text/plain"})


def hear_once(without_answers):
    """What is sent behind something unanswered waits, and a silence of seconds is a lost connection, both a 503: let Redis
    answer what it was asked, and then be silent again."""
    without_answers.proxy.hold_replies(False)
    wait_until(lambda: without_answers.client().request("POST", "/ratelimit", FUNNEL).status == 200, "it hears Redis")
    wait_until(lambda: without_answers.client().post(b'{"page":"/"}').status == 202, "it writes")
    wait_until(lambda: without_answers.client().get("/pv").status == 200, "it reads")
    without_answers.proxy.hold_replies()


def outages(without_redis, without_answers, operation):
    """What an operation answers when Redis is away, or silent."""
    if operation.id in LIMITS:
        target, body = next(iter(LIMITS[operation.id].values()))[0]
        yield 503, without_redis.client().request(operation.method, operation.path + target, body)
        hear_once(without_answers)
        yield 504, without_answers.client().request(operation.method, operation.path + target, body)
        return
    if operation in (PLAUSIBLE, PIXEL, SEGMENT):
        _, method, target, body, headers = BROWSERS[operation.id][0]
        yield 503, without_redis.client().request(method, target, body, headers)
        hear_once(without_answers)
        yield 504, without_answers.client().request(method, target, body, headers)
        return
    needs_redis = operation.path not in WITHOUT_REDIS
    body = b'{"page":"/"}' if operation is POST_EVENTS else operation.example_body()
    target = "/pages?page=/" if operation.id == "deletePages" else target_of(operation)
    yield 503 if needs_redis else 200, without_redis.client().request(operation.method, target, body)
    readers_ops = ("putPageSet", "deletePageSet")
    if operation.id in readers_ops or operation in (POST_EVENTS, POST_ROLLUP):
        hear_once(without_answers)
    if operation.id in readers_ops:
        yield 504, without_answers.client().request(operation.method, target, body)
    if operation.id in ("deleteUser", "deleteUserActivity"):  # it is told that all is counted; then nothing more
        hear_once(without_answers)
        without_answers.proxy.hold_replies(False)
        without_answers.proxy.arm(
            Fault("reply-hole", late_s=2, match=lambda args: args[0] == b"EVALSHA" and any(b":uid:" in arg for arg in args)))
        yield 504, without_answers.client().request(operation.method, target)
        without_answers.proxy.hold_replies()
    if operation.id in ("deleteSite", "deletePages"):
        hear_once(without_answers)
        without_answers.proxy.hold_replies(False)
        without_answers.client().accept({"site": operation.id.lower(), "page": "/"})
        without_answers.proxy.arm(Fault("reply-hole", late_s=2, match=lambda args: b"HSETNX" in args and any(b":deletions" in arg for arg in args)))
        where = "/sites/deletesite" if operation.id == "deleteSite" else "/pages?site=deletepages&page=/"
        yield 504, without_answers.client().request("DELETE", where)
        without_answers.proxy.hold_replies()
    if operation is POST_EVENTS:
        yield 504, without_answers.client().post(body)
        yield from unheard(without_answers, body)
    if operation is POST_ROLLUP:
        yield 504, without_answers.client().request("POST", operation.path)


@pytest.fixture(scope="module")
def forgetful():
    """A tallyd without /seen and without sites, behind a proxy that loses the answer to the first script about a filter, if told so."""
    redis = Redis().start()
    proxy = Proxy(redis.directory, redis.path)
    daemon = Tallyd("--readers", "1", "--seen", "off", "--only-declared-sites", "on", redis=proxy, name="forgetful")
    try:
        yield daemon.start(), proxy
    finally:
        daemon.stop()
        proxy.close()
        redis.stop()


def unsure(forgetful, operation):
    """What an operation answers that may have been done, or that was turned off."""
    daemon, proxy = forgetful
    http = daemon.client()
    if operation is PLAUSIBLE:
        yield 422, http.request("POST", operation.target, VIEW)
    if operation.id == "getSeen":
        yield 422, http.request("GET", target_of(operation))
    if operation.id in ("putFilter", "deleteFilter", "addToFilter"):
        target = operation.target + query({"site": operation.id.lower()})
        if operation.method == "DELETE":
            http.request("PUT", target, b"{}")
        proxy.arm(Fault("reply-before", match=lambda args: args[0] == b"EVALSHA" and b":bf" in args[3]))
        yield 504, http.request(operation.method, target, operation.example_body())


def unheard(tallyd, body):
    """A request with a key that Redis took, and nobody heard it say so: it counts, and only its key tells."""
    headers = {"Idempotency-Key": "unheard"}
    hear_once(tallyd)
    yield 504, tallyd.client().post(body, headers=headers)
    again = tallyd.beside.client().post(body, headers=headers)
    assert again.headers["Idempotency-Replayed"] == "true"
    yield 202, again
    yield 422, tallyd.beside.client().post(b"[]", headers=headers)


@each_operation
def test_every_status_is_documented_and_every_documented_one_is_seen(
        tallyd, http, guarded, without_redis, without_answers, forgetful, operation):
    seen = set()
    for answers in (everywhere(tallyd, operation), refused(guarded, operation), good_and_bad(http, operation),
                    outages(without_redis, without_answers, operation), unsure(forgetful, operation)):
        for expected, response in answers:
            API.check(operation, response)
            assert response.status == expected, f"{expected}: {response}"
            seen.add(response.status)
    out_of_memory = {status for status, r in operation.responses.items() if r["name"] == "NoMemory"}
    assert seen | out_of_memory == set(operation.responses)


def test_readiness_tells_the_reason(without_redis):
    response = ask(without_redis.client(), OPERATIONS["getReadiness"], status=503)
    assert response.json["detail"].startswith("not ready: ")


# Query parameters

TIMES = [
    "now", "now-15m", "now+1d", "now/d", "now-1M/M", "now/d-1d+6h", "now-3w/w", "now/y", "now-90s/s", "2026-11-20",
    "2026-11-20T15:04:05Z", "2026-11-20t15:04:60z", "2026-11-20T15:04:05.25+05:30", "2026-11-20T15:04:05 01:00",
    "1795183445", "1795183445000", "1795183445.75", "1795183445000.5",
]
NO_TIMES = [
    "yesterday", "Now", "now-", "now-1", "now-1x", "now15m", "now/", "now/q", "-1", "1.", ".5", "1e9", "2026-11", "2026-11-20T15:04Z",
    "2026-11-20T15:04:05", "2026-11-20 15:04:05Z", "20261120T150405Z", "2026-11-20T15:04:05+0100", "1" * 19, " now",
    "now\n",
]
NO_SUCH_TIMES = ["2026-02-30", "2026-13-01", "2026-11-20T24:00:00Z", "2026-11-20T15:04:05+24:00", "1969-12-31",
                 "0001-01-01", "now-100y", "now+9000y", "9" * 18]
DATES, NO_DATES, NO_SUCH_DATES = (
    ["2026-11-20", "9999-12-31"], ["now", "20261120", "2026-1-1", "2026-11-20T00:00:00Z", "1795183445", "2026-11-20 "],
    ["2026-02-30", "2026-13-01", "1969-12-31", "0001-01-01"])
FLAGS, NO_FLAGS = ["1", "0", "true", "false"], ["yes", "TRUE", "2", "01", " 1"]

DIMENSIONS = ("source", "utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content", "browser", "os", "device", "country", "language")
WITHOUT_VISITORS = set(DIMENSIONS) - {"source", "country"}

# name: values that are good, bad, and bad for a reason that a schema cannot tell
VALUES = {
    "site": (["default", "0", "a._-z", "a" * 64], ["A", ".a", "-a", "_", "a b", "a" * 65, "ä", "a\n"], []),
    "page": (["/", "/a b", "/ä", "p" * 2048, "a&b=c%+", "\u00a0"], ["a\n", "\t", "\x7f", "p" * 2049], ["ä" * 1025]),
    "event": (["signup", "a b", "e" * 128, "\u00a0", "/"], ["a\n", "\x7f", "e" * 129], ["ä" * 65]),
    "metric": (["pv", "uv"], ["ips", "PV"], []),
    "section": (["blog", "a.b_C-9", "a" * 64], ["a b", "ä", "a" * 65, "a\n", "/blog/"], []),
    **{name: (["(none)", "a b", "ä", "v" * 256], ["a\n", "\x7f", "v" * 257], ["ä" * 129]) for name in DIMENSIONS},
    "user": (["u1", "42", "u" * 256, "ä b"], ["u\n", "\x7f", "u" * 257], ["ä" * 129]),
    "from": (TIMES, NO_TIMES, NO_SUCH_TIMES),
    "to": (TIMES, NO_TIMES, NO_SUCH_TIMES),
    "from2": (TIMES, NO_TIMES, NO_SUCH_TIMES),
    "to2": (TIMES, NO_TIMES, NO_SUCH_TIMES),
    "tz": (["UTC", "Europe/Berlin", "Asia/Kathmandu"], ["../UTC", "+01:00", "Europe/"], ["utc", "Mars/Olympus", "localtime"]),
    "explain": (FLAGS, NO_FLAGS, []),
    "step": (["1m", "5m", "15m", "1h", "1d", "1w", "1M", "auto"], ["2h", "1H", "60", "1", "1y", "AUTO"], []),
    "round": (["outer"], ["inner", "1", "Outer"], []),
    "pageset": (["landing", "a.b_C-9", "a" * 64], ["a b", "ä", "a" * 65, "a\n", "a/b"], []),
    "by": (["pv", "uv", "visits"], ["ips", "PV", "entries"], []),
    "prefix": (["/", "/ä", "p" * 2048], ["a\n", "p" * 2049], ["ä" * 1025]),
    "strict": (FLAGS, NO_FLAGS, []),
    "first": (FLAGS, NO_FLAGS, []),
    "bots": (["drop", "count"], ["Drop", "1", "robot"], []),
    "dedupe": (["body"], ["Body", "1", "key"], []),
    "key": (["k", "k" * 256, "a b", "ä", "}:{"], ["k" * 257], ["ä" * 129]),
    "policy": (["login", "no-such.Policy_1"], ["a b", "p" * 65, "ä", "a\n"], []),
    "date": (DATES, NO_DATES, NO_SUCH_DATES),
    "cohort": (DATES, NO_DATES, NO_SUCH_DATES),
    "action": (["active", "a.b_c:d-e", "a" * 64, "0"], ["A", "a b", "a" * 65, "ä", "a\n", "a/b"], []),
    "match": (["any", "all"], ["both", "ALL", "1"], []),
    "period": (["day", "week", "month"], ["year", "days", "Day"], []),
    "days": (["1", "7", "366"], ["0", "367", "-1", "07", "1.5", "x", "1" * 30], []),
    "cohorts": (["1", "7", "30"], ["0", "367", "-1", "07", "1.5", "x"], []),
    "return": (["active", "a" * 64], ["A", "a b", "a" * 65], []),
    "new_within": (["1d", "90d", "1000d"], ["0d", "01d", "90", "d", "-1d", "1.5d", "11001d", "2w", "1D", "1dd"], []),
    "min_days": (["1", "30", "11000"], ["0", "01", "11001", "-1", "1.5", "x"], []),
    "cursor": (["0.0.759edb6e", "1023.4294967295.759edb6e"], ["0", "0.", ".0", "0.0", "1024.0.759edb6e", "00.0.759edb6e", "0.00.759edb6e", "0.1.2", "-1.0.759edb6e", "x"],
               ["0.4294967296.759edb6e", "0.0.00000000"]),  # the end is of the site and action of the default
    "limit": (["1", "100", "1000"], ["0", "1001", "-1", "07", "1e2"], []),
}
VALUES_OF = {  # of one operation's own
    ("getBreakdown", "by"): (["event", *DIMENSIONS, "prop:a.B_1-"], ["pv", "Event", "colour", "prop", "prop:", "prop:a b"], []),
}
# Words of other operations, of the contract's future, and of mistakes
OTHER_NAMES = {"Site", "pages", "form", "x", "page[]"}



def values_of(operation, name):
    """A funnel's steps are actions; other steps are times."""
    return VALUES_OF.get((operation.id, name)) or VALUES["action" if operation.id == "getFunnel" and name == "step" else name]


PARAMETERS = [(o, p) for o in PLAIN if o is not PIXEL for p in o.in_query().values()]
each_parameter = pytest.mark.parametrize("operation, parameter", PARAMETERS, ids=[f"{o.id}-{p['name']}" for o, p in PARAMETERS])


def item_schema(parameter):
    """The schema of one value."""
    schema = API.resolve(parameter["schema"])
    return schema["items"] if schema.get("type") == "array" else schema


def examples_of(parameter):
    example, schema = parameter["example"], API.resolve(item_schema(parameter))
    return (example if isinstance(example, list) else [example]) + schema.get("examples", []) + schema.get("enum", [])


def given(operation, name, value):
    """One value, and what must be beside it."""
    beside = {("getOverlap", "page"): "/", ("getFunnel", "step"): "active"}.get((operation.id, name))
    return [value, beside] if beside else value


def surroundings(operation, name):
    """With these a good value of the parameter makes a good question."""
    needed = {p["name"]: p["example"] for p in operation.in_query().values() if operation.needs(p)}
    if name in ("pageset", "event", "section", *DIMENSIONS) and operation.id == "getOverlap":
        needed["page"] = "/a"
    if operation.id == "deletePages" and name == "site":
        needed["page"] = "/a"
    beside = {"from": {"to": "9999-01-01"}, "to": {"from": "0"}, "from2": {"to2": "9999-01-01"}, "to2": {"from2": "0"}}
    return {**needed, **beside.get(name, {})}


@each_parameter
def test_values_of_a_parameter(http, operation, parameter):
    """The schema and the server agree on what is good and bad."""
    name = parameter["name"]
    good, bad, beyond = values_of(operation, name)
    for value in good + examples_of(parameter):
        assert not API.faults(item_schema(parameter), value), value
        response = ask(http, operation, {**surroundings(operation, name), name: given(operation, name, value)})
        assert response.status in (200, 201, 202, 204, 404, 422), (value, response)
    for value in bad + beyond:
        assert value in beyond or API.faults(item_schema(parameter), value), value
        assert_names(ask(http, operation, {**surroundings(operation, name), name: given(operation, name, value)}, status=400), name)


@each_parameter
def test_a_parameter_that_is_empty_or_given_twice(http, operation, parameter):
    name = parameter["name"]
    good = values_of(operation, name)[0]
    assert_names(ask(http, operation, {name: ""}, status=400), name)
    others = {"page": None} if operation.id == "getOverlap" else {}
    twice = ask(http, operation, {**others, name: good[:1] * 2})
    if API.resolve(parameter["schema"]).get("type") == "array":
        # others may have made the set
        assert twice.status in ((200, 404) if name == "pageset" else (422,) if name in WITHOUT_VISITORS else (200,))
    else:
        assert twice.status == 400
        assert_names(twice, name)


@pytest.mark.parametrize("operation", [o for o in PLAIN if o.id not in TAKES_ANY_QUERY], ids=lambda o: o.id)
def test_a_parameter_that_is_not_listed_is_400(http, operation):
    for name in (VALUES.keys() | OTHER_NAMES) - operation.in_query().keys():
        for value in ("1", "outer"):
            assert_names(ask(http, operation, {name: value}, status=400), name)


def assert_names(response, name):
    if response.json.get("success") is False:  # in Segment's form, a sentence alone
        assert response.json["message"].startswith(f"{name}: "), response
    else:
        assert [e["parameter"] for e in response.errors] == [name], response


# What is sent to POST /events

GOOD_EVENTS = [
    {"page": "/"}, {"page": "p" * 2048}, {"page": "/ä b"}, {"page": "/", "user": "u" * 256}, {"page": "/", "user": 0},
    {"page": "/", "user": -2**63}, {"page": "/", "user": 2**128}, {"page": "/", "user": -2**63 - 1}, {"page": "/", "ip": "192.0.2.7"},
    {"page": "/", "ip": "2001:DB8::1"}, {"page": "/", "ip": "::ffff:192.0.2.7", "ua": ""}, {"page": "/", "ua": None},
    {"page": "/", "ua": "a" * 16384}, {"page": "/", "ts": "2025-11-20T15:04:05Z"},
    {"page": "/", "ts": "2025-11-20t15:04:60.5-05:30"}, {"page": "/", "ts": 1763651045},
    {"page": "/", "ts": 1763651045000.7}, {"page": "/", "ts": 0}, {"page": "/", "site": "a._-0"},
    {"page": "/", "utm_source": "", "utm_term": None, "utm_content": "c" * 256, "country": "de", "language": "de-AT, en;q=0.5"},
    {"page": "/", "country": "", "language": None, "props": None}, {"page": "/", "props": {"plan": [1], "a": None, "b": "x" * 999}},
    {"page": "/", "referrer": None}, {"page": "/", "referrer": "anything"}, {"page": "/", "actions": []},
    {"page": "/", "actions": ["a.b_c:d-e"] * 8}, {"event": "e" * 128},
    {"event": "ä b", "page": "/", "visitor": "v" * 256}, {"user": 7, "actions": ["a"]}, {"page": "/", "other": {"x": [None, 1e300]}, "Page": 1},
]
# member: values that its rule does not allow
BAD_VALUES = {
    "page": ["", "p" * 2049, "a\n", "\x7f", "\x00", 1, None, ["/"], {}, True],
    "user": ["", "u" * 257, "a\tb", None, True, 1.5, [], {}],
    "ip": ["", "192.0.2", "192.0.2.256", "192.0.2.07", "192.0.2.7:80", "::g", "example.org", None, 1, []],
    "ua": ["a" * 16385, 1, [], False],
    "ts": ["", "2025-11-20", "2025-11-20T15:04:05", "1763651045", "now", -1, None, True, [], {}],
    "site": ["", "A", ".a", "a b", "a" * 65, "a\n", None, 1],
    "referrer": ["a" * 16385, 1, {}],
    "event": ["", "e" * 129, "a\n", "\x7f", 1, None, ["a"], True],
    "visitor": ["", "v" * 257, "a\tb", 1, None, {}],
    "actions": [["A"], [""], ["a b"], ["a" * 65], ["a"] * 9, [1], [None], "a", None, {}],
    "country": ["D", "DEU", "D1", "d ", 1, []],
    "language": ["a" * 257, "a\n", 1, {}],
    "props": ["a", 1, [], True],
    **{f"utm_{name}": ["a" * 257, "a\x7f", 1, [], False] for name in ("source", "medium", "campaign", "term", "content")},
}
# bad for a reason that a schema cannot tell
BAD_BEYOND = [
    ('{"page":"/","user":%s}' % ("9" * 257), "/user"),
    ('{"page":"%s"}' % ("ä" * 1025), "/page"), ('{"page":"/","user":1.0}', "/user"), ('{"page":"/","ts":-0}', "/ts"),
    ('{"page":"/","ts":"2025-02-30T00:00:00Z"}', "/ts"), ('{"page":"/","ts":99999999999}', "/ts"),
    ('{"page":"/","page":"/"}', "/page"), ('{"page":"/","other":"\\ud800"}', "/other"), ('{"page":"/","other":"\\u0000"}', "/other"),
]


def test_events_that_are_good(http):
    for event in GOOD_EVENTS:
        assert not API.faults(EVENT, event), event
        ask(http, POST_EVENTS, body=json.dumps(event), status=202)
        ask(http, POST_EVENTS, body=json.dumps([event, event]), status=202)


@pytest.mark.parametrize("member", BAD_VALUES)
def test_members_that_are_bad(http, member):
    assert API.document["components"]["schemas"]["Event"]["properties"].keys() == BAD_VALUES.keys()
    for value in BAD_VALUES[member]:
        event = {"page": "/", member: value}
        assert API.faults(EVENT, event), event
        response = ask(http, POST_EVENTS, body=json.dumps(event), status=422)
        assert [e["pointer"].split("/")[1] for e in response.errors] == [member], (event, response)


@pytest.mark.parametrize("text, pointer", BAD_BEYOND, ids=lambda text: text[-30:])
def test_events_that_are_bad_beyond_the_schema(http, text, pointer):
    response = ask(http, POST_EVENTS, body=text.encode(), status=422)
    assert [e["pointer"] for e in response.errors] == [pointer]


def test_events_that_are_none(http):
    for value in (1, "x", None, [], {}, {"user": "u"}):
        assert API.faults(EVENT, value)
        ask(http, POST_EVENTS, body=json.dumps([value]), status=422)


@pytest.mark.parametrize("media", POST_EVENTS.body)
def test_examples_of_bodies_are_counted(http, media):
    for example in POST_EVENTS.body[media]["examples"].values():
        body = example["value"] if isinstance(example["value"], str) else json.dumps(example["value"])
        for text in (media, media.upper() + "; charset=utf-8"):
            response = ask(http, POST_EVENTS, body=re.sub(r'"ts": *("[^"]*"|\d+)', '"ts": 1763651045', body),
                           headers={"Content-Type": text}, status=202)
            assert response.json["rejected"] == 0


def test_other_content_types_are_415(http):
    for media in ("text/plain", "application/xml", "application/jsonx", "application/json-seq", "*/*"):
        response = ask(http, POST_EVENTS, headers={"Content-Type": media}, status=415)
        assert response.headers["Accept-Encoding"] is None
    ask(http, POST_EVENTS, status=202)  # none at all


def test_a_check_is_refused_in_the_end(http, site):
    """`once`: one, and none for a year."""
    operation, params = OPERATIONS["checkRateLimit"], {"key": site, "policy": "once"}
    ask(http, operation, params, status=204)
    assert ask(http, operation, params, status=429).headers["RateLimit-Policy"] == '"once";q=1;w=31622400'
    ask(http, OPERATIONS["deleteRateLimit"], params, status=204)
    ask(http, operation, params, status=204)


def test_content_encodings(http):
    encoding = next(p for p in POST_EVENTS.parameters if p["name"] == "Content-Encoding")
    for value in encoding["schema"]["enum"]:
        body = b"[]" if value == "identity" else gzip.compress(b"[]")
        ask(http, POST_EVENTS, body=body, headers={"Content-Encoding": value}, status=202)
    for value in ("br", "deflate", "gzip, gzip", "zstd"):
        response = ask(http, POST_EVENTS, headers={"Content-Encoding": value}, status=415)
        assert response.headers["Accept-Encoding"] == "gzip"


def test_idempotency_keys(http, site):
    parameter = next(p for p in POST_EVENTS.parameters if p["name"] == "Idempotency-Key")
    body = json.dumps({"page": "/", "site": site})
    for key in (parameter["example"], "k", "a b", '"q\\\\"', "~" * 128):
        assert not API.faults(parameter["schema"], key)
        for replayed in (None, "true"):
            response = ask(http, POST_EVENTS, body=body, headers={"Idempotency-Key": key}, status=202)
            assert response.headers["Idempotency-Replayed"] == replayed
        ask(http, POST_EVENTS, body="[]", headers={"Idempotency-Key": key}, status=422)
    for key in ("", "a" * 259, "\xe9"):
        assert API.faults(parameter["schema"], key)
        ask(http, POST_EVENTS, body=body, headers={"Idempotency-Key": key.encode("latin-1")}, status=400)
    assert http.count("pv", site=site) == 5


def test_index_of_ndjson_counts_blank_lines(http):
    response = ask(http, POST_EVENTS, body=b'\n{"page":"/"}\r\n\n{"page":1}\n{\n', headers={"Content-Type": "application/x-ndjson"})
    assert response.status == 202 and response.json["accepted"] == 1
    assert [(e["index"], e["pointer"]) for e in response.errors] == [(3, "/page"), (4, "")]


def test_at_most_100_errors_are_listed(http):
    response = ask(http, POST_EVENTS, body=json.dumps([{"page": "/"}] + [{}] * 150), status=202)
    assert response.json["rejected"] == 150 and len(response.errors) == 100


# Answers


@each_get
def test_request_id(http, operation):
    sent = next(p for p in operation.parameters if p["name"] == "X-Request-Id")["example"]
    assert ask(http, operation, headers={"X-Request-Id": sent}).headers["X-Request-Id"] == sent
    assert ask(http, operation, headers={"X-Request-Id": "a b"}).headers["X-Request-Id"] != "a b"


@pytest.mark.parametrize("metric", ["uv", "pv", "ips", "visits"])
def test_answers_with_figures(http, site, metric):
    operation = OPERATIONS["get" + metric.capitalize()]
    http.accept([{"site": site, "page": page, "user": f"u{i}", "ip": f"192.0.2.{i}"} for i in range(9) for page in ("/a", "/b")])
    for params in ({}, {"page": "/a"}, {"page": ["/a", "/b", "/a"]}, {"explain": "1"}, {"page": "/none", "explain": "true"}):
        answer = ask(http, operation, {"site": site, "from": "now-1h", **params}, status=200).json
        assert (answer[metric] > 0) == (params.get("page") != "/none")
        cover = answer["cover"]
        assert cover["keys"] == sum(cover[level] for level in ("minute", "hour", "day", "month"))
        assert ("list" in cover) == ("explain" in params)
        assert answer["pages"] == ([params["page"]] if isinstance(params.get("page"), str) else params.get("page"))


@pytest.fixture
def rotating():
    redis = Redis().start()
    daemon = Tallyd("--visitor-rotation", "day", redis=redis, name="rotating")
    try:
        yield daemon.start()
    finally:
        daemon.stop()
        redis.stop()


def test_spans_rotation(rotating):
    """Where hashed visitors may count twice, the answers about visitors say so."""
    for operation in (o for o in GETS if "page" in o.in_query()):
        for params, spans in (({"from": "now/d-2d", "to": "now/d"}, True), ({"from": "now/d-1d", "to": "now/d"}, False)):
            answer = ask(rotating.client(), operation, params, status=200).json
            assert ("spans_rotation" in answer) == (spans and operation.id in ("getUv", "getIps", "getVisits", "getStats", "getPages"))
