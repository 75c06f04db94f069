"""A headless Chromium (Debian's chromium, chromium-driver and python3-selenium), and axe-core, which looks for what people
with a keyboard or a screen reader would stumble over (from npm, into build/axe).

Only what skips a test imports pytest: `make bench` takes Browser, and needs none.
"""

import json
import shutil
import subprocess

from .process import ROOT, short_directory
from .waiting import wait_until

AXE = "4.10.3"
NEEDED = ("chromium", "chromedriver")

# Notes when the first figure was painted, and what had been loaded by then.
FIRST_FIGURES = """addEventListener('DOMContentLoaded', () => new MutationObserver((_, watch) => {
  if (/\\d/.test(document.getElementById('uv')?.textContent ?? '')) {
    watch.disconnect();
    const loaded = performance.getEntriesByType('resource').filter((one) => one.responseEnd > 0)
      .map((one) => [one.startTime, one.responseEnd, one.name]);
    requestAnimationFrame(() => setTimeout(() => { window.firstFigures = { ms: performance.now(), loaded }; }));
  }
}).observe(document.body, { subtree: true, childList: true, characterData: true }))"""


class Browser:
    """One window, which opens paths behind `base`, or whole addresses.  Every name that ends in .test is this machine.
    `size` (width, height), `dark`: what the page may adapt to."""

    def __init__(self, base="", size=(1200, 1400), dark=False):
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service

        self.base = base
        self.profile = short_directory()
        options = Options()
        options.binary_location = shutil.which("chromium")
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                         "--host-resolver-rules=MAP *.test 127.0.0.1", f"--user-data-dir={self.profile}",
                         "--disable-background-networking"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.driver.set_page_load_timeout(60)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size[0] < 500})

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)

    def run(self, script, *args):
        return self.driver.execute_script(script, *args)

    def find(self, selector):
        from selenium.webdriver.common.by import By
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def rows(self, table):
        """The text of a table's body, cell by cell."""
        return self.run("return [...document.querySelectorAll(arguments[0] + ' tbody tr')]"
                        ".map((row) => [...row.cells].map((cell) => cell.textContent))", table)

    def open(self, path="/"):
        self.driver.get(self.base + path)
        self.settle()

    def settle(self):
        """Every panel has its answer, or says why not."""
        wait_until(lambda: self.run("return document.readyState === 'complete' && !document.querySelector('[aria-busy]')"), "the page is filled", deadline_s=30)

    def first_figures(self, path):
        """Load the page anew, nothing of it remembered: (ms until the first figure was painted, round trips until then one
        after the other behind the page itself)."""
        self.driver.execute_cdp_cmd("Network.clearBrowserCache", {})
        script = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": FIRST_FIGURES})
        self.driver.get(self.base + path)
        wait_until(lambda: self.run("return window.firstFigures !== undefined"), "the first figure is painted", deadline_s=30)
        found = self.run("return window.firstFigures")
        self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
        chains = []  # (end, how many one after the other)
        for start, end, name in sorted(found["loaded"]):
            if name.endswith((".css", ".svg")):  # nothing waits for these
                continue
            chains.append((end, 1 + max((n for earlier, n in chains if earlier <= start), default=0)))
        return found["ms"], max(n for _, n in chains)

    def complaints(self):
        """What stands in the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self):
        """The addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def axe(self):
        """[(id, impact, [where])] of what axe-core finds."""
        self.run(axe_source())
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1]; axe.run().then(done, (error) => done({ error: String(error) }))")
        assert "error" not in found, found
        assert len(found["passes"]) > 10, "axe looked at the page"
        return [(v["id"], v["impact"], [(n["target"], n.get("failureSummary")) for n in v["nodes"]])
                for v in found["violations"]]


def need_browser():
    """Skip where there is none."""
    import pytest

    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no browser: {', '.join(missing)} missing (apt-get install chromium chromium-driver)")
    pytest.importorskip("selenium", reason="no browser: python3-selenium is missing")


def axe_source():
    """The script; skip where npm cannot fetch it."""
    import pytest

    directory = ROOT / "build/axe"
    script = directory / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            pytest.skip("axe-core: npm is missing")
        directory.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(["npm", "install", "--prefix", directory, "--ignore-scripts", "--no-audit", "--no-fund",
                                 f"axe-core@{AXE}"], capture_output=True, timeout=180, check=False)
        if result.returncode != 0 or not script.exists():
            pytest.skip("axe-core: npm cannot fetch it")
    return script.read_text(encoding="utf-8")
