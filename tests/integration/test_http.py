"""HTTP as tallyd takes it: strictly; what it refuses, how it says so, and that deadlines and limits hold."""

import gzip
import json
import re
import threading
import time

import pytest

from lib.client import query
from lib.memory import MIB, resident
from lib.process import Tallyd, cpu_s, sanitized
from lib.raw import Raw
from lib.waiting import wait_until

EVENT = '{"page":"/","site":"%s"}'


def post_text(site, extra="Host: x\r\n", length=None):
    body = EVENT % site
    length = len(body) if length is None else length
    return (f"POST /events HTTP/1.1\r\n{extra}Content-Type: application/json\r\n"
            f"Content-Length: {length}\r\n\r\n{body}")


def get_text(path, extra=""):
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n{extra}\r\n"


def assert_problem(response, status, parameter=None):
    """RFC 9457, with `message` for Grafana."""
    assert response.status == status, response
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json
    assert {"type", "title", "status", "detail", "message"} <= problem.keys()
    assert problem["type"] == "about:blank" or problem["type"].startswith("https://iana.org/assignments/")
    assert problem["status"] == status
    assert problem["title"] and problem["detail"] and problem["message"] == problem["detail"]
    if parameter is not None:
        assert [e["parameter"] for e in problem["errors"]] == [parameter]
        assert problem["errors"][0]["detail"] and parameter in problem["detail"]


# Requests that must not be understood in two ways


CHUNKED = "Transfer-Encoding: chunked\r\n"
AMBIGUOUS = {
    "two Content-Lengths": "Host: x\r\nContent-Length: 0\r\n",
    "two Content-Lengths, the same": "Host: x\r\nContent-Length: {n}\r\n",
    "Content-Length and Transfer-Encoding": "Host: x\r\n" + CHUNKED,
    "Transfer-Encoding identity": "Host: x\r\nTransfer-Encoding: identity\r\n",
    "a blank before the colon": "Host: x\r\nX-A : 1\r\n",
    "a blank before the colon of Content-Length": "Host: x\r\nContent-Length : 5\r\n",
    "a tab before the colon": "Host: x\r\nX-A\t: 1\r\n",
    "CR in a value": "Host: x\r\nX-A: a\rb\r\n",
    "CR in front of a forged header": "Host: x\r\nX-A: a\rContent-Length: 0\r\n",
    "no Host": "",
    "two Hosts": "Host: x\r\nHost: y\r\n",
    "two Hosts, the same": "Host: x\r\nHost: x\r\n",
    "a name that is no token": "Host: x\r\nX(A): 1\r\n",
    "a name with a blank": "Host: x\r\nX A: 1\r\n",
    "a name with a control character": "Host: x\r\nX\x01A: 1\r\n",
    "no name": "Host: x\r\n: 1\r\n",
}


def assert_refused_and_closed(raw, statuses=(400,)):
    """One answer, then the end: what follows on the connection is not taken for a request."""
    answer = raw.receive()
    assert answer is not None and answer[0] in statuses, answer
    assert answer[1]["content-type"] == "application/problem+json" and json.loads(answer[2])["status"] == answer[0]
    assert raw.closed()


