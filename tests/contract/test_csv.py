"""Every operation that openapi.yaml gives text/csv answers it, and says the same as in JSON."""

import csv
import datetime
import io
import json

import pytest

from test_openapi import API, OPERATIONS, ask

WITH_ROWS = [o for o in API.operations if "text/csv" in o.responses.get(200, {}).get("content", {})]
ROWS = {  # the member of an answer that has its rows; of the others: series
    "/pages": "pages", "/hotkeys": "pages", "/sites": "sites", "/active/users": "users", "/users/{user}/activity": "days",
    "/retention": "returned", "/funnel": "steps", "/frequency": "days", "/breakdown": "rows",
}
USERS = ["u1", "=1+1", "a,b", 'a"b', "-x", "ä"]


def rows_of(response):
    assert response.headers["Content-Type"] == "text/csv; charset=utf-8; header=present"
    return rows_in(response.body.decode())


def rows_in(text):
    assert text.endswith("\r\n") and "\n" not in text.replace("\r\n", "")
    names, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    assert all(len(row) == len(names) for row in rows)
    return [dict(zip(names, row)) for row in rows]


@pytest.mark.parametrize("operation", WITH_ROWS, ids=lambda o: o.id)
def test_examples_say_the_same(operation):
    """The rows of the example in CSV are those of an example in JSON."""
    content = operation.responses[200]["content"]
    rows = rows_in(content["text/csv"]["example"])
    media = content["application/json"]
    answers = [media["example"]] if "example" in media else [example["value"] for example in media["examples"].values()]
    assert rows in [[{name: cell(answer, row, name) for name in rows[0]} for row in answer.get(ROWS.get(operation.path, "series"), [answer])]
                    for answer in answers]


def cell(answer, row, name):
    """The text of a column: what the row has, or else the answer; a row that is no object is the only column."""
    value = {**answer, **row}.get(name, "") if isinstance(row, dict) else row
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # a number, as short as it can be written
    return "'" + value if str(value).startswith(("=", "+", "-", "@")) else str(value)


@pytest.fixture
def filled(http, site):
    http.accept([{"site": site, "page": "/a", "user": user} for user in USERS])
    return site


@pytest.mark.parametrize("operation", WITH_ROWS, ids=lambda o: o.id)
def test_rows(http, filled, operation):
    params = {"site": filled} if "site" in operation.in_query() else {}
    as_json = ask(http, operation, params, status=200)
    assert as_json.headers["Content-Type"] == "application/json" and as_json.headers["Vary"] == "Accept"
    response = ask(http, operation, params, status=200, headers={"Accept": "text/csv"})
    rows = rows_of(response)
    example = operation.responses[200]["content"]["text/csv"]["example"]
    assert response.body.decode().partition("\r\n")[0] == example.partition("\r\n")[0]
    if operation.path in ("/uv", "/pv", "/ips", "/visits"):
        answer = as_json.json
        assert rows == [{name: str(answer[name]) for name in ("site", "from", "to", operation.path[1:])}]


def test_days_are_rows(http, filled):
    answer = http.question("/dau", site=filled, from_="now-2d")
    rows = rows_of(http.request("GET", f"/dau?site={filled}&from=now-2d", headers={"Accept": "text/csv"}))
    assert rows == [{"site": filled, "action": "active", "date": day["date"], "users": str(day["users"])} for day in answer["series"]]
    assert rows[-1]["users"] == str(len(USERS))


def test_users_are_rows_and_no_formulas(http, filled):
    rows = rows_of(http.request("GET", f"/active/users?site={filled}", headers={"Accept": "text/csv"}))
    assert sorted(row["user"] for row in rows) == sorted("'" + u if u[0] in "=-" else u for u in USERS)
    seen, cursor = [], {}
    while cursor is not None:
        response = ask(http, OPERATIONS["getActiveUsers"], {"site": filled, "limit": 2, **cursor}, headers={"Accept": "text/csv"}, status=200)
        seen += [row["user"] for row in rows_of(response)]
        cursor = {"cursor": response.headers["X-Next-Cursor"]} if response.headers["X-Next-Cursor"] else None
    assert sorted(seen) == sorted(row["user"] for row in rows)


def test_a_triangle_is_rows(http, filled):
    today = http.question("/dau", site=filled)["date"]
    target = f"/retention?site={filled}&cohort={today}&cohorts=1&days=1"
    rows = rows_of(http.request("GET", target, headers={"Accept": "text/csv"}))
    assert rows == [] and http.get(target).json["cohorts"][0]["returned"] == []
    month_ago = str(datetime.date.fromisoformat(today) - datetime.timedelta(30))
    past = f"/retention?cohort={month_ago}&days=2&site={filled}"
    rows = rows_of(http.request("GET", past, headers={"Accept": "text/csv"}))
    assert [(r["cohort"], r["size"], r["offset"], r["users"], r["rate"]) for r in rows] == [
        (month_ago, "0", str(i), "0", "0") for i in (1, 2)]


def test_errors_stay_problems(http):
    response = http.request("GET", "/dau?x=1", headers={"Accept": "text/csv"})
    assert response.status == 400 and response.headers["Content-Type"] == "application/problem+json"
    assert json.loads(response.body)["errors"]
