"""Breakdowns by dimension, against counts made here: windows, rollups, every way in, filters, real logs."""

import collections
import os
import random
import re
import subprocess
import urllib.parse

import pytest

from lib import access_log
from lib.clock import epoch, rfc3339
from lib.cluster import running
from lib.process import Tallyd, run, short_directory
from lib.truth import is_close
from lib.world import FOREVER, World

CHROME = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Safari/537.36"
IPHONE = ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) "
          "Version/17.1 Mobile/15E148 Safari/604.1")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:121.0) Gecko/20100101 Firefox/121.0"
AGENTS = {CHROME: ("Chrome", "Windows", "desktop"), IPHONE: ("Safari", "iOS", "mobile"),
          FIREFOX: ("Firefox", "Linux", "desktop"), "curl/8.0": ("(none)",) * 3, None: ("(none)",) * 3}
REFERRERS = {"https://www.google.de/search?q=x": "google", "https://t.co/abc": "twitter", "": "(none)",
             "https://www.example.net:8443/a": "example.net", "android-app://com.slack/": "slack",
             "/local": "(none)", None: "(none)"}
DEFAULT = ("source", "utm_source", "utm_medium", "utm_campaign", "browser", "os", "device", "country")
ALL = DEFAULT + ("utm_term", "utm_content", "language")


def table(http, site, by, **params):
    params = {"from_": "now-1h", "limit": 1000, **params}
    answer = http.question("/breakdown", site=site, by=by, **params)
    return {row["value"]: row["pv"] for row in answer["rows"]}


def rows(http, site, by, **params):
    return http.question("/breakdown", site=site, by=by, **{"from_": "now-1h", "limit": 1000, **params})


# What the values are


def test_each_dimension_of_one_page_view(http, site):
    http.accept([{"site": site, "page": "/a?utm_source=news&utm_medium=e%20mail&utm_campaign=may", "ip": "192.0.2.1", "ua": CHROME,
                  "referrer": "https://www.google.de/", "country": "de", "language": "de-AT"}])
    assert {by: table(http, site, by) for by in DEFAULT} == {
        "source": {"news": 1}, "utm_source": {"news": 1}, "utm_medium": {"e mail": 1}, "utm_campaign": {"may": 1},
        "browser": {"Chrome": 1}, "os": {"Windows": 1}, "device": {"desktop": 1}, "country": {"DE": 1}}
    assert table(http, site, "language") == table(http, site, "utm_term") == {}  # not counted, unless asked for
    told = {by: rows(http, site, by).get("counted", True) for by in (*ALL, "prop:plan", "event", "section")}
    assert {by for by, counted in told.items() if not counted} == {"utm_term", "utm_content", "language", "prop:plan"}


def test_members_come_before_the_query(http, site):
    http.accept([{"site": site, "page": "/?utm_source=a&utm_medium=b", "utm_source": "c", "utm_campaign": "", "country": None}])
    assert table(http, site, "utm_source") == {"c": 1} and table(http, site, "utm_medium") == {"b": 1}
    assert table(http, site, "utm_campaign") == table(http, site, "country") == {"(none)": 1}


def test_a_sites_own_hosts_are_no_source(http, site):
    own = site + ".example.org"
    http.accept([{"site": own, "page": "/", "referrer": r} for r in (f"https://{own}/", f"https://www.{own}/x", "https://other.example/")])
    assert table(http, own, "source") == {"(none)": 2, "other.example": 1}
    http.accept([{"site": site, "page": "https://shop.example/a", "referrer": "https://www.shop.example/b"}])
    assert table(http, site, "source") == {"(none)": 1}


def test_named_events_and_activity_are_in_no_dimension(http, site):
    http.accept([{"site": site, "event": "signup", "user": "u", "referrer": "https://a.example/", "country": "FR"},
                 {"site": site, "user": "u", "actions": ["x"], "country": "FR"}])
    assert all(table(http, site, by) == {} for by in DEFAULT)
    assert table(http, site, "event") == {"signup": 1}


@pytest.mark.parametrize("member, value", [
    ("utm_source", 1), ("utm_term", "x" * 257), ("utm_medium", "a\u0001b"), ("country", "DEU"), ("country", "D1"), ("country", 7),
    ("language", []), ("props", "x"), ("props", [1]), ("referrer", 1)])
