"""The same load with two builds in turn: the sections of against.py.

Each has a contender `new` and a contender `base`, each with a server of its own.
"""

import contextlib

from . import aof, ask, dashboards, imports, load
from .bench import Contender
from .ingest import bare_contender
from .machine import memory_kib
from .results import Section, Series
from .servers import BareServer, TallydServer


class Builds:
    """{"new": program, "base": program}"""

    def __init__(self, new, base):
        self.programs = {"new": new, "base": base}

    @contextlib.contextmanager
    def serving(self, bench, *options):
        """{"new": a running server, "base": another}"""
        with contextlib.ExitStack() as stack:
            yield {name: stack.enter_context(bench.serving(TallydServer, *options, program=program))
                   for name, program in self.programs.items()}


def with_peak(server, run):
    """run() with the server's peak memory so far in its record."""
    def peaked(seed, seconds):
        record = run(seed, seconds)
        return {**record, "peak_mib": memory_kib(server.pid) / 1024}

    return peaked


def by_http(bench, section, builds, fsync, load_of, bare=False):
    """load_of(server) gives argv_of(seed, seconds).  bare: libmicrohttpd alone runs between the two."""
    with builds.serving(bench, "--fsync", fsync) as servers, bench.serving(BareServer, bench.settings.threads) as nothing:
        contenders = [bench.http(name, name, server, load_of(server)) for name, server in servers.items()]
        for contender, server in zip(contenders, servers.values()):
            contender.run = with_peak(server, contender.run)
        if bare:
            contenders.insert(1, bare_contender(bench, nothing, "random"))
        bench.in_turn(section, contenders)
    if bare:
        for record, beside in ((r, b) for name in servers for r, b in
                               zip(section.find(name).records, section.find("bare").records)):
            record["to_bare"] = record["rate"] / beside["rate"]
    return section


def single(bench, builds, fsync):
    section = Section(f"single_{fsync}", f"single events, random pages and users, 64 connections (wrk), --fsync {fsync}")
    return by_http(bench, section, builds, fsync, lambda server: lambda seed, t: load.wrk(
        bench.settings, server.port, t, "random", seed), bare=True)


def arrays(bench, builds, key, label, batches):
    section = Section(key, f"arrays of 1000, {label}, 8 connections, --fsync everysec")
    return by_http(bench, section, builds, "everysec", lambda server: lambda seed, t: batches(server.port, t, seed))


def imported(bench, builds):
    """Each build as it comes, and where that is different, without dimensions: then both count the same."""
    title = f"tallyd import of {bench.settings.log.name}, every level kept, --fsync everysec; fresh servers, until all is counted"
    fewer = {name: imports.without_dimensions(program) for name, program in builds.programs.items()}
    kinds = [("import", title, {name: () for name in fewer})]
    if any(fewer.values()):
        kinds.append(("import_plain", title + "; without dimensions", fewer))
    sections = []
    for key, label, options in kinds:
        section = Section(key, label)
        bench.in_turn(section, [Contender(name, name, lambda seed, s, program=program, more=options[name]: imports.imported(
            bench, program, ("--fsync", "everysec", *more))) for name, program in builds.programs.items()], warm_up=False)
        sections.append(section)
    return sections


def polled(bench, builds):
    """Dashboards beside arrays; `kept` is the rate of events beside them over the rate without."""
    section = Section("dashboards", f"{dashboards.DASHBOARDS} dashboards, ten panels every second each, beside arrays of 1000, "
                                    "--fsync always; p50 and p99 are of the panels")
    with builds.serving(bench, "--fsync", "always") as servers:
        contenders = []
        for name, server in servers.items():
            dashboards.fill(server)
            contenders += [
                Contender(f"{name} alone", f"{name}, events alone", with_peak(
                    server, lambda seed, s, server=server: dashboards.run(server, seed, s, True, False))),
                Contender(name, f"{name}, dashboards and events", with_peak(
                    server, lambda seed, s, server=server: dashboards.run(server, seed, s, True, True)))]
        bench.in_turn(section, contenders, max(2, bench.settings.seconds))
    for name in servers:
        for record, alone in zip(section.find(name).records, section.find(f"{name} alone").records):
            record["kept"] = record["counted_rate"] / alone["counted_rate"]
    return section


