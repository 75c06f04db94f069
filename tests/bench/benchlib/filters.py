"""Bloom filters: what feeding /seen costs, how fast items go in and are found, and how often a yes is wrong."""

import json
import math
import random
import re
import subprocess
import time

from . import load
from .bench import Contender
from .ingest import Tally, check_sum
from .load import LoadFailed
from .machine import Meter
from .results import Limit, Section
from .servers import PeerRedis, TallydServer

ITEMS = 1000  # of one request
KIND = 100_000_000  # items are drawn from so many: nearly all are new
RATES = (0.1, 0.01, 0.001, 0.0001)


# /seen


def seen(bench):
    """The same load on two servers, one of which remembers who saw what."""
    s = bench.settings
    sections = []
    with bench.serving(TallydServer, "--seen", "on") as on, bench.serving(TallydServer, "--seen", "off") as off:
        for key, title, least, argv in (
                ("seen_single", "feeding /seen: single events, 64 connections (wrk), random", 0.85,
                 lambda server: lambda seed, t: load.wrk(s, server.port, t, "random", seed)),
                ("seen_batch", "feeding /seen: arrays of 1000 events, 8 connections", 0.6,
                 lambda server: lambda seed, t: load.batches(server.port, t, seed))):
            section = Section(key, title + ", --fsync always")
            before = {server: server.client.count("pv", from_="now-2h") for server in (on, off)}
            contenders = {server: bench.http(name, label, server, argv(server)) for server, name, label in (
                (on, "on", "--seen on"), (off, "off", "--seen off"))}
            sums = {server: Tally(c) for server, c in contenders.items()}
            bench.in_turn(section, list(contenders.values()))
            for server, tally in sums.items():
                check_sum(bench, section, server, before[server], tally.events, 64 * tally.runs)
            section.ratio("rate: on / off", "on", "off", metric="counted_rate", must=least)
            section.ratio("Redis's CPU an event: on / off", "on", "off", metric="redis_us")
            section.ratio("tallyd's CPU an event: on / off", "on", "off", metric="tallyd_us")
            bench.note_memory(key, on.pid)
            sections.append(section)
        folded = on.client.metric("tallyd_seen_folded_total")
        sections[-1].notes.append(f"{folded:,.0f} pairs folded in {on.client.metric('tallyd_seen_folds_total'):,.0f} folds")
    return sections


# Throughput


def items_argv(port, target, seconds, seed):
    body = json.dumps({"items": ["{user}"] * ITEMS})
    return [load.PROGRAMS / "rate", "-c", 8, "-b", 1, "-d", seconds, "-S", seed, "-U", KIND, port, target, body]


def per_item(record):
    """Of requests with ITEMS items each."""
    return {k: v * ITEMS if k in ("rate", "events") else v / ITEMS if k in ("tallyd_us", "redis_us", "client_us") else v
            for k, v in record.items()}


def sadd(redis, command, seed, seconds):
    """redis-benchmark: batches of ITEMS members over 8 connections; its number of requests is set by a first try."""
    del seed
    words = ["redis-benchmark", "-s", redis.socket, "-c", 8, "-r", KIND, "--csv", "-n"]
    what = [command, "plain-set", *(["__rand_int__"] * ITEMS)]

    def run(n):
        meter, begin = Meter(redis.roles), time.monotonic()
        done = subprocess.run([str(w) for w in [*words, n, *what]], capture_output=True, text=True, timeout=120, check=False)
        rows = re.findall(r'^"[^"]*","([\d.]+)"', done.stdout, re.M)
        if done.returncode != 0 or not rows:
            raise LoadFailed(f"redis-benchmark: {done.stdout[-300:]}{done.stderr[-300:]}")
        return float(rows[-1]), time.monotonic() - begin, meter.stop()

    rate, _, _ = run(50)
    n = max(50, int(rate * seconds))
    rate, _, used = run(n)
    return {"rate": rate * ITEMS, "events": n * ITEMS, "redis_us": used["cpu_s"]["redis"] / (n * ITEMS) * 1e6,
            "client_us": used["client_cpu_s"] / (n * ITEMS) * 1e6, "others_percent": used["others_percent"]}


