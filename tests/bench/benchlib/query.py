"""Questions: /uv over prepared keys on a quiet server, beside PFCOUNT over the same keys; and the idle server."""

import calendar
import datetime
import random
import time
import urllib.parse

from . import load
from .bench import Contender
from .machine import Meter
from .results import Limit, Section
from .servers import TallydServer

VISITORS = 20_000  # a key: dense, as Redis keeps them from some 2,000 on


def windows():
    """[(name, from, to, most ms the median may take or None, and cold)].  The last ones of their kind that are over."""
    today = datetime.date.today()
    day = today - datetime.timedelta(days=2)
    at = "%Y-%m-%dT%H:%M:00Z"

    def text(date, hour, minute):
        return datetime.datetime(date.year, date.month, date.day, hour, minute).strftime(at)

    # 10:56 to 10:57 of the next day: 4 minutes, 23 hours, 57 minutes
    yield "1 day", text(day - datetime.timedelta(days=1), 10, 56), text(day, 10, 57), 0.5, 2
    yield "30 days", text(day - datetime.timedelta(days=30), 10, 56), text(day, 10, 57), None, None
    # From 0:01 of a month with 30 days to 23:59 of the last day of a month with 31 thirteen months later: 12 months
    # whole, and of the two others 29 + 30 days, 23 + 23 hours, 59 + 59 minutes
    year, month = today.year, today.month
    while True:
        year, month = (year, month - 1) if month > 1 else (year - 1, 12)
        first_year, first_month = (year - 1, month - 1) if month > 1 else (year - 2, 12)
        if (calendar.monthrange(year, month)[1], calendar.monthrange(first_year, first_month)[1]) == (31, 30):
            break
    yield ("13 months", text(datetime.date(first_year, first_month, 1), 0, 1),
           text(datetime.date(year, month, 31), 23, 59), 0.5, 3)


def series_window():
    """30 days of hours that are over."""
    end = datetime.datetime.combine(datetime.date.today() - datetime.timedelta(days=2), datetime.time())
    return tuple(t.strftime("%Y-%m-%dT%H:%M:00Z") for t in (end - datetime.timedelta(days=30), end))


# Visitors an hour: as sparse and as dense sketches
SERIES = (("sparse", 100), ("dense", VISITORS))
SERIES_KINDS = 24  # different sketches among the 720: what it costs does not depend on which


def fill_series(tallyd, hours, days, visitors):
    """A sketch in each hour's key, and in each day's the union of its hours."""
    rng = random.Random(7)
    for i, key in enumerate(hours):
        if i < SERIES_KINDS:
            for _ in range(0, visitors, 5000):
                tallyd.redis("PFADD", key, *(rng.randbytes(8) for _ in range(min(visitors, 5000))))
        else:
            tallyd.redis("COPY", hours[i % SERIES_KINDS], key)
    for i, key in enumerate(days):
        tallyd.redis("PFMERGE", key, *hours[24 * i:24 * i + 24])


