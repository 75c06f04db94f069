"""POST /events: what is accepted, what is refused and how it is named, and that nothing else changes."""

import gzip
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.client import NDJSON
from lib.clock import rfc3339
from lib.memory import MIB, resident
from lib.process import Redis, Tallyd
from lib.raw import Raw
from lib.waiting import wait_until

BOM = b"\xef\xbb\xbf"
LISTED = 100
MAX_EVENTS = 10_000

NOW = int(time.time())


def text(site, page="/ok", **members):
    """An event as JSON text."""
    return json.dumps({"site": site, "page": page, **members})


def total(http, site):
    """All page views of a site, at any time since 2000."""
    return http.count("pv", site=site, from_="2000-01-01", to="now+6m", round="outer")


# Each rule: the members of one bad event as JSON text (without site), and the pointer to the fault.
# A pointer ending in * is a beginning.
BAD = {
    "page missing": ('"user":"u"', "/page"),
    "page empty": ('"page":""', "/page"),
    "page too long": (f'"page":"{"p" * 2049}"', "/page"),
    "page too long in bytes": (f'"page":"{"é" * 1025}"', "/page"),
    "page with a C0 control": (r'"page":"/a\u001fb"', "/page"),
    "page with a newline": (r'"page":"/a\nb"', "/page"),
    "page with DEL": ('"page":"/a\x7fb"', "/page"),
    "page a number": ('"page":1', "/page"),
    "page null": ('"page":null', "/page"),
    "page an array": ('"page":["/a"]', "/page"),
    "page an object": ('"page":{"a":"/a"}', "/page"),
    "page true": ('"page":true', "/page"),
    "page twice": ('"page":"/a","page":"/a"', "/page"),
    "page twice, escaped": (r'"page":"/a","p\u0061ge":"/b"', "/page"),
    "user empty": ('"page":"/bad","user":""', "/user"),
    "user too long": (f'"page":"/bad","user":"{"u" * 257}"', "/user"),
    "user with a control": (r'"page":"/bad","user":"a\tb"', "/user"),
    "user with DEL": (r'"page":"/bad","user":"a\u007f"', "/user"),
    "user a fraction": ('"page":"/bad","user":1.5', "/user"),
    "user an integer of 257 digits": (f'"page":"/bad","user":{"1" * 257}', "/user"),
    "user true": ('"page":"/bad","user":true', "/user"),
    "user null": ('"page":"/bad","user":null', "/user"),
    "user an object": ('"page":"/bad","user":{}', "/user"),
    "user twice": ('"page":"/bad","user":"a","user":"a"', "/user"),
    "ip empty": ('"page":"/bad","ip":""', "/ip"),
    "ip short": ('"page":"/bad","ip":"1.2.3"', "/ip"),
    "ip long": ('"page":"/bad","ip":"1.2.3.4.5"', "/ip"),
    "ip 256": ('"page":"/bad","ip":"1.2.3.256"', "/ip"),
    "ip with a prefix length": ('"page":"/bad","ip":"1.2.3.4/8"', "/ip"),
    "ip with a blank": ('"page":"/bad","ip":" 1.2.3.4"', "/ip"),
    "ip with a port": ('"page":"/bad","ip":"1.2.3.4:80"', "/ip"),
    "ip no hex": ('"page":"/bad","ip":"::g"', "/ip"),
    "ip two gaps": ('"page":"/bad","ip":"1::2::3"', "/ip"),
    "ip in brackets": ('"page":"/bad","ip":"[::1]"', "/ip"),
    "ip a name": ('"page":"/bad","ip":"localhost"', "/ip"),
    "ip a number": ('"page":"/bad","ip":16909060', "/ip"),
    "ua a number": ('"page":"/bad","ua":1', "/ua"),
    "ua too long": (f'"page":"/bad","ua":"{"a" * 16385}"', "/ua"),
    "referrer an array": ('"page":"/bad","referrer":[]', "/referrer"),
    "referrer too long": (f'"page":"/bad","referrer":"{"a" * 16385}"', "/referrer"),
    "ts digits as a string": (f'"page":"/bad","ts":"{NOW}"', "/ts"),
    "ts null": ('"page":"/bad","ts":null', "/ts"),
    "ts negative": ('"page":"/bad","ts":-1', "/ts"),
    "ts true": ('"page":"/bad","ts":true', "/ts"),
    "ts empty": ('"page":"/bad","ts":""', "/ts"),
    "ts without an offset": ('"page":"/bad","ts":"2020-01-01T00:00:00"', "/ts"),
    "ts a date": ('"page":"/bad","ts":"2020-01-01"', "/ts"),
    "ts on February 30": ('"page":"/bad","ts":"2020-02-30T00:00:00Z"', "/ts"),
    "ts on February 29 of no leap year": ('"page":"/bad","ts":"2019-02-29T00:00:00Z"', "/ts"),
    "ts at 24:00": ('"page":"/bad","ts":"2020-01-01T24:00:00Z"', "/ts"),
    "ts with text behind": ('"page":"/bad","ts":"2020-01-01T00:00:00Z "', "/ts"),
    "ts too far ahead": (f'"page":"/bad","ts":{NOW + 86400}', "/ts"),
    "ts too far ahead in ms": (f'"page":"/bad","ts":{(NOW + 86400) * 1000}', "/ts"),
    "ts too far ahead as text": (f'"page":"/bad","ts":"{rfc3339(NOW + 86400)}"', "/ts"),
    "ts beyond all numbers": ('"page":"/bad","ts":1e400', "/ts"),
    "ts twice": (f'"page":"/bad","ts":{NOW},"ts":{NOW}', "/ts"),
    "actions no array": ('"page":"/bad","actions":"click"', "/actions"),
    "actions nine": (f'"page":"/bad","actions":{json.dumps(list("abcdefghi"))}', "/actions*"),
    "action empty": ('"page":"/bad","actions":["a",""]', "/actions/1"),
    "action in capitals": ('"page":"/bad","actions":["Click"]', "/actions/0"),
    "action too long": (f'"page":"/bad","actions":["{"a" * 65}"]', "/actions/0"),
    "action a number": ('"page":"/bad","actions":["a","b",3]', "/actions/2"),
    "U+0000 in the page": (r'"page":"/a\u0000"', "/page"),
    "U+0000 in a member that is ignored": (r'"page":"/bad","note":"\u0000"', "*"),
    "half a surrogate pair": (r'"page":"/bad","user":"\ud800"', "/user"),
    "half a surrogate pair, the second": (r'"page":"/bad","user":"\udc00x"', "/user"),
    "surrogates in the wrong order": (r'"page":"/bad","note":"\udc00\ud800"', "*"),
}
BAD_BYTES = {
    "a stray continuation byte": b'"page":"/\x80"',
    "a cut sequence": b'"page":"/bad","user":"\xc3"',
    "an overlong slash": b'"page":"/bad","user":"\xc0\xaf"',
    "a surrogate in UTF-8": b'"page":"/bad","user":"\xed\xa0\x80"',
    "beyond U+10FFFF": b'"page":"/bad","user":"\xf4\x90\x80\x80"',
    "invalid UTF-8 in a member that is ignored": b'"page":"/bad","note":{"deep":["\xff"]}',
    "invalid UTF-8 in a name": b'"page":"/bad","\xff":1',
}
BAD_SITES = {
    "empty": '""', "capitals": '"Shop"', "dash first": '"-shop"', "too long": f'"{"s" * 65}"',
    "a slash": '"a/b"', "no ASCII": '"caf\u00e9"', "a colon": '"a:b"', "braces": '"{a}"',
    "a number": "1", "null": "null",
}


