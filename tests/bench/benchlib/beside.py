"""/seen of users who were just written, beside single events that come as fast as they are taken."""

import concurrent.futures

from . import load
from .bench import Contender
from .machine import Meter
from .results import Limit, Section
from .servers import TallydServer

ASKED = 1000  # a second
EVENT = '{"page":"/page/number/0000001","user":"asked-{n}"}'
QUESTION = "/seen?user=asked-{n}&page=/page/number/0000001"


def run(bench, tallyd, seed, seconds, asking):
    """The latencies are of the questions, where there are any; the rate is of all events, those that are asked for included."""
    s = bench.settings
    meter = Meter(tallyd.roles)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        events = pool.submit(load.run_json, load.wrk(s, tallyd.port, seconds, "random", seed), seconds + 40)
        asked = pool.submit(load.run_json, load.after_write(
            tallyd.port, max(1, round(seconds)), seed, QUESTION, EVENT, '"seen":true', "-c", 64, "-r", ASKED), seconds + 40) \
            if asking else None
        events, asked = (f and f.result() for f in (events, asked))
    tallyd.settle()
    used = meter.stop()
    figures = asked or events
    record = {k: float(figures[k]) for k in ("p50_us", "p99_us")}
    record["asked_rate"] = float(asked["rate"]) if asked else 0.0
    record["rate"] = float(events["rate"]) + record["asked_rate"]
    written = events["events"] + (asked["events"] if asked else 0)
    for role, cpu in used["cpu_s"].items():
        record[f"{role}_us"] = cpu / written * 1e6
    record["others_percent"] = used["others_percent"]
    return {**record, **load.failures(*(f for f in (events, asked) if f))}


def seen_beside(bench):
    section = Section("seen_beside", f"{ASKED:,} events a second, each followed by /seen of its user, beside single random events "
                                     "(wrk, 64 connections), --fsync everysec; p50 and p99 are of /seen where it is asked")
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        bench.in_turn(section, [
            Contender(key, label, lambda seed, s, a=asking: run(bench, tallyd, seed, s, a))
            for key, label, asking in (("without", "events alone", False), ("with", "events beside /seen", True))])
        bench.note_memory(section.key, tallyd.pid)
    asked = section.find("with")
    section.notes.append(f"asked: {asked.median('asked_rate'):,.0f} a second")
    section.ratio("rate of events, with /seen / without", "with", "without", must=0.85, goal=0.95)
    section.limits.append(Limit("/seen of users just written: p99", asked.median("p99_us") / 1000, 20, "ms"))
    return section
