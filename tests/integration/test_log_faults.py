"""The log when things break: what is acknowledged is counted once, whatever dies, stands still or goes back, and wherever
a reply is cut.  How it works is in storage/log and storage/fold."""

import shutil
import signal
import threading
import time

import pytest

from lib.client import Unknown
from lib.ledger import EVENTS, Clients, Ledger
from lib.log import (HELD, FakeLog, OfAFold, append_of, commands, cursors, entries, heads, is_append, logs, records, states,
                     tag_of)
from lib.proxy import CUTS, Fault, Proxy
from lib.process import Tallyd
from lib.waiting import wait_until

FEW = ("--partitions", "4")
EVERYSEC = ("--appendfsync", "everysec")  # Redis may go back by 2 s


def keyed(http, body, key):
    """(status, replayed); (None, False) without an answer."""
    try:
        answer = http.post(body, headers={"Idempotency-Key": key})
    except Unknown:
        return None, False
    return answer.status, "Idempotency-Replayed" in answer.headers


def pv(http, site, **more):
    return http.count("pv", site=site, from_="now-1h", **more)


def in_background(function, *args):
    """(thread, list that takes the result)"""
    results = []
    thread = threading.Thread(target=lambda: results.append(function(*args)), daemon=True)
    thread.start()
    return thread, results


@pytest.fixture
def between(start_redis, start_proxy, start_tallyd):
    redis = start_redis()
    proxy = start_proxy(redis)
    return start_tallyd(*FEW, redis=proxy), proxy, redis


# Replies and commands that are cut


@pytest.mark.some(1)
@pytest.mark.parametrize("key", [False, True], ids=["", "with a key"])
def test_the_reply_of_an_append_is_cut_at_each_byte(between, site, key):
    """The entry is in Redis; the append goes again, finds it (DUP), and that reply is cut too, further on: with a key, at
    some byte of the record."""
    tallyd, proxy, redis = between
    http, at, sent = tallyd.client(), 0, 0
    http.accept({"site": site, "page": "/warm"})
    while True:
        second = Fault("reply-inside", at=4 * at + 1 if key else at + 1, match=append_of(site))
        fault = proxy.arm(Fault("reply-inside", at=at, match=append_of(site), then=second))
        batch = [{"site": site, "page": f"/{at}", "user": f"u{i}"} for i in range(3)]
        answer = http.post(batch, headers={"Idempotency-Key": f"{site} {at}"} if key else None)
        assert answer.status == 202 and "Idempotency-Replayed" not in answer.headers, answer
        sent += 1
        assert pv(http, site, page=f"/{at}") == 3
        if at >= fault.length:
            break
        assert fault.fired == 1 and second.fired == 1
        at += 2  # the others are the second one's; a connection that breaks off again and again is made ever later
    assert at >= 25, "a code and a time, whose microseconds have one digit to six"
    assert pv(http, site) == 3 * sent + 1
    wait_until(lambda: entries(redis) == 0, "what is folded is trimmed")


@pytest.mark.some(2)
@pytest.mark.parametrize("point", CUTS)
def test_a_fold_is_cut_at_each_command(between, site, point):
    """Each command from WATCH to EXEC: the fold begins again, and the question that waits for it is answered."""
    tallyd, proxy, _ = between
    http, sent = tallyd.client(), 0
    http.accept({"site": site, "page": "/warm"})
    for nth in range(1, 500):
        fault = proxy.arm(Fault(point, nth=nth, match=OfAFold()))
        http.accept([{"site": site, "page": f"/{i}", "user": f"u{i % 3}"} for i in range(4)])
        sent += 4
        assert pv(http, site) == sent + 1, f"{point} {nth}"
        assert http.count("visits", site=site, from_="now-1h") == 3
        if not fault.fired:
            break
    assert nth > 15, "so few commands are no fold"


@pytest.mark.some(2)
@pytest.mark.parametrize("text", ["BUSY Redis is busy running a script.", "LOADING Redis is loading the dataset in memory",
                                  "READONLY You can't write against a read only replica.", "MISCONF no disk", "ERR odd"],
                         ids=lambda text: text.split()[0])
