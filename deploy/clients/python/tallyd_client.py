"""Page views for tallyd: queued, sent in the background, counted once.  README.md says how to use this module.

Events collect in batches.  A thread sends the oldest batch under an Idempotency-Key of its own, with the same key and
the same bytes again and again, until an answer says what became of it.
"""

import atexit
import contextlib
import encodings.idna  # noqa: F401  # a connection would load it, and a fork meanwhile leaves half of it in the child
import fcntl
import gzip
import http.client
import ipaddress
import json
import logging
import os
import random
import re
import threading
import time
import urllib.parse
from collections import Counter

log = logging.getLogger("tallyd_client")

EVENT_BYTES = 64 << 10  # one event
BATCH_BYTES = 1 << 20   # one request, before gzip
KEY_LIFE_S = 23 * 3600  # tallyd knows a key for 24 hours; one of them is for clocks that differ
BACK_OFF_S, BACK_OFF_MAX_S, RETRY_AFTER_MAX_S = 0.25, 30.0, 3600.0
COUNTERS = ("tracked", "recovered", "accepted", "rejected", "filtered", "left", "requests", "retries")

# What becomes of events, beside 202.  After any other status, or no answer, they may be counted: they must be sent
# again with the same key and the same bytes, or not at all.
DROPPED = {400: "refused", 415: "refused", 422: "refused", "no answer for a day": "expired"}
NOT_COUNTED = ("no connection", 401, 403, 404, 405, 413, 429, 503)

_clients = set()  # that are not closed
atexit.register(lambda: [client.close() for client in list(_clients)])
os.register_at_fork(after_in_child=lambda: [client._begin([]) for client in _clients])


