"""HTTP by hand, for requests that no client library would send."""

import select
import socket
import time


class Raw:
    """A bare connection.  receive() parses one response, as strictly as a test needs."""

    def __init__(self, port, host="127.0.0.1", timeout_s=10):
        self.timeout_s = timeout_s
        self.socket = socket.create_connection((host, port), timeout=timeout_s)
        self.data = b""

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)
        return self

    def try_send(self, data):
        """False if the server has closed the connection."""
        try:
            self.send(data)
            return True
        except OSError:
            return False

    def _more(self):
        try:
            chunk = self.socket.recv(65536)
        except ConnectionError:
            chunk = b""
        self.data += chunk
        return bool(chunk)

    def receive(self, head_only=False):
        """(status, {lower-case name: value}, body), or None if the connection was closed first."""
        while b"\r\n\r\n" not in self.data:
            if not self._more():
                assert self.data == b"", f"half a response: {self.data[:200]!r}"
                return None
        head, _, self.data = self.data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            assert name.lower() not in headers, f"{name} twice: {head!r}"
            headers[name.lower()] = value.strip()
        n = 0 if head_only or status in (100, 204, 304) else int(headers.get("content-length", 0))
        while len(self.data) < n:
            if not self._more():
                raise AssertionError(f"half a body: {self.data[:200]!r}")
        body, self.data = self.data[:n], self.data[n:]
        return status, headers, body

    def closed(self, within_s=5):
        """True if the server closes the connection within the time, without sending more."""
        end = time.monotonic() + within_s
        while (left := end - time.monotonic()) > 0:
            if select.select([self.socket], [], [], left)[0]:
                before = len(self.data)
                if not self._more():
                    return True
                assert len(self.data) == before, f"unexpected: {self.data[:300]!r}"
        return False

    def readable(self, within_s):
        """True if there is something to read (also the end) within the time."""
        return bool(select.select([self.socket], [], [], within_s)[0])

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
