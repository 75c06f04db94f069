"""Caps of days and months: a rollup keeps the names with most, and puts the others together, once, whatever happens."""

import collections
import threading

import pytest

from lib.clock import epoch
from lib.log import counted
from lib.proxy import Fault, is_script
from lib.waiting import wait_until
from lib.world import FOREVER

CAP = 6
ARGS = (*FOREVER, "--max-values", str(CAP), "--max-pages", str(CAP), "--partitions", "2")
STEADY = ["a", "b", "c"]
SITE = "s"
OTHER_PAGES, OTHER_SOURCES = "\x04", "\x04\x02s"


def is_together(args):
    return is_script(args) and b"together" in args


def flood(world, hour, n=12):
    """An hour in which three names come often, and others that are never seen again; returns the names."""
    at = epoch(hour) + 600
    world.move(at + 60)
    names = [name for name in STEADY for _ in range(5)] + [f"{hour[8:13].replace(' ', '-')}-{i}" for i in range(n)]
    events = [{"site": SITE, "page": f"/{name}", "referrer": f"https://{name}.example/", "user": f"{hour} {i}",
               "ip": "192.0.2.1", "ts": at + i} for i, name in enumerate(names)]
    for first, last in ((0, 5 * len(STEADY)), (5 * len(STEADY), len(events))):  # they have their places first
        world.http.accept(events[first:last])
        counted(world.http)
    return names


def tables(world, kind, level):
    """(tag, begin of the bucket) -> {name: number}"""
    found = {}
    for key in world.redis.command("KEYS", f"t:*:{kind}:{SITE}:{level}*"):
        key = key.decode() if isinstance(key, bytes) else key
        if key.count(":") == 4 + (kind in ("uv", "ip")):
            flat = world.redis.command("ZRANGE", key, 0, -1, "WITHSCORES")
            flat = [x.decode() if isinstance(x, bytes) else x for x in flat]
            found[key.split(":")[1], key.split(":")[4][1:]] = {n: int(c) for n, c in zip(flat[::2], flat[1::2])}
    return found


def class_of(name):
    mark = name.lstrip("\x04")[:1]
    if mark in ("\x02",):
        return name.lstrip("\x04")[:2]
    return "" if name.strip("\x04") == "" or mark not in "\x01\x03\x05" else None


def same_visitors(world, tag, kind, day, name, sources):
    """The sketch of a name of the day has the visitors of those of the hours."""
    sources = [f"t:{tag}:{kind}:{SITE}:h{hour}:{source}" for hour, source in sources]
    assert world.redis.command("PFCOUNT", f"t:{tag}:{kind}:{SITE}:d{day}:{name}") == world.redis.command("PFCOUNT", *sources)


def check_day(world, day="202603100000", only=None):
    """Each bucket of the day has what its hours have, name by name or put together; it has no more names than the cap.
    `only` in that partition."""
    put_together = 0
    for kind in ("pv", "vv"):
        hours = tables(world, kind, "h")
        for (tag, start), of_day in tables(world, kind, "d").items():
            if start != day or (only and tag != only):
                continue
            sums, where = collections.Counter(), collections.defaultdict(list)
            for (hour_tag, hour), numbers in hours.items():
                if hour_tag == tag and hour[:8] == day[:8]:
                    sums.update(numbers)
                    for name in numbers:
                        where[name].append((hour, name))
            for name in [n for n in of_day if n[:1] not in ("\x04",)]:
                assert of_day[name] == sums[name], (tag, kind, name)
            for cls in {class_of(n) for n in sums if n} - {None}:
                other = "\x04" + cls
                own = [n for n in of_day if n and n[0] != "\x04" and class_of(n) == cls]
                names = [n for n in sums if n and class_of(n) == cls]
                gone = [n for n in names if n not in of_day or n == other]
                assert len(own) <= CAP, (kind, own)
                assert of_day.get(other, 0) == sum(sums[n] for n in gone), (tag, kind, cls)
                least = min((of_day[n] for n in own), default=0)
                assert all(sums[n] <= least for n in gone if n != other), (kind, cls)
                put_together += len(gone)
                if kind == "pv" and cls == "":
                    for sketch in ("uv", "ip"):
                        for name in own:
                            same_visitors(world, tag, sketch, day, name, where[name])
                        if gone:
                            same_visitors(world, tag, sketch, day, other, [w for n in gone for w in where[n]])
                        for name in set(gone) - {other}:
                            assert not world.redis.command("EXISTS", f"t:{tag}:{sketch}:{SITE}:d{day}:{name}")
    assert put_together > 10


