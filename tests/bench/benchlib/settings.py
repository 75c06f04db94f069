"""What is run for how long, from the environment; where things are."""

import os
import pathlib
import sys

BENCH = pathlib.Path(__file__).resolve().parents[1]
ROOT = BENCH.parents[1]
BUILD = pathlib.Path(os.environ.get("BENCH_BUILD", ROOT / "build")).resolve()
PROGRAMS = BUILD / "bench"

PAGES, USERS = 10_000, 1_000_000
# A batch's event: about 125 bytes.  The single events of wrk.lua have a longer user agent and a referrer.
EVENT = ('{"page":"/page/number/{page}","user":"user-{user}","ip":"{ip}",'
         '"ua":"Mozilla/5.0 (X11; Linux) Chrome/120"}')
SINGLE = ('{"page":"/page/number/{page}","user":"user-{user}","ip":"{ip}",'
          '"ua":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/120 Safari/537.36",'
          '"referrer":"https://example.com/start"}')


def number(name, default, least, most):
    text = os.environ.get(name, "") or str(default)
    try:
        value = type(default)(text)
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        sys.exit(f"bench: {name}={text} is no number from {least} to {most}")
    return value


def find_log():
    """The largest of the real logs that the tests look for, too; else access.log here."""
    logs = (ROOT / os.environ.get("TALLYD_LOGS", "../shared/data")).glob("*.log.gz")
    return max(logs, key=lambda path: path.stat().st_size, default="access.log")


# With {ts} the events have a time: rate.c -a says how old they are.
TIMED_EVENT = EVENT.replace("{", '{"ts":{ts},', 1)


class Settings:
    """out: the name of the JSON file, where BENCH_OUT does not say."""

    def __init__(self, out="bench.json"):
        self.quick = os.environ.get("BENCH_QUICK", "") not in ("", "0")
        self.runs = number("BENCH_RUNS", 2 if self.quick else 3, 1, 20)
        self.seconds = number("BENCH_SECONDS", 1.0 if self.quick else 6.0, 0.2, 60.0)
        self.warm_up_s = 0.0 if self.quick else 1.0
        self.scale = number("BENCH_SCALE", 1, 0, 1)
        self.questions = 100 if self.quick else 1000
        self.idle_s = 1.0 if self.quick else 10.0
        self.growth_events = 200_000 if self.quick else 1_000_000
        self.growth_s = 2.0 if self.quick else 12.0
        self.only = [s for s in os.environ.get("BENCH_ONLY", "").split(",") if s]
        self.out = pathlib.Path(os.environ.get("BENCH_OUT", BUILD / out)).resolve()
        self.log = pathlib.Path(os.environ.get("BENCH_LOG", "") or find_log()).resolve()
        self.peers_root = os.environ.get("BENCH_PEERS_ROOT", "")
        self.cores = len(os.sched_getaffinity(0))
        self.threads = max(1, min(4, self.cores))  # tallyd's default
        self.wrk_threads = 2  # as wrk does by itself; with one, singles came to 0.35 and 0.36 of the bare server instead of 0.42