class Client:
    """Sends page views to the tallyd at `url`, in the background.  Thread-safe; a forked child has a queue of its own.

    `site` is for events without one.  `bots`: "drop" or "count" events of known robots; None: as the server does.
    `spool`: the beginning of names of files, so that the queue outlives the process.
    """

    def __init__(self, url, token=None, site=None, *, bots="drop", spool=None, queue_events=10_000,
                 queue_bytes=16 << 20, batch_events=500, interval_s=1.0, timeout_s=15.0, exit_s=5.0):
        self._url = urllib.parse.urlsplit(url)
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise ValueError(f"not an http or https URL: {url!r}")
        try:
            self._port = self._url.port or (443 if self._url.scheme == "https" else 80)
            http.client.HTTPConnection(self._url.hostname, self._port)  # not a connection yet
        except (ValueError, http.client.InvalidURL) as error:
            raise ValueError(f"not a host and a port: {url!r}") from error
        if token and not re.fullmatch(r"[!-~]+", token):
            raise ValueError("a token has printable ASCII characters only")
        self._path = self._url.path.rstrip("/") + "/events" + (f"?bots={bots}" if bots else "")
        self._headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip",
                         **({"Authorization": f"Bearer {token}"} if token else {})}
        self._site, self._spool = site, spool and os.path.abspath(spool)
        self._queue_events, self._queue_bytes, self._batch_events = queue_events, queue_bytes, batch_events
        self._interval_s, self._timeout_s, self._exit_s = interval_s, timeout_s, exit_s
        self._batches = []  # the last one may be open
        self._begin(Batch.left(self._spool) if spool else [])
        _clients.add(self)

    def _begin(self, batches):
        """Also in the child of a fork: what is queued is the parent's to send, and another thread may have the lock."""
        for batch in self._batches:
            batch.close(keep=True)  # the child's copy of the descriptor; the parent's has the lock still
        self._batches, self._changed, self._closed = batches, threading.Condition(), False
        self._counts = Counter(dict.fromkeys(COUNTERS, 0), recovered=self._queued())
        self._dropped, self._said = Counter(), {}
        self._thread = threading.Thread(target=self._run, name="tallyd-client", daemon=True)
        if batches:
            self._thread.start()

    def track(self, page=None, *, ts=None, site=None, **members):
        """Queue an event of POST /events: page, user, ip, ua, actions and so on; members that are None are left out.
        `ts` is now if it is not given.  False: the event is dropped, and stats() says why.  Never raises, never waits
        for the network.  Not for a signal's handler, which may interrupt track() itself."""
        ts = time.time_ns() // 1_000_000 if ts is None else ts
        with self._changed:
            self._counts["tracked"] += 1
            try:
                event = {"page": page, "ts": ts, "site": site or self._site, **members}
                event = {name: value for name, value in event.items() if value is not None}
                return self._queue(json.dumps(event, allow_nan=False, separators=(",", ":")).encode())
            except Exception as error:  # pylint: disable=broad-exception-caught  # the application goes on
                return self._complain("invalid", f"an event cannot be sent: {error!r}", dropped=1)

    def _queue(self, line):
        queued, size = self._queued(), sum(batch.size for batch in self._batches)
        if len(line) > EVENT_BYTES:
            return self._complain("invalid", f"an event has more than {EVENT_BYTES} bytes", dropped=1)
        if self._closed:
            return self._complain("closed", "the client is closed", dropped=1)
        if queued >= self._queue_events or size + len(line) > self._queue_bytes:
            return self._complain("full", f"{queued} events wait: more are dropped", dropped=1)
        if not self._batches or not self._batches[-1].open:
            self._batches.append(Batch(self._spool))
        batch = self._batches[-1]
        self._write(batch, line)
        batch.lines.append(line)
        batch.size += len(line)
        batch.open = len(batch.lines) < self._batch_events and batch.size < BATCH_BYTES - EVENT_BYTES
        if len(batch.lines) == 1 or not batch.open:
            self._changed.notify_all()
        if self._thread.ident is None:
            try:
                self._thread.start()
            except RuntimeError as error:  # there are too many; the next event tries again
                self._complain("thread", f"page views wait: {error}")
        return True

    def _queued(self):
        return sum(len(batch.lines) for batch in self._batches)

    def _write(self, batch, line):
        if self._spool and not batch.write(line):
            self._complain("spool", "the spool takes no more: is the disk full?  Events are kept in memory only")

    def _complain(self, about, text, dropped=0):
        """Into the log, once a minute for each thing; and count what is `dropped`."""
        self._dropped[about] += dropped
        now = time.monotonic()
        if now - self._said.get(about, -60) >= 60:
            self._said[about] = now
            log.warning("%s", text)
        return False

    def stats(self):
        """Counters: tracked + recovered == queued + accepted + rejected + filtered + the sum of dropped + left."""
        with self._changed:
            return {**self._counts, "queued": self._queued(), "dropped": dict(+self._dropped)}  # +: not 0

    def flush(self, timeout_s=30.0):
        """Send what is queued now, without waiting for more.  True: all of it is done with."""
        with self._changed:
            if not self._batches:
                return True
            last = self._batches[-1]
            last.open = False
            self._changed.notify_all()
            return self._changed.wait_for(lambda: last not in self._batches, timeout_s)

    def close(self, timeout_s=None):
        """Send what is queued, for `timeout_s` at most (exit_s), and take no more.  What is left stays in the spool,
        for the next process; without a spool it is dropped.  True: nothing is left."""
        _clients.discard(self)
        self._closed = True
        self.flush(self._exit_s if timeout_s is None else timeout_s)
        with self._changed:
            for batch in self._batches:
                n = len(batch.lines)
                if batch.fd is None:
                    self._complain("exit", f"{n} events were not sent before the end", dropped=n)
                else:
                    self._counts["left"] += n
                batch.close(keep=True)
            self._batches.clear()
            self._changed.notify_all()
            return self._counts["left"] + self._dropped["exit"] == 0

    def _run(self):
        failed = 0  # attempts, one after the other
        while (batch := self._next_batch()) is not None:
            wait_s = self._attempt(batch)
            failed = 0 if wait_s is None else failed + 1
            if failed:
                back_off_s = min(BACK_OFF_S * 2 ** failed, BACK_OFF_MAX_S) * random.uniform(0.5, 1)
                with self._changed:
                    was = self._closed  # a close() ends the first wait: there is no time for a long one
                    self._changed.wait_for(lambda: self._closed != was, max(wait_s, back_off_s))

    def _next_batch(self):
        """The first batch, when it is due; None: close() has been called and there is no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._closed)
            if self._batches:
                first = self._batches[0]
                due_s = first.born + self._interval_s - time.monotonic()
                self._changed.wait_for(lambda: not first.open or self._batches[-1:] != [first], due_s)
                first.open = False
            return first if self._batches else None

    def _attempt(self, batch):
        """Send the batch's next events.  None: these are done with, or too many; else the seconds to wait at least."""
        now = time.time()
        with self._changed:
            if not batch.since:
                batch.n = min(self._batch_events, len(batch.lines))
                self._write(batch, b"# %d %d %d" % (batch.done, batch.n, now))
        lines, key = batch.lines[:batch.n], f"{batch.key}-{batch.done}-{batch.n}"
        if batch.since and now + self._timeout_s > batch.since + KEY_LIFE_S:
            status, answer, wait_s = "no answer for a day", {"detail": "sent again they might count twice"}, 0.0
        else:
            status, answer, wait_s = self._post(lines, key)
        with self._changed:
            if batch in self._batches:  # else close() has given up on it meanwhile
                return self._settle(batch, len(lines), status, answer, wait_s)
        return None

    def _post(self, lines, key):
        """Returns the status (or "no connection", "no answer"), the answer, a dict, and the seconds to wait."""
        kind = http.client.HTTPSConnection if self._url.scheme == "https" else http.client.HTTPConnection
        connection, status, answer = None, "no connection", {}  # a fork has no connection to share
        self._counts["requests"] += 1
        try:
            body = gzip.compress(b"\n".join(lines) + b"\n", mtime=0)
            connection = kind(self._url.hostname, self._port, timeout=self._timeout_s)
            connection.connect()
            status = "no answer"
            connection.request("POST", self._path, body, {**self._headers, "Idempotency-Key": key})
            response = connection.getresponse()
            body = response.read(BATCH_BYTES)
        except Exception as error:  # pylint: disable=broad-exception-caught  # no memory, say: the thread goes on
            return status, {"detail": repr(error)}, 0.0
        finally:
            if connection:
                connection.close()
        with contextlib.suppress(Exception):  # a proxy's own page, for example
            answer = dict(json.loads(body))
        after = response.headers.get("Retry-After", "")
        wait_s = min(float(after), RETRY_AFTER_MAX_S) if after.isdecimal() else float(response.status == 429)
        return response.status, answer, wait_s

    def _settle(self, batch, n, status, answer, wait_s):
        """What the status means for the first `n` events.  Returns what _attempt() does."""
        text = f"{status}: {answer.get('detail', '')}"
        too_large = status == 413 or answer.get("retry_after_s") == -1  # -1: so many never fit the limit
        if status == 202:
            filtered, rejected = (value if isinstance(value, int) else 0
                                  for value in (answer.get("dropped_total"), answer.get("rejected")))
            self._counts.update(accepted=n - filtered - rejected, filtered=filtered, rejected=rejected)
            if rejected:
                self._complain("rejected", f"tallyd rejects {rejected} of {n} events: {answer.get('errors')!s:.300}")
        elif status in DROPPED or too_large and n == 1:
            self._complain(DROPPED.get(status, "refused"), f"{n} events are dropped, {text}", dropped=n)
        elif too_large and not batch.since:
            self._batch_events = n // 2  # from now on
            return None
        else:
            if status not in NOT_COUNTED:
                batch.since = batch.since or time.time()
            self._counts["retries"] += 1
            self._complain("again", f"page views wait: {text}")
            return wait_s
        batch.lines, batch.done, batch.since = batch.lines[n:], batch.done + n, 0
        if not batch.lines:
            self._batches.remove(batch)
            batch.close()
            self._changed.notify_all()
        return None


