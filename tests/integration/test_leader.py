"""Who rolls up: GET and POST /rollup, handing over, holders that stand still, fencing, --lock-redis."""

import re
import signal
import threading
import time

import pytest

from lib.clock import FakeClock, epoch
from lib.log import counted
from lib.memory import of_redis
from lib.process import ROOT, free_port, run, short_directory
from lib.proxy import Fault, is_script
from lib.resp import RespError
from lib.waiting import wait_until

FEW = ("--partitions", "4")
ONE = ("--partitions", "1")
LEASE_S = 10
LOCK = "t:{0}:lock"


def lock_key(redis):
    return wait_until(lambda: redis.command("KEYS", "t:*:lock"), "somebody leads")[0]


def rollup(tallyd, method="GET"):
    answer = tallyd.client().request(method, "/rollup")
    assert answer.status == 200, answer
    return answer.json


def leader_of(tallyds, deadline_s=20):
    """(who leads, the others)"""
    def one():
        found = [t for t in tallyds if t.leads()]
        return found if len(found) == 1 else None

    found = wait_until(one, "one of them leads", deadline_s)[0]
    return found, [t for t in tallyds if t is not found]


@pytest.fixture
def pair(start_redis, start_tallyd):
    redis = start_redis()
    return redis, *leader_of([start_tallyd(*FEW, redis=redis, name=f"tallyd{i}") for i in range(2)])


# Status


def test_status_is_the_same_from_everybody(pair):
    redis, leader, others = pair
    mine, theirs = rollup(leader), rollup(others[0])
    assert mine.pop("leader") is True and theirs.pop("leader") is False
    assert mine == theirs
    assert mine["holder"].endswith(f":{leader.pid}") and mine["fencing_token"] >= 1
    assert set(mine["watermarks"]) == set(mine["lag_s"]) == {"hour", "day", "month"}
    assert leader.client().metric("tallyd_rollup_leader") == 1, "also between the passes"
    assert others[0].client().metric("tallyd_rollup_leader") == 0
    redis.command("PING")


def test_pass_on_demand(start_world, site):
    """POST /rollup does not wait for the 30 s of grace; what it says is complete is answered from one key."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    wait_until(world.tallyd.leads, "it leads")
    world.post([{"site": site, "page": f"/{i}", "user": i, "ts": epoch("2026-03-10 08:10") + i} for i in range(100)])
    before = rollup(world.tallyd)
    assert before["watermarks"]["hour"] == "2026-03-10T08:00:00Z" and before["lag_s"]["hour"] == 0
    world.move("2026-03-10 09:00:03")
    assert rollup(world.tallyd)["watermarks"]["hour"] == "2026-03-10T08:00:00Z"
    assert rollup(world.tallyd)["lag_s"]["hour"] == 3600
    after = rollup(world.tallyd, "POST")
    assert after["watermarks"]["hour"] == "2026-03-10T09:00:00Z" and after["lag_s"] == {"hour": 0, "day": 0, "month": 0}
    assert world.cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z")["hour"] == 1
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")


def test_pass_on_demand_of_a_server_that_goes_back(start_world, start_proxy, start_tallyd, site):
    """Behind the pass a partition is where it was before: who asked is answered when it was done again."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    wait_until(lambda: world.tallyd.leads(), "it leads")
    world.post([{"site": site, "page": f"/{i}", "user": i, "ts": epoch("2026-03-10 08:10") + i} for i in range(100)])
    world.tallyd.stop()
    proxy = start_proxy(world.redis)
    world.tallyds[0] = start_tallyd(*FEW, redis=proxy)
    world.http = world.tallyd.client()
    wait_until(lambda: world.tallyd.leads(), "it leads again")
    state = world.redis.command("KEYS", "t:*:state")[2]
    before, gone_back = world.redis.command("HGET", state, "st"), []

    def go_back(args, judge=proxy.judge):
        """How far all partitions are is asked together with the counter."""
        if args[0] == b"GET" and args[1].endswith(b":fence") and not gone_back and world.redis.command("HGET", state, "st") != before:
            gone_back.append(world.redis.command("HSET", state, "st", before))
        return judge(args)

    proxy.judge = go_back
    world.move("2026-03-10 09:00:03")
    after = rollup(world.tallyd, "POST")
    assert gone_back and after["watermarks"]["hour"] == "2026-03-10T09:00:00Z"
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")