def question(world, what, day, **params):
    return world.http.question(what, site=SITE, from_=day, to=epoch(day) + 86400, **params)


def holds(answer, truth, rows, name):
    for row in answer[rows]:
        if row[name] != "(other)":
            assert row["pv"] <= truth[row[name]] <= row.get("at_most", row["pv"]), row


def test_a_flood_over_hours(start_world):
    """The days and the month have the names of an hour; sums stay, and every row has its bound."""
    world = start_world("2026-03-10 08:00", *ARGS)
    truth = collections.Counter()
    for hour in range(9, 22, 3):
        truth.update(flood(world, f"2026-03-10 {hour:02}:00"))
    before = question(world, "/breakdown", "2026-03-10", by="source", limit=1000)
    stats = question(world, "/stats", "2026-03-10")
    world.move("2026-03-11 00:02")
    world.wait_cover(SITE, "2026-03-10", "2026-03-11", day=1)
    check_day(world)
    after = question(world, "/breakdown", "2026-03-10", by="source", limit=1000)
    assert len(before["rows"]) > 2 * CAP and len(after["rows"]) == CAP
    assert after["total"] == before["total"] == sum(truth.values())
    assert after["other"] == after["total"] - sum(row["pv"] for row in after["rows"])
    by_value = collections.Counter({f"{name}.example": n for name, n in truth.items()})
    holds(before, by_value, "rows", "value")
    holds(after, by_value, "rows", "value")
    assert [(row["value"], row["pv"]) for row in after["rows"]][:3] == [(f"{n}.example", 25) for n in STEADY]
    assert {**question(world, "/stats", "2026-03-10"), "cover": 0} == {**stats, "cover": 0}
    pages = question(world, "/pages", "2026-03-10", limit=1000)
    holds(pages, collections.Counter({f"/{name}": n for name, n in truth.items()}), "pages", "page")
    assert [row["pv"] for row in pages["pages"]][:3] == [25] * 3 and pages["total_pages"] <= 2 * CAP
    for row in question(world, "/pages", "2026-03-10", by="visits", limit=1000)["pages"]:
        assert row["page"] == "(other)" or row["visits"] <= truth[row["page"][1:]] <= row.get("at_most", row["visits"])

    truth_of_day = collections.Counter(truth)
    for hour in ("2026-03-12 05:00", "2026-03-12 07:00", "2026-03-12 09:00"):
        truth.update(flood(world, hour))
    world.move("2026-04-01 00:02")
    world.wait_cover(SITE, "2026-03-01", "2026-04-01", month=1)
    month = world.http.question("/breakdown", site=SITE, by="source", from_="2026-03-01", to="2026-04-01", limit=1000)
    assert month["total"] == sum(truth.values()) and len(month["rows"]) == CAP
    holds(month, collections.Counter({f"{name}.example": n for name, n in truth.items()}), "rows", "value")
    assert [row["pv"] for row in month["rows"]][:3] == [40] * 3

    late = next(name for name in truth_of_day if name.startswith("10-09") and truth_of_day[name] == 1)
    world.http.accept([{"site": SITE, "page": f"/{late}", "referrer": f"https://{late}.example/", "user": "late",
                        "ts": epoch("2026-03-10 09:20")}])
    truth[late] += 1
    month = world.http.question("/breakdown", site=SITE, by="source", from_="2026-03-01", to="2026-04-01", limit=1000)
    assert month["total"] == sum(truth.values())
    holds(month, collections.Counter({f"{name}.example": n for name, n in truth.items()}), "rows", "value")


