"""POST /events?first=1 when things break: of a user's day no two events are told to be the first, and with keys exactly one
is, whatever dies, is cut or goes back."""

import shutil
import threading
import time

import pytest

from lib.campaign import race
from lib.client import Unknown
from lib.firsts import Race, notes, told
from lib.log import HELD, OfAFold, append_of
from lib.proxy import CUTS, Fault
from lib.report import Report
from lib.waiting import wait_until

FEW = ("--partitions", "4")
EVERYSEC = ("--appendfsync", "everysec")  # Redis may go back by 2 s


def post(http, site, user, key=None):
    body = {"site": site, "user": user, "actions": ["checkin"]}
    return http.post(body, first=1, headers={"Idempotency-Key": f"{site} {key}"} if key is not None else None)


def until_told(tallyd, site, user, key):
    """Send it until it is answered; was it the first?"""
    while True:
        try:
            answer = post(tallyd.client(), site, user, key)
        except Unknown:
            continue
        if answer.status == 202:
            return bool(told(answer))
        assert answer.status in (503, 504), answer
        time.sleep(0.02)


@pytest.fixture
def between(start_redis, start_proxy, start_tallyd):
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    return start_tallyd(*FEW, redis=proxy), proxy, redis


def is_read(args):
    """Of a note."""
    return args[0].upper() == b"GET" and b":first:" in args[1]


@pytest.mark.some(2)
@pytest.mark.parametrize("key", [False, True], ids=["", "with a key"])
@pytest.mark.parametrize("point", CUTS)
def test_a_fold_is_cut_at_each_command(between, site, point, key):
    """Of a user who is new and of one who is known, of whom the bit is asked for.  Everybody is told, at once."""
    tallyd, proxy, _ = between
    http = tallyd.client()
    for nth in range(1, 500):
        user = f"u{nth}"
        assert http.post({"site": site, "user": user, "actions": ["other"]}).status == 202
        http.question("/dau", site=site)
        fault = proxy.arm(Fault(point, nth=nth, match=OfAFold()))
        answers = [post(http, site, user, f"{nth} {i}" if key else None) for i in range(2)]
        assert [told(answer) for answer in answers] == [{0: ["checkin"]}, {}], f"{point} {nth}"
        if not fault.fired:
            break
        if key:
            assert [told(post(http, site, user, f"{nth} {i}")) for i in range(2)] == [{0: ["checkin"]}, {}]
    assert nth > 12, "so few commands are no fold"


@pytest.mark.parametrize("point", CUTS)
def test_the_reading_is_cut(between, site, point):
    tallyd, proxy, _ = between
    http = tallyd.client()
    told(post(http, site, "warm"))
    fault = proxy.arm(Fault(point, match=is_read))
    assert told(post(http, site, "ann", 1)) == {0: ["checkin"]} and fault.fired == 1
    fault = proxy.arm(Fault(point, match=is_read))
    assert told(post(http, site, "ann", 1)) == {0: ["checkin"]} and fault.fired == 1


@pytest.mark.parametrize("point", CUTS)
def test_the_append_is_cut(between, site, point):
    tallyd, proxy, _ = between
    http = tallyd.client()
    told(post(http, site, "warm"))
    for key in (None, 1):
        fault = proxy.arm(Fault(point, match=append_of(site)))
        assert told(post(http, site, f"u{key}", key)) == {0: ["checkin"]} and fault.fired == 1
        assert told(post(http, site, f"u{key}")) == {}


@pytest.mark.some(2)
@pytest.mark.parametrize("text", ["BUSY Redis is busy running a script.", "LOADING Redis is loading the dataset in memory",
                                  "MISCONF no disk", "ERR odd"], ids=lambda text: text.split()[0])
def test_a_command_of_a_fold_is_refused(between, site, text):
    tallyd, proxy, _ = between
    http = tallyd.client()
    for nth in range(1, 500):
        user = f"u{nth}"
        assert http.post({"site": site, "user": user, "actions": ["other"]}).status == 202
        http.question("/dau", site=site)
        fault = proxy.arm(Fault("error", nth=nth, match=OfAFold(), text=text))
        assert [told(post(http, site, user)) for _ in range(2)] == [{0: ["checkin"]}, {}], nth
        if not fault.fired:
            break
    assert nth > 12, "so few commands are no fold"


def test_a_dead_process_took_it(start_redis, start_tallyd, site):
    """It acknowledged nothing, and its log has the event: the client's retry elsewhere has it folded."""
    redis = start_redis(appendonly=True)
    dead = start_tallyd(*FEW, "--request-timeout", "1s", redis=redis, env=HELD, name="dead")
    assert post(dead.client(), site, "ann", 1).status == 504
    dead.kill()
    heir = start_tallyd(*FEW, redis=redis, name="heir")
    assert told(post(heir.client(), site, "ann", 2)) == {}
    assert told(post(heir.client(), site, "ann", 1)) == {0: ["checkin"]}