def test_a_command_of_a_fold_is_refused(between, site, text):
    """MULTI too, after which Redis would run the commands one by one."""
    tallyd, proxy, _ = between
    http, sent = tallyd.client(), 0
    http.accept({"site": site, "page": "/warm"})
    for nth in range(1, 500):
        fault = proxy.arm(Fault("error", nth=nth, match=OfAFold(), text=text))
        http.accept([{"site": site, "page": f"/{i}", "user": f"u{i % 3}"} for i in range(4)])
        sent += 4
        assert pv(http, site) == sent + 1, f"{text} {nth}"
        if not fault.fired:
            break
    assert nth > 15, "so few commands are no fold"


def test_multi_is_refused_and_the_connection_is_cut_behind_it(between, site):
    """Redis is busy for a moment.  If what stands behind MULTI were run one by one, the cut would leave a cursor without
    its counts."""
    tallyd, proxy, _ = between
    http = tallyd.client()
    for n in range(1, 30):
        fold, busy = OfAFold(), Fault("error", match=lambda args: args[0] == b"MULTI", text="BUSY for a moment")
        cut = Fault("command-after", nth=n, match=lambda args, busy=busy, fold=fold: fold(args) and busy.fired)

        def judge(args, cut=cut, busy=busy):
            return proxy_judge(busy, args) or proxy_judge(cut, args)

        def proxy_judge(fault, args):
            with proxy.lock:
                return fault if fault.hits(args) else None

        usual, proxy.judge = proxy.judge, judge
        http.accept([{"site": site, "page": f"/{i}", "user": f"u{i % 3}"} for i in range(4)])
        assert pv(http, site) == 4 * n
        proxy.judge = usual


# Late copies


@pytest.mark.some(2)
@pytest.mark.parametrize("key", [False, True], ids=["", "with a key"])
@pytest.mark.parametrize("ended", [False, True], ids=["", "its log is closed"])
def test_a_late_copy_is_not_counted(start_redis, start_proxy, start_tallyd, site, key, ended):
    """A connection falls silent with an append in it.  The entry goes again over another one and counts; then Redis gets
    what the first one had taken: it finds DUP, or GONE."""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(*FEW, redis=proxy)
    other = start_tallyd(*FEW, redis=redis, name="other").client()
    tallyd.client().accept({"site": site, "page": "/"})
    proxy.freeze()
    batch = [{"site": site, "page": "/"}] * 5
    answer = tallyd.client().post(batch, headers={"Idempotency-Key": site} if key else None)  # takes 5 s
    assert answer.status == 202, answer
    assert pv(other, site) == 6
    if ended:
        mine = set(heads(redis))
        assert tallyd.terminate() == 0
        wait_until(lambda: len(mine - set(heads(redis))) == 1, "its log is closed")
    calls = appends(redis)
    proxy.thaw()
    wait_until(lambda: appends(redis) > calls, "the late copy has come")
    assert pv(other, site) == 6
    if ended:
        assert logs(redis) <= set(heads(redis)), "no stream of a log that is closed"
    if key:
        assert keyed(other, batch, site) == (202, True)
    assert pv(other, site) == 6


def appends(redis):
    return int(redis.command("INFO", "commandstats").partition("cmdstat_evalsha:calls=")[2].partition(",")[0] or 0)


# Processes that die


def test_killed_between_append_and_fold(start_redis, start_tallyd, site):
    """The first question that another process is asked folds the dead one's log."""
    redis = start_redis()
    dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
    heir = start_tallyd(*FEW, redis=redis, name="heir")
    batch = [{"site": site, "page": f"/{i % 7}", "user": f"u{i}", "ip": f"10.0.0.{i % 250}"} for i in range(500)]
    http = dead.client()
    http.accept(batch)
    assert keyed(http, batch, site) == (202, False)
    dead.kill()
    assert entries(redis) == 2, "nothing is folded"
    http = heir.client()
    begin = time.monotonic()
    assert pv(http, site) == 1000
    print(f"folded within {time.monotonic() - begin:.3f} s")
    assert http.count("visits", site=site, from_="now-1h") == 500
    assert keyed(http, batch, site) == (202, True)
    assert pv(http, site) == 1000
    assert http.question("/seen", site=site, user="u1", page="/1")["seen"]


