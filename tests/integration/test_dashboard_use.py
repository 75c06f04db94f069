"""The dashboard as people use it: other zones and open windows, a slow or absent server, keyboard, axe-core, small
screens.  Skipped where Chromium, its driver or selenium are missing; looking with axe-core is skipped without npm."""

import re
import time
from datetime import datetime, timedelta, timezone

import pytest

from lib.browser import Browser, need_browser
from lib.dashboard import CUSTOM, FROM, TODAY, an_hour_later, assert_figures, chart, messages, number, question
from lib.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def browser_is_there():
    need_browser()


WINDOWS = {"now": 30, "24h": 24, "today": None, "yesterday": 24, "7d": 7, "30d": 30, "month": None, "lastmonth": None, "12M": 12}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", WINDOWS)
def test_windows(http, shop, look, name):
    """Every window shows figures and a series; borders lie where buckets are kept."""
    browser = look(f"/?site=shop&range={name}")
    assert number(browser.text("#pv")) > 0 and [m for m in messages(browser) if "(4" in m] == []
    points = len(browser.rows("#series-table"))
    assert points > 0 and (WINDOWS[name] is None or points in (WINDOWS[name], WINDOWS[name] + 1))  # an hour may be cut
    if name not in ("24h", "now"):  # whose period before may lie beyond the minutes that are kept
        assert "before" in browser.text("#pv-change")
    assert browser.complaints() == []


def test_24_hours_are_24_hours(http, tallyd, look):
    """To the minute: not only since the last full hour."""
    now = int(time.time()) // 60 * 60
    http.accept([{"site": "full", "page": "/", "user": i, "ts": now - 24 * 3600 + after} for i, after in enumerate((-300, 180, 1800))])
    browser = look("/?site=full&range=24h")
    assert number(browser.text("#pv")) == 2
    stats = http.question("/stats", site="full", from_="now-1439m", to="now")
    ends = [datetime.fromisoformat(stats[end].replace("Z", "+00:00")) for end in ("from", "to")]
    assert ends[1] - ends[0] == timedelta(hours=24)


@pytest.mark.some(3)
@pytest.mark.parametrize("zone", ["Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns"])
@pytest.mark.parametrize("window", ["12M", "30d", "lastmonth"])
def test_figures_in_any_zone(http, shop, look, zone, window):
    """Whether or not the chart can be cut there."""
    browser = look(f"/?site=shop&range={window}&tz={zone}")
    assert number(browser.text("#pv")) > 0 and number(browser.text("#uv")) > 0
    assert not [m for m in messages(browser) if "(422)" in m and "No chart" not in m]
    assert browser.text("#window").endswith(zone)


def test_a_step_that_is_too_fine_leaves_the_figures(http, look):
    """Of three years ago days are kept, no hours: the figures stand, and the chart says why it is not there."""
    then = TODAY - timedelta(days=3 * 366)
    http.accept([{"site": "old", "page": "/", "user": i, "ts": f"{then}T10:00:00Z"} for i in range(9)])
    browser = look(f"/?site=old&range=custom&from={then}&to={then}&step=1h")
    assert number(browser.text("#pv")) == 9 and chart(browser) == []
    assert any(text.startswith("No chart of this: ") and "(422)" in text for text in messages(browser))


def test_straight_lines(http, shop, look):
    """A curve through two 3s would dip below 3."""
    browser = look(f"/?site=shop&{CUSTOM}")
    assert [line["tension"] for line in chart(browser)] == [0, 0]


def test_an_address_with_from_and_to_is_a_custom_window(http, shop, look):
    """Nobody who writes one by hand knows that the page calls it `range=custom`."""
    browser = look(f"/?site=shop&{CUSTOM.removeprefix('range=custom&')}")
    assert_figures(browser, http.question("/stats", site="shop", from_=str(FROM), to=str(TODAY)))
    assert browser.run("return document.getElementById('range').value") == "custom"


