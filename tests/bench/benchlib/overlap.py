"""The joint estimate of two sketches' intersection, beside inclusion-exclusion (hll_joint); no server is asked."""

import re
import subprocess

from .load import LoadFailed
from .results import Limit, Section
from .settings import PROGRAMS

ROW = re.compile(r"^\s*([\d.]+)\s+(\d+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)x\s+([\d.]+)%\s+(\d+)$", re.M)
ELEMENTS = 100_000


def overlap(bench):
    section = Section("overlap", f"the error of an intersection, in elements; two sets of equal size, {ELEMENTS:,} in either")
    pairs = 40 if bench.settings.quick else 400
    bench.say("overlap: nine rows")
    done = subprocess.run([PROGRAMS / "hll_joint", str(pairs), str(ELEMENTS), "1"], capture_output=True, text=True,
                          timeout=300, check=False)
    rows = ROW.findall(done.stdout)
    if done.returncode != 0 or len(rows) < 9:
        raise LoadFailed(f"hll_joint: {done.stdout[-300:]}{done.stderr[-300:]}")
    section.extra["rows"] = [dict(zip(("jaccard", "both", "inclusion_exclusion", "joint", "joint_says", "narrower",
                                       "holds_percent", "us"), map(float, row))) for row in rows]
    section.notes += done.stdout.rstrip().splitlines()
    took = max(row["us"] for row in section.extra["rows"])
    section.limits.append(Limit("one joint estimate, the slowest row", took / 1000, 1, "ms"))
    return section