def test_a_bad_member_rejects_its_event(http, site, member, value):
    answer = http.post([{"site": site, "page": "/", member: value}])
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/" + member


@pytest.mark.parametrize("params, status, parameter", [
    ({"by": "colour"}, 400, "by"), ({}, 400, "by"), ({"by": "prop"}, 400, "by"), ({"by": "prop:"}, 400, "by"),
    ({"by": "prop:a b"}, 400, "by"), ({"by": "browser", "metric": "uv"}, 422, "metric"), ({"by": "source", "metric": "x"}, 400, "metric"),
    ({"by": "source", "limit": "0"}, 400, "limit"), ({"by": "source", "page": "/"}, 400, "page")])
def test_questions_that_cannot_be_answered(http, params, status, parameter):
    answer = http.get("/breakdown", **params)
    assert answer.status == status and answer.json["errors"][0]["parameter"] == parameter


def test_the_shape_of_an_answer(http, site):
    http.accept([{"site": site, "page": "/", "ip": "192.0.2.1", "referrer": "https://a.example/"}] * 3)
    answer = rows(http, site, "source", limit=1)
    assert answer["by"] == "source" and answer["total"] == 3 and answer["other"] == 0 and "capped" not in answer
    row, = answer["rows"]
    assert row == {"value": "a.example", "pv": 3, "uv": 1, "error": row["error"], "at_most": 3}
    assert rows(http, site, "browser")["rows"] == [{"value": "(none)", "pv": 3, "at_most": 3}]
    series = rows(http, site, "source", step="1h")["rows"][0]["series"]
    assert sum(p["pv"] for p in series) == 3
    text = http.request("GET", f"/breakdown?site={site}&by=os", headers={"Accept": "text/csv"}).body.decode()
    assert text == f"site,value,pv,at_most\r\n{site},(none),3,3\r\n"


# Against the model, over days, rollups and processes


def random_event(rng, site, at):
    event = {"site": site, "page": rng.choice(["/a", "/b?utm_term=t"]), "ts": at, "ip": f"192.0.2.{rng.randrange(40)}",
             "ua": rng.choice(list(AGENTS)), "referrer": rng.choice(list(REFERRERS)),
             "country": rng.choice(["DE", "fr", None]), "language": rng.choice(["en-US", "de", "*", None])}
    if rng.random() < 0.3:
        event["utm_source"] = rng.choice(["x", "y"])
    return {name: value for name, value in event.items() if value is not None}


def values_of(event):
    """{dimension: value}, made in the most naive way."""
    browser, system, device = AGENTS[event.get("ua")]
    return {"source": event.get("utm_source") or REFERRERS[event.get("referrer")], "utm_source": event.get("utm_source", "(none)"),
            "utm_medium": "(none)", "utm_campaign": "(none)", "utm_content": "(none)",
            "utm_term": "t" if "utm_term" in event["page"] else "(none)",
            "browser": browser, "os": system, "device": device, "country": event["country"].upper() if "country" in event else "(none)",
            "language": {"en-US": "en", "de": "de"}.get(event.get("language"), "(none)")}


def expect(world, events, from_, to, by, with_uv):
    counted, visitors = collections.Counter(), collections.defaultdict(set)
    for event in events:
        if epoch(from_) <= event["ts"] < epoch(to):
            value = values_of(event)[by]
            counted[value] += 1
            visitors[value].add((event["ip"], event.get("ua")))
    for tallyd in world.tallyds:
        answer = tallyd.client().question("/breakdown", site="s", by=by, limit=1000, from_=rfc3339(epoch(from_)), to=rfc3339(epoch(to)))
        assert {r["value"]: r["pv"] for r in answer["rows"]} == counted, (by, from_, to)
        assert answer["total"] == sum(counted.values()) and all(r["at_most"] == r["pv"] for r in answer["rows"])
        assert all(("uv" in r) == with_uv for r in answer["rows"])
        assert not with_uv or all(is_close(r["uv"], len(visitors[r["value"]])) for r in answer["rows"])


