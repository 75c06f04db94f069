"""The lock on real servers: one (acquire, renew, release) and several (Redlock), through lock_tool.

The rules of time and of quorums by themselves are units (test_redlock.c); what a leader does with them is test_leader.py.
"""

import os
import signal
import subprocess
import time

import pytest

from lib.process import ROOT
from lib.resp import RespError
from lib.waiting import wait_until

KEY = "t:{0}:lock"
FENCE = "t:{0}:fence"
LUA = ROOT / "storage" / "lua"
LEASE_MS = 10_000


class Holder:
    """A process that may hold the lock."""

    def __init__(self, name, servers, lease_ms=LEASE_MS):
        tool = (ROOT / os.environ.get("TALLYD_TOOLS", "build/tools") / "lock_tool").resolve()
        urls = ",".join(s.url for s in servers)
        self.process = subprocess.Popen([tool, name, str(lease_ms), urls], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def do(self, word):
        """("mine", milliseconds) and the like."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return words[0], int(words[1]) if len(words) > 1 else None

    def acquire(self):
        return self.do("acquire")

    def renew(self):
        return self.do("renew")

    def close(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def holder(cleanup):
    def start(*args, **options):
        one = Holder(*args, **options)
        cleanup.append(one.close)
        return one

    return start


@pytest.fixture
def servers(start_redis):
    return [start_redis() for _ in range(3)]


def evaluate(redis, name, keys, *args):
    """A script of ours, by hand."""
    return redis.command("EVAL", (LUA / f"{name}.lua").read_text(), len(keys), *keys, *args)


def held(servers):
    """How many servers have the lock."""
    return sum(s.command("EXISTS", KEY) for s in servers if s.alive())


# One server, script by script


def test_the_scripts_one_after_another(start_redis):
    """acquire -> 1; held -> minus its milliseconds; foreign renewal and release -> 0, and do nothing; renewed -> 1, to the
    whole lease and not beyond; gone -> -1; the next acquire -> 2."""
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == 1
    assert -5000 <= evaluate(redis, "acquire", [KEY, FENCE], "b", 5000, 0) < -4000
    assert evaluate(redis, "release", [KEY], "b") == 0
    assert evaluate(redis, "renew", [KEY], "b", 60000) == 0
    assert redis.command("GET", KEY) == "a" and redis.command("PTTL", KEY) <= 5000
    assert evaluate(redis, "renew", [KEY], "a", 8000) == 1
    assert 7000 < redis.command("PTTL", KEY) <= 8000, "reset, not added"
    assert evaluate(redis, "renew", [KEY], "a", 5000) == 1
    assert redis.command("PTTL", KEY) <= 5000, "also to less"
    assert evaluate(redis, "release", [KEY], "a") == 1
    assert evaluate(redis, "release", [KEY], "a") == -1
    assert evaluate(redis, "renew", [KEY], "a", 5000) == -1
    assert redis.command("EXISTS", KEY) == 0, "a renewal brings nothing back"
    assert evaluate(redis, "acquire", [KEY, FENCE], "b", 5000, 0) == 2


def test_a_lease_that_ran_out(start_redis):
    """Nobody's any more: the next one gets it, with a greater token, and the first one can neither renew nor release."""
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 20, 0) == 1
    wait_until(lambda: redis.command("EXISTS", KEY) == 0, "the lease is over")
    assert evaluate(redis, "acquire", [KEY, FENCE], "b", 5000, 0) == 2
    assert evaluate(redis, "renew", [KEY], "a", 5000) == 0
    assert evaluate(redis, "release", [KEY], "a") == 0
    assert redis.command("GET", KEY) == "b"


def test_the_fencing_token_is_drawn_only_with_the_lock(start_redis):
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == 1
    for _ in range(5):
        assert evaluate(redis, "acquire", [KEY, FENCE], "b", 5000, 0) < 0
    assert redis.command("GET", FENCE) == "1"


def test_a_counter_that_went_back(start_redis):
    """The token is greater than what is known to have been seen; then it counts on from there."""
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 41) == 42
    assert evaluate(redis, "release", [KEY], "a") == 1
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 7) == 43
    assert evaluate(redis, "release", [KEY], "a") == 1
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 44) == 45, "no token is drawn twice"


def test_a_release_is_counted(start_redis):
    """Only the holder's own release is.  The wish for passes is such a lock, and its counter tells that the wish was fulfilled."""
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY], "a", 5000, 0) == 1
    assert redis.command("EXISTS", FENCE) == 0, "a server without the data draws no token"
    assert evaluate(redis, "release", [KEY, "released"], "b") == 0
    assert redis.command("EXISTS", "released") == 0
    assert evaluate(redis, "release", [KEY, "released"], "a") == 1
    assert evaluate(redis, "release", [KEY, "released"], "a") == -1
    assert redis.command("GET", "released") == "1"


