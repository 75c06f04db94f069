"""A headless Chromium, by the WebDriver protocol, and a server of pages for it."""

import http.client
import http.server
import json
import shutil
import threading

from lib.process import Process, free_port
from lib.waiting import wait_until

HERE = shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    """One window.  Every name that ends in .test is this machine."""

    def __init__(self, directory):
        self.port = free_port()
        self.driver = Process("chromedriver", directory)
        self.driver.spawn([shutil.which("chromedriver"), f"--port={self.port}"])
        wait_until(self._is_up, "chromedriver answers")
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                            "--host-resolver-rules=MAP *.test 127.0.0.1", f"--user-data-dir={directory}/profile",
                            "--disable-background-networking", "--no-first-run"]}
        answer = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options,
                                                                                 "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = f"/session/{answer['sessionId']}"

    def _request(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            return json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()

    def _is_up(self):
        try:
            return self._request("GET", "/status")["ready"]
        except OSError:
            return False

    def _ask(self, method, path, body=None):
        value = self._request(method, path, body)
        assert not (isinstance(value, dict) and "error" in value), value
        return value

    def open(self, url):
        self._ask("POST", self.session + "/url", {"url": url})

    def run(self, script):
        """The value that a script returns."""
        return self._ask("POST", self.session + "/execute/sync", {"script": script, "args": []})

    def complaints(self):
        """What stands in the console since the last call, but for missing favicons."""
        entries = self._ask("POST", self.session + "/se/log", {"type": "browser"})
        return [e["message"] for e in entries if "favicon" not in e["message"]]

    def close(self):
        try:
            self._ask("DELETE", self.session)
        finally:
            self.driver.kill()


class Pages:
    """Serves {path: (type, text)} to the browser; its own page at every other path."""

    def __init__(self, files, page):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                kind, text = files.get(self.path, ("text/html; charset=utf-8", page))
                body = text.encode()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
