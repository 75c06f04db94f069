"""A file that keeps events until tallyd has them: what is in it survives the process.

The file is a head of 256 bytes and, behind it, an event a line.  The head, a JSON object, says which bytes are not done
yet (`from` to the end), and which of them are a batch that may have been sent (`from` to `to`, under `key`, first at
`since`).  It is written before a batch is sent, in place: that needs no room, so a full disk cannot stop it.

A file belongs to the process that has its flock.  A second process takes `PATH.1`, a third one `PATH.2`; a kill frees
the lock.  Whoever comes next finds the files that nobody owns, and sends what is in them.
"""

import fcntl
import json
import os

HEAD_BYTES = 256
FILES_MAX = 256      # processes on one path
REWRITE_BYTES = 4 << 20  # so much that is done may stand before what is not


class Spool:
    """One locked file.  `lines`: what it held when it was opened; `batch`: (how many of them, key, since), or None."""

    def __init__(self, path, fd):
        self.path, self._fd = path, fd
        self._from = self._end = HEAD_BYTES
        self.lines, self.batch = [], None
        self.broken = False  # half a line could not be taken back: no more lines until it is empty
        self._load()

    def _load(self):
        data = os.pread(self._fd, os.fstat(self._fd).st_size, 0)
        if not data:
            self._write_head()
            return
        head = json.loads(data[:HEAD_BYTES])
        at, to = int(head["from"]), int(head["to"])
        self._end = max(data.rfind(b"\n") + 1, HEAD_BYTES)
        self._from = at if HEAD_BYTES <= at <= self._end else self._end
        os.ftruncate(self._fd, self._end)  # half a line was never acknowledged
        self.lines = data[self._from:self._end].split(b"\n")[:-1]
        if head["key"] and self._from < to <= self._end:
            self.batch = (data.count(b"\n", self._from, to), head["key"], float(head["since"]))

    def _write_head(self, to=0, key=None, since=0):
        head = json.dumps({"tallyd-spool": 1, "from": self._from, "to": to, "key": key, "since": since})
        os.pwrite(self._fd, head.encode().ljust(HEAD_BYTES - 1) + b"\n", 0)

    def append(self, line):
        """Keep a line; False: it is not kept, because the disk is full, say."""
        if self.broken:
            return False
        data = line + b"\n"
        try:
            written = os.pwrite(self._fd, data, self._end)
        except OSError:
            written = 0
        if written == len(data):
            self._end += written
            return True
        if written:
            try:
                os.ftruncate(self._fd, self._end)
            except OSError:
                self.broken = True
        return False

    def begin(self, lines, key, since):
        """The oldest `lines` are about to be sent under `key`, at the time `since`."""
        self._write_head(self._from + sum(len(line) + 1 for line in lines), key, since)

    def done(self, lines):
        """The oldest `lines` need not be kept any more."""
        self._from += sum(len(line) + 1 for line in lines)
        if self._from >= self._end:
            os.ftruncate(self._fd, HEAD_BYTES)  # before the head: a `from` behind the end means that nothing is left
            self._from = self._end = HEAD_BYTES
            self.broken = False
        elif self._from > REWRITE_BYTES and not self.broken and self._rewrite():
            return
        self._write_head()

    def _rewrite(self):
        """Leave out what is done, in a new file that takes this one's place."""
        fresh = None
        try:
            fresh = Spool(self.path + ".new", lock(self.path + ".new", os.O_TRUNC))
            rest = os.pread(self._fd, self._end - self._from, self._from)
            if os.pwrite(fresh._fd, rest, HEAD_BYTES) != len(rest):
                raise OSError("disk full")
            os.rename(fresh.path, self.path)
        except (OSError, TypeError):
            if fresh is not None:
                fresh.close()
            return False
        os.close(self._fd)
        self._fd, self._from, self._end = fresh._fd, HEAD_BYTES, HEAD_BYTES + len(rest)
        return True

    def close(self):
        os.close(self._fd)


def lock(path, flags=0):
    """A descriptor of `path`, made if need be, with its lock; None: it is another process's."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path) and os.stat(path).st_ino == os.fstat(fd).st_ino:
                return fd
            os.close(fd)  # its owner has put a new file there meanwhile
        except BlockingIOError:
            os.close(fd)
            return None
        except BaseException:
            os.close(fd)
            raise


def take(path):
    """The Spool of `path`, or None; a file that is no spool is moved out of the way, to `PATH.broken`."""
    fd = lock(path)
    if fd is None:
        return None
    try:
        return Spool(path, fd)
    except (ValueError, KeyError, TypeError):
        os.rename(path, path + ".broken")
        os.close(fd)
        return take(path)


def take_all(path):
    """(a Spool to write into, [Spools that others left behind]).  OSError: no file can be made."""
    own, left = None, []
    for i in range(FILES_MAX):
        name = f"{path}.{i}" if i else str(path)
        if own is not None and not os.path.exists(name):
            continue
        spool = take(name)
        if spool is None:
            continue
        if own is None:
            own = spool
        elif spool.lines:
            left.append(spool)
        else:
            spool.close()
    if own is None:
        raise OSError(f"{FILES_MAX} processes have spool files at {path}")
    return own, left