def test_killed_and_started_again(start_redis, start_tallyd, site):
    """One process only: its successor has another log, and counts the old one's."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis, env=HELD)
    for n in range(1, 4):
        tallyd.client().accept([{"site": site, "page": "/"}] * 10)
        tallyd.kill()
        redis.kill()
        redis.start()
        tallyd.env = HELD if n < 3 else {}
        tallyd.start(wait_ready=False)
        tallyd.wait_ready_line()
    assert len(heads(redis)) >= 3
    http = wait_until(lambda: (c := tallyd.client()).get("/pv").status == 200 and c, "ready")
    assert pv(http, site) == 30


@pytest.mark.parametrize("beside", [0, 600])
def test_a_successor_counts_in_the_order_of_arrival(start_redis, start_tallyd, site, beside):
    """What a killed process took is folded before what its successor takes, also if nobody asks, and if much comes at once.
    Two visits: the second event comes 40 minutes after the first.  The other way around the first event, which is older then,
    would begin none."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis, env=HELD)
    begin = int(time.time()) - 3600
    tallyd.client().accept([{"site": site, "page": "/", "user": "u", "ts": begin}])
    tallyd.kill()
    tallyd.env = {}
    http = tallyd.start().client()
    http.accept([{"site": site, "page": "/", "user": "u", "ts": begin + 2400}, *[{"site": f"{site[-40:]}-2", "page": "/"}] * beside])
    wait_until(lambda: http.metric("tallyd_fold_events_total") >= 1, "it folds unasked")
    assert http.count("visits", site=site, from_="now-2h") == 2
    assert http.count("visits", site=site, from_="now-2h", to=begin + 1800) == 1


def test_a_question_of_anything_waits_for_what_a_dead_process_took(start_redis, start_tallyd, site):
    """Counts, lists, activity, and what changes something: each is asked first, of a log that nobody has folded."""
    redis = start_redis()
    heir = start_tallyd(*FEW, redis=redis, name="heir").client()
    asked = {"/uv": lambda a: a["uv"], "/pages": lambda a: len(a["pages"]), "/dau": lambda a: a["users"],
             "/stats": lambda a: a["pv"], "/seen": lambda a: a["seen"], "/sites": lambda a: a["sites"]}
    for n, (path, figure) in enumerate(asked.items()):
        dead = start_tallyd(*FEW, redis=redis, env=HELD, name=f"dead{n}")
        where = f"{n}-{site[-40:]}"
        dead.client().accept([{"site": where, "page": "/a", "user": "u1"}])
        dead.kill()
        params = {} if path == "/sites" else {"site": where}
        if path == "/seen":
            params.update(user="u1", page="/a")
        answer = heir.question(path, **params)
        found = figure(answer)
        assert found == 1 or found is True or where in found, answer


def test_a_dead_process_s_log_is_closed(start_world, site):
    """Half a minute after it was heard of last, by Redis's clock: head, stream and cursors go."""
    world = start_world("2026-03-10 10:00:10", *FEW)
    dead = Tallyd(*FEW, redis=world.redis, name="dead", env=HELD)
    before = set(heads(world.redis))
    dead.start()
    try:
        (log,) = set(heads(world.redis)) - before
        dead.client().accept([{"site": site, "page": f"/{i}"} for i in range(50)])
    finally:
        dead.kill()
        dead.stop()
    assert world.http.count("pv", site=site, from_="now-1h") == 50
    assert len(cursors(world.redis, log)) == 4
    world.move(world.now() + 60)
    wait_until(lambda: log not in heads(world.redis), "its log is closed")
    wait_until(lambda: log not in logs(world.redis) and not cursors(world.redis, log), "all of it is gone")
    assert world.http.count("pv", site=site, from_="now-1h") == 50


# Redis goes back


def go_back(redis, copy):
    """Redis dies, and comes back with what its file was then."""
    aof = redis.directory / "appendonlydir"
    redis.kill()
    shutil.rmtree(aof)
    shutil.copytree(copy, aof)
    redis.start()


