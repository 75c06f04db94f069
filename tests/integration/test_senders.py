"""What browsers send: /pixel.gif, /api/event, /tally.js; whose address it is, and who is not counted."""

import json

import pytest

from lib.client import query
from lib.process import ROOT
from lib.raw import Raw

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
GIF = b"GIF89a\x01\x00\x01\x00"
TALLYD_ARGS = ("--trusted-proxies", "127.0.0.1, 10.0.0.0/8", "--cors-origins", "https://a.example,https://b.example:8443")


def pixel(http, status=202, headers=None, **params):
    response = http.request("GET", "/pixel.gif" + query(params), headers={"User-Agent": FIREFOX, **(headers or {})})
    assert response.status == status, response
    assert response.headers["Content-Type"] == "image/gif" and response.headers["Cache-Control"] == "no-store"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"  # else pages that isolate themselves show no image
    assert len(response.body) == 43 and response.body.startswith(GIF) and response.body.endswith(b";")
    return response.headers["X-Tallyd"]


def view(http, site, status=202, headers=None, kind="text/plain", **members):
    body = {"n": "pageview", "u": "https://example.org/a?b=c#d", "d": site, "r": None, **members}
    response = http.request("POST", "/api/event", json.dumps(body), {"Content-Type": kind, "User-Agent": FIREFOX, **(headers or {})})
    assert response.status == status, response
    if status == 202:
        assert response.body == b"ok"
    return response


def figures(http, site, **params):
    return [http.count(metric, site=site, from_="now-1h", **params) for metric in ("pv", "uv", "ips", "visits")]


def from_(*fields):
    return {"X-Forwarded-For": ", ".join(fields)}


# The pixel


def test_a_pixel_is_a_page_view_of_who_asks(http, site):
    for _ in range(2):
        assert pixel(http, page="/a b/ä", site=site, headers=from_("192.0.2.1")) == "accepted"
    assert pixel(http, page="/", site=site, utm_source="x", headers=from_("192.0.2.2")) == "accepted"
    assert figures(http, site) == [3, 2, 2, 2]
    assert figures(http, site, page="/a b/ä") == [2, 1, 1, 1]


def test_a_pixel_with_a_user(http, site):
    for address in ("192.0.2.1", "192.0.2.2"):
        pixel(http, page="/", user="u 1", site=site, headers=from_(address))
    assert figures(http, site) == [2, 1, 2, 1]
    assert http.question("/dau", site=site)["users"] == 1


def test_a_pixel_that_is_rejected_is_an_image_all_the_same(http, site):
    for params in ({}, {"page": ""}, {"page": "p" * 2049}, {"page": "a\n"}, {"page": "/", "user": ""}, {"page": "/", "site": "A"}):
        assert pixel(http, 422, **{"site": site, **params}) == "rejected"
    assert pixel(http, 422, page=["/", "/"], site=site) == "rejected"
    assert figures(http, site) == [0, 0, 0, 0]


@pytest.mark.parametrize("text, status", [("page=/%FF", 422), ("page=/%C3", 422), ("page=/%ED%A0%80", 422), ("page=/%00", 422),
                                          ("page=/%0A", 422), ("page=/&user=%FF", 422), ("page=/&user=%00", 422),
                                          ("page=/&page=/", 422), ("page=/&user=a&user=a", 422), ("page=/&user=a&user=", 422),
                                          ("page=/&site=b", 422), ("page=/%", 400), ("page=/%4", 400), ("page=/%zz", 400),
                                          ("page=/&utm=%zz&utm=%FF", 202), ("%zz=1&page=/", 202), ("page=/%C3%A9", 202)])
def test_a_pixel_has_the_status_of_post_events(http, site, text, status):
    response = http.request("GET", f"/pixel.gif?site={site}&{text}", headers={"User-Agent": FIREFOX})
    assert response.status == status, response
    assert response.headers["X-Tallyd"] == ("accepted" if status == 202 else "rejected") and len(response.body) == 43
    assert http.count("pv", site=site, from_="now-1h") == (status == 202)


