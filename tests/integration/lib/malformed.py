"""Requests that are broken on purpose.

make_case(chance) makes one: requests that are sound, each with a harm or two in its line, fields, length, framing, coding, bytes,
or in how it is sent.  Behind them a sound request follows on the same connection.  So a body that is taken for a request, or a
request that is taken for a body, is seen.  campaign() sends many, and says what was not as it should be.
"""

import collections
import gzip
import zlib
from dataclasses import dataclass, field

from .talks import SOUND_END, Talk, counted, judge, send_all
from .waiting import wait_until

SITE = "malformed"
EVENT = b'{"page":"/p","site":"%s","user":"u"}' % SITE.encode()


@dataclass
class Request:
    """A request as its parts, so that a harm can get at each."""
    method: bytes = b"GET"
    target: bytes = b"/healthz"
    version: bytes = b"HTTP/1.1"
    fields: list = field(default_factory=lambda: [(b"Host", b"x")])
    body: bytes = b""
    chunked: bool = False
    line_end: bytes = b"\r\n"
    raw_body: bytes = None  # sent in place of the framed body

    def chunks(self, chance):
        wire, at = b"", 0
        while at < len(self.body):
            n = chance.randint(1, len(self.body) - at)
            wire += b"%x%s\r\n%s\r\n" % (n, chance.choice([b"", b"", b";a=b", b';a="b"']), self.body[at:at + n])
            at += n
        return wire + b"0\r\n\r\n"

    def wire(self, chance):
        fields, body = list(self.fields), self.body
        if self.raw_body is not None:
            body = self.raw_body
        elif self.chunked:
            body = self.chunks(chance)
        if self.chunked:
            fields.append((b"Transfer-Encoding", b"chunked"))
        elif self.body and not any(name.lower() == b"content-length" for name, _ in fields):
            fields.append((b"Content-Length", b"%d" % len(self.body)))
        head = b" ".join((self.method, self.target, self.version))
        return self.line_end.join([head, *(name + b": " + value for name, value in fields), b"", b""]) + body


def sound(chance):
    """A request that some endpoint takes."""
    kind = chance.randrange(9)
    if kind == 0:
        target = chance.choice([b"/healthz", b"/uv?site=malformed", b"/pv?site=malformed&page=/p", b"/pages", b"/stats?step=1h", b"/sites",
                                b"/tally.js", b"/openapi.json", b"/", b"/no/such/path", b"/uv?x=1", b"/rollup", b"/hotkeys"])
        return Request(target=target)
    if kind == 1:
        return Request(target=b"/pixel.gif?page=/p&site=malformed")
    if kind == 2:
        return Request(chance.choice([b"PUT", b"DELETE", b"GET"]), b"/pagesets/m%d?site=malformed" % chance.randrange(3),
                       body=b'{"pages":["/p"]}', chunked=chance.random() < 0.5)
    if kind == 3:
        body = b'{"name":"pageview","url":"http://malformed/p","domain":"malformed"}'
        return Request(b"POST", b"/api/event", fields=[(b"Host", b"x"), (b"Content-Type", b"text/plain"), (b"User-Agent", b"Mozilla/5.0")],
                       body=body, chunked=chance.random() < 0.5)
    if kind == 4:
        return Request(b"POST", b"/grafana/query", body=b'{"targets":[{"target":"pv"}]}', chunked=chance.random() < 0.5)
    body = chance.choice([EVENT, b"[" + EVENT + b"," + EVENT + b"]", b"[" + b",".join([EVENT] * 300) + b"]", b"[]", b"{}", b"nothing"])
    return Request(b"POST", b"/events", fields=[(b"Host", b"x"), (b"Content-Type", b"application/json")], body=body,
                   chunked=chance.random() < 0.5)


# ---- harms: each changes a Request ----


