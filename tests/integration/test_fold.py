"""Folds of logs into counts, through fold_tool: what is in Redis afterwards equals a model that counts one event at a time.

The model knows the schema's rules (storage/schema/key.h), and nothing of how a fold merges, cuts and decides.  Visitors, who are
hashed with a secret, are told apart by numbers of elements.  What a fold costs and how whole processes use it is tested elsewhere.
"""

import collections
import os
import random
import re
import shutil
import struct
import subprocess
import threading
import time

import pytest

from lib.process import ROOT, short_directory
from lib.proxy import CUTS, Fault, Proxy
from lib.waiting import wait_until

TIMEOUT_S = 1800
MINUTE, HOUR, DAY = 60, 3600, 86400
KEEP_S = {"m": 2 * DAY, "h": 62 * DAY, "d": 1100 * DAY}
OWN, OTHER = "00000000000000aa", "00000000000000bb"


class Tool:
    """The process of one log."""

    def __init__(self, url, partitions=4, env=None):
        path = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "fold_tool").resolve()
        self.process = subprocess.Popen([path, url, str(partitions), str(TIMEOUT_S)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **(env or {})})
        assert self.process.stdout.readline() == "ready\n"

    def do(self, line, answers=True):
        self.process.stdin.write(line + "\n")
        if answers:
            self.process.stdin.flush()
            answer = self.process.stdout.readline().rstrip("\n")
            assert answer, line
            return answer
        return None

    def events(self, events):
        for e in events:
            self.do(f"event {e.at} {e.site} {e.page} {e.ip or '-'} {e.user or '-'} {','.join(e.actions) or '-'}", answers=False)

    def entry(self, n, events, arrival_s, how="entry", era="e1"):
        self.events(events)
        assert self.do(f"{how} {n} {arrival_s * 1000} {era}") == "done"

    def fold(self, ms=20_000):
        return self.do(f"fold {ms}")

    def stats(self):
        return dict(zip(("folds", "events", "transactions", "again"), map(int, self.do("stats").split())))

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


Event = collections.namedtuple("Event", "at site page ip user actions")


@pytest.fixture
def proxy(redis):
    """Between the tool and an empty Redis."""
    directory = short_directory()
    redis.command("FLUSHALL")
    proxy = Proxy(directory, redis.path)
    yield proxy
    proxy.close()
    shutil.rmtree(directory)


@pytest.fixture
def tool(cleanup):
    def start(*args, **options):
        one = Tool(*args, **options)
        cleanup.append(one.close)
        return one

    return start


# ---- the model ----

def start_of(level, at):
    if level == "M":
        t = time.gmtime(at)
        return int(time.mktime((t.tm_year, t.tm_mon, 1, 0, 0, 0, 0, 0, 0))) - time.timezone
    return at - at % {"m": MINUTE, "h": HOUR, "d": DAY}[level]


def end_of(level, at):
    if level == "M":
        return start_of("M", start_of("M", at) + 32 * DAY)
    return start_of(level, at) + {"m": MINUTE, "h": HOUR, "d": DAY}[level]


def bucket(level, at):
    return level + time.strftime("%Y%m%d%H%M", time.gmtime(start_of(level, at)))


PARENT = {"m": "h", "h": "d", "d": "M", "M": "M"}