def files(bench, builds):
    """One section for each kind of load: they share no server."""
    sections = []
    for of in aof.LOADS:
        section = Section(f"aof_{of[0]}", f"bytes of append-only file an event: {of[1]}; fresh servers, --fsync everysec")
        bench.in_turn(section, [Contender(name, name, lambda seed, s, program=program, of=of: aof.written(bench, seed, of, program))
                                for name, program in builds.programs.items()], warm_up=False)
        sections.append(section)
    return sections


def asked(bench, builds, fsync):
    section = Section(f"ask_{fsync}", f"GET /uv right after a 202, quiet server, --fsync {fsync}; us of the question alone")
    with builds.serving(bench, "--fsync", fsync) as servers:
        bench.in_turn(section, [Contender(name, name, lambda seed, t, server=server: ask.pairs(bench, server, seed, t, True))
                                for name, server in servers.items()])
    return section


# The summary


class Row:
    """metric of a section; least: True where less is better."""

    def __init__(self, section, label, metric, write="{:,.2f}", least=True, worst=False):
        self.section, self.label, self.metric = section, label, metric
        self.write, self.least, self.worst = write.format, least, worst

    def cells(self, section):
        """[label, new, base, new/base (least-most)]; worst: the largest of all runs counts, as with a peak."""
        new, base = (section.find(name) for name in ("new", "base"))
        of = (lambda s: max(s.values(self.metric))) if self.worst else (lambda s: s.median(self.metric))
        ratios = [a / b for a, b in zip(new.values(self.metric), base.values(self.metric)) if b]
        if self.worst:
            ratios = [of(new) / of(base)]
        middle = Series("", "", [{"ratio": r} for r in ratios]).median("ratio") if ratios else None
        return [self.label, self.write(of(new)), self.write(of(base)),
                f"{middle:.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else "", "less" if self.least else "more"]


COUNT = "{:,.0f}"


def ingest_rows(key, bare):
    return [Row(key, "events a second", "rate", COUNT, least=False),
            Row(key, "the same, until counted", "counted_rate", COUNT, least=False),
            *([Row(key, "ratio to a bare libmicrohttpd", "to_bare", least=False)] if bare else []),
            Row(key, "p50, us", "p50_us", COUNT), Row(key, "p99, us", "p99_us", COUNT),
            Row(key, "Redis us an event", "redis_us"), Row(key, "tallyd us an event", "tallyd_us"),
            Row(key, "tallyd's peak, MiB", "peak_mib", "{:.1f}", worst=True)]


def import_rows(key):
    return [Row(key, "events a second, until counted", "rate", COUNT, least=False),
            Row(key, "Redis us an event", "redis_us"), Row(key, "tallyd us an event", "tallyd_us"),
            Row(key, "tallyd's peak, MiB", "peak_mib", "{:.1f}", worst=True)]


ROWS = [
    *ingest_rows("single_everysec", True), *ingest_rows("single_always", True),
    *ingest_rows("arrays_live", False), *ingest_rows("arrays_late", False),
    *import_rows("import"), *import_rows("import_plain"),
    Row("dashboards", "panels: p50, us", "p50_us", COUNT), Row("dashboards", "panels: p99, us", "p99_us", COUNT),
    Row("dashboards", "events a second beside panels, until counted", "counted_rate", COUNT, least=False),
    Row("dashboards", "the same / without panels", "kept", least=False),
    Row("dashboards", "tallyd's peak, MiB", "peak_mib", "{:.1f}", worst=True),
    *(Row(f"aof_{key}", "bytes of append-only file an event", "aof_bytes", "{:.0f}") for key, *_ in aof.LOADS),
    *(Row(f"ask_{fsync}", label, metric, COUNT) for fsync in ("everysec", "always")
      for label, metric in (("p50, us", "p50_us"), ("p99, us", "p99_us"))),
]


def summary(sections):
    """Rows for report.table(), of the sections that were run."""
    table = [["", "new", "base", "new / base, run by run", "better"]]
    for section in sections:
        rows = [row.cells(section) for row in ROWS if row.section == section.key]
        table += [[f"{section.key}: {row[0]}", *row[1:]] for row in rows]
    return table