def harm_line(request, chance):
    what = chance.randrange(3)
    if what == 0:
        request.method = chance.choice([b"", b"get", b"BREW", b"G@T", b"G\x00T", b"G\xffT", b"A" * 300, b"OPTIONS", b"TRACE", b"CONNECT", b"PRI",
                                        b" GET", b"GET\t", b"GET\r\nX:"])
    elif what == 1:
        request.target = chance.choice([b"", b"*", b"/%", b"/%zz", b"/%00", b"//healthz", b"/./healthz", b"/../etc/passwd", b"x:443", b"http://",
                                        b"http://x/healthz", b"HTTPS://x?y", b"/a b", b"/a\tb", b"/a\x00b", b"/\xff\xfe", b"/" + b"a" * 9000,
                                        b"/uv?" + b"page=a&" * 1500, b"/uv?page=" + b"%41" * 4000, b"/healthz#frag", b"\\healthz", b"/" + b"%2e" * 900])
    else:
        request.version = chance.choice([b"", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/1.9", b"HTTP/0.9", b"HTTP/2.0", b"HTTP/3", b"HTTP/1.10", b"HTTP/x.1",
                                         b"http/1.1", b"HTTP/1.1 ", b" HTTP/1.1", b"HTTP/11", b"FTP/1.1", b"HTTP/1.1\x00", b"\xff"])


def harm_fields(request, chance):
    many = chance.choice([99, 100, 101, 500, 3000])
    bad = chance.choice([
        [(b"Host", b"y")], [(b"X(A)", b"1")], [(b"X A", b"1")], [(b"X-A ", b"1")], [(b"", b"1")], [(b"X-A", b"a\x00b")], [(b"X-A", b"a\rb")],
        [(b"X-A", b"a\x0bb")], [(b"X-A", b"a\r\n b")], [(b"X-A", b"a\r\n\tb: c")], [(b"X-A", b"a\nX-B: c")], [(b"X-\xe9", b"\xe9")], [(b"X-A", b"v" * 13_000)],
        [(b"N" * 13_000, b"v")], [(b"X-%d" % i, b"v") for i in range(many)], [(b"Connection", b"close, keep-alive, \x7f")], [(b"Connection", b"upgrade")],
        [(b"Expect", b"100-continue")], [(b"Expect", b"200-ok")], [(b"Upgrade", b"h2c")], [(b"Cookie", b";=,\"" * 2500)], [(b"Cookie", b"a=b; " * 2000)],
        [(b"Idempotency-Key", b"\xff" * 200)], [(b"Authorization", b"Basic !!!")], [(b"X-Forwarded-For", b"1.2.3.4," * 1000)],
        [(b"X-Request-Id", b"a b")], [(b"Origin", b"null\x01")], [(b"Accept", b"text/csv;q=x")],
    ])
    if chance.random() < 0.2:
        request.fields = []
    at = chance.randint(0, len(request.fields))
    request.fields[at:at] = bad


def harm_length(request, chance):
    n = len(request.body)
    value = chance.choice([b"-1", b"+%d" % n, b"0x%x" % n, b"%d,%d" % (n, n), b"%d %d" % (n, n), b"", b"five", b"9" * 25, b"%d" % (2**63), b"%d" % (2**64),
                           b"%d" % (n + 7), b"%d" % max(0, n - 3), b"0%d" % n, b"%d " % n, b"%d;" % n, b"1e3", b"%d" % (9 << 20), b"\xb2"])
    request.fields.append((chance.choice([b"Content-Length", b"content-length", b"Content-Length "]), value))
    if chance.random() < 0.3:
        request.fields.append((b"Content-Length", b"%d" % n))


