"""`tallyd import` of an access log, every level kept, and what goaccess takes for the same file."""

import gzip
import re
import shutil
import subprocess
import time

from .bench import Contender
from .load import LoadFailed
from .machine import Meter, memory_kib
from .results import Section
from .servers import TallydServer, environment
from .settings import BUILD

KEEP = ("--keep-minutes", "forever", "--keep-hours", "forever", "--keep-days", "forever", "--keep-months", "forever")


def every_line(program):
    """The options that make @program count every line; builds before --all did so by themselves."""
    said = subprocess.run([program, "import", "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return ("--all",) if "--all" in said else ()


def without_dimensions(program):
    """The options of a server that counts by no dimension; builds before there were any have none."""
    said = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return ("--dimensions", "off") if "--dimensions" in said else ()


def imported(bench, program=BUILD / "tallyd", serving=("--fsync", "everysec"), options=None, log=None):
    """A run on a fresh server; it ends when everything is counted.  `rate` is events, `line_rate` lines a second."""
    options = every_line(program) if options is None else options
    with bench.serving(TallydServer, *serving, *KEEP, program=program) as tallyd:
        meter = Meter(tallyd.roles)
        done = subprocess.run([program, "import", "--site", "log", "--url", tallyd.tallyd.url, *KEEP, *options,
                               log or bench.settings.log],
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
        return {"rate": events / used["elapsed_s"], "line_rate": summary["lines"] / used["elapsed_s"], "events": events,
                "peak_mib": memory_kib(tallyd.pid) / 1024, "client_us": used["client_cpu_s"] / events * 1e6,
                "others_percent": used["others_percent"],
                **{f"{role}_us": cpu / events * 1e6 for role, cpu in used["cpu_s"].items()}}


def analysed(bench, log):
    """goaccess, which reads the log and writes its report as JSON."""
    started = time.monotonic()
    done = subprocess.run(["goaccess", log, "--no-global-config", "--log-format=COMBINED", "-o",
                           bench.directory / "goaccess.json"],
                          env=environment(), capture_output=True, text=True, timeout=3600, check=False)
    elapsed_s = time.monotonic() - started
    if done.returncode != 0:
        raise LoadFailed(f"goaccess ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}")
    with open(log, "rb") as file:
        return {"line_rate": sum(1 for _ in file) / elapsed_s}


def plain(bench):
    """The log as a plain file: both programs read the same."""
    if bench.settings.log.suffix != ".gz":
        return bench.settings.log
    path = bench.directory / "import.log"
    if not path.exists():
        with gzip.open(bench.settings.log) as packed, open(path, "wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    return path


def has_log(bench):
    """False, with a word, where there is nothing to import."""
    there = bench.settings.log.is_file()
    if not there:
        bench.say(f"import: skipped: no file {bench.settings.log}; BENCH_LOG=FILE names an access log")
    return there


def imports(bench):
    if not has_log(bench):
        return []
    log = plain(bench)
    section = Section("import", f"tallyd import of {bench.settings.log.name}, every level kept; a fresh server a run, until all "
                                "is counted")
    contenders = [
        Contender("people", "tallyd, as by default", lambda seed, s: imported(bench, serving=(), options=(), log=log)),
        Contender("tallyd", "tallyd, --all, --fsync everysec", lambda seed, s: imported(bench, log=log))]
    if shutil.which("goaccess"):
        contenders.append(Contender("goaccess", "goaccess, its report as JSON", lambda seed, s: analysed(bench, log)))
    bench.in_turn(section, contenders, warm_up=False)
    section.ratio("lines a second: tallyd, as by default / goaccess", "people", "goaccess", metric="line_rate", must=1)
    section.ratio("lines a second: tallyd, --all / goaccess", "tallyd", "goaccess", metric="line_rate")
    return [section]
