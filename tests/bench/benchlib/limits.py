"""Rate limits: POST /ratelimit as fast as it is taken; the ingestion guard under ten times its limit."""

import concurrent.futures
import time

from . import load
from .machine import Meter
from .results import Limit, Section, Series
from .servers import BareServer, TallydServer

RATE = 500  # of the guard; ten times as much is sent
BURST = 200


def ratelimit(bench):
    s = bench.settings
    section = Section("ratelimit", "POST /ratelimit, 10,000 keys, 64 keep-alive connections (wrk), --fsync always")
    with bench.serving(TallydServer, "--fsync", "always") as tallyd, bench.serving(BareServer, s.threads) as bare:
        bench.in_turn(section, [
            bench.http(key, label, server, lambda seed, t, p=server.port: load.wrk(s, p, t, "limit", seed))
            for key, label, server in (("tallyd", "tallyd, funnel", tallyd), ("bare", "bare libmicrohttpd, same body", bare))])
        checks, scripts = (tallyd.client.metric(f"tallyd_limit_{name}_total") for name in ("checks", "scripts"))
        section.notes.append(f"{checks / scripts:.1f} limits a script")
        bench.note_memory(section.key, tallyd.pid)
    section.ratio("tallyd / bare libmicrohttpd", "tallyd", "bare", must=0.4)
    return section


def offer(server, seconds, seed):
    """Single events at ten times the limit: requests admitted and refused, CPU us a request, and the rate admitted between
    a second behind the beginning, when the burst is used up, and the end."""
    def look():
        asked = time.monotonic()
        return server.client.metric("tallyd_events_accepted_total"), (asked + time.monotonic()) / 2

    meter, first = Meter(server.roles), look()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        run = pool.submit(load.run_json, load.fixed_rate(server.port, 10 * RATE, seconds, seed), seconds + 40)
        time.sleep(1)
        one = look()
        time.sleep(seconds - 1.5)
        two = look()
        figures = run.result()
    server.settle()
    used, admitted = meter.stop(), look()[0] - first[0]
    return {"admitted": admitted, "refused": figures["refused"], "rate": (two[0] - one[0]) / (two[1] - one[1]),
            "cpu_us": sum(used["cpu_s"].values()) / (admitted + figures["refused"]) * 1e6}


def guard(bench):
    s = bench.settings
    section = Section("guard", f"{10 * RATE:,} single events a second (open loop) against --ingest-limit")
    rows = (("none", "no limit: all are admitted", ()),
            ("most", f"--ingest-limit {RATE}/1s: one in ten is", ("--ingest-limit", f"{RATE}/1s", "--ingest-burst", BURST)),
            ("all", "--ingest-limit 1/1d: all but one are refused", ("--ingest-limit", "1/1d")))
    for key, label, options in rows:
        records = []
        with bench.serving(TallydServer, "--fsync", "always", *options) as tallyd:
            for run in range(s.runs):
                bench.say(f"guard, {key}: run {run + 1} of {s.runs}")
                records.append(offer(tallyd, max(4, s.seconds), run + 1))
        section.series.append(Series(key, label, records))
    most = section.find("most")
    section.limits.append(Limit("admitted rate off its limit", 100 * abs(most.median("rate") / RATE - 1), 2, "%"))
    section.limits.append(Limit("CPU of a refusal / of an admission (tallyd and Redis)",
                                section.find("all").median("cpu_us") / section.find("none").median("cpu_us"), 1, "x"))
    return section
