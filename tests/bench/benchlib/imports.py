"""`tallyd import` of an access log, every level kept."""

import re
import subprocess

from .bench import Contender
from .load import LoadFailed
from .machine import Meter, memory_kib
from .results import Section
from .servers import TallydServer, environment
from .settings import BUILD

KEEP = ("--keep-minutes", "forever", "--keep-hours", "forever", "--keep-days", "forever", "--keep-months", "forever")


def imported(bench, program=BUILD / "tallyd"):
    """A run on a fresh server; it ends when everything is counted."""
    with bench.serving(TallydServer, "--fsync", "everysec", *KEEP, program=program) as tallyd:
        meter = Meter(tallyd.roles)
        done = subprocess.run([program, "import", "--site", "log", "--url", tallyd.tallyd.url, *KEEP, bench.settings.log],
                              env=environment(), capture_output=True, text=True, timeout=3600, check=False)
        tallyd.settle()
        used = meter.stop()
        summary = {m[1].strip(): int(m[2]) for m in re.finditer(r"^([a-z ]+?)\s+(\d+)$", done.stdout, re.M)}
        if done.returncode != 0 or not summary.get("events accepted"):
            raise LoadFailed(f"tallyd import ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
        events = summary["events accepted"]
        counted = tallyd.tallyd.client(60).count("pv", site="log", from_="1990-01-01", to="now")
        if counted != events:
            bench.errors.append(f"import: {events} events accepted, {counted} counted")
        return {"rate": events / used["elapsed_s"], "events": events, "peak_mib": memory_kib(tallyd.pid) / 1024,
                "client_us": used["client_cpu_s"] / events * 1e6, "others_percent": used["others_percent"],
                **{f"{role}_us": cpu / events * 1e6 for role, cpu in used["cpu_s"].items()}}


def has_log(bench):
    """False, with a word, where there is nothing to import."""
    there = bench.settings.log.is_file()
    if not there:
        bench.say(f"import: skipped: no file {bench.settings.log}; BENCH_LOG=FILE names an access log")
    return there


def imports(bench):
    if not has_log(bench):
        return []
    section = Section("import", f"tallyd import of {bench.settings.log.name}, every level kept, --fsync everysec; a fresh server "
                                "a run, until all is counted")
    bench.in_turn(section, [Contender("tallyd", "tallyd", lambda seed, s: imported(bench))], warm_up=False)
    return [section]