@pytest.mark.parametrize("extra", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_head_is_400_and_close(tallyd, http, site, extra):
    n = len(EVENT % site)
    with Raw(tallyd.port) as raw:
        raw.send(post_text(site, extra.replace("{n}", str(n))) + post_text(site))
        assert_refused_and_closed(raw)
    assert http.count("pv", site=site, from_="now-1h") == 0


@pytest.mark.parametrize("encoding", [
    CHUNKED * 2, "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, chunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n", "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: chunked \r\n", "Transfer-Encoding: \r\n",
    "Transfer-Encoding: gzip\r\n" + CHUNKED,
])
def test_transfer_encodings_other_than_chunked(tallyd, http, site, encoding):
    body = EVENT % site
    with Raw(tallyd.port) as raw:
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\n{encoding}\r\n{len(body):x}\r\n{body}\r\n0\r\n\r\n")
        assert_refused_and_closed(raw, (400, 501))
    assert http.count("pv", site=site, from_="now-1h") == 0


@pytest.mark.parametrize("length", ["-1", "+5", "5,5", "0x5", "5 5", "", "five", "99999999999999999999"])
def test_content_length_that_is_no_number(tallyd, http, site, length):
    with Raw(tallyd.port) as raw:
        raw.send(post_text(site, length=length))
        assert_refused_and_closed(raw, (400, 413))
    assert http.count("pv", site=site, from_="now-1h") == 0


@pytest.mark.parametrize("body", ["zz\r\nx\r\n0\r\n\r\n", "-1\r\n\r\n0\r\n\r\n", "5\r\n[] []]\r\n0\r\n\r\n", "\r\n\r\n"])
def test_broken_chunks(tallyd, body):
    with Raw(tallyd.port) as raw:
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n{body}")
        answer = raw.receive()
        assert answer is None or answer[0] == 400
        assert raw.closed()


def answers(tallyd, code, route="", method=""):
    return tallyd.client().metrics().get(f'tallyd_http_requests_total{{method="{method}",route="{route}",code="{code}"}}', 0)


def test_a_chunked_body_without_end_is_cut(start_tallyd):
    """The answer comes at the limit, not at the deadline, to a client that never reads while it writes, too."""
    tallyd = start_tallyd("--max-body", "1MiB")
    for piece, times, extension in ((b" " * 65536, 1, b""), (b" ", 10_000, b""), (b" ", 100, b";" + b"e" * 1000)):
        chunk = b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) * times
        with Raw(tallyd.port) as raw:
            raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n")
            sent = 0
            while sent < 64 << 20 and not raw.readable(0):
                if not raw.try_send(chunk):
                    break
                sent += len(chunk)
            status, headers, body = raw.receive()
            assert (status, headers["content-type"]) == (413, "application/problem+json") and json.loads(body)["status"] == 413
            assert headers["x-request-id"] and headers["connection"] == "close"
            assert sent < 64 << 20
    assert tallyd.client().metric("tallyd_http_refused_large_total") == 3
    assert answers(tallyd, 413, "/events", "POST") == 3


def test_an_image_for_a_body_without_end(start_tallyd):
    tallyd = start_tallyd("--max-body", "1KiB")
    with Raw(tallyd.port) as raw:
        raw.send(f"GET /pixel.gif?page=/ HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n1000\r\n{' ' * 4096}\r\n")
        status, headers, body = raw.receive()
    assert (status, headers["content-type"], headers["x-tallyd"]) == (413, "image/gif", "rejected")
    assert body.startswith(b"GIF89a") and len(body) == 43


def test_a_line_of_framing_without_end(start_tallyd):
    """It is no 500, and nothing is computed while it is waited for."""
    tallyd = start_tallyd("--request-timeout", "2s")
    before = cpu_s(tallyd.process.pid)
    with Raw(tallyd.port) as raw:
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n5;{'a' * 30_000}\r\n")
        status, headers, _body = raw.receive()
    assert (status, headers["content-type"]) == (408, "application/problem+json")
    assert cpu_s(tallyd.process.pid) - before < 0.5
    wait_until(lambda: answers(tallyd, 408, "/events", "POST") == 1, "counted")


def test_what_the_library_refuses_is_counted(start_tallyd):
    tallyd = start_tallyd()
    with Raw(tallyd.port) as raw:
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n{'f' * 30}\r\n")
        assert raw.receive()[0] == 413
    wait_until(lambda: answers(tallyd, 413, "/events", "POST") == 1, "it is counted, once the exchange has ended")


