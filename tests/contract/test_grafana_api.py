"""/grafana/..., as openapi.yaml has it."""

import json

import pytest

from description import Description
from lib.process import ROOT, Redis, Tallyd
from lib.tokens import token_line
from lib.waiting import wait_until

API = Description((ROOT / "openapi.yaml").read_text(encoding="utf-8"))
OPERATIONS = [o for o in API.operations if "Grafana" in o.tags]
POSTS = [o for o in OPERATIONS if o.method == "POST"]
each = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.id)
each_post = pytest.mark.parametrize("operation", POSTS, ids=lambda o: o.id)


def send(http, operation, body=None, slash="", headers=None):
    if operation.method == "POST" and body is None:
        body = json.dumps(operation.body["application/json"]["example"])
    return API.check(operation, http.request(operation.method, operation.path + slash, body, headers or {}))


@each
def test_statuses(http, operation):
    """Every documented status is seen, but for those of an outage and of too little memory."""
    seen = {send(http, operation).status, send(http, operation, slash="/").status}
    assert seen == {200}
    assert send(http, operation, slash="?anything=1").status == 200
    seen |= {API.check(operation, http.request("PATCH", operation.path)).status}
    seen |= {send(http, operation, headers={"Host": ""}).status, send(http, operation, headers={"Transfer-Encoding": "x"}).status}
    seen |= {send(http, operation, headers={f"X-{i}": "" for i in range(257)}).status}
    seen |= {API.check(operation, http.request(operation.method, operation.path, b" " * (9 << 20))).status}
    if operation.method == "POST":
        for media in ("application/json", "text/plain"):
            assert send(http, operation, operation.body[media]["example"] if media == "text/plain" else None,
                        headers={"Content-Type": media}).status == 200
        seen |= {send(http, operation, headers={"Content-Type": "text/html"}).status, send(http, operation, "[").status}
        seen |= {send(http, operation, headers={"Content-Encoding": "br"}).status}
    if operation.id == "postGrafanaQuery":
        body = json.dumps({"targets": [{"target": "dau", "refId": "A"}], "range": {"from": "2001-01-01", "to": "2001-02-01"}})
        seen |= {send(http, operation, body).status}
        body = json.dumps({"targets": [{"target": "pv", "refId": "A", "payload": {"pageset": "none"}}]})
        seen |= {send(http, operation, body).status}
    assert set(operation.responses) - seen <= {401, 403, 503}, seen


@each
def test_tokens(redis, operation):
    daemon = Tallyd("--tokens", "tokens", redis=redis, name="closed")
    daemon.directory.mkdir(exist_ok=True)
    (daemon.directory / "tokens").write_text(
        "".join(token_line(scope, f"{scope} {scope}") for scope in ("read", "ingest", "admin")))
    try:
        daemon.spawn(daemon.command_line())
        daemon.wait_ready_line()
        http = daemon.client()
        wait_until(lambda: http.get("/readyz").status == 200, "it is ready")
        for scope, status in (("nobody", 401), ("ingest", 403), ("admin", 403), ("read", 200)):
            assert send(http, operation, headers={"Authorization": f"Bearer {scope}"}).status == status
        assert send(http, operation).status == 401
    finally:
        daemon.stop()


def test_an_outage():
    redis = Redis().start()
    daemon = Tallyd("--request-timeout", "1s", redis=redis, name="deserted")
    try:
        daemon.start()
        redis.kill()
        wait_until(lambda: daemon.client().get("/readyz").status == 503, "it is noticed")
        for operation in OPERATIONS:
            status = 200 if operation.responses[503]["name"] == "NoMemory" else 503
            assert send(daemon.client(), operation).status == status, operation.id
    finally:
        daemon.stop()
        redis.stop()
