"""One attempt to deliver a batch: POST /events, and what the answer means."""

import email.utils
import encodings.idna  # noqa: F401  # the first connection would load it: a fork meanwhile leaves half of it in the child
import gzip
import http.client
import json
import re
import time
import urllib.parse

# again: nothing of it is counted.  Any other status is "in doubt": it may be counted, so it must be sent again with the same key
# and the same bytes, or not at all.
VERDICTS = {202: "taken", 400: "refused", 415: "refused", 422: "refused", 413: "too large",
            401: "again", 403: "again", 404: "again", 405: "again", 429: "again", 503: "again"}
LONGEST_WAIT_S = 3600.0
ANSWER_BYTES = 1 << 20


class Endpoint:
    """POST /events of one tallyd.  Each request has a connection of its own: after a fork there is none to share."""

    def __init__(self, url, token, bots):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an http or https URL: {url!r}")
        if token and not re.fullmatch(r"[!-~]+", token):
            raise ValueError("a token has printable ASCII characters only")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/") + "/events" + (f"?bots={bots}" if bots else "")
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "User-Agent": "tallyd-client-python"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def post(self, lines, key, timeout_s):
        """Send `lines` under the Idempotency-Key: (verdict, its text, the seconds of a Retry-After, the JSON
        object of the answer).  Never raises for what the network does."""
        connection = self._kind(self._host, self._port, timeout=timeout_s)
        verdict, text = "again", "no connection"
        try:
            body = gzip.compress(b"\n".join(lines) + b"\n", mtime=0)
            connection.connect()
            verdict, text = "in doubt", "no answer"
            connection.request("POST", self._path, body, {**self._headers, "Idempotency-Key": key})
            response = connection.getresponse()
            return understand(response.status, response.headers, response.read(ANSWER_BYTES))
        except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
            return verdict, f"{text}: {error!r}", 0.0, {}
        finally:
            connection.close()


def understand(status, headers, body):
    """What an answer means, as post() returns it."""
    try:
        answer = json.loads(body)
    except ValueError:  # a proxy's own page, for example
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    never = status == 429 and answer.get("retry_after_s") == -1  # so many events never fit the limit
    wait_s = retry_after(headers.get("Retry-After")) or (1.0 if status == 429 else 0.0)
    verdict = "too large" if never else VERDICTS.get(status, "in doubt")
    return verdict, f"{status} {answer.get('detail', '')}".strip(), wait_s, answer


def retry_after(text):
    """Seconds that a Retry-After asks for, a number or a date; 0 if there is none that can be read."""
    try:
        seconds = float(text) if text.strip().isdigit() else email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (AttributeError, TypeError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT_S)