@pytest.mark.parametrize("name", ["X-Original-URI", "X-Forwarded-Uri"])
def test_a_trusted_proxy_says_the_page(tallyd, http, start_tallyd, redis, site, name):
    """Its own peer is trusted here.  `page` goes first, a field that is there twice is nobody's, and the rules for a page hold."""
    for uri, status in (("/a?page=/b&user=u", 202), ("/%C3%A9", 202), ("?x", 422), ("", 422), ("/" + "a" * 2048, 422)):
        assert pixel(http, status, site=site, headers={name: uri, **from_("192.0.2.1")}) == ("accepted" if status == 202 else "rejected")
    assert pixel(http, page="/named", site=site, headers={name: "/a"}) == "accepted"
    with Raw(tallyd.port) as raw:
        raw.send(f"GET /pixel.gif?site={site} HTTP/1.1\r\nHost: x\r\nUser-Agent: {FIREFOX}\r\n{name}: /a\r\n{name}: /b\r\n\r\n")
        assert raw.receive()[0] == 422
    assert [figures(http, site, page=page)[0] for page in ("/a", "/%C3%A9", "/named")] == [1, 1, 1]
    assert figures(http, site)[:2] == [3, 2]
    stranger = start_tallyd("--trusted-proxies", "10.0.0.0/8", redis=redis).client()
    assert pixel(stranger, 422, site=site, headers={name: "/a"}) == "rejected"


@pytest.mark.parametrize("host, source", [(b"b\xff\xfe.example", "(none)"), (b"b\xc3.example", "(none)"),
                                          (b"b\xc3\xa9.example", "b\u00e9.example")])
def test_the_referer_of_a_mirrored_request_has_any_bytes(tallyd, http, site, host, source):
    """What cannot be said in an answer is no source; the values still add up to the page views."""
    with Raw(tallyd.port) as raw:
        raw.send(f"GET /pixel.gif?site={site} HTTP/1.1\r\nHost: x\r\nUser-Agent: {FIREFOX}\r\nX-Original-URI: /a\r\n".encode()
                 + b"Referer: https://" + host + b"/\r\n\r\n")
        assert raw.receive()[0] == 202
    answer = http.question("/breakdown", site=site, by="source", from_="now-1h")
    assert [(row["value"], row["pv"]) for row in answer["rows"]] == [(source, 1)] and answer["total"] == 1


def test_a_head_of_the_pixel_tells_and_does_not_count(start_tallyd, redis, site):
    http = start_tallyd("--ingest-limit", "2/1h", "--ingest-limit-by", "site", redis=redis).client()

    def head(text="", agent=FIREFOX):
        response = http.request("HEAD", f"/pixel.gif?page=/&site={site}{text}", headers={"User-Agent": agent})
        assert response.body == b"" and response.headers["Content-Length"] == "43"
        assert response.headers["Content-Type"] == "image/gif" and response.headers["Cache-Control"] == "no-store"
        return response.status, response.headers["X-Tallyd"], response.headers["RateLimit"].split(";")[1]

    for _ in range(3):
        assert head() == (202, "accepted", "r=2")
    assert head("&user=") == (422, "rejected", "r=2")
    assert head(agent=GOOGLEBOT) == (202, "dropped", "r=2")
    assert pixel(http, page="/", site=site) == pixel(http, page="/", site=site) == "accepted"
    assert pixel(http, 429, page="/", site=site) == "limited"
    assert head() == (429, "limited", "r=0")
    assert figures(http, site)[0] == 2
    metrics = http.metrics()
    assert metrics['tallyd_events_dropped_total{reason="robot"}'] == 0
    assert metrics['tallyd_requests_rejected_total{reason="limited"}'] == 1
    assert metrics["tallyd_events_accepted_total"] == 2


def test_a_pixel_needs_its_token_and_its_site(redis, start_tallyd, site, directory):
    directory.mkdir(exist_ok=True)
    tokens = directory / "tokens"
    # sha256 of "i" and "r"
    tokens.write_text(f"de7d1b721a1e0632b7cf04edf5032c8ecffa9f9a08492152b926f1a5a7e765d7 ingest site={site} i\n"
                      "454349e422f05297191ead13e21d3db520e5abef52055e4964b82fb213f593a1 read r\n")
    http = start_tallyd("--tokens", tokens, redis=redis).client()
    tokens.unlink()
    assert pixel(http, 401, page="/", site=site) == "rejected"
    assert pixel(http, 403, page="/", site=site, headers={"Authorization": "Bearer r"}) == "rejected"
    assert pixel(http, 403, page="/", headers={"Authorization": "Bearer i"}) == "rejected"
    assert pixel(http, page="/", site=site, headers={"Authorization": "Bearer i"}) == "accepted"
    view(http, site + ",other", 403, {"Authorization": "Bearer i"})
    view(http, site, 202, {"Authorization": "Bearer i"})
    view(http, "other", 403, {"Authorization": "Bearer i"}, n="Signup")
    assert http.request("GET", "/tally.js").status == 200