class Batch:
    """Events that wait for an answer, and their file SPOOL.KEY, which belongs to the process that has its flock.

    A line of the file is an event, or `# DONE N SINCE`: the first DONE events are done with, and the next N are a
    request, which may have been counted since SINCE (time.time()).
    """

    def __init__(self, spool=None, key=None):
        """New; or with `key` what a process that is gone has left, if there are `lines`."""
        self.key = key or f"{time.time_ns():016x}{os.urandom(8).hex()}"  # in order of time
        self.born, self.open = time.monotonic(), key is None  # open: it takes more events
        self.lines, self.size = [], 0                         # that are not done with
        self.done, self.n, self.since = 0, 0, 0               # since 0: none of the n can be counted
        self._path, self.fd = f"{spool}.{self.key}", None     # fd None: the events are in memory only
        try:
            if spool:
                name = self._path if key else f"{self._path}.new"  # which left() does not look at before it is locked
                self.fd = os.open(name, os.O_RDWR | os.O_APPEND | (0 if key else os.O_CREAT), 0o600)
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.rename(name, self._path)
                self._read()
        except (OSError, ValueError):
            self.close(keep=True)

    def _read(self):
        data = os.pread(self.fd, os.fstat(self.fd).st_size, 0)
        os.ftruncate(self.fd, data.rfind(b"\n") + 1)  # half a line at the end is none
        for line in data.split(b"\n")[:-1]:
            if line.startswith(b"#"):
                self.done, self.n, self.since = map(int, line[1:].split())
            else:
                self.lines.append(line)
                self.size += len(line)
        del self.lines[:self.done]

    def write(self, line):
        """False: it is not in the file.  As a file must have all, there is none any more."""
        with contextlib.suppress(OSError):
            if self.fd is not None and os.write(self.fd, line + b"\n") > len(line):
                return True
        self.close()
        return False

    def close(self, keep=False):
        if self.fd is not None:
            if not keep:
                with contextlib.suppress(OSError):  # if it stays, it is sent again with the same key
                    os.unlink(self._path)
            os.close(self.fd)
            self.fd = None

    @classmethod
    def left(cls, spool):
        """What processes that are gone have left, the oldest first.  OSError: there can be no spool."""
        directory, name = os.path.split(spool)
        keys = sorted(file[len(name) + 1:] for file in os.listdir(directory) if file.startswith(name + "."))
        batches = [cls(spool, key) for key in keys if re.fullmatch("[0-9a-f]{32}", key)]
        return [batch for batch in batches if batch.lines or batch.close(keep=True)]  # an empty one is another's