@pytest.mark.some(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_random_histories(seed):
    rng = random.Random(seed)
    world = World("2026-03-10 09:00", *FOREVER, "--dimensions", ",".join(ALL), "--visitors-by", "source,browser,country",
                  "--partitions", "4")
    try:
        world.add_tallyd()
        events = []
        for day in ("10", "11", "12"):
            world.move(f"2026-03-{day} 12:00")
            for tallyd in world.tallyds:
                late = [random_event(rng, "s", epoch(f"2026-03-{day} 09:00") - rng.randrange(0, 6 * 3600)) for _ in range(150)]
                world.post(late, http=tallyd.client())
                events += late
            for window in ((f"2026-03-{day} 03:00", f"2026-03-{day} 12:00"), (f"2026-03-{day} 08:17", f"2026-03-{day} 08:53"),
                           ("2026-03-10 00:00", f"2026-03-{day} 12:00")):
                for by in ALL:
                    expect(world, events, *window, by, by in ("source", "browser", "country"))
    finally:
        world.close()


# Every way in


def test_browsers(tmp_path):
    config = tmp_path / "tallyd.conf"
    config.write_text("site.blog.example.props = plan,variant\ndimensions = source,utm_campaign,browser,country,language\n"
                      "trusted-proxies = 127.0.0.1\ncountry-header = CF-IPCountry\n")
    with running(Tallyd("--config", config)) as tallyd:
        http = tallyd.client()
        headers = {"User-Agent": FIREFOX, "Accept-Language": "fr-CH, fr;q=0.9", "CF-IPCountry": "ch",
                   "X-Forwarded-For": "192.0.2.9"}
        body = ('{"n":"pageview","u":"https://blog.example/a?utm_campaign=x","d":"blog.example","r":"https://www.bing.com/",'
                '"p":{"plan":"pro","variant":2,"other":"no"}}')
        assert http.request("POST", "/api/event", body, {**headers, "Content-Type": "text/plain"}).status == 202
        assert http.request("GET", "/pixel.gif?site=blog.example&page=/b&utm_campaign=y&referrer=https://a.example/", None, headers).status == 202
        assert {by: table(http, "blog.example", by) for by in ("source", "utm_campaign", "browser", "country", "language")} == {
            "source": {"bing": 1, "a.example": 1}, "utm_campaign": {"x": 1, "y": 1}, "browser": {"Firefox": 2},
            "country": {"CH": 2}, "language": {"fr": 2}}
        assert table(http, "blog.example", "prop:plan") == {"pro": 1, "(none)": 1}
        assert [rows(http, "blog.example", by).get("counted") for by in ("prop:variant", "prop:other", "os")] == [None, False, False]
        assert table(http, "blog.example", "prop:variant") == {"2": 1, "(none)": 1}
        assert table(http, "blog.example", "prop:other") == {}


def test_a_stranger_says_no_country(tmp_path):
    with running(Tallyd("--country-header", "CF-IPCountry")) as tallyd:
        http = tallyd.client()
        assert http.request("GET", "/pixel.gif?page=/", None, {"User-Agent": FIREFOX, "CF-IPCountry": "CH"}).status == 202
        assert table(http, "default", "country") == {"(none)": 1}


def test_a_proxy_that_knows_no_country(countries):
    """Some write what is no country's code: the address tells then."""
    with running(Tallyd("--geo-db", countries, "--country-header", "CF-IPCountry", "--trusted-proxies", "127.0.0.1")) as tallyd:
        http = tallyd.client()
        for told in ("T1", "unknown", "ch"):
            headers = {"User-Agent": FIREFOX, "CF-IPCountry": told, "X-Forwarded-For": "192.0.2.1"}
            assert http.request("GET", "/pixel.gif?page=/", None, headers).status == 202
        assert table(http, "default", "country") == {"DE": 2, "CH": 1}


GEO = r"""
use MaxMind::DB::Writer::Tree;
my %types = (country => 'map', iso_code => 'utf8_string');
my $tree = MaxMind::DB::Writer::Tree->new(ip_version => 6, record_size => 24, database_type => 'Test', languages => ['en'],
    description => {en => 'test'}, map_key_type_callback => sub { $types{$_[0]} }, remove_reserved_networks => 0);
$tree->insert_network('192.0.2.0/25', {country => {iso_code => 'DE'}});
$tree->insert_network('192.0.2.128/26', {country => {iso_code => 'x\x01'}});
$tree->insert_network('2001:db8::/32', {country => {iso_code => 'JP'}});
open my $file, '>:raw', $ARGV[0] or die;
$tree->write_tree($file);
"""


@pytest.fixture
def countries(tmp_path):
    """A file for --geo-db."""
    path = tmp_path / "geo.mmdb"
    made = subprocess.run(["perl", "-e", GEO, path], capture_output=True, text=True)
    if made.returncode != 0 and "MaxMind/DB/Writer" in made.stderr:
        pytest.skip("libmaxmind-db-writer-perl is not here")
    assert made.returncode == 0, made.stderr
    return path


def test_countries_by_address(countries):
    with running(Tallyd("--geo-db", countries)) as tallyd:
        http = tallyd.client()
        http.accept([{"page": "/", "ip": ip, **more} for ip, more in (
            ("192.0.2.1", {}), ("::ffff:192.0.2.2", {}), ("2001:db8::1", {}), ("198.51.100.1", {}), ("192.0.2.129", {}),
            ("192.0.2.1", {"country": "fr"}))] + [{"page": "/", "user": "u"}])
        assert table(http, "default", "country") == {"DE": 2, "JP": 1, "FR": 1, "(none)": 3}


@pytest.mark.parametrize("becomes", [b"", b"half of a new one" * 10], ids=["cut", "written over"])
def test_a_file_of_countries_that_is_written_over(countries, becomes):
    """As cp and curl -o do, in place."""
    with running(Tallyd("--geo-db", countries)) as tallyd:
        http = tallyd.client()
        countries.write_bytes(becomes)
        http.accept([{"page": "/", "ip": ip} for ip in ("192.0.2.1", "2001:db8::1", "198.51.100.1")])
        assert table(http, "default", "country") == {"DE": 1, "JP": 1, "(none)": 1}


def test_a_file_without_countries_is_named(tmp_path):
    path = tmp_path / "geo.mmdb"
    path.write_bytes(b"no database")
    os.mkfifo(tmp_path / "pipe")
    for at, why in ((path, "metadata"), (tmp_path, "not a regular file"), (tmp_path / "pipe", "not a regular file"),
                    (tmp_path / "none", "No such file or directory"), (path / "below", "Not a directory")):
        done = run("serve", "--geo-db", at, "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
        assert done.returncode == 2 and f"--geo-db {at}: " in done.stderr and why in done.stderr, done.stderr


def test_segment(http, site):
    body = ('{"type":"page","userId":"u","properties":{"url":"https://a.example/x?utm_term=t","path":"/x"},"context":{"userAgent":"%s",'
            '"locale":"de-DE","campaign":{"source":"news","name":"may"},"page":{"referrer":"https://b.example/"}}}' % IPHONE)
    assert http.request("POST", f"/v1/page?site={site}", body, {"Content-Type": "application/json"}).status == 200
    assert table(http, site, "source") == table(http, site, "utm_source") == {"news": 1}
    assert table(http, site, "utm_campaign") == {"may": 1} and table(http, site, "os") == {"iOS": 1}


@pytest.mark.parametrize("properties, page, source", [
    ('"https://b.example/"', "{}", "b.example"), ('"https://b.example/"', '{"referrer":"https://c.example/"}', "c.example"),
    ('"https://b.example/"', '{"referrer":null}', "b.example"), ("7", "{}", "(none)"), ('{"a":"https://b.example/"}', "{}", "(none)")])
def test_segments_two_referrers(http, site, properties, page, source):
    body = '{"userId":"u","properties":{"url":"https://a.example/x","referrer":%s},"context":{"page":%s}}' % (properties, page)
    assert http.request("POST", f"/v1/page?site={site}", body, {"Content-Type": "application/json"}).status == 200
    assert table(http, site, "source") == {source: 1}


def test_switched_off(tmp_path):
    config = tmp_path / "tallyd.conf"
    config.write_text("dimensions = off\nsite.a.dimensions = os\nsite.a.visitors-by = os\ndeny-sources = spam.example\n"
                      "site.b.dimensions = source,utm_source\n")
    with running(Tallyd("--config", config)) as tallyd:
        http = tallyd.client()
        http.accept([{"site": s, "page": "/", "ip": "192.0.2.1", "ua": IPHONE, "referrer": "https://x.spam.example/",
                      "utm_source": u} for s in ("a", "b", "c") for u in (None, "spam.example", "ok")])
        assert all(table(http, "c", by) == {} for by in DEFAULT)
        assert table(http, "a", "os") == {"iOS": 3} and rows(http, "a", "os", metric="uv")["rows"][0]["uv"] == 1
        assert table(http, "b", "source") == table(http, "b", "utm_source") == {"(none)": 2, "ok": 1}
        http.accept({"site": "b", "page": "/", "referrer": "https://notspam.example/"})  # another's name, which ends the same
        assert table(http, "b", "source") == {"(none)": 2, "ok": 1, "notspam.example": 1}


@pytest.mark.parametrize("line", [
    "dimensions = colour", "visitors-by = source,,os", "site.a.props = a,b,c", "site.a.props = a b", "deny-sources = Spam.example",
    "country-header = a b", "max-values = -1", "page.1 = /a", "page.0 = /a -> /b", "page.101 = /a -> /b", "section.a b = /x",
    "geo-db = /nowhere/at/all.mmdb"])
def test_a_bad_option_is_named(tmp_path, line):
    config = tmp_path / "tallyd.conf"
    config.write_text(line + "\n")
    done = run("serve", "--config", config, "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    assert done.returncode == 2 and line.split(" ")[0] in done.stderr, done


# Pages: rules and sections


def test_sections_that_a_page_would_be_left_out_of(tmp_path):
    """A page is in 8 sections at most, and there are 100: more is an error, as a figure would lack it in silence."""
    config = tmp_path / "tallyd.conf"
    nested = ["/", *("/" + "a" * i for i in range(1, 8))]
    for prefixes, name in ((nested, None), ([*nested, "/b"], None), ([*nested, "/aaaaaaaa"], "s8"), (["/aaaaaaaa", *nested], "s0"),
                           ([f"/{i:03}" for i in range(100)], None), ([f"/{i:03}" for i in range(101)], "s100")):
        config.write_text("".join(f"section.s{i} = {prefix}\n" for i, prefix in enumerate(prefixes)))
        done = run("config", "--config", config)
        assert done.returncode == (2 if name else 0) and (name is None or f"section.{name}: " in done.stderr), done.stderr


def test_rules_make_one_page_of_many(tmp_path):
    config = tmp_path / "tallyd.conf"
    config.write_text("page.2 = /user/*/** -> /user/:id\npage.1 = /user/me -> /me\nsection.blog = /blog/\nsection.user = /user/\n")
    with running(Tallyd("--config", config)) as tallyd:
        http = tallyd.client()
        http.accept([{"page": p, "user": "u"} for p in ("/user/1", "/user/2/posts", "/user/me", "/blog/a", "/blog/b", "/c")])
        assert {r["page"]: r["pv"] for r in http.question("/pages", from_="now-1h")["pages"]} == {
            "/user/:id": 2, "/me": 1, "/blog/a": 1, "/blog/b": 1, "/c": 1}
        assert http.question("/seen", user="u", page="/user/:id")["seen"]


def test_a_section_is_one_true_union():
    world = World("2026-03-10 09:00", *FOREVER, "--config", section_config(), "--partitions", "4")
    try:
        rng, section = random.Random(5), []
        for day in ("10", "11"):
            world.move(f"2026-03-{day} 12:00")
            events = [{"site": "s", "page": rng.choice(["/blog/a", "/blog/b", "/blog", "/x"]), "ip": f"192.0.2.{rng.randrange(30)}",
                       "visitor": f"v{rng.randrange(60)}", "ts": at}
                      for at in sorted(epoch(f"2026-03-{day} 09:00") + rng.randrange(3 * 3600) for _ in range(300))]
            world.post(events)
            section = ["/blog/a", "/blog/b"]
            for window in (("2026-03-10 09:13", f"2026-03-{day} 11:42"), ("2026-03-10 00:00", f"2026-03-{day} 12:00")):
                from_s, to_s = (epoch(t) for t in window)
                expected = world.model.counts("s", from_s, to_s, section)
                answer = world.http.question("/stats", site="s", section="blog", from_=rfc3339(from_s), to=rfc3339(to_s))
                assert answer["sections"] == ["blog"] and answer["pages"] is None
                assert (answer["pv"], answer["visits"]) == (expected["pv"], expected["visits"])
                assert is_close(answer["uv"], expected["uv"]) and is_close(answer["ips"], expected["ips"])
                assert world.http.question("/visits", site="s", section="blog", from_=rfc3339(from_s), to=rfc3339(to_s))["visits"] == expected["visits"]
                rows = world.http.question("/breakdown", site="s", by="section", metric="uv", from_=rfc3339(from_s), to=rfc3339(to_s))
                assert [(r["value"], r["pv"], r["uv"], r["error"]) for r in rows["rows"]] == [("blog", answer["pv"], answer["uv"], answer["error"]["uv"])]
        assert world.http.question("/pages", site="s", from_="2026-03-10", to="2026-03-12")["total_pages"] == 4  # no section among them
    finally:
        world.close()


def test_sections_in_one_another_count_a_view_once(tmp_path):
    config = tmp_path / "tallyd.conf"
    config.write_text("section.post = /blog/post\nsection.blog = /blog/\nsection.same = /blog/\nsection.shop = /shop/\n")
    with running(Tallyd("--config", config)) as tallyd:
        http = tallyd.client()
        http.accept([{"page": p, "user": p} for p in ("/blog/post/1", "/blog/a", "/shop/", "/c")])
        for sections, n in ((["post"], 1), (["post", "blog"], 2), (["blog", "post", "same", "blog"], 2), (["post", "shop"], 2),
                            (["shop", "same", "blog", "post"], 3), (["post", "gone"], 1)):
            answer = http.question("/stats", section=sections, step="1h", from_="now-1h")
            assert answer["sections"] == sections
            assert [answer[f] for f in ("pv", "uv", "visits")] == [n, n, n], sections
            assert [http.count(m, section=sections) for m in ("pv", "uv", "visits")] == [n, n, n], sections
            assert sum(p["pv"] for p in answer["series"]) == n


def section_config():
    path = short_directory()
    path.mkdir(exist_ok=True)
    (path / "c").write_text("section.blog = /blog/\n")
    return path / "c"


@pytest.mark.parametrize("path, params, status, parameter", [
    ("/uv", {"section": "a", "page": "/"}, 400, "section"), ("/uv", {"section": "a", "event": "b"}, 400, "section"),
    ("/uv", {"section": "a b"}, 400, "section"), ("/uv", {"source": "a"}, 400, "source"), ("/visits", {"event": "a"}, 400, "event"),
    ("/overlap", {"source": "a"}, 400, "source"), ("/overlap", {"browser": "a", "page": "/"}, 422, "browser")])
def test_names_that_cannot_be_asked_for(http, path, params, status, parameter):
    answer = http.get(path, **params)
    assert answer.status == status and answer.json["errors"][0]["parameter"] == parameter


def holds(error, visitors):
    """One out of twenty intervals misses; so few visitors share at most one register of a sketch, but for one time in a thousand."""
    return error["low"] - 1 <= visitors <= error["high"] + 1


def test_who_came_from_where_and_saw_what(http, site):
    """Page views of a source and a page together are not counted; their visitors come from the overlap, with its error."""
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "referrer": "https://google.com/" if i < 60 else "https://a.example/",
                  "country": "DE" if i % 2 else "FR"} for i in range(100)] +
                [{"site": site, "page": "/pricing", "user": f"u{i}", "referrer": "https://google.com/"} for i in range(40, 60)])
    answer = http.question("/overlap", site=site, source="google", page="/pricing", from_="now-1h")
    assert answer["a"]["source"] == "google" and answer["b"]["page"] == "/pricing"
    assert is_close(answer["a"]["uv"], 60) and is_close(answer["b"]["uv"], 20)
    assert holds(answer["intersection"]["error"], 20)
    both = http.question("/overlap", site=site, source="google", country="DE", from_="now-1h")
    assert holds(both["intersection"]["error"], 30)


