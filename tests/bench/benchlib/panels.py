"""A thousand dashboards, each with one of ten thousand panels a second: hardly any question was asked a second ago."""

import functools
import urllib.parse

from . import dashboards
from .bench import Contender
from .results import Limit, Section
from .servers import TallydServer

PANELS_A_SECOND = 1000
POLLED_S = 40  # before the first run: each of the ten thousand was asked for once or more, as by dashboards that poll for hours


def panels():
    """Ten panels about a page, which rate.c draws from a thousand."""
    for path, query in (
            ("/uv", {"from": "now-24h"}),
            ("/pv", {"from": "now-24h"}),
            ("/visits", {"from": "now-24h"}),
            ("/ips", {"from": "now-7d/h"}),
            ("/uv", {"from": "now-30d/d"}),
            ("/uv", {"from": "now-7d/h"}),
            ("/stats", {"from": "now/d"}),
            ("/pv", {"from": "now-7d/h", "step": "1d"}),
            ("/uv", {"from": "now-30d/d", "step": "1d"}),
            ("/pv", {"from": "now-1h", "step": "1m"})):
        yield path + "?page=/page/number/{page}&" + urllib.parse.urlencode(query)


def panels_section(bench):
    section = Section("panels", f"{PANELS_A_SECOND:,} dashboards, each of which asks one of {10 * dashboards.PAGES:,} panels a second, "
                                "beside arrays of 1000 at half of their most; a second: questions")
    ask = functools.partial(dashboards.poll, targets=tuple(panels()), rate=PANELS_A_SECOND)
    with bench.serving(TallydServer, "--fsync", "everysec") as tallyd:
        dashboards.fill(tallyd)
        most = dashboards.run(tallyd, 1, max(3, bench.settings.seconds), True, False)["counted_rate"]
        if not bench.settings.quick:
            ask(tallyd, 2, POLLED_S)
        half = functools.partial(dashboards.ingest, arrays_a_second=max(1, round(most / 2 / 1000)))
        bench.in_turn(section, [
            Contender("questions", "panels alone", lambda seed, s: dashboards.run(tallyd, seed, s, False, True, ask=ask)),
            Contender("events", "arrays alone", lambda seed, s: dashboards.run(tallyd, seed, s, True, False, write=half)),
            Contender("both", "panels beside arrays", lambda seed, s: dashboards.run(tallyd, seed, s, True, True, half, ask))],
            max(3, bench.settings.seconds))
        bench.note_memory(section.key, tallyd.pid)
        section.extra["panels"] = list(panels())
        section.extra["arrays_a_second"] = round(most / 2 / 1000)
    both, events = section.find("both"), section.find("events")
    # a rewrite of the append-only file, every 40 s or more, falls into one run of several, and is for the events
    cores = both.median("serving_cores") - events.median("serving_cores")
    section.limits += [Limit("panels beside arrays: p99", both.median("p99_us") / 1000, 100, "ms"),
                       Limit("what the panels take of one core, tallyd and Redis", 100 * cores, 30, "%")]
    return section
