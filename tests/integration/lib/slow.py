"""A crowd of slow clients in a process of its own, and what the others get meanwhile.

    head    sends the head of a request, a byte a second
    body    sends a body, a byte a second
    reader  asks for more than fits the buffers, and never reads
    idle    connects, and says nothing
    next    is answered, and then sends the head of its next request, a byte a second

Whoever is dismissed comes again, so the crowd keeps its size.
"""

import collections
import contextlib
import multiprocessing
import resource
import select
import socket
import threading
import time

from .memory import resident
from .waiting import wait_until

KINDS = ("head", "body", "reader", "idle", "next")
SLOTS = 50  # of a second: in each some of the crowd send their byte
HEAD = b"POST /events HTTP/1.1\r\nHost: x\r\n"
OPENED = {"head": b"GET /healthz HTTP/1.1\r\n", "body": HEAD + b"Content-Length: 100000\r\n\r\n",
          "reader": b"GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n" * 64, "idle": b"",
          "next": b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"}


def allow_files(n):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < n:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(n, hard), hard))


class Crowd:
    """In the crowd's own process."""

    def __init__(self, port, n, said):
        self.port, self.n, self.said = port, n, said
        self.poll = select.epoll()
        self.sockets = {}  # fd: (socket, kind)
        self.ended = collections.Counter()

    def join(self, kind):
        s = socket.socket()
        if kind == "reader":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(("127.0.0.1", self.port))
        s.setblocking(False)
        s.send(OPENED[kind])
        self.sockets[s.fileno()] = (s, kind)
        self.poll.register(s, select.EPOLLHUP | select.EPOLLRDHUP if kind == "reader" else select.EPOLLIN)

    def is_answer(self, fd):
        """Of the first request, which came whole."""
        s, kind = self.sockets[fd]
        with contextlib.suppress(OSError):
            if kind == "next" and s.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 200":
                s.recv(4096)
                return True
        return False

    def leave(self, fd):
        s, kind = self.sockets.pop(fd)
        with contextlib.suppress(OSError):
            if kind != "reader" and b" 408 " in s.recv(4096):
                self.ended[408] += 1
        self.ended[kind] += 1
        s.close()
        return kind

    def run(self):
        for i in range(self.n):
            self.join(KINDS[i % len(KINDS)])
        self.said.put("here")
        slot = 0
        while True:
            begin = time.monotonic()
            for fd in [fd for fd, (_s, kind) in self.sockets.items() if fd % SLOTS == slot and kind in ("head", "body", "next")]:
                with contextlib.suppress(OSError):  # its end is seen below
                    self.sockets[fd][0].send(b"a")
            for fd, _events in self.poll.poll(max(0, begin + 1 / SLOTS - time.monotonic())):
                if not self.is_answer(fd):
                    self.join(self.leave(fd))
            slot = (slot + 1) % SLOTS
            if slot == 0:
                self.said.put(dict(self.ended))


def run_crowd(port, n, said):
    allow_files(n + 100)
    Crowd(port, n, said).run()


class Others:
    """Clients who behave: each posts an event and asks, one after the other, on a connection of its own."""

    def __init__(self, tallyd, n):
        self.tallyd, self.stop, self.took_s, self.wrong, self.posted = tallyd, False, [], [], 0
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.go_on, daemon=True) for _ in range(n)]
        for thread in self.threads:
            thread.start()

    def go_on(self):
        http = self.tallyd.client()
        while not self.stop:
            for ask, status in ((lambda: http.post('{"page":"/","site":"others"}'), 202), (lambda: http.get("/uv?site=others"), 200)):
                begin = time.monotonic()
                answer = ask()
                with self.lock:
                    self.took_s.append(time.monotonic() - begin)
                    self.posted += status == 202 and answer.status == 202
                    if answer.status != status:
                        self.wrong.append(answer)
                time.sleep(0.02)
        http.close()

    def end(self):
        self.stop = True
        for thread in self.threads:
            thread.join(20)


def withstand(tallyd, n, seconds, room=None):
    """n slow clients for so many seconds, where there is room for all of them, or for fewer: {figures}; what must hold is asserted."""
    said = multiprocessing.get_context("fork").Queue()
    crowd = multiprocessing.get_context("fork").Process(target=run_crowd, args=(tallyd.port, n, said), daemon=True)
    http = tallyd.client()
    alone = resident(tallyd.pid)
    crowd.start()
    try:
        assert said.get(timeout=60) == "here"
        others = Others(tallyd, 4)
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                ended = said.get(timeout=10)
            connections, memory = http.metric("tallyd_http_connections"), resident(tallyd.pid)
        finally:
            others.end()
    finally:
        crowd.kill()
        crowd.join()
    took = sorted(others.took_s)
    figures = {"requests": len(took), "p50_ms": took[len(took) // 2] * 1e3, "p99_ms": took[len(took) * 99 // 100] * 1e3, "connections": connections,
               "KiB a connection": (memory - alone) / 1024 / n, "dismissed": ended}
    assert not others.wrong, others.wrong[:3]
    if room is None:
        assert connections >= 0.9 * n and ended.get(408, 0) > 0.3 * n, figures
    else:
        assert connections <= room and http.metric("tallyd_http_shed_total") > n - room, figures
    assert took[len(took) * 99 // 100] < 1, figures
    wait_until(lambda: http.metric("tallyd_http_connections") == 1, "the crowd has left")
    assert http.count("pv", site="others", from_="now-1h") == others.posted
    return figures
