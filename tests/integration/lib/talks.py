"""Many connections at once, each with bytes of its own, and what any answer to them must be.

send_all() sends them; judge() says what is wrong with what came back.
"""

import contextlib
import errno
import json
import re
import select
import socket
import struct
import time
from dataclasses import dataclass, field

LAST = "the-last-one"  # X-Request-Id of the sound request at the end of a talk
SOUND_END = f"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Request-Id: {LAST}\r\nConnection: close\r\n\r\n".encode()
STATUSES = {200, 201, 202, 204, 400, 401, 403, 404, 405, 408, 409, 413, 414, 415, 422, 429, 431, 503, 505}


@dataclass
class Talk:
    """What is sent on a connection, and what came."""
    label: str
    pieces: list
    end: str = "wait"  # for the server to close; or the client does: "close", "reset", "half"
    received: bytes = b""
    took_s: float = 0.0
    closed: bool = False  # by the server
    reset: bool = False   # so what it said before may be lost on the way
    answers: list = field(default_factory=list)  # of (status, {name: value}, body)

    def __str__(self):
        sent = b"".join(self.pieces)
        return f"{self.label}, end {self.end}, {len(sent)} bytes {sent[:700]!r}.. answered after {self.took_s:.2f} s: {self.received[:400]!r}"


# ---- sending ----


class Connection:
    """A talk on a connection, which never blocks."""

    def __init__(self, talk, port):
        self.talk, self.begin = talk, time.monotonic()
        self.left = list(talk.pieces)
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.connect_ex(("127.0.0.1", port))

    def events(self):
        return select.EPOLLIN | (select.EPOLLOUT if self.left else 0)

    def write(self):
        """A piece at a time, so that the server sees them by themselves.  True when the client's part is over, and it closes."""
        try:
            sent = self.socket.send(self.left[0])
        except BlockingIOError:
            return False
        except OSError:  # the server has closed, and reset what came then: what it said before may still be read
            self.left, self.talk.reset = [], True
            return False
        self.left[0] = self.left[0][sent:]
        if not self.left[0]:
            del self.left[0]
        if self.left or self.talk.end == "wait":
            return False
        if self.talk.end == "half":
            with contextlib.suppress(OSError):  # the server was faster
                self.socket.shutdown(socket.SHUT_WR)
            return False
        if self.talk.end == "reset":
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return True

    def read(self):
        """True at the end of the stream."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return False
        except OSError as error:
            assert error.errno in (errno.ECONNRESET, errno.EPIPE), error
            self.talk.reset, data = True, b""
        self.talk.received += data
        self.talk.closed = not data
        return not data

    def step(self, events):
        """True at the end."""
        if events & ~select.EPOLLOUT and self.read():
            return True
        return bool(events & select.EPOLLOUT and self.left and self.write())

    def finish(self):
        self.socket.close()
        self.talk.took_s = time.monotonic() - self.begin


def send_all(port, talks, at_once, limit_s):
    """Send all, so many at a time; wait limit_s for the end of each at most."""
    waiting, open_, poll = list(reversed(talks)), {}, select.epoll()
    try:
        while waiting or open_:
            while waiting and len(open_) < at_once:
                connection = Connection(waiting.pop(), port)
                open_[connection.socket.fileno()] = connection
                poll.register(connection.socket, connection.events())
            over = set()
            for fd, events in poll.poll(0.05):
                if open_[fd].step(events):
                    over.add(fd)
                else:
                    poll.modify(fd, open_[fd].events())
            now = time.monotonic()
            over |= {fd for fd, connection in open_.items() if now - connection.begin > limit_s}
            for fd in over:
                poll.unregister(fd)
                open_.pop(fd).finish()
    finally:
        poll.close()
        for connection in open_.values():
            connection.finish()


# ---- judging ----


def parse(talk):
    """Fill talk.answers.  A fault as text, or None."""
    rest = talk.received
    while rest:
        head, end, rest = rest.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        words = lines[0].split(b" ", 2)
        if not end or len(words) != 3 or words[0] not in (b"HTTP/1.1", b"HTTP/1.0") or not words[1].isdigit():
            return f"no answer: {head[:80]!r}"
        status, headers = int(words[1]), {}
        if status == 100:
            continue
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if not colon:
                return f"a line without colon: {line!r}"
            headers[name.lower().decode("latin-1")] = value.strip().decode("latin-1")
        n = int(headers.get("content-length", 0))
        body = rest[:n]
        if n and (not rest or rest.startswith(b"HTTP/1.1 ")):
            if b"HEAD" not in b"".join(talk.pieces):
                return "an answer without its body"
            body = b""
        elif len(body) < n and talk.reset:  # the library closed before it read all that was sent behind the last request
            return None
        elif len(body) < n and talk.end == "wait":
            return "half a body"
        rest = rest[len(body):]
        talk.answers.append((status, headers, body))
    return None


def judge_answer(status, headers, body):
    kind = headers.get("content-type")
    if status not in STATUSES:
        return f"status {status}"
    if "x-request-id" not in headers or headers.get("x-content-type-options") != "nosniff":
        return "no id, or no nosniff"
    if status < 400 or not body:
        return None
    if kind == "application/problem+json":
        problem = json.loads(body)
        return None if problem["status"] == status and problem["detail"] else f"a problem that is none: {body[:200]!r}"
    return None if kind in ("image/gif", "application/json") else f"a refusal of type {kind}"


BEHIND_BODY = re.compile(rb". [A-Z]+ [^ ]+ HTTP/1[.]")


def judge(talk, limit_s):
    """What is wrong, or None."""
    fault = parse(talk)
    for answer in talk.answers:
        fault = fault or judge_answer(*answer)
    if fault or talk.end in ("close", "reset"):
        return fault
    if not talk.closed or talk.took_s > limit_s:
        return f"still open after {talk.took_s:.2f} s"
    if talk.end == "half":
        return None
    # the library has no word for a request line that begins with a blank, or has none; the bytes of a body may stand in front
    wordless = any(line.strip(b"\r") and (b" " not in line or line.startswith(b" ") or BEHIND_BODY.search(line))
                   for line in b"".join(talk.pieces).split(b"\n"))
    if not talk.answers:  # or the only word was cut off by a reset: see parse()
        return None if wordless or (talk.reset and talk.received) else "closed without a word"
    status, headers, _body = talk.answers[-1]
    sound = headers["x-request-id"] == LAST or status >= 400 or headers.get("connection") == "close"
    return None if sound or wordless or talk.reset else "closed behind a good answer"


def counted(talk):
    """Events that the answers say are counted."""
    n = 0
    for status, headers, body in talk.answers:
        if headers.get("x-tallyd") == "accepted" or (status == 202 and body == b"ok"):
            n += 1
        elif status == 202 and body.startswith(b"{"):
            n += json.loads(body)["accepted"]
    return n
