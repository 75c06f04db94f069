"""The dashboard in headless Chromium: how long until its first figure is painted, on a quiet server with two months of data."""

import random
import shutil
import time

from .bench import Contender
from .results import Limit, Section
from .servers import TallydServer

from lib.browser import NEEDED, Browser  # noqa: E402: servers.py says where lib is

DAYS, EVENTS = 60, 60_000
LOADS, LOADS_QUICK = 15, 5
PATHS = {"30d": "/?site=shop&range=30d", "today": "/?site=shop&range=today"}


def fill(http):
    chance = random.Random(11)
    now = int(time.time())
    for i in range(0, EVENTS, 5000):
        http.accept([{"site": "shop", "page": f"/{chance.randrange(40)}", "visitor": f"v{chance.randrange(20000)}", "ip": "192.0.2.1",
                      "ts": now - chance.randrange(DAYS * 86400)} for _ in range(5000)])
    http.request("POST", "/rollup")


def loads(bench, browser, path):
    took = sorted(browser.first_figures(path)[0] * 1000 for _ in range(LOADS_QUICK if bench.settings.quick else LOADS))
    return {"p50_us": took[len(took) // 2], "p99_us": took[-1]}


def page(bench):
    """No section where there is no browser."""
    if any(shutil.which(program) is None for program in NEEDED):
        bench.say("page: no chromium with chromedriver")
        return []
    section = Section("page", "the dashboard from an empty cache until its first figure is painted; us, the browser's own time included")
    with bench.serving(TallydServer) as server:
        fill(server.tallyd.client(60))
        browser = Browser(server.tallyd.url)
        try:
            bench.in_turn(section, [Contender(name, path, lambda seed, t, path=path: loads(bench, browser, path)) for name, path in PATHS.items()])
        finally:
            browser.close()
    section.limits.append(Limit("30 days: median", section.find("30d").median("p50_us") / 1000, 300, "ms"))
    return [section]
