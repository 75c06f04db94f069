"""What tests of the dashboard share: a site with data, and what a person reads and does on the page."""

import random
import re
import time
from datetime import datetime, timedelta, timezone
from decimal import ROUND_HALF_UP, Decimal

PAGES = ["/", "/pricing", "/blog/a b?c=d&e", "<img src=x onerror=\"document.title='forged'\">", "/" + "long/" * 60]
SOURCES = ["https://www.google.com/", "https://news.ycombinator.com/", None]
TODAY = datetime.now(timezone.utc).date()
FROM, TO = TODAY - timedelta(days=9), TODAY - timedelta(days=1)  # the custom window: both days are in it
CUSTOM = f"range=custom&from={FROM}&to={TO}"
FIGURES = ("uv", "visits", "pv", "ips")


def send_shop(http):
    """A site with some weeks of page views, some of them of this moment."""
    chance = random.Random(7)
    now = int(time.time())
    events = [{"site": "shop", "page": chance.choices(PAGES, [9, 5, 3, 2, 1])[0], "user": int(chance.random() ** 2 * 300),
               "ip": f"192.0.2.{chance.randrange(200)}", "referrer": chance.choices(SOURCES, [5, 3, 2])[0],
               "country": chance.choice(["DE", "FR"]), "ts": now - chance.randrange(40 * 86400)} for _ in range(6000)]
    events += [{"site": "shop", "page": "/", "user": f"now{i}", "ip": "192.0.2.1"} for i in range(17)]
    events += [{"site": "shop", "event": name, "user": user, "ts": now - chance.randrange(20 * 86400)}
               for name, n in (("signup", 90), ("Outbound Link: Click", 40), ("<b>bold</b>", 25)) for user in range(n)]
    events += [{"site": "shop", "user": user, "actions": ["view", "cart", "order"][:1 + (user % 7 > 1) + (user % 7 > 4)],
                "ts": now - chance.randrange(8 * 86400)} for user in range(200)]
    events += [{"site": "blog", "page": f"/posts/{i}", "user": i % 9, "ts": now - i * 3600} for i in range(12)]
    for i in range(0, len(events), 3000):
        http.accept(sorted(events, key=lambda e: e.get("ts", now))[i:i + 3000])


def number(text):
    return int(re.sub(r"\D", "", text))


def question(http, path, **params):
    """What the API says of the shop's custom window."""
    return http.question(path, site="shop", from_=str(FROM), to=str(TO + timedelta(days=1)), **params)


def assert_figures(browser, stats):
    """The page says what an answer of /stats does, and nothing where that has null."""
    for name in FIGURES:
        if stats[name] is None:
            assert browser.run("return document.getElementById(arguments[0])", name) is None, name
        else:
            assert number(browser.text(f"#{name}")) == stats[name], name
    for name in ("uv", "ips"):
        if stats[name] is not None:
            low, high = (stats["error"][name][end] for end in ("low", "high"))
            assert browser.text(f"#{name}-error") == ("" if low == high else f"{low:,} to {high:,} (95\u202f%)")


def share(value):
    """As the page writes a share: halves go up."""
    return f"{Decimal(value * 100).quantize(Decimal('0.1' if 0 < value < 0.1 else '1'), ROUND_HALF_UP)}\u202f%"


def messages(browser):
    return browser.run("return [...document.querySelectorAll('.message:not([hidden])')].map((box) => box.textContent)")


def chart(browser):
    """The lines of the chart: [{label, data: [y], tension}]."""
    return browser.run("const at = Chart.getChart('chart'); return at ? at.data.datasets.map((line) =>"
                       " ({label: line.label, tension: line.tension, data: line.data.map((point) => point.y)})) : []")


def an_hour_later(browser):
    """The page is looked at again, and its clock has gone on."""
    browser.run("const now = Date.now; Date.now = () => now() + 3600000; document.dispatchEvent(new Event('visibilitychange'))")
