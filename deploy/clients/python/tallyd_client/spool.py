"""A batch, and its file of the spool: what is in the file survives the process.

The file has an event a line and lies beside PATH as PATH.KEY-DONE-N-SINCE: the first DONE events are done with, and the next
N may have been sent, first at SINCE (0: none).  The name changes before a request, which needs no room on the disk.

A file belongs to the process that has its flock.  Whoever comes next takes the files that nobody owns.
"""

import contextlib
import fcntl
import glob
import os
import re
import time
import uuid


class Batch:
    """Lines, of which the first `done` are done with and the next `n` are a request, first sent at `since`."""

    def __init__(self, spool=None, name=None, fd=None):
        """New and empty, with a file if there can be one; or the file `name` that a process that is gone has left."""
        self.born, self.open = time.monotonic(), name is None  # open: it takes more lines
        name = name or f"{uuid.uuid4().hex}-0-0-0"
        self.key, *numbers = name.split("-")
        self.done, self.n, self.since = map(int, numbers)  # since: time.time(); 0: none of these n can be counted
        self._spool, self._path, self.fd = spool, f"{spool}.{name}", fd  # None: the lines are in memory only
        with contextlib.suppress(OSError):
            while spool and self.fd is None:  # else another process took the new file for one that was left, and removes it
                self.fd = lock(self._path, os.O_CREAT)
        self.lines = [] if fd is None else os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")[:-1]  # half a line at the end is none
        self.size = sum(map(len, self.lines))

    def left(self):
        return len(self.lines) - self.done

    def append(self, line):
        """False: the file does not take the line, because the disk is full, say.  Then nothing more may be appended."""
        data = line + b"\n"
        try:
            if self.fd is not None and os.pwrite(self.fd, data, os.fstat(self.fd).st_size) < len(data):
                return False
        except OSError:
            return False
        self.lines.append(line)
        self.size += len(data)
        return True

    def mark(self, since):
        """Say in the file's name how far the batch is."""
        if self.fd is not None:
            path = f"{self._spool}.{self.key}-{self.done}-{self.n}-{since:.0f}"
            os.rename(self._path, path)
            self._path = path

    def close(self, keep=False):
        if self.fd is not None:
            fd, self.fd = self.fd, None
            if not keep:
                os.unlink(self._path)
            os.close(fd)


def lock(path, flags=0):
    """A descriptor with the file's lock; None: it is another process's, or is gone."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(fd).st_ino:
            return fd
    os.close(fd)
    return None


def take_left(spool):
    """The Batches that processes that are gone have left, the oldest first.  `spool` is absolute.  OSError: there can be none."""
    os.stat(os.path.dirname(spool))
    taken = []
    for path in glob.glob(glob.escape(spool) + ".*"):
        name = path[len(spool) + 1:]
        with contextlib.suppress(FileNotFoundError):  # another process has just done with it
            if re.fullmatch(r"[0-9a-f]{32}-\d+-\d+-\d+", name) and (fd := lock(path)) is not None:
                batch = Batch(spool, name, fd)
                if batch.done + max(batch.n, 1) <= len(batch.lines):
                    taken.append((os.fstat(fd).st_mtime, path, batch))
                else:
                    batch.close()
    return [batch for _, _, batch in sorted(taken)]
