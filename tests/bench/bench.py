#!/usr/bin/python3
"""make bench: tallyd beside what limits it and what one would build instead.  README.md says how to read it."""

import pathlib
import shutil
import signal
import sys
import tempfile

from benchlib import (activity, aof, ask, beside, dashboards, decoder, filters, flood, growth, imports, ingest, limits, log, machine,
                      overlap, page, panels, postgres, query, report, robots, sketch, stored)
from benchlib.bench import Bench
from benchlib.load import LoadFailed
from benchlib.servers import Nginx, Unknown, Webdis
from benchlib.settings import BENCH, BUILD, PROGRAMS, ROOT, Settings

SECTIONS = {
    "single": lambda b: [ingest.single(b, "always"), ingest.single_random(b, "always")],
    "batch": lambda b: [ingest.batch(b, "always")],
    "keyed": ingest.keyed,
    "everysec": lambda b: [ingest.single(b, "everysec"), ingest.single_random(b, "everysec"), ingest.batch(b, "everysec")],
    "log": log.log,
    "ask": ask.ask,
    "seen_beside": lambda b: [beside.seen_beside(b)],
    "aof": lambda b: [aof.aof(b)],
    "import": imports.imports,
    "postgres": postgres.postgres,
    "rate": ingest.fixed_rates,
    "uv": lambda b: [query.uv(b)],
    "dashboards": lambda b: [dashboards.dashboards(b)],
    "panels": lambda b: [panels.panels_section(b)],
    "activity": activity.activity,
    "ratelimit": lambda b: [limits.ratelimit(b)],
    "guard": lambda b: [limits.guard(b)],
    "decoder": lambda b: [decoder.decoder(b)],
    "robots": lambda b: [robots.robots(b)],
    "sketch": lambda b: [sketch.sketch(b)],
    "overlap": lambda b: [overlap.overlap(b)],
    "page": page.page,
    "seen": filters.seen,
    "filters": lambda b: [filters.throughput(b), filters.false_positives(b)],
    "flood": lambda b: [flood.flood(b)],
    "growth": lambda b: [growth.growth(b)],
    "stored": lambda b: [stored.stored(b)],
}


def check(settings, sections):
    """One clear line for what is missing."""
    packages = [package for program, package in (("wrk", "wrk"), ("redis-server", "redis-server"))
                if shutil.which(program) is None]
    if packages:
        sys.exit(f"bench: missing: {' '.join(packages)}; as root: apt-get install {' '.join(packages)}")
    files = [p for p in [BUILD / "tallyd", *(PROGRAMS / c.stem for c in BENCH.glob("*.c"))] if not p.exists()]
    if files:
        sys.exit(f"bench: not built: {' '.join(map(str, files))}; run make bench")
    unknown = [s for s in settings.only if s not in sections]
    if unknown:
        sys.exit(f"bench: BENCH_ONLY: no section {', '.join(unknown)}; there are {', '.join(sections)}")


def check_peers(settings):
    absent = [name for name, peer in (("webdis", Webdis), ("nginx with Lua", Nginx)) if not peer.installed(settings)]
    absent += [] if shutil.which("goaccess") else ["goaccess"]
    if absent:
        print(f"bench: without {', '.join(absent)}, not installed: `make bench-peers` installs", file=sys.stderr)


def end(number, _frame):
    sys.exit(128 + number)


def run(settings, sections, tell=lambda bench: None):
    """Run {name: section(bench)} as the settings say, and report.  tell(bench) has the last word.  The exit status."""
    check(settings, sections)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    directory = pathlib.Path(tempfile.mkdtemp(prefix="tbench-", dir="/tmp"))  # short: sockets' paths are
    bench = Bench(settings, directory)
    described = machine.describe(directory, ROOT)
    problems = []
    try:
        for name, section in sections.items():
            if settings.only and name not in settings.only or name == "growth" and not settings.scale:
                continue
            try:
                bench.sections += section(bench)
            except (LoadFailed, Unknown, AssertionError, RuntimeError, OSError) as error:
                problems.append(f"{name}: {error}")
    except KeyboardInterrupt:
        problems.append("interrupted: the sections behind it are missing")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    problems += bench.errors
    report.report(bench, described, problems)
    tell(bench)
    return 1 if problems else 0


def main():
    settings = Settings()
    check_peers(settings)
    return run(settings, SECTIONS)


if __name__ == "__main__":
    sys.exit(main())
