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


def fill(tallyd, keys):
    """Visitors straight into the keys that the answer names: months of events would take too long."""
    rng = random.Random(7)
    for key in keys:
        for _ in range(VISITORS // 5000):
            tallyd.redis("PFADD", key, *(rng.randbytes(8) for _ in range(5000)))


def changed(tallyd, keys):
    """What tallyd would have said to Redis, had it written them: nothing remembered of these partitions holds."""
    for tag in {key[key.index("{"):key.index("}") + 1] for key in keys}:
        tallyd.redis("HSET", f"t:{tag}:rolled", "ver", random.randbytes(16).hex())


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
                          lambda seed, s, target=target: load.measure(
                              cold_roles, load.questions(cold.port, target, times), 30)),
                Contender(f"pfcount {name}", f"PFCOUNT of the same {len(keys)} keys",
                          lambda seed, s, keys=keys: pfcount(tallyd, keys, times // 2))]
            count = tallyd.redis("PFCOUNT", *keys)
            for server in (tallyd, cold, tallyd):
                answer = server.client.question("/uv", **query)["uv"]
                if answer != count:
                    bench.errors.append(f"uv: {name}: /uv says {answer}, PFCOUNT {count}")
        bench.in_turn(section, contenders)
        for name, _, _, limit, cold_limit in windows():
            section.ratio(f"{name}: PFCOUNT's time / tallyd's", f"pfcount {name}", f"uv {name}", metric="p50_us")
            section.ratio(f"{name}: PFCOUNT's time / tallyd's, cold", f"pfcount {name}", f"cold {name}",
                          metric="p50_us")
            for key, bound in (("uv", limit), ("cold", cold_limit)):
                if bound:
                    section.limits.append(Limit(f"{name}, {'remembered' if key == 'uv' else key}: median",
                                                section.find(f"{key} {name}").median("p50_us") / 1000, bound, "ms"))
        section.ratio("13 months: Redis's CPU of PFCOUNT / of a cold question", "pfcount 13 months", "cold 13 months",
                      metric="redis_us", must=10)
        bench.note_memory(section.key, tallyd.pid)
        section.extra["idle"] = idle(bench, section, tallyd)
    return section


def pfcount(tallyd, keys, times):
    meter = Meter(tallyd.roles)
    figures = load.run_json([load.PROGRAMS / "pfcount", tallyd.socket, times], 60, "\n".join(keys) + "\n")
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