@pytest.mark.parametrize("line", [
    "G@T /healthz HTTP/1.1", "G(T /healthz HTTP/1.1", "GET\x01 /healthz HTTP/1.1", "GET /healthz HTTP/x",
    "GET /healthz HTTP/2.0", "GET", "/healthz",
])
def test_request_line_that_is_none(tallyd, line):
    with Raw(tallyd.port) as raw:
        raw.send(f"{line}\r\nHost: x\r\n\r\n")
        answer = raw.receive()
        assert answer is None or answer[0] in (400, 405, 501, 505), answer
        assert raw.closed()


def unanswered(http, talk, port, times=1):
    """How many more connections tallyd says that it has not answered, behind `talk`(raw) on one of its own, each time."""
    before = http.metric("tallyd_http_unanswered_total")
    for _ in range(times):
        with Raw(port) as raw:
            talk(raw)
    wait_until(lambda: http.metric("tallyd_http_connections") == 1, "the others are gone")
    return http.metric("tallyd_http_unanswered_total") - before


@pytest.mark.parametrize("line", ["HELLO", " GET /healthz HTTP/1.1"], ids=["without a blank", "begins with one"])
def test_a_request_line_that_gets_no_answer_is_counted(start_tallyd, line):
    """libmicrohttpd closes the connection, and calls nobody."""
    tallyd = start_tallyd()
    http = tallyd.client()

    def alone(raw):
        raw.send(f"{line}\r\nHost: x\r\n\r\n")
        assert raw.receive() is None and raw.closed()

    def behind_an_answer(raw):
        raw.send(get_text("/healthz"))
        assert raw.receive()[0] == 200
        alone(raw)

    assert unanswered(http, alone, tallyd.port, 3) == 3
    assert unanswered(http, behind_an_answer, tallyd.port, 3) == 3


def test_what_is_answered_or_empty_is_not_counted_as_unanswered(start_tallyd, site):
    tallyd = start_tallyd("--request-timeout", "1s")
    http = tallyd.client()

    def answered(text, status):
        def talk(raw):
            raw.send(text)
            assert raw.receive()[0] == status
        return talk

    chunked = f"POST /events HTTP/1.1\r\nHost: x\r\n{CHUNKED}\r\n2\r\n[]\r\n0\r\n\r\n"
    for talk in (lambda raw: None, lambda raw: raw.send("\r\n"), answered(get_text("/healthz"), 200), answered(post_text(site), 202),
                 answered(post_text(site) + "\r\n", 202), answered(chunked, 202), answered(post_text(site, extra=""), 400),
                 answered(get_text("/healthz", "no colon\r\n"), 400), answered("GET /healthz HTTP/1.1\r\nHost: x\r\n", 408),
                 answered(post_text(site, length=500), 408),
                 lambda raw: raw.send(post_text(site, length=500))):  # the client leaves in the middle
        assert unanswered(http, talk, tallyd.port, 2) == 0


@pytest.mark.parametrize("garbage", [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 4096, b"\r\n" * 3000],
                         ids=["a TLS hello", "NULs", "line ends"])
def test_bytes_that_are_no_http_do_no_harm(tallyd, http, garbage):
    with Raw(tallyd.port) as raw:
        raw.try_send(garbage)
        raw.try_send(b"\r\n\r\n")
        raw.readable(1)
    assert http.get("/healthz").status == 200


def test_http_1_0_needs_no_host(tallyd):
    with Raw(tallyd.port) as raw:
        raw.send("GET /healthz HTTP/1.0\r\n\r\n")
        assert raw.receive()[0] == 200
        assert raw.closed()


# Paths, methods, parameters


@pytest.mark.parametrize("path", ["/nothing", "/uv/", "//uv", "/UV", "/uv%00", "/uv%2f", "/events/1", "/%", "/a" * 2000],
                         ids=lambda path: path[:12])
def test_unknown_path_is_404(http, path):
    response = http.request("GET", path)
    assert_problem(response, 404)