def test_a_renewal_tells_of_a_wish_to_the_holder_alone(start_redis):
    redis = start_redis()
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == 1
    assert evaluate(redis, "renew", [KEY, "wish"], "a", 8000) == 1
    redis.command("SET", "wish", "w")
    assert evaluate(redis, "renew", [KEY, "wish"], "b", 9000) == 0
    assert evaluate(redis, "renew", [KEY, "wish"], "a", 9000) == 2
    assert redis.command("PTTL", KEY) > 8000, "prolonged all the same"


def test_a_full_redis_still_locks(start_redis):
    redis = start_redis()
    redis.command("CONFIG", "SET", "maxmemory", "1")
    with pytest.raises(RespError):
        redis.command("SET", "x", "y")
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == 1
    assert evaluate(redis, "renew", [KEY], "a", 5000) == 1
    assert evaluate(redis, "release", [KEY], "a") == 1


def test_a_lock_without_an_end_is_looked_at_again(start_redis):
    redis = start_redis()
    redis.command("SET", KEY, "by hand")
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == -1000


def test_a_lease_longer_than_any(start_redis):
    """Redis's clock was set back under it: it is cut to what a lease may be."""
    redis = start_redis()
    redis.command("SET", KEY, "dead", "PX", 3_600_000)
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == -5000
    assert redis.command("PTTL", KEY) <= 5000 and redis.command("GET", KEY) == "dead"
    redis.command("PEXPIRE", KEY, 9000)
    assert evaluate(redis, "acquire", [KEY, FENCE], "a", 5000, 0) == -5000
    assert redis.command("PTTL", KEY) <= 5000


@pytest.mark.parametrize("left", [0, 1])
def test_the_last_millisecond_of_a_lease(start_redis, left):
    """-1 would say that nobody holds the lock, and 0 that somebody else does, for a time that is not known."""
    text = (LUA / "acquire.lua").read_text()
    calls = f"local redis = {{call = function(name) return name == 'PTTL' and {left} end}}"
    assert start_redis().command("EVAL", text.replace("\n", f"\n{calls}\n", 1), 1, KEY, "a", 5000, 0) == -2


# One server, processes


def test_two_processes_one_server(start_redis, holder):
    redis = start_redis()
    a, b = holder("a", [redis]), holder("b", [redis])
    answer, validity = a.acquire()
    assert answer == "mine" and 9000 < validity <= LEASE_MS - 100 - 2
    answer, left = b.acquire()
    assert answer == "others" and 9000 < left <= LEASE_MS
    assert redis.command("GET", KEY).endswith(" a"), "who failed has not released the other's"
    assert a.renew()[0] == "mine"
    a.do("release")
    assert b.acquire()[0] == "mine"
    assert a.renew()[0] == "others"
    a.do("release")
    assert redis.command("GET", KEY).endswith(" b")


@pytest.mark.parametrize("n", [1, 3])
def test_a_holder_that_stood_still_past_its_lease(start_redis, holder, n):
    """SIGSTOP: it finds by its own clock, before it asks anybody, that the lock is not its own any more."""
    servers = [start_redis() for _ in range(n)]
    a, b = holder("a", servers, lease_ms=300), holder("b", servers)
    assert a.acquire()[0] == "mine" and a.do("valid")[0] == "yes"
    a.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: b.acquire()[0] == "mine", "another one has it")
    values = [s.command("GET", KEY) for s in servers]  # of a quorum: the last one may still have been the first one's
    assert sum((v or "").endswith(" b") for v in values) > n // 2
    a.process.send_signal(signal.SIGCONT)
    assert a.do("valid")[0] == "no"
    assert a.renew()[0] == "others"
    a.do("release")
    assert [v for s in servers if (v := s.command("GET", KEY))] == [v for v in values if v and v.endswith(" b")]


# Several servers


def test_a_quorum_is_enough(servers, holder):
    a, b = holder("a", servers), holder("b", servers)
    servers[0].kill()
    answer, validity = a.acquire()
    assert answer == "mine" and validity <= LEASE_MS - 102 and held(servers) == 2
    assert b.acquire()[0] == "others"
    assert held(servers) == 2 and servers[1].command("GET", KEY).endswith(" a")
    assert a.renew()[0] == "mine"
    a.do("release")
    assert held(servers) == 0
    assert b.acquire()[0] == "mine"


