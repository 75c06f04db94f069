"""The dashboard in a real browser: every figure on it is the API's (its lists: test_dashboard_lists.py).

Skipped where Chromium, its driver or selenium are missing."""

import re
import time
from datetime import date, timedelta

import pytest

from lib.browser import need_browser
from lib.dashboard import CUSTOM, FIGURES, FROM, PAGES, TO, assert_figures, chart, messages, number, question, share
from lib.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def browser_is_there():
    need_browser()


def test_figures_are_the_apis(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&step=1d")
    stats = question(http, "/stats", step="1d")
    assert stats["pv"] > 1000 and browser.run("return document.querySelector('.card').dataset.metric") == "uv"
    assert_figures(browser, stats)
    before = http.question("/stats", site="shop", from_=str(FROM - timedelta(days=9)), to=str(FROM))
    for name in FIGURES:
        assert f"before: {before[name]:,}" in browser.text(f"#{name}-change")
        of_before = abs(stats[name] - before[name]) / before[name] * 100
        assert abs(float(re.match(r"[+\u2212\u00b1]?([\d.]+)", browser.text(f"#{name}-change"))[1]) - of_before) <= 0.5
    per_visit = stats.get("views_per_visit", stats["pv"] / stats["visits"])
    assert float(browser.text("#views_per_visit")) == pytest.approx(per_visit, abs=0.005)
    for name in ("bounce_rate", "visit_duration_s"):  # where the server counts them
        assert (browser.run("return document.getElementById(arguments[0]) !== null", name)) == (stats.get(name) is not None)
    assert number(browser.text("#now")) == http.count("uv", site="shop", from_="now-4m", to="now")
    assert browser.complaints() == []


def test_a_long_visit_is_told_in_hours(tallyd, look):
    now = int(time.time())
    tallyd.client().accept([{"site": "long", "page": "/", "user": "u", "ts": now - 10800 + i * 1500} for i in range(6)])
    assert look("/?site=long&range=24h").text("#visit_duration_s").split() == ["2h", "5m"]


def test_the_chart_has_one_metric_and_the_period_before(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&step=1d")
    now = question(http, "/stats", step="1d")["series"]
    before = http.question("/stats", site="shop", from_=str(FROM - timedelta(days=9)), to=str(FROM), step="1d")["series"]
    for name, title in (("uv", "Visitors"), ("pv", "Page views"), ("ips", "IP addresses")):
        browser.find(f"#card-{name}").click()
        browser.settle()
        own, pale = chart(browser)
        assert own["label"] == title == browser.text("#series-title")
        assert own["data"] == [point[name] for point in now] and pale["data"] == [point[name] for point in before]
        assert browser.run("return document.activeElement.id") == f"card-{name}"
    table = browser.rows("#series-table")
    assert [[number(row[i]) for i in (1, 2, 3)] for row in table] == [[p["uv"], p["visits"], p["pv"]] for p in now]
    browser.run("const s = document.getElementById('compare'); s.value = 'none'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    browser.settle()
    assert len(chart(browser)) == 1 and browser.text("#uv-change") == ""


def test_the_step_is_a_choice_and_a_point_narrows_the_window(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    browser.run("const s = document.getElementById('step'); s.value = '1h'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    browser.settle()
    assert len(chart(browser)[0]["data"]) == 9 * 24
    browser.run("const s = document.getElementById('step'); s.value = '1d'; s.dispatchEvent(new Event('change', {bubbles: true}))")
    browser.settle()
    canvas = browser.run("""const at = Chart.getChart('chart'); const box = at.canvas.getBoundingClientRect();
                            const point = at.getDatasetMeta(0).data[3]; return [box.left + point.x, box.top + point.y]""")
    for kind in ("mousePressed", "mouseReleased"):
        browser.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": canvas[0], "y": canvas[1], "button": "left", "clickCount": 1})
    day = str(FROM + timedelta(days=3))
    wait_until(lambda: f"from={day}&to={day}" in browser.driver.current_url, "the window is that day")
    browser.settle()
    assert_figures(browser, http.question("/stats", site="shop", from_=day, to=str(FROM + timedelta(days=4))))
    browser.run("document.getElementById('series-details').open = true; document.querySelectorAll('#series-table button')[5].click()")
    browser.settle()  # an hour of it, by the table: what a keyboard reaches
    assert_figures(browser, http.question("/stats", site="shop", from_=f"{day}T05:00:00Z", to=f"{day}T06:00:00Z"))


def test_a_page_set_is_made_and_shown(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    browser.run("document.querySelector('#set-form').closest('details').open = true")
    browser.find("#set-name").send_keys("buying")
    browser.find("#set-pages").send_keys("/pricing\n/\n")
    browser.find("#set-form button").click()
    wait_until(lambda: "pageset=buying" in browser.driver.current_url, "it is shown")
    browser.settle()
    assert http.question("/pagesets/buying", site="shop")["pages"] == ["/pricing", "/"]
    assert_figures(browser, question(http, "/stats", pageset="buying"))


@pytest.mark.some(2)
@pytest.mark.parametrize("window", ["custom", "now", "24h", "7d"])
def test_new_and_returning_visitors(http, shop, look, window):
    """The window and the period before it lie beside each other, and what is shown is /overlap's."""
    browser = look(f"/?site=shop&{CUSTOM if window == 'custom' else f'range={window}'}")
    before = {"custom": (str(FROM - timedelta(days=9)), str(FROM)), "now": ("now-59m", "now-30m"), "24h": ("now-2879m", "now-1440m"),
              "7d": ("now-13d/d", "now-6d/d")}[window]
    own = {"custom": (str(FROM), str(TO + timedelta(days=1))), "now": ("now-29m", "now"), "24h": ("now-1439m", "now"), "7d": ("now-6d/d", "now")}[window]
    answer = http.question("/overlap", site="shop", from_=own[0], to=own[1], from2=before[0], to2=before[1], round="outer")
    if answer["to2"] > answer["from"]:  # its minutes are no longer kept
        assert window == "24h" and any("no longer kept apart" in text for text in messages(browser))
        return
    all_ = answer["new"]["uv"] + answer["intersection"]["uv"]
    assert browser.rows("#returning") == [
        [name, f"{figure['uv']:,}", f"{figure['error']['low']:,} to {figure['error']['high']:,}", share(figure["uv"] / all_)]
        for name, figure in (("New", answer["new"]), ("Returning", answer["intersection"]))]
    assert all_ > 0 and browser.complaints() == []


def test_active_users_and_how_often(http, shop, look):
    browser = look("/?site=shop&range=7d")
    days = http.question("/dau", site="shop", from_="now-29d/d", to="now", new_within="90d")["series"]
    month = http.question("/active", site="shop", from_="now-29d", to="now")["users"]
    assert [[r[0], number(r[1]), number(r[2])] for r in browser.rows("#dau-table")] == [[d["date"], d["users"], d["new"]] for d in days]
    assert number(browser.text("#dau")) == days[-1]["users"] == http.question("/dau", site="shop")["users"]
    assert number(browser.text("#wau")) == http.question("/active", site="shop", from_="now-6d", to="now")["users"]
    assert number(browser.text("#mau")) == month > 100
    assert browser.text("#stickiness") == share(sum(d["users"] for d in days) / 30 / month)
    often = http.question("/frequency", site="shop", from_="now-29d", to="now")["days"]
    last = max(day["n"] for day in often if day["users"])
    assert [[number(cell) for cell in row] for row in browser.rows("#frequency")] == [[d["n"], d["users"]] for d in often[:last]]


@pytest.mark.some(1)
@pytest.mark.parametrize("new", ["", "90d"])
def test_retention_is_the_apis(http, shop, look, new):
    browser = look(f"/?site=shop&period=week{new and '&new=' + new}")
    today = date.fromisoformat(http.question("/dau", site="shop")["date"])
    more = {"new_within": new} if new else {}
    answer = http.question("/retention", site="shop", period="week", cohort=str(today - timedelta(days=49)), days=7, cohorts=8, **more)
    expected = [[c["cohort"], str(c["size"])] + [f"{int(r['rate'] * 100 + 0.5)}" for r in c["returned"] if c["size"]]
                for c in answer["cohorts"]]
    got = [[row[0]] + [cell.rstrip("\u202f%") for cell in row[1:] if cell != ""] for row in browser.rows("#retention")]
    assert got == expected and len(got) == 8 and browser.find("#new-only").is_selected() == bool(new)
    assert browser.run("return [...document.querySelectorAll('#retention .heat')].filter((cell) => cell.style.getPropertyValue('--part') > 0).length") > 3


def test_a_funnel(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    assert any("Name two to eight actions" in text for text in messages(browser)) and browser.rows("#funnel") == []
    browser.find("#steps").send_keys("view, cart,order\n")
    wait_until(lambda: "steps=view" in browser.driver.current_url, "the address has the steps")
    browser.settle()
    steps = question(http, "/funnel", step=["view", "cart", "order"])["steps"]
    assert 0 < steps[2]["users"] < steps[1]["users"] < steps[0]["users"]
    assert [[row[0], number(row[1]), row[2], row[3]] for row in browser.rows("#funnel")] == [
        [step["action"], step["users"], share(step["rate"]), share(step["step_rate"])] for step in steps]
    wide = browser.run("return [...document.querySelectorAll('#funnel .bar')].map((bar) => parseFloat(bar.style.width))")
    assert wide == pytest.approx([100 * step["rate"] for step in steps], abs=0.01)
    browser = look(f"/?site=shop&{CUSTOM}&steps=view,Cart")
    assert any("(400)" in text for text in messages(browser)) and browser.rows("#funnel") == []


def test_the_plan_is_the_apis(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    browser.find("#how summary").click()
    wait_until(lambda: browser.rows("#how-plan table"), "the plan is there")
    cover = question(http, "/uv", explain=1)["cover"]
    assert [row[3] for row in browser.rows("#how-plan table")] == [key["key"] for key in cover["list"][:100]]
    assert f"{cover['keys']} HyperLogLog" in browser.text("#how-plan")


def test_all_sites_and_the_way_to_one(http, shop, look):
    browser = look("/?range=7d")
    assert not any("chart" in address for address in browser.requested()), "it draws no chart"
    expected = sorted(http.question("/sites", from_="now-6d/d", to="now")["sites"], key=lambda s: -s["uv"])
    assert {"shop", "blog"} <= {s["site"] for s in expected}
    shown = browser.run("return [...document.querySelectorAll('.site')].map((card) => [card.querySelector('a').textContent,"
                        " ...['uv', 'visits', 'pv', 'now'].map((name) => card.querySelector('.' + name).textContent)])")
    assert [[s[0], *map(number, s[1:])] for s in shown] == [[s["site"], s["uv"], s["visits"], s["pv"], s["now"]] for s in expected]
    assert browser.run("return document.querySelectorAll('.site polyline').length") == len(expected)
    browser.run("[...document.querySelectorAll('.site a')].find((a) => a.textContent === 'blog').click()")
    wait_until(lambda: "site=blog" in browser.driver.current_url and browser.text("#pv") not in ("–", ""), "one site")
    browser.settle()
    assert number(browser.text("#pv")) == 12 and "range=7d" in browser.driver.current_url
    assert sum("chart.min.js" in address for address in browser.requested()) == 1
    assert browser.complaints() == []


def test_the_page_for_operators(http, shop, look):
    browser = look("/ops")
    metrics = dict(re.findall(r"^(\w+) (\S+)$", http.get("/metrics").body.decode(), re.M))
    shown = dict(row for n in range(4) for row in browser.rows(f"#group-{n}"))
    assert number(shown["Events accepted"]) == int(metrics["tallyd_events_accepted_total"]) > 6000
    assert number(shown["Events counted"]) == int(metrics["tallyd_fold_events_total"]) and shown["Connected"] == "yes"
    assert [row[0] for row in browser.rows("#rollup")] == list(http.question("/rollup")["watermarks"])
    assert {row[1] for row in browser.rows("#hot")} <= set(PAGES) | {f"/posts/{i}" for i in range(12)} | {f"/p/{i:02}" for i in range(40)}
    assert browser.text("#ready") == "Ready." and browser.complaints() == []
    assert browser.axe() == []