@pytest.mark.parametrize("method, path, allowed", [
    ("PUT", "/events", {"POST"}), ("GET", "/events", {"POST"}), ("DELETE", "/events", {"POST"}),
    ("POST", "/uv", {"GET", "HEAD"}), ("POST", "/pv", {"GET", "HEAD"}), ("PATCH", "/ips", {"GET", "HEAD"}),
    ("BREW", "/visits", {"GET", "HEAD"}), ("POST", "/metrics", {"GET", "HEAD"}), ("get", "/healthz", {"GET", "HEAD"}),
])
def test_other_method_is_405_with_allow(http, method, path, allowed):
    """Whatever the method, if it is a token."""
    response = http.request(method, path)
    assert_problem(response, 405)
    assert allowed <= set(re.split(r",\s*", response.headers["Allow"]))


@pytest.mark.parametrize("method", ["PUT", "DELETE", "POST"])
def test_connection_lives_on_after_a_405_with_a_body(http, method):
    for _ in range(3):
        assert http.request(method, "/uv", b"x" * 1000).status == 405
        assert http.get("/healthz").status == 200


@pytest.mark.parametrize("path, parameter", [
    ("/uv?sitee=x", "sitee"), ("/pv?Site=x", "Site"), ("/ips?limit=1", "limit"), ("/visits?page=/&form=now-1h", "form"),
    ("/uv?=x", ""), ("/uv?user=1", "user"), ("/healthz?x=1", "x"), ("/readyz?verbose=1", "verbose"),
    ("/metrics?name=x", "name"), ("/uv?site=a&site=b", "site"), ("/uv?from=now-1h&from=now-2h", "from"),
    ("/uv?explain=1&explain=1", "explain"), ("/uv?from=", "from"), ("/uv?to=", "to"), ("/uv?site=", "site"),
    ("/uv?page=", "page"), ("/uv?page", "page"), ("/uv?tz=", "tz"), ("/uv?round=", "round"),
    ("/uv?page=%zz", "page"), ("/uv?page=%4", "page"), ("/uv?page=%ff", "page"), ("/uv?page=%00", "page"),
])
def test_bad_parameter_is_400_and_named(http, path, parameter):
    assert_problem(http.request("GET", path), 400, parameter)


def test_percent_encoding_and_plus_in_parameters(http, site):
    http.accept([{"site": site, "page": "/a b"}, {"site": site, "page": "/a+b"}])
    for text, pages in (("/a%20b", ["/a b"]), ("/a+b", ["/a b"]), ("%2Fa%2bb", ["/a+b"])):
        answer = http.request("GET", f"/pv?from=now-1h&site={site}&page={text}").json
        assert (answer["pages"], answer["pv"]) == (pages, 1)


# Headers of every answer


ANSWERS = ["/healthz", "/readyz", "/metrics", "/uv", "/uv?x=1", "/nothing", "/events"]


@pytest.mark.parametrize("path", ANSWERS)
def test_every_answer_has_a_request_id(http, path):
    ids = {http.request("GET", path).headers["X-Request-Id"] for _ in range(5)}
    assert len(ids) == 5 and all(re.fullmatch(r"[!-~]{1,128}", i) for i in ids)
    assert http.request("GET", path, headers={"X-Request-Id": "id-1!~"}).headers["X-Request-Id"] == "id-1!~"


def test_answers_in_a_row_have_an_id_each(tallyd, site):
    """A connection keeps a small answer for the next request; all but the id may be the same, or nothing."""
    one, two = post_text(site), post_text(site).replace("Content-Length: ", "X-Request-Id: mine\r\nContent-Length: ")
    refused = post_text(site, length=3)[:-len(EVENT % site)] + "[1]"
    yesterday = time.strftime("%F", time.gmtime(time.time() - 86400))
    head = f"HEAD /dau?date={yesterday}&site={site} HTTP/1.1\r\nHost: x\r\n\r\n"
    row = [one, one, two, two, refused, refused, one, head, head, get_text("/healthz"), get_text("/healthz"), one, two] * 3
    first, ids = {}, []
    with Raw(tallyd.port) as raw:
        for request in row:
            status, headers, body = raw.send(request).receive(head_only=request is head)
            ids.append(headers.pop("x-request-id"))
            assert (ids[-1] == "mine") == (request is two)
            assert re.fullmatch(r"[!-~]{1,128}", ids[-1])
            headers.pop("date")
            assert first.setdefault(request, (status, headers, body)) == (status, headers, body)
    assert len(set(ids)) == 1 + sum(i != "mine" for i in ids)
    assert [first[r][0] for r in (one, two, refused, head)] == [202, 202, 422, 200] and first[one] == first[two]


