"""Counts the page views of an application: WSGI (Flask, Django, ..) and ASGI (Starlette, FastAPI, Quart, ..).

What is counted is what `tallyd import` counts of an access log: GET and POST, answered with 2xx or 304, and no file by its
suffix.  Known robots are left out by the server (`bots="drop"`), and what a browser fetches in advance here.
"""

import ipaddress
import re
import urllib.parse

_FILE = re.compile(r"\.(css|js|mjs|map|json|xml|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf|otf|eot|mp3|mp4|webm|ogg)$", re.I)
_PATH_SAFE = "/:@!$&'()*+,;=~-._"


def is_view(method, path, status):
    return method in ("GET", "POST") and (200 <= status < 300 or status == 304) and not _FILE.search(path)


def client_address(peer, forwarded, trusted):
    """The last address of X-Forwarded-For that no trusted proxy has, as tallyd's --trusted-proxies reads it; None: unknown."""
    address = None
    for entry in [peer, *reversed((forwarded or "").split(","))]:
        host = re.sub(r"^\[([^\]]*)\].*$|^([^:]*):\d+$", r"\1\2", (entry or "").strip())
        try:
            parsed = ipaddress.ip_address(host)
        except ValueError:
            break
        parsed = getattr(parsed, "ipv4_mapped", None) or parsed
        address = str(parsed)
        if not any(parsed in network for network in trusted):
            break
    return address


class _Middleware:
    """`user`: a function of the environ or scope, called when the answer begins; None or a raise: no user.  `counts`: a
    function of method, path and status in place of is_view."""

    def __init__(self, app, client, *, site=None, user=None, trusted_proxies=(), counts=is_view):
        self.app, self._client, self._site = app, client, site
        self._user, self._counts = user, counts
        self._trusted = [ipaddress.ip_network(network) for network in trusted_proxies]

    def _view(self, request, method, path, status, peer, header):
        if not self._counts(method, path, status) or "prefetch" in (header("Sec-Purpose") or ""):
            return
        try:
            user = self._user(request) if self._user else None
        except Exception:  # pylint: disable=broad-exception-caught  # the page is served, whoever it was
            user = None
        self._client.track(path, user=user, site=self._site, ua=header("User-Agent"),
                           ip=client_address(peer, header("X-Forwarded-For"), self._trusted))


class WsgiMiddleware(_Middleware):
    def __call__(self, environ, start_response):
        told = []

        def header(name):
            return environ.get("HTTP_" + name.upper().replace("-", "_"))

        def started(status, headers, *exc_info):
            if not told:
                told.append(status)
                path = (environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1", "replace")
                self._view(environ, environ["REQUEST_METHOD"], urllib.parse.quote(path, _PATH_SAFE) or "/", int(status[:3]),
                           environ.get("REMOTE_ADDR"), header)
            return start_response(status, headers, *exc_info)

        return self.app(environ, started)


class AsgiMiddleware(_Middleware):
    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        def header(name):
            values = [value.decode("latin-1") for key, value in scope["headers"] if key == name.lower().encode()]
            return ", ".join(values) if values else None

        async def sent(message):
            if message["type"] == "http.response.start":
                path = scope.get("raw_path") or urllib.parse.quote(scope["path"], _PATH_SAFE).encode()
                self._view(scope, scope["method"], path.partition(b"?")[0].decode("latin-1"), message["status"],
                           (scope.get("client") or [None])[0], header)
            await send(message)

        await self.app(scope, receive, sent)