@pytest.mark.parametrize("from_, before", [("now-6d/d", ("now-13d/d", "now-7d")), ("now-2h", ("now-241m", "now-121m")),
                                           ("now/M", ("now-1M/M", "now-1M"))])
def test_an_address_may_say_from_when_until_now(http, shop, look, from_, before):
    """As GET /uv takes it; the figures are compared with as much of the time before."""
    browser = look(f"/?site=shop&from={from_}")
    assert_figures(browser, http.question("/stats", site="shop", from_=from_))
    then = http.question("/stats", site="shop", from_=before[0], to=before[1], round="outer")["pv"]
    assert ("none before" if then == 0 else f"before: {then:,}") in browser.text("#pv-change")


def test_an_address_whose_window_is_none_asks_for_one(shop, look):
    browser = look("/?site=shop&from=yesterday")
    assert "Choose a first day" in browser.text("body")


def test_a_custom_window_ends_now(http, shop, look):
    """No hours to come as zeros, and part of a day is compared with as much of a day."""
    browser = look(f"/?site=shop&range=custom&from={TODAY}&to={TODAY}&step=1h")
    stats = http.question("/stats", site="shop", from_=str(TODAY), to="now", step="1h")
    assert len(chart(browser)[0]["data"]) in (len(stats["series"]), len(stats["series"]) - 1)
    yesterday = TODAY - timedelta(days=1)
    assert_compared(browser, f"{yesterday:%-d %b %Y}, 00:00", until=datetime.now(timezone.utc) - timedelta(days=1))


def assert_compared(browser, begins, until):
    """The title of a change names its period, which ends as late as the window does: an hour is what is kept."""
    import re
    title = browser.run("return document.getElementById('pv-change').title")
    found = re.search(r"with (.*) to (.*)$", title.replace("Sept", "Sep"))
    assert found and found[1] == begins.replace("Sept", "Sep"), title
    end = datetime.strptime(found[2], "%d %b %Y, %H:%M").replace(tzinfo=timezone.utc)
    assert timedelta(0) <= end - until + timedelta(minutes=1) <= timedelta(minutes=62), (title, until)