def rules():
    for name, (members, pointer) in BAD.items():
        yield pytest.param(members.encode(), pointer, id=name)
    for name, members in BAD_BYTES.items():
        yield pytest.param(members, "*", id=name)


def assert_error(error, index, pointer):
    assert error["index"] == index and error["detail"]
    if pointer.endswith("*"):
        assert error["pointer"].startswith(pointer[:-1])
    else:
        assert error["pointer"] == pointer


def assert_one_rejected(http, site, bad, pointer):
    """Alone the bad event is a 422; between good ones it is listed, and they are counted."""
    alone = http.post(bad)
    assert alone.status == 422, alone
    assert alone.headers["Content-Type"] == "application/problem+json"
    assert len(alone.errors) == 1
    assert_error({"index": 0, **alone.errors[0]}, 0, pointer)
    assert total(http, site) == 0

    good = text(site).encode()
    batch = http.post(b"[" + b",".join([good, bad, good]) + b"]")
    assert batch.status == 202, batch
    assert (batch.json["accepted"], batch.json["rejected"]) == (2, 1)
    assert len(batch.errors) == 1
    assert_error(batch.errors[0], 1, pointer)

    lines = http.post(b"\n".join([good, b"", bad, good, b""]), NDJSON)
    assert lines.status == 202, lines
    assert (lines.json["accepted"], lines.json["rejected"]) == (2, 1)
    assert_error(lines.errors[0], 2, pointer)  # the blank line has a number too

    assert total(http, site) == 4
    assert http.count("pv", site=site, page="/ok", from_="2000-01-01", to="now+6m") == 4