# Real logs, counted by others' rules


def browser_of(agent):
    for name, pattern in (("Edge", r"\bEdg(e|A|iOS)?/"), ("Opera", r"\bOPR/|\bOpera|\bOPT/|\bOPiOS/"), ("Samsung Internet", r"\bSamsungBrowser/"),
                          ("Yandex Browser", r"\bYaBrowser/"), ("Vivaldi", r"\bVivaldi/"), ("UC Browser", r"\bUCBrowser/|\bUCWEB/"),
                          ("DuckDuckGo", r"\bDuckDuckGo/|\bDdg/"), ("Brave", r"\bBrave"), ("SeaMonkey", r"\bSeaMonkey/"),
                          ("Firefox", r"\bFirefox/|\bFxiOS/|\bFocus/"), ("Internet Explorer", r"\bMSIE |\bTrident/"),
                          ("Chrome", r"\b(Headless)?Chrome/|\bCriOS/|\bChromium/")):
        if re.search(pattern, agent[:512]):
            return name
    if re.search(r"\bSafari/", agent):
        return "Android Browser" if re.search(r"\bAndroid", agent) else "Safari"
    return "Safari" if re.search(r"\bAppleWebKit/", agent) and re.search(r"\biP(hone|ad|od)", agent) else "(none)"