@pytest.mark.parametrize("asked", [False, True], ids=["", "they were counted"])
def test_what_redis_lost_is_appended_again(start_redis, start_tallyd, site, tmp_path, asked):
    """fsync everysec: what a living process acknowledged in the last two seconds comes back, once."""
    redis = start_redis(appendonly=True, options=EVERYSEC)
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    kept, gone, after = (Ledger(f"{n}-{site[-40:]}") for n in ("kept", "gone", "after"))
    assert kept.send(http, "0") == 202
    pv(http, kept.site)
    shutil.copytree(redis.directory / "appendonlydir", tmp_path / "then")
    for i in range(10):
        assert gone.send(http, i) == 202
        assert gone.send(http, f"key {i}", keyed=True) == 202
    if asked:
        assert pv(http, gone.site) == 20 * EVENTS
    go_back(redis, tmp_path / "then")
    wait_until(lambda: http.get("/readyz").status == 200, "ready again")
    wait_until(lambda: pv(http, gone.site) == 20 * EVENTS, "all of it comes back")
    assert http.metric("tallyd_appends_repeated_total") > 0
    for i in range(10):
        assert gone.send(http, f"more {i}") == 202
        page = {"site": gone.site, "page": f"/key {i}/0", "user": f"user of /key {i}/0"}
        assert keyed(http, [{**page, "page": f"/key {i}/{k}", "user": f"user of /key {i}/{k}"} for k in range(EVENTS)],
                     f"{gone.site} key {i}") == (202, True)
    assert after.send(http, 1) == 202
    for ledger in (kept, gone, after):
        ledger.check(tallyd)


def test_redis_goes_back_under_load(start_redis, start_tallyd, site, tmp_path, seed):
    print(f"TALLYD_SEED={seed}")
    redis = start_redis(appendonly=True, options=EVERYSEC)
    tallyd, ledger = start_tallyd(*FEW, redis=redis), Ledger(site)
    with Clients(ledger, tallyd, limit=1500, keyed=2) as clients:
        for n in range(4):
            clients.more(20)
            shutil.copytree(redis.directory / "appendonlydir", tmp_path / f"{n}")
            clients.more(15)
            go_back(redis, tmp_path / f"{n}")
            clients.more(10)
            # a copy from before the last going back would be older than two seconds to what came between
            wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready again")
    wait_until(lambda: pv(tallyd.client(), site) >= len(ledger.counted), "what was acknowledged comes back")
    ledger.check(tallyd)


def test_redis_goes_back_and_takes_nothing(start_redis, start_tallyd, site, tmp_path):
    """What a living process holds cannot be appended again yet.  Its folds do not spin meanwhile, and count what others left."""
    redis = start_redis(appendonly=True, options=EVERYSEC)
    tallyd = start_tallyd(*FEW, redis=redis)
    dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
    http = tallyd.client()
    http.accept({"site": site, "page": "/a"})
    assert pv(http, site) == 1
    dead.client().accept({"site": site, "page": "/dead"})
    shutil.copytree(redis.directory / "appendonlydir", tmp_path / "then")
    http.accept({"site": site, "page": "/b"})
    dead.kill()
    redis.argv += ["--maxmemory", "1", "--maxmemory-policy", "noeviction"]
    go_back(redis, tmp_path / "then")
    wait_until(lambda: http.get("/pv", site=site, from_="now-1h").status == 200, "questions are answered")
    assert pv(http, site) == 2
    looks, begin = commands(redis, "hgetall"), time.monotonic()
    while time.monotonic() < begin + 1:  # is long for who spins
        http.get("/healthz")
    assert commands(redis, "hgetall") - looks < 500
    redis.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: pv(http, site) == 3, "what it holds is appended again")


def test_a_key_that_was_used_elsewhere_meanwhile(start_redis, start_tallyd, site, tmp_path):
    """Redis lost the request, its process stands still, and the client repeats it elsewhere.  When the first process
    appends again what it holds, the request falls out of its entry."""
    redis = start_redis(appendonly=True, options=EVERYSEC)
    first = start_tallyd(*FEW, redis=redis, name="first")
    other = start_tallyd(*FEW, redis=redis, name="other")
    http = first.client()
    http.accept({"site": site, "page": "/warm"})
    pv(http, site)
    batch = [{"site": site, "page": f"/{i}"} for i in range(6)]
    shutil.copytree(redis.directory / "appendonlydir", tmp_path / "then")
    assert keyed(http, batch, site) == (202, False)
    http.accept({"site": site, "page": "/beside"})
    first.signal(signal.SIGSTOP)
    try:
        go_back(redis, tmp_path / "then")
        wait_until(lambda: other.client().get("/readyz").status == 200, "ready again")
        assert keyed(other.client(), batch, site) == (202, False), "Redis knows nothing of it"
    finally:
        first.signal(signal.SIGCONT)
    wait_until(lambda: pv(other.client(), site, page="/beside") == 1, "what it holds is appended again")
    assert pv(other.client(), site) == 1 + 6 + 1
    for tallyd in (first, other):
        assert keyed(tallyd.client(), batch, site) == (202, True)
    assert pv(other.client(), site) == 1 + 6 + 1


