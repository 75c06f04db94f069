"""Events in: single requests and batches, as fast as they are taken, and at fixed rates."""

import contextlib

from . import load
from .results import Section
from .servers import BareServer, Nginx, PeerRedis, TallydServer, Webdis, minute


def check_sum(bench, section, server, before, acknowledged, in_flight):
    """Page views in tallyd are those acknowledged; requests under way when a load program ends may count as well."""
    now = server.client.count("pv", from_="now-3h")
    extra = now - before - acknowledged
    section.extra["counted"] = {"acknowledged": acknowledged, "counted": now - before}
    if not 0 <= extra <= in_flight:
        bench.errors.append(f"{section.key}: {acknowledged} events acknowledged, {now - before} counted")


class Tally:
    """Runs of a contender with what they acknowledged summed."""

    def __init__(self, contender):
        self.contender, self.events, self.runs = contender, 0, 0
        self.inner, contender.run = contender.run, self.run

    def run(self, seed, seconds):
        record = self.inner(seed, seconds)
        self.events += record["events"]
        self.runs += 1
        return record


def webdis_argv(settings, peer):
    return lambda seed, s: load.wrk(settings, peer.port, s, "webdis", seed, peer.sha, minute())


def single(bench, fsync):
    """The same event again and again, beside a server that looks at nothing."""
    s = bench.settings
    section = Section(f"single_{fsync}", f"single events, 64 keep-alive connections (wrk), --fsync {fsync}")
    with bench.serving(TallydServer, "--fsync", fsync) as tallyd, bench.serving(BareServer, s.threads) as bare:
        same = bench.http("tallyd", "tallyd, same body", tallyd, lambda seed, t: load.wrk(s, tallyd.port, t, "same", seed))
        total = Tally(same)
        bench.in_turn(section, [same, bare_contender(bench, bare)])
        check_sum(bench, section, tallyd, 0, total.events, 64 * total.runs)
        bench.note_memory(section.key, tallyd.pid)
    always = fsync == "always"
    section.ratio("tallyd / bare libmicrohttpd, same body", "tallyd", "bare",
                  must=0.4 if always else None, goal=0.6 if always else None)
    return section


def bare_contender(bench, bare, kind="same"):
    """The same requests for a server that looks at nothing: what wrk takes to make them, it takes for both."""
    s = bench.settings
    return bench.http("bare", f"bare libmicrohttpd, {kind}", bare, lambda seed, t: load.wrk(s, bare.port, t, kind, seed))


def single_random(bench, fsync):
    """Random pages and users, which leave Redis work to do when the load is over: not beside the same event."""
    s = bench.settings
    section = Section(f"random_{fsync}", f"single events, random pages and users, 64 connections (wrk), --fsync {fsync}")
    with bench.serving(TallydServer, "--fsync", fsync) as tallyd, bench.serving(BareServer, s.threads) as bare:
        ours = bench.http("tallyd", "tallyd", tallyd, lambda seed, t: load.wrk(s, tallyd.port, t, "random", seed))
        total = Tally(ours)
        contenders = [ours, bare_contender(bench, bare, "random")]
        with peers(bench, tallyd, *([Webdis, Nginx] if fsync == "always" else [])) as found:
            webdis, nginx = found or (None, None)
            if webdis:
                contenders.append(bench.http("webdis", "webdis, an EVALSHA an event", webdis, webdis_argv(s, webdis)))
            if nginx:
                contenders.append(bench.http("nginx", "nginx + Lua, 5 commands an event", nginx,
                                             lambda seed, t: load.wrk(s, nginx.port, t, "random", seed)))
            bench.in_turn(section, contenders)
        check_sum(bench, section, tallyd, 0, total.events, 64 * total.runs)
        bench.note_memory(section.key, tallyd.pid)
    section.ratio("tallyd / bare libmicrohttpd", "tallyd", "bare")
    section.ratio("tallyd / webdis", "tallyd", "webdis")
    section.ratio("tallyd / nginx + Lua", "tallyd", "nginx")
    return section


