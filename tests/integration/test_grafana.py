"""/grafana: the literal requests of Grafana's data source plugins, and answers that their code accepts; figures are the API's."""

import json
import re
import time
from datetime import datetime, timezone

import pytest

from lib.tokens import token_line
from lib.waiting import wait_until

MINUTE, HOUR, DAY = 60, 3600, 86400
NOW = int(time.time()) // MINUTE * MINUTE
BEGIN = NOW - 6 * HOUR


def iso(at_s):
    return datetime.fromtimestamp(at_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.188Z")


# What simpod-json-datasource 0.6 sends for a panel with one query, recorded from the plugin; but for its times, which
# would soon be too old for minutes.
RECORDED = {
    "app": "dashboard", "requestId": "SQR100", "timezone": "browser",
    "range": {"from": iso(BEGIN + 10), "to": iso(NOW + 10), "raw": {"from": "now-6h", "to": "now"}},
    "interval": "30s", "intervalMs": 30000, "maxDataPoints": 550,
    "targets": [{"datasource": {"type": "simpod-json-datasource", "uid": "tallyd"}, "editorMode": "code", "refId": "A",
                 "payload": {}, "target": "uv"}],
    "scopedVars": {"site": {"selected": False, "text": "example.com", "value": "example.com"},
                   "pages": {"selected": False, "text": ["All"], "value": ["/a", "/b"]},
                   "__sceneObject": {"text": "__sceneObject"}, "__interval": {"text": "30s", "value": "30s"},
                   "__interval_ms": {"text": "30000", "value": 30000}},
    "filters": [{"key": "country", "operator": "=", "value": "SE"},
                {"key": "page", "operator": "=|", "value": "/a", "values": ["/a", "/b"]}],
    "startTime": NOW * 1000 + 10227, "rangeRaw": {"from": "now-6h", "to": "now"}, "panelId": 2, "panelName": "Unique visitors",
    "panelPluginId": "timeseries", "dashboardUID": "tallyd", "dashboardTitle": "tallyd",
}
METRICS = ["uv", "pv", "ips", "visits", "dau", "views_per_visit", "bounce_rate", "visit_duration_s", "breakdown"]
PAGES = ["/a", "/b", "/c.d", "(x|y)", "/e\\f"]


@pytest.fixture
def shop(http, site, chance):
    events = [{"site": site, "page": chance.choice(PAGES), "user": chance.randrange(60), "ip": f"192.0.2.{chance.randrange(30)}",
               "ts": BEGIN + chance.randrange(6 * HOUR)} for _ in range(800)]
    http.accept(sorted(events, key=lambda e: e["ts"]))
    return site


def post(http, path, body, content_type="application/json"):
    return http.request("POST", "/grafana" + path, json.dumps(body), {"Content-Type": content_type})


def ask(http, *targets, range_=None, **more):
    """The series of a query; each target is (metric, payload)."""
    body = {**RECORDED, "filters": None, "range": range_ or {"from": iso(BEGIN), "to": iso(NOW - 30)}, **more,
            "targets": [{"refId": chr(65 + i), "target": metric, "payload": payload} for i, (metric, payload) in enumerate(targets)]}
    body = {name: value for name, value in body.items() if value is not None}
    response = post(http, "/query", body)
    assert response.status == 200, response
    return response.json


def refused(http, *targets, **more):
    body = {**RECORDED, "filters": [], **more,
            "targets": [{"refId": chr(65 + i), "target": metric, "payload": payload} for i, (metric, payload) in enumerate(targets)]}
    response = post(http, "/query", body)
    assert response.headers["Content-Type"] == "application/problem+json"
    assert isinstance(response.json["message"], str) and "error" not in response.json
    return response.status, response.json["message"]


def notices(series):
    return [notice["text"] for notice in series.get("meta", {}).get("notices", [])]


def values(series):
    return [value for value, _ in series["datapoints"]]


def api(http, path, **params):
    return http.question(path, from_=BEGIN, to=NOW, **params)


@pytest.mark.parametrize("path", ["", "/"])
def test_save_and_test(http, path):
    for target in ("/grafana" + path, "/grafana" + path + "?x=1"):
        response = http.get(target)
        assert response.status == 200 and response.json == {"status": "pass"}


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "application/json;charset=UTF-8", None])
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_recorded_request(http, slash, content_type):
    headers = {"Content-Type": content_type} if content_type else {}
    response = http.request("POST", "/grafana/query" + slash, json.dumps(RECORDED), headers)
    assert response.status == 200, response
    (series,) = response.json
    assert series["refId"] == "A"
    times = [at for _, at in series["datapoints"]]
    assert times == sorted(times) and 300 < len(times) <= 550
    assert times[0] == BEGIN * 1000
    assert ["country" in notice["text"] for notice in series["meta"]["notices"]] == [True]


def test_a_body_that_is_none(http):
    assert http.request("POST", "/grafana/query", b"").json == []
    assert post(http, "/query", {}).json == []
    assert post(http, "/query", {"targets": [{}, {"target": "", "refId": "A"}, {"target": "uv", "hide": True},
                                             {"target": "select metric"}]}).json == []
    for body in (b"{", b"[]", b"1", b'{"range":}'):
        assert http.request("POST", "/grafana/query", body).status == 400
    assert http.request("POST", "/grafana/query", b"{}", {"Content-Type": "application/xml"}).status == 415


