"""The dashboard of a server that asks for tokens, and its links to share.  Skipped where Chromium, its driver or selenium are
missing."""

import urllib.parse

import pytest

from lib.browser import Browser, need_browser
from lib.dashboard import an_hour_later, messages, number
from lib.tokens import token_line
from lib.waiting import wait_until


@pytest.fixture(scope="module", autouse=True)
def browser_is_there():
    need_browser()


@pytest.fixture
def closed(redis, start_tallyd, directory):
    """A server that asks for tokens: `read`, `ingest`, and `guest`, which reads the shop only."""
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text("".join(token_line(t, line) for t, line in (
        ("read", "read read"), ("ingest", "ingest ingest"), ("guest", "read site=shop guest"))))
    tallyd = start_tallyd("--tokens", directory / "tokens", redis=redis, wait_ready=False)
    tallyd.wait_ready_line()
    return tallyd


def test_a_token_is_asked_for(closed, shop, cleanup):
    browser = Browser(closed.url)
    cleanup.append(browser.close)
    browser.driver.get(closed.url + "/?site=shop")
    dialog = browser.find("#token-dialog")
    wait_until(dialog.is_displayed, "it asks")
    assert browser.run("return document.activeElement.id") == "token"
    browser.find("#token").send_keys("wrong\n")
    wait_until(lambda: "does not know" in browser.text("#token-why"), "it asks again")
    wait_until(dialog.is_displayed, "it asks again")
    browser.find("#token").send_keys("ingest\n")
    wait_until(lambda: browser.run("return sessionStorage.getItem('tallyd-token')") == "ingest" and dialog.is_displayed() and
               "lacks the scope read" in browser.text("#token-why"), "it asks again")
    browser.find("#token").send_keys("read\n")
    wait_until(lambda: browser.text("#pv") not in ("", "–"), "the figures are there")
    browser.open("/?site=shop&range=7d")  # kept while the tab is open
    assert browser.text("#pv") != "–" and not browser.find("#token-dialog").is_displayed()
    assert "token=" not in browser.driver.current_url and browser.run("return localStorage.length") == 0


def test_who_has_no_token_is_asked_once(closed, shop, cleanup):
    browser = Browser(closed.url)
    cleanup.append(browser.close)
    browser.driver.get(closed.url + "/?site=shop&range=now")
    dialog = browser.find("#token-dialog")
    wait_until(dialog.is_displayed, "it asks")
    browser.run("window.asked = 0; const show = HTMLDialogElement.prototype.showModal;"
                " HTMLDialogElement.prototype.showModal = function () { asked++; show.call(this); }")
    browser.run("[...document.querySelectorAll('#token-dialog button')].at(-1).click()")
    browser.settle()
    assert any("The server asks for a token. Load the page again" in text for text in messages(browser))
    an_hour_later(browser)
    browser.settle()
    assert browser.run("return asked") == 0 and not dialog.is_displayed()


def test_a_token_that_no_header_can_carry_is_a_wrong_one(closed, shop, cleanup):
    """As one that was copied with a sign of the text around it."""
    browser = Browser(closed.url)
    cleanup.append(browser.close)
    browser.driver.get(closed.url + "/?site=shop&range=now#token=read%E2%80%A6")
    dialog = browser.find("#token-dialog")
    wait_until(dialog.is_displayed, "it asks")
    assert "does not know" in browser.text("#token-why")
    browser.find("#token").send_keys("read\u2026\n")
    wait_until(lambda: browser.run("return sessionStorage.getItem('tallyd-token')") == "read\u2026" and dialog.is_displayed(), "it asks again")
    browser.find("#token").send_keys("read\n")
    wait_until(lambda: browser.text("#pv") not in ("", "–"), "the figures are there")


def test_the_page_for_operators_sends_its_token_for_all(shop, redis, start_tallyd, cleanup, directory):
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text(token_line("read", "read read"))
    tallyd = start_tallyd("--tokens", directory / "tokens", "--metrics-token", redis=redis, wait_ready=False)
    tallyd.wait_ready_line()
    browser = Browser(tallyd.url)
    cleanup.append(browser.close)
    browser.driver.get(tallyd.url + "/ops")
    wait_until(browser.find("#token-dialog").is_displayed, "it asks")
    assert "Not ready" not in browser.text("#ready")  # that is not known yet
    browser.find("#token").send_keys("read\n")
    wait_until(lambda: browser.text("#ready") == "Ready.", "it is ready")


def test_a_link_to_share(closed, shop, cleanup):
    """Its token reads one site: the page of it, not of all, and never in what is sent."""
    browser = Browser(closed.url)
    cleanup.append(browser.close)
    browser.open("/?range=7d#token=guest")
    assert number(browser.text("#pv")) > 0 and not browser.find("#token-dialog").is_displayed()
    address = browser.driver.current_url
    assert "site=shop" in address and "guest" not in address
    assert not [url for url in browser.requested() if "guest" in url.partition("#")[0]]
    browser.find("#share").click()
    link = browser.run("return document.getElementById('share-link').value")
    assert urllib.parse.urlsplit(link).fragment == "token=guest" and "site=shop" in link and "range=7d" in link
    other = Browser(closed.url)
    cleanup.append(other.close)
    other.open(link.removeprefix(closed.url))
    assert other.text("#pv") == browser.text("#pv")


def test_a_token_that_was_typed_is_in_no_link(closed, shop, cleanup):
    """It may be one that reads all sites, or deletes them: only who has a link to share passes its token on unasked."""
    browser = Browser(closed.url)
    cleanup.append(browser.close)
    browser.driver.get(closed.url + "/?site=shop#token=wrong")
    wait_until(browser.find("#token-dialog").is_displayed, "it asks")
    browser.find("#token").send_keys("read\n")
    wait_until(lambda: browser.text("#pv") not in ("", "–"), "the figures are there")
    browser.settle()
    browser.find("#share").click()
    assert browser.run("return document.getElementById('share-token').value") == ""
    assert "#" not in browser.run("return document.getElementById('share-link').value")
    browser.find("#share-token").send_keys("guest")
    assert browser.run("return document.getElementById('share-link').value").endswith("#token=guest")