def test_part_of_a_day_stays_one(http, shop, look):
    """A window of an hour, which a point of the chart was, survives another control; a year half typed is no window."""
    day = TODAY - timedelta(days=3)
    browser = look(f"/?site=shop&range=custom&from={day}T05:00:00Z&to={day}T09:00:00Z")
    expected = http.question("/stats", site="shop", from_=f"{day}T05:00:00Z", to=f"{day}T09:00:00Z")
    assert_figures(browser, expected)
    browser.run("const s = document.getElementById('compare'); s.value = 'none'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    browser.settle()
    assert_figures(browser, expected)
    address = browser.driver.current_url
    browser.run("const f = document.getElementById('from'); f.value = '0002-11-01'; f.dispatchEvent(new Event('change', {bubbles: true}))")
    assert browser.driver.current_url == address
    browser.run(f"const f = document.getElementById('from'); f.value = '{day}'; f.dispatchEvent(new Event('change', {{bubbles: true}}));"
                f" const t = document.getElementById('to'); t.value = '{TODAY}'; t.dispatchEvent(new Event('change', {{bubbles: true}}))")
    browser.settle()
    assert f"from={day}&to={TODAY}" in browser.driver.current_url


def test_the_year_before(http, look):
    last_year = TODAY.replace(year=TODAY.year - 1, day=min(TODAY.day, 28)) - timedelta(days=3)
    http.accept([{"site": "years", "page": "/", "user": i, "ts": f"{last_year}T10:00:00Z"} for i in range(5)])
    http.accept([{"site": "years", "page": "/", "user": i, "ts": f"{TODAY - timedelta(days=3)}T10:00:00Z"} for i in range(20)])
    browser = look("/?site=years&range=30d&compare=year")
    assert "(before: 5)" in browser.text("#pv-change") and "+300" in browser.text("#pv-change")
    assert len(chart(browser)) == 2


@pytest.fixture
def zoned(start_redis, start_tallyd, tmp_path):
    """A tallyd that keeps days for ever, with sites of two zones."""
    config = tmp_path / "tallyd.conf"
    config.write_text("site.berlin.tz = Europe/Berlin\nsite.chatham.tz = Pacific/Chatham\n")
    return start_tallyd("--config", config, "--keep-days", "forever", "--keep-months", "forever", redis=start_redis())


def test_the_year_before_ends_at_midnight(zoned, look):
    """In 2026 the clocks were changed in the night before its last day, in 2025 in the night after."""
    zoned.client().accept([{"site": "berlin", "page": "/", "user": i, "ts": f"{day}T12:00:00Z"}
                           for i, day in enumerate(("2025-09-25", "2025-09-26", "2025-10-25", "2025-10-26", "2026-10-10"))])
    browser = look("/?site=berlin&range=custom&from=2026-09-26&to=2026-10-25&compare=year", base=zoned.url)
    assert "(before: 2)" in browser.text("#pv-change"), browser.text("#pv-change")


def test_the_year_before_a_leap_year(zoned, look):
    """February up to its 28th is compared with all of February, and its 28th with a day."""
    zoned.client().accept([{"site": "berlin", "page": "/", "user": i, "ts": f"{day}T12:00:00Z"}
                           for i, day in enumerate(("2023-02-27", "2023-02-28", "2023-03-01", "2024-02-28"))])
    for from_, before in (("2024-02-01", 2), ("2024-02-28", 1), ("2024-02-29", 1)):
        browser = look(f"/?site=berlin&range=custom&from={from_}&to={max(from_, '2024-02-28')}&compare=year", base=zoned.url)
        assert f"(before: {before})" in browser.text("#pv-change"), (from_, browser.text("#pv-change"))


def test_curves_are_of_the_cards_figures(zoned, look):
    """A day of UTC, whatever the site's zone: of Chatham's own day the evening is not in it."""
    day = TODAY - timedelta(days=1)
    zoned.client().accept([{"site": site, "page": "/", "user": i, "ts": f"{day}T20:00:00Z"} for i in range(3) for site in ("chatham", "berlin")])
    browser = look(f"/?range=custom&from={day}&to={day}", base=zoned.url)
    curves = browser.run("return [...document.querySelectorAll('.site')].map((card) => [card.querySelector('.uv').textContent,"
                         " card.querySelector('polyline').getAttribute('points')])")
    assert len(curves) == 2
    for visitors, points in curves:
        assert visitors == "3" and sorted({float(point.split(",")[1]) for point in points.split()}) == [2, 29], points


def test_an_unknown_zone_is_said(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&tz=Mars/Olympus")
    assert http.get("/stats", tz="Mars/Olympus").json["detail"] in " ".join(messages(browser))
    assert browser.text("#pv") == "–"
    browser = look(f"/?site=shop&{CUSTOM}&tz=Asia/Tokyo")
    stats = question(http, "/stats", tz="Asia/Tokyo")
    assert_figures(browser, stats)
    assert stats["from"].endswith("T15:00:00Z") and browser.text("#window").endswith("00:00, Asia/Tokyo")


@pytest.mark.some(1)
@pytest.mark.parametrize("garbage", ["range=toString", "range=constructor", "constructor=x", "metric=x", "step=x", "period=x", "compare=x"])
def test_garbage_in_the_address_is_passed_over(http, shop, look, garbage):
    """Names that every object has are no windows and no filters."""
    browser = look(f"/?site=shop&{garbage}")
    assert_figures(browser, http.question("/stats", site="shop", from_="now-29d/d", to="now"))
    assert len(chart(browser)) == 2 and browser.find("#range").get_attribute("value") == "30d"
    assert browser.run("return document.querySelectorAll('.chip').length") == 0 and browser.complaints() == []


def test_an_old_log_is_compared_with_nothing(http, look):
    """Of 2015 only months are kept: the period before, rounded to them, is the same month."""
    http.accept([{"site": "log", "page": "/", "user": i, "ts": f"2015-05-{10 + i}T10:00:00Z"} for i in range(9)])
    browser = look("/?site=log&range=custom&from=2015-05-14&to=2015-05-18")
    assert number(browser.text("#pv")) == 9  # the whole month, as the line below the figures says
    assert {browser.text(f"#{name}-change") for name in ("uv", "visits", "pv")} == {""}


def test_a_last_day_before_the_first(http, shop, look):
    """It is told, and figures and lists stay those of one window, the one before."""
    browser = look(f"/?site=shop&{CUSTOM}")
    address, figure, list_ = browser.driver.current_url, browser.text("#pv"), browser.rows("#list-0")
    choose = """const box = document.getElementById(arguments[0]); box.value = arguments[1];
                box.dispatchEvent(new Event('change', { bubbles: true }))"""
    browser.run(choose, "to", str(FROM - timedelta(days=1)))
    browser.settle()
    assert "Choose a first day, and a last day that is not before it." in messages(browser)
    assert (browser.driver.current_url, browser.text("#pv"), browser.rows("#list-0")) == (address, figure, list_)
    browser.run(choose, "to", str(FROM))
    browser.settle()
    assert browser.driver.current_url != address and not [m for m in messages(browser) if "Choose" in m]
    assert number(browser.text("#pv")) == http.count("pv", site="shop", from_=str(FROM), to=str(FROM + timedelta(days=1)))


def test_an_empty_site_says_what_to_do(http, look):
    browser = look("/?site=nobody-home&range=24h")
    said = messages(browser)
    for words in ("No page views in the last 24 hours. There is no site nobody-home yet. Put <script src=.../tally.js>", "No pages",
                  "No users", "No named events"):
        assert any(words in text for text in said), words
    assert browser.text("#pv") == "0" and browser.complaints() == []


def test_a_site_whose_events_are_older(http, look):
    """As behind the import of an old log: it needs no script, but another period."""
    http.accept([{"site": "of-last-week", "page": "/", "ts": f"{TODAY - timedelta(days=7)}T10:00:00Z"}])
    said = messages(look("/?site=of-last-week&range=24h"))
    assert "No page views in the last 24 hours. The site has events: choose another period." in said


def test_a_change_of_nothing_is_none(http, look):
    """0.02 % is written as no change, so it is neither good nor bad."""
    for days, n in ((2, 5000), (1, 4999)):
        http.accept([{"site": "steady", "page": "/", "ts": f"{TODAY - timedelta(days=days)}T10:00:00Z"}] * n)
    browser = look("/?site=steady&range=yesterday")
    assert browser.text("#pv-change") == "\u00b10.0\u202f% (before: 5,000)"
    assert browser.run("return document.getElementById('pv-change').className").strip() == "change"


@pytest.mark.parametrize("works", [True, False])
def test_a_link_is_copied_or_not(http, shop, look, works):
    """A page without HTTPS has no clipboard, and must not say that it has copied."""
    browser = look("/?site=shop")
    browser.run("""Object.defineProperty(navigator, 'clipboard', { value: undefined });
                   document.execCommand = (what) => { window.asked = [what, getSelection().toString()]; return arguments[0]; }""", works)
    browser.find("#share").click()
    browser.find("#share-copy").click()
    said = wait_until(lambda: browser.text("#share-copied"), "it says what became of it")
    assert said == ("Copied." if works else "Not copied: please copy it by hand.")
    assert browser.run("return window.asked") == ["copy", browser.run("return document.getElementById('share-link').value")]
    browser.find("#share-token").send_keys("t")  # another link, which is not copied
    assert browser.text("#share-copied") == ""


def test_it_asks_nobody_else(tallyd, shop, look):
    browser = look("/?site=shop&range=7d")
    asked = browser.requested()
    assert len(asked) > 20
    assert [url for url in asked if not url.startswith((tallyd.url, "data:", "chrome:", "about:"))] == []


def test_without_addresses(redis, start_tallyd, look):
    """--ips off: no card of them, no column, and no other harm."""
    tallyd = start_tallyd("--ips", "off", redis=redis)
    tallyd.client().accept([{"site": "quiet", "page": "/", "visitor": f"v{i}", "ip": "192.0.2.1"} for i in range(3)])
    browser = look("/?site=quiet&range=24h", base=tallyd.url)
    stats = tallyd.client().question("/stats", site="quiet")
    assert stats["ips"] is None
    assert_figures(browser, stats)
    heads = browser.run("return [...document.querySelectorAll('#series-table thead th')].map((head) => head.textContent)")
    assert heads[:4] == ["From", "Visitors", "Visits", "Page views"] and "IP addresses" not in heads
    assert browser.complaints() == []


def test_first_figures_come_first(shop, look, capsys):
    """Scripts at once, then the figures: nothing else is waited for.  How long that takes on a quiet machine is a line of
    `make bench`; here others use it too."""
    browser = look("/ops")
    loads = [browser.first_figures("/?site=shop&range=30d") for _ in range(5)]
    median = sorted(ms for ms, _ in loads)[2]
    with capsys.disabled():
        print(f" first figures after {median:.0f} ms", end="")
    assert sorted(n for _, n in loads)[2] <= 2, loads  # of a late load, what else came meanwhile is in it
    assert median < 5000
    browser.settle()


# Answers of the paths that are not in the list never come.
HOLD = """const ask = window.fetch; window.asked = []; window.fetch = (address, how) => {
  const path = String(address).split('?')[0];
  asked.push(path);
  return %s.includes(path) ? ask(address, how) : new Promise(() => {});
}"""
DAYS_OF_A_ZONE = f"/?site=shop&{CUSTOM}&tz=Asia/Tokyo"


@pytest.mark.some(1)
@pytest.mark.parametrize("path, needed", [("/?site=shop&range=30d", ["stats"]), (f"/?site=shop&{CUSTOM}", ["pv", "stats"]),
                                          (DAYS_OF_A_ZONE, ["stats"])], ids=["a link", "days of the site's zone", "days of a zone"])
def test_first_figures_wait_for_nothing_else(shop, look, path, needed):
    """Every other answer is held back for ever, so what the figures wait for is a matter of cause and not of time: on a busy
    machine scripts and answers come one after the other that do not wait for each other.  The site's zone is asked for by
    /pv where days are cut in it, and nothing has said it yet."""
    browser = look("/ops")
    hold = browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": HOLD % needed})
    browser.driver.get(browser.base + path)
    wait_until(lambda: browser.run("return /\\d/.test(document.getElementById('uv')?.textContent ?? '')"), "the figures are there", deadline_s=30)
    asked = browser.run("return asked")
    browser.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", hold)
    assert [name for name in asked[:asked.index("stats") + 1] if name != "sites"] == needed  # the menu's names are asked for beside
    scripts = browser.run("return performance.getEntriesByType('resource').filter((one) => one.name.endsWith('.js')).map((one) => one.name)")
    named = browser.run("return [...document.querySelectorAll('link[rel=modulepreload], script')].map((one) => one.href ?? one.src)")
    assert scripts and set(scripts) <= set(named)  # the page names them all, so none waits for another to name it


CLOSED = """const ask = window.fetch; window.fetch = (address, how) => how?.method === 'HEAD' && address === 'ops'
  ? Promise.resolve(new Response(null, { status: 404 })) : ask(address, how)"""


def test_what_a_proxy_closes_has_no_links(shop, look):
    browser = look("/?site=shop&range=7d")
    assert re.sub(r"\s+", " ", browser.text("footer")) == "The API · For operators · Metrics · Chart.js, MIT licence"
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOSED})
    browser.driver.get(browser.base + "/?site=shop&range=7d")
    wait_until(lambda: "operators" not in browser.text("footer"), "the links are gone", deadline_s=30)
    assert re.sub(r"\s+", " ", browser.text("footer")) == "The API · Chart.js, MIT licence"