@pytest.mark.parametrize("sent, echoed", [
    ("a" * 128, True), ("a" * 129, False), ("a b", False), ("caf\xe9", False), ("", False), ("\ta", True), ("a \t", True),
])
def test_request_id_is_echoed_if_it_is_one(http, sent, echoed):
    got = http.request("GET", "/healthz", headers={"X-Request-Id": sent}).headers["X-Request-Id"]
    assert (got == sent.strip()) == echoed
    assert re.fullmatch(r"[!-~]{1,128}", got)


@pytest.mark.parametrize("harm", ["Host: y\r\n", "X A: 1\r\n", "X: a\rb\r\n", "Content-Length: five\r\n", "no colon\r\n", "a: b\r\n" * 100, "X: a\r\n b\r\n"])
def test_request_id_is_echoed_where_the_head_is_refused(tallyd, harm):
    with Raw(tallyd.port) as raw:
        raw.send(get_text("/healthz", f"X-Request-Id: mine\r\n{harm}"))
        status, headers, _body = raw.receive()
    assert status in (400, 431) and headers["x-request-id"] == "mine"


@pytest.mark.parametrize("path", ANSWERS)
def test_nosniff(http, path):
    assert http.request("GET", path).headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", [p for p in ANSWERS if p != "/events"])
def test_head_is_get_without_the_body(tallyd, http, path):
    with Raw(tallyd.port) as raw:
        raw.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\n\r\n" + get_text(path))
        head, got = raw.receive(head_only=True), raw.receive()
    assert head[0] == got[0] and head[1]["content-type"] == got[1]["content-type"]
    if path != "/metrics":  # its numbers move
        assert abs(int(head[1]["content-length"]) - len(got[2])) <= 8
    assert got[2]


def test_answers_are_json(http, site):
    for path in ("/uv", "/pv", "/ips", "/visits", "/healthz"):
        assert http.get(path).headers["Content-Type"].startswith("application/json")
    assert http.get("/healthz").json == {"status": "pass"}
    assert http.post(EVENT % site).headers["Content-Type"].startswith("application/json")


# Sizes of heads


def test_head_of_12_kib_is_accepted(tallyd, http, site):
    frame = get_text("/healthz", "X-Big: \r\n")
    with Raw(tallyd.port) as raw:
        raw.send(get_text("/healthz", f"X-Big: {'x' * (12 * 1024 - len(frame))}\r\n"))
        assert raw.receive()[0] == 200
        for n in (40, 99):  # with Host the 100 fields that are possible
            each = (12 * 1024 - len(get_text("/healthz"))) // n
            text = get_text("/healthz", "".join(f"X-{i:03}: {'y' * (each - 9)}\r\n" for i in range(n)))
            assert 12 * 1024 - n <= len(text) <= 12 * 1024
            raw.send(text)
            assert raw.receive()[0] == 200
    http.accept([{"site": site, "page": f"/{'p' * 100}{i}"} for i in range(90)])
    with Raw(tallyd.port) as raw:
        for cookie in ("a=b; ", "name=value; ", "a"):
            raw.send(get_text("/healthz", f"Cookie: {(cookie * 12_000)[:12 * 1024 - 60]}\r\n"))
            assert raw.receive()[0] == 200
    path = "/pv" + query({"site": site, "page": [f"/{'p' * 100}{i}" for i in range(90)], "from": "now-1h"})
    assert 10_000 < len(path) < 12_000
    assert http.request("GET", path).json["pv"] == 90


