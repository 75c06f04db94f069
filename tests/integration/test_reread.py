"""SIGHUP: the configuration is read again, as a whole or not at all; what cannot change is said."""

import json
import os
import re
import signal
import threading
import time

import pytest

from lib.waiting import wait_until

FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}


@pytest.fixture
def start(start_redis, start_tallyd, directory):
    """A tallyd whose configuration file has the given text; its reread() gives it another one."""
    def begin(text, *args, **options):
        directory.mkdir(exist_ok=True)
        path = directory / "tallyd.conf"
        path.write_text(text)
        tallyd = start_tallyd("--config", path, *args, redis=start_redis(), **options)

        def reread(new, expected="read the configuration again"):
            """The log lines that this SIGHUP made."""
            before = len(tallyd.log_text())
            path.write_text(new)
            tallyd.signal(signal.SIGHUP)
            wait_until(lambda: expected in tallyd.log_text()[before:], expected)
            return tallyd.log_text()[before:]

        tallyd.config, tallyd.reread = path, reread
        return tallyd

    return begin


def check(http, policy, key="k"):
    return http.get("/ratelimit/check", policy=policy, key=key)


def test_policies(start):
    tallyd = start("policy.a = funnel 1/1h\npolicy.b = sliding 2/1h\n")
    http = tallyd.client()
    assert check(http, "a").status == 204 and check(http, "a").status == 429
    log = tallyd.reread("policy.a = funnel 1/1h burst 4\npolicy.c = funnel 7/1h burst 6\n")
    assert "changed=true" in log and "policies=2" in log and "level=warn" not in log
    assert check(http, "a").headers["RateLimit-Policy"] == '"a";q=5;w=18000'
    assert check(http, "c").headers["RateLimit-Policy"] == '"c";q=7;w=3600'
    assert check(http, "b").status == 422
    assert http.request("POST", "/ratelimit", json.dumps({"key": "k", "policy": "c"})).json["remaining"] == 5
    assert http.request("DELETE", "/ratelimit?key=k").status == 204
    assert http.request("POST", "/ratelimit", json.dumps({"key": "k", "policy": "c"})).json["remaining"] == 6
    log = tallyd.reread("# nothing\npolicy.c = funnel 7/1h burst 6\n\npolicy.a = funnel 1/1h burst 4\n")
    assert "changed=false" in log
    tallyd.reread("")
    assert check(http, "a").status == check(http, "c").status == 422


def test_seen_is_asked_by_the_name_that_was_sent(start):
    """A page that a rule maps is looked for under both names: as it is counted now, and as it was before the rule."""
    tallyd = start("")
    http = tallyd.client()
    pages = ["/user/7", "/user/old", "/user/:id", "/x", "/y"]

    def seen(user):
        body = {"user": user, "pages": pages}
        many = http.request("POST", "/seen", json.dumps(body), {"Content-Type": "application/json"}).json["seen"]
        each = [http.question("/seen", user=user, page=page) for page in pages]
        assert many == [e["seen"] for e in each] and all(e["certain"] is not e["seen"] for e in each)
        return many

    http.accept([{"page": "/user/old", "user": "u"}, {"page": "/x", "user": "u"}])
    assert seen("u") == [False, True, False, True, False]
    tallyd.reread("page.1 = /user/* -> /user/:id\n")
    assert seen("u") == [False, True, False, True, False]
    http.accept([{"page": "/user/7", "user": "v"}])
    assert seen("v") == [True, True, True, False, False]
    assert seen("w") == [False] * 5
    assert http.request("PUT", "/pagesets/some", json.dumps({"pages": ["/user/7", "/y"]}), {"Content-Type": "application/json"}).status == 201
    assert [http.question("/seen", user=user, pageset="some")["seen"] for user in "uvw"] == [False, True, False]


def test_a_page_with_two_names_may_be_wrong_twice(start):
    """However small the error is: 1 - (1 - p)² would be 0."""
    http = start("page.1 = /user/* -> /user/:id\n", "--partitions", "1", "--seen-capacity", "100000000").client()
    for k in range(5):
        http.accept([{"page": f"/{k}/{i}", "user": i} for i in range(4000)])

    def of_each(page):
        body = {"user": "nobody", "pages": [page]}
        return http.request("POST", "/seen", json.dumps(body), {"Content-Type": "application/json"}).json["false_positive_rate"]

    def rate(page):
        return http.question("/seen", user="nobody", page=page)["false_positive_rate"]

    wait_until(lambda: rate("/x") > 0, "a log is folded, for a while")
    for page in "/x", "/user/7":
        assert 0 < rate(page) <= of_each(page) <= rate(page) < 1e-17, page


