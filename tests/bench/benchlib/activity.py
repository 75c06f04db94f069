"""Activity: what a user and a user's day cost in Redis, and questions over the bitmaps of 10 million users."""

import datetime
import random
import urllib.parse

from . import load
from .bench import Contender
from .results import Limit, Section
from .servers import TallydServer

USERS, FEWER_USERS = 10_000_000, 1_000_000
FEWER_MS = 20  # for questions about 30 days of FEWER_USERS
DAYS = 31
MEMORY_USERS = 1_000_000
BATCH = 10_000
EPOCH = datetime.date(1970, 1, 1)


def tags(tallyd):
    """The partitions' hash tags: every partition has a state."""
    return [key.split("{")[1].split("}")[0] for key in tallyd.redis("KEYS", "t:{*}:state")]


def data_keys(tallyd):
    return {key for key in tallyd.redis("KEYS", "*") if key.rpartition(":")[2] not in ("lock", "fence", "probe")}


def slowest_p99(tallyd):
    """us, of the commands that questions send."""
    lines = [line for line in tallyd.redis("INFO", "latencystats").splitlines()
             if line.startswith(tuple(f"latency_percentiles_usec_{c}:" for c in ("getrange", "bitcount", "hmget", "hget")))]
    return max(float(line.split("p99=")[1].split(",")[0]) for line in lines)