@pytest.mark.parametrize("text", [
    get_text("/healthz", f"X-Big: {'x' * 200_000}\r\n"), get_text("/uv?page=" + "p" * 200_000),
    get_text("/healthz", "".join(f"X-{i}: y\r\n" for i in range(20_000))), "GET /" + "x" * 500_000,
], ids=["a long value", "a long query", "many headers", "a long path"])
def test_head_without_end_is_refused(tallyd, http, text):
    with Raw(tallyd.port) as raw:
        raw.try_send(text)
        answer = raw.receive()
        assert answer is None or answer[0] in (400, 413, 414, 431), answer[0]
        assert raw.closed()
    assert http.get("/healthz").status == 200


# Connections


def test_who_sends_on_behind_a_refusal_is_listened_to_for_two_seconds(tallyd):
    """So that the answer is not overtaken by a reset."""
    with Raw(tallyd.port) as raw:
        raw.send(get_text("/healthz", "X A: 1\r\n"))
        begin = time.monotonic()
        assert raw.receive()[0] == 400
        while time.monotonic() - begin < 10 and raw.try_send(b"x" * 1000):
            time.sleep(0.01)
        assert 1 < time.monotonic() - begin < 5


def test_keep_alive(tallyd, site):
    with Raw(tallyd.port) as raw:
        for i in range(50):
            raw.send(post_text(site) if i % 2 else get_text("/healthz"))
            assert raw.receive()[0] == (202 if i % 2 else 200)
        raw.send(get_text("/healthz", "Connection: close\r\n"))
        assert raw.receive()[0] == 200
        assert raw.closed()


def test_errors_keep_the_connection(tallyd, site):
    with Raw(tallyd.port) as raw:
        for text, status in ((get_text("/uv?x=1"), 400), (get_text("/no"), 404),
                             (post_text(site).replace('"/"', '""'), 422), (post_text(site).replace("{", "("), 400)):
            body = text.partition("\r\n\r\n")[2]
            raw.send(re.sub(r"Content-Length: \d+", f"Content-Length: {len(body)}", text))
            assert raw.receive()[0] == status
        raw.send(post_text(site))
        assert raw.receive()[0] == 202


def test_pipelining_answers_in_order(tallyd, site):
    requests = []
    for i in range(30):
        extra = f"X-Request-Id: r{i}\r\n"
        if i % 3 == 0:
            requests.append(post_text(site, "Host: x\r\n" + extra))
        else:
            requests.append(get_text(f"/pv?site={site}&from=now-1h", extra))
    with Raw(tallyd.port) as raw:
        raw.send("".join(requests))
        for i in range(30):
            status, headers, body = raw.receive()
            assert headers["x-request-id"] == f"r{i}"
            assert status == (202 if i % 3 == 0 else 200)
            if i % 3:
                assert json.loads(body)["pv"] == i // 3 + 1


def test_expect_100_continue(tallyd, site):
    text = post_text(site, "Host: x\r\nExpect: 100-continue\r\n")
    head, _, body = text.partition("\r\n\r\n")
    with Raw(tallyd.port) as raw:
        raw.send(head + "\r\n\r\n")
        assert raw.receive()[0] == 100
        raw.send(body)
        assert raw.receive()[0] == 202


def test_request_in_small_pieces(tallyd, site):
    with Raw(tallyd.port) as raw:
        for byte in post_text(site):
            raw.send(byte)
        assert raw.receive()[0] == 202


def test_client_that_leaves_does_no_harm(tallyd, http, site):
    for i in range(20):
        with Raw(tallyd.port) as raw:
            raw.send(post_text(site)[:-i] if i else post_text(site))
    wait_until(lambda: http.count("pv", site=site, from_="now-1h") == 1, "the whole request is counted")
    assert http.get("/healthz").status == 200


# Deadlines and limits, on a tallyd of its own