def test_watermarks_are_the_least_of_all_partitions(start_world):
    world = start_world("2026-03-10 08:30:00", *FEW)
    redis = world.redis
    wait_until(world.tallyd.leads, "it leads")
    key = redis.command("KEYS", "t:*:state")[2]
    hour, day, month = (epoch(t) for t in ("2026-03-10 06:00", "2026-03-09", "2026-02-01"))

    def told():
        """A pass may make the hour before that is asked."""
        redis.command("HSET", key, "st", f"{hour} {hour} {day} {day} {month} {month}")
        said = rollup(world.tallyd)
        return said["watermarks"]["hour"] == "2026-03-10T06:00:00Z" and said

    said = wait_until(told, "it is told")
    assert said["watermarks"] == {
        "hour": "2026-03-10T06:00:00Z", "day": "2026-03-09T00:00:00Z", "month": "2026-02-01T00:00:00Z"}
    assert said["lag_s"] == {"hour": 7200, "day": 86400, "month": 28 * 86400}
    assert rollup(world.tallyd, "POST")["watermarks"] == {
        "hour": "2026-03-10T08:00:00Z", "day": "2026-03-10T00:00:00Z", "month": "2026-03-01T00:00:00Z"}


def test_pass_on_demand_of_who_does_not_lead(start_world, site):
    """The leader does it, the answer comes after."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    world.add_tallyd()
    _, others = leader_of(world.tallyds)
    world.post([{"site": site, "page": "/", "user": "u", "ts": epoch("2026-03-10 08:10")}])
    # The clock's jump ends the lease in Redis; a lease goes on in time, so it is the leader's renewal that mends it.
    world.move("2026-03-10 09:00:03")
    asked = rollup(others[0], "POST")
    assert asked["watermarks"]["hour"] == "2026-03-10T09:00:00Z"
    assert not world.redis.command("KEYS", "t:*:wish")


def test_pass_on_demand_while_redis_is_full(start_redis, start_tallyd):
    """Rollups make room, so who does not lead can ask for one, too."""
    redis = start_redis()
    _, (other,) = leader_of([start_tallyd(*FEW, redis=redis, name=f"tallyd{i}") for i in range(2)])
    redis.command("CONFIG", "SET", "maxmemory", "1")
    rollup(other, "POST")


def test_pass_on_demand_that_takes_too_long(start_redis, start_proxy, start_tallyd):
    """504 within the deadline, whether it leads or not."""
    redis = start_redis()
    proxy = start_proxy(redis)
    both = [start_tallyd(*FEW, "--request-timeout", "2s", redis=r, name=f"tallyd{i}") for i, r in enumerate((proxy, redis))]
    leader_of(both)
    proxy.hold_replies()
    begin = time.monotonic()
    answer = both[0].client().request("POST", "/rollup")
    assert answer.status == 504 and time.monotonic() - begin < 2.2, answer
    proxy.hold_replies(False)
    wait_until(lambda: both[0].client().request("POST", "/rollup").status == 200, "it goes on")


def test_a_wish_outlives_nobody_it_was_made_for(start_redis, start_tallyd):
    """Who asks while another request's wish stands has one of his own as soon as that one has given up."""
    redis = start_redis()
    leader, (other,) = leader_of([start_tallyd(*FEW, "--request-timeout", "3s", redis=redis, name=f"tallyd{i}") for i in range(2)])

    def wish():
        return next((redis.command("GET", k) for k in redis.command("KEYS", "t:*:wish")), None)

    answers, begin = {}, time.monotonic()

    def ask(name):
        answers[name] = other.client().request("POST", "/rollup").status

    threads = [threading.Thread(target=ask, args=(name,)) for name in ("first", "second")]
    leader.signal(signal.SIGSTOP)
    threads[0].start()
    first = wait_until(wish, "the first one's wish")
    wait_until(lambda: time.monotonic() - begin > 1.5, "half of its time later")
    threads[1].start()
    wait_until(lambda: "first" in answers, "it has given up")
    wait_until(lambda: wish() != first, "another wish, for the second one")
    assert "second" not in answers, "in its time"
    leader.signal(signal.SIGCONT)
    for thread in threads:
        thread.join()
    assert answers["first"] == 504 and answers["second"] in (200, 504)
    wait_until(lambda: other.client().request("POST", "/rollup").status == 200, "it goes on")