# A full Redis


def test_a_full_redis_answers_every_question(start_redis, start_tallyd, site):
    """POST is a 503; what was acknowledged before, and is not folded yet, is in every answer."""
    redis = start_redis()
    dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
    tallyd = start_tallyd(*FEW, redis=redis, name="living")
    http = tallyd.client()
    http.accept([{"site": site, "page": "/a", "user": f"u{i}"} for i in range(100)])
    dead.client().accept([{"site": site, "page": "/b", "user": f"u{i}"} for i in range(100)])
    assert entries(redis) >= 1
    redis.command("CONFIG", "SET", "maxmemory", "1")
    dead.kill()
    for n in range(3):
        answer = http.post({"site": site, "page": "/full"})
        assert answer.status == 503 and "memory" in answer.json["detail"], answer
        assert keyed(http, {"site": site, "page": "/full"}, site) == (503, False)
        assert pv(http, site) == 200
        assert http.question("/pages", site=site)["pages"]
        assert http.count("visits", site=site, from_="now-1h") == 100
        assert http.question("/dau", site=site)["users"] == 100
        assert http.question("/seen", site=site, user="u1", page="/b")["seen"]
    redis.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: keyed(http, {"site": site, "page": "/full"}, site) == (202, False), "taken again")
    assert pv(http, site) == 201


@pytest.mark.parametrize("is_new", [False, True])
def test_a_start_on_a_full_redis(start_redis, start_tallyd, site, is_new):
    """It answers questions, with what a killed process has left, and takes nothing until there is room."""
    redis = start_redis()
    if not is_new:
        dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
        dead.client().accept([{"site": site, "page": "/a"}] * 10)
        dead.kill()
    redis.command("CONFIG", "SET", "maxmemory", "1")
    tallyd = start_tallyd(*FEW, redis=redis, name="living", wait_ready=False)
    tallyd.wait_ready_line()
    http = tallyd.client()
    wait_until(lambda: http.metric("tallyd_redis_connected") == 1, "connected")
    assert pv(http, site) == (0 if is_new else 10)
    answer = http.post({"site": site, "page": "/full"})
    assert answer.status == 503 and "memory" in answer.json["detail"], answer
    redis.command("CONFIG", "SET", "maxmemory", "0")
    wait_until(lambda: keyed(http, {"site": site, "page": "/full"}, site) == (202, False), "taken again")
    assert pv(http, site) == (1 if is_new else 11)


def test_a_key_of_another_type_on_a_full_redis(start_redis, start_tallyd, site):
    """A foreign hand has made lists of sketches.  All else of the fold is counted, as where Redis has room."""
    redis = start_redis()
    dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
    http = start_tallyd(*FEW, redis=redis, name="living").client()
    wait_until(lambda: time.time() % 60 < 50, "a minute with time left", 15)
    http.accept([{"site": site, "page": "/", "visitor": f"a{i}"} for i in range(100)])
    assert pv(http, site) == 100
    dead.client().accept([{"site": site, "page": "/", "visitor": f"b{i}"} for i in range(100)])
    for key in redis.command("KEYS", f"t:*:uv:{site}:m*") + redis.command("KEYS", f"t:*:ip:{site}:m*"):
        redis.command("DEL", key)
        redis.command("LPUSH", key, "x")
    redis.command("CONFIG", "SET", "maxmemory", "1")
    dead.kill()
    assert pv(http, site) == 200 and http.count("visits", site=site, from_="now-1h") == 200


# Several processes


