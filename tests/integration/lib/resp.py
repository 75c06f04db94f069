"""Redis's protocol, RESP2: a small client, and the framing that the proxy needs."""

import socket


class RespError(Exception):
    """An error reply."""


def encode(args):
    parts = [b"*%d\r\n" % len(args)]
    for arg in args:
        data = arg if isinstance(arg, bytes) else str(arg).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)


def frame_end(data, at=0):
    """The index behind the value that begins at data[at], or None if it is not complete."""
    line_end = data.find(b"\r\n", at)
    if line_end < 0:
        return None
    kind, end = data[at:at + 1], line_end + 2
    if kind in b"+-:":
        return end
    n = int(data[at + 1:line_end])
    if kind == b"$":
        end += n + 2 if n >= 0 else 0
        return end if end <= len(data) else None
    if kind == b"*":
        for _ in range(max(n, 0)):
            end = frame_end(data, end)
            if end is None:
                return None
        return end
    raise ValueError(f"not RESP: {bytes(data[at:at + 40])!r}")


def parse(data, at=0):
    """(value, end) of the complete value at data[at]; strings as bytes, errors as RespError."""
    line_end = data.index(b"\r\n", at)
    kind, text, end = data[at:at + 1], bytes(data[at + 1:line_end]), line_end + 2
    if kind == b"+":
        return text, end
    if kind == b"-":
        return RespError(text.decode(errors="replace")), end
    if kind == b":":
        return int(text), end
    n = int(text)
    if n < 0:
        return None, end
    if kind == b"$":
        return bytes(data[end:end + n]), end + n + 2
    items = []
    for _ in range(n):
        item, end = parse(data, end)
        items.append(item)
    return items, end


def spoil(data, item=None, error=""):
    """(the reply with another type, how many items it has).  @item: of an array only this one, if it has so many.  With @error
    it is that error; else a number where there was none, and a text where there was one."""
    ends, n = [], 0
    if item is not None and data[:1] == b"*":
        line_end = data.index(b"\r\n")
        n = max(int(data[1:line_end]), 0)
        ends = [line_end + 2]
        for _ in range(n):
            ends.append(frame_end(data, ends[-1]))
    if item is not None and item >= n:
        return data, n
    at, end = (0, len(data)) if item is None else (ends[item], ends[item + 1])
    other = b"-%s\r\n" % error.encode() if error else b"$4\r\nelse\r\n" if data[at:at + 1] == b":" else b":7\r\n"
    return data[:at] + other + data[end:], n


class Resp:
    """One connection to Redis.  Replies come as str, int, list or None; bytes with raw=True."""

    def __init__(self, connected):
        self.socket = connected
        self.data = bytearray()

    @classmethod
    def unix(cls, path, timeout_s):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout_s)
        try:
            s.connect(str(path))
        except OSError:
            s.close()
            raise
        return cls(s)

    def send(self, *args):
        self.socket.sendall(encode(args))

    def receive(self, raw=False):
        while (end := frame_end(self.data)) is None:
            more = self.socket.recv(65536)
            if not more:
                raise ConnectionError("Redis closed the connection")
            self.data += more
        value, _ = parse(self.data)
        del self.data[:end]
        if isinstance(value, RespError):
            raise value
        return value if raw else as_text(value)

    def command(self, *args, raw=False):
        self.send(*args)
        return self.receive(raw)

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def as_text(value):
    if isinstance(value, list):
        return [as_text(v) for v in value]
    return value.decode(errors="surrogateescape") if isinstance(value, bytes) else value