class Model:
    """Counts one event at a time.  `closed_s`: level -> all buckets of it that end by then are closed, for writers and readers."""

    def __init__(self, now_s):
        self.now_s = now_s
        self.closed_s = {level: start_of(level, now_s) for level in "hdM"}
        self.pv, self.visits = collections.Counter(), collections.Counter()
        self.uv, self.ip = collections.defaultdict(set), collections.defaultdict(set)
        self.last = {}
        self.bits, self.users, self.pairs = collections.defaultdict(set), collections.defaultdict(list), collections.defaultdict(set)
        self.expiry, self.open = {}, set()

    def closed(self, level, at):
        return level != "m" and end_of(level, at) <= self.closed_s[level]

    def targets(self, e):
        for level in "mhdM":
            if level != "m" and not self.closed(level, e.at):
                return
            name = bucket(level, e.at)
            if self.closed(PARENT[level], e.at):
                over_s = end_of(level, e.at) + KEEP_S[level] if level != "M" else None
                if over_s is not None and over_s <= self.now_s:
                    continue  # its time is over
                self.expiry[e.site, name] = -1 if over_s is None else over_s * 1000
            else:
                self.expiry[e.site, name] = -1
                self.open.add(f"{e.site}:{bucket(PARENT[level], e.at)}")
            yield name

    def begins(self, e, who, arrival_s):
        last, arrived = self.last.get(who, (None, None))
        remembered = last is not None and arrival_s - arrived <= 2 * TIMEOUT_S
        self.last[who] = (max(e.at, last) if remembered else e.at, arrival_s)
        return not remembered or e.at > last + TIMEOUT_S

    def count(self, e, arrival_s):
        who = (e.site, "u", e.user) if e.user else (e.site, "a", e.ip) if e.ip else None
        begins = who is not None and self.begins(e, who, arrival_s)
        for name in self.targets(e):
            for page in ("", e.page):
                self.pv[e.site, name, page] += 1
                self.visits[e.site, name, page] += begins
                if who:
                    self.uv[e.site, name, page].add(who)
                if e.ip:
                    self.ip[e.site, name, page].add(e.ip)
        if e.user:
            if e.user not in self.users[e.site]:
                self.users[e.site].append(e.user)
            day = time.strftime("%Y%m%d", time.gmtime(e.at))
            for action in {"active", *e.actions}:
                self.bits[e.site, action, day].add(e.user)
            self.pairs[e.site].add((e.user, e.page))


# ---- what is in Redis ----

def only(r, name):
    """The one key of this name."""
    [key] = r.command("KEYS", f"t:{{*}}:{name}")
    return key


def keys_of(r, kind):
    """(partition, rest, key) of all keys of a kind."""
    for key in r.command("KEYS", f"t:{{*}}:{kind}:*"):
        found = re.fullmatch(r"t:\{(\d+)\}:" + kind + ":(.*)", key)
        yield found[1], found[2], key


def octets(value):
    """A string that the client has decoded, as bytes."""
    return value.encode("utf-8", "surrogateescape")


def counter(r, kind):
    found = collections.Counter()
    for _, rest, key in keys_of(r, kind):
        site, name = rest.split(":")
        flat = r.command("HGETALL", key) if name[0] == "m" else r.command("ZRANGE", key, 0, -1, "WITHSCORES")
        for page, n in zip(flat[::2], flat[1::2]):
            if page.startswith("\x05"):  # what visits were like: test_visits.py
                continue
            found[site, name, page] += int(float(n))
    return found


def sketches(r, kind):
    return {tuple(rest.split(":", 2)): r.command("PFCOUNT", key) for _, rest, key in keys_of(r, kind)}


def users(r):
    """site -> {name: (partition, index)}; the counter, and the lists of names, agree."""
    found = collections.defaultdict(dict)
    for p, site, key in keys_of(r, "uid"):
        flat = r.command("HGETALL", key)
        index = {name: int(i) for name, i in zip(flat[::2], flat[1::2])}
        assert index.pop("") == len(index)
        assert sorted(index.values()) == list(range(len(index)))
        for name, i in index.items():
            assert r.command("LINDEX", f"t:{{{p}}}:ids:{site}:{i // 128}", i % 128) == name
            found[site][name] = (p, i)
    return found


def check(r, model):
    """All of it."""
    assert counter(r, "pv") == +model.pv
    assert counter(r, "vv") == +model.visits
    for kind, sets in (("uv", model.uv), ("ip", model.ip)):
        counts = sketches(r, kind)
        assert counts.keys() == sets.keys()
        for where, n in counts.items():
            assert abs(n - len(sets[where])) <= 2 + len(sets[where]) // 20, where
    for kind in ("pv", "uv", "ip"):
        for _, rest, key in keys_of(r, kind):
            assert r.command("PEXPIRETIME", key) == model.expiry[tuple(rest.split(":")[:2])], key
    check_users(r, model)
    members = {m for key in r.command("KEYS", "t:{*}:open") for m in r.command("SMEMBERS", key)}
    assert members == model.open
    sites = {m for key in r.command("KEYS", "t:{*}:sites") for m in r.command("SMEMBERS", key)}
    assert sites == {site for site, _, _ in model.pv}