def test_the_second_one_with_a_key_gets_the_first_answer(between, start_tallyd, site):
    """The first one's append is done, and its answer is not there yet."""
    tallyd, proxy, redis = between
    other = start_tallyd(*FEW, redis=redis, name="other").client()
    batch = [{"site": site, "page": f"/{i}"} for i in range(5)]
    tallyd.client().accept({"site": site, "page": "/warm"})
    proxy.hold_replies()
    thread, results = in_background(keyed, tallyd.client(), batch, site)
    wait_until(lambda: records(redis), "it is appended")
    assert keyed(other, batch, site) == (202, True)
    assert keyed(other, batch[:2], site) == (422, False)
    assert pv(other, site) == 6
    proxy.hold_replies(False)
    thread.join(20)
    assert results == [(202, False)]
    assert pv(other, site) == 6


@pytest.mark.parametrize("same", [True, False], ids=["the same body", "another body"])
def test_the_first_one_with_a_key_comes_second(between, start_tallyd, site, same):
    """Its append is on the way when another process takes the key; the other requests in the append are not touched."""
    tallyd, proxy, redis = between
    other = start_tallyd(*FEW, redis=redis, name="other").client()
    batch = [{"site": site, "page": f"/{i}"} for i in range(5)]
    tallyd.client().accept({"site": site, "page": "/warm"})
    proxy.black_hole()
    threads = [in_background(keyed, tallyd.client(), batch, site),
               in_background(keyed, tallyd.client(), [{"site": site, "page": "/beside"}], f"{site} beside")]
    wait_until(lambda: tallyd.client().metric("tallyd_http_suspended") == 2, "they are on their way")
    assert keyed(other, batch if same else batch[:2], site) == (202, False)
    proxy.black_hole(False)
    for thread, _ in threads:
        thread.join(20)
    assert threads[0][1] == [(202, True) if same else (422, False)]
    assert threads[1][1] == [(202, False)]
    assert pv(other, site) == 1 + (5 if same else 2) + 1


def test_others_fold_under_load(start_redis, start_tallyd, site, seed):
    """Two processes take events, all three are asked all the while: their folds void each other, and every answer holds
    what was acknowledged before its question."""
    print(f"TALLYD_SEED={seed}")
    redis = start_redis()
    writers = [start_tallyd(*FEW, redis=redis, name=f"writer{i}") for i in range(2)]
    asker = start_tallyd(*FEW, redis=redis, name="asker")
    ledgers = [Ledger(f"{i}-{site[-40:]}") for i in range(2)]
    wrong, answers = [], 0
    with Clients(ledgers[0], writers[0], limit=1500), Clients(ledgers[1], writers[1], limit=1500) as clients:
        while clients.sent < clients.limit:
            for ledger in ledgers:
                least = len(ledger.counted)
                for tallyd in (asker, *writers):
                    found = pv(tallyd.client(), ledger.site)
                    answers += 1
                    if found < least:
                        wrong.append((tallyd.name, found, least))
    assert not wrong, wrong[:5]
    assert answers >= 6
    for ledger in ledgers:
        ledger.check(asker)
        assert set(ledger.statuses) == {202}


# A process that sleeps


@pytest.fixture
def sleeper(start_world, cleanup):
    """(world, proxy, a tallyd behind it): a clock that moves, and another process that is to lead."""
    world = start_world("2026-03-10 10:00:10", *FEW)
    proxy = Proxy(world.redis.directory, world.redis.path)
    cleanup.append(proxy.close)
    tallyd = Tallyd(*FEW, redis=proxy, name="sleeper")
    cleanup.append(tallyd.stop)
    before = set(heads(world.redis))
    tallyd.start()
    (log,) = set(heads(world.redis)) - before
    return world, proxy, tallyd, log


def oversleep(world, tallyd, log):
    """SIGSTOP until its log is closed."""
    tallyd.signal(signal.SIGSTOP)
    world.clock.advance(60)
    wait_until(lambda: log not in heads(world.redis), "its log is closed")
    tallyd.signal(signal.SIGCONT)


