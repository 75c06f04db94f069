"""`tallyd import` of every format: the same requests, written as each server writes them, are the same counts; and
whatever stands in a line, what is well-formed beside it counts once."""

import calendar
import collections
import gzip
import json
import time

import pytest

from lib.process import run
from lib.truth import is_close
from lib.world import FOREVER

TALLYD_ARGS = FOREVER
BEGIN = calendar.timegm((2026, 3, 10, 10, 56, 20))
PERSON = "Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0"
ROBOT = "Googlebot/2.1 (+http://www.google.com/bot.html)"
NGINX = '$host $remote_addr - [$time_local] "$request" $status "$http_user_agent"'


def request(i):
    """Request i of a log: (seconds, address, method, target, status, agent, host)."""
    odd = {3: ("HEAD", 200), 5: ("GET", 404), 6: ("GET", 301), 8: ("GET", 304), 9: ("POST", 200)}
    method, status = odd.get(i % 10, ("GET", 200))
    target = "/style.css?v=2" if i % 10 == 7 else f"/page/{i % 4}?q={i}&utm_campaign=c{i % 3}"
    address = f"192.0.2.{i % 7}" if i % 2 else f"2001:db8::{i % 5 + 1:x}"
    return BEGIN + i, address, method, target, status, ROBOT if i % 10 == 4 else PERSON, f"{'AB'[i % 2]}.Example.org"


REQUESTS = [request(i) for i in range(200)]
VIEWS = [r for i, r in enumerate(REQUESTS) if i % 10 not in (3, 4, 5, 6, 7)]


def utc(at_s, form):
    return time.strftime(form, time.gmtime(at_s))


def apache(at_s, ip, method, target, status, agent, host):
    return (f'{ip} - frank [{utc(at_s, "%d/%b/%Y:%H:%M:%S +0000")}] "{method} {target} HTTP/1.1" {status} 5 '
            f'"https://www.example.com/" "{agent}"')


def vhost(at_s, ip, method, target, status, agent, host):
    return f"{host}:443 " + apache(at_s, ip, method, target, status, agent, host)


def nginx_json(at_s, ip, method, target, status, agent, host):
    return json.dumps({"time_iso8601": utc(at_s, "%Y-%m-%dT%H:%M:%S+00:00"), "remote_addr": ip, "remote_user": "",
                       "request": f"{method} {target} HTTP/2.0", "status": str(status), "body_bytes_sent": "5",
                       "request_time": "0.001", "http_referer": "", "http_user_agent": agent, "host": host})


def caddy(at_s, ip, method, target, status, agent, host):
    return json.dumps({
        "level": "info", "ts": at_s + 0.5241024, "logger": "http.log.access.log0", "msg": "handled request",
        "request": {"remote_ip": "198.51.100.1", "remote_port": "41342", "client_ip": ip, "proto": "HTTP/2.0",
                    "method": method, "host": f"{host}:8443", "uri": target,
                    "headers": {"User-Agent": [agent], "Accept": ["*/*"]}, "tls": {"resumed": False, "version": 772}},
        "bytes_read": 0, "user_id": "", "duration": 0.000929675, "size": 10900, "status": status,
        "resp_headers": {"Server": ["Caddy"], "Content-Type": ["text/html"]}}, separators=(",", ":"))


def traefik(at_s, ip, method, target, status, agent, host):
    return json.dumps({
        "ClientAddr": f"[{ip}]:51034", "ClientHost": ip, "ClientPort": "51034", "ClientUsername": "-",
        "DownstreamContentSize": 5, "DownstreamStatus": status, "Duration": 4_000_000, "OriginStatus": 0,
        "RequestAddr": f"{host}:8080", "RequestHost": host, "RequestMethod": method, "RequestPath": target,
        "RequestPort": "8080", "RequestProtocol": "HTTP/1.1", "RequestScheme": "https",
        "StartLocal": utc(at_s + 3600, "%Y-%m-%dT%H:%M:%S.184842+01:00"), "StartUTC": utc(at_s, "%Y-%m-%dT%H:%M:%S.184842Z"),
        "level": "info", "msg": "", "request_User-Agent": agent, "time": utc(at_s + 60, "%Y-%m-%dT%H:%M:%SZ")})