@pytest.mark.some(3)
@pytest.mark.parametrize("point", ["command-before", "command-inside", "reply-before"])
@pytest.mark.parametrize("nth, few", [(1, 12), (2, 3), (4, 3)])
def test_a_chunk_s_answer_is_lost(start_world, start_proxy, start_tallyd, point, nth, few):
    """Whether a step was done is not known: the pass begins again, and nothing is added twice.  With few names no hour is
    capped, and the day is."""
    world = start_world("2026-03-10 06:00", *ARGS)
    for hour in range(7, 24, 2):
        flood(world, f"2026-03-10 {hour:02}:00", few)
    world.tallyd.stop()
    world.clock.set("2026-03-11 00:02")
    proxy = start_proxy(world.redis)
    fault = proxy.arm(Fault(point, nth=nth, match=is_together))
    world.tallyds[0] = start_tallyd(*ARGS, redis=proxy)
    world.http = world.tallyd.client()
    world.wait_cover(SITE, "2026-03-10", "2026-03-11", day=1)
    assert fault.fired == 1
    check_day(world)


class Gate:
    """Holds the rollup at the nth step that puts names together, after it was done or before."""

    def __init__(self, proxy, nth):
        self.left, self.reached, self.go, self.tag = nth, threading.Event(), threading.Event(), None
        self.judge, proxy.judge = proxy.judge, self.look

    def look(self, args):
        if is_together(args):
            self.left -= 1
            if self.left == 0:
                self.tag = args[3].decode().split(":")[1]  # of t:{2}:state
                self.reached.set()
                self.go.wait(60)
        return self.judge(args)


@pytest.mark.some(2)
@pytest.mark.parametrize("killed", [False, True], ids=["goes on", "killed"])
@pytest.mark.parametrize("nth", [1, 2, 4])
def test_late_events_while_names_are_put_together(start_world, start_proxy, start_tallyd, nth, killed):
    """Names that are put together, or were, or will be, come once more; another process may end the work with other
    figures, so other names keep their entries."""
    world = start_world("2026-03-10 08:00", *ARGS)
    names = [flood(world, f"2026-03-10 {hour:02}:00") for hour in range(9, 24, 4)]
    world.tallyd.stop()
    world.clock.set("2026-03-11 00:02")
    proxy = start_proxy(world.redis)
    gate = Gate(proxy, nth)
    leader = start_tallyd(*ARGS, redis=proxy)
    assert gate.reached.wait(30)
    world.tallyds[0] = start_tallyd(*ARGS, redis=world.redis, name="other")
    world.http = world.tallyd.client()
    late = [{"site": SITE, "page": f"/{name}", "referrer": f"https://{name}.example/", "user": f"late {name} {i}",
             "ip": "198.51.100.7", "ts": epoch(hour) + 900}
            for hour, of_hour, n in (("2026-03-10 09:00", names[0], 1), ("2026-03-10 21:00", names[-1], 7))
            for name in sorted(set(of_hour)) for i in range(n)]
    world.http.accept(late)
    counted(world.http)
    if killed:
        leader.kill()
    gate.go.set()
    if not killed:
        world.wait_cover(SITE, "2026-03-10", "2026-03-11", day=1)
        leader.stop()
        answer = question(world, "/breakdown", "2026-03-10", by="source", limit=1000)
        assert answer["total"] == sum(map(len, names)) + len(late)
        return
    wait_until(lambda: world.cover(SITE, "2026-03-10", "2026-03-11")["day"] == 1, "the other one rolls up", deadline_s=60)
    check_day(world, only=gate.tag)  # in the partition before it they came too late
