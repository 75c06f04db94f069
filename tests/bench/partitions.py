#!/usr/bin/env python3
"""What partitions cost: CPU an event and a question, how long Redis is held, memory; a fresh Redis for each number.

The table of README.md, "What partitions cost".  CPU is that of Redis's main thread and of all threads of tallyd in ns,
so a busy machine moves it little.  About eight minutes.

    tests/bench/partitions.py [NUMBER ..]      with build/tallyd and build/bench/rate, or TALLYD_BIN
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

NUMBERS = (1, 16, 64, 256, 1024)
EVERYSEC = ("--appendfsync", "everysec")
LOAD_S = 6
QUIET_S = 10
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


def loaded(redis, tallyd, name, row, *args):
    """A load and the folds of it: us an event of both, ms a fold."""
    http = tallyd.client()
    before = http.metrics()
    redis.command("CONFIG", "RESETSTAT")
    clocks = Clocks(redis, tallyd)
    events = rate("-d", LOAD_S, *args, tallyd.port, "/events", SINGLE if "-b" not in args else EVENT)["events"]
    counted(tallyd.client())
    used = clocks.used()
    after = http.metrics()
    folds = after["tallyd_folds_total"] - before["tallyd_folds_total"]
    row[f"{name} redis us"], row[f"{name} tallyd us"] = (s * 1e6 / events for s in used)
    row[f"{name} fold ms"] = (after["tallyd_fold_seconds_sum"] - before["tallyd_fold_seconds_sum"]) / folds * 1e3
    row[f"{name} fold events"] = events / folds
    row[f"{name} exec p99.9 ms"] = redis.longest_turns()["p99.9"] / 1e3


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
    redis.command("CONFIG", "RESETSTAT")
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
    row[f"{name} ms"] = sorted(times)[len(times) // 2] * 1e3
    row[f"{name} redis us"], row[f"{name} tallyd us"] = (s * 1e6 / QUESTIONS for s in used)
    if path != "/dau":  # it has no MULTI
        row[f"{name} turn ms"] = redis.longest_turns()["p99.9"] / 1e3


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
    row["written ms"] = sorted(times)[len(times) // 2] * 1e3
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


def rolled_up(n, row):
    """Three hours of 10,000 pages become hours: an hour's pass, in CPU and time.  Redis's clock is moved by libfaketime."""
    world = World("2026-03-10 08:05:00", "--partitions", n)
    try:
        events = [{"page": f"/page/{i % 10000}", "user": f"u{i}", "ts": world.clock.now() - 60 + i % 60} for i in range(40000)]
        for i in range(0, len(events), 10000):
            world.http.accept(events[i:i + 10000])
        counted(world.http)
        world.clock.set("2026-03-10 09:04:00")
        clocks = Clocks(world.redis, world.tallyd)
        world.redis.command("CONFIG", "RESETSTAT")
        began = time.monotonic()
        wait_until(lambda: world.http.request("POST", "/rollup").json["watermarks"]["hour"] == "2026-03-10T09:00:00Z", "it is closed", 60)
        row["rollup s"] = time.monotonic() - began
        row["rollup redis s"], row["rollup tallyd s"] = clocks.used()
        world.clock.set("2026-03-10 10:04:00")
        clocks = Clocks(world.redis, world.tallyd)
        began = time.monotonic()
        wait_until(lambda: world.http.request("POST", "/rollup").json["watermarks"]["hour"] == "2026-03-10T10:00:00Z", "it is closed", 60)
        row["empty rollup s"] = time.monotonic() - began
        row["empty rollup redis s"], row["empty rollup tallyd s"] = clocks.used()
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
