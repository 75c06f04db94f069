"""Zones: offsets and the borders of hours, days and months, against Python's zoneinfo, for every zone of the system."""

import calendar
import datetime
import os
import random
import subprocess
import zoneinfo

import pytest

UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
TOOL = os.path.join(os.environ.get("TALLYD_TOOLS", "build/tools"), "zone_tool")
DAY = 86400
FIRST, LAST = 0, calendar.timegm((2040, 1, 1, 0, 0, 0))
STEP = 2 * DAY  # no zone changes its offset twice within two days, and tallyd would refuse one that did within one


def ask(lines):
    """What the tool says to each (name, seconds)."""
    text = "".join(f"{name} {at}\n" for name, at in lines)
    out = subprocess.run([TOOL], input=text, capture_output=True, text=True, check=True, timeout=120).stdout
    answers = out.splitlines()
    assert len(answers) == len(lines)
    return answers


def offset(zone, at):
    """Seconds, cut to the minute as tallyd does (Africa/Monrovia until 1972 alone has seconds)."""
    seconds = (EPOCH + datetime.timedelta(seconds=at)).astimezone(zone).utcoffset().total_seconds()
    return int(seconds // 60) * 60


def segments(zone):
    """[(from, to, offset)] from 1969 to 2040: where the offset stays the same."""
    found = []
    start, before = FIRST - 370 * DAY, offset(zone, FIRST - 370 * DAY)
    for at in range(start, LAST, STEP):
        now = offset(zone, at)
        if now == before:
            continue
        low, high = at - STEP, at
        while high - low > 60:
            middle = (low + high) // 120 * 60
            low, high = (low, middle) if offset(zone, middle) == now else (middle, high)
        found.append((start, high, before))
        start, before = high, now
    return found + [(start, LAST + 400 * DAY, before)]


def first_at(parts, local):
    """The first instant at which clocks show `local` or later."""
    return min(max(start, local - by) for start, end, by in parts if end + by > local)


def days_since_epoch(year, month):
    return calendar.timegm((year + (month - 1) // 12, (month - 1) % 12 + 1, 1, 0, 0, 0)) // DAY


def borders(parts, at):
    """Hour, day and month around `at`, by the rules of storage/time/bucket.h."""
    near = [part for part in parts if part[0] < at + 70 * DAY and part[1] > at - 70 * DAY]
    (start, end, by), = [part for part in near if part[0] <= at < part[1]]
    hour = (at + by) // 3600 * 3600 - by
    answer = [by, max(hour, start), min(hour + 3600, end)]
    date = max((min(at, stop - 1) + shift) // DAY for begin, stop, shift in near if begin <= at)
    answer += [first_at(near, date * DAY), first_at(near, (date + 1) * DAY)]
    civil = (EPOCH + datetime.timedelta(days=date)).date()
    for more in (0, 1):
        answer.append(first_at(near, days_since_epoch(civil.year, civil.month + more) * DAY))
    return answer


def unique_zones():
    """One name for each different file."""
    seen = {}
    for name in sorted(zoneinfo.available_timezones()):
        path = next((os.path.join(d, name) for d in zoneinfo.TZPATH if os.path.exists(os.path.join(d, name))), None)
        if path and name != "localtime":
            with open(path, "rb") as file:
                seen.setdefault(file.read(), name)
    return sorted(seen.values())


def test_every_zone_at_every_change_of_its_offset():
    lines, expected = [], []
    zones = unique_zones()
    assert len(zones) > 100
    for name in zones:
        parts = segments(zoneinfo.ZoneInfo(name))
        changes = [part[0] for part in parts[1:]] or [1_700_000_000]
        for change in changes:
            for by in (-DAY - 1, -3661, -61, -1, 0, 59, 60, 1801, 3600, 3 * 3600, DAY, 20 * DAY):
                at = change + by
                if FIRST <= at < LAST and (name != "Africa/Monrovia" or at > 75 * 1000000):  # seconds, until 1972
                    lines.append((name, at))
                    expected.append(" ".join(map(str, borders(parts, at))))
    wrong = [(line, want, got) for line, want, got in zip(lines, expected, ask(lines)) if want != got]
    assert not wrong, wrong[:10]


def test_every_name_is_taken():
    names = sorted(zoneinfo.available_timezones() - {"localtime"})
    answers = ask([(name, 1_700_000_000) for name in names])
    assert [pair for pair in zip(names, answers) if pair[1].startswith("- ")] == []


def test_the_rules_go_on_for_ever():
    dice = random.Random(os.environ.get("TALLYD_SEED"))
    lines = []
    for name in ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu",
                 "America/Nuuk", "Africa/Cairo", "Asia/Gaza", "Pacific/Apia", "EST5EDT", "Europe/Dublin"):
        for _ in range(300):
            lines.append((name, dice.randrange(LAST, 253370764800) // 60 * 60))
        for year in (2436, 2437, 2438, 2439, 2440, 2837, 3999):
            lines += [(name, calendar.timegm((year, 1, 1, 0, 0, 0)) + day * DAY) for day in range(0, 366, 5)]
    answers = [int(answer.split()[0]) for answer in ask(lines)]
    assert answers == [offset(zoneinfo.ZoneInfo(name), at) for name, at in lines]


@pytest.mark.parametrize("name", ["Nowhere/City", "../Europe/Berlin", "Europe/../Europe/Berlin", "/etc/passwd", "Europe",
                                  "europe/berlin", "Europe/", "//Berlin", "right/Europe/Berlin", "localtime", "zone.tab",
                                  "tzdata.zi", "Europe/Berlin\\0", "A" * 64, "x" * 200])
def test_what_is_no_zone(name):
    answer, = ask([(name, 0)])
    assert answer.startswith("- ")
