"""The dashboard in a real browser: its numbers are the API's, it complains about nothing, and everybody can use it.

Skipped where Chromium, its driver or selenium are missing; looking with axe-core is skipped without npm."""

import hashlib
import re
import time
import urllib.parse
from datetime import date, datetime, timedelta, timezone

import pytest

from lib.browser import Browser, need_browser
from lib.waiting import wait_until

FIGURES = ("pv", "uv", "visits", "ips")
PAGES = ["/", "/pricing", "/blog/a b?c=d&e", "<img src=x onerror=\"document.title='forged'\">", "/" + "long/" * 60]
TODAY = datetime.now(timezone.utc).date()
FROM, TO = TODAY - timedelta(days=9), TODAY - timedelta(days=1)  # the custom window: both days are in it
CUSTOM = f"range=custom&from={FROM}&to={TO}"


@pytest.fixture(scope="module", autouse=True)
def browser_is_there():
    need_browser()


@pytest.fixture(scope="module")
def shop(tallyd):
    """A site with some weeks of page views, some of them of this moment."""
    import random
    chance = random.Random(7)
    now = int(time.time())
    events = [{"site": "shop", "page": chance.choices(PAGES, [9, 5, 3, 2, 1])[0], "user": int(chance.random() ** 2 * 300),
               "ip": f"192.0.2.{chance.randrange(200)}", "ts": now - chance.randrange(30 * 86400)} for _ in range(6000)]
    events += [{"site": "shop", "page": "/", "user": f"now{i}", "ip": "192.0.2.1"} for i in range(17)]
    events += [{"site": "shop", "event": name, "user": user, "ts": now - chance.randrange(20 * 86400)}
               for name, n in (("signup", 90), ("Outbound Link: Click", 40), ("<b>bold</b>", 25)) for user in range(n)]
    events += [{"site": "shop", "user": user, "actions": ["view", "cart", "order"][:1 + (user % 7 > 1) + (user % 7 > 4)],
                "ts": now - chance.randrange(8 * 86400)} for user in range(200)]
    http = tallyd.client()
    for i in range(0, len(events), 3000):
        http.accept(sorted(events, key=lambda e: e.get("ts", now))[i:i + 3000])
    http.close()
    return "shop"


@pytest.fixture
def look(tallyd, cleanup):
    """A browser on the dashboard."""
    def open_(path, base=None, **options):
        browser = Browser(base or tallyd.url, **options)
        cleanup.append(browser.close)
        browser.open(path)
        return browser
    return open_


def number(text):
    return int(re.sub(r"\D", "", text))


def question(http, path, **params):
    return http.question(path, site="shop", from_=str(FROM), to=str(TO + timedelta(days=1)), **params)


def assert_figures(browser, stats):
    assert {name: number(browser.text(f"#{name}")) for name in FIGURES} == {name: stats[name] for name in FIGURES}
    for name in ("uv", "ips"):
        low, high = (stats["error"][name][end] for end in ("low", "high"))
        assert [number(n) for n in browser.text(f"#{name}-error").partition("(")[0].split("to")] == [low, high]


