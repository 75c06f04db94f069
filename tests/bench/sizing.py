#!/usr/bin/env python3
"""What to buy: memory of a page in a minute, hour, day and month, of a user, and CPU time an event.

The figures of deploy/README.md's sizing table.  One fresh embedded Redis for each row; memory is the growth of
Redis's used_memory, CPU is of /proc/PID/stat, so a busy machine matters little.  A minute or two.

    tests/bench/sizing.py           with build/tallyd, or TALLYD_BIN
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from lib.log import counted  # noqa: E402
from lib.process import Tallyd, children  # noqa: E402
from lib.resp import Resp  # noqa: E402

DAY = 86400
# How old an event is, so that of the levels only the ones named are still kept.
AGES = {"minute": 120, "hour+day+month": 40 * DAY, "day+month": 200 * DAY, "month": 1500 * DAY}
SITE = "example"


def started():
    daemon = Tallyd("--redis-memory", "2GiB", "--fsync", "everysec", name="sizing")
    return daemon.start()


def used_memory(daemon):
    with Resp.unix(daemon.data_dir / "redis.sock", 10) as redis:
        info = redis.command("INFO", "memory")
    text = info.decode() if isinstance(info, bytes) else info
    return int(next(line.partition(":")[2] for line in text.splitlines() if line.startswith("used_memory:")))


def stop(daemon):
    daemon.stop()
    shutil.rmtree(daemon.directory, ignore_errors=True)


def send(http, events):
    for i in range(0, len(events), 10_000):
        http.accept(events[i:i + 10_000])
    counted(http)


def pages_cost(age_s, visitors, pages):
    """Bytes a page, for its sketches of visitors and addresses and its page views."""
    daemon = started()
    try:
        http = daemon.client()
        at = int(time.time()) - age_s
        send(http, [{"site": SITE, "page": "/warm", "ip": "192.0.2.1", "ts": at}])
        # Visitors are the same for every page: what is kept of each apart, for visits, is not counted twice.
        who = [{"ip": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", "ua": "x"} for i in range(visitors)]
        send(http, [{"site": SITE, "page": "/warm", "ts": at, **w} for w in who])
        before = used_memory(daemon)
        send(http, [{"site": SITE, "page": f"/section/product-{p:06}", "ts": at, **w} for p in range(pages) for w in who])
        return (used_memory(daemon) - before) / pages
    finally:
        stop(daemon)


def users_cost(n):
    """Bytes a user, name and first active day, and what is kept of its last event for visits."""
    daemon = started()
    try:
        http = daemon.client()
        old = int(time.time()) - 200 * DAY
        send(http, [{"site": SITE, "page": "/", "user": "warm", "ts": old}])
        before = used_memory(daemon)
        send(http, [{"site": SITE, "page": "/", "user": f"user-{i:07}", "ts": old} for i in range(n)])
        return (used_memory(daemon) - before) / n
    finally:
        stop(daemon)


def visitors_cost(n):
    """Bytes a visitor of the last two to three visit timeouts."""
    daemon = started()
    try:
        http = daemon.client()
        send(http, [{"site": SITE, "page": "/", "ip": "192.0.2.1"}])
        before = used_memory(daemon)
        send(http, [{"site": SITE, "page": "/", "ip": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}", "ua": "x"} for i in range(n)])
        return (used_memory(daemon) - before) / n
    finally:
        stop(daemon)


def cpu_us(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def event_cost(batch, requests):
    """CPU time in us an event: of tallyd, of its Redis."""
    daemon = started()
    try:
        http = daemon.client()
        (redis,) = children(daemon.pid)
        bodies = [json.dumps([{"site": SITE, "page": f"/product/{(i * 7919 + r * 31) % 1000}",
                               "ip": f"10.0.{(i * 13 + r) % 200}.{(i + r * 7) % 250}", "ua": "Mozilla/5.0 (X11; Linux x86_64)"}
                              for i in range(batch)]) for r in range(50)]
        for body in bodies[:10]:
            http.post(body)
        counted(http)
        before = cpu_us(daemon.pid), cpu_us(redis)
        for r in range(requests):
            assert http.post(bodies[r % len(bodies)]).status == 202
        counted(http)
        return [(cpu_us(pid) - b) / (batch * requests) for pid, b in zip((daemon.pid, redis), before)]
    finally:
        stop(daemon)


def crowd_cost(rate, connections, seconds):
    """The same for many clients at once, one event a request."""
    daemon = started()
    try:
        (redis,) = children(daemon.pid)
        before = cpu_us(daemon.pid), cpu_us(redis)
        event = '{"site":"example","page":"/product/{page}","ip":"{ip}","ua":"Mozilla/5.0 (X11; Linux x86_64)"}'
        done = subprocess.run([rate, "-c", str(connections), "-d", str(seconds), "-P", "1000", str(daemon.port), "/events", event],
                              capture_output=True, text=True, check=True)
        events = json.loads(done.stdout)["events"]
        counted(daemon.client(60))
        return [(cpu_us(pid) - b) / events for pid, b in zip((daemon.pid, redis), before)]
    finally:
        stop(daemon)


def tell(how, tallyd, redis):
    print(f"CPU us an event, {how}: tallyd {tallyd:.2f}, Redis {redis:.2f}; "
          f"events a second of a core: {1e6 / tallyd:,.0f}, {1e6 / redis:,.0f}", flush=True)


def main():
    print("bytes a page        " + "".join(f"{v:>9} visitors" for v in (1, 10, 100, 1000)))
    sums = {level: [pages_cost(age, v, p) for v, p in ((1, 4000), (10, 2000), (100, 400), (1000, 60))] for level, age in AGES.items()}
    levels = {"minute": sums["minute"], "month": sums["month"],
              "day": [a - b for a, b in zip(sums["day+month"], sums["month"])],
              "hour": [a - b for a, b in zip(sums["hour+day+month"], sums["day+month"])]}
    for level in ("minute", "hour", "day", "month"):
        print(f"  in a {level:<14}" + "".join(f"{b:>18,.0f}" for b in levels[level]), flush=True)
    visitor = visitors_cost(50_000)
    print(f"bytes a visitor of the last visit timeouts: {visitor:.0f}", flush=True)
    print(f"bytes a user: {users_cost(50_000) - visitor:.0f}", flush=True)
    for batch, requests in ((1, 5000), (100, 800), (1000, 150)):
        tell(f"{batch} a request, one client", *event_cost(batch, requests))
    rate = pathlib.Path(__file__).resolve().parents[2] / "build/bench/rate"
    if rate.exists():  # make build/bench/rate
        tell("1 a request, 64 clients", *crowd_cost(rate, 64, 4))


if __name__ == "__main__":
    main()
