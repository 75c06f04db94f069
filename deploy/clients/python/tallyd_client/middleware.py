"""Counts the page views of an application: WSGI (Flask, Django, ..) and ASGI (Starlette, FastAPI, Quart, ..).

What is counted is what `tallyd import` counts of an access log: GET and POST, answered with 2xx or 304, and no file by its
suffix.  Known robots are left out by the server (`bots="drop"`), and what a browser fetches in advance here.
"""

import contextlib
import ipaddress
import re
import urllib.parse

_FILE = re.compile(r"\.(css|js|mjs|map|json|xml|txt|ico|png|jpe?g|gif|svg|webp|avif|bmp|woff2?|ttf|otf|eot|mp3|mp4|webm|ogg)$", re.I)


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
        address = getattr(parsed, "ipv4_mapped", None) or parsed
        if not any(address in network for network in trusted):
            break
    return address and str(address)


class _Middleware:
    """`user`: a function of the environ or scope, called when the answer begins; None or a raise: no user.  `counts`: a
    function of method, path and status in place of is_view."""

    def __init__(self, app, client, *, site=None, user=None, trusted_proxies=(), counts=is_view):
        self._app, self._client, self._site, self._user, self._counts = app, client, site, user, counts
        self._trusted = [ipaddress.ip_network(network) for network in trusted_proxies]

    def _view(self, request, method, path, status, peer, header):
        if not self._counts(method, path, status) or "prefetch" in (header("sec-purpose") or ""):
            return
        user = None
        with contextlib.suppress(Exception):  # the page is served, whoever it was
            user = self._user and self._user(request)
        self._client.track(path, user=user, site=self._site, ua=header("user-agent"),
                           ip=client_address(peer, header("x-forwarded-for"), self._trusted))


def _quote(path):
    return urllib.parse.quote(path, "/:@!$&'()*+,;=~-._") or "/"


class WsgiMiddleware(_Middleware):
    def __call__(self, environ, start_response):
        told = []  # an application may begin its answer again, after an error

        def started(status, *args):
            if not told:
                path = _quote((environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")).encode("latin-1", "replace"))
                self._view(environ, environ["REQUEST_METHOD"], path, int(status[:3]), environ.get("REMOTE_ADDR"),
                           lambda name: environ.get("HTTP_" + name.upper().replace("-", "_")))
            told.append(status)
            return start_response(status, *args)

        return self._app(environ, started)


class AsgiMiddleware(_Middleware):
    async def __call__(self, scope, receive, send):
        def header(name):
            return ", ".join(value.decode("latin-1") for key, value in scope["headers"] if key == name.encode()) or None

        async def sent(message):
            if message["type"] == "http.response.start":
                path = (scope.get("raw_path") or _quote(scope["path"]).encode()).partition(b"?")[0].decode("latin-1")
                self._view(scope, scope["method"], path, message["status"], (scope.get("client") or [None])[0], header)
            await send(message)

        await self._app(scope, receive, sent if scope["type"] == "http" else send)