def fill(tallyd, site, last, all_users):
    """Bitmaps straight into Redis: each day half of the users, a day in pieces of 64 KiB; 310 million events would take
    too long.  Returns [users per day]."""
    rng = random.Random(7)
    partitions = tags(tallyd)
    users = all_users // len(partitions) // 64 * 64
    counts = [0] * DAYS
    for tag in partitions:
        tallyd.redis("HSET", f"t:{{{tag}}}:uid:{site}", "", users)
        for i in range(DAYS):
            day = last - datetime.timedelta(days=DAYS - 1 - i)
            name = f"{site}:active:{day:%Y%m%d}"
            bits = rng.randbytes(users // 8)
            counts[i] += int.from_bytes(bits, "big").bit_count() if hasattr(int, "bit_count") else bin(
                int.from_bytes(bits, "big")).count("1")
            for at in range(0, len(bits), 65536):
                tallyd.redis("SETRANGE", f"t:{{{tag}}}:act:{name}", at, bits[at:at + 65536])
            tallyd.redis("ZADD", f"t:{{{tag}}}:acts", (day - EPOCH).days, name)
        for block in range(20):  # names for the first pages
            tallyd.redis("RPUSH", f"t:{{{tag}}}:ids:{site}:{block}", *(f"user-{tag}-{block * 128 + i}" for i in range(128)))
    return counts


def questions(last):
    """(key, label, path, parameters, most ms its median may take or None)"""
    first, end = last - datetime.timedelta(days=DAYS - 1), last + datetime.timedelta(days=1)
    month = last - datetime.timedelta(days=29)
    yield "dau", "/dau, one day", "/dau", {"date": last}, 10
    yield "series", "/dau, 31 days", "/dau", {"from": first, "to": end}, None
    yield "any", "/active, any of 30 days", "/active", {"from": month, "to": end}, 150
    yield "all", "/active, all of 7 days", "/active", {
        "from": last - datetime.timedelta(days=6), "to": end, "match": "all"}, None
    yield "retention", "/retention, 30 days", "/retention", {"cohort": first, "days": 30}, 300
    yield "triangle", "/retention, 15 cohorts of 15 days", "/retention", {"cohort": first, "days": 15, "cohorts": 15}, None
    yield "frequency", "/frequency, 30 days", "/frequency", {"from": month, "to": end}, 200
    yield "funnel", "/funnel, 2 steps, 30 days", "/funnel", {"from": month, "to": end, "step": ["active", "active"]}, 200
    yield "new", "/dau, new within 29 days", "/dau", {"date": last, "new_within": "29d"}, 200
    yield "often", "/active/users, 100 of 20 days of 30", "/active/users", {
        "from": month, "to": end, "min_days": 20, "limit": 100}, 200
    yield "page", "/active/users, 1000 of a day", "/active/users", {"from": last, "to": end, "limit": 1000}, None


def contenders(bench, tallyd, site, last, times):
    for key, label, path, parameters, _ in questions(last):
        target = path + "?" + urllib.parse.urlencode({"site": site, **parameters}, doseq=True)
        yield Contender(key, label, lambda seed, s, target=target: load.measure(
            tallyd.roles, load.questions(tallyd.port, target, times), 60))


def check(bench, tallyd, site, last, counts):
    answer = tallyd.client.question("/dau", site=site, from_=last - datetime.timedelta(days=DAYS - 1),
                                    to=last + datetime.timedelta(days=1))
    if [day["users"] for day in answer["series"]] != counts:
        bench.errors.append("activity: /dau is not what was written")


def speed(bench, section):
    site, times = "big", 20 if bench.settings.quick else 100
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        last = datetime.date.today()
        check(bench, tallyd, site, last, fill(tallyd, site, last, USERS))
        keys = data_keys(tallyd)
        tallyd.redis("CONFIG", "SET", "slowlog-log-slower-than", "300")
        tallyd.redis("SLOWLOG", "RESET")
        tallyd.redis("CONFIG", "RESETSTAT")
        bench.in_turn(section, list(contenders(bench, tallyd, site, last, times)))
        slow = [entry for entry in tallyd.redis("SLOWLOG", "GET", "1000") if "CONFIG" not in str(entry[3])]
        longest = max((int(entry[2]) for entry in slow), default=300)
        section.limits += [Limit(f"{label}: median", section.find(key).median("p50_us") / 1000, limit, "ms")
                           for key, label, _, _, limit in questions(last) if limit]
        # (The longest is the machine's word too: a Redis that must wait for a processor in the middle of a command.)
        section.limits.append(Limit("commands' p99", slowest_p99(tallyd) / 1000, 5, "ms"))
        section.notes.append(f"longest command of all: {longest / 1000:.1f} ms")
        if data_keys(tallyd) != keys:
            bench.errors.append("activity: questions left keys behind")
        bench.note_memory(section.key, tallyd.pid)


def fewer(bench):
    section = Section("activity_fewer", f"the same with {FEWER_USERS:,} users")
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        last = datetime.date.today()
        check(bench, tallyd, "small", last, fill(tallyd, "small", last, FEWER_USERS))
        bench.in_turn(section, list(contenders(bench, tallyd, "small", last, 20 if bench.settings.quick else 100)))
        section.limits += [Limit(f"{label}: median", section.find(key).median("p50_us") / 1000, FEWER_MS, "ms")
                           for key, label, _, _, limit in questions(last) if limit]
    return section


def memory(bench, section):
    n = MEMORY_USERS // (10 if bench.settings.quick else 1)
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        for i in range(0, n, BATCH):
            tallyd.client.accept([{"page": "/", "user": f"user-{u}"} for u in range(i, i + BATCH)])
        tallyd.settle()

        def bytes_of(pattern):
            return sum(int(tallyd.redis("MEMORY", "USAGE", key, "SAMPLES", "0")) for key in tallyd.redis("KEYS", pattern))

        index, names, day = bytes_of("t:*:uid:*"), bytes_of("t:*:ids:*"), bytes_of("t:*:act:*")
        section.extra["bytes"] = {"users": n, "index": index / n, "names": names / n, "user_day": day / n}
        section.notes.append(f"{n:,} users named user-0 ..: {index / n:.1f} bytes a user from name to index, {names / n:.1f} "
                             f"back; {day / n:.3f} bytes a user and day")
        bench.note_memory(section.key, tallyd.pid)


def activity(bench):
    section = Section("activity", f"activity: {USERS:,} users, half of them on each of {DAYS} days, on a quiet server, one "
                                  "question after the other")
    speed(bench, section)
    memory(bench, section)
    return [section, fewer(bench)]