def test_a_wish_that_is_lost_is_made_again(pair):
    """Redis may lose it, as with a failover: no answer before a pass."""
    redis, leader, (other,) = pair
    answers = []

    def wish():
        return next((redis.command("GET", k) for k in redis.command("KEYS", "t:*:wish")), None)

    passed = rollup(other, "POST")
    leader.signal(signal.SIGSTOP)
    thread = threading.Thread(target=lambda: answers.append(rollup(other, "POST")))
    thread.start()
    first = wait_until(wish, "the wish")
    redis.command("DEL", *redis.command("KEYS", "t:*:wish"))
    again = wait_until(lambda: answers or wish(), "another wish")
    assert not answers and again != first
    leader.signal(signal.SIGCONT)
    thread.join()
    assert answers[0]["holder"] == passed["holder"], "the same one has led all the time"


# Handing over


def test_a_killed_leader_is_followed_within_its_lease(pair):
    _, leader, (other,) = pair
    token = rollup(other)["fencing_token"]
    leader.kill()
    begin = time.monotonic()
    wait_until(other.leads, "another one leads")
    assert time.monotonic() - begin < LEASE_S + 1
    assert rollup(other)["fencing_token"] == token + 1
    assert rollup(other)["holder"].endswith(f":{other.pid}")


def test_a_leader_dies_and_redis_s_clock_is_set_back(start_redis, start_tallyd):
    """Its lease, which ends by that clock, does not last an hour longer."""
    directory = short_directory()
    clock = FakeClock(directory, "2026-03-10 08:30:00")
    redis = start_redis(directory, clock=clock)
    leader, (other,) = leader_of([start_tallyd(*FEW, redis=redis, name=f"tallyd{i}") for i in range(2)])
    leader.kill()
    clock.set_back(3600)
    wait_until(other.leads, "another one leads", deadline_s=2 * LEASE_S + 2)


def test_a_leader_that_stops_gives_the_lock_back(pair):
    redis, leader, _ = pair
    key = lock_key(redis)
    mine = redis.command("GET", key)
    assert leader.terminate() == 0
    assert redis.command("GET", key) != mine