@pytest.mark.parametrize("members, pointer", rules())
def test_bad_event_is_named_and_alone_rejected(http, site, members, pointer):
    bad = b'{"site":' + json.dumps(site).encode() + b"," + members + b"}"
    assert_one_rejected(http, site, bad, pointer)


@pytest.mark.parametrize("bad_site", BAD_SITES.values(), ids=BAD_SITES.keys())
def test_bad_site_is_named(http, site, bad_site):
    assert_one_rejected(http, site, b'{"page":"/bad","site":' + bad_site.encode() + b"}", "/site")


def test_site_given_twice(http, site):
    bad = f'{{"page":"/bad","site":"{site}","site":"{site}"}}'
    assert_one_rejected(http, site, bad.encode(), "/site")


@pytest.mark.parametrize("item", ["5", '"text"', "null", "true", "[]", '[{"page":"/a"}]'])
def test_array_item_that_is_no_object(http, site, item):
    answer = http.post(f"[{text(site)},{item}]")
    assert answer.status == 202 and answer.json["accepted"] == 1
    assert_error(answer.errors[0], 1, "")
    assert total(http, site) == 1


# Accepted, and what it means


@pytest.mark.parametrize("members", [
    '"extra":1,"extra":2',
    '"extra":{"a":[1,2,{"b":null}],"c":""}',
    '"extra":123456789012345678901234567890e999999',
    '"extra":-0.0e-1',
    '"":"empty name"',
    '"ua":null,"referrer":null',
    '"ua":"","referrer":""',
    f'"ua":"{"a" * 16384}","referrer":"{"r" * 16384}"',
    f'"user":"{"u" * 256}"',
    '"user":0',
    '"user":-9223372036854775808',
    '"user":340282366920938463463374607431768211456',
    f'"user":{"9" * 256}',
    '"actions":[]',
    f'"actions":{json.dumps(list("abcdefgh"))}',
    f'"actions":["{"a" * 64}","a:b.c_d-9"]',
    '"user":"\\ud83d\\ude00 \u20ac"',
    '"ip":"::ffff:1.2.3.4"',
    '"ip":"2001:db8::"',
    '"ts":0',
    pytest.param(f'"ts":{NOW + 200}', id="ts a little ahead"),  # else two workers could name it differently
])
def test_accepted(http, site, members):
    answer = http.post(f'{{"site":"{site}","page":"/ok",{members}}}')
    assert answer.status == 202, answer
    assert answer.json == {"accepted": 1, "rejected": 0, "errors": []}
    assert http.count("pv", site=site, from_="1970-01-01", to="now+6m") == 1


@pytest.mark.parametrize("page", ["p" * 2048, "é" * 1024, "/", " ", "a b?c#d%20", "{x}", ":", '"\\', "\u0080"],
                         ids=lambda page: ascii(page[:12]))
def test_page_is_taken_as_given(http, site, page):
    other = page[:-1] or "x"
    http.accept([{"site": site, "page": page, "user": "u"}, {"site": site, "page": other}])
    for asked, uv in ((page, 1), (other, 0)):
        answer = http.question("/uv", site=site, page=asked, from_="now-1h")
        assert (answer["pages"], answer["uv"]) == ([asked], uv)
        assert http.count("pv", site=site, page=asked, from_="now-1h") == 1


@pytest.mark.parametrize("ts", [
    lambda at: at,
    lambda at: at * 1000 + 999,
    lambda at: f"{rfc3339(at)}",
    lambda at: rfc3339(at).replace("T", "t").replace("Z", "z"),
    lambda at: rfc3339(at).replace("Z", ".999999999Z"),
    lambda at: rfc3339(at).replace("Z", "+00:00"),
    lambda at: rfc3339(at + 19800).replace("Z", "+05:30"),
    lambda at: rfc3339(at - 12600).replace("Z", "-03:30"),
    lambda at: float(at) + 0.75,
    lambda at: rfc3339(at)[:17] + "60Z",
])
def test_ts_forms(http, site, ts):
    at = NOW // 60 * 60 - 7200  # a whole minute
    http.accept({"site": site, "page": "/", "ts": ts(at)})
    assert http.count("pv", site=site, from_=at, to=at + 60) == 1
    assert total(http, site) == 1


def test_ts_numbers_from_10_to_the_11_are_milliseconds(http, site):
    http.accept([{"site": site, "page": "/", "ts": 10**11}])  # 1973-03-03T09:46:40Z
    assert http.count("pv", site=site, from_="1973-03-01", to="1973-04-01") == 1


