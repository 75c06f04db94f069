"""deploy/'s files for log shippers.  Neither Vector nor Fluent Bit is in Debian 12, so the requests that their documentation and
sources describe are made here from the files, and held against tallyd; Fluent Bit's parser and filters are run by Python's re,
its script by Redis's Lua."""

import datetime
import gzip
import json
import re
import time
import urllib.parse

import pytest
import yaml

from lib.client import NDJSON, query
from lib.process import ROOT
from test_client_python import QUERIES

DEPLOY = ROOT / "deploy"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
UTM = ("utm_source", "utm_medium", "utm_campaign", "utm_term", "utm_content")
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


def sections(name):
    """[(section, [(key, value)])] of a file in Fluent Bit's classic format."""
    found = []
    for line in (DEPLOY / name).read_text().splitlines():
        text = line.strip()
        if text.startswith("["):
            found.append((text.strip("[]"), []))
        elif text and not text.startswith("#"):
            found[-1][1].append(tuple(text.split(None, 1)))
    return found


def log_lines(now):
    """[(line, is it a page view of a person?)], as nginx writes them."""
    at = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%d/%b/%Y:%H:%M:%S +0000")

    def line(request, status, ua=FIREFOX, address="192.0.2.7"):
        return f'{address} - - [{at}] "{request}" {status} 512 "https://example.org/?a=b" "{ua}"'

    return [(line("GET /a?b=c&utm_source=news&utm_campaign=M%C3%A4rz HTTP/1.1", 200), True), (line("GET /a HTTP/2.0", 200), True), (line("POST /a HTTP/1.1", 201), True),
            (line("GET /b%20c HTTP/1.1", 304, address="2001:db8::1"), True), (line("HEAD /a HTTP/1.1", 200), False),
            (line("GET /a HTTP/1.1", 301), False), (line("GET /none HTTP/1.1", 404), False), (line("GET /down HTTP/1.1", 503), False),
            (line("GET /style.css?v=1 HTTP/1.1", 200), False), (line("GET /Logo.PNG HTTP/1.1", 200), False),
            (line("GET /a HTTP/1.1", 200, ua=GOOGLEBOT), False), (line("\\x16\\x03\\x01", 400), False), ("half a line", False)]


def scripted(redis, record, name):
    """What the script makes of a record, by its function `name`."""
    text = (DEPLOY / "fluent-bit.lua").read_text().replace(f"function {name}", f"local function {name}")
    run = f"{text}\nlocal _, _, made = {name}('tag', 0, cjson.decode(ARGV[1]))\nreturn cjson.encode(made)"
    return json.loads(redis.command("EVAL", run, "0", json.dumps(record)))


def fluent_bit_records(now, redis):
    """What the files make of the log: parsed, filtered, with the offset, the date first as out_http packs it."""
    parser = dict(next(entries for name, entries in sections("fluent-bit-parsers.conf") if name == "PARSER"))
    regex = re.compile(re.sub(r"\(\?<(\w+)>", r"(?P<\1>", parser["Regex"]))
    filters = [entries for name, entries in sections("fluent-bit.conf") if name == "FILTER"]
    (tail,) = [dict(entries) for name, entries in sections("fluent-bit.conf") if name == "INPUT"]
    output = fluent_bit_output()
    records, offset = [], 0
    for line, _ in log_lines(now):
        found = regex.search(line)
        record = found.groupdict() if found else {"log": line}
        stamp = record.pop(parser["Time_Key"], None)
        record[tail["Offset_Key"]] = offset
        offset += len(line) + 1
        if all(passes(entries, record, redis) for entries in filters):
            at = datetime.datetime.strptime(stamp, parser["Time_Format"]).astimezone(datetime.timezone.utc)
            records.append({output["Json_Date_Key"]: at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), **record})
    return records


def passes(entries, record, redis):
    """Run one filter: grep decides, modify adds, lua makes another record."""
    kind = dict(entries)["Name"]
    if kind == "lua":
        assert dict(entries)["script"] == "fluent-bit.lua"
        made = scripted(redis, record, dict(entries)["call"])
        record.clear()
        record.update(made)
    for key, value in entries:
        name, _, text = value.partition(" ")
        if kind == "modify" and key == "Set":
            record[name] = text
        elif kind == "grep" and key in ("Regex", "Exclude"):
            if bool(re.search(text, record.get(name, ""))) != (key == "Regex"):
                return False
    return True


