"""Access logs read as `tallyd import` should, naively: one regular expression.  And where real ones are."""

import gzip
import os
import re
from datetime import datetime

import pytest

from .process import ROOT

LINE = re.compile(
    r'^(\S+) (\S+) (.+?) \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\S+) (\S+)'
    r'(?: "((?:[^"\\]|\\.)*)" "((?:[^"\\]|\\.)*)".*)?$')
TARGET = re.compile(r"^(\S+) (.+?)(?: HTTP/\S+)?$")


def real(name):
    """(a log, the counts that others made of it); they are not part of the repository."""
    directory = ROOT / os.environ.get("TALLYD_LOGS", "../shared/data")
    log, truth = directory / f"{name}.log.gz", directory / f"{name}.truth.json"
    if not (log.exists() and truth.exists()):
        pytest.skip(f"{log.name} and its truth are not here: TALLYD_LOGS says where (tests/README.md)")
    return log, truth


def lines(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="surrogateescape") as file:
        yield from (line.rstrip("\r\n") for line in file)


def parse(line):
    """An event, 'malformed' or 'other_method'.  Combined format."""
    match = LINE.match(line)
    if match is None or match[8] is None:
        return "malformed"
    try:
        at = datetime.strptime(match[4], "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return "malformed"
    request = TARGET.match(match[5])
    if request is None or not request[2].partition("?")[0]:
        return "malformed"
    if request[1] not in ("GET", "HEAD", "POST"):
        return "other_method"
    return {"page": request[2].partition("?")[0], "ts": int(at.timestamp()), "ip": match[1],
            "ua": match[9]}
