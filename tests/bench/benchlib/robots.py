"""What it costs an event that its user agent is looked at for known robots (bench_robots)."""

import re
import subprocess

from .load import LoadFailed
from .results import Limit, Section, Series
from .settings import PROGRAMS

ROW = re.compile(r"^(.+?)\s+([\d.]+)\s+\(\d+ agents", re.M)
LABELS = {"seen": "agents seen before", "seen, long": "the longest, seen before", "new": "no agent twice", "worst": "made up to cost most"}
MOST_NS = {"seen": 300, "seen, long": 300, "new": 2000, "worst": 2000}


def robots(bench):
    section = Section("robots", "known robots by user agent: ns an event (no HTTP, one core; the best of ten tenths a run)")
    kinds = {}
    for run in range(bench.settings.runs):
        bench.say(f"robots: run {run + 1} of {bench.settings.runs}")
        done = subprocess.run([PROGRAMS / "bench_robots", "0.1" if bench.settings.quick else "0.5"],
                              capture_output=True, text=True, timeout=120, check=False)
        rows = ROW.findall(done.stdout)
        if done.returncode != 0 or {name for name, _ in rows} != set(LABELS):
            raise LoadFailed(f"bench_robots: {done.stdout[-300:]}{done.stderr[-300:]}")
        for name, ns in rows:
            kinds.setdefault(name, []).append({"ns": float(ns), "rate": 1e9 / float(ns)})
    section.series = [Series(name, LABELS[name], records) for name, records in kinds.items()]
    section.limits = [Limit(f"{LABELS[name]}: ns an event", section.find(name).median("ns"), most, "ns") for name, most in MOST_NS.items()]
    return section