def test_no_redis_no_acknowledgement(start_redis, start_tallyd):
    redis = start_redis()
    http = start_tallyd("--request-timeout", "1s", redis=redis).client()
    redis.kill()
    assert pixel(http, 503, page="/") == "unavailable"
    assert http.request("HEAD", "/pixel.gif?page=/", headers={"User-Agent": FIREFOX}).status == 503
    response = view(http, "s", 503)
    assert response.headers["Content-Type"] == "application/problem+json" and response.headers["Retry-After"]


@pytest.mark.parametrize("by, site_too", [("ip", False), ("site", True)])
def test_the_guard_is_before_browsers_too(start_tallyd, redis, site, by, site_too):
    """The limit is the client's own, not the proxy's."""
    http = start_tallyd("--ingest-limit", "2/1h", "--ingest-limit-by", by, "--trusted-proxies", "127.0.0.1", redis=redis).client()
    base = f"203.0.113.{len(site) % 200}"
    assert pixel(http, page="/", site=site, headers=from_(base)) == "accepted"
    response = view(http, site, 202, from_(base))
    assert response.headers["RateLimit-Policy"] == '"ingest";q=2;w=3600'
    assert pixel(http, 429, page="/", site=site, headers=from_(base)) == "limited"
    assert view(http, site, 429, from_(base)).headers["Retry-After"]
    other = from_("203.0.113.250")
    assert pixel(http, 429 if site_too else 202, page="/", site=site, headers=other) == ("limited" if site_too else "accepted")
    assert http.count("pv", site=site, from_="now-1h") == (2 if site_too else 3)
    assert http.metric('tallyd_requests_rejected_total{reason="limited"}') == (3 if site_too else 2)


# Plausible's event


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/plain;charset=UTF-8"])
def test_a_tracker_is_understood(http, site, kind):
    view(http, site, kind=kind, headers=from_("192.0.2.1"))
    assert figures(http, site) == figures(http, site, page="/a") == [1, 1, 1, 1]


def test_long_names_and_several_domains(http, site):
    body = {"name": "pageview", "url": "https://example.org", "domain": f"{site},{site.upper()},{site}.all", "props": {"a": 1}}
    assert http.request("POST", "/api/event", json.dumps(body)).status == 202
    assert figures(http, site, page="/") == figures(http, site + ".all", page="/") == [1, 1, 1, 1]


def test_what_is_no_page_view_counts_nothing_and_says_so(http, site):
    before = http.metric('tallyd_events_dropped_total{reason="engagement"}')
    assert view(http, site, n="engagement", sd=10, e=3000).headers["X-Plausible-Dropped"] == "1"
    assert http.metric('tallyd_events_dropped_total{reason="engagement"}') == before + 1
    for name in ("Signup", "404", "Pageview", "pageview"):
        assert view(http, site, n=name).headers["X-Plausible-Dropped"] is None
    assert figures(http, site) == [1, 1, 1, 1]


def test_faults_are_named_as_plausible_does(http, site):
    for body, member in ((b"", "request"), (b"[1]", "request"), (b"{", "request"), (b"{}", "name"),
                         (b'{"n":"x","u":"/a","d":"e"}', "url"), (b'{"n":"x","u":"https://x","d":"a b"}', "domain")):
        response = http.request("POST", "/api/event", body)
        assert response.status == 400 and list(response.json["errors"]) == [member], response
        assert response.headers["Content-Type"] == "application/json"
        assert all(isinstance(text, str) for text in response.json["errors"][member])
    assert figures(http, site) == [0, 0, 0, 0]


# Whose address