def test_event_without_ts_is_of_now(http, site):
    http.accept({"site": site, "page": "/"})
    assert http.count("pv", site=site, from_="now-2m", to="now") == 1
    assert http.count("pv", site=site, from_="now-3h", to="now-2m") == 0


def test_site_defaults_to_default(http):
    page = f"/{time.time_ns()}"
    http.accept({"page": page})
    assert http.count("pv", page=page, from_="now-1h") == 1
    assert http.count("pv", page=page, site="default", from_="now-1h") == 1


def counts(http, site, **params):
    return tuple(http.count(m, site=site, from_="now-1h", **params) for m in ("pv", "uv", "ips", "visits"))


@pytest.mark.parametrize("events, expected", [
    ([{}], (1, 0, 0, 0)),
    ([{"ua": "x"}], (1, 0, 0, 0)),
    ([{"user": "u"}, {"user": "u"}], (2, 1, 0, 1)),
    ([{"user": 42}, {"user": "42"}], (2, 1, 0, 1)),
    ([{"user": 42}, {"user": "042"}], (2, 2, 0, 2)),
    ([{"user": "u", "ip": "192.0.2.1"}, {"user": "u", "ip": "192.0.2.2"}], (2, 1, 2, 1)),
    ([{"ip": "192.0.2.1", "ua": "a"}, {"ip": "192.0.2.1", "ua": "b"}], (2, 2, 1, 2)),
    ([{"ip": "192.0.2.1", "ua": "a"}, {"ip": "192.0.2.1", "ua": "a"}], (2, 1, 1, 1)),
    ([{"ip": "192.0.2.1"}, {"ip": "192.0.2.1", "ua": None}], (2, 1, 1, 1)),
    ([{"ip": "2001:db8:0:0::1"}, {"ip": "2001:DB8::1"}, {"ip": "2001:db8::0.0.0.1"}], (3, 1, 1, 1)),
    ([{"ip": "192.0.2.1"}, {"ip": "::ffff:192.0.2.1"}, {"ip": "::ffff:c000:201"}], (3, 1, 1, 1)),
    ([{"ip": "192.0.2.1", "ua": "a"}, {"user": "192.0.2.1", "ua": "a"}], (2, 2, 1, 2)),
])
def test_who_is_a_visitor(http, site, events, expected):
    http.accept([{"site": site, "page": "/", **e} for e in events])
    assert counts(http, site) == expected


def test_escapes_and_plain_text_are_the_same(http, site):
    http.post(f'[{{"site":"{site}","page":"/caf\\u00e9\\/","user":"\\u0061"}},'
              f'{{"\\u0073ite":"{site}","page":"/café/","user":"a"}}]')
    assert counts(http, site, page="/café/") == (2, 1, 0, 1)


def test_sites_are_apart(http, site):
    http.accept([{"site": site, "page": "/", "user": "u", "ip": "192.0.2.7"},
                 {"site": site + ".b", "page": "/", "user": "u", "ip": "192.0.2.7"}])
    assert counts(http, site) == counts(http, site + ".b") == (1, 1, 1, 1)


# Bodies that are no JSON