def test_numbers_are_the_apis(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&period=day")
    stats = question(http, "/stats", step="auto")
    assert stats["pv"] > 1000
    assert_figures(browser, stats)
    browser.run("document.getElementById('series-details').open = true")
    rows = browser.rows("#series-table")
    assert [[number(cell) for cell in row[1:]] for row in rows] == [[point[name] for name in FIGURES] for point in stats["series"]]
    before = http.question("/stats", site="shop", from_=str(FROM - timedelta(days=9)), to=str(FROM))
    for name in FIGURES:
        assert f"before: {before[name]:,}" in browser.text(f"#{name}-change")
        share = abs(stats[name] - before[name]) / before[name] * 100
        assert abs(float(re.match(r"[+\u2212\u00b1]?([\d.]+)", browser.text(f"#{name}-change"))[1]) - share) <= 0.5
    pages = question(http, "/pages", by="pv", limit=10)
    assert len(pages["pages"]) == len(PAGES)
    assert [[row[0], number(row[1]), number(row[2])] for row in browser.rows("#pages")] == [
        [page["page"], page["pv"], page["uv"]] for page in pages["pages"]]
    assert number(browser.text("#pages-total")) == pages["total_pages"]
    assert number(browser.text("#dau")) == http.question("/dau", site="shop")["users"]
    assert number(browser.text("#wau")) == http.question("/active", site="shop", from_="now-6d", to="now")["users"]
    assert number(browser.text("#mau")) == http.question("/active", site="shop", from_="now-29d", to="now")["users"]
    assert number(browser.text("#now")) == http.count("uv", site="shop", from_="now-4m", to="now")
    assert browser.complaints() == []


def test_retention_is_the_apis(http, shop, look):
    browser = look("/?site=shop&period=week")
    today = date.fromisoformat(http.question("/dau", site="shop")["date"])
    answer = http.question("/retention", site="shop", period="week", cohort=str(today - timedelta(days=49)), days=7, cohorts=8)
    expected = [[c["cohort"], str(c["size"])] + [f"{int(r['rate'] * 100 + 0.5)}" for r in c["returned"] if c["size"]]
                for c in answer["cohorts"]]
    got = [[row[0]] + [cell.rstrip("\u202f%") for cell in row[1:] if cell != ""] for row in browser.rows("#retention")]
    assert got == expected and len(got) == 8
    assert browser.run("return document.querySelectorAll('#retention td.h1, #retention td.h2, #retention td.h3, #retention td.h4,"
                       " #retention td.h5').length") > 3


def share(value):
    """As the page writes a share."""
    return f"{value * 100:.{1 if 0 < value < 0.1 else 0}f}\u202f%"


def test_events_with_their_conversion(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    rows = question(http, "/breakdown", by="event")["rows"]
    everybody = question(http, "/uv")
    assert {row["value"] for row in rows} == {"signup", "Outbound Link: Click", "<b>bold</b>"}

    def shown():
        return [[row[0], number(row[1]), number(row[2]), row[3]] for row in browser.rows("#events")]

    def ranges(value, low, high):
        return share(value) if low == high else f"{share(value)}{share(low)} to {share(high)}"

    low, high = everybody["error"]["low"], everybody["error"]["high"]
    assert shown() == [[row["value"], row["pv"], row["uv"], ranges(
        row["uv"] / everybody["uv"], row["error"]["low"] / high, row["error"]["high"] / low)] for row in rows]
    browser = look(f"/?site=shop&{CUSTOM}&page=/pricing")  # of those who saw the page
    expected = []
    for row in rows:
        answer = question(http, "/overlap", event=row["value"], page="/pricing")
        both, of = answer["intersection"], answer["b"]["uv"]
        expected.append([row["value"], row["pv"], row["uv"], ranges(
            both["uv"] / of, both["error"]["low"] / of, min(1, both["error"]["high"] / of))])
    assert shown() == expected and "/pricing" in browser.text("#events-note")
    assert browser.driver.title != "forged" and browser.complaints() == []


@pytest.mark.parametrize("window", ["custom", "15m", "24h", "7d"])
def test_new_and_returning_visitors(http, shop, look, window):
    """The window and the period before it lie beside each other, and what is shown is /overlap's."""
    browser = look(f"/?site=shop&{CUSTOM if window == 'custom' else f'range={window}'}")
    before = {"custom": (str(FROM - timedelta(days=9)), str(FROM)), "15m": ("now-29m", "now-15m"), "24h": ("now-47h/h", "now-23h/h"),
              "7d": ("now-13d/d", "now-6d/d")}[window]
    own = {"custom": (str(FROM), str(TO + timedelta(days=1))), "15m": ("now-14m", "now"), "24h": ("now-23h/h", "now"), "7d": ("now-6d/d", "now")}[window]
    answer = http.question("/overlap", site="shop", from_=own[0], to=own[1], from2=before[0], to2=before[1])
    assert answer["to2"] == answer["from"]
    all_ = answer["new"]["uv"] + answer["intersection"]["uv"]
    assert browser.rows("#returning") == [
        [name, f"{figure['uv']:,}", f"{figure['error']['low']:,} to {figure['error']['high']:,}", share(figure["uv"] / all_)]
        for name, figure in (("New", answer["new"]), ("Returning", answer["intersection"]))]
    assert all_ > 0 and browser.complaints() == []


def test_a_funnel(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    assert "Name two to eight actions" in browser.text("#funnel-message") and browser.rows("#funnel") == []
    browser.find("#steps").send_keys("view, cart,order\n")
    wait_until(lambda: "steps=view" in browser.driver.current_url, "the address has the steps")
    browser.settle()
    steps = question(http, "/funnel", step=["view", "cart", "order"])["steps"]
    assert 0 < steps[2]["users"] < steps[1]["users"] < steps[0]["users"]
    assert [[row[0], number(row[1]), row[2], row[3]] for row in browser.rows("#funnel")] == [
        [step["action"], step["users"], share(step["rate"]), share(step["step_rate"])] for step in steps]
    wide = browser.run("return [...document.querySelectorAll('#funnel .bar')].map((bar) => parseFloat(bar.style.width))")
    assert wide == pytest.approx([100 * step["rate"] for step in steps], abs=0.01)
    assert browser.complaints() == []
    browser = look(f"/?site=shop&{CUSTOM}&steps=view,Cart")
    assert "(400)" in browser.text("#funnel-message") and browser.rows("#funnel") == []


def test_how_often(http, shop, look):
    browser = look("/?site=shop&range=7d")
    days = http.question("/frequency", site="shop", from_="now-29d", to="now")["days"]
    last = max(day["n"] for day in days if day["users"])
    assert [[number(cell) for cell in row] for row in browser.rows("#frequency")] == [[day["n"], day["users"]] for day in days[:last]]
    assert last > 3


@pytest.mark.parametrize("name", ["15m", "24h", "7d", "30d", "12M"])
def test_windows(http, shop, look, name):
    """Every window shows figures and a series that starts where it says; borders lie where buckets are kept."""
    browser = look(f"/?site=shop&range={name}")
    assert number(browser.text("#pv")) > 0
    assert not browser.find("#figures-message").is_displayed(), browser.text("#figures-message")
    n = {"15m": 15, "24h": 24, "7d": 7, "30d": 30, "12M": 12}[name]
    assert len(browser.rows("#series-table")) in (n, n + 1)  # a minute may pass
    assert "before" in browser.text("#pv-change")
    assert browser.complaints() == []


def test_the_plan_is_the_apis(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    browser.find("#how summary").click()
    wait_until(lambda: browser.rows("#how-plan table"), "the plan is there")
    cover = question(http, "/uv", explain=1)["cover"]
    assert [row[3] for row in browser.rows("#how-plan table")] == [key["key"] for key in cover["list"][:100]]
    assert f"{cover['keys']} HyperLogLog" in browser.text("#how-plan")


def test_a_click_filters_and_the_address_says_so(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    everything = browser.text("#pv")
    for i, page in enumerate(p["page"] for p in question(http, "/pages", by="pv", limit=10)["pages"]):
        browser.run("document.querySelectorAll('#pages button')[arguments[0]].click()", i)
        browser.settle()
        assert urllib.parse.parse_qs(urllib.parse.urlsplit(browser.driver.current_url).query)["page"] == [page]
        assert_figures(browser, question(http, "/stats", page=page))
        assert browser.text("#filter-page") == page
        browser.find("#filter-clear").click()
        browser.settle()
    assert browser.text("#pv") == everything and "page=" not in browser.driver.current_url
    browser.driver.back()
    wait_until(lambda: "page=" in browser.driver.current_url, "one step back")
    browser.settle()
    assert browser.text("#pv") != everything
    assert browser.driver.title != "forged" and browser.complaints() == []


def test_a_time_zone(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&tz=Asia/Tokyo")
    stats = question(http, "/stats", tz="Asia/Tokyo")
    assert_figures(browser, stats)
    assert stats["from"].endswith("T15:00:00Z") and browser.text("#window").endswith("00:00, Asia/Tokyo")
    browser = look(f"/?site=shop&{CUSTOM}&tz=Mars/Olympus")
    assert http.get("/stats", tz="Mars/Olympus").json["detail"] in browser.text("#figures-message")
    assert browser.text("#pv") == "–"


def test_it_asks_nobody_else(tallyd, shop, look):
    browser = look("/?site=shop&range=7d")
    asked = browser.requested()
    assert len(asked) > 12
    assert [url for url in asked if not url.startswith((tallyd.url, "data:", "chrome:", "about:"))] == []


def test_an_old_log_is_compared_with_nothing(http, look):
    """Of 2015 only months are kept: the period before, rounded to them, is the same month."""
    http.accept([{"site": "old", "page": "/", "user": i, "ts": f"2015-05-{10 + i}T10:00:00Z"} for i in range(9)])
    browser = look("/?site=old&range=custom&from=2015-05-14&to=2015-05-18")
    assert number(browser.text("#pv")) == 9  # the whole month, as the line below the figures says
    assert [browser.text(f"#{name}-change") for name in FIGURES] == [""] * 4


def test_an_empty_site_says_what_to_do(http, look):
    browser = look("/?site=nobody-home")
    assert "No page views in the last 24 hours" in browser.text("#figures-message")
    assert browser.text("#pv") == "0"
    assert "No pages" in browser.text("#pages-message")
    assert "No users" in browser.text("#retention-message")
    assert "No named events" in browser.text("#events-message") and "No users" in browser.text("#frequency-message")
    assert [row[1] for row in browser.rows("#returning")] == ["0", "0"]
    assert browser.complaints() == []


def test_an_outage_is_told_and_ends(start_redis, start_tallyd, look):
    redis = start_redis()
    tallyd = start_tallyd(redis=redis)
    tallyd.client().accept({"page": "/", "user": 1})
    browser = look("/", base=tallyd.url)
    assert browser.text("#pv") == "1"
    redis.kill()
    wait_until(lambda: tallyd.client().get("/readyz").status == 503, "it is noticed")
    browser.find("#controls button").click()
    browser.settle()
    assert "(503)" in browser.text("#figures-message") and browser.text("#pv") == "–"
    redis.start()
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "it is back")

    def shown():
        browser.find("#controls button").click()
        browser.settle()
        return browser.text("#pv") == "0" and "(503)" not in browser.text("#figures-message")

    wait_until(shown, "the figures are back")


def test_a_token_is_asked_for(redis, start_tallyd, directory, look):
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text("".join(
        f"{hashlib.sha256(t.encode()).hexdigest()} {t} {t}\n" for t in ("read", "ingest")))
    tallyd = start_tallyd("--tokens", directory / "tokens", redis=redis, wait_ready=False)
    tallyd.wait_ready_line()
    browser = Browser(tallyd.url)
    try:
        browser.driver.get(tallyd.url + "/?site=shop")
        dialog = browser.find("#token-dialog")
        wait_until(dialog.is_displayed, "it asks")
        assert browser.run("return document.activeElement.id") == "token"
        browser.find("#token").send_keys("wrong\n")
        wait_until(lambda: "does not know" in browser.text("#token-why"), "it asks again")
        wait_until(dialog.is_displayed, "it asks again")
        browser.find("#token").send_keys("read\n")
        wait_until(lambda: browser.text("#pv") not in ("", "–"), "the figures are there")
        browser.open("/?site=shop&range=7d")  # kept while the tab is open
        assert browser.text("#pv") != "–" and not browser.find("#token-dialog").is_displayed()
        assert "read" not in browser.driver.current_url and browser.run("return localStorage.length") == 0
    finally:
        browser.close()


def test_by_keyboard(shop, look):
    """Every control is reached with the tab key, in the order of the page, and seen when it is."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys
    browser = look("/?site=shop&range=7d")
    reached = []
    for _ in range(40):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        reached.append(browser.run("const at = document.activeElement; return at.id || at.value || at.textContent.trim()"))
    for control in ("site", "7d", "tz", "how", "show-pv", "period", "steps"):
        assert control in reached or control == "how" and "How?" in reached, (control, reached)
    assert reached.index("site") < reached.index("7d") < reached.index("tz") < reached.index("show-pv") < reached.index("period")
    browser.run("document.querySelector('input[value=\"7d\"]').focus()")
    ActionChains(browser.driver).send_keys(Keys.ARROW_RIGHT).perform()
    wait_until(lambda: "range=30d" in browser.driver.current_url, "an arrow chooses the next window")
    browser.settle()
    browser.run("document.querySelector('#pages button').focus()")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    wait_until(lambda: "page=" in browser.driver.current_url, "enter filters")


@pytest.mark.parametrize("size", [(1200, 1400), (390, 844)], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious(shop, look, size, dark):
    browser = look("/?site=shop&range=7d&period=day&page=/&steps=view,cart,order", size=size, dark=dark)
    browser.run("for (const details of document.querySelectorAll('details')) { details.open = true }")
    wait_until(lambda: browser.rows("#how-plan table"), "the plan is there")
    browser.settle()
    assert browser.run("return document.documentElement.scrollWidth") <= size[0]
    assert browser.axe() == []
    browser.run("document.getElementById('token-dialog').showModal()")
    assert browser.axe() == []
