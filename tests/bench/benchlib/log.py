"""The log: what appending alone costs Redis, and what an event costs when it is counted, too."""

import time

from . import load
from .bench import Contender
from .ingest import Tally, check_sum
from .machine import threads_s
from .results import Limit, Section
from .servers import HELD, TallydServer, wait_until
from .settings import EVENT, SINGLE

# Fewer than what may wait in a process (200,000 events, 16 MB), for with the folds held up everything waits.  An entry of
# a single event takes up to 600 bytes there.
APPENDED, APPENDED_ALONE = 60_000, 20_000
HOLD_S = 3
HELD_RATE = 50_000  # events a second, in arrays


def log(bench):
    return [appends(bench), folds(bench), held_up(bench)]


# Appends alone


def appended(bench, section, connections, batch, seed, seconds):
    """One run on a fresh server that folds nothing.  Redis's CPU by its threads' nanoseconds: some runs take but ticks."""
    with bench.serving(TallydServer, "--fsync", "everysec", env=HELD) as tallyd:
        (redis,) = tallyd.tallyd.redis_pids()
        cpu_s, in_scripts_us = threads_s(redis), tallyd.command_us("evalsha")
        record = load.measure(tallyd.roles, [
            load.PROGRAMS / "rate", "-c", connections, "-b", batch,
            "-e", APPENDED if connections > 1 else APPENDED_ALONE, "-d", seconds, "-S", seed,
            tallyd.port, "/events", SINGLE], seconds)
        record["redis_us"] = (threads_s(redis) - cpu_s) / record["events"] * 1e6
        record["held_us"] = (tallyd.command_us("evalsha") - in_scripts_us) / record["events"]
        metrics = tallyd.client.metrics()
        record["append_events"] = metrics["tallyd_append_events_total"] / metrics["tallyd_appends_total"]
        if metrics["tallyd_folds_total"] or metrics["tallyd_ingest_log_events"] != record["events"]:
            bench.errors.append(f"{section.key}: {record['events']} events acknowledged, {metrics['tallyd_ingest_log_events']:.0f} "
                                f"wait, {metrics['tallyd_folds_total']:.0f} folds")
        return record


def appends(bench):
    section = Section("log_appends", f"the log alone: single events and arrays, folds held up, at most {APPENDED:,} events a "
                                     "run, --fsync everysec")
    rows = (("1_alone", "requests of 1, one connection", 1, 1), ("1", "requests of 1, 64 connections", 64, 1),
            ("20", "requests of 20, 8 connections", 8, 20), ("1000", "requests of 1,000, 8 connections", 8, 1000))
    bench.in_turn(section, [
        Contender(key, label, lambda seed, s, c=connections, b=batch: appended(bench, section, c, b, seed, s))
        for key, label, connections, batch in rows], warm_up=False)
    return section


# Appended and folded


class Folds:
    """Runs of a contender with how many events an entry and a fold had."""

    def __init__(self, server, contender):
        self.server, self.inner = server, contender.run
        contender.run = self.run

    def run(self, seed, seconds):
        before = self.server.client.metrics()
        record = self.inner(seed, seconds)
        after = self.server.client.metrics()
        for name, events, times in (("append_events", "tallyd_append_events_total", "tallyd_appends_total"),
                                    ("fold_events", "tallyd_fold_events_total", "tallyd_folds_total")):
            record[name] = (after[events] - before[events]) / max(1, after[times] - before[times])
        return record


def folds(bench):
    section = Section("log_folds", "appended and folded: 10,000 pages, 1,000,000 users, --fsync everysec; CPU of all of it")
    rows = (("single", "single events, 64 connections (wrk)", 64, lambda port: lambda seed, t: load.wrk(
                bench.settings, port, t, "random", seed)),
            ("live", "arrays of 1000, live", 0, lambda port: lambda seed, t: load.batches(port, t, seed)),
            ("late", "arrays of 1000, one to two hours old", 0, lambda port: lambda seed, t: load.late_batches(port, t, seed)))
    for key, label, in_flight, load_of in rows:
        part = Section(section.key, label)
        with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
            contender = bench.http(key, label, tallyd, load_of(tallyd.port))
            Folds(tallyd, contender)
            total = Tally(contender)
            bench.in_turn(part, [contender])
            check_sum(bench, part, tallyd, 0, total.events, in_flight * total.runs)
            metrics = tallyd.client.metrics()
            section.notes.append(
                f"{label}: {metrics['tallyd_fold_transactions_total'] / metrics['tallyd_folds_total']:.1f} transactions a fold, "
                f"{metrics['tallyd_fold_seconds_sum'] / metrics['tallyd_folds_total'] * 1000:.0f} ms a fold, "
                f"{metrics['tallyd_fold_again_total']:.0f} transactions begun again")
            bench.note_memory(f"{section.key} {key}", tallyd.pid)
        section.series += part.series
        section.extra[key] = part.extra
    return section


# Folds that are held up


def behind(bench, section, seed):
    """Arrays at a fixed rate for as long as the first fold is held up; then until nothing waits any more."""
    with bench.serving(TallydServer, "--fsync", "everysec", env={"TALLYD_TEST_FOLD_HOLD": str(HOLD_S * 1000)}) as tallyd:
        record = load.measure(tallyd.roles, [
            load.PROGRAMS / "rate", "-c", 8, "-b", 1000, "-r", HELD_RATE // 1000, "-d", HOLD_S, "-S", seed,
            tallyd.port, "/events", EVENT], HOLD_S)
        ended = time.monotonic()
        wait_until(lambda: tallyd.client.metric("tallyd_ingest_log_events") == 0, "nothing waits", deadline_s=60)
        record["behind_s"] = time.monotonic() - ended
        bench.note_memory(section.key, tallyd.pid)
        check_sum(bench, section, tallyd, 0, record["events"], 0)
        return record


def held_up(bench):
    section = Section("log_held_up", f"arrays of 1000, {HELD_RATE:,} events a second, while the first fold is held up for {HOLD_S} s, "
                                     "--fsync everysec; each request must be a 202")
    bench.in_turn(section, [Contender("held", "folds held up", lambda seed, s: behind(bench, section, seed))], warm_up=False)
    section.limits.append(Limit("all folded after the last 202, half a second of hold in it",
                                max(section.find("held").values("behind_s")), 3, "s"))
    return section
