"""What processes take over time, and whether it grows."""

import pathlib
import re
import statistics
from dataclasses import dataclass

MIB = 1 << 20


def resident(pid):
    """Bytes of memory that a process holds now."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"process {pid} has no memory")


def of_redis(info):
    """Bytes that Redis holds, as INFO says."""
    return int(re.search(r"used_memory:(\d+)", info)[1])


def descriptors(pid):
    return len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir()))


@dataclass
class Sample:
    at_s: float
    tallyd: int      # bytes
    descriptors: int
    redis: int       # bytes, Redis's own account
    keys: int
    events: int      # counted so far


def growth_per_hour(samples, name):
    """Of the second half of the samples, in units an hour: the slope of Theil and Sen, the median over all pairs, which single
    peaks do not move."""
    half = samples[len(samples) // 2:]
    slopes = [(getattr(b, name) - getattr(a, name)) / (b.at_s - a.at_s) for i, a in enumerate(half) for b in half[i + 1:]]
    return 3600 * statistics.median(slopes)
