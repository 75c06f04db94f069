"""1000-event bodies through jansson alone and through our decoder (bench_event_json)."""

import re
import subprocess

from .load import LoadFailed
from .results import Section, Series
from .settings import PROGRAMS

ROW = re.compile(r"^(.+?)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)x$", re.M)


def decoder(bench):
    section = Section("decoder", "1000-event bodies, decoded (no HTTP, one core; the best of ten tenths a run)")
    shapes = {}
    for run in range(bench.settings.runs):
        bench.say(f"decoder: run {run + 1} of {bench.settings.runs}")
        done = subprocess.run([PROGRAMS / "bench_event_json", "0.1" if bench.settings.quick else "0.5", str(run + 1)],
                              capture_output=True, text=True, timeout=120, check=False)
        rows = ROW.findall(done.stdout)
        if done.returncode != 0 or not rows:
            raise LoadFailed(f"bench_event_json: {done.stdout[-300:]}{done.stderr[-300:]}")
        for name, _, ours, theirs, _ in rows:
            shapes.setdefault(name, []).append((float(ours), float(theirs)))
    for name, runs in shapes.items():
        section.series += [
            Series(f"ours {name}", f"our decoder, {name}", [{"ns": a, "rate": 1e9 / a} for a, _ in runs]),
            Series(f"jansson {name}", f"jansson, {name}", [{"ns": b, "rate": 1e9 / b} for _, b in runs])]
        section.ratio(f"ours / jansson, {name}", f"ours {name}", f"jansson {name}",
                      must=5 if name == "plain" else None)
    return section