def fluent_bit_output():
    return dict(next(entries for name, entries in sections("fluent-bit.conf") if name == "OUTPUT"))


def fluent_bit_post(http, records):
    """As out_http sends a chunk with Format json_lines, Compress gzip and Json_Date_Format iso8601."""
    output = fluent_bit_output()
    assert (output["Format"], output["Json_Date_Format"], output["Compress"]) == ("json_lines", "iso8601", "gzip")
    assert output["Allow_Duplicated_Headers"] == "false", "else a Content-Type of Fluent Bit's own would be sent, too"
    name, kind = output["Header"].split()
    assert (name, kind) == ("Content-Type", NDJSON)
    body = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records).encode()
    return http.request("POST", output["URI"], gzip.compress(body), {
        name: kind, "Content-Encoding": "gzip", "User-Agent": "Fluent-Bit"})


def views(http, site):
    return {row["page"]: row["pv"] for row in http.question("/pages", site=site, from_="now-1h")["pages"]}


def sources(http, site):
    return {row["value"]: row["pv"] for row in http.question("/breakdown", site=site, by="source", from_="now-1h")["rows"]}


def campaigns(http, site):
    return {row["value"]: row["pv"] for row in http.question("/breakdown", site=site, by="utm_campaign", from_="now-1h")["rows"]}


def test_fluent_bit(http, site, redis):
    now = int(time.time())
    records = [{**record, "site": site} for record in fluent_bit_records(now, redis)]
    assert len(records) == sum(is_view for _, is_view in log_lines(now)) + 1, "the robot is tallyd's to leave out"
    for replayed in (None, "true", "true"):  # as a chunk is repeated: the same bytes
        response = fluent_bit_post(http, records)
        assert response.status == 202 and response.headers["Idempotency-Replayed"] == replayed, response
    assert response.json["accepted"] == 4 and response.json["dropped_total"] == 1
    assert views(http, site) == {"/a": 3, "/b%20c": 1} and http.count("uv", site=site, from_="now-1h") == 2
    assert sources(http, site) == {"example.org": 3, "news": 1} and campaigns(http, site) == {"März": 1, "(none)": 3}
    assert fluent_bit_post(http, [dict(records[0], offset=99_999)]).status == 202
    assert views(http, site)["/a"] == 4, "another line of the same second, page and visitor counts"


@pytest.mark.parametrize("query, expected", QUERIES)
def test_fluent_bits_script_reads_a_campaign_as_the_clients_do(redis, query, expected):
    made = scripted(redis, {"page": "/", "query": query.decode()}, "campaign")
    assert made == {"page": "/", **dict(zip(UTM, expected))}


@pytest.mark.parametrize("bad", ["%C0%AF", "%E0%80%80", "%ED%A0%80", "%F4%90%80%80", "%F0%9F%98", "a%C3", "%80", "%00", "%1F", "%7F"])
def test_fluent_bits_script_passes_over_what_is_no_text(redis, bad):
    assert scripted(redis, {"query": f"utm_term=x{bad}y"}, "campaign") == {}


def msgpack_bytes(value):
    """How long a string, a small integer or a map of these is in msgpack."""
    if isinstance(value, dict):
        return 1 + sum(msgpack_bytes(k) + msgpack_bytes(v) for k, v in value.items())
    n = len(value.encode()) if isinstance(value, str) else 0
    return n + (1 if n < 32 else 2 if n < 256 else 3)


def test_a_chunk_of_fluent_bit_fits_a_request(redis):
    """2,048,000 bytes and one append of the tail's buffer beyond; a record has 13 bytes of its own, time and metadata.  The
    shortest line is taken: where it fits all do."""
    record = fluent_bit_records(int(time.time()), redis)[1]  # without a campaign
    shortest = {**record, "ip": "::", "page": "/", "ua": "", "site": "a", "offset": 0}
    shortest.pop("ts")
    assert (2_048_000 + 100_000) / (13 + msgpack_bytes(shortest)) < 10_000


def test_fluent_bit_keeps_what_is_not_sent():
    everything = sections("fluent-bit.conf")
    assert fluent_bit_output()["Retry_Limit"] == "no_limits"
    (tail,) = [dict(entries) for name, entries in everything if name == "INPUT"]
    service = dict(everything[0][1])
    assert tail["DB"] and tail["storage.type"] == "filesystem" and service["storage.path"]
    assert (DEPLOY / service["Parsers_File"]).exists()