def harm_framing(request, chance):
    request.chunked = True
    body = request.body or b"x"
    size = b"%x" % len(body)
    request.raw_body = chance.choice([
        b"zz\r\n%s\r\n0\r\n\r\n" % body, b"-1\r\n\r\n0\r\n\r\n", b"0x%s\r\n%s\r\n0\r\n\r\n" % (size, body), b" %s\r\n%s\r\n0\r\n\r\n" % (size, body),
        b"%s \r\n%s\r\n0\r\n\r\n" % (size, body), b"%s\n%s\n0\n\n" % (size, body), b"%s\r%s\r0\r\r" % (size, body), b"%s\r\n%s0\r\n\r\n" % (size, body),
        b"%s\r\n%sX\r\n0\r\n\r\n" % (size, body), b"0" * 40 + size + b"\r\n" + body + b"\r\n0\r\n\r\n", b"f" * 16 + b"\r\n" + body, b"f" * 17 + b"\r\n" + body,
        b"%s;%s\r\n%s\r\n0\r\n\r\n" % (size, b"e" * 5000, body), b"%s;%s\r\n" % (size, b"e" * 30_000), b"%s;a=\x00\r\n%s\r\n0\r\n\r\n" % (size, body),
        b"%s\r\n%s\r\n0\r\nX: y\r\n z\r\n\r\n" % (size, body), b"%s\r\n%s\r\n0\r\nno colon\r\n\r\n" % (size, body),
        b"%s\r\n%s\r\n0\r\nContent-Length: 5\r\nHost: z\r\n\r\n" % (size, body), b"%s\r\n%s\r\n0\r\n: \x00\r\n\r\n" % (size, body),
        b"%s\r\n%s\r\n0\r\n%s: y\r\n\r\n" % (size, body, b"T" * 30_000), b"%s\r\n%s\r\n00;x\r\n\r\n" % (size, body), b"\r\n", b"", b";\r\n", b"0\r\n",
    ])


def harm_coding(request, chance):
    value = chance.choice([b"chunked", b"identity", b"gzip", b"chunked, chunked", b"gzip, chunked", b"chunked ", b"\tchunked", b"xchunked", b"Chunked", b"",
                           b"chunked;q=1", b"chunked\x0b", b"\"chunked\"", b"chun\r\n ked", b"chunked, identity"])
    request.fields.append((chance.choice([b"Transfer-Encoding", b"transfer-encoding", b"Transfer-Encoding ", b"Transfer_Encoding", b"TE"]), value))
    if chance.random() < 0.4:
        request.raw_body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(request.body), request.body)


def harm_encoding(request, chance):
    """Content-Encoding: sound and broken streams, bombs, and names that are none."""
    packed = gzip.compress(request.body)
    flipped = bytearray(packed)
    flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
    name, body = chance.choice([
        (b"gzip", packed), (b"x-gzip", packed), (b"GZIP", packed), (b"gzip", packed + packed), (b"gzip", packed[:-3]), (b"gzip", packed[:9]), (b"gzip", b""),
        (b"gzip", request.body), (b"gzip", bytes(flipped)), (b"gzip", packed + b"more"), (b"gzip", zlib.compress(request.body)), (b"deflate", zlib.compress(request.body)),
        (b"br", request.body), (b"identity", request.body), (b"", request.body), (b"gzip, gzip", gzip.compress(packed)), (b"gzip,", packed),
        (b"identity, gzip", packed), (b"\xff", packed), (b"zstd", packed), (b"gzip", gzip.compress(b" " * (20 << 20))), (b"gzip", gzip.compress(b"[" * (1 << 20)))])
    request.body = body
    request.fields.append((b"Content-Encoding", name))
    if chance.random() < 0.2:
        request.fields.append((b"Content-Encoding", chance.choice([b"gzip", b"identity"])))


