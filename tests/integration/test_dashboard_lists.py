"""The dashboard's lists in a real browser: each is the API's, every row is a filter, and lists follow the chips.

Skipped where Chromium, its driver or selenium are missing."""

import urllib.parse

import pytest

from lib.browser import need_browser
from lib.dashboard import CUSTOM, PAGES, assert_figures, chart, number, question, share
from lib.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def browser_is_there():
    need_browser()


COUNTRIES = {"DE": "Germany", "FR": "France"}  # as people call them


def none_last(found):
    return sorted(found, key=lambda row: row["value"] == "(none)")


def rows(browser, n):
    """A list's rows: [value, figure, ..]."""
    return [[row[0], *(number(cell) for cell in row[1:3])] for row in browser.rows(f"#list-{n}")]


def press(browser, text, inside):
    """Click the button that says @text."""
    assert browser.run("""const found = [...document.querySelectorAll(arguments[1] + ' button')].find((b) => b.textContent === arguments[0]);
                          found?.click(); return found !== undefined""", text, inside), text
    browser.settle()


def asked_filters(browser):
    return urllib.parse.parse_qs(urllib.parse.urlsplit(browser.driver.current_url).query)


def test_lists_are_the_apis(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    pages = question(http, "/pages", by="pv", limit=9)
    assert rows(browser, 0) == [[p["page"], p["uv"], p["pv"]] for p in pages["pages"]] and len(pages["pages"]) == len(PAGES)
    for n, by, metric in ((1, "source", "uv"), (2, "country", "uv"), (3, "event", "pv")):
        assert rows(browser, n) == [[COUNTRIES.get(r["value"], r["value"]), r["uv"], r["pv"]]
                                    for r in none_last(question(http, "/breakdown", by=by, metric=metric)["rows"])], by
    bars = browser.run("return [...document.querySelectorAll('#list-1 tbody tr')].map((row) => [row.cells[0].textContent, row.querySelector('.row-bar').style.width])")
    assert bars[0][1] == "100%" and bars[-1] == ["(none)", "0%"] and "a step within the site" in browser.text("#list-1 .window")
    assert {r[0] for r in rows(browser, 1)} >= {"google", "(none)"}
    press(browser, "Entry pages", "#list-0")
    assert rows(browser, 0) == [[p["page"], p["visits"]] for p in question(http, "/pages", by="visits", limit=9)["pages"]]
    press(browser, "Browsers", "#list-2")
    assert rows(browser, 2) == [[r["value"], r["pv"]] for r in question(http, "/breakdown", by="browser")["rows"]]
    assert browser.driver.title != "forged" and browser.complaints() == []


def test_a_page_with_a_hostile_name(tallyd, look):
    """It takes four lines, and looks like no other page."""
    http, turned = tallyd.client(), "/\u202eevil"
    http.accept([{"site": "hostile", "page": page} for page in ("/" + "long-" * 400, turned, "/a")])
    browser = look("/?site=hostile")
    assert [row[0] for row in browser.rows("#list-0")] == ["/a", "/" + "long-" * 400, "/\\u202eevil"]
    heights = browser.run("return [...document.querySelectorAll('#list-0 .name button')].map((box) => box.offsetHeight)")
    assert heights[1] <= 4.5 * heights[0], heights
    press(browser, "/\\u202eevil", "#list-0")
    assert asked_filters(browser)["page"] == [turned] and number(browser.text("#pv")) == 1
    assert browser.driver.title.startswith("/\\u202eevil")
    press(browser, "/a", "#list-0")
    assert [row[0] for row in browser.rows("#common")] == ["/\\u202eevil", "/a", "both", "either"]
    http.accept([{"site": "hostile", "page": turned}] * 1000)  # hotter than what other tests have sent in this minute
    browser.open("/ops")
    hot = wait_until(lambda: [row[1] for row in browser.rows("#hot") if row[0] == "hostile"], "it is hot")
    assert "/\\u202eevil" in hot and turned not in hot


def test_pages_that_are_called_as_the_page_itself_calls_things(tallyd, look):
    """A page or an event "(none)" is no missing value, "(other)" no sum beyond a cap, and blanks are seen."""
    http = tallyd.client()
    http.accept([{"site": "names", "page": page} for page in ("(none)", "(other)", "  ", "/", "/\u200frtl") for _ in range(1 + (page == "(none)"))])
    http.accept([{"site": "names", "event": event} for event in ("(none)", "(none)", "signup")])
    browser = look("/?site=names")
    buttons = "return [...document.querySelectorAll(arguments[0] + ' .name button')].map((box) => box.textContent)"
    assert browser.run(buttons, "#list-0") == ["(none)", '"  "', "(other)", "/", "/\\u200frtl"]
    assert "not known" not in browser.text("#list-0 .window")
    assert browser.run(buttons, "#list-3") == ["(none)", "signup"]
    assert browser.run("return document.querySelector('#list-0 .row-bar').style.width") == "100%"
    press(browser, "(other)", "#list-0")
    assert asked_filters(browser)["page"] == ["(other)"] and number(browser.text("#pv")) == 1


def test_more_rows_with_search_order_and_csv(tallyd, look):
    http = tallyd.client()
    http.accept([{"site": "wide", "page": f"/p/{i:02}", "user": k} for i in range(40) for k in range(i + 1)])
    browser = look("/?site=wide&range=24h")
    assert len(rows(browser, 0)) == 9 and "40 pages" in browser.text("#list-0 .window")
    press(browser, "More", "#list-0")
    wait_until(lambda: len(browser.rows("#more-table")) == 40, "all rows are there")
    assert [r[0] for r in browser.rows("#more-table")] == [f"/p/{i:02}" for i in range(39, -1, -1)]
    browser.find("#more-search").send_keys("/P/1")
    wait_until(lambda: [r[0] for r in browser.rows("#more-table")] == [f"/p/{i}" for i in range(19, 9, -1)], "those that match")
    browser.run("""const order = document.getElementById('more-order'); order.value = 'uv'; order.dispatchEvent(new Event('change'))""")
    browser.settle()
    browser.run("window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((text) => saved.push(text)); return 'blob:x'; };"
                " HTMLAnchorElement.prototype.click = function () { window.named = this.download; }")
    browser.find("#more-csv").click()
    wait_until(lambda: browser.run("return saved.length") == 1, "it is saved")
    csv = browser.run("return saved[0]").splitlines()
    assert len(csv) == 41 and csv[1].startswith("wide,/p/39,40") and browser.run("return named") == "wide-pages.csv"
    press(browser, "/p/11", "#more")
    assert asked_filters(browser)["page"] == ["/p/11"] and not browser.find("#more").is_displayed()
    http.close()


def a_share(value, low, high):
    """A share with its range below, where that is not the figure."""
    return share(value) if low == high else f"{share(value)}{share(low)} to {share(high)}"


def test_events_with_their_conversion(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    events = question(http, "/breakdown", by="event")["rows"]
    everybody = question(http, "/uv")
    assert {row["value"] for row in events} == {"signup", "Outbound Link: Click", "<b>bold</b>"}
    low, high = everybody["error"]["low"], everybody["error"]["high"]
    assert [row[3] for row in browser.rows("#list-3")] == [a_share(
        row["uv"] / everybody["uv"], row["error"]["low"] / high, row["error"]["high"] / low) for row in events]


def in_common(http, page, kind, values, shares=False):
    """What the API says of each value and the page: the rows of a list that follows the page's chip."""
    rows = []
    for value in values:
        answer = question(http, "/overlap", page=page, **{kind: value})
        both, of = answer["intersection"], next(side["uv"] for side in (answer["a"], answer["b"]) if side.get("page") == page)
        low, high = (both["error"][end] for end in ("low", "high"))
        text = f"{both['uv']:,}" + ("" if low == high else f"{low:,} to {high:,}")
        rows.append((both["uv"], [value, text] + ([a_share(both["uv"] / of, low / of, min(1, high / of))] if shares else [])))
    return [row for _, row in sorted(rows, key=lambda row: -row[0])]


def test_lists_follow_a_chip(http, shop, look):
    """A row's visitors are those that it has in common with the chip, with their range."""
    browser = look(f"/?site=shop&{CUSTOM}&page=/pricing")
    sources, events = ([r["value"] for r in question(http, "/breakdown", by=by)["rows"]] for by in ("source", "event"))
    assert sorted(browser.rows("#list-1")) == sorted(in_common(http, "/pricing", "source", sources))
    assert sorted(browser.rows("#list-3")) == sorted(in_common(http, "/pricing", "event", events, shares=True))
    assert "Visitors in common with /pricing, with the 95" in browser.text("#list-1 .window")
    own = next(row for row in browser.rows("#list-0") if row[0] == "/pricing")  # with itself it has all of its visitors
    assert own[1].startswith(f"{question(http, '/uv', page='/pricing')['uv']:,}") and len(browser.rows("#list-0")) == len(PAGES)
    press(browser, "Entry pages", "#list-0")
    assert rows(browser, 0) == [[p["page"], p["visits"]] for p in question(http, "/pages", by="visits", limit=9)["pages"]]
    assert "Of the whole site: visits are not counted together with a filter" in browser.text("#list-0 .window")
    press(browser, "Browsers", "#list-2")
    assert "Of the whole site: visitors by browser are not counted here" in browser.text("#list-2 .window")
    assert browser.complaints() == []
    browser = look(f"/?site=shop&{CUSTOM}&browser=(none)")  # nor are this chip's visitors
    assert {"Of the whole site: visitors by browser are not counted here" in browser.text(f"#list-{n} .window") for n in range(4)} == {True}
    assert rows(browser, 0) == [[p["page"], p["uv"], p["pv"]] for p in question(http, "/pages", limit=9)["pages"]]
    assert sum(chart(browser)[0]["data"]) == number(browser.text("#pv"))  # its chart is one of page views
    assert browser.complaints() == []
    browser = look(f"/?site=shop&{CUSTOM}&page=/pricing&source=google")
    assert {"Of the whole site: three filters are not counted together" in browser.text(f"#list-{n} .window") for n in range(4)} == {True}


def test_sections(redis, start_tallyd, look, directory):
    directory.mkdir(exist_ok=True)
    (directory / "c").write_text("section.blog = /blog/\nsection.docs = /docs/\n")
    tallyd = start_tallyd("--config", directory / "c", redis=redis)
    http = tallyd.client()
    http.accept([{"site": "parts", "page": f"/{part}/{i}", "user": i} for part, n in (("blog", 30), ("docs", 12), ("x", 3)) for i in range(n)])
    browser = look("/?site=parts&range=24h", base=tallyd.url)
    press(browser, "Sections", "#list-0")
    expected = http.question("/breakdown", site="parts", by="section", metric="uv")["rows"]
    assert [r["value"] for r in expected] == ["blog", "docs"] and rows(browser, 0) == [[r["value"], r["uv"], r["pv"]] for r in expected]
    press(browser, "docs", "#list-0")
    assert asked_filters(browser)["section"] == ["docs"]
    assert_figures(browser, http.question("/stats", site="parts", section="docs"))
    assert {row[0]: row[1][:2] for row in browser.rows("#list-0")} == {"docs": "12", "blog": "12"}
    press(browser, "blog", "#list-0")
    both = http.question("/overlap", site="parts", section=["docs", "blog"])["intersection"]
    assert number(browser.text("#uv")) == both["uv"] and browser.complaints() == []
    browser = look("/?site=none&range=24h", base=tallyd.url)
    press(browser, "Sections", "#list-0")
    assert "The configuration names them" in browser.text("#list-0 .message")
    http.close()


def test_a_row_is_a_filter_and_a_chip_in_the_address(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}")
    everything = browser.text("#pv")
    for i, page in enumerate(p["page"] for p in question(http, "/pages", by="pv", limit=9)["pages"]):
        browser.run("document.querySelectorAll('#list-0 tbody button')[arguments[0]].click()", i)
        browser.settle()
        assert asked_filters(browser)["page"] == [page] and browser.text(".chip b") == page
        assert_figures(browser, question(http, "/stats", page=page))
        assert browser.run("return document.getElementById('views_per_visit')") is None  # its visits began there, its views did not
        browser.find(".chip").click()
        browser.settle()
    assert browser.text("#pv") == everything and "page=" not in browser.driver.current_url
    browser.driver.back()
    wait_until(lambda: "page=" in browser.driver.current_url, "one step back")
    browser.settle()
    assert browser.text("#pv") != everything
    assert browser.driver.title != "forged" and browser.complaints() == []


def test_a_dimension_is_a_filter(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&step=1d")
    press(browser, "google", "#list-1")
    row = next(r for r in question(http, "/breakdown", by="source", metric="uv", step="1d")["rows"] if r["value"] == "google")
    assert number(browser.text("#uv")) == row["uv"] and number(browser.text("#pv")) == row["pv"]
    assert chart(browser)[0]["data"] == [point["uv"] for point in row["series"]]
    assert "Visits and addresses are not counted by source" in browser.text("#uncounted")
    assert browser.run("return document.getElementById('visits')") is None
    assert browser.find("#legend").is_displayed()
    press(browser, "Germany", "#list-2")
    assert not browser.find("#legend").is_displayed() and chart(browser) == []  # two filters have none
    press(browser, "google", "#list-1")
    assert asked_filters(browser)["country"] == ["DE"] and browser.text(".chip b") == "Germany"
    browser = look(f"/?site=shop&{CUSTOM}&browser=(none)")
    assert "Visitors are not counted by browser here" in browser.text("#uncounted") and number(browser.text("#pv")) > 0
    browser = look(f"/?site=shop&{CUSTOM}&event=signup")
    assert_figures(browser, question(http, "/stats", event="signup"))


@pytest.mark.some(2)
@pytest.mark.parametrize("site", ["shop", "nobody"])
@pytest.mark.parametrize("kind, counted", [("browser", False), ("source", True)])
def test_a_value_without_views_is_no_fault(shop, look, site, kind, counted):
    """As where a window is chosen in which nobody came with it."""
    browser = look(f"/?site={site}&{CUSTOM}&{kind}=absent")
    assert number(browser.text("#pv")) == 0
    assert ("Visitors are not counted by browser here" in browser.text("#uncounted")) == (not counted)
    assert browser.run("return [...document.querySelectorAll('.message.fault:not([hidden])')].map((box) => box.textContent)") == []


def test_of_two_filters_visitors_come_from_the_overlap(http, shop, look):
    browser = look(f"/?site=shop&{CUSTOM}&page=/pricing")
    press(browser, "google", "#list-1")
    assert asked_filters(browser)["source"] == ["google"] and asked_filters(browser)["page"] == ["/pricing"]
    answer = question(http, "/overlap", page="/pricing", source="google")
    both = answer["intersection"]
    assert_figures(browser, {"uv": both["uv"], "pv": None, "visits": None, "ips": None, "error": {"uv": both["error"]}})
    assert "are not counted together" in browser.text("#uncounted") and chart(browser) == []
    assert [[row[0], number(row[1])] for row in browser.rows("#common")] == [
        ["/pricing", answer["a"]["uv"] if answer["a"].get("page") else answer["b"]["uv"]],
        ["google", answer["b"]["uv"] if answer["b"].get("source") else answer["a"]["uv"]],
        ["both", both["uv"]], ["either", answer["union"]["uv"]]]
    press(browser, "signup", "#list-3")  # a third takes the place of the second
    assert set(asked_filters(browser)) >= {"page", "event"} and "source" not in asked_filters(browser)
    assert number(browser.text("#uv")) == question(http, "/overlap", page="/pricing", event="signup")["intersection"]["uv"]