@pytest.mark.parametrize("bad, place", [
    ("policy.a = funnel 9/1h\npolicy.x = funnel 0/1h\n", "tallyd.conf:2: policy.x"),
    ("policy.a = funnel 9/1h\nno-such = 1\n", "tallyd.conf:2: unknown option"),
    ("policy.a = funnel 9/1h\npolicy.a = funnel 8/1h\n", "tallyd.conf:2: policy.a"),
    ("policy.a = funnel 9/1h\nmax-future = 25h\n", "tallyd.conf:2: max-future"),
    ("policy.a = funnel 9/1h\ningest-limit = 1/366d\ningest-burst = 1000000000\n", "ingest-burst"),
    ("policy.a = funnel 9/1h\nmax-body = 65MiB\n", "max-body-memory"),
    ("policy.a = funnel 9/1h\nignore-ip = 10.0.0.1,\n", "tallyd.conf:2: ignore-ip"),
    ("policy.a = funnel 9/1h\nsite.a.props = plan,\n", "tallyd.conf:2: site.a.props")])
def test_what_is_wrong_changes_nothing(start, bad, place):
    tallyd = start("policy.a = funnel 3/1h burst 2\n")
    log = tallyd.reread(bad, "the configuration could not be read again, that of before stays")
    assert "level=error" in log and place in log and "level=warn" not in log, log
    assert check(tallyd.client(), "a").headers["RateLimit-Policy"].startswith('"a";q=3;')
    assert "policies=1" in tallyd.reread("policy.a = funnel 4/1h burst 3\n")
    assert check(tallyd.client(), "a").headers["RateLimit-Policy"].startswith('"a";q=4;')


def test_a_file_that_is_gone_changes_nothing(start, directory):
    tallyd = start("policy.a = funnel 3/1h burst 2\n")
    (directory / "tallyd.conf").unlink()
    before = len(tallyd.log_text())
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: "cannot open the file" in tallyd.log_text()[before:], "the log says so")
    assert check(tallyd.client(), "a").status == 204


@pytest.mark.parametrize("then", ["nobody writes", "it is empty"])
def test_a_pipe_is_read_at_the_start_only(start_redis, start_tallyd, directory, then):
    """As of `--config <(..)`.  Behind its one text a reader of the pipe waits, or finds no settings at all."""
    directory.mkdir(exist_ok=True)
    path = directory / "fifo"
    os.mkfifo(path)

    def write(text):
        threading.Thread(target=path.write_text, args=(text,), daemon=True).start()

    write("policy.a = funnel 3/1h burst 2\n")
    tallyd = start_tallyd("--config", path, redis=start_redis())
    if then == "it is empty":
        write("")
    for asked in (1, 2):
        tallyd.signal(signal.SIGHUP)
        refused = re.compile("level=error .*that of before stays.*fifo.*not a regular file")
        wait_until(lambda n=asked: len(refused.findall(tallyd.log_text())) == n, "the log says so")
    assert check(tallyd.client(), "a").headers["RateLimit-Policy"].startswith('"a";q=3;')
    assert tallyd.terminate() == 0


def test_what_cannot_change_is_said_each_time(start):
    tallyd = start("site.shop.tz = Europe/Berlin\nsite.blog.tz = UTC\ncache-mb = 1\n")
    new = "site.shop.tz = UTC\nsite.new.tz = Asia/Tokyo\ncache-mb = 2\nqueue = 60000\ningest-limit = 1/1s\npolicy.p = funnel 1/1s\n"
    for _ in range(2):
        log = tallyd.reread(new)
        told = re.search(r'level=warn msg="these options changed, which takes effect at the next start" options="?([^"\s]+)', log)
        assert set(told.group(1).split(",")) == {"site.shop.tz", "site.blog.tz", "site.new.tz", "cache-mb", "queue", "ingest-limit"}, log
    assert check(tallyd.client(), "p").status == 204  # the rest is in effect
    assert tallyd.client().post({"page": "/"}).headers["RateLimit"] is None


def test_a_long_file_holds_nobody_up(start):
    """As many lines as fit into its 1 MiB: the start took 48 s, and the reread 40, in which no other signal was seen."""
    text = "".join(f"site.{i}.props = a\n" for i in range(48_000))
    assert len(text) < 1 << 20
    tallyd = start(text)
    assert "changed=true" in tallyd.reread(text.replace("site.7.props = a", "site.7.props = b"))
    http = tallyd.client()
    http.accept([{"site": "7", "page": "/", "props": {"b": "x", "a": "y"}}, {"site": "8", "page": "/", "props": {"a": "y"}}])
    for site, name, value in (("7", "b", "x"), ("8", "a", "y")):
        rows = http.question("/breakdown", by=f"prop:{name}", site=site, from_="now-1h")["rows"]
        assert [(r["value"], r["pv"]) for r in rows] == [(value, 1)]
    assert tallyd.terminate() == 0