def test_a_process_that_overslept(sleeper, site):
    """Its log is gone (GONE): it begins another one, and what it takes then counts; what it took before stays."""
    world, _, tallyd, log = sleeper
    http = tallyd.client()
    http.accept([{"site": site, "page": "/before"}] * 4)
    assert keyed(http, [{"site": site, "page": "/before"}] * 3, site) == (202, False)
    oversleep(world, tallyd, log)
    assert world.http.count("pv", site=site, from_="now-1h") == 7
    for n in range(3):
        tallyd.client().accept({"site": site, "page": f"/after/{n}"})
    assert keyed(tallyd.client(), [{"site": site, "page": "/before"}] * 3, site) == (202, True)
    for http in (tallyd.client(), world.http):
        assert http.count("pv", site=site, from_="now-1h") == 10
    assert log not in heads(world.redis) and log not in logs(world.redis)
    assert len(heads(world.redis)) == 2


def test_requests_that_wait_while_it_oversleeps(sleeper, site):
    """They came while it slept, and were never sent: they are taken, once."""
    world, _, tallyd, log = sleeper
    tallyd.client().accept({"site": site, "page": "/before"})
    tallyd.signal(signal.SIGSTOP)
    waiting = [in_background(keyed, tallyd.client(), [{"site": site, "page": f"/{i}"}], f"{site} {i}") for i in range(4)]
    oversleep(world, tallyd, log)
    for thread, _ in waiting:
        thread.join(20)
    assert [results for _, results in waiting] == [[(202, False)]] * 4
    assert world.http.count("pv", site=site, from_="now-1h") == 5


@pytest.mark.some(2)
@pytest.mark.parametrize("key", [False, True], ids=["", "with a key"])
@pytest.mark.parametrize("reached", [False, True], ids=["it did not reach Redis", "it did"])
def test_in_doubt_while_it_oversleeps(sleeper, site, key, reached):
    """An append whose answer is lost, and the log is closed before it can go again: 504, but with a key it may go again,
    for the record decides.  The late copy finds GONE."""
    world, proxy, tallyd, log = sleeper
    http = tallyd.client()
    http.accept({"site": site, "page": "/before"})
    assert world.http.count("pv", site=site, from_="now-1h") == 1
    batch = [{"site": site, "page": f"/{i}"} for i in range(5)]
    if reached:
        proxy.hold_replies()
    else:
        proxy.freeze()
    thread, results = in_background(lambda: tallyd.client().post(batch, headers={"Idempotency-Key": site} if key else None))
    if reached:
        wait_until(lambda: heads(world.redis).get(log) == 2, "it is appended")
    else:
        wait_until(lambda: http.metric("tallyd_http_suspended") >= 1, "it is sent")
    oversleep(world, tallyd, log)
    if reached:
        proxy.cut_all()
        proxy.hold_replies(False)
    thread.join(20)
    assert results[0].status in ((202, 504) if key else (504,)), results[0]
    calls = appends(world.redis)
    proxy.thaw()
    if not reached:
        wait_until(lambda: appends(world.redis) > calls, "the late copy has come")
    wait_until(lambda: tallyd.client().get("/readyz").status == 200, "ready again")
    counted = 5 if reached or results[0].status == 202 else 0
    assert world.http.count("pv", site=site, from_="now-1h") == 1 + counted
    if key:
        assert keyed(tallyd.client(), batch, site) == (202, counted == 5)
        assert world.http.count("pv", site=site, from_="now-1h") == 6
    assert log not in logs(world.redis)


# What an append leaves behind that breaks off, and what a deletion has to wait for


@pytest.mark.parametrize("command, left", [("xadd", records), ("hset", lambda redis: entries(redis) == 2)], ids=["its record", "its entry"])
def test_an_append_that_broke_off_behind(start_redis, start_tallyd, site, command, left):
    """Redis may not XADD for a while: the script ends behind SET.  The repeat finds the record, and must append.  Or it may not
    HSET: the script ends behind XADD.  The repeat finds the entry, and must not stop all that comes behind."""
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis, env=HELD)
    tallyd.client().accept({"site": site, "page": "/"})
    redis.command("ACL", "SETUSER", "default", f"-{command}")
    asked, answers = in_background(keyed, tallyd.client(timeout_s=30), {"site": site, "page": "/"}, "k")
    wait_until(lambda: left(redis), "it broke off behind that")
    redis.command("ACL", "SETUSER", "default", f"+{command}")
    asked.join()
    assert answers[0][0] in (202, 504)
    wait_until(lambda: entries(redis) == 2, "the entry is appended")
    wait_until(lambda: tallyd.client().post({"site": site, "page": "/"}).status == 202, "the next request is taken")
    tallyd.kill()
    other = start_tallyd(*FEW, redis=redis).client()
    assert pv(other, site) == 3
    assert keyed(other, {"site": site, "page": "/"}, "k") == (202, True)
    assert pv(other, site) == 3