def check_users(r, model):
    index = users(r)
    assert {site: set(names) for site, names in index.items()} == {site: set(names) for site, names in model.users.items()}
    bits, where = collections.defaultdict(set), {(site, *is_): name for site, names in index.items() for name, is_ in names.items()}
    for p, rest, key in keys_of(r, "act"):
        site, action, day = re.fullmatch(r"([^:]+):(.+):(\d{8})", rest).groups()
        value = octets(r.command("GET", key))
        for i in range(8 * len(value)):
            if value[i // 8] >> (7 - i % 8) & 1:
                bits[site, action, day].add(where[site, p, i])
        assert r.command("ZSCORE", f"t:{{{p}}}:acts", rest) is not None
    assert bits == model.bits
    pairs = collections.Counter()
    for _, rest, key in keys_of(r, "seen"):
        site, _, what = rest.split(":")
        assert what == "log" and r.command("PEXPIRETIME", key) > 0
        log = octets(r.command("GETRANGE", key, 0, -1))
        pairs[site] += len({log[i:i + 8] for i in range(0, len(log), 8)})
    assert pairs == {site: len(is_) for site, is_ in model.pairs.items()}


def cursors(r, log):
    return {r.command("HGET", key, log) or "0" for key in r.command("KEYS", "t:{*}:state")}


# ---- events ----

def traffic(rng, n, now_s, *, users_n=40, late=0.1):
    """Events of two sites, some of them hours, days and weeks late."""
    made = []
    for _ in range(n):
        age = rng.choice((2 * HOUR, 5 * HOUR, 26 * HOUR, 20 * DAY, 50 * DAY)) if rng.random() < late else rng.randrange(100)
        who = rng.random()
        user = f"user{rng.randrange(users_n)}" if who < 0.5 else None
        ip = f"10.0.{rng.randrange(3)}.{rng.randrange(60)}" if who > 0.3 else None
        actions = tuple(sorted(rng.sample(("login", "buy", "sign:up"), rng.randrange(3)))) if user and rng.random() < 0.3 else ()
        made.append(Event(now_s - age, rng.choice(("shop", "blog")), f"/p{int(rng.paretovariate(1)) % 200}", ip, user, actions))
    return made


def arrange(redis, tool, **options):
    """(tool, model, now): not just before a minute ends, for what is over is said by minutes."""
    redis.command("FLUSHALL")
    t = tool(redis.url, **options)
    return t, Model(int(redis.time())), int(redis.time())


def put(t, model, n, events, arrival_s, **options):
    t.entry(n, events, arrival_s, **options)
    for e in events:
        model.count(e, arrival_s)


SEED = int(os.environ.get("TALLYD_TEST_SEED", "1"))


@pytest.mark.parametrize("partitions", (1, 4, 64, 300))
def test_counts_are_those_of_counting_one_by_one(redis, tool, partitions):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool, partitions=partitions)
    t.do(f"begin {OWN}")
    n = 0
    for size in (1, 5, 300, 2, 1500):
        for _ in range(3):
            n += 1
            put(t, model, n, traffic(rng, size, now), now)
        assert t.fold() == "ok"
        check(redis, model)
    assert cursors(redis, OWN) == {str(n)}
    assert redis.command("XLEN", only(redis, f"log:{OWN}")) == 0
    assert t.stats()["events"] == 3 * (1 + 5 + 300 + 2 + 1500)


def test_a_large_entry_is_cut_into_transactions_that_redis_bears(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool, partitions=1)
    t.do(f"begin {OWN}")
    redis.command("CONFIG", "RESETSTAT")
    put(t, model, 1, traffic(rng, 20_000, now, users_n=5000), now)
    assert t.fold() == "ok"
    check(redis, model)
    assert t.stats()["transactions"] > 10
    assert redis.longest_turns()["p50"] < 5000