def throughput(bench):
    section = Section("filters", f"filters: batches of {ITEMS} items over 8 connections, --fsync always, an item each")
    with bench.serving(TallydServer, "--fsync", "always") as tallyd, \
            bench.serving(PeerRedis, tallyd.redis_options()) as redis:
        if tallyd.client.request("PUT", "/filters/large", '{"capacity":20000000}').status != 201:
            raise LoadFailed("the filter could not be made")
        tallyd.client.request("PUT", "/filters/one", '{"capacity":3000000}')

        def http(key, label, target):
            return Contender(key, label, lambda seed, t: per_item(load.measure(
                tallyd.roles, items_argv(tallyd.port, target, t, seed), t)))

        bench.in_turn(section, [
            http("add", "add, a filter of 20,000,000", "/filters/large/add"),
            http("check", "check, the same", "/filters/large/check"),
            http("add_one", "add, a filter of 3,000,000 (one shard)", "/filters/one/add"),
            Contender("sadd", "SADD, plain Redis", lambda seed, t: sadd(redis, "SADD", seed, t)),
            Contender("smismember", "SMISMEMBER, plain Redis", lambda seed, t: sadd(redis, "SMISMEMBER", seed, t))])
        tallyd.client.close()  # was idle, on a busy machine for longer than a connection may be
        section.extra["bytes"] = {"filter": tallyd.client.request("GET", "/filters/large").json["bytes"],
                                  "set": redis.command("MEMORY", "USAGE", "plain-set")}
        figures = tallyd.client.request("GET", "/filters/large").json
        members = redis.command("SCARD", "plain-set")
        section.notes.append(f"bytes an item: filter {figures['bytes'] / figures['capacity']:.2f} (at capacity), "
                             f"set {section.extra['bytes']['set'] / members:.0f}")
        section.ratio("add / SADD", "add", "sadd")
        section.ratio("check / SMISMEMBER", "check", "smismember")
        bench.note_memory(section.key, tallyd.pid)
    return section


# False positives


class Filter:
    def __init__(self, tallyd, name, **parameters):
        self.http, self.path = tallyd.client, f"/filters/{name}"
        self.ask("PUT", "", parameters)

    def ask(self, method, tail="", body=None):
        response = self.http.request(method, self.path + tail, body and json.dumps(body))
        if response.status not in (200, 201):
            raise LoadFailed(f"{method} {self.path}{tail}: {response}")
        return response.json

    def batches(self, tail, kind, n):
        """Answers about items kind-0 .. kind-(n-1), summed."""
        (member,) = {"/add": ["added"], "/check": ["seen"]}[tail]
        return sum(sum(self.ask("POST", tail, {"items": [f"{kind}-{i}" for i in range(at, min(n, at + ITEMS))]})[member])
                   for at in range(0, n, ITEMS))

    def rate(self, probes):
        """Share of wrong yeses."""
        return self.batches("/check", f"probe{random.getrandbits(64)}", probes) / probes


def promised(bench, section, tallyd, n):
    """Filters that grow, at capacity and at four times that."""
    for error in RATES:
        bench.say(f"false positives: {error:g}")
        filter_ = Filter(tallyd, f"grows-{error:g}", capacity=n, error_rate=error)
        for times in (1, 4):
            filter_.batches("/add", "item", n * times)
            if filter_.batches("/check", "item", n * times) != n * times:
                bench.errors.append(f"filter of rate {error:g}: an item is missing")
            probes = 10 * n * times
            measured = filter_.rate(probes)
            # what chance may add to a rate that is right: three deviations
            section.limits.append(Limit(f"rate {error:g} promised, {times} x capacity, {probes:,} probes: measured / promised",
                                        measured / error, 1 + 3 / math.sqrt(probes * error), "times"))


def overloaded(section, tallyd, n):
    """What a filter that does not grow would come to, if it were filled beyond its capacity; tallyd refuses that (409), so
    its number of items is set back."""
    for error in RATES[:3]:
        filter_ = Filter(tallyd, f"fixed-{error:g}", capacity=n, error_rate=error, expansion=0)
        filter_.batches("/add", "item", n)
        (shard,) = [k for k in tallyd.redis("KEYS", "t:*:bfs:*") if k.endswith(f":fixed-{error:g}")]
        full = filter_.ask("GET")
        at_capacity = filter_.rate(10 * n)
        tallyd.redis("HSET", shard, "0", "0")
        filter_.batches("/add", "more", n)
        measured, k = filter_.rate(10 * n), full["hashes"]
        expected = (1 - math.exp(-k * 2 * n / (8 * full["bytes"])))**k
        section.notes.append(
            f"without growing, {error:g}: {full['bits_per_item']:.3f} bits an item (theory {-math.log(error) / math.log(2)**2:.3f}), "
            f"{at_capacity:.5f} at capacity; {measured:.4f} at twice that, (1 - 0.5^2)^{k} = {0.75**k:.4f}, "
            f"(1 - e^(-2kn/m))^k = {expected:.4f}")
        if abs(measured / expected - 1) > 0.15:
            section.notes.append(f"OFF: {error:g}: measured {measured:.4f}, expected {expected:.4f}")


def false_positives(bench):
    n = 2000 if bench.settings.quick else 10_000
    section = Section("false_positives", f"false positives: filters of {n:,} items, by HTTP")
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        promised(bench, section, tallyd, n)
        overloaded(section, tallyd, n)
    return section