def alb(at_s, ip, method, target, status, agent, host):
    client = f"[{ip}]:2817" if ":" in ip else f"{ip}:2817"
    return (f'https {utc(at_s, "%Y-%m-%dT%H:%M:%S.186641Z")} app/my-loadbalancer/50dc6c495c0c9188 {client} 10.0.0.1:80 0.086 '
            f'0.048 0.037 {status} 200 0 57 "{method} https://{host}:443{target} HTTP/1.1" "{agent}" '
            'ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/t/73e2 '
            f'"Root=1-58337281-1d84f3d73c47ec4e58577259" "{host.lower()}" "-" 1 2026-03-10T10:56:20.364000Z "forward" "-" "-"')


CLOUDFRONT_HEAD = ("#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status "
                   "cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header\n")


def cloudfront(at_s, ip, method, target, status, agent, host):
    path, _, query = target.partition("?")
    return "\t".join((utc(at_s, "%Y-%m-%d"), utc(at_s, "%H:%M:%S"), "LAX1", "392", ip, method, "d111111abcdef8.cloudfront.net",
                      path, str(status), "-", agent.replace(" ", "%20"), query or "-", "-", "Hit", "SOX4xwn4XV6Q4rgb7XiVGO==",
                      host))


IIS_HEAD = ("#Software: Microsoft Internet Information Services 10.0\r\n#Version: 1.0\r\n#Date: 2026-03-10 10:56:20\r\n"
            "#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) "
            "sc-status sc-substatus sc-win32-status time-taken cs-host\r\n")


def iis(at_s, ip, method, target, status, agent, host):
    path, _, query = target.partition("?")
    return (f'{utc(at_s, "%Y-%m-%d %H:%M:%S")} 172.16.0.1 {method} {path} {query or "-"} 443 - {ip} {agent.replace(" ", "+")} - '
            f"{status} 0 0 31 {host}\r")


def cloudflare(at_s, ip, method, target, status, agent, host):
    return json.dumps({"ClientIP": ip, "ClientRequestHost": host, "ClientRequestMethod": method, "ClientRequestURI": target,
                       "ClientRequestUserAgent": agent, "EdgeEndTimestamp": (at_s + 1) * 10**9, "EdgeResponseBytes": 9,
                       "EdgeResponseStatus": status, "EdgeStartTimestamp": at_s * 10**9 + 433000200, "RayID": "3a6050bcbe121a87"})


def by_template(at_s, ip, method, target, status, agent, host):
    return f'{host} {ip} - [{utc(at_s, "%d/%b/%Y:%H:%M:%S +0000")}] "{method} {target} HTTP/1.1" {status} "{agent}"'


# format -> (what stands before, a line); only combined names no host
FORMATS = {"combined": ("", apache), "vhost": ("", vhost), "nginx-json": ("", nginx_json), "caddy": ("", caddy),
           "traefik": ("", traefik), "alb": ("", alb), "cloudfront": (CLOUDFRONT_HEAD, cloudfront), "iis": (IIS_HEAD, iis),
           "cloudflare": ("", cloudflare), "--nginx-format": ("", by_template)}


def text(name, requests=REQUESTS):
    before, write = FORMATS[name]
    return before + "".join(write(*r) + "\n" for r in requests)


def options(name):
    return ("--nginx-format", NGINX) if name.startswith("--") else ("--format", name)


def imported(tallyd, path, *more, status=0):
    done = run("import", "--url", tallyd.url, *FOREVER, "--json", *more, path, timeout_s=300)
    assert done.returncode == status, done
    return json.loads(done.stdout), done.stderr


