"""/filters: RedisBloom's figures, racing adders, bad input, deletion, and what a lost connection means."""

import json
import mmap
import re
import threading
import time

import pytest

from lib.client import query
from lib.memory import MIB, of_redis
from lib.proxy import Fault
from lib.waiting import wait_until


class Filter:
    """A named filter, asked over one connection."""

    def __init__(self, http, site, name="f"):
        self.http, self.site, self.name = http, site, name

    def request(self, method, tail="", body=None):
        text = json.dumps(body) if isinstance(body, (dict, list)) else body
        return self.http.request(method, f"/filters/{self.name}{tail}" + query({"site": self.site}), text)

    def put(self, status=201, **parameters):
        response = self.request("PUT", body=parameters)
        assert response.status == status, response
        return response.json

    def get(self):
        response = self.request("GET")
        assert response.status == 200, response
        return response.json

    def add(self, items):
        response = self.request("POST", "/add", {"items": items})
        assert response.status == 200, response
        return response.json["added"]

    def check(self, items):
        response = self.request("POST", "/check", {"items": items})
        assert response.status == 200, response
        return response.json["seen"]

    def add_all(self, items):
        return sum(sum(self.add(items[i:i + 1000])) for i in range(0, len(items), 1000))

    def check_all(self, items):
        return sum(sum(self.check(items[i:i + 1000])) for i in range(0, len(items), 1000))


@pytest.fixture
def filter_(http, site):
    return Filter(http, site)


def numbers(n, begin=0):
    return [str(i) for i in range(begin, begin + n)]


def keys(redis, site):
    return sorted(k for k in redis.command("KEYS", "t:*") if f":{site}:" in k)


# As RedisBloom

VECTORS = [
    # error, capacity, items added, new among them, layers, bytes, hashes of the newest
    (0.01, 10, 100, 99, 4, 16 + 32 + 72 + 160, 11),
    (0.001, 100, 4000, 3997, 6, 200 + 432 + 936 + 2016 + 4320 + 9216, 16),
]


@pytest.mark.parametrize("error, capacity, n, new, layers, size, hashes", VECTORS)
def test_figures_are_redisblooms(filter_, error, capacity, n, new, layers, size, hashes):
    filter_.put(capacity=capacity, error_rate=error)
    assert filter_.add_all(numbers(n)) == new
    answer = filter_.get()
    assert (answer["items"], answer["layers"], answer["bytes"], answer["hashes"]) == (new, layers, size, hashes)
    assert answer["capacity"] == capacity * (2**layers - 1) and answer["error_rate"] == error
    assert 0 < answer["expected_false_positive_rate"] < error
    assert filter_.check_all(numbers(n)) == n
    assert filter_.add_all(numbers(n)) == 0


def test_sizes_are_redisblooms(http, site):
    fixed = Filter(http, site, "fixed")
    assert fixed.put(capacity=3, expansion=0)["bytes"] == 8
    large = Filter(http, site, "large")
    answer = large.put(capacity=50000, error_rate=0.001)
    assert (answer["bytes"], answer["hashes"], answer["layers"], answer["fill"]) == (98880, 11, 1, 0)
    plain = Filter(http, site, "plain").put(capacity=1_000_000, error_rate=0.01, expansion=0)
    assert plain["bits_per_item"] == pytest.approx(9.585, abs=0.001) and plain["hashes"] == 7


def test_bits_in_redis_are_redisblooms(redis, filter_, site):
    filter_.put(capacity=10, error_rate=0.01)
    filter_.add(["foo"])
    (key,) = [k for k in keys(redis, site) if ":bfl:" in k]
    text = redis.command("EVAL", "return {redis.call('GET', KEYS[1]):byte(1, -1)}", 1, key)
    assert {8 * i + bit for i, byte in enumerate(text) for bit in range(8) if byte >> bit & 1} \
        == {13, 79, 17, 83, 21, 87, 25, 91}


FOO = 0x822b4f99b121f10d, 0x9d63d52a557f61c2  # its hashes, as RedisBloom has them


