"""Sketches counted by Redis and fetched and merged here (hll_codec), on a Redis of its own."""

import subprocess

from .load import LoadFailed
from .results import Limit, Section
from .servers import PeerRedis
from .settings import PROGRAMS

NAMES = ("pfcount_redis_us", "mget_redis_us", "merge_us", "pfcount_client_us", "mget_client_us")


def sketch(bench):
    section = Section("sketch", "sketches: PFCOUNT, and MGET with a merge here; medians in us")
    with bench.serving(PeerRedis, []) as redis:
        bench.say("sketch: eight rows")
        done = subprocess.run([PROGRAMS / "hll_codec", redis.socket, "100" if bench.settings.quick else "1000"],
                              capture_output=True, text=True, timeout=300, check=False)
    lines = done.stdout.rstrip().splitlines()
    rows = [line.split() for line in lines if line.startswith(("sparse", "dense"))]
    if done.returncode != 0 or len(rows) != 8:
        raise LoadFailed(f"hll_codec: {done.stdout[-300:]}{done.stderr[-300:]}")
    section.extra["rows"] = [{"encoding": row[0], "keys": int(row[1]), **dict(zip(NAMES, map(float, row[2:])))}
                             for row in rows]
    section.notes += lines
    last = section.extra["rows"][-1]
    section.limits.append(Limit("235 dense keys: Redis's time for MGET, share of PFCOUNT's",
                                last["mget_redis_us"] / last["pfcount_redis_us"] * 100, 10, "%"))
    return section
