"""Requests that two parties might end in different places, sent through nginx with deploy/nginx.conf: nginx and tallyd agree.

nginx gives each request that it passes on an id, and tallyd echoes it.  Were a request longer or shorter to tallyd than it is to
nginx, then from there on that connection's answers would belong to other requests, and tallyd would have had more requests than
nginx has passed on.
"""

import json

import pytest

from lib.malformed import by_code, make_case
from lib.talks import Talk, parse, send_all
from lib.waiting import wait_until

EVENT = b'{"page":"/p","site":"inner"}'
INNER = b"POST /events HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(EVENT), EVENT)  # what is smuggled
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n"
TE = b"Transfer-Encoding: chunked"


def post(fields, body, version=b"HTTP/1.1", end=b"\r\n"):
    return end.join([b"POST /events " + version, b"Host: x", *fields, b"", b""]) + body


def pair(*fields, **options):
    """Two readings of one body: by Content-Length, or by its chunks."""
    short = b"0\r\n\r\n" + INNER                             # chunked: ends before INNER
    long = CHUNKS % (len(INNER) + 4, b"[]  " + INNER)        # chunked: INNER is inside
    for body in (short, long):
        for n in (len(body), 4, 0):
            yield post([b"Content-Length: %d" % n, *fields], body, **options)
            yield post([*fields, b"Content-Length: %d" % n], body, **options)


OBFUSCATED = [
    b"Transfer-Encoding : chunked", b"Transfer-Encoding\t: chunked", b" Transfer-Encoding: chunked", b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: \tchunked", b"Transfer-Encoding: chunked ", b"Transfer-Encoding:\x0bchunked", b"Transfer-Encoding: chunked\x0c", b"Transfer-Encoding:\r\n chunked",
    b"X: y\r\n Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: identity, chunked", b"Transfer-Encoding: \"chunked\"",
    b"Transfer_Encoding: chunked", b"Transfer-Encoding\x00: chunked", b"X: y\nTransfer-Encoding: chunked", b"X: y\rTransfer-Encoding: chunked",
    b"Transfer-Encoding: ch\xd5nked", b"TRANSFER-ENCODING: CHUNKED", TE + b"\r\n" + TE, TE + b"\r\nTransfer-Encoding: x", b"Transfer-Encoding: x\r\n" + TE,
    b"Connection: Content-Length\r\n" + TE, b"Connection: Transfer-Encoding\r\n" + TE, b"Connection: Host", b"TE: chunked",
]

LENGTHS = [
    [b"Content-Length: 0", b"Content-Length: %d"], [b"Content-Length: %d", b"Content-Length: 0"], [b"Content-Length: 0, %d"], [b"Content-Length: +%d"],
    [b"Content-Length: 0%d"], [b"Content-Length: -%d"], [b"Content-Length: %d \t"], [b"Content-Length : %d"], [b"Content-Length: 0x%x"], [b"Content-Length: %d;"],
    [b"Content-Length:\x0b%d"], [b"Content_Length: %d"], [b"Content-Length\x00: %d"], [b"X: y\r\n Content-Length: %d"], [b"X: y\nContent-Length: %d"],
    [b"Content-Length: %d\x00"], [b"Content-Length: 0\r\n %d"], [b"Content-Length: 1" + b"0" * 20 + b"%d"],
]

FRAMINGS = [
    b"%x;ext\r\n%s\r\n0\r\n\r\n", b"%x;ext=\"\r\n\"\r\n%s\r\n0\r\n\r\n", b"%x\n%s\n0\n\n", b"%x\r\n%s\r\n0;ext\r\n\r\n", b"%x\r\n%s\r\n0\r\nX: y\r\n\r\n",
    b"%x\r\n%s\r\n0\r\nContent-Length: 9\r\n\r\n", b"000%x\r\n%s\r\n0\r\n\r\n", b"0x%x\r\n%s\r\n0\r\n\r\n", b" %x\r\n%s\r\n0\r\n\r\n", b"%x \r\n%s\r\n0\r\n\r\n",
    b"%x\r\r\n%s\r\n0\r\n\r\n", b"%x\r\n%s0\r\n\r\n", b"%x\r\n%sXX0\r\n\r\n", b"%x;\n%s\r\n0\r\n\r\n", b"%x\r\n%s\r\n0\r\n\n", b"%x\r\n%s\r\n0\r\n\rX", b"-%x\r\n%s\r\n0\r\n\r\n",
    b"1000000000000000%x\r\n%s\r\n0\r\n\r\n", b"%x\r\n%s\r\n00000000\r\n\r\n", b"%x\r\n%s\r\n0\r\n", b"%x;" + b"e" * 5000 + b"\r\n%s\r\n0\r\n\r\n",
]