@pytest.mark.parametrize("capacity, error, size, hashes", [
    (1_000_000, 0.01, 1_378_472, 8), (300_000, 0.001, 593_264, 11), (3_000_000, 0.01, 4_135_408, 8),
])
def test_a_long_string_is_redisblooms(redis, filter_, site, capacity, error, size, hashes):
    """Up to 4 MiB."""
    figures = filter_.put(capacity=capacity, error_rate=error)
    assert (figures["bytes"], figures["hashes"], figures["layers"]) == (size, hashes, 1)
    assert filter_.add(["foo", "bar", "foo"]) == [True, True, False]
    filter_.add_all(numbers(1000))
    (key,) = [k for k in keys(redis, site) if ":bfl:" in k]
    assert redis.command("STRLEN", key) == size
    a, b = FOO
    for i in range(hashes):
        bit = (a + i * b) % 2**64 % (8 * size)
        assert redis.command("GETBIT", key, bit ^ 7) == 1, "the lowest bit of a byte is the first"
    assert 1000 * hashes < redis.command("BITCOUNT", key) <= 1002 * hashes, "and no others"
    assert filter_.check(["foo", "bar", "baz"]) == [True, True, False]
    assert filter_.check_all(numbers(1000)) == 1000 and filter_.check_all(numbers(1000, 10_000)) == 0


def test_what_was_stored_in_longer_strings_stays_as_it_is(redis, filter_, site):
    """Filters of an earlier tallyd: their hash has another number, or none."""
    for rules, capacity, longest in ((None, 3_000_000, 4_135_408), ("2", 20_000_000, 1 << 20)):
        figures = filter_.put(capacity=capacity)
        (home,) = [k for k in keys(redis, site) if ":bf:" in k]
        assert redis.command("HGET", home, "rules") == ("4" if rules == "2" else "1")
        redis.command(*(("HSET", home, "rules", rules) if rules else ("HDEL", home, "rules")))
        assert filter_.add_all(numbers(2000)) == 2000 and filter_.add_all(numbers(2000)) == 0
        assert filter_.check_all(numbers(2000)) == 2000 and filter_.check_all(numbers(1000, 10_000)) == 0
        strings = [redis.command("STRLEN", k) for k in keys(redis, site) if ":bfl:" in k]
        assert 256 << 10 < max(strings) <= longest and (rules == "2" or strings == [longest])
        assert filter_.get()["bytes"] == pytest.approx(figures["bytes"], rel=0.03)
        assert filter_.request("DELETE").status == 204
        assert not [k for k in keys(redis, site) if ":bfl:" in k]


def test_add_makes_an_unknown_filter(filter_):
    assert filter_.request("GET").status == 404
    assert filter_.add(["a", "b", "a", 42, "42"]) == [True, True, False, True, False]
    answer = filter_.get()
    assert (answer["capacity"], answer["error_rate"], answer["expansion"], answer["items"]) == (10000, 0.01, 2, 3)
    assert filter_.check([42, "a", "c"]) == [True, True, False]


def test_put_again(filter_):
    first = filter_.put(capacity=100, error_rate=0.01)
    filter_.add(["a"])
    assert filter_.put(200, capacity=100, error_rate=0.01, expansion=2)["items"] == first["items"] + 1
    for other in ({"capacity": 101}, {"capacity": 100, "error_rate": 0.02}, {"capacity": 100, "expansion": 0}):
        assert "capacity 100, error_rate 0.01, expansion 2" in filter_.request("PUT", body=other).json["detail"]
        filter_.put(409, **other)
    assert filter_.get()["items"] == 1


def test_sites_and_names_are_apart(http, site):
    one, two, three = Filter(http, site, "a"), Filter(http, site + "x", "a"), Filter(http, site, "a.b-c_D")
    assert one.add(["x"]) == two.add(["x"]) == three.add(["x"]) == [True]
    assert one.request("DELETE").status == 204
    assert two.check(["x"]) == three.check(["x"]) == [True]
    assert one.request("POST", "/check", {"items": ["x"]}).status == 404


def test_items_may_be_any_text(filter_):
    items = ["\u0000", "ä", "a" * 100_000, "\n", "{}", "t:{0}:meta"]
    assert filter_.add(items) == [True] * len(items)
    assert filter_.check(items) == [True] * len(items)


