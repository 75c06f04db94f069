"""One attempt to deliver a batch: POST /events, and what the answer means.

| answer | verdict | in doubt: may it have been counted? |
|---|---|---|
| 202 | TAKEN | no |
| 400, 415, 422 | REFUSED: the batch would be refused again | no |
| 413; 429 that says it can never fit | TOO_LARGE: smaller batches may pass | no |
| 429, 503, 401, 403, 404, 405; no connection | AGAIN | no |
| 500, 502, 504, any other; a connection that broke or was silent | AGAIN | yes |

A batch in doubt must be sent again with the same key and the same bytes, or not at all.
"""

import email.utils
import encodings.idna  # noqa: F401  # the first connection would load it: a fork meanwhile leaves half of it in the child
import enum
import http.client
import json
import re
import time
import urllib.parse
from dataclasses import dataclass, field

LONGEST_WAIT_S = 3600.0
ANSWER_BYTES = 1 << 20


class Verdict(enum.Enum):
    TAKEN = "taken"
    AGAIN = "again"
    REFUSED = "refused"
    TOO_LARGE = "too large"


@dataclass
class Outcome:
    verdict: Verdict
    text: str
    in_doubt: bool = False
    wait_s: float = 0.0  # what Retry-After asks for
    answer: dict = field(default_factory=dict)  # of a 202


class Endpoint:
    """POST /events of one tallyd, over a connection that is kept.  One thread at a time."""

    def __init__(self, url, token, bots):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not an http or https URL: {url!r}")
        self._kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/") + "/events" + (f"?bots={bots}" if bots else "")
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip", "User-Agent": "tallyd-client-python"}
        if token:
            if not re.fullmatch(r"[!-~]+", token):
                raise ValueError("a token has printable ASCII characters only")
            self._headers["Authorization"] = f"Bearer {token}"
        self._connection = None

    def forget(self):
        """Without a word to the other end: after a fork the connection is the parent's."""
        self._connection = None

    def post(self, body, key, timeout_s):
        """Send `body`, gzipped NDJSON, under the Idempotency-Key: an Outcome.  Never raises for what the network does."""
        kept = self._connection is not None
        try:
            outcome = self._try(body, key, timeout_s)
            if kept and outcome is None:  # the other end had closed a connection that was idle: no fault yet
                outcome = self._try(body, key, timeout_s)
        except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
            self._connection = None
            return Outcome(Verdict.AGAIN, f"no answer: {error!r}", in_doubt=True)
        return outcome or Outcome(Verdict.AGAIN, "the connection was closed without an answer", in_doubt=True)

    def _try(self, body, key, timeout_s):
        if self._connection is None:
            connection = self._kind(self._host, self._port, timeout=timeout_s)
            try:
                connection.connect()
            except (OSError, ValueError) as error:  # ValueError: a host name that is none
                return Outcome(Verdict.AGAIN, f"no connection: {error}")
            self._connection = connection
        self._connection.sock.settimeout(timeout_s)
        try:
            self._connection.request("POST", self._path, body, {**self._headers, "Idempotency-Key": key})
            response = self._connection.getresponse()
            text = response.read(ANSWER_BYTES)
            if response.will_close or not response.isclosed():
                self._drop()
            return understand(response.status, response.headers, text)
        except (http.client.RemoteDisconnected, ConnectionError):
            self._drop()
            return None
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            return Outcome(Verdict.AGAIN, f"no answer: {error!r}", in_doubt=True)

    def _drop(self):
        self._connection.close()
        self._connection = None


def understand(status, headers, body):
    """The Outcome of an answer; see the table above."""
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    answer = answer if isinstance(answer, dict) else {}
    text = f"{status} {answer.get('detail', '')}".strip()
    wait_s = retry_after(headers.get("Retry-After"))
    if status == 202:
        return Outcome(Verdict.TAKEN, text, answer=answer)
    if status in (400, 415, 422):
        return Outcome(Verdict.REFUSED, text)
    if status == 413 or (status == 429 and answer.get("retry_after_s") == -1):
        return Outcome(Verdict.TOO_LARGE, text)
    if status == 429:
        return Outcome(Verdict.AGAIN, text, wait_s=wait_s or 1.0)
    return Outcome(Verdict.AGAIN, text, in_doubt=status not in (401, 403, 404, 405, 503), wait_s=wait_s)


def retry_after(text):
    """Seconds that a Retry-After asks for, a number or a date; 0 if there is none that can be read."""
    if not text:
        return 0.0
    try:
        seconds = float(text) if text.strip().isdigit() else email.utils.parsedate_to_datetime(text).timestamp() - time.time()
    except (TypeError, ValueError):
        return 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT_S)