def test_a_leader_whose_redis_was_away_leads_again_at_once(start_redis, start_tallyd, site):
    """In the middle of a deletion the connection is lost, so the leader draws another token; the lock could not be given back.  It
    does not wait for its own lease."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis)
    wait_until(tallyd.leads, "it leads")
    tallyd.client().accept([{"site": site, "page": f"/{i}"} for i in range(50)])
    assert tallyd.client().request("DELETE", f"/sites/{site}").status == 202
    wait_until(lambda: tallyd.client().question(f"/sites/{site}")["done"] > 0.9, "the deletion waits for its instant")
    redis.kill()
    wait_until(lambda: "not leading" in tallyd.log_text(), "it draws another token")
    redis.start()
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready")
    begin = time.monotonic()
    wait_until(tallyd.leads, "it leads again")
    assert time.monotonic() - begin < LEASE_S / 3
    wait_until(lambda: tallyd.client().get(f"/sites/{site}").status == 404, "the deletion ends")


def test_a_leader_that_could_not_give_its_lock_back_does_not_wait_for_it(start_redis, start_proxy, start_tallyd):
    """A partition has seen a later leader, so it draws another token; the command that gives the lock back is lost.  Then it gives
    the lock back first, and does not wait for its own lease."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(*FEW, redis=proxy)
    wait_until(lambda: tallyd.leads(), "it leads")
    key = lock_key(redis)
    lost = proxy.arm(Fault("command-before", match=lambda args: is_script(args) and args[2:4] == [b"1", key.encode()]))
    for state in redis.command("KEYS", "t:*:state"):
        redis.command("HSET", state.replace(":state", ":pass"), "ftok", "1000")
    begin = time.monotonic()
    rollup(tallyd, "POST")
    assert lost.done.is_set() and time.monotonic() - begin < LEASE_S / 3
    assert tallyd.leads() and rollup(tallyd)["fencing_token"] > 1000


def test_a_leader_that_was_not_told_gives_its_lock_back_when_it_stops(start_redis, start_proxy, start_tallyd):
    """It makes way for other settings, and the command that gives the lock back is lost.  It cannot lead any more, so it has no
    other chance to give it back."""
    redis = start_redis()
    proxy = start_proxy(redis)
    old = start_tallyd(*FEW, redis=proxy, name="old")
    wait_until(old.leads, "it leads")
    key = lock_key(redis)
    mine = redis.command("GET", key)
    lost = proxy.arm(Fault("command-before", match=lambda args: is_script(args) and args[2:4] == [b"1", key.encode()]))
    start_tallyd(*FEW, "--keep-minutes", "72h", redis=redis, name="new")
    wait_until(lambda: old.client().post({"page": "/"}).status == 503, "it notices")
    assert lost.done.wait(5), "it makes way"
    assert redis.command("GET", key) == mine
    assert old.terminate() == 0
    assert redis.command("GET", key) != mine