def test_figures_are_the_apis(http, shop):
    answers = ask(http, *[(metric, {"site": shop, "step": "15m"}) for metric in ("uv", "pv", "ips", "visits")])
    series = api(http, "/stats", site=shop, step="15m")["series"]
    for answer, metric in zip(answers, ("uv", "pv", "ips", "visits")):
        assert values(answer) == [point[metric] for point in series], metric
        assert [at for _, at in answer["datapoints"]] == [
            int(datetime.fromisoformat(p["from"].replace("Z", "+00:00")).timestamp()) * 1000 for p in series]
        assert answer["target"] == f"{metric} {shop}"
    assert [a["refId"] for a in answers] == ["A", "B", "C", "D"]


def test_one_figure_for_the_window_is_no_sum(http, shop):
    for metric in ("uv", "pv", "ips", "visits"):
        (answer,) = ask(http, (metric, {"site": shop, "step": "window"}))
        assert answer["datapoints"] == [[api(http, f"/{metric}", site=shop)[metric], NOW * 1000]]


def test_what_visits_were_like(http, site):
    """Series, tables and one figure: what /stats says; null where there was no visit."""
    events = [{"site": site, "page": f"/{k}", "user": f"u{i}", "ts": BEGIN + 1800 * i + 20 * k} for i in range(9) for k in range(1 + i % 3)]
    http.accept(sorted(events, key=lambda e: e["ts"]))
    names = ("views_per_visit", "bounce_rate", "visit_duration_s")
    whole, series = (api(http, "/stats", site=site, **more) for more in ({}, {"step": "1h"}))
    assert whole["visits"] == 9 and any(p["visits"] == 0 for p in series["series"])
    for name, one, each in zip(names, ask(http, *((n, {"site": site, "step": "window"}) for n in names)),
                               ask(http, *((n, {"site": site, "step": "1h"}) for n in names))):
        assert one["target"] == f"{name} {site}"
        (value,) = one["datapoints"]
        assert value == [pytest.approx(whole[name]), NOW * 1000] and value[0] > 0
        assert [p[0] for p in each["datapoints"]] == [p[name] if p[name] is None else pytest.approx(p[name]) for p in series["series"]]
    status, message = refused(http, ("bounce_rate", {"site": site, "page": "/1"}))
    assert status == 400 and "bounce_rate is of whole sites" in message


def test_a_breakdown_is_a_table(http, site, tallyd):
    """The rows of /breakdown, and what a cap put together; visitors where they are counted."""
    hosts = [f"h{i}.example" for i in range(6) for _ in range(6 - i)]
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "referrer": f"https://{host}/", "ts": NOW - 60} for i, host in enumerate(hosts)]
                + [{"site": site, "event": "signup", "user": f"u{i % 2}", "ts": NOW - 60} for i in range(3)])
    sources, events = ask(http, ("breakdown", {"site": site, "limit": "3"}), ("breakdown", {"site": site, "by": "event"}))
    (browsers,) = ask(http, ("breakdown", {"site": site, "by": "browser", "limit": 5}))
    assert [c["text"] for c in browsers["columns"]] == ["browser", "pv", "at_most"] and browsers["rows"] == [["(none)", 21, 21]]
    assert sources["type"] == "table" and sources["refId"] == "A"
    assert [c["text"] for c in sources["columns"]] == ["source", "pv", "at_most", "uv"]
    assert sources["rows"] == [[r["value"], r["pv"], r["at_most"], r["uv"]] for r in api(http, "/breakdown", site=site, by="source", limit=3)["rows"]]
    assert sources["rows"][0] == ["h0.example", 6, 6, 6] and len(sources["rows"]) == 3
    assert [c["text"] for c in events["columns"]] == ["event", "pv", "at_most", "uv"] and events["rows"] == [["signup", 3, 3, 2]]
    for payload, told in (({"by": "weather"}, "by: must be source"), ({"limit": 0}, "limit"), ({"limit": "1001"}, "limit"),
                          ({"limit": "many"}, "limit"), ({"limit": 1.5}, "limit"), ({"page": "/"}, "whole sites")):
        status, message = refused(http, ("breakdown", {"site": site, **payload}))
        assert status == 400 and told in message


@pytest.mark.parametrize("payload", ['{"site": "shop"}', "", 7, [], True])
def test_a_payload_is_an_object(http, payload):
    """Else its site would be passed over, and another one's figures shown."""
    status, message = refused(http, ("pv", payload))
    assert status == 400 and "payload must be an object" in message


def test_what_a_cap_put_together_is_a_row(start_tallyd):
    http = start_tallyd("--max-values", "2").client()
    http.accept([{"page": "/", "user": "u", "referrer": f"https://h{i}.example/", "ts": NOW - 60} for i in range(5)])
    (answer,) = ask(http, ("breakdown", {}))
    assert answer["rows"] == [["h0.example", 1, 1, 1], ["h1.example", 1, 1, 1], ["(other)", 3, 3, None]]


