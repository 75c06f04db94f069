"""What tallyd costs Redis: the memory of its clients, and how long one append or fold holds up everybody else."""

import json
import re
import threading
import time

import pytest

from lib.clock import FakeClock
from lib.memory import of_redis
from lib.process import sanitized, short_directory
from lib.truth import is_close

MB = 1 << 20


# Memory


def largest_client(connection):
    """Bytes that Redis holds for the client that it holds most for."""
    return max(int(n) for n in re.findall(r"\btot-mem=(\d+)", connection.command("CLIENT", "LIST")))


class Watch:
    """Looks at Redis's clients again and again, on a connection of its own."""

    def __init__(self, redis):
        self.connection = redis.connect()
        self.peak, self.looks = 0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(10)
        self.connection.close()

    def _run(self):
        while not self.over.wait(0.003):
            self.peak = max(self.peak, largest_client(self.connection))
            self.looks += 1


def test_a_question_over_many_dense_keys_makes_redis_buffer_little(start_redis, start_proxy, start_tallyd, site):
    """3,000 sketches of 12 KB, read by a client that is slower than Redis: what was asked for ahead lies in Redis's
    memory meanwhile, and counts for its maxmemory."""
    pages, minutes = 75, 40
    directory = short_directory()
    redis = start_redis(directory, clock=FakeClock(directory, "2026-03-10 10:50:10"))
    proxy = start_proxy(redis)
    http = start_tallyd("--partitions", "1", redis=proxy).client()
    http.accept([{"site": site, "page": "/0", "user": i, "ts": "2026-03-10T10:00:00Z"} for i in range(10_000)])
    where = {"site": site, "from_": "2026-03-10T10:00:00Z", "to": "2026-03-10T10:40:00Z"}
    first = http.question("/uv", page="/0", explain="1", **where)["cover"]["list"][0]["key"]
    with redis.connect() as connection:
        assert connection.command("STRLEN", first) > 12_000, "dense"
        connection.command(
            "EVAL", "for p = 0, ARGV[2] - 1 do for m = 0, ARGV[3] - 1 do if p + m > 0 then redis.call('COPY', KEYS[1], "
            "ARGV[1] .. string.format('%02d', m) .. ':/' .. p) end end end", 1, first,
            first.removesuffix("00:/0"), pages, minutes)
        assert of_redis(connection.command("INFO", "memory")) > 30 * MB
    proxy.delay_s = 0.003  # a reply of 3,000 sketches comes in hundreds of pieces
    with Watch(redis) as watch:
        answer = http.question("/uv", page=[f"/{i}" for i in range(pages)], **where)
    assert answer["cover"]["keys"] == pages * minutes and is_close(answer["uv"], 10_000)
    print(f"{watch.peak / MB:.1f} MB, {watch.looks} looks")
    assert watch.looks > 20
    assert 1 * MB < watch.peak < 15 * MB


# Time


def address(i):
    return f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}"


def long_pages_late(now, n, site):
    return [{"site": site, "page": f"/{n}-{i}" + "y" * 1800, "user": i, "ip": address(i), "ts": now - 3 * 86400}
            for i in range(4000)]


def many_sites(_now, n, site):
    return [{"site": f"{site[-20:].strip('-')}{i % 2500}", "page": "/x", "user": f"{n} {i}", "ip": address(i)}
            for i in range(10_000)]


def many_minutes(now, n, site):
    return [{"site": site, "page": f"/{i % 50}", "user": f"{n} {i}", "ip": address(i),
             "ts": now - 86400 - i % 1440 * 60} for i in range(10_000)]


# A transaction holds up everybody else while it runs, so tallyd cuts its folds to about 2.5 ms, by an estimate of what they
# cost and by how long they took lately on this machine.  The first fold goes by the estimate alone, and who shares the
# machine makes transactions longer, never shorter: one good batch of several shows that the cut follows.
# The append of a request is no transaction: Redis copies its bytes, and that takes as long as they are many.
BATCHES = 10
APPEND_US = 4  # a KB of the request, where memory is slow
SLOW_US, TOO_SLOW_US, FAST_SHARE = 5000, 10_000, 92
WAITED_SHARE = 0.1  # of a batch's time that Redis was ready to run and had no processor: then nothing can be told


def transactions(redis):
    """(number, mean us, us of which FAST_SHARE percent take no more, longest us) since CONFIG RESETSTAT."""
    found = re.search(r"cmdstat_exec:calls=(\d+),usec=(\d+)", redis.command("INFO", "commandstats"))
    turns = redis.longest_turns()
    return int(found[1]), int(found[2]) / int(found[1]), turns[f"p{FAST_SHARE}"], turns["p100"]


@pytest.mark.some(1)
@pytest.mark.parametrize("batch", [long_pages_late, many_sites, many_minutes],
                         ids=["long pages, late", "many sites", "many minutes"])
def test_nothing_holds_redis_for_long(start_redis, start_tallyd, site, batch):
    if sanitized():
        pytest.skip("a sanitizer's build takes the processor from Redis: times mean nothing")
    redis = start_redis(options=("--slowlog-log-slower-than", SLOW_US, "--slowlog-max-len", "1000",
                                 "--latency-tracking-info-percentiles", f"{FAST_SHARE} 100"))
    http = start_tallyd(redis=redis).client()
    now, seen, judged = int(time.time()), [], 0
    for n in range(BATCHES):
        events = batch(now, n, site)
        redis.command("SLOWLOG", "RESET")
        redis.command("CONFIG", "RESETSTAT")
        before = redis.processor()
        http.accept(events)
        assert http.count("pv") >= 0  # it waits for the fold
        ran, waited = (b - a for a, b in zip(before, redis.processor()))
        number, mean, most, longest = transactions(redis)
        scripts = [int(entry[2]) for entry in redis.command("SLOWLOG", "GET", "-1") if entry[3][0] == "EVALSHA"]
        busy = waited > WAITED_SHARE * ran
        judged += not busy
        seen.append(f"{number} transactions, mean {mean:.0f} us, {FAST_SHARE} % within {most:.0f}, longest {longest:.0f}, "
                    f"{len(scripts)} scripts above {SLOW_US}, ran {ran / 1e6:.0f} ms and waited {waited / 1e6:.0f} ms for a processor")
        print(seen[-1])
        assert number > 8, f"too few transactions to tell: {seen}"
        copied_us = len(json.dumps(events)) / 1024 * APPEND_US
        if most <= SLOW_US and longest <= TOO_SLOW_US and max(scripts, default=0) <= SLOW_US + copied_us:
            return
    if judged < 3:
        pytest.skip(f"the machine is too busy to tell: {seen}")
    pytest.fail(f"in each of {BATCHES} batches: {seen}")