def series(bench, tallyd, cold):
    """30 days by hour of one page: contenders, and limits to be added once they have run."""
    begin, end = series_window()
    contenders, limits = [], []
    cold_roles = {**tallyd.roles, "tallyd": [cold.pid]}
    for name, visitors in SERIES:
        query = {"page": f"/series/{name}", "from_": begin, "to": end}
        explained = {**query, "explain": 1}
        hours = [item["key"] for item in cold.client.question("/uv", step="1h", **explained)["cover"]["list"]]
        days = [item["key"] for item in cold.client.question("/uv", **explained)["cover"]["list"]]
        if (len(hours), len(days)) != (720, 30):
            bench.errors.append(f"uv: 30 days are {len(hours)} hours and {len(days)} keys without a step")
            continue
        fill_series(tallyd, hours, days, visitors)
        changed(tallyd, hours)
        count = tallyd.redis("PFCOUNT", *hours)
        for server in (tallyd, cold, tallyd):
            answer = server.client.question("/uv", step="1h", **query)
            if answer["uv"] != count or len(answer["series"]) != 720:
                bench.errors.append(f"uv: 720 points, {name}: {answer['uv']} of {len(answer['series'])}, not {count}")
        target = "/uv?" + urllib.parse.urlencode({"page": query["page"], "from": begin, "to": end, "step": "1h"})
        for kind, label, server, roles in (("series", "tallyd", tallyd, tallyd.roles), ("cold", "tallyd cold", cold, cold_roles)):
            key = f"{kind} 720 {name}"
            contenders.append(Contender(
                key, f"{label}, 30 days by hour, {name}: 720 points",
                lambda seed, s, server=server, roles=roles, target=target: load.measure(
                    roles, load.questions(server.port, target, bench.settings.questions // 4), 30)))
            limits.append((key, f"30 days by hour, {name}, {'remembered' if kind == 'series' else 'cold'}: median"))
    return contenders, limits


def fill(tallyd, keys):
    """Visitors straight into the keys that the answer names: months of events would take too long."""
    rng = random.Random(7)
    for key in keys:
        for _ in range(VISITORS // 5000):
            tallyd.redis("PFADD", key, *(rng.randbytes(8) for _ in range(5000)))


def changed(tallyd, keys):
    """What tallyd would have said to Redis, had it written them: nothing remembered of these partitions holds."""
    for tag in {key[key.index("{"):key.index("}") + 1] for key in keys}:
        tallyd.redis("HSET", f"t:{tag}:state", "ver", random.randbytes(16).hex())


def uv(bench):
    times = bench.settings.questions
    section = Section("uv", f"GET /uv on a quiet server, one after the other; keys of {VISITORS:,} visitors; cold: "
                            "--cache-mb 0, on the same Redis")
    keep = [w for level in ("minutes", "hours", "days") for w in (f"--keep-{level}", "forever")]
    with bench.serving(TallydServer, "--fsync", "everysec", *keep) as tallyd, bench.serving(
            TallydServer, "--redis", f"unix:{tallyd.socket}", "--cache-mb", "0", *keep) as cold:
        cold_roles = {**tallyd.roles, "tallyd": [cold.pid]}
        contenders = []
        for number, (name, begin, end, _, _) in enumerate(windows()):
            page = f"/page/{number}"
            query = {"page": page, "from_": begin, "to": end}
            cover = cold.client.question("/uv", explain=1, **query)["cover"]
            keys = [item["key"] for item in cover["list"]]
            fill(tallyd, keys)
            changed(tallyd, keys)
            target = "/uv?" + urllib.parse.urlencode({"page": page, "from": begin, "to": end})
            section.extra.setdefault("covers", {})[name] = {k: v for k, v in cover.items() if k != "list"}
            contenders += [
                Contender(f"uv {name}", f"tallyd, {name}: {len(keys)} keys",
                          lambda seed, s, target=target: load.measure(
                              tallyd.roles, load.questions(tallyd.port, target, times), 30)),
                Contender(f"cold {name}", f"tallyd cold, {name}: {len(keys)} keys",
                          lambda seed, s, target=target: held(tallyd, "exec", times, lambda: load.measure(
                              cold_roles, load.questions(cold.port, target, times), 30))),
                Contender(f"pfcount {name}", f"PFCOUNT of the same {len(keys)} keys",
                          lambda seed, s, keys=keys: held(
                              tallyd, "pfcount", times // 2, lambda: on_redis("pfcount", tallyd, keys, times // 2))),
                Contender(f"fetch {name}", f"MGET of the same {len(keys)} keys, thrown away",
                          lambda seed, s, keys=keys: on_redis("fetch", tallyd, keys, times // 2))]
            count = tallyd.redis("PFCOUNT", *keys)
            for server in (tallyd, cold, tallyd):
                answer = server.client.question("/uv", **query)["uv"]
                if answer != count:
                    bench.errors.append(f"uv: {name}: /uv says {answer}, PFCOUNT {count}")
        more, limits = series(bench, tallyd, cold)
        bench.in_turn(section, contenders + more)
        section.limits += [Limit(label, section.find(key).median("p50_us") / 1000, 20, "ms") for key, label in limits]
        for name, _, _, limit, cold_limit in windows():
            section.ratio(f"{name}: PFCOUNT's time / tallyd's", f"pfcount {name}", f"uv {name}", metric="p50_us")
            section.ratio(f"{name}: PFCOUNT's time / tallyd's, cold", f"pfcount {name}", f"cold {name}",
                          metric="p50_us")
            for key, bound in (("uv", limit), ("cold", cold_limit)):
                if bound:
                    section.limits.append(Limit(f"{name}, {'remembered' if key == 'uv' else key}: median",
                                                section.find(f"{key} {name}").median("p50_us") / 1000, bound, "ms"))
        section.ratio("13 months: Redis's CPU of PFCOUNT / of a question", "pfcount 13 months", "uv 13 months",
                      metric="redis_us", must=10)
        section.ratio("13 months: how long Redis runs PFCOUNT / the commands of a cold question (INFO commandstats)",
                      "pfcount 13 months", "cold 13 months", metric="held_us", must=10)
        # The kernel's sending in it, which takes longer than those commands: 12 KB a key are copied twice.  No client
        # that fetches the keys costs less than the second line
        section.ratio("13 months: Redis's CPU of PFCOUNT / of a cold question, with its sending", "pfcount 13 months",
                      "cold 13 months", metric="redis_us")
        section.ratio("13 months: Redis's CPU of PFCOUNT / of only giving the keys away", "pfcount 13 months",
                      "fetch 13 months", metric="redis_us")
        bench.note_memory(section.key, tallyd.pid)
        section.extra["idle"] = idle(bench, section, tallyd)
    return section


def held(tallyd, command, times, run):
    """What run() measures, and for how long `command` held Redis, without what it takes to send its replies."""
    before = tallyd.command_us(command)
    record = run()
    return {**record, "held_us": (tallyd.command_us(command) - before) / times}


def on_redis(what, tallyd, keys, times):
    """same_keys.c: `what` is pfcount or fetch."""
    meter = Meter(tallyd.roles)
    figures = load.run_json([load.PROGRAMS / "same_keys", what, tallyd.socket, times], 60, "\n".join(keys) + "\n")
    used = meter.stop()
    return {"rate": 1e6 / figures["p50_us"], "p50_us": figures["p50_us"], "p99_us": figures["p99_us"],
            "redis_us": used["cpu_s"]["redis"] / times * 1e6, "others_percent": used["others_percent"]}


def idle(bench, section, tallyd):
    """CPU ms a second of a server that nobody asks anything."""
    time.sleep(0.5)
    meter = Meter(tallyd.roles)
    time.sleep(bench.settings.idle_s)
    used = meter.stop()
    idle_ms = {role: cpu / used["elapsed_s"] * 1000 for role, cpu in used["cpu_s"].items()}
    section.notes.append(f"idle: tallyd {idle_ms['tallyd']:.1f} ms of CPU a second, Redis {idle_ms['redis']:.1f} "
                         f"(a clock tick is 10 ms, over {used['elapsed_s']:.0f} s)")
    return idle_ms