def test_less_than_a_quorum_is_given_back(servers, holder):
    a = holder("a", servers)
    for dead in servers[:2]:
        dead.kill()
    assert a.acquire()[0] == "unknown"
    assert held(servers) == 0, "also where it was locked"
    servers[0].start()
    assert a.acquire()[0] == "mine", "a server that comes back is used again"


def test_split_votes_are_given_back(servers, holder):
    """Each has a server of its own and none has a quorum: nobody keeps anything, and there is a way on."""
    a, b = holder("a", servers, lease_ms=60000), holder("b", servers, lease_ms=60000)
    servers[0].command("SET", KEY, "c", "PX", 60000)
    servers[1].command("SET", KEY, "d", "PX", 50000)
    answer, left = a.acquire()
    assert answer == "others" and 45000 < left <= 50000, "until the second one is free"
    assert held(servers) == 2 and servers[2].command("EXISTS", KEY) == 0
    servers[1].command("DEL", KEY)
    assert b.acquire()[0] == "mine"


def test_one_that_does_not_answer_is_not_waited_for(servers, start_proxy, holder):
    """A black hole costs little time, and is unlocked too as soon as it hears again."""
    proxy = start_proxy(servers[0])
    a = holder("a", [proxy, *servers[1:]])
    assert a.acquire()[0] == "mine"
    proxy.freeze()
    begin = time.monotonic()
    assert a.renew()[0] == "mine"
    assert time.monotonic() - begin < 1, "far less than the lease"
    a.do("release")
    assert held(servers) == 0
    proxy.thaw()


def test_late_yes_is_unlocked(servers, start_proxy, holder):
    """Two servers lock but their answers come too late: no quorum; what they did is undone all the same."""
    proxies = [start_proxy(s) for s in servers[:2]]
    a = holder("a", [*proxies, servers[2]])
    for proxy in proxies:
        proxy.delay_s = 0.3
    assert a.acquire()[0] == "unknown"
    for proxy in proxies:
        proxy.delay_s = 0
    assert held(servers[2:]) == 0
    a.do("release")
    assert held(servers) == 0
    assert a.acquire()[0] == "mine"


def test_time_that_passes_while_locking_counts(servers, start_proxy, holder):
    """The servers lock, but it takes longer than the lease: nothing of it is left, so it is not held."""
    proxies = [start_proxy(s) for s in servers]
    slow = holder("slow", proxies, lease_ms=150)
    wait_until(lambda: slow.acquire()[0] == "mine", "in time it is its own")
    slow.do("release")
    for proxy in proxies:
        proxy.delay_s = 0.06  # three round trips with those to connect anew: beyond the lease, within each one's time
        proxy.cut_all()
    assert slow.acquire()[0] == "unknown"
    for proxy in proxies:
        proxy.delay_s = 0
    wait_until(lambda: held(servers) == 0, "given back")


def test_extending_needs_a_quorum(servers, holder):
    """One server lost it: extended.  Two: lost for good, at once."""
    a = holder("a", servers)
    assert a.acquire()[0] == "mine"
    servers[0].command("DEL", KEY)
    assert a.renew()[0] == "mine"
    assert servers[0].command("EXISTS", KEY) == 0, "extending does not lock anew"
    servers[1].command("SET", KEY, "b")
    assert a.renew()[0] == "others"
    a.do("release")
    assert servers[1].command("GET", KEY) == "b"


def test_extending_while_servers_are_away(servers, holder):
    """Not answered is not lost: what was valid before stays so until it is over."""
    a = holder("a", servers)
    assert a.acquire()[0] == "mine"
    for dead in servers[:2]:
        dead.kill()
    assert a.renew()[0] == "unknown" and a.do("valid")[0] == "yes"


def test_a_server_that_came_back_empty_too_early(servers, holder):
    """Why a crashed server must stay away for a lease, or keep its data: a second one gets a quorum.  The first one loses
    it with its next renewal; meanwhile only the fencing token tells them apart."""
    a, b = holder("a", servers), holder("b", servers)
    servers[2].kill()
    assert a.acquire()[0] == "mine"
    servers[1].kill()
    servers[1].start()
    servers[2].start()
    assert b.acquire()[0] == "mine"
    # the connections that died with the servers answer nothing; those that follow do, if in time
    assert wait_until(lambda: (answer := a.renew()[0]) != "unknown" and answer, "it hears from them") == "others"


def test_many_at_once(servers, holder):
    """However they race, never two at a time."""
    racers = [holder(str(i), servers) for i in range(5)]
    for _ in range(20):
        for racer in racers:
            racer.process.stdin.write("acquire\n")
            racer.process.stdin.flush()
        answers = [racer.process.stdout.readline().split()[0] for racer in racers]
        assert answers.count("mine") <= 1, answers
        for racer in racers:
            racer.do("release")
        assert held(servers) == 0