# Middleware counts what `tallyd import` counts of an access log: GET and POST, answered with 2xx or 304, and no file by
# its suffix.  The server leaves out known robots, and this module what a browser fetches in advance.

FILE = re.compile(r"\.(css|js|mjs|map|json|xml|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf|otf|eot"
                  r"|mp3|mp4|webm|ogg)$", re.IGNORECASE)
UTM = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
UTM_BYTES = 256


def _campaign(query):
    """The query's utm_ parameters, read as tallyd reads them: the first of a name that is UTF-8 without controls, cut."""
    found = {}
    for pair in query.split(b"&"):
        name, _, value = pair.partition(b"=")
        name = name.decode("latin-1")
        if name in UTM and name not in found:
            value = urllib.parse.unquote_to_bytes(value.replace(b"+", b" "))
            with contextlib.suppress(UnicodeDecodeError):
                if re.fullmatch(r"[^\0-\x1f\x7f]+", value.decode()):
                    found[name] = value[:UTM_BYTES].decode(errors="ignore")
    return found


def _referrer(referrer, host):
    """The referrer, if it can be one and is no page of the host that was asked."""
    def name(url):
        return re.sub(r"^www\.", "", (urllib.parse.urlsplit(url).hostname or "").rstrip("."))

    with contextlib.suppress(ValueError):
        if re.fullmatch(r"[!-~]{1,4096}", referrer or "") and name(referrer) != name("//" + (host or "")):
            return referrer
    return None


class _Middleware:
    """`user`: a function of the environ or scope, called when the answer begins; None or a raise: no user."""

    def __init__(self, app, client, *, site=None, user=None, trusted_proxies=()):
        self._app, self._client, self._site, self._user = app, client, site, user
        self._trusted = [ipaddress.ip_network(network) for network in trusted_proxies]

    def _answered(self, request, method, path, query, status, peer, header):
        path = urllib.parse.quote(path, "/:@!$&'()*+,;=~-._") or "/"
        counts = method in ("GET", "POST") and (200 <= status < 300 or status == 304) and not FILE.search(path)
        if counts and "prefetch" not in (header("sec-purpose") or ""):
            user = None
            with contextlib.suppress(Exception):  # the page is served, whoever it was
                user = self._user and self._user(request)
            self._client.track(path, user=user, site=self._site, ua=header("user-agent"),
                               ip=self.address(peer, header("x-forwarded-for")),
                               referrer=_referrer(header("referer"), header("host")), **_campaign(query))

    def address(self, peer, forwarded):
        """The last address of X-Forwarded-For that no trusted proxy has, as tallyd's --trusted-proxies reads it."""
        address = None
        with contextlib.suppress(ValueError):  # what is no address ends the list
            own = (peer or "").partition("%")[0]  # behind it the link of a link-local address is named
            for entry in [own, *filter(str.strip, reversed((forwarded or "").split(",")))]:
                host = re.sub(r"^\[(.*)\].*$|^([^:]*):\d*$", r"\1\2", entry.strip())
                if "%" in host:
                    break
                address = getattr(ipaddress.ip_address(host), "ipv4_mapped", None) or ipaddress.ip_address(host)
                if not any(address in network for network in self._trusted):
                    break
        return address and str(address)


class WsgiMiddleware(_Middleware):
    def __call__(self, environ, start_response):
        def started(status, headers, *error):
            if not error:  # else the application begins its answer again
                path = (environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1", "replace")
                query = environ.get("QUERY_STRING", "").encode("latin-1", "replace")
                self._answered(environ, environ["REQUEST_METHOD"], path, query, int(status[:3]),
                               environ.get("REMOTE_ADDR"), lambda name: environ.get("HTTP_" + name.upper().replace("-", "_")))
            return start_response(status, headers, *error)

        return self._app(environ, started)


class AsgiMiddleware(_Middleware):
    async def __call__(self, scope, receive, send):
        def header(name):
            return ", ".join(value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()) or None

        async def sent(message):
            if message["type"] == "http.response.start":
                peer = (scope.get("client") or [None])[0]
                query = scope.get("query_string", b"")
                self._answered(scope, scope["method"], scope["path"], query, message["status"], peer, header)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)