def test_a_fixed_filter_gets_full(filter_):
    filter_.put(capacity=3, expansion=0)
    assert filter_.add(["a", "b"]) == [True, True]
    response = filter_.request("POST", "/add", {"items": ["a", "c", "d", "c", "e"]})
    assert response.status == 409 and "2 of 5 items" in response.json["detail"]
    assert [e["pointer"] for e in response.errors] == ["/items/2", "/items/4"]
    assert filter_.check(["a", "b", "c"]) == [True] * 3 and filter_.get()["items"] == 3
    assert filter_.add(["c", "a"]) == [False, False], "what is in needs no room"


def test_it_survives_a_restart_of_tallyd(start_redis, start_tallyd):
    redis = start_redis()
    tallyd = start_tallyd(redis=redis)
    first = Filter(tallyd.client(), "s")
    first.put(capacity=7, error_rate=0.003)
    first.add_all(numbers(100))
    before = first.get()
    tallyd.kill()
    again = Filter(start_tallyd("--seen-error", "0.2", redis=redis).client(), "s")
    assert again.get() == before and again.check_all(numbers(100)) == 100


# Bad input

PUT_FAULTS = [
    ({"capacity": 0}, "/capacity"), ({"capacity": 2**30 + 1}, "/capacity"), ({"capacity": -1}, "/capacity"),
    ({"capacity": 1.5}, "/capacity"), ({"capacity": 1e30}, "/capacity"), ({"capacity": 10**30}, "/capacity"),
    ({"capacity": 5, "expansion": 10**30}, "/expansion"), ({"error_rate": 1e-300}, "/error_rate"), ({"capacity": "10"}, "/capacity"), ({"capacity": None}, "/capacity"),
    ({"error_rate": 0}, "/error_rate"), ({"error_rate": 0.26}, "/error_rate"), ({"error_rate": -0.1}, "/error_rate"),
    ({"error_rate": 1}, "/error_rate"), ({"error_rate": 1e-16}, "/error_rate"), ({"error_rate": "x"}, "/error_rate"),
    ({"expansion": 1}, "/expansion"), ({"expansion": 3}, "/expansion"), ({"expansion": -1}, "/expansion"),
    ({"expansion": 2.5}, "/expansion"), ({"Capacity": 5}, ""), ([], ""), ("1", ""), ("null", ""),
]
ITEM_FAULTS = [
    ({}, "/items"), ({"items": []}, "/items"), ({"items": "a"}, "/items"), ({"items": ["a"] * 1001}, "/items"),
    ({"items": ["a", ""]}, "/items/1"), ({"items": [1.5]}, "/items/0"), ({"items": [1, 2**63]}, "/items/1"), ({"items": [None]}, "/items/0"),
    ({"items": [["a"]]}, "/items/0"), ({"items": ["a"], "item": 1}, ""), ([], ""),
]


@pytest.mark.parametrize("body, pointer", PUT_FAULTS, ids=lambda x: json.dumps(x)[:30])
def test_parameters_that_are_bad(filter_, body, pointer):
    response = filter_.request("PUT", body=body)
    assert response.status == 422 and [e["pointer"] for e in response.errors] == [pointer], response
    assert filter_.request("GET").status == 404


@pytest.mark.parametrize("body, pointer", ITEM_FAULTS, ids=lambda x: json.dumps(x)[:30])
def test_items_that_are_bad(filter_, body, pointer):
    for tail in ("/add", "/check"):
        response = filter_.request("POST", tail, body)
        assert response.status == 422 and [e["pointer"] for e in response.errors] == [pointer], response
    assert filter_.request("GET").status == 404


def test_the_errors_say_what_is_allowed(filter_):
    for body, text in (({"capacity": 0}, "1 to 1073741824"), ({"error_rate": 1}, "0.25"), ({"expansion": 1}, "2 ")):
        assert text in filter_.request("PUT", body=body).json["detail"]
    assert "1 to 1000" in filter_.request("POST", "/add", {"items": []}).json["detail"]
    assert "Capacity" in filter_.request("PUT", body={"Capacity": 5}).json["detail"]
    assert "é" * 33 not in filter_.request("PUT", body={"é" * 33: 5}).json["detail"]


def test_bodies_that_are_no_json(filter_):
    for body, fault in (("", "not JSON"), ("{", "not JSON"), ('{"items":NaN}', "not JSON"), ("{}{}", "not JSON"),
                        ('{"capacity":1,"capacity":2}', "given twice"), (b'{"items":["\xff"]}', "UTF-8"),
                        ('{"items":[1e999]}', "too large"), ('{"items":["\\ud800"]}', "not JSON")):
        for method, tail in (("PUT", ""), ("POST", "/add"), ("POST", "/check")):
            response = filter_.request(method, tail, body)
            assert response.status == 400 and response.json["detail"].startswith("line 1, column "), response
            assert fault in response.json["detail"]