@pytest.fixture
def file(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path
    return write


def check(http, site, views):
    assert http.count("pv", site=site, from_="2026-03-10", to="2026-03-11") == len(views)
    for minute in (0, 60, 120):
        begin = BEGIN // 60 * 60 + minute
        expected = sum(begin <= at_s < begin + 60 for at_s, *_ in views)
        assert http.count("pv", site=site, from_=begin, to=begin + 60) == expected
    for metric, members in (("uv", {(r[1], r[5]) for r in views}), ("ips", {r[1] for r in views})):  # two may share a register
        assert is_close(http.count(metric, site=site, from_="2026-03-10", to="2026-03-11"), len(members)), metric
    rows = http.question("/breakdown", site=site, by="utm_campaign", from_="2026-03-10", to="2026-03-11")["rows"]
    campaigns = collections.Counter(r[3].rpartition("utm_campaign=")[2] for r in views)
    assert {row["value"]: row["pv"] for row in rows} == campaigns
    for page in {r[3].partition("?")[0] for r in views}:
        expected = sum(r[3].partition("?")[0] == page for r in views)
        assert http.count("pv", site=site, page=page, from_="2026-03-10", to="2026-03-11") == expected


def by_path_and_query(at_s, ip, method, target, status, agent, host):
    path, _, query = target.partition("?")
    return f'{ip} [{utc(at_s, "%d/%b/%Y:%H:%M:%S +0000")}] {method} {path} "{query or "-"}" {status} "{agent}" www.{host}:443 "https://{host}/x"'


def test_a_log_that_keeps_path_and_query_apart(tallyd, http, site, file):
    """And whose referrer is a page of the host that was asked: that is no source."""
    nginx = '$remote_addr [$time_local] $request_method $uri "$args" $status "$http_user_agent" $http_host "$http_referer"'
    path = file("l", "".join(by_path_and_query(*r) + "\n" for r in REQUESTS))
    assert imported(tallyd, path, "--site", site, "--nginx-format", nginx)[0]["counted"] == len(VIEWS)
    check(http, site, VIEWS)
    sources = http.question("/breakdown", site=site, by="source", from_="2026-03-10", to="2026-03-11")["rows"]
    assert [(row["value"], row["pv"]) for row in sources] == [("(none)", len(VIEWS))]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_counts_the_same(tallyd, http, site, file, name):
    """Named, and recognised; the second import finds all of it counted, for the requests are the same."""
    path = file("log", text(name))
    first, _ = imported(tallyd, path, "--site", site, *options(name))
    assert first["counted"] == len(VIEWS) == 100
    assert first["left_out"] == {"malformed": 0, "method": 20, "robot": 20, "error": 20, "redirect": 20, "file": 20}
    check(http, site, VIEWS)
    if not name.startswith("--"):
        again, _ = imported(tallyd, path, "--site", site)
        assert (again["counted"], again["counted_before"]) == (0, len(VIEWS))


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "combined"])
def test_the_site_from_the_host(tallyd, http, file, site, name):
    """Lower case and without the port.  The hosts are this test's own."""
    hosts = [f"{letter}.{site}" for letter in "ab"]
    requests = [(*r[:6], f"{r[6][0]}.{site.upper()}") for r in REQUESTS]
    imported(tallyd, file("log", text(name, requests)), "--site-from-host", *options(name))
    for i, host in enumerate(hosts):
        check(http, host, [r for r in VIEWS if r[6][0] == "AB"[i]])


def test_hosts_that_are_missing_or_no_site(tallyd, http, site, file):
    ask = request(0)
    lines = [vhost(*ask[:6], site), apache(*ask), vhost(*ask[:6], "[2001:db8::1]"), vhost(*ask[:6], "_")]
    summary, said = imported(tallyd, file("log", "\n".join(lines)), "--site-from-host", "--site", site + "-x",
                             "--format", "vhost")
    assert summary["counted"] == 1 and summary["left_out"]["malformed"] == 3
    assert "line 2 is malformed" in said and "line 3 is malformed: the host is not the name of a site" in said
    summary, said = imported(tallyd, file("log", apache(*ask)), "--site-from-host", "--site", site + "-x")
    assert f"1 page views are of lines that name no host: their site is {site}-x" in said
    assert http.count("pv", site=site + "-x", from_="2026-03-10", to="2026-03-11") == 1
    summary, said = imported(tallyd, file("log", "\n".join([vhost(*request(1)[:6], site), vhost(*ask[:6], "-")])), "--site-from-host",
                             "--site", site + "-x")
    assert summary["counted"] == 2 and f"1 page views are of lines that name no host: their site is {site}-x" in said


APACHE_TIMES = ("10/Mar/2026", ("10/Mar/0000", "10/Mar/9999", "32/Mar/2026"))
ISO_TIMES = ("2026-03-10", ("0000-03-10", "9999-03-10", "2026-02-30"))
BAD_TIMES = {"combined": APACHE_TIMES, "vhost": APACHE_TIMES, "--nginx-format": APACHE_TIMES, "nginx-json": ISO_TIMES, "traefik": ISO_TIMES,
             "alb": ISO_TIMES, "cloudfront": ISO_TIMES, "iis": ISO_TIMES,
             "caddy": (f'"ts":{BEGIN}', ('"ts":"0000-03-10T00:00:00Z"', '"ts":"9999-03-10T00:00:00+0100"', '"ts":99999999999', '"ts":-1e99')),
             "cloudflare": (f'"EdgeStartTimestamp": {BEGIN * 10**9 + 433000200}',
                            ('"EdgeStartTimestamp": "0000-03-10T00:00:00Z"', '"EdgeStartTimestamp": 253402300799000000000',
                             '"EdgeStartTimestamp": "9999-12-31T23:59:59Z"'))}