def test_a_flag_goes_before_the_file_here_too(start):
    tallyd = start("", "--cors-origins", "https://a.example")
    assert "changed=false" in tallyd.reread("cors-origins = https://b.example\n")
    http = tallyd.client()
    for origin, allowed in (("https://a.example", "https://a.example"), ("https://b.example", None)):
        assert http.request("GET", "/uv", headers={"Origin": origin}).headers["Access-Control-Allow-Origin"] == allowed


def test_lists_and_switches(start):
    tallyd = start("")
    http = tallyd.client()
    view = lambda **headers: http.request("GET", "/pixel.gif?page=/", headers={**FIREFOX, **headers})
    future = {"page": "/", "ts": int(time.time()) + 3000}
    asked = {"Origin": "https://a.example"}
    assert http.request("GET", "/uv", headers=asked).headers["Vary"] == "Accept"
    assert view(DNT="1").headers["X-Tallyd"] == "accepted" and http.post(future).status == 422
    log = tallyd.reread("cors-origins = https://a.example\ntrusted-proxies = 127.0.0.1\nrespect-dnt = on\nmax-future = 1h\n"
                        "log-level = debug\n")
    assert "level=warn" not in log
    assert http.request("GET", "/uv", headers=asked).headers["Access-Control-Allow-Origin"] == "https://a.example"
    assert view(DNT="1").headers["X-Tallyd"] == "dropped" and http.post(future).status == 202
    for address in ("192.0.2.1", "192.0.2.2"):
        assert view(**{"X-Forwarded-For": address}).status == 202
    assert http.count("ips", from_="now-1h") == 3  # ours, before, and these
    assert "Do-Not-Track" in (script := http.get("/tally.js").body.decode()) or "doNotTrack" in script
    tallyd.reread("")
    assert http.request("GET", "/uv", headers=asked).headers["Vary"] == "Accept" and view(DNT="1").status == 202


def test_the_limit_of_page_views(start):
    tallyd = start("ingest-limit = 5/1h\n")
    http = tallyd.client()
    assert [http.post({"page": "/"}).status for _ in range(6)] == [202] * 5 + [429]
    tallyd.reread("ingest-limit = 20/1h\ningest-burst = 29\n")
    response = http.post([{"page": "/"}] * 24)
    assert response.status == 202, response  # what was taken stays taken
    assert response.headers["RateLimit-Policy"] == '"ingest";q=30;w=5400'
    assert http.post([{"page": "/"}] * 2).status == 429
    tallyd.reread("ingest-limit = 2/1h\n")
    response = http.post({"page": "/"})
    assert response.status == 429 and response.headers["RateLimit-Policy"] == '"ingest";q=2;w=3600'
    assert "options=ingest-limit" in tallyd.reread("")  # to have none is for the next start
    assert http.post({"page": "/"}).headers["RateLimit-Policy"] == '"ingest";q=2;w=3600'
    assert http.count("pv", from_="now-1h") == 29


def test_a_request_sees_one_configuration(start):
    """Policies are exchanged as a whole, while they are asked for."""
    texts = ["".join(f"policy.p{i} = funnel {n}/1s burst {n - 1}\n" for i in range(20)) for n in (1000, 2000)]
    tallyd = start(texts[0])
    stop, seen, wrong = threading.Event(), set(), []

    def ask(which):
        http = tallyd.client()
        while not stop.is_set():
            response = check(http, f"p{which}", f"k{which}")
            if response.status not in (204, 429):
                wrong.append(response)
            seen.add(response.headers["RateLimit-Policy"].split(";")[1])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    http, path = tallyd.client(), tallyd.config
    for i in range(20):
        path.write_text(texts[(i + 1) % 2])
        tallyd.signal(signal.SIGHUP)
        quota = f"q={2000 if i % 2 == 0 else 1000};"
        wait_until(lambda: quota in check(http, "p19").headers["RateLimit-Policy"], quota)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong and seen == {"q=1000", "q=2000"}


def test_nothing_to_read(start_tallyd, start_redis):
    tallyd = start_tallyd(redis=start_redis())
    tallyd.signal(signal.SIGHUP)
    wait_until(lambda: "nothing to read again" in tallyd.log_text(), "the log says so")
    assert tallyd.client().post({"page": "/"}).status == 202