@pytest.fixture(scope="module")
def hasty(redis):
    daemon = Tallyd("--request-timeout", "1s", "--max-body", "1MiB", "--max-body-memory", "1MiB",
                    "--max-connections", "16", redis=redis, name="hasty")
    try:
        yield daemon.start()
    finally:
        daemon.stop()


def drip(raw, text, every_s=0.1, limit_s=6):
    """Send byte by byte until the server answers or closes; the seconds it took."""
    begin = time.monotonic()
    for byte in text:
        if time.monotonic() - begin > limit_s or raw.readable(every_s) or not raw.try_send(byte):
            break
    return time.monotonic() - begin


@pytest.mark.parametrize("part", ["head", "body"])
def test_slow_request_ends_at_the_deadline(hasty, site, part):
    """Its timeout counts the whole request, not silence."""
    text = post_text(site)
    with Raw(hasty.port) as raw:
        sent = 0 if part == "head" else text.index("\r\n\r\n") + 4
        raw.send(text[:sent])
        took = drip(raw, text[sent:] + " " * 200 if part == "head" else text[sent:sent + 30] * 5)
        assert 0.5 < took < 4
        status, headers, body = raw.receive()
        assert status == 408 and headers["content-type"] == "application/problem+json" and headers["x-request-id"]
        assert json.loads(body)["detail"] == "the request did not come whole within 1 s"
        assert raw.closed()
    assert hasty.client().count("pv", site=site, from_="now-1h") == 0