def test_daily_active_users(http, site):
    today = http.question("/dau", site=site)["date"]
    midnight = int(datetime.fromisoformat(today + "T00:00:00+00:00").timestamp())
    http.accept([{"site": site, "page": "/", "user": user, "ts": midnight - day * DAY + 5}
                 for day, users in ((3, 5), (1, 2), (0, 4)) for user in range(users) if midnight - day * DAY + 5 <= time.time()])
    days = {"from": iso(midnight - 3 * DAY), "to": iso(midnight + 10)}
    (answer,) = ask(http, ("dau", {"site": site}), range_=days)
    expected = http.question("/dau", site=site, from_=midnight - 3 * DAY, to=midnight + 60)["series"]
    assert values(answer) == [day["users"] for day in expected] and values(answer)[:3] == [5, 0, 2]
    assert [at for _, at in answer["datapoints"]] == [(midnight - day * DAY) * 1000 for day in (3, 2, 1, 0)]
    (answer,) = ask(http, ("dau", {"site": site, "step": "window"}), range_=days)
    assert values(answer) == [http.question("/active", site=site, from_=midnight - 3 * DAY, to=midnight + 60)["users"]]
    for room in (2, 3):  # three have no room for four days, and every second one leaves a place free
        (answer,) = ask(http, ("dau", {"site": site}), range_=days, maxDataPoints=room)
        assert values(answer) == [5, 2] and "one day of 2" in answer["meta"]["notices"][0]["text"]
    (answer,) = ask(http, ("dau", {"site": site}), range_=days, maxDataPoints=0)  # is no number of points
    assert len(values(answer)) == 4 and notices(answer) == []


@pytest.mark.parametrize("interval_s, points, step", [
    (30, 550, "1m"), (60, 360, "1m"), (60, 300, "5m"), (61, 550, "5m"), (60.001, 550, "5m"), (899.999, 550, "15m"), (900.001, 550, "1h"), (300, 50, "15m"), (1200, 550, "1h"), (7200, 550, "1d")])
def test_interval_and_room_are_respected(http, shop, interval_s, points, step):
    (answer,) = ask(http, ("pv", {"site": shop}), intervalMs=interval_s * 1000, maxDataPoints=points)
    assert values(answer) == [p["pv"] for p in api(http, "/pv", site=shop, step=step)["series"]]
    assert sum(values(answer)) == 800


def test_room_for_one_point(http, shop):
    """The finest step that has one point, or months: of the day behind the first of a month the week has one."""
    (answer,) = ask(http, ("pv", {"site": shop}), intervalMs=1000, maxDataPoints=1)
    by_step = [[point["pv"] for point in api(http, "/pv", site=shop, step=step)["series"]] for step in ("1d", "1w", "1M")]
    assert values(answer) == next((points for points in by_step if len(points) == 1), by_step[-1])


@pytest.mark.parametrize("days", [3, 10])
def test_a_step_that_is_too_fine_is_made_coarser(http, shop, days):
    """Not kept so long, or more points than anybody wants: each of the queries by itself."""
    for answer in ask(http, *[("pv", {"site": shop, "step": "1m"})] * 2, range_={"from": iso(NOW - days * DAY), "to": iso(NOW - 30)}):
        assert sum(values(answer)) == 800 and len(values(answer)) <= days * 24 + 1
        assert answer["meta"]["notices"] == [{"severity": "info", "text": "1h is the finest step for this time range"}]


def test_a_query_without_an_id(http, shop):
    """As Infinity sends it: what is wrong is told all the same, without an empty name."""
    for target, begins in (({"target": "pv", "payload": {"site": shop, "tz": "Asia/Kolkata"}}, "the borders of no step"), ({"target": "x"}, "there is no")):
        answer = post(http, "/query", {"targets": [target], "range": {"from": iso(NOW - 400 * DAY), "to": iso(NOW)}})
        assert answer.json["detail"].startswith(begins), answer


def test_a_zone_whose_borders_are_kept_no_more_is_told(http, shop):
    """Hours are kept for some months, days are the site's: what lies further back has no borders of another zone."""
    far = {"from": iso(NOW - 400 * DAY), "to": iso(NOW)}
    status, message = refused(http, ("pv", {"site": shop, "tz": "Asia/Kolkata"}), range=far)
    told = re.search("query A: the borders of no step .* are still kept for all of this window; for from=(.*)&to=(.*) they are", message)
    assert status == 422 and told, message
    (later,) = ask(http, ("pv", {"site": shop, "tz": "Asia/Kolkata"}), range_={"from": told[1], "to": told[2]})
    assert sum(values(later)) == 800


def test_a_range_that_is_rounded_is_told(http, shop):
    """One figure has no other place to say so; the points of a series begin where the window that was taken does."""
    hour = (NOW - 3 * DAY) // HOUR * HOUR
    for metric, payload in (("uv", {"step": "window"}), ("breakdown", {})):
        old = ask(http, (metric, {"site": shop, **payload}), range_={"from": iso(hour + 7 * MINUTE), "to": iso(NOW - 30)})[0]
        assert notices(old) == [f"counted from {iso(hour)[:19]}Z to {iso(NOW)[:19]}Z: "
                                "this time range is kept by the hour, day or month only"]
        assert notices(ask(http, (metric, {"site": shop, **payload}))[0]) == []
    series = ask(http, ("pv", {"site": shop, "step": "1h"}), range_={"from": iso(hour + 7 * MINUTE), "to": iso(NOW - 30)})[0]
    assert notices(series) == [] and series["datapoints"][0][1] == hour * 1000