def test_visits_go_by_the_order_and_the_time_of_arrival(redis, tool):
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    base = now - 4 * TIMEOUT_S
    steps = [  # arrival, time of the event
        (base, base), (base + 10, base - 100), (base + 20, base + TIMEOUT_S), (base + 30, base + TIMEOUT_S + 1),
        (base + TIMEOUT_S, base + 2 * TIMEOUT_S + 2), (base + 2 * TIMEOUT_S, base), (base + 4 * TIMEOUT_S, base + 3 * TIMEOUT_S)]
    for n, (arrival, at) in enumerate(steps, 1):
        put(t, model, n, [Event(at, "shop", f"/{n}", None, "ann", ()), Event(at, "shop", f"/{n}", "10.0.0.1", None, ())], arrival)
        if n % 2:
            assert t.fold() == "ok"
    assert t.fold() == "ok"
    check(redis, model)
    for _, rest, key in keys_of(redis, "visit"):
        value = octets(redis.command("HVALS", key)[0])
        assert len(value) in (10, 22)  # a user's has the index
        arrival = int.from_bytes(value[5:10], "big")
        assert int(rest.split(":")[1]) == arrival // (2 * TIMEOUT_S)
        assert 0 < redis.command("TTL", key) <= 4 * TIMEOUT_S + 48 * 3600


def registers(r, page):
    """Those of the page's visitors and addresses, once there are so many that Redis keeps each for itself."""
    found = {kind: octets(r.command("GET", only(r, f"{kind}:shop:*:{page}"))) for kind in ("uv", "ip")}
    assert all(len(v) == 12304 for v in found.values())
    return {kind: value[16:] for kind, value in found.items()}