def test_a_deletion_waits_until_nothing_can_bring_the_user_back(start_redis, start_tallyd, site):
    """With everysec Redis may go back, and entries are appended again: not those of a user who was deleted."""
    tallyd = start_tallyd(*FEW, redis=start_redis(appendonly=True, options=EVERYSEC))
    http = tallyd.client(timeout_s=30)
    http.accept({"site": site, "page": "/", "user": "u"})
    begun = time.monotonic()
    assert http.request("DELETE", f"/users/u?site={site}").status == 200
    assert time.monotonic() - begun > 1.9
    assert http.request("GET", f"/users/u/activity?site={site}").json["days"] == []


def test_a_deletion_does_not_wait_where_nothing_is_lost(start_redis, start_tallyd, site):
    tallyd = start_tallyd(*FEW, "--request-timeout", "1s", redis=start_redis(appendonly=True))
    tallyd.client().accept({"site": site, "page": "/", "user": "u"})
    assert tallyd.client().request("DELETE", f"/users/u?site={site}").status == 200


def test_what_stands_before_an_entry_that_cannot_be_read_counts(start_redis, start_tallyd, site):
    """The log ends with an entry of a later version, say: what was acknowledged before it counts, and no more."""
    redis = start_redis()
    dead = start_tallyd(*FEW, redis=redis, env=HELD, name="dead")
    for i in range(3):
        dead.client().accept({"site": site, "page": "/p", "user": f"u{i}"})
    dead.kill()
    (log, n), = heads(redis).items()
    stream, register = f"t:{tag_of(redis)}:log:{log}", f"t:{tag_of(redis)}:heads"
    redis.command("XADD", stream, f"{n + 1}-0", "h", b"\x03" * 9, "p", b"x")
    redis.command("HSET", register, log, f"{n + 1} 0123456789abcdef {int(redis.time() * 1000)}")
    other = start_tallyd(*FEW, redis=redis, name="other")
    wait_until(lambda: "cannot be read" in other.log_text(), "its folds stop, and that is said")
    assert cursors(redis, log) == [str(n)] * 4
    redis.command("HSET", register, log, f"{n} 0123456789abcdef {int(redis.time() * 1000)}")  # a hand takes the entry away
    assert pv(other.client(), site) == 3


def test_what_its_own_process_has_cut_off_is_not_missing(start_redis, start_tallyd, site):
    """Another process folds the log for its questions; in between the log's own process counts, and cuts its stream."""
    redis = start_redis()
    own, other = (start_tallyd(*FEW, redis=redis, name=name).client() for name in ("own", "other"))
    for n in (1, 6, 11):
        own.accept({"site": site, "page": "/p"})
        assert pv(other, site) == n
        for _ in range(4):
            own.accept({"site": site, "page": "/p"})
        wait_until(lambda: entries(redis) == 0, "it has counted them itself")
    own.accept({"site": site, "page": "/p"})
    assert pv(other, site) == 16
    assert [http.metric("tallyd_entries_missing_total") for http in (own, other)] == [0, 0]


def test_a_log_that_others_count_holds_nobody_up(start_redis, start_tallyd, site):
    """It is of a later version, say, and this process cannot read it; its own process counts it."""
    redis = start_redis()
    tallyd = start_tallyd(*FEW, "--request-timeout", "2s", redis=redis)
    http = tallyd.client()
    http.accept({"site": site, "page": "/p"})
    assert pv(http, site) == 1
    log = FakeLog(redis, 1)
    assert http.get("/pv", site=site).status == 503
    for state in states(redis):
        redis.command("HSET", state, log.id, "1")
    begun = time.monotonic()
    for n in range(2, 12):
        http.accept({"site": site, "page": "/p"})
        assert pv(http, site) == n
    assert time.monotonic() - begun < 2, "a round of folds that comes to no end takes a quarter of a second"