# ---- time passes ----

@pytest.mark.some(1)
@pytest.mark.parametrize("dark", [False, True])
def test_what_is_said_of_the_columns_is_so(shop, look, dark):
    """Light and dark: the part that is new has the colour that the words name, the other part is grey."""
    browser = look("/?site=shop", dark=dark)
    assert "Blue: new" in browser.text("section[aria-labelledby=active-title] .window")
    colours = [[int(n) for n in re.findall(r"\d+", browser.run(f"return getComputedStyle(document.querySelector('#dau-columns .{css}')).fill"))]
               for css in ("new", "all")]
    (red, green, blue), grey = colours
    assert blue > green > red and blue - red > 60 and max(grey) - min(grey) < 40, colours


def test_it_refreshes_quietly_and_stops_when_hidden(http, look):
    http.accept({"site": "wall", "page": "/", "user": 1})
    browser = look("/?site=wall&range=today")
    assert number(browser.text("#pv")) == 1
    browser.run("window.busy = 0; new MutationObserver(() => { busy++; }).observe(document.body, {subtree: true, attributeFilter: ['aria-busy']});"
                " Object.defineProperty(document, 'hidden', {configurable: true, get: () => true})")
    http.accept({"site": "wall", "page": "/", "user": 2})
    browser.requested()
    an_hour_later(browser)
    assert [url for url in browser.requested() if "/stats" in url] == [] and number(browser.text("#pv")) == 1
    browser.run("delete document.hidden")
    an_hour_later(browser)
    wait_until(lambda: number(browser.text("#pv")) == 2, "the figures are new")
    wait_until(lambda: sum(chart(browser)[0]["data"]) >= 2, "so is the chart")
    assert browser.run("return busy") == 0 and browser.complaints() == []


