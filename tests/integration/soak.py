"""`make soak`: does anything grow, or drift, over a long time?

SOAK_MINUTES (120) of mixed load on a tallyd with its own Redis: resident memory, descriptors and Redis's memory are sampled,
and in the end every figure must be what was sent.  SOAK_DAYS (14) on a moved clock, with rollups, late events and kills:
every day's figures against the naive model, and the memory of Redis once minutes and hours expire.  0 leaves a part out.
TALLYD_SEED repeats what is by chance.
"""

import os
import random
import signal
import sys
import threading
import time

from lib import process
from lib.fortnight import Fortnight
from lib.memory import MIB, Sample, descriptors, growth_per_hour, of_redis, resident
from lib.mixed_load import MixedLoad
from lib.process import Tallyd
from lib.truth import slack

SAMPLES = 240            # of a run, at most one a second
RESIDENT_MIB = 32        # what tallyd may take under this load
GROWTH_MIB_PER_HOUR = 4  # of tallyd, once it has warmed up: in the second half of a run
WARM_S = 1200            # until then caches fill
HOUR_S = 3600


def sample(tallyd, redis_pid, at_s, events):
    memory = of_redis(tallyd.redis_command("INFO", "memory"))
    assert redis_pid == tallyd.redis_pids()[0], "Redis was started again"
    return Sample(at_s, resident(tallyd.pid), descriptors(tallyd.pid), memory, tallyd.redis_command("DBSIZE"), events)


def compare(tallyd, load):
    """Every figure of the load's site is what its writers had counted."""
    http, views, begin = tallyd.client(), load.views(), "now-1d"
    http.await_counted(load.site)
    truths = [writer.truth for writer in load.writers]
    assert http.count("pv", site=load.site, from_=begin) == views.total()
    assert http.count("visits", site=load.site, from_=begin) == sum(truth.visits for truth in truths)
    assert http.question("/pages", site=load.site, from_=begin, limit=1)["total_pages"] == len(views)
    for page, n in views.items():
        assert http.count("pv", site=load.site, from_=begin, page=page) == n, page
    events = http.question("/breakdown", site=load.site, from_=begin, by="event", limit=500)
    assert events["total"] == sum(truth.named for truth in truths)
    for metric, name in (("uv", "viewers"), ("ips", "ips")):
        expected = sum(len(getattr(truth, name)) for truth in truths)
        got = http.count(metric, site=load.site, from_=begin)
        assert abs(got - expected) <= slack(expected, 5.5), (metric, got, expected)
    users = sum(len(truth.users) for truth in truths)
    day_s = 24 * HOUR_S
    days = {"from_": time.strftime("%Y-%m-%d", time.gmtime(time.time() - day_s)), "to": time.strftime("%Y-%m-%d", time.gmtime(time.time() + day_s))}
    assert http.question("/active", site=load.site, match="any", **days)["users"] == users
    for user, page in load.writers[0].truth.pairs:
        assert http.question("/seen", site=load.site, user=user, page=page)["seen"], (user, page)
    return views.total()


def long_load(seed, seconds, stopping, scale=1.0):
    """Returns the samples."""
    tallyd = Tallyd("--redis-memory", "4GiB", "--cache-mb", "4")
    samples = []
    try:
        tallyd.start()
        redis_pid, load = tallyd.redis_pids()[0], MixedLoad(tallyd, seed, "soak", scale=scale).start()
        try:
            every_s = max(1.0, seconds / SAMPLES)
            # by the number of samples: the whole process may be stopped and go on later
            while not stopping.wait(every_s) and len(samples) < seconds / every_s and not load.faults():
                samples.append(sample(tallyd, redis_pid, (len(samples) + 1) * every_s, load.views().total()))
                if len(samples) % 20 == 0:
                    print(row(samples[-1]), flush=True)
        finally:
            load.end()
        counted = compare(tallyd, load)
        workers = [*load.writers, *load.askers]
        requests, refused, lost = (sum(getattr(worker, name) for worker in workers) for name in ("done", "refused", "lost"))
        slowest_s = max(worker.slowest_s for worker in workers)
        print(f"soak: {counted} page views in {requests} requests, all of them counted once; slowest answer {slowest_s:.2f} s, "
              f"{refused} refused, {lost} lost", flush=True)
        assert tallyd.terminate(30) == 0
    finally:
        tallyd.stop()
    return samples


def row(s):
    return (f"soak: {s.at_s / 60:6.1f} min  {s.events:9} page views  tallyd {s.tallyd / MIB:6.1f} MiB {s.descriptors:4} descriptors  "
            f"Redis {s.redis / MIB:7.1f} MiB {s.keys:8} keys")


def judge(samples):
    """Raises where something grows that must not.  Redis grows with what is counted, so its growth is only told."""
    most, grows = max(s.tallyd for s in samples), growth_per_hour(samples, "tallyd")
    print(f"soak: tallyd had {most / MIB:.1f} MiB at most, and grew by {grows / MIB:.2f} MiB an hour in the second half; "
          f"descriptors by {growth_per_hour(samples, 'descriptors'):.1f}; Redis by {growth_per_hour(samples, 'redis') / MIB:.1f} MiB and "
          f"{growth_per_hour(samples, 'keys'):.0f} keys", flush=True)
    assert most <= RESIDENT_MIB * MIB, f"{most / MIB:.1f} MiB"
    if samples[len(samples) // 2].at_s < WARM_S:
        return
    assert growth_per_hour(samples, "descriptors") <= 10
    assert grows <= GROWTH_MIB_PER_HOUR * MIB, f"{grows / MIB:.2f} MiB an hour"


def main():
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    process.own_groups = True
    seed = int(os.environ.get("TALLYD_SEED") or time.time_ns() % 1_000_000)
    minutes, days = float(os.environ.get("SOAK_MINUTES") or 120), int(os.environ.get("SOAK_DAYS") or 14)
    print(f"soak: TALLYD_SEED={seed}, {minutes:g} minutes, {days} days", flush=True)
    try:
        if minutes > 0:
            judge(long_load(seed, minutes * 60, stopping))
        if days > 0 and not stopping.is_set():
            fortnight = Fortnight(random.Random(seed), days)
            fortnight.run(stopping)
            fortnight.judge()
    except BaseException:
        for child in process.running:
            print(f"-- {child.name}\n{child.tail()}", file=sys.stderr)
        raise


if __name__ == "__main__":
    main()