def test_a_leader_that_heard_nothing_does_not_wait_for_what_it_has_prolonged(start_redis, start_proxy, start_tallyd):
    """Redis prolongs the lock again and again, and no answer arrives until the lease is over.  Then it gives the lock back before it
    takes it anew."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(*FEW, redis=proxy)
    wait_until(tallyd.leads, "it leads")
    token = rollup(tallyd)["fencing_token"]
    proxy.arm(Fault("reply-before", times=1000, match=lambda args: is_script(args) and args[2] == b"2" and args[4].endswith(b":wish")))
    wait_until(lambda: "not leading" in tallyd.log_text(), "its lease is over", deadline_s=LEASE_S + 2)
    proxy.disarm()
    begin = time.monotonic()
    wait_until(tallyd.leads, "it leads again")
    assert time.monotonic() - begin < LEASE_S / 3
    assert rollup(tallyd)["fencing_token"] == token + 1


def test_somebody_else_s_lock_is_not_taken_away(pair):
    """Who lost the lock meanwhile leaves it alone when it stops, and finds out with its next renewal when it goes on."""
    redis, leader, (other,) = pair
    key = lock_key(redis)
    redis.command("SET", key, "somebody", "PX", 60000)
    wait_until(lambda: "another process has it" in leader.log_text(), "it finds out", deadline_s=LEASE_S)
    assert not leader.leads()
    for tallyd in (leader, other):
        assert tallyd.terminate() == 0
    assert redis.command("GET", key) == "somebody"


@pytest.mark.parametrize("how", ["deleted", "everything gone"])
def test_a_lock_that_is_gone_is_taken_again(pair, how):
    redis, leader, (other,) = pair
    key, token = lock_key(redis), rollup(leader)["fencing_token"]
    redis.command(*(("DEL", key) if how == "deleted" else ("FLUSHALL",)))
    wait_until(lambda: redis.command("GET", key), "somebody has it again", deadline_s=LEASE_S)
    leader_of([leader, other])
    if how == "deleted":
        assert rollup(other)["fencing_token"] == token + 1
    assert rollup(leader, "POST")["holder"] == rollup(other)["holder"]


def test_a_leader_with_other_settings_makes_way(start_redis, start_tallyd):
    """The data is kept otherwise by a process that started later: only that one can roll up."""
    redis = start_redis()
    old = start_tallyd(*FEW, redis=redis, name="old")
    wait_until(old.leads, "it leads")
    new = start_tallyd(*FEW, "--keep-minutes", "72h", redis=redis, name="new")
    wait_until(lambda: old.client().post({"page": "/"}).status == 503, "the old one notices")
    wait_until(new.leads, "the new one leads")


# Standing still


def scripts(redis):
    return int(redis.command("INFO", "commandstats").partition("cmdstat_evalsha:calls=")[2].partition(",")[0] or 0)


def test_a_leader_that_stood_still_does_not_write(start_redis, start_proxy, start_tallyd, site):
    """In the middle of a pass the leader's bytes get stuck and it is stopped (SIGSTOP) past its lease.  Another one leads
    and finishes the pass.  Then the bytes arrive, and it goes on: neither changes anything, and it knows that it does not
    lead before it writes again."""
    directory = short_directory()
    clock = FakeClock(directory, "2026-03-10 08:58:00")
    redis = start_redis(directory, clock=clock)
    proxy = start_proxy(redis)
    stale = start_tallyd(*ONE, redis=proxy, name="stale")
    wait_until(stale.leads, "the first one leads")
    stale.client().accept([{"site": site, "page": f"/{i}", "user": i} for i in range(500)])
    counted(stale.client())
    of_pass = redis.command("KEYS", "t:*:state")[0].replace(":state", ":pass")
    clock.set("2026-03-10 09:00:40")
    proxy.delay_s = 0.1  # so that the pass can be caught in the middle
    stale.client().get("/pv")
    wait_until(lambda: (redis.command("HGET", of_pass, "cur") or "m0") not in ("m0", "x0"), "it is in the middle of a pass")
    proxy.freeze()
    stale.signal(signal.SIGSTOP)
    stuck = redis.command("HMGET", of_pass, "pass", "cur", "ftok")
    assert stuck[0] and int(stuck[2]) >= 1
    heir = start_tallyd(*ONE, redis=redis, name="heir")
    http = heir.client()
    http.accept({"site": site, "page": "/0"})
    counted(http)
    wait_until(heir.leads, "the other one leads", deadline_s=LEASE_S + 5)
    wait_until(lambda: redis.command("HGET", of_pass, "pass") is None, "it finishes the pass")
    assert int(redis.command("HGET", of_pass, "ftok")) > int(stuck[2])

    def state():
        """What rollups write, key by key.  Logs have a heartbeat."""
        keys = [k for k in redis.command("KEYS", "*") if not any(f":{kind}" in k for kind in ("heads", "hot", "lock", "visit:", "wish"))]
        with redis.connect() as connection:
            return {k: connection.command("DUMP", k, raw=True) for k in keys}

    before, ran = state(), scripts(redis)
    assert len(before) > 1000
    proxy.thaw()  # what was under way arrives now
    wait_until(lambda: scripts(redis) > ran, "the late script runs")
    assert state() == before
    proxy.delay_s = 0
    passes = heir.client().metric("tallyd_rollup_passes_total")
    stale.signal(signal.SIGCONT)
    wait_until(lambda: "not leading" in stale.log_text(), "it knows that it does not lead")
    assert not stale.leads() and heir.leads()
    assert stale.client().metric("tallyd_rollup_leader") == 0
    assert state() == before
    assert heir.client().metric("tallyd_rollup_passes_total") == passes
    for tallyd in (heir, stale):
        assert tallyd.client().count("pv", site=site, from_="2026-03-10T08:00:00Z", to="2026-03-10T10:00:00Z") == 501


def test_a_token_ends_with_its_lease(start_redis, start_proxy, start_tallyd):
    """Renewals are not answered, and the leader's thread waits for an answer when the lease ends: it does not lead while it
    waits."""
    proxy, acquired, renewals = start_proxy(start_redis()), [], []
    judge = proxy.judge

    def starve(args):
        keys = args[3:5] if args[0].upper() == b"EVALSHA" else []
        if len(keys) == 2 and keys[1].endswith(b":fence"):
            acquired.append(time.monotonic())
            return Fault("command-before") if len(acquired) > 1 else judge(args)
        if len(keys) == 2 and keys[1].endswith(b":wish"):
            renewals.append(time.monotonic())
            # two that fail at once shift the others: one is asked before the lease's end and awaited beyond it
            return Fault("command-before") if len(renewals) <= 2 else Fault("reply-hole", late_s=5)
        return judge(args)

    proxy.judge = starve
    tallyd = start_tallyd(*ONE, redis=proxy)
    wait_until(tallyd.leads, "it leads")
    time.sleep(acquired[0] + LEASE_S - time.monotonic())
    while time.monotonic() < acquired[0] + LEASE_S + 0.5:
        assert not tallyd.leads()
    assert len(acquired) > 1, "it has tried to lead again"
    assert len(renewals) > 6, "all the time it asked"


# Fencing


def test_every_rollup_script_is_fenced(start_redis, start_tallyd):
    """A partition that has seen token 7 refuses 6 at every step, though all else is right."""
    redis = start_redis()
    start_tallyd(*ONE, redis=redis).kill()
    state = redis.command("KEYS", "t:*:state")[0]
    tag = state[:state.index("}") + 1]
    of_pass = f"{tag}:pass"
    cfg, st = redis.command("HMGET", state, "cfg", "st")
    lua = {name: (ROOT / "storage" / "lua" / f"{name}.lua").read_text() for name in ("mark", "takeover", "merge", "advance", "expire")}
    redis.command("HSET", of_pass, "pass", "id", "cur", "m0", "ftok", "7")
    steps = {
        "takeover": ([state, of_pass], [cfg, st, "id", "new", "6", "m0"], 0),
        "merge": ([state, of_pass, f"{tag}:open", f"{tag}:sum", f"{tag}:part"], [cfg, "id", "m0", "6", 0, 2000, "", "H", 1, 1, "own", "", "/", 0, 0], -1),
        "advance": ([state, of_pass], [cfg, "id", "m0", "6", st, st, "ver"], 0),
        "expire": ([state, of_pass, f"{tag}:open"], [cfg, "id", "m0", "6", "x1", "1", 0], 0),
    }

    def both():
        return [sorted(redis.command("HGETALL", key)) for key in (state, of_pass)]

    before = both()
    for name, (keys, args, refused) in steps.items():
        assert redis.command("EVAL", lua[name], len(keys), *keys, *args) == refused, name
        assert both() == before, name
    redis.command("HDEL", of_pass, "pass", "cur")
    assert redis.command("EVAL", lua["mark"], 2, state, of_pass, cfg, st, st, "id", "6", 0) == 0
    assert redis.command("EVAL", lua["mark"], 2, state, of_pass, cfg, st, st, "id", "7", 0) == 1
    redis.command("HSET", of_pass, "cur", "m0")
    for name, (keys, args, _) in steps.items():  # and with the right token they work
        if name == "takeover":
            continue
        redis.command("HSET", of_pass, "pass", "id", "cur", "m0")
        assert redis.command("EVAL", lua[name], len(keys), *keys, *[("7" if a == "6" else a) for a in args]) == 1, name


def test_a_partition_that_has_seen_more_than_the_counter(start_world, site):
    """The counter went back with lost data (another node's, in a cluster): the leader draws a token beyond what the
    partition has seen, and goes on."""
    world = start_world("2026-03-10 08:30:00", *FEW)
    wait_until(world.tallyd.leads, "it leads")
    world.post([{"site": site, "page": "/", "user": "u", "ts": epoch("2026-03-10 08:10")}])
    for key in world.redis.command("KEYS", "t:*:state"):
        world.redis.command("HSET", key.replace(":state", ":pass"), "ftok", "1000")
    world.move("2026-03-10 09:00:40")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", hour=1)
    assert rollup(world.tallyd)["fencing_token"] > 1000


# A Redis that is full


def test_a_full_redis_gets_room_by_its_rollups(start_world, site):
    """Writes are refused, but hours are completed, their minutes expire, and then there is room again."""
    world = start_world("2026-03-10 08:30:00", *FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d")
    wait_until(world.tallyd.leads, "it leads")
    world.move("2026-03-10 08:59:00")
    world.post([{"site": site, "page": f"/{i % 40}", "user": f"{m} {i}", "ip": f"10.0.{m}.{i % 250}",
                 "ts": epoch("2026-03-10 08:00") + m * 60} for m in range(50) for i in range(400)])
    world.redis.command("CONFIG", "SET", "maxmemory", "1")
    assert world.http.post({"site": site, "page": "/"}).status == 503
    world.clock.set("2026-03-10 09:00:40")
    world.http.get("/pv", site=site)
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", hour=1)
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")
    assert world.redis.command("KEYS", f"*:{site}:m*")

    def used():
        return of_redis(world.redis.command("INFO", "memory"))

    before = used()
    world.clock.set("2026-03-10 11:00:40")
    wait_until(lambda: not world.redis.command("KEYS", f"*:{site}:m*"), "the minutes expire")
    wait_until(lambda: used() < before, "there is room")  # KEYS passes over what Redis has not removed yet
    with pytest.raises(RespError):
        world.redis.command("SET", "x", "y")
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")


# --lock-redis


@pytest.fixture
def voters(start_redis):
    return [start_redis() for _ in range(3)]


def with_voters(voters):
    return (*FEW, "--lock-redis", ",".join(v.url for v in voters))


def votes(voters):
    """The holders' values, as many as have one."""
    return [v.command("GET", k) for v in voters if v.alive() for k in v.command("KEYS", "t:*:lock:*")]


def test_a_quorum_leads(start_redis, start_tallyd, voters):
    redis = start_redis()
    voters[1].kill()
    both = [start_tallyd(*with_voters(voters), redis=redis, name=f"tallyd{i}") for i in range(2)]
    leader, (other,) = leader_of(both)
    assert len(votes(voters)) == 2 and len(set(votes(voters))) == 1
    assert rollup(other)["holder"] in votes(voters)[0] and rollup(other)["fencing_token"] >= 1
    leader.kill()
    begin = time.monotonic()
    leader_of([other])
    assert time.monotonic() - begin < LEASE_S + 2
    assert other.terminate() == 0
    assert votes(voters) == [], "given back everywhere"


def test_a_vote_whose_answer_is_lost_is_given_back(start_redis, start_proxy, start_tallyd):
    """The server gave its vote, and nobody heard of it.  The next try has another token, and does not wait for the lease of that one."""
    voter = start_redis()
    proxy = start_proxy(voter)
    lost = proxy.arm(Fault("reply-before", match=lambda args: is_script(args) and b":lock:" in args[3] and len(args) == 7))
    tallyd = start_tallyd(*with_voters([proxy]), redis=start_redis())
    assert lost.done.wait(5), "it asks for the vote"
    begin = time.monotonic()
    wait_until(lambda: tallyd.leads(), "it leads")
    assert time.monotonic() - begin < LEASE_S / 3


def test_without_a_quorum_nobody_leads(start_redis, start_tallyd, voters):
    redis = start_redis()
    tallyd = start_tallyd(*with_voters(voters), redis=redis)
    leader_of([tallyd])
    for voter in voters[:2]:
        voter.kill()
    wait_until(lambda: not tallyd.leads(), "its lease runs out", deadline_s=LEASE_S + 2)
    wait_until(lambda: "not renewed in time" in tallyd.log_text(), "the log says so")
    tallyd.client().accept({"page": "/"})  # writing goes on
    wait_until(lambda: not votes(voters), "what it had is given back")
    token = rollup(tallyd)["fencing_token"]
    voters[0].start()
    leader_of([tallyd])
    assert rollup(tallyd)["fencing_token"] > token


def test_the_log_names_lock_servers_that_do_not_answer(start_redis, start_tallyd, voters):
    """Once when too few answer, with each one's reason, and once when it is over."""
    nobody = f"redis://:s3cret@127.0.0.1:{free_port()}"
    voters[0].command("ACL", "SETUSER", "default", "-script")
    urls = ",".join([voters[0].url, nobody, voters[1].url])
    tallyd = start_tallyd(*FEW, "--lock-redis", urls, redis=start_redis())

    def told(words):
        return [line for line in tallyd.log_text().splitlines() if words in line]

    def connections():
        return int(re.search(r"total_connections_received:(\d+)", voters[0].command("INFO", "stats"))[1])

    wait_until(lambda: told("too few servers of --lock-redis answer"), "the log says so")
    voters[1].pause()
    before = connections()
    wait_until(lambda: connections() >= before + 3, "it goes on asking, and has nothing new to tell")
    reason, = told("too few servers of --lock-redis answer")
    assert "level=warn" in reason and f"{voters[0].path}: the scripts could not be loaded: NOPERM" in reason, reason
    assert "127.0.0.1:" in reason and "Connection refused" in reason and "s3cret" not in reason, reason
    assert str(voters[1].path) not in reason and not tallyd.leads(), reason
    voters[1].signal(signal.SIGCONT)
    voters[0].command("ACL", "SETUSER", "default", "+script")
    leader_of([tallyd])
    over, = told("enough servers of --lock-redis answer again")
    assert "level=info" in over and "Connection refused" in over and str(voters[0].path) not in over, over
    assert len(told("too few servers of --lock-redis answer")) == 1


def test_two_tallyds_with_data_of_their_own_share_voters(start_redis, start_tallyd, voters):
    """Locks on the servers are named after the data's secret."""
    for i in range(2):
        assert leader_of([start_tallyd(*with_voters(voters), redis=start_redis(), name=f"tallyd{i}")])
    assert len(votes(voters)) == 6


def test_lock_servers_are_checked(start_redis):
    for urls in ("nothing", "redis://a:1,redis://b:1", "unix:/a,unix:/b,unix:/a", "unix:/a,", ",".join(f"unix:/{i}" for i in range(10))):
        ended = run("serve", "--lock-redis", urls)
        assert ended.returncode == 2 and "--lock-redis" in ended.stderr, ended
    shown = run("config", "--lock-redis", "redis://u:s3cret@a:1,redis://:s3cret@b:1,unix:/c")
    assert "s3cret" not in shown.stdout and "redis://u:***@a:1,redis://:***@b:1,unix:/c" in shown.stdout


def test_an_idle_leader_uses_no_time(pair):
    _, leader, _ = pair

    def ticks():
        fields = open(f"/proc/{leader.pid}/stat", encoding="ascii").read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def connects():
        return leader.client().metric("tallyd_redis_connects_total")

    def has_all():
        """Its threads connect when they first have something to do."""
        n = connects()
        time.sleep(1)
        return connects() == n

    wait_until(has_all, "its connections are made")
    renewals = connects()
    before, begin = ticks(), time.monotonic()
    wait_until(lambda: time.monotonic() - begin > 4, "a renewal later", pause_s=0.5)
    assert ticks() - before <= 2, "hundredths of a second"
    assert connects() - renewals <= 1