def test_what_the_apis_answers_say_beside_figures(start_tallyd):
    """Visitors that are hashed anew each day, and a page that a cap left out."""
    http = start_tallyd("--visitor-rotation", "day", "--max-pages", "4", "--partitions", "1").client()
    http.accept([{"page": f"/{i}", "ip": "192.0.2.1", "ts": NOW - 60} for i in range(20)])
    days = {"from": iso(NOW - DAY), "to": iso(NOW - 30)}
    for metric, payload, told in (
            ("pv", {"step": "window"}, False), ("uv", {"step": "window"}, True), ("breakdown", {}, True),
            ("breakdown", {"by": "browser"}, False),
            ("bounce_rate", {"step": "window"}, True), ("uv", {"step": "1h"}, False), ("uv", {"step": "1w"}, True)):
        texts = notices(ask(http, (metric, payload), range_={**days, "from": iso(NOW - 3 * DAY)})[0])
        assert any("hashed anew" in text for text in texts) == told, (metric, payload)
    at_most = http.question("/pv", page="/0", from_="now-1d")["at_most"]
    for step in ("window", "1h"):
        assert notices(ask(http, ("pv", {"page": "/0", "step": step}), range_=days)[0]) == [
            f"names beyond a cap were put together: over this time range it may be up to {at_most}"]


def test_names_as_builders_escape_them(http, shop):
    """The same pages as JSON has them, and as the regex format of Grafana's variables does."""
    escaped = {"/a": "\\/a", "/c.d": "\\/c\\.d", "(x|y)": "\\(x\\|y\\)", "/e\\f": "\\/e\\\\f"}
    for page, text in escaped.items():
        expected = api(http, "/pv", site=shop, page=page)["pv"]
        assert expected > 50
        for given in (page, [page], text, [text]) if page != "(x|y)" else (text, [text]):
            (answer,) = ask(http, ("pv", {"site": shop, "page": given, "step": "window"}))
            assert values(answer) == [expected], given
    several = api(http, "/uv", site=shop, page=["/a", "/c.d"])["uv"]
    for given in (["/a", "/c.d"], "(\\/a|\\/c\\.d)"):
        (answer,) = ask(http, ("uv", {"site": shop, "page": given, "step": "window"}))
        assert values(answer) == [several]
    for site in (shop, shop.replace("-", "\\-").replace("\\-", "-"), [shop]):
        assert values(ask(http, ("pv", {"site": site, "step": "window"}))[0]) == [800]
    for everything in ("", [], "$__all", "All", ["$__all"], None):
        assert values(ask(http, ("pv", {"site": shop, "page": everything, "step": "window"}))[0]) == [800]


def test_page_set(http, shop):
    query = f"/pagesets/two?site={shop}"
    assert http.request("PUT", query, json.dumps({"pages": ["/a", "/b"]})).status == 201
    both = api(http, "/pv", site=shop, page=["/a", "/b"])["pv"]
    assert 0 < both < 800
    for pageset in ("two", ["two"]):
        (answer,) = ask(http, ("pv", {"site": shop, "pageset": pageset, "step": "window"}))
        assert values(answer) == [both] and "meta" not in answer
    (answer,) = ask(http, ("pv", {"site": shop, "pageset": "two", "step": "1h"}))
    assert sum(values(answer)) == both
    assert values(ask(http, ("pv", {"site": shop, "pageset": "", "step": "window"}))[0]) == [800]
    for payload, status, said in (({"pageset": "none"}, 404, "none"), ({"pageset": "a b"}, 400, "pageset"),
                                  ({"pageset": ["two", "three"]}, 400, "one at a time"),
                                  ({"pageset": "two", "page": "/a"}, 400, "page")):
        got, message = refused(http, ("pv", {"site": shop, **payload}))
        assert got == status and said in message, message
    got, message = refused(http, ("pv", {"site": shop, "pageset": "two"}), filters=[{"key": "page", "operator": "=", "value": "/a"}])
    assert got == 400, message  # the union would be wider than the filter
    assert refused(http, ("dau", {"site": shop, "pageset": "two"}))[0] == 400


@pytest.mark.parametrize("name", ["filters", "adhocFilters"])
def test_filters(http, shop, name):
    def pv(*filters, payload=None):
        (answer,) = ask(http, ("pv", {"site": shop, "step": "window", **(payload or {})}), **{
            name: [dict(zip(("key", "operator", "value"), f)) | ({"values": f[2]} if f[1] == "=|" else {}) for f in filters]})
        return values(answer)

    n = {page: api(http, "/pv", site=shop, page=page)["pv"] for page in PAGES}
    assert pv() == [800]
    assert pv(("page", "=", "/a")) == [n["/a"]]
    assert pv(("page", "=|", ["/a", "/b"])) == [n["/a"] + n["/b"]]
    for listed in ({}, {"values": []}, {"values": None}):
        filters = {name: [{"key": "page", "operator": "=|", "value": "/a", **listed}]}
        (alone,) = ask(http, ("pv", {"site": shop, "step": "window"}), **filters)
        assert values(alone) == [n["/a"]], "without its list of values a filter is no wider"
    assert pv(("page", "=|", ["/a", "/b"]), ("page", "=|", ["/b", "/c.d"])) == [n["/b"]]
    assert pv(("page", "=", "/a"), payload={"page": ["/a", "/b"]}) == [n["/a"]]
    assert pv(("page", "=", "/a"), ("page", "=", "/b")) == []
    assert pv(("page", "=", "/a"), payload={"page": "/b"}) == []
    assert pv(("site", "=", shop), payload={"site": ""}) == [800]
    assert pv(("country", "=", "SE")) == [800]  # with a notice
    for operator in ("!=", "=~", "!~", "<", "=!|"):
        status, message = refused(http, ("pv", {}), **{name: [{"key": "page", "operator": operator, "value": "/a"}]})
        assert status == 400 and "=|" in message


