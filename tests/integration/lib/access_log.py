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


def request(line):
    """What a line of the combined format says: an event's members, `method` and `status`; None if it is malformed."""
    match = LINE.match(line)
    if match is None or match[8] is None:
        return None
    try:
        at = datetime.strptime(match[4], "%d/%b/%Y:%H:%M:%S %z")
    except ValueError:
        return None
    target = TARGET.match(match[5])
    if target is None or not target[2].partition("?")[0]:
        return None
    return {"page": target[2].partition("?")[0], "ts": int(at.timestamp()), "ip": match[1], "ua": match[9],
            "method": target[1], "status": match[6]}


def parse(line):
    """An event, 'malformed' or 'other_method': every GET, HEAD and POST.  Combined format."""
    found = request(line)
    if found is None:
        return "malformed"
    if found["method"] not in ("GET", "HEAD", "POST"):
        return "other_method"
    return {name: found[name] for name in ("page", "ts", "ip", "ua")}


FILE = re.compile(r"\.(css|js|mjs|map|json|xml|txt|ico|png|jpg|jpeg|gif|svg|webp|avif|bmp|woff|woff2|ttf|otf|eot|mp3|mp4|webm|ogg)\Z",
                  re.I)


def class_of(line, is_robot):
    """(the class for which a line is left out by default, None); (None, its event) of a page view."""
    found = request(line)
    for name, fits in (
            ("malformed", lambda: found is None),
            ("method", lambda: found["method"] not in ("GET", "POST")),
            ("robot", lambda: is_robot(found["ua"])),
            ("error", lambda: found["status"][0] in "45"),
            ("redirect", lambda: found["status"][0] == "3" and found["status"] != "304"),
            ("file", lambda: FILE.search(found["page"]) is not None)):
        if fits():
            return name, None
    return None, {name: found[name] for name in ("page", "ts", "ip", "ua")}