@pytest.mark.parametrize("name", FORMATS)
def test_bad_lines_are_named_and_the_rest_counts(tallyd, http, site, file, name):
    """A NUL, half a UTF-8 sequence, a line of 1 MiB, a cut line, a time that is none; and a member nobody knows."""
    before, write = FORMATS[name]
    good = write(*request(0)).encode()
    bad = [good.replace(b"/page/0", b"/page/\x00"), good.replace(b"/page/0", b"/page/\xc3"), good + b"x" * (1 << 20),
           good[:len(good) // 3], b"nonsense"]
    old, new = BAD_TIMES[name]
    bad += [good.replace(old.encode(), time_.encode()) for time_ in new]
    assert good not in bad
    if good.startswith(b"{"):
        bad += [b"[]", b"{}", good + good, good.replace(b"{", b'{"new":{"deep":[1,{"x":null}]},', 1)]
    lines = [good, *bad, good]
    n_bad = len(bad) - (1 if good.startswith(b"{") else 0)
    head = before.encode()
    summary, said = imported(tallyd, file("log", head + b"\n".join(lines) + b"\n"), "--site", site, *options(name))
    assert summary["left_out"]["malformed"] == n_bad, said
    assert summary["counted"] == len(lines) - n_bad
    for number in range(2, 2 + min(n_bad, 8)):
        assert f"line {number + before.count(chr(10))} is malformed: " in said
    assert "longer than 64 KiB" in said
    assert http.count("pv", site=site, from_="2026-03-10", to="2026-03-11") == len(lines) - n_bad


def test_a_gzip_that_ends_in_a_block(tallyd, http, site, file):
    """What is whole counts; the end is said; the whole file, imported later, adds only what was missing."""
    requests = [request(10 * i) for i in range(20_000)]
    packed = gzip.compress(text("caddy", requests).encode())
    summary, said = imported(tallyd, file("log.gz", packed[:len(packed) // 2]), "--site", site, status=1)
    assert "cannot read" in said and "behind line" in said
    assert 0 < summary["counted"] < 20_000 and summary["counted"] == summary["lines"]
    again, _ = imported(tallyd, file("log.gz", packed), "--site", site)
    assert again["counted"] + again["counted_before"] == 20_000 and again["counted_before"] == summary["counted"]
    assert http.count("pv", site=site, from_="2026-03-10", to="2026-03-20") == 20_000


def test_a_directory_and_an_empty_file(tallyd, tmp_path, site, file):
    done = run("import", "--site", site, "--url", tallyd.url, tmp_path)
    assert done.returncode == 1 and "Is a directory" in done.stderr
    assert imported(tallyd, file("log", ""))[0] == {
        "lines": 0, "counted": 0,
        "left_out": {"malformed": 0, "method": 0, "robot": 0, "error": 0, "redirect": 0, "file": 0}}


def test_lines_before_the_format_is_known(tallyd, http, site, file):
    """Caddy says what it does before its first request; such lines are malformed, and decide nothing."""
    lines = ['{"level":"info","ts":1773140180,"msg":"serving initial configuration"}', "", caddy(*request(0))]
    summary, said = imported(tallyd, file("log", "\n".join(lines) + "\n"), "--site", site)
    assert summary["counted"] == 1 and summary["left_out"]["malformed"] == 2
    assert "line 1 is malformed: JSON of no format that is known" in said
    summary, said = imported(tallyd, file("log", lines[0]), "--site", site)
    assert "no line is in a format that is known; see --format" in said


@pytest.mark.parametrize("more, told", [
    (("--nginx-format", "$remote_addr $request"), "--nginx-format must be a log_format with $time_local"),
    (("--nginx-format", NGINX, "--format", "combined"), "--nginx-format is a format: --format is one too many"),
    (("--format", "w3c"), "--format must be auto, ndjson, combined, common, vhost, nginx-json, caddy, traefik, alb, cloudfront, "
                          "iis or cloudflare"),
])
def test_wrong_formats(file, more, told):
    done = run("import", *more, file("log", ""))
    assert done.returncode == 2 and told in done.stderr