def test_a_table(http, shop):
    body = {"range": {"from": iso(BEGIN), "to": iso(NOW - 30)}, "targets": [
        {"refId": "A", "target": "pv", "type": "table", "payload": {"site": shop, "step": "1h"}}]}
    (table,) = post(http, "/query", body).json
    assert table["type"] == "table" and [c["type"] for c in table["columns"]] == ["time", "number"]
    assert sum(row[1] for row in table["rows"]) == 800 and table["rows"][0][0] == BEGIN * 1000


def test_without_a_range(http):
    """Infinity's POST, and people: the last 6 hours; one site's worth of page views of this minute are in them."""
    http.accept([{"site": "no-range", "page": "/", "user": i} for i in range(3)])
    (answer,) = post(http, "/query", {"targets": [{"target": "uv", "payload": {"site": "no-range"}}]}).json
    assert sum(values(answer)) == 3 and "refId" not in answer and 71 <= len(values(answer)) <= 361
    an_hour_ago = int(time.time()) - 3600
    for from_ in (an_hour_ago * 1000, "now-1h", str(an_hour_ago)):
        (answer,) = post(http, "/query", {"targets": [{"target": "uv", "payload": {"site": "no-range"}}],
                                          "range": {"from": from_, "to": "now"}}).json
        assert 60 <= len(values(answer)) <= 62, from_


def test_errors_say_which_query(http):
    assert refused(http, ("uv", {}), ("sessions", {})) == (
        400, "query B: there is no metric sessions: uv, pv, ips, visits, dau, views_per_visit, bounce_rate, visit_duration_s and breakdown are")
    assert refused(http, ("uv", {"site": "No Site"}))[1].startswith("query A: site: ")
    assert refused(http, ("uv", {"page": "a\nb"}))[1].startswith("query A: page: ")
    assert refused(http, ("uv", {"step": "7m"}))[1].startswith("query A: step: ")
    assert refused(http, ("uv", {"tz": "Mars/Olympus"}))[1].startswith("query A: tz: ")
    assert refused(http, ("uv", {"site": ["a", "b"]})) == (400, "query A: site: one at a time")
    assert refused(http, ("dau", {"page": "/"})) == (400, "query A: dau is of whole sites: it takes no page")
    assert refused(http, ("uv", {}), range={"from": "yesterday", "to": "now"})[1].startswith("query A: range.from: ")
    assert refused(http, ("uv", {}), range={"from": "now", "to": "now-1h"})[1].startswith("query A: range.to: ")
    assert refused(http, *[("uv", {})] * 101)[0] == 400
    status, message = refused(http, ("pv", {}), ("dau", {}), range={"from": "2001-01-01", "to": "2001-02-01"})
    assert status == 422 and message.startswith("query "), message


def test_an_answer_has_so_many_points(http, site):
    """A hundred series of 11,000 points each were 20 MB of JSON, made on an HTTP thread."""
    months = {"range": {"from": iso(0), "to": "2850-01-01T00:00:00Z"}}  # 10,560 of them
    targets = [("pv", {"site": site, "step": "1M"})] * 20
    status, message = refused(http, *targets, **months)
    assert status == 422 and message.startswith("query S: ") and "more than 200000 points" in message, message
    assert sum(len(series["datapoints"]) for series in ask(http, *targets[:18], range_=months["range"])) == 18 * 10_560


def test_many_names(http, shop):
    """As many as a page set has, each looked at once; more are refused before anything is done with them."""
    many = [f"/{i}" for i in range(997)] + PAGES[:3]
    old = {"from": iso(BEGIN - 400 * DAY + 30 * MINUTE), "to": iso(BEGIN - 399 * DAY)}  # no minutes of it are kept
    (answer,) = ask(http, ("pv", {"site": shop, "page": many * 2, "step": "window"}))
    assert values(answer) == [api(http, "/pv", site=shop, page=PAGES[:3])["pv"]]
    too_many = (400, "query A: page: at most 1000 of them")
    assert refused(http, ("uv", {"page": many + ["/more"]})) == too_many
    filters = [{"key": "page", "operator": "=|", "values": [f"/{i}" for i in range(4200)], "value": ""}]
    assert refused(http, ("uv", {}), range=old, filters=filters) == too_many
    filters = [{"key": "page", "operator": "=|", "values": many[:998] + ["/more"], "value": ""}]
    (answer,) = ask(http, ("pv", {"site": shop, "page": many, "step": "window"}), filters=filters)
    assert values(answer) == [api(http, "/pv", site=shop, page=PAGES[0])["pv"]]


def test_what_means_nothing_is_told(http):
    (answer,) = ask(http, ("uv", {"pgae": "/a"}))
    assert answer["meta"]["notices"] == [{"severity": "warning", "text": "pgae in the payload means nothing"}]
    for metric, payload, told in (
            ("uv", {"action": "signup", "by": "", "limit": None}, ["action in the payload means nothing to uv"]),
            ("pv", {"by": "country", "limit": 5}, ["by in the payload means nothing to pv", "limit in the payload means nothing to pv"]),
            ("breakdown", {"step": "1h", "by": "country"}, ["step in the payload means nothing to breakdown"]),
            ("dau", {"step": "1M"}, ["dau has a figure for each day, or with step=window one"]),
            ("dau", {"step": "1d"}, []), ("dau", {"step": "window", "tz": "UTC"}, []),
            ("dau", {"tz": "Asia/Tokyo"}, ["the days of dau are those of the site's own time zone"])):
        assert sorted(notices(ask(http, (metric, payload))[0])) == told, (metric, payload)
    (steps,) = [p["options"] for m in post(http, "/metrics", {}).json if m["value"] == "dau" for p in m["payloads"] if p["name"] == "step"]
    assert [step["value"] for step in steps] == ["auto", "window"]