def harm_ends(request, chance):
    request.line_end = chance.choice([b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r\n\x00", b" \r\n"])


def harm_nothing(_request, _chance):
    """A sound one, which must pass."""


HARMS = (harm_line, harm_fields, harm_length, harm_framing, harm_coding, harm_encoding, harm_ends, harm_nothing)


def mutate(wire, chance):
    """A byte or a run of bytes changed, taken out, doubled, put elsewhere."""
    wire = bytearray(wire)
    for _ in range(chance.randint(1, 4)):
        if not wire:
            break
        at, n = chance.randrange(len(wire)), chance.choice([1, 1, 1, 2, 8, 40])
        what = chance.randrange(5)
        if what == 0:
            wire[at] ^= 1 << chance.randrange(8)
        elif what == 1:
            del wire[at:at + n]
        elif what == 2:
            wire[at:at] = wire[at:at + n]
        elif what == 3:
            wire[at:at] = chance.choice([b"\r\n", b"\n", b"\r", b"\0", b" ", b":", b"\t", b"\xff", b"\r\n\r\n", b"0\r\n\r\n", b"GET "])
        else:
            piece = bytes(wire[at:at + n])
            del wire[at:at + n]
            to = chance.randint(0, len(wire))
            wire[to:to] = piece
    return bytes(wire)


# ---- cases ----


def make_case(chance):
    labels, wire = [], b""
    for _ in range(chance.choice([1, 1, 1, 1, 2, 3])):  # requests on the connection
        request = sound(chance)
        for harm in chance.sample(HARMS, chance.choice([0, 1, 1, 1, 1, 2])):
            harm(request, chance)
            labels.append(harm.__name__)
        text = request.wire(chance)
        if chance.random() < 0.25:
            text = mutate(text, chance)
            labels.append("mutate")
        wire += text
    end = chance.choices(["wait", "close", "reset", "half"], [17, 1, 1, 1])[0]
    if end != "wait" and chance.random() < 0.7:
        wire = wire[:chance.randint(0, len(wire))]
    wire += SOUND_END * 2 if end == "wait" else b""  # one may be taken for a trailer
    cuts = sorted(chance.randint(0, len(wire)) for _ in range(chance.choice([0, 0, 0, 1, 2, 5])))
    wire = wire or b"G"
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)])]
    return Talk(" ".join(labels) or "sound", [p for p in pieces if p], end)


# ---- a campaign ----


def by_code(http):
    """What tallyd says that it has answered, but for our own questions."""
    found = collections.Counter()
    for name, value in http.metrics().items():
        if name.startswith("tallyd_http_requests_total{") and 'route="/metrics"' not in name:
            found[int(name.partition('code="')[2][:3])] += int(value)
    return found


AT_ONCE = 200          # fewer than LINGER_MAX of service/http/reaper.c: none is closed before it was read
ANSWERS_OF_A_TALK = 5  # at most: three requests, and twice the sound one


def beside(seen, heard, n_reset):
    """What is wrong with /metrics' answers beside those that clients have, or None.

    A connection that is reset takes the answers with it that were under way.  libmicrohttpd resets it behind a request line
    without a blank, where more had come.
    """
    unheard = sum((seen - heard).values())
    if heard - seen or unheard > n_reset * ANSWERS_OF_A_TALK:
        return f"/metrics has {dict(seen)}, and the clients have {dict(heard)}, of whom {n_reset} were reset"
    return None


def campaign(tallyd, chance, n, limit_s, at_once=AT_ONCE):
    """n cases to a tallyd that nobody else asks.  (faults as texts, how many answers of each status came)."""
    talks = [make_case(chance) for _ in range(n)]
    patient = [talk for talk in talks if talk.end == "wait"]
    send_all(tallyd.port, [talk for talk in talks if talk.end != "wait"], at_once, limit_s)
    http = tallyd.client()
    wait_until(lambda: http.metric("tallyd_http_connections") == 1, "those who left are gone")
    before, accepted = by_code(http), http.metric("tallyd_events_accepted_total")
    send_all(tallyd.port, patient, at_once, limit_s)
    faults = [f"{fault}: {talk}" for talk in talks if (fault := judge(talk, limit_s)) is not None]
    heard = collections.Counter(answer[0] for talk in patient for answer in talk.answers)
    told = sum(counted(talk) for talk in patient)
    wait_until(lambda: http.metric("tallyd_http_connections") == 1, "all connections are gone")
    n_reset = sum(talk.reset for talk in patient)
    if (fault := beside(by_code(http) - before, heard, n_reset)) is not None:
        faults.append(fault)
    counts = http.metric("tallyd_events_accepted_total") - accepted
    if counts < told or (counts > told and not n_reset):
        faults.append(f"{counts} events are counted, and the clients were told of {told}; {n_reset} were reset")
    for name in ("tallyd_http_body_bytes", "tallyd_http_suspended"):
        if http.metric(name) != 0:
            faults.append(f"{name} is {http.metric(name)}")
    return faults, heard
