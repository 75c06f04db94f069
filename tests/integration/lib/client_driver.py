"""The Python client on a leash: a JSON command a line on stdin, a JSON answer a line on stdout; at the end of stdin it ends."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "deploy/clients/python"))

from tallyd_client import Client  # noqa: E402  pylint: disable=wrong-import-position

NAMES = {"queueEvents": "queue_events", "queueBytes": "queue_bytes", "batchEvents": "batch_events"}
SECONDS = {"intervalMs": "interval_s", "timeoutMs": "timeout_s", "exitMs": "exit_s"}


def options(given):
    return {SECONDS.get(k) or NAMES.get(k, k): v / 1000 if k in SECONDS else v for k, v in given.items()}


def main():
    client = None
    for row in sys.stdin:
        command = json.loads(row)
        what = command["do"]
        if what == "open":
            client = Client(command["url"], **options(command["options"]))
            answer = True
        elif what == "track":
            answer = [client.track(page, **command.get("members", {})) for page in command["pages"]]
        elif what == "flush":
            answer = client.flush(command["ms"] / 1000)
        elif what == "close":
            answer = client.close(command["ms"] / 1000)
        else:
            answer = client.stats()
        print(json.dumps(answer), flush=True)


main()