def test_what_is_no_name_is_refused(http, shop):
    """Passed over it would make a figure of more than was asked for: of all pages, of another action."""
    for name in ("site", "page", "pages", "pageset", "step", "tz", "action", "by"):
        for value in (True, 1.5, {"value": "/a"}, [["/a"]], [None]):
            status, message = refused(http, ("dau" if name == "action" else "pv", {"site": shop, name: value}))
            assert (status, message) == (400, f"query A: {name}: must be a name, or a list of names"), (name, value)
    for name, several in (("step", "(1h|1d)"), ("tz", ["UTC", "Europe/Berlin"]), ("action", "(a|b)"), ("by", ["country", "browser"])):
        assert refused(http, ("breakdown", {name: several})) == (400, f"query A: {name}: one at a time")
    for filters in ([{"key": "page", "operator": "=", "value": {"a": 1}}], [{"key": "page", "operator": "=|", "values": ["/a", {}]}]):
        assert refused(http, ("pv", {}), filters=filters) == (400, "query A: filter on page: must be a name, or a list of names")
    assert refused(http, ("pv", {}), adhocFilters={"key": "page"}) == (400, "query A: adhocFilters must be a list")
    assert refused(http, ("pv", {}), filters="page=/a") == (400, "query A: filters must be a list")
    for range_ in ("x", [1, 2], 5):
        assert refused(http, ("pv", {}), range=range_) == (400, "query A: range must be an object")


def test_a_fraction_in_the_range(http, site):
    """As in a parameter: cut off of `from`, rounded up in `to`."""
    minute = NOW - 10 * MINUTE
    http.accept([{"site": site, "page": "/", "ts": minute - 1}, {"site": site, "page": "/", "ts": minute + MINUTE}])
    for scale in (1, 1000):
        (answer,) = ask(http, ("pv", {"site": site, "step": "window"}),
                        range_={"from": (minute - 0.3) * scale, "to": (minute + MINUTE + 0.2) * scale})
        assert answer["datapoints"] == [[2, (minute + 2 * MINUTE) * 1000]]
        (answer,) = ask(http, ("pv", {"site": site, "step": "window"}), range_={"from": minute * scale, "to": float((minute + MINUTE) * scale)})
        assert answer["datapoints"] == [[0, (minute + MINUTE) * 1000]]


def test_a_step_where_the_clocks_change(start_redis, start_tallyd):
    """The day of 23 hours is a day, and the hour of 30 minutes an hour."""
    http = start_tallyd("--keep-minutes", "forever", "--keep-hours", "forever", "--keep-days", "forever", redis=start_redis()).client()
    for tz, from_, to, interval_s, points in (
            ("Europe/Berlin", "2026-03-27T23:00:00Z", "2026-03-30T22:00:00Z", DAY, 3),
            ("Australia/Lord_Howe", "2026-04-04T14:00:00Z", "2026-04-04T17:00:00Z", HOUR, 4)):
        (answer,) = ask(http, ("pv", {"tz": tz}), range_={"from": from_, "to": to}, intervalMs=interval_s * 1000, maxDataPoints=1000)
        series = http.get("/pv", tz=tz, from_=from_, to=to, step="1d" if interval_s == DAY else "1h").json["series"]
        assert len(values(answer)) == len(series) == points, tz


def test_a_day_that_a_zone_left_out(start_redis, start_tallyd, tmp_path):
    """Apia went over the date line: 2011-12-30 never was there, and no two points have one time."""
    config = tmp_path / "tallyd.conf"
    config.write_text("site.apia.tz = Pacific/Apia\n")
    http = start_tallyd("--config", config, "--keep-days", "forever", redis=start_redis()).client()
    (answer,) = ask(http, ("dau", {"site": "apia"}), range_={"from": "2011-12-29T11:00:00Z", "to": "2011-12-31T09:00:00Z"})
    times = [at for _, at in answer["datapoints"]]
    assert len(times) == 2 and times == sorted(set(times))


def test_without_addresses(start_redis, start_tallyd):
    http = start_tallyd("--ips", "off", redis=start_redis()).client()
    assert "ips" not in [metric["value"] for metric in post(http, "/metrics", {}).json]
    status, message = refused(http, ("ips", {}))
    assert status == 422 and "--ips off" in message


def test_requests_of_others_than_grafana(http, shop):
    """What people and other programs send: each oddity means what it says, or is told."""
    one = {"target": "pv", "payload": {"site": shop, "step": "window"}}
    spans = {"range": {"from": iso(BEGIN), "to": iso(NOW - 30)}}
    assert post(http, "/query", [one]).json["message"] == "the body must be a JSON object"
    assert post(http, "/query", {"targets": [one], **spans}, "text/xml").status == 415
    for idle in (5, None, {}, {"target": ""}, {"target": "select metric"}, {**one, "hide": True}):
        (answer,) = post(http, "/query", {"targets": [idle, one], **spans}, "text/plain").json
        assert values(answer) == [800], idle
    for points, interval in ((0, 0), (-1, -1), ("many", None), (1e9, 1e15)):
        (answer,) = post(http, "/query", {"targets": [one], **spans, "maxDataPoints": points, "intervalMs": interval}).json
        assert values(answer) == [800], (points, interval)
    for end in (None, NOW * 1000, str(NOW * 1000), NOW * 1000 + 0.5):
        (answer,) = post(http, "/query", {"targets": [one], "range": {"from": BEGIN * 1000, "to": end}}).json
        assert values(answer) == [800], end
    for bad in (-1, 1e15, True, "", [], "2026-13-01"):
        refusal = post(http, "/query", {"targets": [one], "range": {"from": bad}})
        assert refusal.status == 400 and refusal.json["message"].startswith("range.from: "), (bad, refusal)


