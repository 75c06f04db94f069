"""What tallyd believes that Redis knows (scripts, logs, announced hours, state) and Redis does not any more.

Every event that is acknowledged afterwards counts once, and is rolled up.  What Redis itself has lost is lost; nothing
else is, and nothing counts twice.  (Bytes of a dead connection that arrive after the resend: test_delivery.py, "a silent
connection is given up"; Redis restarted empty: test_faults.py, "comes back empty".)
"""

import shutil
import threading
import time

import pytest

from lib.clock import epoch
from lib.ledger import EVENTS, Clients, Ledger
from lib.waiting import wait_until

FEW = ("--partitions", "4")


def total(http, site):
    return http.count("pv", site=site, from_="now-1h")


def flush_all(redis):
    redis.command("FLUSHALL")


def lose_logs(redis):
    """The heads, so that no log is known, and the streams."""
    for key in redis.command("KEYS", "t:*:heads") + redis.command("KEYS", "t:*:log:*"):
        redis.command("DEL", key)


def lose_one_state(redis):
    redis.command("DEL", sorted(redis.command("KEYS", "t:*:state"))[1])


def lose_state(redis):
    for key in redis.command("KEYS", "t:*:state"):
        redis.command("DEL", key)


@pytest.mark.parametrize("loss", [flush_all, lose_logs, lose_state, lose_one_state])
def test_a_loss_on_a_living_connection(start_redis, start_tallyd, site, loss):
    """Between two requests, nothing under way: the next is counted, once, for page, site and visits."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    for round_ in range(3):
        before = Ledger(f"{round_}-{site[-40:]}")
        for i in range(3):
            assert before.send(http, f"before/{i}") == 202
        assert total(http, before.site) == 3 * EVENTS, "it is folded"
        loss(redis)
        after = Ledger(f"{before.site}-after")
        for i in range(3):
            assert after.send(http, f"after/{i}") == 202, "it is no failure of the client's"
        after.check(tallyd)
        if loss is not flush_all:
            before.check(tallyd)


def test_what_comes_after_a_flushall_is_rolled_up(start_world, site):
    """The hour was announced to the rollup before everything was gone; it must be announced again."""
    world = start_world("2026-03-10 08:10:00", *FEW)
    at = epoch("2026-03-10 08:05")
    batch = [{"site": site, "page": f"/{i}", "user": f"u{i}", "ts": at} for i in range(30)]
    world.http.accept(batch)
    world.redis.command("FLUSHALL")
    world.post(batch)
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00")
    world.move("2026-03-10 09:00:40")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z",
                     lambda: world.check(site, "2026-03-10 08:00", "2026-03-10 09:00"), hour=1)
    for page in ("/0", "/29"):
        world.check(site, "2026-03-10 08:00", "2026-03-10 09:00", [page])


def test_two_processes_and_a_flushall(start_redis, start_tallyd, site):
    """The one that notices first sets everything up again; the other's memories are as stale."""
    redis = start_redis()
    both = [start_tallyd(*FEW, redis=redis, name=f"tallyd{i}") for i in range(2)]
    clients = [t.client() for t in both]
    for http in clients:
        http.accept([{"site": site, "page": f"/{i}", "user": i} for i in range(20)])
    redis.command("FLUSHALL")
    for n, http in enumerate(clients * 2):
        http.accept([{"site": site, "page": f"/{i}", "user": i} for i in range(20)])
        for other in clients:
            assert total(other, site) == 20 * (n + 1)
            assert other.count("visits", site=site, from_="now-1h") == 20
    assert site in {m for k in redis.command("KEYS", "t:*:sites") for m in redis.command("SMEMBERS", k)}


@pytest.mark.parametrize("what", [("SCRIPT", "FLUSH"), ("SCRIPT", "FLUSH", "ASYNC"), ("FUNCTION", "FLUSH")], ids=" ".join)
def test_scripts_are_gone_under_load(start_redis, start_tallyd, site, what):
    """Loaded again, whatever is under way: nobody is told of a failure."""
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    with Clients(ledger, tallyd, limit=300) as clients:
        for _ in range(6):
            clients.more(8)
            redis.command(*what)
        clients.more(8)
    assert set(ledger.statuses) == {202}, ledger.statuses
    ledger.check(tallyd)


def test_flushall_under_load(start_redis, start_tallyd, site, seed):
    """What is sent after the last FLUSHALL was done counts exactly once."""
    print(f"TALLYD_SEED={seed}")
    redis = start_redis()
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    with Clients(ledger, tallyd, limit=300) as clients:
        for _ in range(5):
            clients.more(8)
            redis.command("FLUSHALL")
    after = Ledger(site + "-after")
    with Clients(after, tallyd, limit=100) as clients:
        clients.more(30)
    assert set(after.statuses) == {202}
    after.check(tallyd)


