"""A proxy between a sender and tallyd that understands HTTP/1.1 and does harm to whole requests.

    proxy.plan = harm("cut-before-reply", None)      # the first request is applied and not answered; the others pass

A harm is None (pass on), one of CUTS (the connection is cut there), `silence` (the request is applied, the answer never
comes and the connection stays), or an Answer, given in place of tallyd's, which is asked before if `applied`.
"""

import gzip
import http.client
import itertools
import socket
import threading
from dataclasses import dataclass

CUTS = ("cut-before", "cut-inside", "cut-before-reply", "cut-inside-reply", "cut-after-reply")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: tuple = ()  # of (name, value)
    body: bytes = b"{}"
    applied: bool = False  # tallyd gets the request all the same

    def wire(self):
        fields = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        return f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(self.body)}\r\n{fields}\r\n".encode() + self.body


@dataclass
class Request:
    line: str
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def key(self):
        return self.headers["Idempotency-Key"]

    def text(self):
        return gzip.decompress(self.body) if self.headers["Content-Encoding"] == "gzip" else self.body


def harm(*first, then=None):
    """A plan: these harms for the first requests, and `then` for all others."""
    harms = itertools.chain(first, itertools.repeat(then))
    return lambda _request: next(harms)


class HttpProxy:
    """Listens on a port of its own; every request that came whole is in `requests`."""

    def __init__(self, port):
        self.upstream = port  # may be changed: tallyd was restarted
        self.plan = harm()
        self.requests = []
        self.connections = set()
        self.open = True
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def close(self):
        self.open = False
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in list(self.connections):
            _cut(connection)

    def _accept(self):
        while self.open:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            with client.makefile("rb") as reader:
                while (request := _read(reader)) is not None:
                    with self.lock:
                        self.requests.append(request)
                        fault = self.plan(request)
                    if not self._pass(client, request, fault):
                        return
        except (OSError, http.client.HTTPException):
            pass
        finally:
            self.connections.discard(client)
            _cut(client)
            client.close()

    def _pass(self, client, request, fault):
        """Serve one request; False: the connection is to be cut."""
        if fault == "cut-before":
            return False
        if isinstance(fault, Answer) and not fault.applied:
            client.sendall(fault.wire())
            return True
        head = f"{request.line}\r\n".encode() + b"".join(f"{k}: {v}\r\n".encode() for k, v in request.headers.items()) + b"\r\n"
        whole = head + request.body
        with socket.create_connection(("127.0.0.1", self.upstream), 20) as server:
            if fault == "cut-inside":
                server.sendall(whole[:len(head) + len(request.body) // 2])
                return False
            server.sendall(whole)
            with server.makefile("rb") as reader:
                reply = _read_reply(reader)
        if fault == "silence":
            client.recv(1)  # until the sender gives up
            return False
        if isinstance(fault, Answer):
            reply = fault.wire()
        share = {"cut-before-reply": 0, "cut-inside-reply": len(reply) // 2}.get(fault, len(reply))
        client.sendall(reply[:share])
        return fault is None or isinstance(fault, Answer)


def _read(reader):
    """The next request, or None at the end."""
    line = reader.readline(65536)
    if not line.endswith(b"\n"):
        return None
    headers = http.client.parse_headers(reader)
    n = int(headers["Content-Length"] or 0)
    body = reader.read(n)
    return Request(line.decode("latin-1").strip(), headers, body) if len(body) == n else None


def _read_reply(reader):
    """The bytes of one answer with a Content-Length, as all of tallyd's are."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline(65536)
        if not line:
            raise http.client.HTTPException("tallyd did not answer")
        head += line
    n = next(int(row.split(b":")[1]) for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:"))
    return head + reader.read(n)


def _cut(connection):
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