def test_long_names_are_cut_in_what_is_told(http):
    long = "x" * 100
    assert refused(http, (long, {}))[1].startswith(f"query A: there is no metric {'x' * 64}: ")
    body = {"targets": [{"refId": long, "target": "none", "payload": {}}]}
    assert post(http, "/query", body).json["message"].startswith(f"query {'x' * 64}: ")
    for long, cut in ((long, "x" * 64), ("x" * 63 + "é", "x" * 63), ("x" * 62 + "é!", "x" * 62 + "é"), ("€" * 30, "€" * 21)):
        (answer,) = ask(http, ("uv", {long: 1}), filters=[{"key": long, "operator": "=", "value": "y"}])
        assert sorted(notice["text"] for notice in answer["meta"]["notices"]) == sorted([
            f"the filter on {cut} is not applied: there is none but page and site", f"{cut} in the payload means nothing"])


def test_filters_that_cannot_be_applied(http, shop):
    def texts(metric, *filters):
        (answer,) = ask(http, (metric, {"site": shop}), filters=list(filters))
        return [notice["text"] for notice in answer.get("meta", {}).get("notices", [])]

    assert texts("pv", {"key": "", "operator": "=", "value": "x"}, {}) == []  # not chosen yet
    assert texts("dau", {"key": "page", "operator": "=", "value": "/a"}) == ["the filter on page is not applied: dau is of whole sites"]
    for key in ("page", "site"):
        refusal = refused(http, ("pv", {}), filters=[{"key": key, "operator": "!=", "value": "/a"}])
        assert refusal == (400, f"query A: filter on {key}: = and =| (one of) are the operators")
    assert refused(http, ("pv", {}), filters=[{"key": "site", "operator": "=", "value": "No Site"}])[1].startswith("query A: site: ")


def test_page_sets_and_actions(http, shop):
    assert http.request("PUT", f"/pagesets/ab?site={shop}", '{"pages":["/a","/b"]}').status == 201
    window = {"site": shop, "step": "window"}
    both, listed = ask(http, ("pv", {**window, "pageset": "ab"}), ("pv", {**window, "pages": ["/a", "/b"]}))
    assert values(both) == values(listed) and 0 < values(both)[0] < 800
    assert refused(http, ("pv", {"pageset": "No Set"}))[1].startswith("query A: pageset: ")
    assert refused(http, ("pv", {"pageset": ["a", "b"]})) == (400, "query A: pageset: one at a time")
    assert refused(http, ("pv", {"pageset": "ab", "page": "/a"})) == (400, "query A: pageset: must not stand beside page")
    assert refused(http, ("dau", {"pageset": "ab"})) == (400, "query A: dau is of whole sites: it takes no page")
    assert refused(http, ("dau", {"action": "no action"}))[1].startswith("query A: action: ")
    (answer,) = ask(http, ("dau", {"site": shop, "action": "bought"}))
    assert set(values(answer)) <= {0}


def test_many_targets_and_many_panels(http, tallyd, shop):
    """A hundred series in one request; twenty connections with several each, at once."""
    from concurrent.futures import ThreadPoolExecutor
    answers = ask(http, *[("pv", {"site": shop, "step": "window"})] * 100)
    assert [values(a) for a in answers] == [[800]] * 100

    def panel(_):
        client = tallyd.client()
        got = [values(a) for a in ask(client, *[("pv", {"site": shop, "step": "window"}), ("uv", {"site": shop}), ("dau", {"site": shop})] * 3)]
        client.close()
        return got[0::3]

    with ThreadPoolExecutor(20) as pool:
        assert list(pool.map(panel, range(40))) == [[[800]] * 3] * 40


def test_tokens_are_bound_to_sites(redis, start_tallyd, directory):
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text(token_line("mine", "read site=mine grafana"))
    tallyd = start_tallyd("--tokens", directory / "tokens", redis=redis, wait_ready=False)
    tallyd.wait_ready_line()
    http = tallyd.client()

    def status(site, token="mine"):
        return http.request("POST", "/grafana/query", json.dumps({"targets": [{"target": "pv", "payload": {"site": site}}]}),
                            {"Authorization": f"Bearer {token}"}).status

    wait_until(lambda: status("mine") == 200, "it is ready")
    assert status("other") == 403 and status("mine", "nobody's") == 401
    assert http.get("/grafana").status == 401
    (directory / "tokens").unlink()


def test_redis_away(start_redis, start_tallyd):
    redis = start_redis()
    tallyd = start_tallyd("--request-timeout", "2s", redis=redis)
    redis.kill()
    wait_until(lambda: tallyd.client().get("/readyz").status == 503, "it is noticed")
    status, message = refused(tallyd.client(), ("uv", {}), ("dau", {}))
    assert status == 503 and "Redis" in message