# Vector


@pytest.fixture(name="vector")
def parsed():
    return yaml.safe_load((DEPLOY / "vector.yaml").read_text())


def vector_post(http, sink, events):
    """As the http sink sends a batch: newline_delimited without the last newline, gzip."""
    assert (sink["encoding"]["codec"], sink["framing"]["method"], sink["compression"]) == ("json", "newline_delimited", "gzip")
    target = re.fullmatch(r"http://127\.0\.0\.1:8080(/\S+)", sink["uri"])[1]
    body = "\n".join(json.dumps(event, separators=(",", ":"), sort_keys=True) for event in events).encode()
    return http.request(sink["method"].upper(), target, gzip.compress(body), {
        "Content-Type": NDJSON, "Content-Encoding": "gzip", "User-Agent": "Vector/0.50.0 (x86_64-unknown-linux-gnu)"})


def vector_events(vector, site, now):
    """The events that the transform makes: its last line names the members, and its patterns those of a campaign."""
    made = vector["transforms"]["page_views"]["source"].rstrip().splitlines()[-1]
    names = re.findall(r'"(\w+)":', made)
    assert made.endswith("}, utm)")
    assert names == ["site", "page", "ip", "ua", "referrer", "ts", "offset"], made
    at = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    values = [(page, ua) for page, ua in (("/a", FIREFOX), ("/a", FIREFOX), ("/b", FIREFOX), ("/a", GOOGLEBOT))]
    events = [dict(zip(names, (site, page, "192.0.2.7", ua, "https://example.org/", at, 100 * i))) for i, (page, ua) in enumerate(values)]
    events[0].update(vector_campaign(vector, "b=c&utm_source=news&utm_campaign=M%C3%A4rz&utm_id=7"))
    events[1].update(vector_campaign(vector, "utm_source=%00&utm_source=late&utm_term=" + "x" * 257))
    return events


def vector_campaign(vector, query):
    """As parse_query_string(), filter() and map_values() of the transform do."""
    source = vector["transforms"]["page_views"]["source"]
    name, control = re.findall(r"match\((?:name|text), r'(.*)'\)", source)
    given = {key: values[0] for key, values in urllib.parse.parse_qs(query, keep_blank_values=True).items() if re.search(name, key)}
    longest = int(re.search(r"length\(text\) <= (\d+)", source)[1])
    return {key: text if len(text.encode()) <= longest and not re.search(control, text) else "" for key, text in given.items()}


def test_vector(vector, http, site):
    sink = vector["sinks"]["tallyd"]
    events = vector_events(vector, site, int(time.time()))
    for replayed in (None, "true"):
        response = vector_post(http, sink, events)
        assert response.status == 202 and response.headers["Idempotency-Replayed"] == replayed, response
    assert views(http, site) == {"/a": 2, "/b": 1} and sources(http, site) == {"example.org": 2, "news": 1}
    assert campaigns(http, site) == {"März": 1, "(none)": 2}
    assert response.json["accepted"] == 3 and response.json["dropped_total"] == 1
    assert vector_post(http, sink, [dict(events[0], offset=4711)]).status == 202
    assert views(http, site) == {"/a": 3, "/b": 1}
    assert http.request("HEAD", re.sub(r"^http://[^/]+", "", sink["healthcheck"]["uri"])).status == 200


def test_a_batch_of_vector_fits_a_request(vector, http, site):
    sink = vector["sinks"]["tallyd"]
    assert sink["batch"]["max_events"] <= 10_000 and sink["batch"]["max_bytes"] <= 8 << 20
    (event, *_) = vector_events(vector, site, int(time.time()))
    whole = [dict(event, offset=i) for i in range(sink["batch"]["max_events"])]
    assert vector_post(http, sink, whole).json["accepted"] == len(whole)
    assert http.count("pv", site=site, from_="now-1h") == len(whole)


def test_what_a_shipper_forgets_is_refused_and_not_counted_twice(http, site):
    """dedupe=body without `ts` in each event: 422, and nothing counted."""
    good, bad = {"page": "/a", "site": site, "ts": int(time.time())}, {"page": "/b", "site": site}
    response = http.request("POST", "/events" + query({"dedupe": "body"}), json.dumps(good) + "\n" + json.dumps(bad), {"Content-Type": NDJSON})
    assert response.status == 422 and http.count("pv", site=site, from_="now-1h") == 0, response