def payloads():
    for field in (TE, *OBFUSCATED):
        yield from pair(field)
    yield from pair(TE, version=b"HTTP/1.0")
    yield from pair(TE, end=b"\n")
    for fields in LENGTHS:
        yield post([field % len(INNER) if b"%" in field else field for field in fields], INNER)
    for framing in FRAMINGS:
        for body in (b"[]", b"[" + EVENT + b"]"):
            yield post([TE], framing % (len(body), body) + INNER)
    yield b"GET /uv?site=inner HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(INNER), INNER)
    yield b"GET http://y/uv?site=inner HTTP/1.1\r\nHost: x\r\n" + TE + b"\r\n\r\n" + CHUNKS % (len(INNER), INNER)
    yield post([b"Expect: 100-continue", b"Content-Length: %d" % len(INNER)], INNER)
    yield post([b"Upgrade: websocket", b"Connection: upgrade"], INNER)
    yield b"POST /events\r\nHost: x\r\n\r\n" + INNER


LOG = ("log_format told '$upstream_addr $request_id $upstream_http_x_request_id $upstream_status $request';\nupstream tallyd {{\n    keepalive_requests 100000;",
       "server_name tally.example.org;\n    keepalive_timeout 300ms;\n    access_log {log} told;")


@pytest.fixture(params=["gathered", "passed on"])
def nginx(start_nginx, start_tallyd, start_redis, directory, request):
    """(nginx's port, a tallyd of its own, the log of what nginx passed on); bodies are gathered by nginx, or passed on as they come."""
    tallyd = start_tallyd("--request-timeout", "2s", redis=start_redis())
    log = directory / "told"
    replacements = {"127.0.0.1:8080": f"127.0.0.1:{tallyd.port}", "upstream tallyd {": LOG[0].format(), "server_name tally.example.org;": LOG[1].format(log=log),
                    "client_header_timeout 10s": "client_header_timeout 500ms", "access_log off;": "", "client_body_timeout 10s": "client_body_timeout 500ms"}
    if request.param == "passed on":
        replacements["proxy_request_buffering on"] = "proxy_request_buffering off"
    return start_nginx("nginx.conf", replacements), tallyd, log


def told(log):
    """What nginx wrote of each request that it passed on: its id, the id of tallyd's answer, tallyd's status."""
    lines = [line.split(" ", 4) for line in log.read_text(errors="replace").splitlines()]
    return [line[1:] for line in lines if line[0] != "-"]


def test_nginx_and_tallyd_agree_where_a_request_ends(nginx, chance):
    port, tallyd, log = nginx
    http = tallyd.client()
    talks = [Talk("payload", [wire]) for wire in payloads()]
    talks += [Talk("mutant", make_case(chance).pieces) for _ in range(200)]
    others = [Talk(f"other-{i}", [f"GET /pv?site=other-{i}&from=now-1h HTTP/1.1\r\nHost: x\r\n\r\n".encode()]) for i in range(len(talks) // 2)]
    mixed = talks + others
    chance.shuffle(mixed)
    before = by_code(http)
    send_all(port, mixed, 40, 8)
    for other in others:
        assert parse(other) is None and [answer[0] for answer in other.answers] == [200], other
        assert json.loads(other.answers[0][2])["site"] == other.label, other
    passed = told(log)
    assert len(passed) > 1.2 * len(others)
    strangers = [line for line in passed if line[2].isdigit() and line[1] not in (line[0], "-")]
    assert not strangers, f"answers to other requests: {strangers[:5]}"
    seen = {}

    answered = sum(line[2].isdigit() for line in passed)
    wait_until(lambda: sum((by_code(http) - before).values()) >= answered, "all that nginx heard is counted")
    # what nginx gives up in the middle of its body may get an answer that nginx does not hear
    seen = sum((by_code(http) - before).values())
    assert seen <= len(passed), "tallyd had more requests than nginx passed on"
    inner = sum(line[2] == "202" for line in passed)
    assert http.count("pv", site="inner", from_="now-1h") <= inner