NETWORKS = (("google", r"(images\.)?google\.[a-z]{2,3}(\.[a-z]{2})?"), ("yandex", r"yandex\.[a-z.]{2,6}|ya\.ru"), ("bing", r"(cn\.)?bing\.com"),
            ("twitter", r"t\.co|twitter\.com|x\.com|mobile\.twitter\.com"), ("facebook", r"(l\.|m\.|lm\.)?facebook\.com|fb\.(com|me)"),
            ("reddit", r"(old\.|new\.|out\.|amp\.)?reddit\.com"), ("duckduckgo", r"(html\.)?duckduckgo\.com"), ("baidu", r"(m\.)?baidu\.com"),
            ("yahoo", r"(r\.)?search\.yahoo\.[a-z.]{2,6}|yahoo\.com"), ("linkedin", r"linkedin\.com|lnkd\.in"), ("vk", r"(m\.)?vk\.com"),
            ("youtube", r"(m\.)?youtube\.com|youtu\.be"), ("hacker news", r"news\.ycombinator\.com"), ("gmail", r"mail\.google\.com"),
            ("naver", r"(m\.)?(search\.)?naver\.com"), ("seznam", r"(search\.)?seznam\.cz"), ("startpage", r"startpage\.com"),
            ("ecosia", r"ecosia\.org"), ("pinterest", r"pinterest\.com|pin\.it"), ("sogou", r"sogou\.com"), ("qwant", r"qwant\.com"),
            ("telegram", r"t\.me|web\.telegram\.org"), ("discord", r"discord\.com"), ("instagram", r"(l\.)?instagram\.com"))