def test_a_slow_server_is_waited_for(tallyd, shop, cleanup):
    browser = Browser(tallyd.url)
    cleanup.append(browser.close)
    browser.open("/?site=shop&range=7d")
    browser.driver.execute_cdp_cmd("Network.enable", {})
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                                   {"offline": False, "latency": 2500, "downloadThroughput": -1, "uploadThroughput": -1})
    browser.run("const s = document.getElementById('range'); s.value = '30d'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    assert browser.run("return ['figures', 'series', 'list-0'].map((id) => document.getElementById(id).hasAttribute('aria-busy'))") == [True] * 3
    browser.settle()
    assert number(browser.text("#pv")) > 0 and messages(browser)[0].startswith("Name two")
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions",
                                   {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
    an_hour_later(browser)  # what was shown stays, and is said to be old
    wait_until(lambda: any("Not refreshed: The server cannot be reached." in m for m in messages(browser)), "it is said")
    assert number(browser.text("#pv")) > 0


def test_an_outage_is_told_and_ends(start_redis, start_tallyd, look):
    redis = start_redis()
    tallyd = start_tallyd(redis=redis)
    tallyd.client().accept({"page": "/", "user": 1})
    browser = look("/?site=default", base=tallyd.url)
    assert browser.text("#pv") == "1"
    redis.kill()
    wait_until(lambda: tallyd.client().get("/readyz").status == 503, "it is noticed")
    browser.open("/?site=default")
    assert any("(503)" in text for text in messages(browser)) and browser.text("#pv") == "–"
    assert "(503)" in browser.text("#figures > .fault")
    browser.open("/ops")
    wait_until(lambda: browser.text("#ready") == "Not ready: Redis cannot be reached.", "operators are told, once")
    redis.start()
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "it is back")

    def shown():
        browser.open("/?site=default")
        return browser.text("#pv") == "0" and not [m for m in messages(browser) if "(503)" in m]

    wait_until(shown, "the figures are back")


# ---- everybody ----

def test_by_keyboard(shop, look):
    """Every control is reached with the tab key, in the order of the page."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    browser = look(f"/?site=shop&{CUSTOM}")
    reached = []
    for _ in range(75):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        reached.append(browser.run("const at = document.activeElement; return at.id || at.textContent.trim()"))
    order = ["site", "range", "from", "compare", "tz", "share", "card-uv", "card-pv", "step", "list-0-tab-0", "list-1-tab-0", "period", "new-only", "steps"]
    assert list(dict.fromkeys(control for control in reached if control in order)) == order  # a date has several stops
    browser.run("document.getElementById('list-2-tab-0').focus()")
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT).perform()
    browser.settle()
    assert browser.run("return document.querySelector('#list-2 [aria-selected=true]').textContent") == "Devices"
    browser.run("document.querySelector('#list-0 tbody button').focus()")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    wait_until(lambda: "page=" in browser.driver.current_url, "enter filters")
    browser.settle()
    browser.run("document.querySelector('.chip').focus()")
    ActionChains(browser.driver).send_keys(Keys.SPACE).perform()
    wait_until(lambda: "page=" not in browser.driver.current_url, "the chip goes")
    assert browser.run("return document.activeElement.dataset.metric") == "uv"


def broken_words(browser):
    """Headings, titles and controls whose words do not fit: they would be cut or broken within."""
    return browser.run("""return [...document.querySelectorAll('h1, h2, h3, .title, dt, .tabs button, label, summary, button[type=submit], .number')]
      .filter((box) => box.offsetParent !== null && !box.closest('.visually-hidden') && box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0)
      .map((box) => box.textContent.trim().slice(0, 30))""")


@pytest.mark.some(2)
@pytest.mark.parametrize("size", [(320, 640), (390, 844), (640, 700), (1280, 900)], ids=["small", "phone", "200 %", "wide"])
def test_nothing_is_cut_off(shop, look, size):
    """320 is a phone, and 1280 at 400 %; 640 is 1280 at 200 %."""
    browser = look(f"/?site=shop&{CUSTOM}&page=/{'long/' * 60}", size=size)
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert broken_words(browser) == []
    tops = browser.run("return [...document.querySelectorAll('#controls label')].filter((l) => l.offsetParent).map((l) => Math.round(l.getBoundingClientRect().top))")
    if size[0] < 500:  # none stands alone in its line but the last
        assert all(tops.count(top) > 1 or size[0] < 350 for top in set(tops) - {max(tops)})
    browser.open("/")
    assert browser.run("return document.documentElement.scrollWidth") <= size[0] and broken_words(browser) == []


@pytest.mark.some(1)
@pytest.mark.parametrize("width", [1280, 1200, 820, 390])
def test_a_figure_stays_on_one_line(shop, look, width):
    """However narrow its card would be: a line's end within a number makes it two."""
    browser = look(f"/?site=shop&{CUSTOM}", size=(width, 900))
    browser.run("for (const box of document.querySelectorAll('#cards .number')) { box.textContent = '12,345,678'; }")
    lines = browser.run("return [...document.querySelectorAll('#cards .number')].map((box) => box.offsetHeight / parseFloat(getComputedStyle(box).lineHeight))")
    assert lines and max(lines) < 1.5, lines
    assert browser.run("return document.documentElement.scrollWidth") <= width


@pytest.mark.some(1)
@pytest.mark.parametrize("size", [(1200, 1400), (390, 844)], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(shop, look, size, dark):
    browser = look("/?site=shop&range=7d&period=day&page=/&steps=view,cart,order", size=size, dark=dark)
    browser.run("for (const details of document.querySelectorAll('details')) { details.open = true }")
    wait_until(lambda: browser.rows("#how-plan table"), "the plan is there")
    browser.settle()
    assert browser.axe() == []
    for dialog in ("token-dialog", "share-dialog"):
        browser.run(f"document.getElementById('{dialog}').showModal()")
        assert browser.axe() == []
        browser.run(f"document.getElementById('{dialog}').close()")
    browser.open(f"/?from={FROM}")
    assert browser.axe() == []
