"""A small HTTP client with keep-alive, in the words of tallyd's contract."""

import gzip
import http.client
import json
import urllib.parse
from dataclasses import dataclass

from .waiting import wait_until

JSON = "application/json"
NDJSON = "application/x-ndjson"


class Unknown(Exception):
    """No answer: the request may have been applied or not."""


@dataclass
class Response:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def errors(self):
        return self.json.get("errors", [])

    def __str__(self):
        return f"{self.status} {self.body[:2000].decode(errors='replace')}"


class Client:
    """One connection, one thread.  A lost connection is an Unknown; the next request connects anew."""

    def __init__(self, host, port, timeout_s=15):
        self.connection = http.client.HTTPConnection(host, port, timeout=timeout_s)

    def request(self, method, path, body=None, headers=None):
        try:
            self.connection.request(method, path, body, headers or {})
            response = self.connection.getresponse()
            return Response(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise Unknown(f"{method} {path[:200]}: {error!r}") from error

    def get(self, path, **params):
        return self.request("GET", path + query(params))

    def post(self, body, content_type=JSON, zipped=False, headers=None, **params):
        """POST /events: a dict or a list is sent as JSON, text and bytes as they are."""
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if isinstance(body, str):
            body = body.encode()
        sent = dict(headers or {})
        if content_type is not None:
            sent["Content-Type"] = content_type
        if zipped:
            body = gzip.compress(body)
            sent["Content-Encoding"] = "gzip"
        return self.request("POST", "/events" + query(params), body, sent)

    def accept(self, events, **params):
        """Post events that must all be counted."""
        response = self.post(events, **params)
        n = 1 if isinstance(events, dict) else len(events)
        assert response.status == 202, response
        assert response.json == {"accepted": n, "rejected": 0, "errors": []}, response

    def await_counted(self, site):
        """Until all that was acknowledged is counted.  Many events on a busy machine may take longer than a question waits."""
        wait_until(lambda: self.get("/pv", site=site).status == 200, f"{site} is counted", 120)

    def question(self, path, **params):
        """The answer's JSON of a question that must succeed."""
        response = self.get(path, **params)
        assert response.status == 200, f"{path} {params}: {response}"
        return response.json

    def count(self, metric, **params):
        """The figure of /pv, /uv, /ips or /visits."""
        return self.question("/" + metric, **params)[metric]

    def metrics(self):
        """/metrics as {'name{labels}': value}."""
        response = self.get("/metrics")
        assert response.status == 200, response
        values = {}
        for line in response.body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                values[name] = float(value)
        return values

    def metric(self, name):
        """The sum of a metric over its labels."""
        return sum(v for k, v in self.metrics().items() if k == name or k.startswith(name + "{"))

    def close(self):
        self.connection.close()


def query(params):
    """{'page': ['/a', '/b'], 'from_': 'now'} -> '?page=/a&page=/b&from=now' (percent-encoded).

    A trailing underscore is dropped (`from` is a keyword of Python), None is left out.
    """
    pairs = []
    for name, value in params.items():
        for v in value if isinstance(value, (list, tuple)) else [value]:
            if v is not None:
                pairs.append((name.rstrip("_"), v))
    return "?" + urllib.parse.urlencode(pairs, quote_via=urllib.parse.quote) if pairs else ""
