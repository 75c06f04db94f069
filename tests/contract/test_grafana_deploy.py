"""deploy/grafana: every query of the dashboards, as the plugins send it, gets what its panel selects."""

import json
import re
import time
from datetime import datetime, timezone

import pytest
import yaml

from lib.process import ROOT

DEPLOY = ROOT / "deploy/grafana"
SOURCES = yaml.safe_load((DEPLOY / "provisioning/datasources/tallyd.yaml").read_text(encoding="utf-8"))["datasources"]
DASHBOARDS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((DEPLOY / "dashboards").glob("*.json"))}
QUERIES = [(name, panel, target) for name, board in DASHBOARDS.items() for panel in board["panels"] for target in panel["targets"]]
ids = [f"{name}-{panel['id']}-{target['refId']}" for name, panel, target in QUERIES]
SPAN_S = {"30d": 30 * 86400, "8w": 56 * 86400, None: 86400}


@pytest.fixture
def shop(http):
    now = int(time.time())
    http.accept(sorted(({"site": "shop", "page": f"/p.{i % 3}", "user": i % 7, "ip": "192.0.2.1", "ts": now - i * 3600} for i in range(90)),
                       key=lambda e: e["ts"]))
    return "shop"


def test_sources():
    assert [s["type"] for s in SOURCES] == ["yesoreyeram-infinity-datasource", "simpod-json-datasource"]  # the maintained one first
    assert [s.get("isDefault", False) for s in SOURCES] == [True, False]
    assert all(s["access"] == "proxy" for s in SOURCES)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard(name):
    board = DASHBOARDS[name]
    assert board["id"] is None and len(board["uid"]) <= 40 and board["title"] and board["panels"]
    assert "__inputs" not in board and "${DS_" not in json.dumps(board)
    sources = {(s["type"], s["uid"]) for s in SOURCES}
    used = [p["datasource"] for p in board["panels"]] + [v["datasource"] for v in board["templating"]["list"]]
    assert {(d["type"], d["uid"]) for d in used} <= sources
    assert len({p["id"] for p in board["panels"]}) == len(board["panels"])
    assert {p["type"] for p in board["panels"]} <= {"timeseries", "stat", "table"}
    cells = [(x, y) for p in board["panels"] for g in [p["gridPos"]] for x in range(g["x"], g["x"] + g["w"])
             for y in range(g["y"], g["y"] + g["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    provider = yaml.safe_load((DEPLOY / "provisioning/dashboards/tallyd.yaml").read_text(encoding="utf-8"))["providers"]
    assert provider[0]["type"] == "file"


def pick(value, selector):
    """gjson's dotted paths, as far as the dashboards use them."""
    for step in filter(None, selector.split(".")):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = None if value is None else value[step]
    return value


def infinity(http, target, span_s):
    now = int(time.time())
    url = target["url"].replace("${__timeFrom}", str((now - span_s) * 1000)).replace("${__timeTo}", str(now * 1000)).replace(
        "${__timeFrom:date:YYYY-MM-DD}", datetime.fromtimestamp(now - span_s, timezone.utc).strftime("%Y-%m-%d")).replace("${site}", "shop")
    assert "$" not in url
    options = target["url_options"]
    headers = {"Accept": "application/json;q=0.9,text/plain", "Accept-Encoding": "gzip", "User-Agent": "Grafana/13"}
    if options["method"] == "POST":
        headers["Content-Type"] = options["body_content_type"]
    response = http.request(options["method"], url, options["data"] or None, headers)
    assert response.status == 200, (url, response)
    found = pick(response.json, target["root_selector"])
    return found if isinstance(found, list) else [found]


@pytest.mark.parametrize("name, panel, target", QUERIES, ids=ids)
def test_a_query(http, shop, name, panel, target):
    span_s = SPAN_S[panel.get("timeFrom")]
    if panel["datasource"]["type"].startswith("yesoreyeram"):
        rows = infinity(http, target, span_s)
        assert rows
        for column in target["columns"]:
            values = [pick(row, column["selector"]) for row in rows]
            assert any(v is not None for v in values), column
            if column["type"] == "number":
                assert all(isinstance(v, (int, float)) for v in values if v is not None)
            if column["type"] == "timestamp":
                assert values == sorted(values) and all(re.match(r"\d{4}-\d\d-\d\d", v) for v in values)
        return
    for pages in ('["/p.0", "/p.1"]', '["/p.0"]', '"*"'):  # chosen in the variable; its value for all of them
        payload = json.loads(target["payload"].replace("$site", "shop").replace("$pages", pages))
        now = datetime.now(timezone.utc).timestamp()
        body = {"range": {"from": datetime.fromtimestamp(now - span_s, timezone.utc).isoformat().replace("+00:00", "Z"),
                          "to": datetime.fromtimestamp(now, timezone.utc).isoformat().replace("+00:00", "Z")},
                "intervalMs": 60000, "maxDataPoints": 900, "targets": [{**target, "payload": payload}]}
        response = http.request("POST", "/grafana/query", json.dumps(body), {"Content-Type": "application/json"})
        assert response.status == 200, response
        (series,) = response.json
        figures = [row[1] for row in series["rows"]] if "rows" in series else [value for value, _ in series["datapoints"]]
        assert series["refId"] == target["refId"] and any(
            figure if target["target"] != "visit_duration_s" else figure is not None for figure in figures)  # all came at once
        assert "meta" not in series, series["meta"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables(http, shop, name):
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] == "adhoc":
            continue
        if name.endswith("infinity"):
            rows = infinity(http, variable["query"]["infinityQuery"], 0)
        else:
            body = {"payload": {"target": variable["query"]["query"].replace("$site", "shop")}}
            rows = http.request("POST", "/grafana/variable", json.dumps(body), {"Content-Type": "application/json"}).json
        assert ("shop" if variable["name"] == "site" else "/p.1") in [row["__value"] for row in rows]
        assert all(set(row) == {"__text", "__value"} for row in rows)
