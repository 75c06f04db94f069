"""Files that keep batches until tallyd has them: what is in them survives the process.

A batch is a file beside PATH with an event a line, PATH.KEY-DONE-N-SINCE: the first DONE events are done with, and the next N
may have been sent, first at SINCE (0: none).  The name changes before a request is sent, which needs no room on the disk.

A file belongs to the process that has its flock.  Whoever comes next takes the files that nobody owns.
"""

import fcntl
import glob
import os
import re


class File:
    """One batch's file, locked.  `left`: (lines, key, done, n, since) of one that another process left."""

    left = None

    def __init__(self, base, name, fd):
        self._base, self.path, self._fd = base, name, fd

    def append(self, line):
        """Keep a line.  False: it is not kept, because the disk is full, say; then nothing more may be appended."""
        end = os.fstat(self._fd).st_size
        try:
            if os.pwrite(self._fd, line + b"\n", end) == len(line) + 1:
                return True
            os.ftruncate(self._fd, end)
        except OSError:
            pass  # half a line at the end is no line
        return False

    def mark(self, key, done, n, since):
        path = f"{self._base}.{key}-{done}-{n}-{since:.0f}"
        os.rename(self.path, path)
        self.path = path

    def close(self, keep):
        if not keep:
            os.unlink(self.path)
        os.close(self._fd)


def create(base, key):
    """An empty File.  OSError: there can be none."""
    name, fd = f"{base}.{key}-0-0-0", None
    while fd is None:  # else another process took the empty file for one that was left, and removes it
        fd = lock(name, os.O_CREAT)
    return File(base, name, fd)


def lock(name, flags=0):
    """A descriptor with the file's lock; None: it is another process's, or is gone."""
    fd = os.open(name, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(name).st_ino == os.fstat(fd).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def take_left(base):
    """The Files that processes that are gone have left, the oldest first."""
    if not os.path.isdir(os.path.dirname(os.path.abspath(base))):
        raise FileNotFoundError(f"no directory for {base}")
    taken = []
    for name in glob.glob(glob.escape(base) + ".*"):
        parts = re.fullmatch(r"([0-9a-f]{32})-(\d+)-(\d+)-(\d+)", name[len(base) + 1:])
        try:
            fd = lock(name) if parts else None
        except FileNotFoundError:
            continue
        if fd is None:
            continue
        file = File(base, name, fd)
        lines = os.pread(fd, os.fstat(fd).st_size, 0).split(b"\n")[:-1]
        key, done, n, since = parts[1], *map(int, parts.groups()[1:])
        if done < len(lines) and done + n <= len(lines):
            file.left = lines, key, done, n, since
            taken.append((os.fstat(fd).st_mtime, name, file))
        else:
            file.close(keep=False)
    return [file for _, _, file in sorted(taken, key=lambda row: row[:2])]