MALFORMED = {
    "nothing": b"",
    "blanks": b" \r\n\t ",
    "a byte order mark": BOM + b'{"page":"/"}',
    "an open object": b'{"page":"/"',
    "an open array": b'[{"page":"/"}',
    "an open string": b'{"page":"/',
    "no value": b'{"page":}',
    "no colon": b'{"page" "/"}',
    "a comma too many": b'{"page":"/",}',
    "a comma too many in an array": b'[{"page":"/"},]',
    "text behind": b'{"page":"/"} x',
    "two values": b'{"page":"/"}{"page":"/"}',
    "a cut word": b'{"page":"/","x":nul}',
    "NaN": b'{"page":"/","x":NaN}',
    "a leading zero": b'{"page":"/","x":01}',
    "a plus": b'{"page":"/","x":+1}',
    "a bare point": b'{"page":"/","x":1.}',
    "hex": b'{"page":"/","x":0x10}',
    "single quotes": b"{'page':'/'}",
    "an unknown escape": b'{"page":"/\\x"}',
    "a short unicode escape": b'{"page":"/\\u12"}',
    "a control character in a string": b'{"page":"/\n"}',
    "a NUL": b'{"page":"/"}\0',
    "a comment": b'{"page":"/"} // x',
    "UTF-16": '{"page":"/"}'.encode("utf-16"),
    "a form": b"page=%2F&user=1",
    "depth 33": b'{"page":"/","x":' + b"[" * 32 + b"]" * 32 + b"}",
    "depth 100000": b'{"page":"/","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100000 open brackets": b"[" * 100_000,
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_body(http, site, body):
    answer = http.post(body)
    assert answer.status == 400, answer
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert re.search(r"line \d+", answer.json["detail"]) and re.search(r"column \d+", answer.json["detail"])

    if body.strip() and not body.startswith((BOM, b"\xff\xfe")):
        good = text(site).encode()
        answer = http.post(b"[" + good + b"," + body)  # a good event before it is not counted either
        assert answer.status == 400, answer
        assert total(http, site) == 0


def test_malformed_body_says_where(http):
    answer = http.post('{"page":"/",\n  "user": }')
    assert answer.status == 400
    assert "line 2" in answer.json["detail"] and "column 11" in answer.json["detail"]


def test_depth_32_is_accepted(http, site):
    deep = "[" * 31 + "]" * 31
    answer = http.post(f'{{"site":"{site}","page":"/","x":{deep}}}')
    assert answer.status == 202, answer


@pytest.mark.parametrize("body", ["5", '"text"', "null", "true"])
def test_body_that_is_neither_object_nor_array(http, body):
    assert http.post(body).status in (400, 422)


def test_empty_array(http):
    answer = http.post("[]")
    assert answer.status == 202
    assert answer.json == {"accepted": 0, "rejected": 0, "errors": []}


# NDJSON


def test_ndjson(http, site):
    good = text(site)
    answer = http.post(f'{good}\n\n  \r\n{good}\r\n{{"page":\n[{good}]\n{good} x\n\n{good}', NDJSON)
    assert answer.status == 202, answer
    assert (answer.json["accepted"], answer.json["rejected"]) == (3, 3)
    assert [e["index"] for e in answer.errors] == [4, 5, 6]
    assert total(http, site) == 3


def test_ndjson_all_bad(http):
    answer = http.post("{\n}\n", NDJSON)
    assert answer.status == 422
    assert [e["index"] for e in answer.errors] == [0, 1]


def test_detail_has_the_first_reason(http):
    """Senders' logs have nothing but the detail."""
    reason = "page must not be empty"
    assert http.post('{"page":""}').json["detail"] == f"the event is not acceptable: {reason}"
    answer = http.post('[{"page":""},{"page":1}]')
    assert answer.json["detail"] == f"none of the 2 events is acceptable; the first: {reason}"
    answer = http.post('[{"page":"/"},{"page":""}]', strict="1")
    assert answer.json["detail"] == f"1 of the events are not acceptable, and strict was asked for; the first: {reason}"


@pytest.mark.parametrize("body", [b"", b"\n\n", BOM + b'{"page":"/"}\n'])
def test_ndjson_without_json(http, body):
    assert http.post(body, NDJSON).status == 400


def test_ndjson_too_deep_a_line_is_rejected_alone(http, site):
    deep = f'{{"site":"{site}","page":"/","x":{"[" * 50_000}}}'
    answer = http.post(f"{text(site)}\n{deep}\n{text(site)}\n", NDJSON)
    assert answer.status == 202 and answer.json["accepted"] == 2
    assert [e["index"] for e in answer.errors] == [1]


# strict=1, and long lists of errors


@pytest.mark.parametrize("content_type", [None, NDJSON])
def test_strict(http, site, content_type):
    lines = [text(site), '{"page":""}', text(site)]
    body = "\n".join(lines) if content_type else f"[{','.join(lines)}]"
    answer = http.post(body, content_type, strict="1")
    assert answer.status == 422, answer
    assert [(e["index"], e["pointer"]) for e in answer.errors] == [(1, "/page")]
    assert total(http, site) == 0

    assert http.post(text(site), strict="1").status == 202
    assert http.post(body, content_type, strict="0").status == 202
    assert total(http, site) == 3


@pytest.mark.parametrize("params, name", [
    ({"strict": "yes"}, "strict"), ({"strict": ""}, "strict"), ({"strict": ["1", "1"]}, "strict"),
    ({"stric": "1"}, "stric"), ({"site": "a"}, "site"),
])
def test_bad_parameter(http, site, params, name):
    answer = http.post(text(site), **params)
    assert answer.status == 400, answer
    assert answer.errors[0]["parameter"] == name
    assert total(http, site) == 0


def test_at_most_100_errors_are_listed_but_all_counted(http, site):
    bad, good = '{"page":""}', text(site)
    answer = http.post(f"[{','.join([bad] * 249 + [good] * 10 + [bad])}]")
    assert answer.status == 202
    assert (answer.json["accepted"], answer.json["rejected"]) == (10, 250)
    assert [e["index"] for e in answer.errors] == list(range(LISTED))
    assert total(http, site) == 10

    answer = http.post(f"[{','.join([bad] * 150)}]")
    assert answer.status == 422
    assert len(answer.errors) == LISTED


# Limits


@pytest.mark.parametrize("content_type, begin, between, end", [(None, "[", ",", "]"), (NDJSON, "", "\n\n", "\n")])
def test_event_limit(http, site, content_type, begin, between, end):
    event = text(site)
    too_many = begin + between.join([event] * (MAX_EVENTS + 1)) + end
    answer = http.post(too_many, content_type)
    assert answer.status == 413, answer
    assert total(http, site) == 0

    exactly = begin + between.join([event] * MAX_EVENTS) + end
    answer = http.post(exactly, content_type)
    assert answer.status == 202 and answer.json["accepted"] == MAX_EVENTS
    assert total(http, site) == MAX_EVENTS


def test_events_that_are_rejected_count_towards_the_limit(http):
    assert http.post(f"[{','.join(['1'] * (MAX_EVENTS + 1))}]").status == 413


MAX_BODY = 64 * 1024


@pytest.fixture(scope="module")
def small():
    """A tallyd that takes bodies of 64 KiB and keeps nothing longer than about a year."""
    redis = Redis().start()
    daemon = Tallyd("--max-body", "64KiB", "--keep-hours", "31d", "--keep-days", "62d",
                    "--keep-months", "366d", redis=redis, name="small")
    try:
        yield daemon.start()
    finally:
        daemon.stop()
        redis.stop()


def body_of(site, size):
    """A batch with one event, of exactly so many bytes."""
    shell = len(f"[{text(site)}]")
    return f"[{text(site)}{' ' * (size - shell)}]".encode()


def chunked(body, size=8192):
    return b"".join(b"%x\r\n%s\r\n" % (len(c), c)
                    for c in (body[i:i + size] for i in range(0, len(body), size))) + b"0\r\n\r\n"


HEAD = "POST /events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_body_limit(small, site):
    http = small.client()
    answer = http.post(body_of(site, MAX_BODY + 1))
    assert answer.status == 413 and answer.json["status"] == 413, answer
    assert total(small.client(), site) == 0
    assert small.client().post(body_of(site, MAX_BODY)).status == 202
    assert total(small.client(), site) == 1


def test_body_limit_chunked(small, site):
    for body, status in ((body_of(site, MAX_BODY + 1), 413), (body_of(site, MAX_BODY), 202)):
        with Raw(small.port) as raw:
            raw.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n").try_send(chunked(body))
            assert raw.receive()[0] == status
    assert total(small.client(), site) == 1


def test_body_limit_counts_decompressed_bytes(small, site):
    for body, status in ((body_of(site, MAX_BODY + 1), 413), (body_of(site, MAX_BODY), 202)):
        assert small.client().post(body, zipped=True).status == status
    assert total(small.client(), site) == 1


def test_gzip_bomb(small):
    assert small.client().post(b" " * (64 << 20), zipped=True).status == 413
    assert small.client().get("/healthz").status == 200


def test_announced_body_over_the_limit_is_refused_at_once(small):
    with Raw(small.port) as raw:
        raw.send(HEAD + "Content-Length: 1000000000\r\n\r\n")
        assert raw.receive()[0] == 413


def test_endless_body_is_not_stored(small):
    before = resident(small.pid)
    with Raw(small.port) as raw:
        raw.send(HEAD + "Transfer-Encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
        for _ in range(1000):  # 62 MiB; the server may answer and close before
            if raw.readable(0) or not raw.try_send(chunk):
                break
        raw.try_send(b"0\r\n\r\n")
        answer = raw.receive()
        assert answer is None or answer[0] == 413
    assert resident(small.pid) - before < 8 * MIB


def test_older_than_everything_that_is_kept(small, site):
    http = small.client()
    old = {"site": site, "page": "/", "ts": NOW - 500 * 86400}
    answer = http.post([old, {"site": site, "page": "/", "ts": NOW - 300 * 86400}])
    assert answer.status == 202 and answer.json["accepted"] == 1, answer
    assert_error(answer.errors[0], 0, "/ts")
    assert http.post(old).status == 422
    assert http.count("pv", site=site, from_=rfc3339(NOW - 330 * 86400), round="outer") == 1


# Types and encodings


@pytest.mark.parametrize("content_type", [
    None, "application/json", "application/json; charset=utf-8", "Application/JSON", "application/json;charset=UTF-8",
])
def test_json_types(http, site, content_type):
    assert http.post(text(site), content_type).status == 202
    assert total(http, site) == 1


@pytest.mark.parametrize("content_type", ["application/x-ndjson; charset=utf-8", "APPLICATION/X-NDJSON"])
def test_ndjson_types(http, site, content_type):
    assert http.post(f"{text(site)}\n{text(site)}", content_type).json["accepted"] == 2


@pytest.mark.parametrize("content_type", [
    "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/xml", "json", "*/*",
])
def test_other_types_are_415(http, site, content_type):
    answer = http.post(text(site), content_type)
    assert answer.status == 415, answer
    assert answer.json["status"] == 415 and answer.json["message"] == answer.json["detail"]
    assert answer.json["detail"] == "Content-Type must be application/json or application/x-ndjson"
    assert total(http, site) == 0


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_other_encodings_are_415(http, site, encoding):
    answer = http.post(text(site), headers={"Content-Encoding": encoding})
    assert answer.status == 415, answer
    assert total(http, site) == 0


@pytest.mark.parametrize("content_type", [None, NDJSON])
def test_gzip(http, site, content_type):
    answer = http.post(text(site), content_type, zipped=True)
    assert answer.status == 202, answer
    assert total(http, site) == 1


def test_gzip_of_several_members(http, site):
    halves = gzip.compress(b"[" + text(site).encode()) + gzip.compress(b"," + text(site).encode() + b"]")
    assert http.post(halves, headers={"Content-Encoding": "gzip"}).status == 202
    assert total(http, site) == 2


def broken_gzip(site):
    whole = gzip.compress(f"[{text(site)}]".encode())
    yield "no gzip", text(site).encode()
    yield "nothing", b""
    yield "cut", whole[:-9]
    yield "cut in the checksum", whole[:-2]
    yield "a wrong checksum", whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    yield "damaged", whole[:15] + bytes(b ^ 0xff for b in whole[15:20]) + whole[20:]


@pytest.mark.parametrize("kind", [name for name, _ in broken_gzip("x")])
def test_broken_gzip(http, site, kind):
    answer = http.post(dict(broken_gzip(site))[kind], headers={"Content-Encoding": "gzip"})
    assert answer.status == 400, answer
    assert total(http, site) == 0


# What is counted about it


def test_metrics_count_events(http, site):
    accepted, rejected = (http.metric(f"tallyd_events_{k}_total") for k in ("accepted", "rejected"))
    http.post(f'[{text(site)},{text(site)},{{"page":""}}]')
    http.post('{"page":""}')
    assert http.metric("tallyd_events_accepted_total") == accepted + 2
    assert http.metric("tallyd_events_rejected_total") == rejected + 2
    assert any(k.startswith("tallyd_events_rejected_total{reason=") for k in http.metrics())


def test_acknowledged_means_visible_to_every_question(http, site):
    for i in range(50):
        http.accept({"site": site, "page": f"/{i}", "user": f"u{i}", "ip": f"192.0.2.{i}"})
        assert counts(http, site, page=f"/{i}") == (1, 1, 1, 1)
        pv, *_ = counts(http, site)
        assert pv == i + 1


def test_requests_at_once_are_all_counted(tallyd, site):
    def send(client_id):
        client = tallyd.client()
        for i in range(20):
            client.accept([{"site": site, "page": "/", "user": f"{client_id} {i}"}] * 3)
        return 60

    with ThreadPoolExecutor(16) as pool:
        sent = sum(pool.map(send, range(16)))
    http = tallyd.client()
    assert counts(http, site)[0] == sent == 960
    assert counts(http, site)[3] == 320
    wait_until(lambda: http.metric("tallyd_queue_events") == 0, "the queue is empty")


# What is valid and yet not counted

GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


def dropped(http, reason):
    return http.metric(f'tallyd_events_dropped_total{{reason="{reason}"}}')


def test_robots_count_unless_told_otherwise(http, site):
    events = [{"page": "/", "site": site, "ua": ua, "user": "u"} for ua in (GOOGLEBOT, FIREFOX, None)]
    http.accept(events)
    http.accept(events, bots="count")
    assert total(http, site) == 6


@pytest.mark.parametrize("form", ["application/json", NDJSON])
def test_dropped_robots_are_listed(http, site, form):
    before = dropped(http, "robot")
    events = [{"page": "/", "site": site, "ua": ua} for ua in (FIREFOX, GOOGLEBOT, None, "Googlebot")] + [{"site": site, "ua": GOOGLEBOT}]
    body = "\n\n".join(json.dumps(e) for e in events) if form == NDJSON else json.dumps(events)
    step = 2 if form == NDJSON else 1
    response = http.post(body, form, bots="drop")
    assert response.status == 202
    assert response.json == {
        "accepted": 2, "rejected": 1, "errors": [{"index": 4 * step, "pointer": "/page", "detail": "one of page, event and actions is required"}],
        "dropped": [{"index": step, "reason": "robot"}, {"index": 3 * step, "reason": "robot"}], "dropped_total": 2}
    assert total(http, site) == 2 and dropped(http, "robot") == before + 2


def test_all_of_a_request_dropped_is_a_202(http, site):
    events = [{"page": "/", "site": site, "ua": GOOGLEBOT}] * (LISTED + 50)
    for headers in ({}, {"Idempotency-Key": site}, {"Idempotency-Key": site}):
        response = http.post(events, bots="drop", headers=headers)
        assert response.status == 202 and response.json["accepted"] == response.json["rejected"] == 0
        assert response.json["dropped_total"] == LISTED + 50 and len(response.json["dropped"]) == LISTED
    assert response.headers["Idempotency-Replayed"] == "true"
    one_is_bad = http.post([{"page": "/", "site": site, "ua": GOOGLEBOT}, {"site": site}], bots="drop")
    assert one_is_bad.status == 202 and one_is_bad.json["dropped_total"] == one_is_bad.json["rejected"] == 1
    strict = http.post([{"page": "/", "site": site, "ua": GOOGLEBOT}, {"site": site}], bots="drop", strict=1)
    assert strict.status == 422 and [e["index"] for e in strict.errors] == [1]
    assert total(http, site) == 0
    assert http.post([{"page": "/", "site": site}] * MAX_EVENTS + [{"page": "/", "site": site, "ua": GOOGLEBOT}], bots="drop").status == 413


@pytest.mark.parametrize("value", ["", "1", "yes", "Drop", "drop,count"])
def test_other_words_for_bots_are_400(http, site, value):
    response = http.post({"page": "/", "site": site}, bots=value)
    assert response.status == 400 and response.errors[0]["parameter"] == "bots"
    assert http.request("POST", "/events?bots=drop&bots=drop", text(site)).status == 400


def test_options_say_what_is_dropped(start_tallyd, redis, site):
    http = start_tallyd("--bots", "drop", "--ignore-ip", "203.0.113.0/24, 2001:db8::/32", redis=redis).client()
    events = [{"page": "/", "site": site, **more} for more in (
        {"ua": GOOGLEBOT}, {"ip": "203.0.113.7"}, {"ip": "2001:db8::1"}, {"ip": "::ffff:203.0.113.9"}, {"ip": "203.0.114.1"}, {})]
    response = http.post(events)
    assert response.json["dropped"] == [{"index": 0, "reason": "robot"}] + [{"index": i, "reason": "ignored"} for i in (1, 2, 3)]
    assert response.json["accepted"] == 2 and response.json["dropped_total"] == 4
    assert dropped(http, "robot") == 1 and dropped(http, "ignored") == 3
    assert http.post(events[:1], bots="count").json == {"accepted": 1, "rejected": 0, "errors": []}
    assert total(http, site) == 3


def test_only_declared_sites(start_tallyd, redis, directory, site):
    directory.mkdir(exist_ok=True)
    path = directory / "tallyd.conf"
    path.write_text(f"only-declared-sites = on\nsite.{site}.tz = UTC\nsite.{site}-2.origins = https://b.example\n"
                    f"site.{site}-2.tz = UTC\n")
    http = start_tallyd("--config", path, redis=redis).client()
    names = [site, f"{site}-2", f"{site}-3", site[:-1], f"{site}x"]
    response = http.post([{"page": "/", "site": name} for name in names] + [{"page": "/"}])
    assert response.status == 202 and response.json["accepted"] == 2
    assert [(e["index"], e["pointer"]) for e in response.errors] == [(i, "/site") for i in (2, 3, 4, 5)]
    response = http.post({"page": "/"})
    assert response.status == 422 and response.errors[0]["pointer"] == "/site"
    assert http.request("GET", f"/pixel.gif?page=/&site={site}-3").status == 422
    assert http.request("GET", f"/pixel.gif?page=/&site={site}").status == 202
    for name, status in ((f"{site}-3", 422), (f"{site},{site}-3", 422), (site, 202)):
        response = http.request("POST", "/api/event", json.dumps({"n": "pageview", "u": "https://a.example/", "d": name}))
        assert response.status == status and (status == 202 or response.errors[0]["pointer"] == "/site")
    assert total(http, site) == 3