def keyed(bench):
    """With an Idempotency-Key on every request, beside the same without."""
    s = bench.settings
    sections = []
    with bench.serving(TallydServer, "--fsync", "always") as tallyd:
        before = 0
        for key, title, load_of, goal, in_flight in (
                ("keyed_batch", "arrays of 1000 events, 8 connections",
                 lambda seed, t, k: load.batches(tallyd.port, t, seed, *(["-k"] if k else [])), 0.6, 0),
                ("keyed_single", "single events, random, 64 keep-alive connections (wrk)",
                 lambda seed, t, k: load.wrk(s, tallyd.port, t, "keyed" if k else "random", seed), 0.4, 64)):
            section = Section(key, f"{title}, with and without Idempotency-Keys, --fsync always")
            contenders = [
                bench.http("without", "without", tallyd, lambda seed, t, f=load_of: f(seed, t, False)),
                bench.http("with", "with an Idempotency-Key a request", tallyd, lambda seed, t, f=load_of: f(seed, t, True))]
            sums = [Tally(c) for c in contenders]
            bench.in_turn(section, contenders)
            acknowledged = sum(t.events for t in sums)
            check_sum(bench, section, tallyd, before, acknowledged, in_flight * sum(t.runs for t in sums))
            before += section.extra["counted"]["counted"]
            section.ratio("with / without Idempotency-Keys", "with", "without", metric="counted_rate", goal=goal)
            bench.note_memory(section.key, tallyd.pid)
            sections.append(section)
    return sections


@contextlib.contextmanager
def peers(bench, tallyd, *wanted):
    """Those of the wanted peers that are installed, or None for each; with a Redis like tallyd's of their own."""
    options = tallyd.redis_options()
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(bench.serving(make, options, bench.settings))
               if make.installed(bench.settings) else None for make in wanted]


def batch(bench, fsync):
    s = bench.settings
    section = Section(f"batch_{fsync}", f"arrays of 1000 events, 8 connections, --fsync {fsync}")
    with bench.serving(TallydServer, "--fsync", fsync) as tallyd:
        with bench.serving(PeerRedis, tallyd.redis_options()) as redis:
            ours = bench.http("tallyd", "tallyd", tallyd, lambda seed, t: load.batches(tallyd.port, t, seed))
            total = Tally(ours)
            contenders = [ours] + [
                bench.http(key, f"Redis alone, commands unmerged, {how}", redis,
                           lambda seed, t, n=n: load.unmerged(redis.socket, n, t, seed))
                for key, how, n in (("unmerged", "8 connections", 8), ("unmerged_1", "1 connection", 1))]
            with peers(bench, tallyd, *([Nginx] if fsync == "always" else [])) as found:
                nginx = found[0] if found else None
                if nginx:
                    contenders.append(bench.http("nginx", "nginx + Lua, 5 commands an event", nginx,
                                                 lambda seed, t: load.batches(nginx.port, t, seed)))
                bench.in_turn(section, contenders)
        check_sum(bench, section, tallyd, 0, total.events, 0)
        bench.note_memory(section.key, tallyd.pid)
    always = fsync == "always"
    section.ratio("tallyd / Redis with unmerged commands on 8 connections", "tallyd", "unmerged", metric="counted_rate",
                  must=1.5 if always else None, goal=3 if always else None)
    section.ratio("tallyd / Redis with unmerged commands on 1 connection", "tallyd", "unmerged_1", metric="counted_rate")
    section.ratio("tallyd / nginx + Lua", "tallyd", "nginx", metric="counted_rate")
    section.ratio("Redis's CPU an event: unmerged / tallyd's", "unmerged", "tallyd", metric="redis_us")
    return section


def fixed_rates(bench):
    s = bench.settings
    sections = []
    with bench.serving(TallydServer, "--fsync", "always") as tallyd, \
            bench.serving(TallydServer, "--fsync", "everysec") as everysec, \
            bench.serving(BareServer, s.threads) as bare, peers(bench, tallyd, Webdis, Nginx) as (webdis, nginx):
        for rate in (5000, 20000):
            section = Section(f"rate_{rate}", f"single events at {rate:,} a second (open loop), 32 connections")

            def at(key, label, server, *how, rate=rate):
                return bench.http(key, label, server, lambda seed, t: load.fixed_rate(
                    server.port, rate, t, seed, *how))

            contenders = [at("tallyd", "tallyd, --fsync always", tallyd),
                          at("everysec", "tallyd, --fsync everysec", everysec),
                          at("bare", "bare libmicrohttpd", bare)]
            if webdis:
                contenders.append(at("webdis", "webdis, an EVALSHA an event, always", webdis, "/", webdis.event()))
            if nginx:
                contenders.append(at("nginx", "nginx + Lua, 5 commands an event, always", nginx))
            bench.in_turn(section, contenders)
            section.ratio("p50: tallyd, always / bare libmicrohttpd", "tallyd", "bare", metric="p50_us")
            section.ratio("p99: tallyd, always / bare libmicrohttpd", "tallyd", "bare", metric="p99_us")
            section.ratio("p99: webdis / tallyd, always", "webdis", "tallyd", metric="p99_us")
            section.ratio("p99: nginx + Lua / tallyd, always", "nginx", "tallyd", metric="p99_us")
            bench.note_memory(section.key, tallyd.pid)
            sections.append(section)
    return sections
