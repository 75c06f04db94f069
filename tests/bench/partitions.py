#!/usr/bin/env python3
"""What partitions cost: CPU an event and a question, how long Redis is held, memory; a fresh Redis for each number.

The table of README.md, "What partitions cost".  CPU is that of Redis's main thread and of all threads of tallyd in ns,
so a busy machine moves it little.  About ten minutes.

    tests/bench/partitions.py [NUMBER ..]      with build/tallyd, build/bench/rate and build/tools/moved_clock.so
"""

import json
import pathlib
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from benchlib.settings import EVENT, PROGRAMS, SINGLE  # noqa: E402
from lib.clock import rfc3339  # noqa: E402
from lib.log import counted  # noqa: E402
from lib.process import Redis, Tallyd  # noqa: E402
from lib.waiting import wait_until  # noqa: E402
from lib.world import World  # noqa: E402

NUMBERS = (1, 16, 64, 128, 256, 1024)
EVERYSEC = ("--appendfsync", "everysec", "--hash-max-listpack-entries", "128")  # as deploy/redis.conf has it
LOAD_S = 3
RUNS = 5
QUIET_S = 5
QUESTIONS = 60


class Clocks:
    """CPU s of Redis's main thread and of tallyd, since it was made."""

    def __init__(self, redis, tallyd):
        self.redis, self.tallyd = redis, tallyd
        self.before = self.read()

    def read(self):
        tasks = pathlib.Path(f"/proc/{self.tallyd.pid}/task").iterdir()
        tallyd = sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)
        return self.redis.processor()[0] / 1e9, tallyd / 1e9

    def used(self):
        return [after - before for after, before in zip(self.read(), self.before)]