@pytest.mark.parametrize(("n", "status"), [(MIB // 2 + 100000, 202), (MIB, 202), (MIB + 1, 413)])
def test_a_body_as_large_as_all_may_be_fits_by_itself(hasty, site, n, status):
    """--max-body-memory may be as small as --max-body; what zlib takes to inflate a body comes on top."""
    event = json.dumps({"site": site, "page": "/"}).encode()
    body = b" " * (n - len(event)) + event
    for sent, headers in ((body, {}), (gzip.compress(body), {"Content-Encoding": "gzip"})):
        assert hasty.client().request("POST", "/events", sent, headers).status == status


def test_a_slow_request_does_not_get_the_id_of_the_one_before(hasty):
    with Raw(hasty.port) as raw:
        raw.send(get_text("/healthz", "X-Request-Id: mine\r\n"))
        assert raw.receive()[1]["x-request-id"] == "mine"
        raw.send("GET /healthz HTTP/1.1\r\nHost: x\r\n")
        status, headers, _body = raw.receive()
        assert status == 408 and headers["x-request-id"] not in ("", "mine")


def test_deadline_of_one_request_spares_the_connection_between_requests(hasty):
    """The clock of a request starts with the request, not with the connection."""
    with Raw(hasty.port) as raw:
        for _ in range(3):
            raw.send(get_text("/healthz"))
            assert raw.receive()[0] == 200
            assert not raw.readable(0.5)


def test_connection_limit(hasty):
    """There are never more; the one that has been silent for longest is closed for a new one."""
    connections, served = [], 0
    try:
        for _ in range(24):
            raw = Raw(hasty.port)
            connections.append(raw)
            if raw.try_send(get_text("/healthz")) and raw.readable(3):
                answer = raw.receive()
                served += answer is not None and answer[0] == 200
        assert served == 24
        assert hasty.client().metric("tallyd_http_connections") <= 16
    finally:
        for raw in connections:
            raw.close()
    wait_until(lambda: serves(hasty), "a connection is accepted again")


def serves(tallyd):
    with Raw(tallyd.port) as raw:
        if not raw.try_send(get_text("/healthz")):
            return False
        answer = raw.receive()
        return answer is not None and answer[0] == 200


def test_bodies_in_flight_stay_under_their_limit(hasty, site):
    """More bodies than memory for them: the rest waits or gets 503, and all is well afterwards."""
    size = 900_000
    body = (EVENT % site).ljust(size)
    head = post_text(site, length=size).partition("{")[0]
    answers = []

    def upload(first_half_sent, go_on):
        with Raw(hasty.port) as raw:
            raw.send(head).try_send(body[:size // 2])
            first_half_sent.release()
            go_on.wait(5)
            raw.try_send(body[size // 2:])
            answers.append(raw.receive())

    sent, go_on = threading.Semaphore(0), threading.Event()
    uploads = [threading.Thread(target=upload, args=(sent, go_on), daemon=True) for _ in range(6)]
    for thread in uploads:
        thread.start()
    sent.acquire(timeout=5)
    go_on.set()
    for thread in uploads:
        thread.join(15)
    statuses = [a[0] if a else None for a in answers]
    # each may hold a part when the memory is full, and then all are refused
    assert len(statuses) == 6 and set(statuses) <= {202, 503, 408, None}, statuses
    for answer in answers:
        if answer and answer[0] == 503:
            assert int(answer[1]["retry-after"]) >= 1
    http = hasty.client()
    counted = statuses.count(202)
    assert http.count("pv", site=site, from_="now-1h") == counted
    # who left hears nothing of it, and the memory of a body that was cut off is given back when the server sees it
    wait_until(lambda: http.post(body).status == 202, "a body is taken again")


def test_body_memory_is_given_back(hasty, site):
    """Uploads that are abandoned in the middle hold no memory."""
    size = 1_000_000
    for _ in range(20):
        with Raw(hasty.port) as raw:
            raw.send(post_text(site, length=size)[:-2]).try_send(" " * (size // 2))
    wait_until(lambda: hasty.client().post((EVENT % site).ljust(size)).status == 202, "a body is taken again")


BODIES = [("PUT", "/filters/f"), ("POST", "/filters/f/add"), ("POST", "/filters/f/check"), ("PUT", "/pagesets/s"),
          ("POST", "/grafana/query"), ("POST", "/grafana/search")]


@pytest.mark.parametrize("many", ["[],", "{},", '"a",', "1,"])
def test_a_body_of_many_values_takes_no_more_memory_than_its_bytes(hasty, many):
    """As a tree they would be forty times as much, and stay with the process."""
    http = hasty.client()
    array = "[" + many * (900_000 // len(many)) + "1]"
    before = resident(hasty.pid)
    for method, path in BODIES:
        for body in ('{"items":%s}' % array, '{"a":%s' % array):
            answer = http.request(method, path, body)
            assert_problem(answer, 413)
            assert "20000 values" in answer.json["detail"]
            assert_problem(http.request("POST", "/seen", body.replace("items", "pages")), 422 if body[-1] == "}" else 400)  # makes no tree
    if not sanitized():  # a sanitizer keeps what is freed
        assert resident(hasty.pid) - before < 12 * MIB


def test_values_are_counted_outside_of_strings(hasty, site):
    http = hasty.client()
    text = ',[{:\\"' * 60_000
    answer = http.request("POST", "/filters/f/add" + query({"site": site}), json.dumps({"items": [text, "b"]}))
    assert answer.status == 200 and answer.json == {"added": [True, True]}, answer
    answer = http.request("POST", "/filters/f/add" + query({"site": site}), json.dumps({"items": [1] * 19_000}))
    assert_problem(answer, 422)
    assert answer.json["errors"][0]["pointer"] == "/items"
    answer = http.request("POST", "/filters/f/add" + query({"site": site}), '{"items":' + "[" * 100_000)
    assert_problem(answer, 400)
    assert "nested too deeply" in answer.json["detail"]


def test_many_connections(tallyd, site):
    """Several hundred at once, each with its own request in flight."""
    connections = [Raw(tallyd.port) for _ in range(300)]
    for raw in connections:
        raw.send(post_text(site))
    assert [raw.receive()[0] for raw in connections] == [202] * 300
    for raw in connections:
        raw.close()
    assert tallyd.client().count("pv", site=site, from_="now-1h") == 300