def test_the_client_is_the_last_address_that_is_not_trusted(tallyd, http, site):
    """127.0.0.1 and 10.0.0.0/8 are; several fields are one list."""
    for fields in (("6.6.6.6", "192.0.2.1"), ("6.6.6.7", "192.0.2.1", "10.1.2.3"), ("192.0.2.1:4711", "127.0.0.1")):
        pixel(http, page="/", site=site, headers=from_(*fields))
    with Raw(tallyd.port) as raw:
        raw.send(f"GET /pixel.gif?page=/&site={site} HTTP/1.1\r\nHost: x\r\nUser-Agent: {FIREFOX}\r\n"
                 "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 10.0.0.1\r\n\r\n")
        assert raw.receive()[0] == 202
    assert figures(http, site) == [4, 1, 1, 1]


def test_without_trust_the_header_is_nothing(start_tallyd, redis, site):
    http = start_tallyd("--trusted-proxies", "10.0.0.0/8", redis=redis).client()
    for i in range(3):
        pixel(http, page="/", site=site, headers=from_(f"192.0.2.{i}"))
        view(http, site, headers=from_(f"192.0.2.{i}"))
    assert figures(http, site)[2] == 1


# Who is not counted


def test_known_bots_are_not_counted_but_by_a_counter(http, site):
    name = 'tallyd_events_dropped_total{reason="robot"}'
    before = http.metric(name)
    assert pixel(http, page="/", site=site, headers={"User-Agent": GOOGLEBOT}) == "dropped"
    assert view(http, site, headers={"User-Agent": GOOGLEBOT}).headers["X-Plausible-Dropped"] == "1"
    assert view(http, f"{site},x", headers={"User-Agent": GOOGLEBOT}).headers["X-Plausible-Dropped"] == "2"
    assert http.metric(name) == before + 4
    assert figures(http, site) == [0, 0, 0, 0]
    http.accept({"page": "/", "site": site, "ip": "192.0.2.1", "ua": GOOGLEBOT})  # a backend has decided
    assert figures(http, site)[0] == 1


@pytest.mark.parametrize("value, counts", [("prefetch", False), ("prefetch;prerender", False), ("prefetch;anonymous-client-ip", False),
                                           ("prefetched", True), ("", True), ("x;prefetch", True)])
def test_a_page_that_is_fetched_ahead_is_no_view(http, site, value, counts):
    before = http.metric('tallyd_events_dropped_total{reason="prefetch"}')
    headers = {"Sec-Purpose": value}
    assert pixel(http, page="/", site=site, headers=headers) == ("accepted" if counts else "dropped")
    assert view(http, site, headers=headers).headers["X-Plausible-Dropped"] == (None if counts else "1")
    assert figures(http, site)[0] == (2 if counts else 0)
    assert http.metric('tallyd_events_dropped_total{reason="prefetch"}') == before + (0 if counts else 2)


def test_ones_own_visits_are_dropped(start_tallyd, redis, site):
    http = start_tallyd("--ignore-ip", "203.0.113.0/24", "--trusted-proxies", "127.0.0.1", redis=redis).client()
    for address, counts in (("203.0.113.7", False), ("203.0.114.7", True)):
        headers = from_(address)
        assert pixel(http, page="/", site=site, headers=headers) == ("accepted" if counts else "dropped")
        assert view(http, site, headers=headers).headers["X-Plausible-Dropped"] == (None if counts else "1")
    assert figures(http, site)[0] == 2 and http.metric('tallyd_events_dropped_total{reason="ignored"}') == 2


def test_do_not_track(start_tallyd, redis, site):
    polite = start_tallyd("--respect-dnt", redis=redis, name="polite").client()
    plain = start_tallyd(redis=redis, name="plain").client()
    for headers in ({"DNT": "1"}, {"Sec-GPC": "1"}):
        assert pixel(polite, page="/", site=site, headers=headers) == "dropped"
        assert view(polite, site, headers=headers).headers["X-Plausible-Dropped"] == "1"
        assert pixel(plain, page="/", site=site, headers=headers) == "accepted"
    assert polite.metric('tallyd_events_dropped_total{reason="dnt"}') == 4
    assert pixel(polite, page="/", site=site, headers={"DNT": "0"}) == "accepted"
    assert figures(plain, site)[0] == 3
    scripts = [c.get("/tally.js").body for c in (plain, polite)]
    assert [b"globalPrivacyControl" in s and b"doNotTrack" in s for s in scripts] == [False, True]
    source = (ROOT / "handlers/web/tally.js").read_bytes()
    asks = [line for line in source.splitlines(keepends=True) if b"doNotTrack" in line]
    assert len(asks) == 1 and scripts == [source.replace(asks[0], b""), source]
    assert all(len(s) < 1024 for s in scripts)