def test_a_full_redis(start_redis, start_tallyd, site):
    """What is in the log is folded beyond maxmemory, and its client is told."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis, env={"TALLYD_TEST_FOLD_HOLD": "1000"})
    answers = []
    told(post(tallyd.client(), site, "warm"))
    thread = threading.Thread(target=lambda: answers.append(post(tallyd.client(), site, "ann", 1)))
    thread.start()
    wait_until(lambda: any(redis.command("XLEN", key) for key in redis.command("KEYS", "t:*:log:*")), "it is in the log")
    redis.command("CONFIG", "SET", "maxmemory", "1")
    thread.join(15)
    assert told(answers[0]) == {0: ["checkin"]}
    assert post(tallyd.client(), site, "ann", 2).status == 503
    redis.command("CONFIG", "SET", "maxmemory", "0")
    assert [told(post(tallyd.client(), site, "ann", n)) for n in (1, 2)] == [{0: ["checkin"]}, {}]


# Redis goes back


def test_it_waits_until_it_cannot_be_lost(start_redis, start_tallyd, site):
    """With everysec two seconds, and little more."""
    tallyd = start_tallyd(*FEW, redis=start_redis(appendonly=True, options=EVERYSEC))
    for turn in range(3):
        begun = time.monotonic()
        assert told(post(tallyd.client(), site, "ann", turn)) == ({} if turn else {0: ["checkin"]})
        assert 1.9 < time.monotonic() - begun < 2.9
    begun = time.monotonic()
    assert told(post(tallyd.client(), site, "ann", 0)) == {0: ["checkin"]}, "a repeat"
    assert 1.9 < time.monotonic() - begun < 2.9


def test_many_wait_at_once(start_redis, start_tallyd, site):
    """They hold no thread: questions are answered meanwhile."""
    tallyd = start_tallyd(*FEW, redis=start_redis(appendonly=True, options=EVERYSEC))
    answers = []
    threads = [threading.Thread(target=lambda i=i: answers.append(post(tallyd.client(), site, f"u{i}"))) for i in range(60)]
    begun = time.monotonic()
    for thread in threads:
        thread.start()
    http = tallyd.client()
    wait_until(lambda: http.question("/dau", site=site, action="checkin")["users"] == 60, "all are counted")
    assert time.monotonic() - begun < 1.9 and not answers
    for thread in threads:
        thread.join(15)
    assert [told(answer) for answer in answers] == [{0: ["checkin"]}] * 60
    assert time.monotonic() - begun < 4


@pytest.mark.some(1)
@pytest.mark.parametrize("held", [False, True], ids=["", "the first one's process is held up"])
def test_the_fold_is_lost(start_redis, start_tallyd, site, tmp_path, held):
    """An event was folded as the first one, and nobody was told so far.  Redis goes back behind the fold, and another
    client is quicker: that one is told, and the other one is not."""
    redis = start_redis(appendonly=True, options=EVERYSEC)
    one = start_tallyd(*FEW, redis=redis, name="one")
    two = start_tallyd(*FEW, redis=redis, name="two")
    assert told(post(two.client(), site, "warm"))
    shutil.copytree(redis.directory / "appendonlydir", tmp_path / "then")
    said = {}
    threads = [threading.Thread(target=lambda: said.update(one=until_told(one, site, "ann", "one")))]
    threads[0].start()
    wait_until(lambda: len(notes(redis)) > 1, "it is folded")
    if held:
        one.signal(19)
    try:
        redis.kill()
        shutil.rmtree(redis.directory / "appendonlydir")
        shutil.copytree(tmp_path / "then", redis.directory / "appendonlydir")
        redis.start()
        assert len(notes(redis)) == 1
        threads.append(threading.Thread(target=lambda: said.update(two=until_told(two, site, "ann", "two"))))
        threads[1].start()
        if held:
            threads[1].join(30)
            assert said == {"two": True}
    finally:
        one.signal(18)
    for thread in threads:
        thread.join(30)
    assert sorted(said.values()) == [False, True], said
    for tallyd in (one, two):
        assert {key: until_told(tallyd, site, "ann", key) for key in said} == said, "repeats"


# Kills


def test_a_race_of_64(start_redis, start_tallyd, site):
    """Over two processes, whose folds void each other."""
    redis = start_redis(appendonly=True)
    with Race([start_tallyd(*FEW, redis=redis, name=name) for name in "ab"], site, rounds=12) as clients:
        pass
    clients.check()


def test_a_race_with_kills(chance, seed):
    """The short form of the campaign."""
    report = Report(seed)
    race(report, chance, goal=6, rounds=8)
    assert report.killed() >= 2, "kills that met somebody who waited"