def test_sketches_do_not_depend_on_what_a_fold_remembers_of_them(redis, tool):
    """The same users on two pages: on one at once, and on the other again and again, fold by fold."""
    t, _, now = arrange(redis, tool, partitions=1)
    t.do(f"begin {OWN}")
    at = now // MINUTE * MINUTE

    def views(page, users):
        return [Event(at, "shop", page, f"10.{u % 7}.{u // 250}.{u % 250}", f"user{u}", ()) for u in users]

    for n in range(1, 31):
        t.entry(n, views("/b", range(200 * (n // 3), 200 * n)), now)
        assert t.fold() == "ok"
    t.entry(31, views("/a", range(6000)), now)
    assert t.fold() == "ok"
    assert registers(redis, "/b") == registers(redis, "/a")


def test_another_process_folds_what_this_one_left(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"foreign {OTHER}")
    for n in range(1, 200):
        put(t, model, n, traffic(rng, 5, now), now)
    assert t.fold() == "ok"
    check(redis, model)
    assert cursors(redis, OTHER) == {"199"}
    assert redis.command("XLEN", only(redis, f"log:{OTHER}")) == 199  # its own process trims it


def test_two_processes_fold_the_same_log_at_once(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    helper = tool(redis.url)
    t.do(f"begin {OWN}")
    for n in range(1, 60):
        put(t, model, n, traffic(rng, 30, now), now)
        if n % 3 == 0:
            helper.process.stdin.write("fold 20000\n")
            helper.process.stdin.flush()
            assert t.fold() == "ok"
            assert helper.process.stdout.readline() == "ok\n"
    assert t.fold() == "ok"
    check(redis, model)


def test_a_state_that_changes_under_the_fold_voids_it(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    states = redis.command("KEYS", "t:{*}:state")
    with redis.connect() as busy:
        for n in range(1, 150):
            put(t, model, n, traffic(rng, 20, now), now)
            t.process.stdin.write("fold 20000\n")
            t.process.stdin.flush()
            for i in range(40):
                busy.command("HSET", rng.choice(states), "swept", "0")
            assert t.process.stdout.readline() == "ok\n"
    check(redis, model)
    assert t.stats()["again"] > 0


def test_entries_that_were_counted_are_not_counted_again(redis, tool):
    """The cursor decides, also within an entry, and not what memory has."""
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool, partitions=1)
    t.do(f"begin {OWN}")
    first, second = traffic(rng, 50, now), traffic(rng, 50, now)
    redis.command("HSET", only(redis, "state"), OWN, "2:20")
    t.entry(1, first, now)
    t.entry(2, second, now)
    for e in second[20:]:
        model.count(e, now)
    assert t.fold() == "ok"
    check(redis, model)


@pytest.mark.parametrize("nth", (1, 2, 4))
def test_another_process_goes_on_in_the_middle_of_a_batch(redis, proxy, tool, nth):
    """A transaction counts some stripes of a batch to its end.  The process dies behind it, and the next one has other batches."""
    rng = random.Random(f"{SEED} {nth}")
    t, model, now = tool(proxy.url, partitions=1), Model(int(redis.time())), int(redis.time())
    fault = proxy.arm(Fault("reply-hole", nth=nth, late_s=60, match=lambda args: args[0].upper() == b"EXEC"))
    t.do(f"begin {OWN}")
    for n in range(1, 5):
        put(t, model, n, traffic(rng, 1500, now, users_n=2000, late=0.5), now + n)
    t.process.stdin.write("fold 20000\n")
    t.process.stdin.flush()
    assert fault.arrived.wait(20), "Redis has carried the transaction out"
    t.process.kill()
    t.process.wait()
    assert any("," in left for left in cursors(redis, OWN)), "some stripes are counted"
    other = tool(redis.url, partitions=1)
    other.do(f"begin {OTHER}")
    put(other, model, 1, traffic(rng, 100, now), now + 5)
    assert other.fold() == "ok"
    check(redis, model)
    assert cursors(redis, OWN) == {"4"} and cursors(redis, OTHER) == {"1"}


def test_a_log_without_a_head_is_not_counted(redis, tool):
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    t.entry(1, traffic(random.Random(SEED), 50, now), now)
    assert redis.command("HDEL", only(redis, "heads"), OWN) == 1
    assert t.fold() == "ok"
    check(redis, model)
    assert cursors(redis, OWN) == {"0"}


def test_entries_of_another_era_are_read_from_redis(redis, tool):
    """What stands in the log counts: the same number may hold less than memory says."""
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    put(t, model, 1, traffic(rng, 30, now), now, how="stream", era="e2")
    t.entry(1, traffic(rng, 50, now), now, how="memory", era="e1")
    assert t.fold() == "ok"
    check(redis, model)


def test_entries_that_memory_lost_are_read_from_redis(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    for n in range(1, 7):
        put(t, model, n, traffic(rng, 30, now), now, how="entry" if n in (3, 6) else "stream")
    assert t.fold() == "ok"
    check(redis, model)


def test_an_entry_that_cannot_be_read_stops_its_log_and_no_other(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"foreign {OTHER}")
    put(t, model, 1, traffic(rng, 30, now), now)
    redis.command("XADD", only(redis, f"log:{OTHER}"), "2-0", "h", struct.pack("<BQ", 2, now * 1000), "p", b"\x05nonsense")
    redis.command("HSET", only(redis, "heads"), OTHER, f"2 e1 {now * 1000}")
    t.do(f"begin {OWN}")
    put(t, model, 1, traffic(rng, 30, now), now + 1)
    assert t.fold(600) != "ok"
    check(redis, model)
    assert cursors(redis, OTHER) == {"1"}


def test_logs_of_others_are_folded_unasked_when_their_process_is_silent(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"foreign {OTHER}")
    put(t, model, 1, [Event(now, "shop", "/", None, f"user{i}", ()) for i in range(30)], now)
    t.do(f"begin {OWN}")
    put(t, model, 1, [Event(now, "shop", "/", f"10.0.0.{i}", None, ()) for i in range(30)], now)
    deadline = time.monotonic() + 15
    while cursors(redis, OWN) | cursors(redis, OTHER) != {"1"} and time.monotonic() < deadline:
        time.sleep(0.05)
    check(redis, model)


def test_a_full_redis_counts_what_it_has_acknowledged(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    for n in range(1, 4):
        put(t, model, n, traffic(rng, 2000, now), now)
        try:
            redis.command("CONFIG", "SET", "maxmemory", 1)
            assert t.fold() == "ok"
        finally:
            redis.command("CONFIG", "SET", "maxmemory", 0)
        check(redis, model)
    assert cursors(redis, OWN) == {"3"}
    assert redis.command("XLEN", only(redis, f"log:{OWN}")) == 0


def test_two_processes_fold_logs_of_their_own_on_a_full_redis(redis, proxy, tool):
    """No WATCH tells the one that the other has counted meanwhile: new users, places and visits of both lie in one partition."""
    now, reached, go = int(redis.time()), threading.Event(), threading.Event()
    now -= now % 60 == 59  # what is counted first at now + 1 begins the visit: in the same minute, for the model goes by the logs
    model, judge = Model(now), proxy.judge

    def hold(args):
        if args[0].upper() == b"EVALSHA" and b":state" in args[4] and not reached.is_set():
            reached.set()
            go.wait(20)
        return judge(args)

    slow, quick = tool(proxy.url, partitions=1), tool(redis.url, partitions=1)
    for t, log in ((slow, OWN), (quick, OTHER)):
        t.do(f"begin {log}")
    time.sleep(5.5)  # for so long a process folds what others may have left (HEIR_MS of storage/fold/fold.c)
    for t in (slow, quick):
        put(t, model, 1, [Event(now, "shop", "/", None, "before", ())], now)
        assert t.fold() == "ok"
    time.sleep(1.2)  # behind a question it folds the logs of others, too, for so long (QUESTIONS_COME_MS)

    def second(t, log, at):
        put(t, model, 2, [Event(at, "shop", "/", None, f"{log}-{i}", ("buy",)) for i in range(520)]  # else it would fold both
            + [Event(at, "shop", f"/{i}", None, "both", ()) for i in range(3)], now)

    def counted(log):
        return cursors(redis, log) == {"2"}

    def wait_for(what):
        deadline = time.monotonic() + 15
        while not what() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert what()

    proxy.judge = hold
    try:
        second(slow, OWN, now)
        second(quick, OTHER, now + 1)
        redis.command("CONFIG", "SET", "maxmemory", 1)
        assert reached.wait(20)  # each folds its own log, unasked
        wait_for(lambda: counted(OTHER))
        assert not counted(OWN)
        go.set()
        wait_for(lambda: counted(OWN))
    finally:
        go.set()
        redis.command("CONFIG", "SET", "maxmemory", 0)
    check_users(redis, model)
    assert counter(redis, "pv") == +model.pv
    assert counter(redis, "vv") == +model.visits


def test_over_moves_on_with_an_id_and_gets_a_new_one_for_what_is_late(redis, tool):
    t, _, now = arrange(redis, tool, partitions=1)
    t.do(f"begin {OWN}")

    def fold(n, at):
        t.entry(n, [Event(at, "shop", "/", None, None, ())], now)
        assert t.fold() == "ok"
        over, ver = redis.command("HMGET", only(redis, "state"), "over", "ver")
        return over[:11], over[12:], ver

    at, first, ver = fold(1, now)
    if int(redis.time()) % 60 < 50:
        assert int(at) == int(redis.time()) // 60 * 60 - 60
        assert fold(2, now) == (at, first, ver)
        late_at, second, ver2 = fold(3, int(at) - 30)
        assert (late_at, ver2) == (at, ver) or int(at) - 30 < start_of("h", now)
        assert second != first
        _, third, ver3 = fold(4, now - 30 * HOUR)
        assert third != second and ver3 != ver


STEPS = {  # which command is cut, and which one of them
    "watch": (b"WATCH", 1), "heads": (b"HGETALL", 1), "look": (b"HMGET", 3), "multi": (b"MULTI", 1), "state": (b"HSET", 2),
    "counts": (b"PFADD", 5), "exec": (b"EXEC", 1), "next": (b"EXEC", 2), "unasked": (b"TIME", 3)}


def fold_over_a_connection_that_is_cut(redis, proxy, tool, rng, point, name, nth, size):
    t, model, now = tool(proxy.url), Model(int(redis.time())), int(redis.time())
    t.do(f"begin {OWN}")
    fired = 0
    for n in range(1, 7):
        put(t, model, n, traffic(rng, size, now), now)
        fault = Fault(point, nth=nth, match=lambda args: args[0].upper() == name)
        if n % 2:
            proxy.arm(fault)
        assert t.fold() == "ok"
        proxy.disarm()
        fired += fault.fired
    assert fired > 0 or nth > 1
    check(redis, model)


@pytest.mark.some(6)
@pytest.mark.parametrize("point", CUTS)
@pytest.mark.parametrize("step", STEPS)
def test_lost_connections_lose_and_double_nothing(redis, proxy, tool, step, point):
    rng = random.Random(f"{SEED} {step} {point}")
    fold_over_a_connection_that_is_cut(redis, proxy, tool, rng, point, *STEPS[step], size=200)


TWO_STEPS = {"first": (b"EXEC", 1), "second": (b"EXEC", 2), "third": (b"EXEC", 3), "watch": (b"WATCH", 2), "trim": (b"XTRIM", 1)}


@pytest.mark.some(3)
@pytest.mark.parametrize("point", CUTS)
@pytest.mark.parametrize("step", TWO_STEPS)
def test_lost_connections_of_two_threads_lose_and_double_nothing(redis, proxy, tool, step, point):
    """A large batch is folded over two connections; with one partition's share of it cut into several transactions."""
    rng = random.Random(f"{SEED} {step} {point} two")
    fold_over_a_connection_that_is_cut(redis, proxy, tool, rng, point, *TWO_STEPS[step], size=2500)


def test_a_large_batch_is_folded_over_two_connections(redis, tool):
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    counts = []
    for n, size in enumerate((100, 2500, 100, 5000), 1):
        put(t, model, n, traffic(rng, size, now), now)
        assert t.fold() == "ok"
        check(redis, model)
        assert redis.command("XLEN", only(redis, f"log:{OWN}")) == 0
        counts.append(len(redis.command("CLIENT", "LIST").splitlines()))
    assert counts == [counts[0], counts[0] + 1, counts[0] + 1, counts[0] + 1]


@pytest.mark.parametrize("held", (0, 1))
def test_a_log_is_cut_once_both_connections_have_counted(redis, proxy, tool, held):
    """The process dies while one of two partitions has counted the batch, and the other one waits for its connection."""
    rng = random.Random(SEED)
    t, model, now = tool(proxy.url, partitions=2), Model(int(redis.time())), int(redis.time())
    state, counted = sorted(redis.command("KEYS", "t:{*}:state"))[::1 if held == 0 else -1]
    judge, go = proxy.judge, threading.Event()

    def hold(args):
        if args[0].upper() == b"HSET" and args[1] == state.encode():
            go.wait(20)
        return judge(args)

    proxy.judge = hold
    t.do(f"begin {OWN}")
    put(t, model, 1, traffic(rng, 2500, now), now)
    t.process.stdin.write("fold 20000\n")
    t.process.stdin.flush()
    wait_until(lambda: redis.command("HGET", counted, OWN) == "1", "one partition has counted it")
    assert redis.command("HGET", state, OWN) is None
    t.process.kill()
    t.process.wait()
    go.set()
    other = tool(redis.url, partitions=2)
    other.do(f"begin {OTHER}")
    put(other, model, 1, traffic(rng, 1, now), now + 5)
    assert other.fold() == "ok"
    check(redis, model)


def test_connections_that_are_killed_at_any_time(redis, tool):
    """All of the tool's but the one that it appends over; a process that is cut off from all is killed elsewhere."""
    rng = random.Random(SEED)
    t, model, now = arrange(redis, tool)
    t.do(f"begin {OWN}")
    killed = 0
    with redis.connect() as admin:
        for n in range(1, 80):
            put(t, model, n, traffic(rng, 60, now), now)
            t.process.stdin.write("fold 20000\n")
            t.process.stdin.flush()
            time.sleep(rng.random() * 0.004)
            for line in admin.command("CLIENT", "LIST").splitlines():
                number, command = re.search(r"id=(\d+) .* cmd=(\S+)", line).groups()
                if command.split("|")[0] not in ("client", "xadd", "hset", "hsetnx"):
                    killed += admin.command("CLIENT", "KILL", "ID", number) if alive(admin, number) else 0
            assert t.process.stdout.readline() == "ok\n"
    check(redis, model)
    assert killed > 20


def alive(admin, number):
    return f"id={number} " in admin.command("CLIENT", "LIST", "ID", number)