def source_of(referrer):
    url = urllib.parse.urlsplit(referrer) if re.match(r"(https?|android-app)://", referrer) else None
    host = re.sub(r"^www\.", "", re.sub(r":.*", "", url.netloc.lower())).rstrip(".") if url else ""
    if not re.fullmatch(r"[a-z0-9._-]+", host):
        return "(none)"
    return next((name for name, pattern in NETWORKS if re.fullmatch(pattern, host)), host)


@pytest.mark.parametrize("name", ["elastic_apache_logs"])
def test_a_real_log(name):
    log, _ = access_log.real(name)
    counted = {"source": collections.Counter(), "browser": collections.Counter()}
    for line in access_log.lines(log):
        event = access_log.parse(line)
        if isinstance(event, dict):
            counted["browser"][browser_of(event["ua"])] += 1
            match = access_log.LINE.match(line)
            query = urllib.parse.parse_qs(match[5].partition("?")[2].split(" ")[0])
            counted["source"][query["utm_source"][0] if "utm_source" in query else source_of(match[8])] += 1
    with running(Tallyd(*FOREVER, "--max-values", "0")) as tallyd:
        done = run("import", "--all", "--site", "log", "--url", tallyd.url, log, timeout_s=300)
        assert done.returncode == 0, done
        for by, expected in counted.items():
            got = table(tallyd.client(), "log", by, from_="2000-01-01", to="2030-01-01")
            assert got == expected, (by, set(got.items()) ^ set(expected.items()))