def test_what_can_be_asked(http):
    metrics = post(http, "/metrics", {}).json
    assert [m["value"] for m in metrics] == METRICS
    for metric in metrics:
        assert metric["label"] and {p["name"] for p in metric["payloads"]} in (
            {"site", "page", "step"}, {"site", "action", "step"}, {"site", "step"}, {"site", "by", "limit"})
        for payload in metric["payloads"]:
            assert payload["type"] in ("input", "select", "multi-select")
            for option in payload.get("options", []):
                assert len(ask(http, (metric["value"], {payload["name"]: option["value"]}))) == 1, option
    assert post(http, "/metrics/", {"metric": "uv", "payload": {"site": "x"}}).json == metrics
    assert post(http, "/annotations", {"range": {}, "annotation": {"name": "x", "query": "#deploy"}}).json == []
    assert [key["text"] for key in post(http, "/tag-keys", {}).json] == ["page", "site"]


# Names to choose from


def names(http, path, body):
    response = post(http, path, body)
    assert response.status == 200, response
    return response.json


def test_variables(http, shop):
    listed = names(http, "/variable", {"payload": {"target": "sites"}, "range": {"from": iso(BEGIN), "to": iso(NOW)}})
    assert {"__text": shop, "__value": shop} in listed and all(set(row) == {"__text", "__value"} for row in listed)
    by_views = [page["page"] for page in api(http, "/pages", site=shop, limit=1000)["pages"]]
    assert sorted(by_views) == sorted(PAGES)
    escaped = "\\" + shop if not shop[0].isalnum() else shop.replace(".", "\\.")
    for payload in ({"target": f"pages({shop})"}, {"target": f"pages({escaped})"}, {"target": "pages", "site": shop}):
        listed = names(http, "/variable/", {"payload": payload, "range": {"from": iso(BEGIN), "to": iso(NOW - 30)}})
        assert [row["__value"] for row in listed] == by_views, payload
    backwards = {"from": iso(NOW + HOUR), "to": iso(NOW - 30)}  # is no time range: the seven days before its end are taken
    listed = names(http, "/variable", {"payload": {"target": f"pages({shop})"}, "range": backwards})
    assert sorted(row["__value"] for row in listed) == sorted(PAGES)
    assert [row["__value"] for row in names(http, "/variable", {"payload": {"target": "metrics"}})] == METRICS
    for range_ in ({"from": iso(BEGIN - DAY), "to": iso(BEGIN - 60)}, {"from": "2001-01-01T00:00:00Z", "to": "2001-01-02T00:00:00Z"}):
        assert names(http, "/variable", {"payload": {"target": f"pages({shop})"}, "range": range_}) == []
    for ends in (BEGIN - DAY, BEGIN - 60), (BEGIN, NOW - 30):  # epoch milliseconds, as a query takes them
        texts, *others = [[row["__value"] for row in names(http, "/variable", {"payload": {"target": f"pages({shop})"}, "range": dict(zip(("from", "to"), map(form, ends)))})]
                          for form in (iso, lambda at: at * 1000, lambda at: str(at * 1000))]
        assert texts == (by_views if ends[0] == BEGIN else []) and others == [texts] * 2
    response = post(http, "/variable", {"payload": {"target": "colours"}})
    assert response.status == 400 and "colours" in response.json["message"]
    response = post(http, "/variable", {"payload": {"target": "pages(No Site)"}})
    assert response.status == 400 and response.json["message"].startswith("site: ")


def test_search(http, shop):
    """SimpleJson's: bare names."""
    assert names(http, "/search", {"target": ""}) == METRICS
    assert shop in names(http, "/search", {"target": "sites"})
    assert set(names(http, "/search", {"target": f"pages({shop})"})) == set(PAGES)


def test_options_of_a_payload(http, shop):
    body = {"metric": "uv", "payload": {"site": shop.replace(".", "\\.")}}
    assert {"label": shop, "value": shop} in names(http, "/metric-payload-options", {**body, "name": "site"})
    assert {row["value"] for row in names(http, "/metric-payload-options", {**body, "name": "page"})} == set(PAGES)
    assert names(http, "/metric-payload-options", {**body, "name": "step"}) == []


def test_values_of_filters(http, shop):
    body = {"filters": [{"key": "site", "operator": "=", "value": shop}], "timeRange": {"from": iso(BEGIN), "to": iso(NOW), "raw": {}}}
    assert {"text": shop} in names(http, "/tag-values", {**body, "key": "site"})
    assert {row["text"] for row in names(http, "/tag-values", {**body, "key": "page"})} == set(PAGES)
    assert names(http, "/tag-values", {**body, "key": "country"}) == []


def test_lists_keep_to_the_sites_of_a_token(redis, start_tallyd, directory, tallyd):
    tallyd.client().accept([{"site": site, "page": "/secret", "user": 1} for site in ("mine", "other")])
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text(token_line("mine", "read site=mine grafana"))
    bound = start_tallyd("--tokens", directory / "tokens", redis=redis, wait_ready=False)
    bound.wait_ready_line()
    http = bound.client()

    def ask_list(target):
        return http.request("POST", "/grafana/variable", json.dumps({"payload": {"target": target}}), {"Authorization": "Bearer mine"})

    wait_until(lambda: ask_list("sites").status == 200, "it is ready")
    assert [row["__value"] for row in ask_list("sites").json] == ["mine"]
    assert ask_list("pages(mine)").status == 200 and ask_list("pages(other)").status == 403
    (directory / "tokens").unlink()
