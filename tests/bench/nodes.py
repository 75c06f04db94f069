#!/usr/bin/env python3
"""What nodes cost: CPU an event and a question with one Redis and with clusters of 1, 3 and 6 nodes, also with replicas.

The table of README.md, "What nodes cost".  Each has the partitions that `auto` gives it, but for one.  All servers live through the
whole run, and loads go to them in turn, so that a ratio is one of neighbours.  CPU is that of all threads of all nodes
in ns, so a busy machine moves it little.  Half an hour.

    tests/bench/nodes.py [NAME ..]      with build/tallyd and build/bench/rate, or TALLYD_BIN; NAME: of CONTENDERS
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from benchlib.machine import threads_s  # noqa: E402
from benchlib.settings import EVENT, PROGRAMS, SINGLE, number  # noqa: E402
from lib.cluster import Cluster, TcpServer, free_ports, server_binary  # noqa: E402
from lib.log import counted  # noqa: E402
from lib.process import Tallyd, short_directory  # noqa: E402
from lib.waiting import wait_until  # noqa: E402

EVERYSEC = ("--appendonly", "yes", "--appendfsync", "everysec", "--hash-max-listpack-entries", "128")  # as deploy/ has it
# Primaries and replicas of each; 0 primaries: no cluster.
CONTENDERS = {"one Redis": (0, 0), "1 node": (1, 0), "3 nodes": (3, 0), "6 nodes": (6, 0),
              "one Redis, 1 replica": (0, 1), "3 nodes, 3 replicas": (3, 1), "one Redis, P=256": (0, 0)}
LOADS = {"arrays": ("-c", 8, "-b", 1000), "single": ("-c", 64)}
RUNS = number("BENCH_RUNS", 5, 1, 20)
LOAD_S = number("BENCH_SECONDS", 3.0, 0.2, 60.0)
IDLE_S = 3
QUESTIONS = 200
QUESTIONS_BESIDE = 40  # events: each waits for a fold
ARRAYS_BESIDE = 20  # of 1000 events, a second
DAY = {"from_": "now-24h", "to": "now"}
SITE = {"/visits": DAY, "/stats": DAY, "/pages": DAY, "/dau": {}}
BASE = "one Redis"


class Server(TcpServer):
    """A Redis by itself, over TCP as clusters are."""

    def __init__(self, root, number, port):
        super().__init__(root / f"s{number}", f"server{number}", port, [
            server_binary(), "--port", port, "--bind", "127.0.0.1", "--dir", root / f"s{number}", "--save", "", *EVERYSEC])


class OneRedis:
    """One Redis and its replicas, as a Cluster is."""

    def __init__(self, replicas):
        self.directory = short_directory()
        self.nodes = [Server(self.directory, i, port) for i, port in enumerate(free_ports(1 + replicas))]

    @property
    def url(self):
        return f"redis://{self.nodes[0].address}"

    def start(self):
        for node in self.nodes:
            node.start()
        for node in self.nodes[1:]:
            node.command("REPLICAOF", self.nodes[0].host, self.nodes[0].port)
            wait_until(lambda n=node: n.info("replication")["master_link_status"] == "up", "in sync", deadline_s=30)
        return self

    def stop(self):
        for node in self.nodes:
            node.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


class Served:
    """A tallyd with further @options, and its nodes."""

    def __init__(self, name, *options):
        primaries, replicas = CONTENDERS[name]
        one = OneRedis(replicas) if primaries == 0 else Cluster(primaries, replicas, options=EVERYSEC, node_timeout_ms=5000)
        self.redis = one.start()
        self.nodes, self.primaries = one.nodes, one.nodes[:max(primaries, 1)]
        partitions = name.partition("P=")[2] or "auto"
        self.tallyd = Tallyd("--partitions", partitions, "--ack-replicas", replicas, "--request-timeout", "60s", *options, redis=one)

    def cpu(self):
        """CPU s of the primaries, of their replicas, of tallyd."""
        replicas = [n for n in self.nodes if n not in self.primaries]
        return [sum(threads_s(n.process.pid) for n in self.primaries), sum(threads_s(n.process.pid) for n in replicas),
                threads_s(self.tallyd.pid)]

    def stop(self):
        self.tallyd.stop()
        self.redis.stop()


def rate(*args):
    done = subprocess.run([PROGRAMS / "rate", *map(str, args)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def median(values):
    return sorted(values)[len(values) // 2]


def since(before, after):
    return [b - a for a, b in zip(before, after)]


def loaded(served, load):
    """One run until all of it is counted: us of CPU an event, and how large what was sent on is."""
    time.sleep(1.1)  # for a second behind a question folds are smaller, so that the next one waits less
    http = served.tallyd.client()
    metrics, cpu = http.metrics(), served.cpu()
    found = rate("-d", LOAD_S, *LOADS[load], served.tallyd.port, "/events", EVENT if load == "arrays" else SINGLE)
    wait_until(lambda: http.metrics()["tallyd_ingest_log_events"] == 0, "folded unasked", deadline_s=60, pause_s=0.1)
    counted(served.tallyd.client(60))
    primaries, replicas, tallyd = since(cpu, served.cpu())
    after = http.metrics()
    events, appends, folds, cuts = (after[n] - metrics[n] for n in (
        "tallyd_fold_events_total", "tallyd_appends_total", "tallyd_folds_total", "tallyd_fold_transactions_total"))
    return {"us": primaries * 1e6 / events, "replicas us": replicas * 1e6 / events, "tallyd us": tallyd * 1e6 / events,
            "events/s": found["events"] / LOAD_S, "events an append": events / appends, "events a fold": events / folds,
            "transactions a fold": cuts / folds}


def asked(served, path, n=QUESTIONS, **params):
    """One answer after the other, @n times; the median and the mean, and us of CPU."""
    http, times, cpu = served.tallyd.client(), [], served.cpu()
    for _ in range(n):
        began = time.monotonic()
        http.question(path, **params)
        times.append(time.monotonic() - began)
    primaries, _, tallyd = since(cpu, served.cpu())
    return {"ms": median(times) * 1e3, "mean ms": sum(times) * 1e3 / n, "us": primaries * 1e6 / n, "tallyd us": tallyd * 1e6 / n}


def asked_beside(served, path, **params):
    """The same while events come in: each question waits until what came before it is counted."""
    load = subprocess.Popen([str(word) for word in (PROGRAMS / "rate", "-d", LOAD_S + 60, *LOADS["arrays"], "-r", ARRAYS_BESIDE,
                                                    served.tallyd.port, "/events", EVENT)], stdout=subprocess.DEVNULL)
    try:
        figures = asked(served, path, QUESTIONS_BESIDE, **params)
    finally:
        load.terminate()
        load.wait()
    counted(served.tallyd.client(60))
    return {key: figures[key] for key in ("ms", "mean ms")}  # the CPU is that of the events, too


def idle(served):
    cpu = served.cpu()
    time.sleep(IDLE_S)  # what is measured is that nothing happens
    return {"ms a second": sum(since(cpu, served.cpu())[:2]) * 1e3 / IDLE_S}


def measured(served):
    """{what: {name: [a dict of figures a run]}}"""
    whats = {load: lambda s, name=load: loaded(s, name) for load in LOADS}
    whats["page /uv"] = lambda s: asked(s, "/uv", page="/page/number/0000000", **DAY)
    for path, params in SITE.items():
        whats[f"site {path}"] = lambda s, path=path, params=params: asked(s, path, **params)
        whats[f"site {path}, beside events"] = lambda s, path=path, params=params: asked_beside(s, path, **params)
    whats["idle"] = idle
    found = {what: {name: [] for name in served} for what in whats}
    for what, run in whats.items():
        for i in range(RUNS + 1):
            names = list(served)
            for name in names if i % 2 == 0 else names[::-1]:
                figures = run(served[name])
                if i > 0:  # the first run warms up
                    found[what][name].append(figures)
            print(f"{what}: run {i} of {RUNS}", file=sys.stderr, flush=True)
    return found


def table(found):
    for what, by_name in found.items():
        print(what)
        base = by_name.get(BASE)
        for name, runs in by_name.items():
            ratio = ""
            if base is not None and "us" in runs[0]:
                ratios = [a["us"] / b["us"] for a, b in zip(runs, base)]
                ratio = f"CPU of primaries {median(ratios):.2f} of {BASE}'s ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"  {name:<22}" + "".join(f"{key} {median([r[key] for r in runs]):.4g}  " for key in runs[0]) + ratio, flush=True)


def main():
    names = sys.argv[1:] or list(CONTENDERS)
    served = {}
    try:
        for name in names:
            served[name] = Served(name)
            served[name].tallyd.start()
        table(measured(served))
    finally:
        for one in served.values():
            one.stop()


if __name__ == "__main__":
    main()
