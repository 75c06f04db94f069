"""How a question's cost grows with what is stored: a month of a site's events, from a million to a thousand million."""

import math
import random
import urllib.parse

from . import load
from .bench import Contender
from .query import changed, windows
from .results import Section
from .servers import TallydServer

STEPS = (1_000_000, 10_000_000, 100_000_000, 1_000_000_000)
SECONDS = {"minute": 60, "hour": 3600, "day": 86400, "month": 30 * 86400}
VIEWS_OF_A_VISITOR = 4  # in a key
REGISTERS, REGISTER_BITS, REGISTER_MOST = 16384, 6, 51
SPARSE_MOST = 1000  # visitors that are added one by one; Redis keeps some 2,000 on as a dense sketch


def dense_sketch(visitors, rng):
    """The sketch of so many visitors, as Redis writes it, without adding them: PFADD of a thousand million takes hours.

    A register holds the greatest of about n/m ranks, each of which is k or less with probability 1 - 2^-k.  So it is k or
    less with probability exp(-n/m 2^-k).
    """
    bits = 0
    for i in range(REGISTERS):
        rank = math.ceil(math.log2(visitors / REGISTERS / -math.log(1 - rng.random())))
        bits |= min(max(rank, 0), REGISTER_MOST) << i * REGISTER_BITS
    unknown = b"\0" * 7 + b"\x80"  # Redis's own estimate of it: to be made
    return b"HYLL\0\0\0\0" + unknown + bits.to_bytes(REGISTERS * REGISTER_BITS // 8, "little")


def fill(tallyd, keys, events):
    """Each of {key: seconds} gets the visitors of its share of a month's events.  Returns how many these are."""
    rng = random.Random(events)
    kinds, total = {}, 0
    for key, seconds in keys.items():
        visitors = max(1, events * seconds // SECONDS["month"] // VIEWS_OF_A_VISITOR)
        if visitors <= SPARSE_MOST:
            tallyd.redis("PFADD", key, *(rng.randbytes(8) for _ in range(visitors)))
        else:
            if len(kinds.setdefault(seconds, [])) < 8:  # different ones: more of them cost the same
                kinds[seconds].append(dense_sketch(visitors, rng))
            tallyd.redis("SET", key, rng.choice(kinds[seconds]))
        total += visitors
    return total


def stored(bench):
    section = Section("stored", "a question about a month of a page, cold and remembered, by the events that are stored of it")
    keep = [w for level in ("minutes", "hours", "days") for w in (f"--keep-{level}", "forever")]
    begin, end = next((begin, end) for name, begin, end, *_ in windows() if name == "30 days")
    with bench.serving(TallydServer, "--fsync", "everysec", *keep) as tallyd, bench.serving(
            TallydServer, "--redis", f"unix:{tallyd.socket}", "--cache-mb", "0", *keep) as cold:
        contenders = []
        for events in STEPS:
            query = {"page": f"/stored/{events}", "from_": begin, "to": end}
            cover = cold.client.question("/uv", explain=1, **query)["cover"]["list"]
            keys = {item["key"]: SECONDS[item["level"]] for item in cover}
            fill(tallyd, keys, events)
            changed(tallyd, keys)
            count = tallyd.redis("PFCOUNT", *keys)
            for name, server, roles in (("remembered", tallyd, tallyd.roles), ("cold", cold, {**tallyd.roles, "tallyd": [cold.pid]})):
                for _ in range(2):
                    if server.client.question("/uv", **query)["uv"] != count:
                        bench.errors.append(f"stored: {events:,} events: /uv is not PFCOUNT's {count}")
                target = "/uv?" + urllib.parse.urlencode({"page": query["page"], "from": begin, "to": end})
                contenders.append(Contender(
                    f"{name} {events}", f"{events:,} events, {count:,} visitors, {len(keys)} keys, {name}",
                    lambda seed, s, server=server, roles=roles, target=target: load.measure(
                        roles, load.questions(server.port, target, bench.settings.questions), 30)))
        bench.in_turn(section, contenders)
        bench.note_memory(section.key, tallyd.pid)
    for name in ("cold", "remembered"):
        for events in STEPS[1:]:
            section.ratio(f"{name}: time of {events:,} events / of a tenth", f"{name} {events}", f"{name} {events // 10}",
                          metric="p50_us")
        section.ratio(f"{name}: time of {STEPS[-1]:,} events / of {STEPS[1]:,}", f"{name} {STEPS[-1]}", f"{name} {STEPS[1]}",
                      metric="p50_us")
    return section