def test_other_types_are_415(http, site):
    for method, path in (("PUT", "/filters/a"), ("POST", "/filters/a/add")):
        assert http.request(method, path, "{}", {"Content-Type": "text/plain"}).status == 415
        assert http.request(method, path, '{"capacity":-1}', {"Content-Type": "Application/JSON; x=y"}).status == 422


def test_names_and_sites_that_are_bad(http):
    for name in ("a%20b", "%C3%A4", "a" * 65, "a%3Ab", "a%7D", "a+b"):
        for method in ("GET", "PUT", "DELETE"):
            response = http.request(method, f"/filters/{name}", "{}")
            assert response.status == 400 and response.errors[0]["parameter"] == "name"
    assert http.get("/filters/a", site="A").errors[0]["parameter"] == "site"
    assert http.get("/filters/a", name="x").errors[0]["parameter"] == "name"
    assert http.request("GET", "/filters/").status == http.request("GET", "/filters").status == 404
    assert http.request("POST", "/filters/a").status == http.request("PUT", "/filters/a/add").status == 405


# Racing adders


def race(filters, batches):
    """Each filter adds all batches on a thread of its own; how often each item was new."""
    new, failed = {}, []
    lock = threading.Lock()

    def run(filter_, rotation):
        try:
            for batch in batches[rotation:] + batches[:rotation]:
                added = filter_.add(batch)
                with lock:
                    for item, is_new in zip(batch, added):
                        new[item] = new.get(item, 0) + is_new
        except AssertionError as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(f, i)) for i, f in enumerate(filters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed, failed[0]
    return new


@pytest.mark.parametrize("capacity", [50, 2000, 100_000, 10_000_000])
def test_of_racing_adders_one_is_told_new(redis, start_tallyd, site, capacity):
    """Two processes, growing meanwhile (50), in one string (2000), a longer one (100,000), in shards."""
    daemons = [start_tallyd(redis=redis, name=f"racer{i}") for i in range(2)]
    filters = [Filter(daemons[i % 2].client(), site) for i in range(6)]
    filters[0].put(capacity=capacity, error_rate=0.000001)
    new = race(filters, [[f"{site}{b}-{i}" for i in range(300)] for b in range(6)])
    figures = filters[0].get()
    assert len(new) == 1800 and set(new.values()) <= {0, 1} and figures["items"] == sum(new.values())
    assert figures["layers"] == (6 if capacity == 50 else 1)
    for filter_ in filters[:2]:
        assert filter_.check_all(list(new)) == len(new), "no false no"
    # a small layer has false positives beyond its rate: two hashes make all (1 / bits that all of an item are the same one)
    assert sum(new.values()) >= {50: 1790, 2000: 1797}.get(capacity, 1800)


@pytest.mark.parametrize("capacity", [None, 20, 1_000_000, 4_000_000])
def test_a_racing_delete(redis, start_tallyd, site, capacity):
    """Adders and deleters at once: every answer is one of the contract's, and nothing is left behind.  As add makes it, or
    made again by who deletes it: one that grows meanwhile, one in a long string, and one in shards of several strings."""
    daemons = [start_tallyd(redis=redis, name=f"racer{i}") for i in range(2)]
    over = threading.Event()
    strange = []

    def delete(filter_):
        while not over.is_set():
            status = filter_.request("DELETE").status
            if status not in (204, 404):
                strange.append(status)
            status = filter_.request("PUT", body={"capacity": capacity}).status if capacity else 201
            if status not in (200, 201, 409):
                strange.append(status)

    deleters = [threading.Thread(target=delete, args=(Filter(d.client(), site),)) for d in daemons]
    for thread in deleters:
        thread.start()
    filters = [Filter(daemons[i % 2].client(), site) for i in range(3)]
    race(filters, [[f"{b}-{i}" for i in range(200)] for b in range(20 if capacity in (None, 20) else 4)])
    over.set()
    for thread in deleters:
        thread.join(30)
    assert not strange
    filters[0].request("DELETE")
    assert filters[0].request("GET").status == 404
    left = keys(redis, site)
    assert not [k for k in left if ":bfl:" in k] and all(redis.command("TTL", k) > 0 for k in left)
    assert filters[0].add(["0-0"]) == [True]


# Large filters, and deletion


def used_mb(redis):
    return of_redis(redis.command("INFO", "memory")) / MIB


STRING = 256 << 10  # the longest that is made of filters that are cut up
LONGEST = 4_135_408  # of a filter in one string
STALL_US = 5000
TRIES = 10  # who shares the machine makes commands longer, never shorter: one good try shows what they cost
WAITED_SHARE = 0.1  # of a try's time that Redis was ready to run and had no processor: then nothing can be told


def memory_us(n):
    """What this machine takes to find @n bytes of memory that nobody has used: the best of some tries."""
    def once():
        with mmap.mmap(-1, n) as memory:
            begin = time.monotonic()
            memory[::mmap.PAGESIZE] = bytes(-(-n // mmap.PAGESIZE))
            return (time.monotonic() - begin) * 1e6
    return min(once() for _ in range(5))


class Stalls:
    """The longest command of each try."""

    def __init__(self, redis):
        self.redis, self.slowest, self.calm = redis, [], 0

    def begin(self):
        self.redis.command("SLOWLOG", "RESET")
        self.before = self.redis.processor()

    def end(self):
        ran, waited = (b - a for a, b in zip(self.before, self.redis.processor()))
        self.calm += waited <= WAITED_SHARE * ran
        self.slowest.append(max((entry[2] for entry in self.redis.command("SLOWLOG", "GET", "-1")), default=0))

    def is_open(self):
        return len(self.slowest) < TRIES and (not self.slowest or self.slowest[-1] >= STALL_US)

    def judge(self, what):
        print(f"the longest {what}: {self.slowest} us")
        if self.slowest[-1] >= STALL_US and self.calm < 3:
            pytest.skip(f"the machine is too busy to tell: {self.slowest} us")
        if self.slowest[-1] >= STALL_US and (alone := memory_us(LONGEST)) >= STALL_US / 2:
            pytest.skip(f"the machine takes {alone:.0f} us to find the memory of a long string: {self.slowest} us")
        assert self.slowest[-1] < STALL_US


def test_a_large_filter_is_sharded_and_deleted_without_a_stall(start_redis, start_tallyd, site):
    redis = start_redis(options=("--slowlog-log-slower-than", "500", "--slowlog-max-len", "2000"))
    filter_ = Filter(start_tallyd(redis=redis).client(), site)
    before, stalls = used_mb(redis), Stalls(redis)
    while stalls.is_open():
        figures = filter_.put(capacity=100_000_000, error_rate=0.01)
        assert figures["capacity"] == 100_000_000 and figures["bytes"] > 137_000_000
        assert filter_.add(numbers(1000)) == [True] * 1000
        assert filter_.check_all(numbers(1000)) == 1000 and filter_.check_all(numbers(1000, 10_000)) == 0
        strings = [k for k in keys(redis, site) if ":bfl:" in k]
        assert max(redis.command("STRLEN", k) for k in strings) <= STRING
        assert len({k.split("}")[0] for k in strings}) == 16, "in every partition"
        assert used_mb(redis) - before > 100
        stalls.begin()
        assert filter_.request("DELETE").status == 204
        stalls.end()
        assert used_mb(redis) - before < 10
        left = keys(redis, site)
        assert not [k for k in left if ":bfl:" in k] and all(redis.command("TTL", k) > 0 for k in left)
    stalls.judge("command of a deletion")


def words(line):
    """The words of a command as MONITOR shows it."""
    return re.findall(r'"((?:[^"\\]|\\.)*)"', line)


def scripts_of(lines):
    """Of each script that MONITOR showed: by how many bytes it made strings of bits longer, and its BITFIELDs; and how long
    the strings are."""
    length, scripts = {}, []
    for line in lines:
        name, key, *rest = words(line)
        if name == "EVALSHA" and ":bfs:" in line:  # a leader's lock is one, too
            scripts.append([0, 0])
        bits = {"SETBIT": rest[:1], "BITFIELD": rest[2::4]}.get(name, []) if ":bfl:" in key else []
        size = max((int(bit) // 8 + 1 for bit in bits), default=0)
        if size > length.get(key, 0):
            scripts[-1][0] += size - length.get(key, 0)
            length[key] = size
        if size > 0 and name == "BITFIELD":
            scripts[-1][1] += 1
    return scripts, length


def monitored(redis, act):
    """What MONITOR shows of what @act makes Redis do."""
    lines = []
    with redis.connect() as connection:
        connection.command("MONITOR")
        act()
        redis.command("GET", "end of act")
        while words(line := connection.receive()) != ["GET", "end of act"]:
            lines += [line] if len(words(line)) > 1 else []
    return lines


@pytest.mark.parametrize("capacity, strings, longest, items_beside, adds", [
    (3_000_000, 1, 4_135_408, 3, 4), (1_000_000, 1, 1_378_472, 167, 4), (5_000_000, 27, STRING, 235, 5),
], ids=["RedisBloom's, 4 MiB", "RedisBloom's, 1.3 MiB", "segments"])
def test_a_script_makes_one_new_string(start_redis, start_tallyd, site, capacity, strings, longest, items_beside, adds):
    """Zeros of a new string hold Redis, most of all where the machine has to find the memory: a layer is not made at one
    go, and the longer a string is, the less is done beside."""
    redis = start_redis()
    filter_ = Filter(start_tallyd("--partitions", "1", redis=redis).client(), site)
    filter_.put(capacity=capacity)
    items = numbers(500) + numbers(500)
    lines = monitored(redis, lambda: filter_.add(items) == [True] * 500 + [False] * 500 or pytest.fail("wrong"))
    scripts, length = scripts_of(lines)
    assert len(length) == strings and sum(grown for grown, _ in scripts) == filter_.get()["bytes"], \
        "all strings, as long as they will be"
    assert 0 < max(grown for grown, _ in scripts) <= longest, "one a script"
    assert 0 < max(n for grown, n in scripts if grown) <= items_beside
    assert all(redis.command("STRLEN", key) == n for key, n in length.items())
    scripts, _ = scripts_of(monitored(redis, lambda: filter_.add(items)))
    assert len(scripts) == adds, "1000 items of 8 bits"
    assert filter_.check_all(items) == 1000 and filter_.get()["items"] == 500


@pytest.mark.parametrize("parameters", [
    {"capacity": 100_000}, {"capacity": 3_000_000}, {"capacity": 20_000_000}, {"capacity": 300, "expansion": 0},
], ids=["a string", "a long string", "segments", "gets full"])
def test_an_item_is_one_command(start_redis, start_tallyd, site, parameters):
    """A BITFIELD: also where its string is to be made, where it comes twice, and where there is no room."""
    redis = start_redis()
    filter_ = Filter(start_tallyd(redis=redis).client(), site)
    filter_.put(**parameters)
    items = numbers(250) + numbers(750)
    for new in ([True] * 250 + [False] * 250 + [True] * 500, [False] * 1000):
        answers = []
        lines = monitored(redis, lambda: answers.append(filter_.request("POST", "/add", {"items": items})))
        assert answers[0].status == 409 if "expansion" in parameters else answers[0].json == {"added": new}, answers
        names = [words(line)[0] for line in lines if words(line)[1].startswith("t:{") and ":bfl:" in words(line)[1]]
        commands = {name: names.count(name) for name in names}
        assert commands.pop("BITFIELD", 0) + commands.pop("BITFIELD_RO", 0) == 1000, commands
        strings = sum(":bfl:" in key for key in keys(redis, site))
        assert commands.pop("SETBIT", 0) <= strings and set(commands) <= {"STRLEN"}, "strings that are to be made"
    mixed = [text for pair in zip(numbers(500), numbers(500, 10_000)) for text in pair]  # every other one is in
    answers = []
    lines = monitored(redis, lambda: answers.extend(filter_.check(mixed)))
    assert answers == [True, False] * 500 or "expansion" in parameters, "each item's own"
    names = [words(line)[0] for line in lines if ":bfl:" in line]
    assert set(names) == {"BITFIELD_RO"} and len(names) <= 1000


@pytest.mark.parametrize("capacity, error, layers", [(400, 1e-15, 2), (3_000_000, 0.01, 1), (20_000_000, 0.01, 1)],
                         ids=["many hashes, growing", "a long string", "many segments"])
def test_scripts_are_short(start_redis, start_tallyd, site, capacity, error, layers):
    """1000 items whose every bit costs most, and the first 1000 of filters whose bits are to be made."""
    redis = start_redis(options=("--slowlog-log-slower-than", "500", "--slowlog-max-len", "5000"))
    http, stalls = start_tallyd(redis=redis).client(), Stalls(redis)
    while stalls.is_open():
        filter_ = Filter(http, site, f"f{len(stalls.slowest)}")
        filter_.put(capacity=capacity, error_rate=error)
        stalls.begin()
        filter_.add(numbers(1000))
        stalls.end()
        assert filter_.get()["layers"] == layers
    stalls.judge("script")


def test_a_deletion_that_was_left_half_done_is_finished(redis, filter_, site):
    """As a process that died would leave it: marked, its strings still there."""
    filter_.put(capacity=100)
    filter_.add(numbers(500))
    (home,) = [k for k in keys(redis, site) if ":bf:" in k]
    redis.command("HSET", home, "drop", "1")
    assert [k for k in keys(redis, site) if ":bfl:" in k]
    assert filter_.request("GET").status == 404
    assert not [k for k in keys(redis, site) if ":bfl:" in k]
    assert filter_.put(capacity=200)["items"] == 0
    redis.command("HSET", [k for k in keys(redis, site) if ":bf:" in k][0], "drop", "1")
    assert filter_.add(["a"]) == [True] and filter_.get()["capacity"] == 10000


@pytest.mark.parametrize("again", [False, True])
def test_an_adder_that_comes_after_the_deletion(start_redis, start_proxy, start_tallyd, site, again):
    """Its script is held up until the filter is gone (and made again): it does nothing, and the item goes into what there
    is now."""
    redis = start_redis()
    proxy = start_proxy(redis)
    slow, quick = start_tallyd(redis=proxy, name="slow"), Filter(start_tallyd(redis=redis, name="quick").client(), site)
    quick.put(capacity=1000)
    quick.add(["x"])
    reached, go_on, answers = threading.Event(), threading.Event(), []

    def hold(args):
        if is_add(args) and not reached.is_set():
            reached.set()
            go_on.wait(30)
        return False

    proxy.arm(Fault("reply-after", match=hold))
    thread = threading.Thread(target=lambda: answers.append(Filter(slow.client(), site).add(["late"])))
    thread.start()
    assert reached.wait(10)
    assert quick.request("DELETE").status == 204
    if again:
        quick.put(capacity=77)
    go_on.set()
    thread.join(20)
    assert answers == [[True]]
    assert quick.check(["late", "x"]) == [True, False]
    assert quick.get()["capacity"] == (77 if again else 10000)
    assert sum(":bfl:" in k for k in keys(redis, site)) == 1


# Faults


def is_add(args):
    return args[0].upper() == b"EVALSHA" and args[3].startswith(b"t:{") and b":bfs:" in args[3]


@pytest.mark.parametrize("point, statuses", [
    ("command-before", {504}), ("command-after", {504}), ("reply-before", {504}), ("reply-after", {200}),
])
def test_a_lost_connection_is_not_retried_blindly(start_redis, start_proxy, start_tallyd, site, point, statuses):
    """An add that may have been done must not be done again: its answer would be another."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd("--readers", "1", redis=proxy)
    filter_ = Filter(tallyd.client(), site)
    filter_.put(capacity=100)
    filter_.check(["a"])  # the reader is connected
    fault = Fault(point, match=is_add)
    proxy.arm(fault)
    response = filter_.request("POST", "/add", {"items": ["a"]})
    assert response.status in statuses, response
    assert fault.fired == 1
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "it is connected again")
    assert filter_.check(["a"]) == [point not in ("command-before",)]


def test_some_items_are_refused_and_an_answer_is_lost(start_redis, start_proxy, start_tallyd, site):
    """Those behind the ones that were refused may have been added: no 503."""
    proxy = start_proxy(start_redis())
    filter_ = Filter(start_tallyd("--partitions", "4", "--readers", "1", redis=proxy).client(), site)
    filter_.put(capacity=100000)
    lost = Fault("reply-before", match=is_add)
    proxy.arm(Fault("error", match=is_add, text="NOPERM this user has no permissions", then=lost))
    response = filter_.request("POST", "/add", {"items": numbers(1000)})  # several scripts
    assert lost.fired == 1 and filter_.get()["items"] > 0
    assert response.status == 504, response


def test_reads_survive_a_lost_connection(start_redis, start_proxy, start_tallyd, site):
    proxy = start_proxy(start_redis())
    filter_ = Filter(start_tallyd("--readers", "1", redis=proxy).client(), site)
    filter_.add(["a"])
    proxy.arm(Fault("reply-before", match=lambda args: args[0].upper() == b"BITFIELD_RO"))
    assert filter_.check(["a", "b"]) == [True, False]


def test_what_an_earlier_filter_left_does_not_stand_in_the_way(redis, filter_, site):
    """A site's deletion takes keys one by one, and an add beside the deletion may leave one of them."""
    filter_.put(capacity=100)
    filter_.add(numbers(300))
    assert filter_.get()["layers"] > 1
    redis.command("UNLINK", *[k for k in keys(redis, site) if ":bf:" in k])
    assert filter_.request("GET").status == 404
    assert filter_.put(capacity=100)["items"] == 0
    assert filter_.add(["a", "1"]) == [True, True] and filter_.get()["layers"] == 1
    assert filter_.request("DELETE").status == 204
    assert filter_.add(["a"]) == [True] and filter_.check(["a", "1"]) == [True, False]


def test_a_leftover_that_is_deleted(redis, filter_, site):
    """The filter whose shard was left is made again, deleted, and made again."""
    filter_.put(capacity=100)
    filter_.add(numbers(300))
    redis.command("UNLINK", *[k for k in keys(redis, site) if ":bf:" in k])
    filter_.put(capacity=100)
    assert filter_.request("DELETE").status == 204
    assert filter_.put(capacity=100)["items"] == 0
    assert filter_.add(["a"]) == [True] and filter_.check(["a", "1"]) == [True, False]
    assert {redis.command("PTTL", k) for k in keys(redis, site)} == {-1}, "what is deleted is remembered for a while only"


def test_redis_is_full(start_redis, start_tallyd, site):
    redis = start_redis()
    filter_ = Filter(start_tallyd(redis=redis).client(), site)
    filter_.add(["a"])
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert filter_.request("POST", "/add", {"items": ["b"]}).status == 503
    assert filter_.request("PUT", body={"capacity": 5}).status == 409
    assert filter_.check(["a", "b"]) == [True, False]
    assert filter_.request("DELETE").status == 204, "deleting needs no memory"
    redis.command("CONFIG", "SET", "maxmemory", "0")
    assert filter_.add(["a"]) == [True]


def test_foreign_data_is_said(start_redis, start_tallyd, site):
    redis = start_redis()
    filter_ = Filter(start_tallyd(redis=redis).client(), site)
    filter_.put(capacity=100)
    (home,) = [k for k in keys(redis, site) if ":bf:" in k]
    redis.command("HSET", home, "capacity", "many")
    response = filter_.request("GET")
    assert response.status == 503 and "foreign data" in response.json["detail"]
    redis.command("DEL", home)
    redis.command("SET", home, "x")
    assert filter_.request("GET").status == 503
    assert filter_.request("POST", "/add", {"items": ["a"]}).status == 503


# Rates


@pytest.mark.parametrize("error", [0.1, 0.01, 0.001])
def test_false_positives_are_as_few_as_promised(filter_, error):
    n = 4000
    filter_.put(capacity=1000, error_rate=error)
    filter_.add_all(numbers(n))
    assert filter_.check_all(numbers(n)) == n
    assert filter_.check_all(numbers(10 * n, 10**9)) <= error * 10 * n


@pytest.mark.parametrize("error, hashes", [(0.1, 4), (0.01, 7), (0.001, 10)])
def test_the_expected_rate_is_the_real_one(filter_, error, hashes):
    """At capacity and at half of it; without growing."""
    filter_.put(capacity=4000, error_rate=error, expansion=0)
    for n in (2000, 4000):
        filter_.add_all(numbers(n))
        figures = filter_.get()
        assert figures["hashes"] == hashes
        probes = 20_000
        got = filter_.check_all(numbers(probes, 10**9))
        expected = figures["expected_false_positive_rate"] * probes
        assert abs(got - expected) <= 5 * expected**0.5 + 3, (got, expected)
