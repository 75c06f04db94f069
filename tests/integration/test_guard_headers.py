"""The ingestion guard's RateLimit fields: on every answer of what is limited, whatever the answer is."""

import gzip
import json
import re

import pytest

from lib.tokens import token_line
from lib.waiting import wait_until

EVENT = {"page": "/", "user": "u"}
BROWSER = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0"}
BOT = {"User-Agent": "Googlebot/2.1"}


@pytest.fixture
def start(start_redis, start_tallyd):
    def begin(limit, by="token", *args, **options):
        return start_tallyd("--ingest-limit", limit, "--ingest-limit-by", by, *args, redis=options.pop("redis", None) or start_redis(),
                            **options)

    return begin


def left(response, quota=10):
    """What is left, by an answer that must say so."""
    assert response.headers["RateLimit-Policy"] == f'"ingest";q={quota};w=3600', response
    assert len(response.headers.get_all("RateLimit")) == 1
    return int(re.fullmatch(r'"ingest";r=(\d+);t=\d+', response.headers["RateLimit"]).group(1))


def plausible(http, name="pageview", headers=BROWSER, body=None, **more):
    event = {"n": name, "u": "https://example.org/", "d": "example.org", **more}
    return http.request("POST", "/api/event", json.dumps(event) if body is None else body, {"Content-Type": "text/plain", **headers})


@pytest.mark.parametrize("by", ["token", "ip"])
def test_post_events_answers_that_take_nothing(start, by):
    http = start("10/3600s", by).client()
    assert left(http.post([EVENT] * 3)) == 7
    key = {"Idempotency-Key": "k"}
    assert left(http.post([EVENT] * 2, headers=key)) == 5
    replay = http.post([EVENT] * 2, headers=key)
    assert replay.status == 202 and replay.headers["Idempotency-Replayed"] == "true"
    assert left(replay) == 5
    for status, response in ((202, http.post([])), (400, http.post(" ", content_type="application/x-ndjson")),
                             (422, http.post([{}])), (422, http.post([EVENT, {}], strict=1)),
                             (422, http.post([EVENT], headers=key)), (400, http.post("[")), (400, http.post([EVENT], strict=2)),
                             (400, http.post([EVENT], wrong=1)), (400, http.post([EVENT], headers={"Idempotency-Key": ""})),
                             (415, http.post([EVENT], content_type="text/csv")),
                             (415, http.post([EVENT], headers={"Content-Encoding": "br"})),
                             (400, http.post(gzip.compress(b"[]")[:-3], headers={"Content-Encoding": "gzip"}))):
        assert response.status == status, response
        assert left(response) == 5, response
    assert http.count("pv", from_="now-1h") == 5


def test_browsers_answers_that_take_nothing(start):
    http = start("10/3600s").client()
    pixel = lambda query, headers=BROWSER: http.request("GET", "/pixel.gif" + query, headers=headers)
    assert left(pixel("?page=/")) == 9
    assert left(plausible(http)) == 8
    for status, response in ((422, pixel("")), (202, pixel("?page=/", BOT)), (202, plausible(http, headers=BOT)),
                             (202, plausible(http, "engagement")), (400, plausible(http, body="[")), (400, plausible(http, d="NO!")),
                             (413, plausible(http, body=" " * 70000))):
        assert response.status == status, response
        assert left(response) == 8, response


def test_by_site_the_events_say_whose(start):
    http = start("10/3600s", "site").client()
    assert left(http.post([{**EVENT, "site": "a"}] * 4, headers={"Idempotency-Key": "k"})) == 6
    assert left(http.post([{**EVENT, "site": "a"}] * 4, headers={"Idempotency-Key": "k"})) == 6
    assert left(http.post([{**EVENT, "site": "b"}, {**EVENT, "site": "a"}, {"site": "a"}], strict=1)) == 6
    assert left(plausible(http, "engagement", d="a")) == left(plausible(http, headers=BOT, d="b,a")) == 6
    assert left(plausible(http, "engagement", d="b")) == 10
    assert left(http.post([])) == left(http.post("[")) == 10  # of no site: the default one's
    assert left(http.post([EVENT])) == 9
    assert left(http.post([])) == left(http.post("[")) == 9


def test_who_is_not_known_is_not_limited(start, directory):
    directory.mkdir(exist_ok=True)
    (directory / "tokens").write_text("".join(token_line(t, f"ingest {t}") for t in "xy"))
    (directory / "tallyd.conf").write_text("site.open.origins = https://a.example\nsite.closed.tz = UTC\n")
    http = start("10/3600s", "token", "--tokens", directory / "tokens", "--config", directory / "tallyd.conf").client()
    assert left(http.post([EVENT], headers={"Authorization": "Bearer x"})) == 9
    assert left(http.post([{}], headers={"Authorization": "Bearer x"})) == 9
    assert left(http.post([{}], headers={"Authorization": "Bearer y"})) == 10
    for response in (http.post([EVENT]), http.get("/pixel.gif", page="/"), http.post([EVENT], headers={"Authorization": "Bearer z"})):
        assert response.status == 401 and response.headers["RateLimit"] is None, response
    page = {**BROWSER, "Origin": "https://a.example"}  # needs no token for one site, and is nobody at another
    for site, told in (("open", True), ("closed", False)):
        response = http.request("GET", f"/pixel.gif?page=/&site={site}", headers=page)
        assert (response.status, response.headers["RateLimit"] is not None) == ((202, True) if told else (401, False)), response


def test_nothing_else_is_told(start):
    http = start("10/3600s").client()
    for method, path in (("GET", "/events"), ("GET", "/uv"), ("GET", "/tally.js"), ("GET", "/nothing"), ("POST", "/pixel.gif")):
        response = http.request(method, path)
        assert response.headers["RateLimit"] is None and response.headers["RateLimit-Policy"] is None, (path, response)


def test_without_a_guard_nothing_is_told(start_redis, start_tallyd):
    http = start_tallyd(redis=start_redis()).client()
    for response in (http.post([EVENT]), http.post([]), http.post("["), http.get("/pixel.gif", page="/")):
        assert response.headers["RateLimit"] is None and response.headers["RateLimit-Policy"] is None


def test_a_503_tells_no_time_that_is_later_than_its_retry_after(start, start_redis):
    redis = start_redis()
    http = start("10/3600s", "token", "--request-timeout", "2s", redis=redis).client()
    assert left(http.post([EVENT] * 4)) == 6
    redis.kill()
    refused = None

    def unavailable():
        nonlocal refused
        refused = http.post([EVENT])
        return refused.status == 503

    wait_until(unavailable, "Redis is missed")
    assert refused.headers["Retry-After"] == "1"
    assert re.fullmatch(r'"ingest";r=\d+', refused.headers["RateLimit"]), refused.headers["RateLimit"]
