"""A sender that makes names up: what a million of them in an hour leave behind, in Redis and in tallyd."""

import random

from .growth import used_memory
from .results import Limit, Section
from .servers import TallydServer

NAMES = 1_000_000
BATCH = 10_000

# What is made up: (key, label, event of number i, most MiB of Redis, most MiB of tallyd)
FLOODS = (
    ("referrers", "referrers", lambda rng, i: {"page": "/", "referrer": f"https://{rng.getrandbits(64):x}.example/"}, 16, 64),
    ("agents", "agents", lambda rng, i: {"page": "/", "ua": f"Mozilla/5.0 (X11; Linux {rng.getrandbits(64):x}) Firefox/130.0"}, 16, 64),
    ("events", "named events", lambda rng, i: {"event": f"{rng.getrandbits(64):x}"}, 16, 64),
    ("pages", "pages", lambda rng, i: {"page": f"/{rng.getrandbits(64):x}"}, 160, 64),
    ("all", "pages, referrers and agents", lambda rng, i: {
        "page": f"/{rng.getrandbits(64):x}", "referrer": f"https://{rng.getrandbits(64):x}.example/",
        "ua": f"Mozilla/5.0 (X11; Linux {rng.getrandbits(64):x}) Firefox/130.0"}, 160, 64),
)


def one(bench, section, flood):
    key, label, event, most_redis, most_tallyd = flood
    rng = random.Random(7)
    names = NAMES // (10 if bench.settings.quick else 1)
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        tallyd.client.accept([{"page": "/", "user": "u"}])
        tallyd.settle()
        before = used_memory(tallyd)
        for first in range(0, names, BATCH):  # few visitors: their own cost is not what is measured
            tallyd.client.accept([{**event(rng, i), "user": f"u{i % 100}", "ip": f"192.0.2.{i % 200}"}
                                  for i in range(first, first + BATCH)])
        tallyd.settle()
        capped = tallyd.client.metric("tallyd_names_capped_total")
        redis = (used_memory(tallyd) - before) / 2**20
        resident = tallyd.client.metric("process_resident_memory_bytes") / 2**20
        section.extra[key] = {"names": names, "put_together": capped, "redis_mib": redis, "tallyd_mib": resident}
        section.notes.append(f"{label}: {names:,} made up, {capped:,.0f} counts put together; Redis {redis:.1f} MiB more, "
                             f"tallyd {resident:.1f} MiB")
        section.limits.append(Limit(f"{label}: Redis's memory", redis, most_redis, "MiB"))
        section.limits.append(Limit(f"{label}: tallyd's memory", resident, most_tallyd, "MiB"))


def flood(bench):
    section = Section("flood", f"flood: {NAMES:,} made-up names in an hour, arrays of {BATCH:,}, the default caps")
    for kind in FLOODS:
        bench.say(f"flood: {kind[1]}")
        one(bench, section, kind)
    return section