def rss_mib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def rate(*args):
    done = subprocess.run([PROGRAMS / "rate", *map(str, args)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def median(values):
    return sorted(values)[len(values) // 2]


def run(redis, tallyd, *args):
    """One run of a load, until all of it is counted: us an event of both, ms and events of a fold."""
    http = tallyd.client()
    before = http.metrics()
    clocks = Clocks(redis, tallyd)
    rate("-d", LOAD_S, *args, tallyd.port, "/events", EVENT if "-b" in args else SINGLE)
    counted(tallyd.client())
    used = clocks.used()
    after = http.metrics()
    events, folds, folds_s = (after[name] - before[name] for name in (
        "tallyd_fold_events_total", "tallyd_folds_total", "tallyd_fold_seconds_sum"))
    return *(s * 1e6 / events for s in used), folds_s / folds * 1e3, events / folds


def loaded(redis, tallyd, name, row, *args):
    """The medians of some runs behind one that warms up."""
    run(redis, tallyd, *args)
    redis.command("CONFIG", "RESETSTAT")
    figures = zip(*(run(redis, tallyd, *args) for _ in range(RUNS)))
    for what, values in zip(("redis us", "tallyd us", "fold ms", "fold events"), figures):
        row[f"{name} {what}"] = median(values)
    row[f"{name} exec p50 ms"] = redis.longest_turns()["p50"] / 1e3


def trickle(redis, tallyd, row):
    """Fifty events a second, and none: ms of CPU a second."""
    clocks = Clocks(redis, tallyd)
    rate("-d", QUIET_S, "-r", 50, "-c", 4, tallyd.port, "/events", SINGLE)
    counted(tallyd.client())
    row["trickle redis ms/s"], row["trickle tallyd ms/s"] = (s * 1e3 / QUIET_S for s in clocks.used())
    clocks = Clocks(redis, tallyd)
    time.sleep(QUIET_S)  # what is measured is that nothing happens
    row["idle redis ms/s"], row["idle tallyd ms/s"] = (s * 1e3 / QUIET_S for s in clocks.used())


def asked(redis, tallyd, name, row, path, **params):
    """The first answer, and the median of further ones; CPU of these."""
    http = tallyd.client()
    began = time.monotonic()
    http.question(path, **params)
    row[f"{name} first ms"] = (time.monotonic() - began) * 1e3
    times = []
    clocks = Clocks(redis, tallyd)
    for _ in range(QUESTIONS):
        began = time.monotonic()
        http.question(path, **params)
        times.append(time.monotonic() - began)
    used = clocks.used()
    row[f"{name} ms"] = median(times) * 1e3
    row[f"{name} redis us"], row[f"{name} tallyd us"] = (s * 1e6 / QUESTIONS for s in used)


def behind_a_write(redis, tallyd, row):
    """An event, and right after its 202 a question about its page."""
    http = tallyd.client()
    times = []
    clocks = Clocks(redis, tallyd)
    for i in range(QUESTIONS):
        http.accept({"page": f"/written/{i}", "user": f"writer-{i}"})
        began = time.monotonic()
        assert http.count("pv", page=f"/written/{i}", from_="now-1h", to="now") == 1
        times.append(time.monotonic() - began)
    used = clocks.used()
    row["written ms"] = median(times) * 1e3
    row["written redis us"], row["written tallyd us"] = (s * 1e6 / QUESTIONS for s in used)


def served(n, row):
    redis = Redis(appendonly=True, options=EVERYSEC).start()
    tallyd = Tallyd("--partitions", n, redis=redis)
    try:
        tallyd.start()
        row["start MiB"] = rss_mib(tallyd.pid)
        trickle(redis, tallyd, row)
        loaded(redis, tallyd, "arrays", row, "-c", 8, "-b", 1000)
        loaded(redis, tallyd, "single", row, "-c", 64)
        behind_a_write(redis, tallyd, row)
        day = {"from_": "now-24h", "to": "now"}
        asked(redis, tallyd, "page /uv", row, "/uv", page="/page/number/0000000", **day)
        asked(redis, tallyd, "site /uv", row, "/uv", **day)
        asked(redis, tallyd, "site /visits", row, "/visits", **day)
        asked(redis, tallyd, "site /stats by hour", row, "/stats", step="1h", **day)
        asked(redis, tallyd, "site /pages", row, "/pages", **day)
        asked(redis, tallyd, "site /dau", row, "/dau", date=rfc3339(redis.time())[:10])
        row["end MiB"] = rss_mib(tallyd.pid)
    finally:
        tallyd.stop()
        redis.stop()


def is_closed(http, hour):
    return http.request("POST", "/rollup").json.get("watermarks", {}).get("hour") == hour


def rolled_up(n, row):
    """An hour of 10,000 pages in one minute is rolled up, then an hour without events.  Redis's clock is moved."""
    world = World("2026-03-10 08:05:00", "--partitions", n)
    try:
        events = [{"page": f"/page/{i % 10000}", "user": f"u{i}", "ts": world.clock.now() - 60 + i % 60} for i in range(40000)]
        for i in range(0, len(events), 10000):
            world.http.accept(events[i:i + 10000])
        counted(world.http)
        for name, hour in (("rollup", "09"), ("empty rollup", "10")):
            world.clock.set(f"2026-03-10 {hour}:04:00")
            clocks = Clocks(world.redis, world.tallyd)
            began = time.monotonic()
            wait_until(lambda h=hour: is_closed(world.http, f"2026-03-10T{h}:00:00Z"), "it is rolled up", 60)
            row[f"{name} s"] = time.monotonic() - began
            row[f"{name} redis s"], row[f"{name} tallyd s"] = clocks.used()
    finally:
        world.close()


def main():
    numbers = [int(text) for text in sys.argv[1:]] or NUMBERS
    rows = []
    for n in numbers:
        row = {"partitions": n}
        served(n, row)
        rolled_up(n, row)
        rows.append(row)
        print(f"{n} partitions: done", file=sys.stderr, flush=True)
    for name in rows[0]:
        print(f"{name:<32}" + "".join(f"{row[name]:>12.3g}" if name != "partitions" else f"{row[name]:>12}" for row in rows))


if __name__ == "__main__":
    main()
