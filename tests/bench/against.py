#!/usr/bin/python3
"""make bench-against BASE=PROGRAM: the same loads with this build and with another one's tallyd, in turn.

    tests/bench/against.py PROGRAM      README.md says how to read it
"""

import os
import pathlib
import sys

import bench as driver
from benchlib import load, report, versus
from benchlib.settings import BUILD, Settings

LOADS = {
    "single_everysec": lambda b, of: [versus.single(b, of, "everysec")],
    "single_always": lambda b, of: [versus.single(b, of, "always")],
    "arrays_live": lambda b, of: [versus.arrays(b, of, "arrays_live", "live", load.batches)],
    "arrays_late": lambda b, of: [versus.arrays(b, of, "arrays_late", "one to two hours old", load.late_batches)],
    "import": lambda b, of: versus.imported(b, of) if versus.imports.has_log(b) else [],
    "dashboards": lambda b, of: [versus.polled(b, of)],
    "aof": versus.files,
    "ask": lambda b, of: [versus.asked(b, of, fsync) for fsync in ("everysec", "always")],
}


def main():
    base = pathlib.Path(sys.argv[1] if len(sys.argv) == 2 else "").resolve()
    if not os.access(base, os.X_OK) or base.is_dir():
        sys.exit("usage: against.py PROGRAM: the tallyd of another build (make bench-against BASE=PROGRAM)")
    builds = versus.Builds(BUILD / "tallyd", base)

    def tell(bench):
        print("\nnew against base: medians of all runs; the ratio is taken run by run\n")
        print("\n".join(report.table(versus.summary(bench.sections))))

    return driver.run(Settings(out="against.json"), {name: lambda b, run=run: run(b, builds) for name, run in LOADS.items()}, tell)


if __name__ == "__main__":
    sys.exit(main())