def aof(redis):
    return redis.directory / "appendonlydir"


def go_back(redis, copy):
    """Redis dies, and comes back with what its file was then."""
    redis.kill()
    shutil.rmtree(aof(redis))
    shutil.copytree(copy, aof(redis))
    redis.start()


@pytest.mark.parametrize("load", [False, True], ids=["", "under load"])
def test_data_gone_back_in_time(start_redis, start_tallyd, site, load, tmp_path):
    """As after a failover, or a power loss with fsync everysec: what was acknowledged in between is gone, and nothing
    else; nothing that Redis still has counts again."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    kept, gone, after = (Ledger(f"{site}-{n}") for n in ("kept", "gone", "after"))
    for i in range(20):
        assert kept.send(http, i) == 202
    shutil.copytree(aof(redis), tmp_path / "then")
    for i in range(20):
        assert gone.send(http, i) == 202
    if load:
        with Clients(gone, tallyd, limit=300) as clients:
            clients.more(10)
            go_back(redis, tmp_path / "then")
            clients.more(10)
    else:
        go_back(redis, tmp_path / "then")
    wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    with Clients(after, tallyd, limit=80) as clients:
        clients.more(40)
    kept.check(tallyd)
    after.check(tallyd)
    for page in gone.counted + gone.unknown:
        assert http.count("pv", site=gone.site, page=page, from_="now-1h") <= 1, page
    assert sum(http.count("pv", site=gone.site, page=p, from_="now-1h") for p in gone.counted[:20 * EVENTS]) == 0


def test_rollups_gone_back_in_time(start_world, site, tmp_path):
    """Watermarks, passes and buckets go back together, under the feet of the leader and of readers: answers stay the
    model's, and the hours are completed again."""
    world = start_world("2026-03-10 08:00:10", *FEW, appendonly=True)
    check = lambda: world.check(site, "2026-03-10 08:00", "2026-03-10 10:00")  # pylint: disable=unnecessary-lambda-assignment
    world.move("2026-03-10 08:58:00")
    world.post([{"site": site, "page": f"/{i % 9}", "user": f"u{i % 70}", "ts": epoch("2026-03-10 08:00") + 10 * i} for i in range(300)])
    shutil.copytree(aof(world.redis), tmp_path / "then")
    world.move("2026-03-10 09:05:00")
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", check, hour=1)
    go_back(world.redis, tmp_path / "then")
    assert [world.redis.command("HGET", k, "st") for k in world.redis.command("KEYS", "t:*:state")]
    wait_until(lambda: world.http.get("/readyz").status == 200, "ready again")
    check()
    late = [{"site": site, "page": "/late", "user": f"late{i}", "ts": epoch("2026-03-10 08:30") + i} for i in range(40)]
    world.post(late)  # to an hour that tallyd believed closed
    check()
    world.wait_cover(site, "2026-03-10T08:00:00Z", "2026-03-10T09:00:00Z", check, hour=1)
    world.check(site, "2026-03-10 08:00", "2026-03-10 09:00", ["/late"])
    check()


def test_a_reader_between_the_losses(start_redis, start_tallyd, site):
    """Questions all the while: an answer is never more than what was acknowledged, and settles at what is there."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis)
    http, asker = tallyd.client(), tallyd.client()
    stop, wrong, sent = threading.Event(), [], [0]

    def ask():
        while not stop.is_set():
            answer = asker.get("/pv", site=site, from_="now-1h")
            most = sent[0]
            if answer.status == 200 and answer.json["pv"] > most:
                wrong.append((answer.json["pv"], most))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    for _ in range(5):
        for _ in range(5):
            sent[0] += 4
            http.accept([{"site": site, "page": f"/{i}"} for i in range(4)])
        redis.command("FLUSHALL")
    http.accept({"site": site, "page": "/"})
    assert total(http, site) == 1
    stop.set()
    asking.join(20)
    assert not wrong, wrong


def test_nobody_is_refused_because_a_fold_found_the_data_gone(start_redis, start_tallyd, site):
    """A fold may find the loss before the writer does: what is posted then waits until all is prepared anew."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, redis=redis, env={"TALLYD_TEST_FOLD_HOLD": "20"})
    http, asker = tallyd.client(), tallyd.client()
    for _ in range(5):
        http.accept({"site": site, "page": "/lost"})
        redis.command("FLUSHALL")
        asking = threading.Thread(target=asker.get, args=("/pv",), kwargs={"site": site, "from_": "now-1h"})
        asking.start()
        time.sleep(0.1)  # the fold that is asked for looks now; the writer does so within a second, or when it is woken
        http.accept({"site": site, "page": "/after"})
        asking.join(20)
    assert total(http, site) == 1
