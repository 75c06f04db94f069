"""A client of deploy/clients in a process of its own, in the test's hand (client_driver.py, client_driver.js)."""

import json
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"


def node():
    """node 18 or later; None: it is not there."""
    found = shutil.which("node")
    if found is None:
        return None
    version = subprocess.run([found, "-p", "process.versions.node"], capture_output=True, text=True, timeout=30, check=True).stdout
    return found if int(version.split(".")[0]) >= 18 else None


class Sender:
    """`options` are those of the Node client; the Python driver translates them."""

    def __init__(self, language, url, directory, *, preexec=None, **options):
        argv = [PYTHON, "-B", HERE / "client_driver.py"] if language == "python" else [node(), HERE / "client_driver.js"]
        self.log = directory / "sender.log"
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, preexec_fn=preexec)
        self.tell("open", url=url, options=options)
        self.opened = self.answer()

    def tell(self, do, **members):
        self.process.stdin.write(json.dumps({"do": do, **members}).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self):
        row = self.process.stdout.readline()
        assert row, f"the sender ended ({self.process.wait()}):\n{self.log.read_text()[-3000:]}"
        return json.loads(row)

    def ask(self, do, **members):
        self.tell(do, **members)
        return self.answer()

    def track(self, *pages, **members):
        """[was it queued?], one a page."""
        return self.ask("track", pages=pages, members=members)

    def flush(self, ms=20_000):
        return self.ask("flush", ms=ms)

    def stats(self):
        """The counters, which must add up."""
        stats = self.ask("stats")
        there = sum(stats[k] for k in ("queued", "accepted", "rejected", "filtered", "left")) + sum(stats["dropped"].values())
        assert stats["tracked"] + stats["recovered"] == there, stats
        return stats

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def end(self, timeout_s=20):
        """The end of its input: it ends when it is done.  The exit status."""
        self.process.stdin.close()
        status = self.process.wait(timeout_s)
        self.process.stdout.close()
        return status

    def stop(self):
        """Teardown."""
        if self.process.poll() is None:
            self.kill()
