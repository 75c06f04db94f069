"""Dashboards that poll while events come in: what they wait, and what ingestion loses."""

import concurrent.futures
import time
import urllib.parse

from . import load
from .bench import Contender
from .machine import Meter
from .results import Limit, Section
from .servers import TallydServer
from .settings import EVENT

DASHBOARDS = 100  # each asks for all its panels at once, every second; 100 connections are one for each on average
HISTORY_DAYS, HISTORY_EVENTS = 30, 200_000
PAGES = 1000


def panels():
    """Ten panels of one site, as a Grafana dashboard has them: figures, series, a list."""
    for path, query in (
            ("/uv", {"from": "now-24h"}),
            ("/pv", {"from": "now-24h"}),
            ("/visits", {"from": "now-24h"}),
            ("/ips", {"from": "now-7d/h"}),
            ("/uv", {"from": "now-30d/d"}),
            ("/stats", {"from": "now/d"}),
            ("/stats", {"from": "now-7d/h", "step": "1h"}),
            ("/uv", {"from": "now-30d/d", "step": "1d"}),
            ("/pv", {"from": "now-1h", "step": "1m"}),
            ("/pages", {"from": "now-24h", "limit": "10"})):
        yield path + "?" + urllib.parse.urlencode(query)


def fill(tallyd):
    """A month of events, which go straight into the hours, days and months that are over."""
    now = int(time.time())
    made = 0
    while made < HISTORY_EVENTS:
        batch = [{"page": f"/page/number/{(made + i) * 7919 % PAGES:07}", "user": (made + i) * 104729 % 50_000,
                  "ip": f"10.{i % 100}.{made // 2000}.{i // 100 % 100}",
                  "ts": now - 60 - (made + i) * HISTORY_DAYS * 86400 // HISTORY_EVENTS}
                 for i in range(2000)]
        tallyd.client.accept(batch)
        made += len(batch)
    tallyd.settle()


def ingest(tallyd, seed, seconds, arrays_a_second=None):
    rate = ["-r", arrays_a_second] if arrays_a_second else []
    return load.run_json([load.PROGRAMS / "rate", "-c", 8, "-b", 1000, "-P", PAGES, "-d", seconds, "-S", seed, *rate,
                          tallyd.port, "/events", EVENT], seconds + 40)


def poll(tallyd, seed, seconds, targets=tuple(panels()), rate=None):
    """The targets a second of each dashboard, or @rate of them in all."""
    figures = load.run_json([load.PROGRAMS / "rate", "-c", DASHBOARDS, "-r", rate or DASHBOARDS * len(targets), "-d", seconds,
                             "-P", PAGES, "-S", seed, tallyd.port, "\n".join(targets)], seconds + 40)
    return {**figures, "of_target": dict(zip(targets, figures["targets"]))}


def run(tallyd, seed, seconds, writing, polling, write=ingest, ask=poll):
    """Both at once; the figures are of the questions, where there are any."""
    meter = Meter(tallyd.roles)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        events = pool.submit(write, tallyd, seed, seconds) if writing else None
        questions = pool.submit(ask, tallyd, seed, seconds) if polling else None
        events, questions = (f and f.result() for f in (events, questions))
    ended = time.monotonic()
    used = meter.stop()
    tallyd.settle()  # and the next run begins with nothing to be counted
    left_s = time.monotonic() - ended if writing else 0
    figures = questions or events
    record = {k: float(figures[k]) for k in ("p50_us", "p99_us")}
    counted = events or questions
    record["rate"] = float(counted["rate"])
    record["counted_rate"] = counted["events"] / (counted["seconds"] + left_s)
    record["events"] = figures["events"]
    for role, cpu in used["cpu_s"].items():
        record[f"{role}_cores"] = cpu / used["elapsed_s"]
    record["serving_cores"] = (sum(used["cpu_s"].values()) - used["rewrites_cpu_s"]) / used["elapsed_s"]
    record["client_cores"] = used["client_cpu_s"] / used["elapsed_s"]
    record["others_percent"] = used["others_percent"]
    for path, of in questions["of_target"].items() if questions else ():
        record["p99_us " + path] = float(of["p99_us"])
    return {**record, **load.failures(*(f for f in (events, questions) if f))}


def dashboards(bench):
    section = Section("dashboards", f"{DASHBOARDS} dashboards, ten panels every second each, over one site of {PAGES:,} "
                                    "pages, while batches of 1000 events come in over 8 connections; a second: events, "
                                    "without them questions")
    with bench.serving(TallydServer, "--fsync", "always") as tallyd:
        fill(tallyd)
        rows = (("events", "events alone", True, False), ("questions", "dashboards alone", False, True),
                ("both", "dashboards, while events come in", True, True))
        bench.in_turn(section, [
            Contender(key, label, lambda seed, s, w=w, q=q: run(tallyd, seed, s, w, q)) for key, label, w, q in rows],
            max(2, bench.settings.seconds))
        bench.note_memory(section.key, tallyd.pid)
        section.extra["panels"] = list(panels())
    section.ratio("rate of events, beside dashboards / alone", "both", "events", metric="counted_rate", must=0.8)
    section.limits += [Limit(f"{label}: p99", section.find(key).median("p99_us") / 1000, 50, "ms")
                       for key, label in (("questions", "dashboards alone"), ("both", "dashboards while events come in"))]
    return section