def test_the_script_may_be_kept_and_takes_any_query(http):
    response = http.get("/tally.js", v=2)
    assert response.status == 200 and response.headers["Content-Type"] == "text/javascript; charset=utf-8"
    assert "max-age" in response.headers["Cache-Control"]
    for known, status in ((response.headers["ETag"], 304), ('"other"', 200)):
        again = http.request("GET", "/tally.js", headers={"If-None-Match": known})
        assert again.status == status and again.body == (response.body if status == 200 else b"")
        for name in ("ETag", "Cache-Control", "Cross-Origin-Resource-Policy"):
            assert again.headers[name] == response.headers[name]


# Other origins

PREFLIGHT = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}


def cors(response):
    return {name.lower().removeprefix("access-control-"): value for name, value in response.headers.items()
            if name.lower().startswith("access-control-")}


def test_answers_may_be_read_by_pages_that_are_listed(http):
    for origin, allowed in (("https://a.example", True), ("https://b.example:8443", True), ("https://b.example", False),
                            ("https://a.example.org", False), ("null", False)):
        for path, status in (("/pv", 200), ("/pv?x=1", 400), ("/nothing", 404), ("/pixel.gif?page=/", 202)):
            response = http.request("GET", path, headers={"Origin": origin})
            assert response.status == status
            assert "Origin" in response.headers.get_all("Vary")
            assert response.headers["Access-Control-Allow-Origin"] == (origin if allowed else None)
            credentials = response.headers["Access-Control-Allow-Credentials"]
            assert credentials == ("true" if allowed and path.startswith("/pixel") else None)
    assert sorted(http.get("/pv").headers.get_all("Vary")) == ["Accept", "Origin"] and cors(http.get("/pv")) == {}


def test_preflights(http, start_tallyd, redis):
    response = http.request("OPTIONS", "/events", headers=PREFLIGHT)
    assert response.status == 204 and response.body == b"" and response.headers["Vary"] == "Origin"
    allowed = cors(response)
    assert (allowed["allow-origin"], allowed["allow-methods"]) == ("https://a.example", "POST")
    # What openapi.yaml has of header fields that a page's script may set, and must ask for.
    assert set(allowed["allow-headers"].lower().split(", ")) == {
        "authorization", "content-encoding", "content-type", "idempotency-key", "x-request-id"}
    assert cors(http.request("OPTIONS", "/users/u/activity", headers=PREFLIGHT))["allow-methods"] == "GET, HEAD, DELETE"
    assert http.request("OPTIONS", "/nothing", headers=PREFLIGHT).status == 404
    assert "allow-origin" not in cors(http.request("OPTIONS", "/events", headers={**PREFLIGHT, "Origin": "https://c.example"}))
    assert http.request("OPTIONS", "/events").status == 405  # no preflight
    off = start_tallyd(redis=redis, name="off").client()
    response = off.request("OPTIONS", "/events", headers=PREFLIGHT)
    assert response.status == 405 and cors(response) == {} and response.headers["Vary"] is None


def test_all_origins(start_tallyd, redis):
    http = start_tallyd("--cors-origins", "*", redis=redis).client()
    response = http.request("GET", "/pv", headers={"Origin": "https://c.example"})
    assert cors(response)["allow-origin"] == "*" and "allow-credentials" not in cors(response)
    response = view(http, "s", headers={"Origin": "https://c.example"})
    assert (cors(response)["allow-origin"], cors(response)["allow-credentials"]) == ("https://c.example", "true")


@pytest.mark.parametrize("option, value", [("trusted-proxies", "localhost"), ("trusted-proxies", "10.0.0.0/33"),
                                           ("cors-origins", "example.org"), ("ignore-ip", "office"),
                                           ("cors-origins", "https://a.example/"), ("ignore-ip", "10.0.0.1,"),
                                           ("deny-sources", "a.example,"), ("dimensions", "os,")])
def test_lists_that_are_none(start_tallyd, redis, option, value):
    tallyd = start_tallyd(f"--{option}", value, redis=redis, wait_ready=False)
    assert tallyd.wait() == 2
    assert option in tallyd.log_text() and value in tallyd.log_text()
