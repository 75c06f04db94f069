"""Idempotency-Keys of POST /events: what a repeat is told, and for how long it is one."""

import gzip
import json
import threading
import time

import pytest

from lib.client import NDJSON, Unknown
from lib.clock import epoch, rfc3339
from lib.process import Tallyd
from lib.log import HELD, append_of, records
from lib.proxy import Proxy
from lib.raw import Raw  # a client library merges fields that stand twice
from lib.tokens import token_line
from lib.waiting import wait_until

RECORD_BYTES = 200  # at most, and the errors that the answer lists


def keyed(http, body, key, **more):
    return http.post(body, headers={"Idempotency-Key": key}, **more)


def replayed(answer):
    value = answer.headers.get("Idempotency-Replayed")
    assert value in (None, "true"), value
    return value is not None


def pv(http, site):
    return http.count("pv", site=site, from_="now-2d")


def test_repeat_counts_nothing_and_gets_the_first_answer(http, site):
    batch = [{"site": site, "page": "/a", "user": "u1"}, {"site": site, "page": ""}, {"site": site, "page": "/b"}]
    first = keyed(http, batch, f"{site}-1")
    assert first.status == 202 and not replayed(first), first
    assert first.json["accepted"] == 2 and first.errors[0]["index"] == 1
    for _ in range(3):
        again = keyed(http, batch, f"{site}-1")
        assert again.status == 202 and replayed(again), again
        assert again.body == first.body
        assert again.headers["Content-Type"] == first.headers["Content-Type"]
    assert pv(http, site) == 2
    assert http.count("visits", site=site) == 1
    other = keyed(http, batch, f"{site}-2")
    assert other.status == 202 and not replayed(other)
    assert pv(http, site) == 4


def test_without_a_key_a_repeat_is_an_event_of_its_own(http, site):
    for _ in range(2):
        answer = http.post({"site": site, "page": "/"})
        assert answer.status == 202 and not replayed(answer)
    assert pv(http, site) == 2


@pytest.mark.parametrize("bare, quoted", [("{}", '"{}"'), (r"a\b {}", r'"a\\b {}"'), ("x\"{}", r'"x\"{}"')])
def test_bare_and_quoted_are_one_key(http, site, bare, quoted):
    event = {"site": site, "page": "/"}
    assert not replayed(keyed(http, event, bare.format(site)))
    assert replayed(keyed(http, event, quoted.format(site)))
    assert replayed(keyed(http, event, f"  {bare.format(site)}\t"))
    assert pv(http, site) == 1


@pytest.mark.parametrize("key", ["", " ", '""', '"', '"a', 'a\xe9', '"a\xe9"', '"a" b', '"a\\"', '"a\\b"', "a" * 129,
                                 '"' + "a" * 129 + '"', '"a";q=1', "a\tb"])
def test_malformed_keys(http, site, key):
    answer = keyed(http, {"site": site, "page": "/"}, key.encode("latin-1"))
    assert answer.status == 400 and "Idempotency-Key" in answer.json["detail"], answer
    assert pv(http, site) == 0


def test_longest_keys(http, site):
    key = site.ljust(128, ".")
    assert not replayed(keyed(http, {"site": site, "page": "/"}, key))
    assert replayed(keyed(http, {"site": site, "page": "/"}, f'"{key}"'))
    assert not replayed(keyed(http, {"site": site, "page": "/"}, key[:-1]))
    assert pv(http, site) == 2


def test_two_keys_are_malformed(tallyd, site):
    raw_body = json.dumps({"site": site, "page": "/"})
    with Raw(tallyd.port) as raw:
        raw.send(f"POST /events HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nIdempotency-Key: a\r\n"
                 f"Content-Length: {len(raw_body)}\r\n\r\n{raw_body}")
        assert raw.receive()[0] == 400


def test_another_body(http, site):
    event = {"site": site, "page": "/a"}
    assert keyed(http, event, site).status == 202
    for body, more in (({"site": site, "page": "/b"}, {}), ([event], {}), (event, {"strict": "1"}),
                       (json.dumps(event), {"content_type": NDJSON}), ("{", {}), ([], {})):
        answer = keyed(http, body, site, **more)
        assert answer.status == 422 and "another body, Content-Type or parameters" in answer.json["detail"], answer
    again = keyed(http, event, site)
    assert again.status == 202 and replayed(again)
    packed = keyed(http, event, site, zipped=True)  # the same bytes, packed
    assert packed.status == 202 and replayed(packed)
    assert pv(http, site) == 1


def test_only_a_202_is_remembered(http, site):
    good = {"site": site, "page": "/"}
    for body, more, status in (("{", {}, 400), ({"site": site}, {}, 422), ([good, {"site": site}], {"strict": "1"}, 422),
                               ([good] * 10001, {}, 413), (good, {"content_type": "text/plain"}, 415)):
        assert keyed(http, body, site, **more).status == status
    first = keyed(http, good, site)
    assert first.status == 202 and not replayed(first), first
    assert replayed(keyed(http, good, site))
    assert pv(http, site) == 1


def test_no_events_are_a_202_too(http, site):
    assert not replayed(keyed(http, [], site))
    again = keyed(http, [], site)
    assert replayed(again) and again.json == {"accepted": 0, "rejected": 0, "errors": []}


def test_a_key_is_no_part_of_another_key_in_redis(http, redis, site):
    """User text stands in no key of Redis, and neither does a key in its record."""
    key = f"evil:{{0}}:{site}"
    before = set(records(redis))
    assert keyed(http, {"site": site, "page": "/"}, key).status == 202
    assert not [n for n in redis.command("KEYS", "*") if "evil" in n]
    (record,) = set(records(redis)) - before
    assert len(record.rpartition(":")[2]) == 32
    with redis.connect() as connection:
        assert connection.command("EVAL", "return string.find(redis.call('GET', KEYS[1]), ARGV[1], 1, true) or 0", 1, record, "evil") == 0


def test_a_record_is_small(http, redis, site):
    """At most 200 bytes and the errors that are listed."""
    errors = [{"site": site}] * 150  # 100 of them are listed
    for name, batch in (("one", [{"site": site, "page": "/"}]), ("many", [{"site": site, "page": "/"}] * 9000),
                        ("bad", [{"site": site, "page": "/"}, *errors])):
        before = set(records(redis))
        answer = keyed(http, batch, f"{site} {name}")
        (record,) = set(records(redis)) - before
        n = redis.command("STRLEN", record)
        listed = answer.body.partition(b'"errors":')[2]
        assert len(answer.errors) == (100 if name == "bad" else 0)
        assert n <= RECORD_BYTES + len(listed), (name, n)


def test_large_batches_and_many_pages(http, site):
    batch = [{"site": site, "page": f"/{i}", "user": f"u{i}", "ts": 1700000000 + 3600 * (i % 50)} for i in range(10000)]
    body = gzip.compress(json.dumps(batch).encode())
    for n in range(2):
        answer = http.post(body, headers={"Idempotency-Key": site, "Content-Encoding": "gzip"})
        assert answer.status == 202 and answer.json["accepted"] == 10000, answer
        assert replayed(answer) == (n == 1)
    assert http.count("pv", site=site, from_="2023-11-01", to="2023-12-01") == 10000
    assert http.count("visits", site=site, from_="2023-11-01", to="2023-12-01") == 10000


def test_many_keys_at_once(tallyd, http, site):
    """Requests with keys share entries with each other, with repeats of themselves, and with those without."""
    faults = []

    def run(me):
        client = tallyd.client()
        for i in range(40):
            for _ in range(2):
                answer = keyed(client, {"site": site, "page": f"/{i}", "user": f"u{me}"}, f"{site}-{me % 4}-{i}-{me}")
                if answer.status != 202:
                    faults.append(str(answer))
            if client.post({"site": site, "page": "/bare"}).status != 202:
                faults.append("bare")

    threads = [threading.Thread(target=run, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults[:3]
    assert http.count("pv", site=site, page="/bare") == 16 * 40
    assert pv(http, site) == 2 * 16 * 40
    assert http.count("visits", site=site) == 16


def test_racing_for_one_key(tallyd, http, site):
    """Many try the same request at the same moment: it counts once, and all are told the same."""
    statuses, lock = [], threading.Lock()
    barrier = threading.Barrier(12)

    def run():
        client = tallyd.client()
        barrier.wait()
        answer = keyed(client, [{"site": site, "page": f"/{i}"} for i in range(50)], site)
        with lock:
            statuses.append((answer.status, replayed(answer)))

    threads = [threading.Thread(target=run) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [(202, False)] + [(202, True)] * 11
    assert pv(http, site) == 50


def test_racing_for_one_key_in_two_processes(tallyd, http, redis, start_tallyd, site):
    """Also with different bodies: one of them counts, the others of that body are told so, those of the other one too."""
    other = start_tallyd(redis=redis, name="other")
    answers, lock, barrier = [], threading.Lock(), threading.Barrier(12)

    def run(me):
        client = (tallyd, other)[me % 2].client()
        barrier.wait()
        answer = keyed(client, [{"site": site, "page": f"/{i}"} for i in range(5 + me // 6)], site)
        with lock:
            answers.append((5 + me // 6, answer.status, replayed(answer)))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ((n, _, _),) = [a for a in answers if a[1:] == (202, False)]
    assert sorted(answers) == sorted([(n, 202, False)] + [(n, 202, True)] * 5 + [(11 - n, 422, False)] * 6)
    assert pv(http, site) == n


def test_while_the_first_one_is_slow(start_redis, start_proxy, start_tallyd, site):
    """Redis has the first request, and its process waits for the answer: whoever comes second gets the first answer, at
    once, here and in another process.  Nobody is told to come again."""
    redis = start_redis()
    proxy = start_proxy(redis)
    slow = start_tallyd("--request-timeout", "20s", redis=proxy, name="slow")
    other = start_tallyd(redis=redis, name="other")
    event = [{"site": site, "page": "/"}] * 100
    keyed(slow.client(), event, f"{site} warm-up")  # the connections stand
    answers = []
    appended, judge, carries = threading.Event(), proxy.judge, append_of(site)

    def judge_and_hold(args):
        if carries(args):
            proxy.hold_replies()
            appended.set()
        return judge(args)

    proxy.judge = judge_and_hold
    before = len(records(redis))
    threads = [threading.Thread(target=lambda: answers.append(keyed(slow.client(), event, site))) for _ in range(2)]
    threads[0].start()
    assert appended.wait(10)
    wait_until(lambda: len(records(redis)) > before, "it is in Redis")
    threads[1].start()  # the same one there waits behind it
    for _ in range(8):
        answer = keyed(other.client(), event, site)
        assert answer.status == 202 and replayed(answer), answer
        assert keyed(other.client(), {"site": site, "page": "/other"}, site).status == 422
    proxy.judge = judge
    proxy.hold_replies(False)
    for thread in threads:
        thread.join()
    assert sorted((a.status, replayed(a)) for a in answers) == [(202, False), (202, True)]
    assert other.client().count("pv", site=site) == 200  # half of it is the warm-up's


def test_a_day(start_world):
    """24 hours from the first use, on Redis's clock, and an hour for clocks that go apart; then the key is a new one, and
    nothing is left of the old one."""
    world = start_world("2026-03-10 10:56:20", "--keep-minutes", "forever")
    event = {"page": "/", "user": "u"}
    assert not replayed(keyed(world.http, event, "k"))
    world.move("2026-03-11 10:55:50")
    assert replayed(keyed(world.http, event, "k"))
    assert keyed(world.http, {"page": "/other"}, "k").status == 422
    world.move("2026-03-11 11:56:30")
    assert not records(world.redis)
    assert not replayed(keyed(world.http, event, "k"))
    assert replayed(keyed(world.http, event, "k"))
    assert world.http.count("pv", from_="2026-03-10", to="2026-03-12") == 2
    world.move("2026-03-12 11:56:00")
    assert replayed(keyed(world.http, event, "k"))
    assert world.http.count("pv", from_="2026-03-10", to="2026-03-13") == 2


def test_what_repeats_rest_on_is_kept(start_world):
    """As Redis has it: what expires does so when it was said, and nothing else that a fold rests on expires at all."""
    world = start_world("2026-03-10 10:56:20", "--partitions", "1", "--keep-seen", "10d", appendonly=True)
    http, redis, hour = world.http, world.redis, 3600
    event = {"site": "s", "page": "/", "user": "u", "actions": ["checkin"], "utm_source": "x"}
    assert keyed(http, event, "k", first=1).status == http.post({**event, "user": "v"}, first=1).status == 202
    assert keyed(http, event, "k2").status == 202
    http.question("/seen", site="s", user="u", page="/")
    expires = {"key": [25 * hour, 49 * hour], "first": [2 * hour, 49 * hour], "visit": [50 * hour],  # two slots, and two days for what waits in a log
               "places": [epoch("2026-03-10 11:00") + 26 * hour + 900 - redis.time()],  # 26 hours behind the hour's end, and a quarter
               "seen": [epoch("2026-04-11") - redis.time()]}  # the month's end, and ten days
    found = {}
    for key in redis.command("KEYS", "t:*"):
        found.setdefault(key.split(":")[2], []).append(redis.command("PTTL", key) / 1000)
    for kind, left_s in expires.items():
        assert len(found[kind]) == len(left_s) and all(s - 15 < f <= s + 1 for f, s in zip(sorted(found[kind]), left_s)), (kind, found[kind])
    kept = set(found) - set(expires) - {"lock", "probe", "hot", "wish"}
    assert kept >= {"heads", "log", "state", "secret", "meta", "uid", "ids", "act", "uv", "pv", "vv", "open", "sites"}, kept
    assert all(ttl < 0 for kind in kept for ttl in found[kind]), found


def test_an_event_keeps_the_arrival_of_the_first_try(start_world, cleanup):
    """The first try is appended, and its process dies before it answers; what comes 20 minutes later is a repeat, and all
    events are in the first one's minute."""
    world = start_world("2026-03-10 10:56:20")
    proxy = Proxy(world.redis.directory, world.redis.path)
    cleanup.append(proxy.close)
    first = Tallyd(redis=proxy, name="first", env=HELD)
    cleanup.append(first.stop)
    first.start()
    batch = [{"page": f"/{i}", "user": f"u{i}"} for i in range(800)] + [{"page": "/ahead", "ts": epoch("2026-03-10 11:10")}]
    proxy.hold_replies()
    answer = []

    def attempt():
        try:
            answer.append(keyed(first.client(), batch, "k").status)
        except Unknown:
            answer.append(None)

    thread = threading.Thread(target=attempt)
    thread.start()
    wait_until(lambda: records(world.redis), "it is appended")
    first.kill()
    thread.join()
    assert answer == [None]
    minute = {"from_": "2026-03-10T10:56:00Z", "to": "2026-03-10T10:57:00Z"}
    world.move(epoch("2026-03-10 11:15"))
    again = keyed(world.http, batch, "k")
    # "/ahead" was more than five minutes ahead when it came, and still is for this request
    assert again.status == 202 and replayed(again), again
    assert again.json["accepted"] == 800 and again.json["rejected"] == 1 and again.errors[0]["index"] == 800
    assert world.http.count("pv", **minute) == 800
    assert world.http.count("visits", **minute) == 800
    assert world.http.count("pv", from_="2026-03-10", to="2026-03-11") == 800
    assert rfc3339(world.now())[:13] == "2026-03-10T11"


# The body as the key


def by_body(http, body, *args, **more):
    return http.post(body, *args, dedupe="body", **more)


def test_a_body_is_its_own_key(http, site):
    body = json.dumps({"site": site, "page": "/", "ts": epoch_now()})
    first = by_body(http, body)
    assert first.status == 202 and first.json["accepted"] == 1 and not replayed(first)
    for again in (by_body(http, body), by_body(http, body, zipped=True)):
        assert again.status == 202 and replayed(again) and again.body == first.body
    others = [by_body(http, body + " "), by_body(http, body, NDJSON), by_body(http, body, strict=1), by_body(http, body, bots="drop"),
              by_body(http, body, bots="count"), http.post(body), http.post(body)]
    assert all(other.status == 202 and not replayed(other) for other in others)
    assert pv(http, site) == 1 + len(others)


def epoch_now():
    return int(time.time())


def test_a_body_without_a_time_is_no_key(http, site):
    timed = {"site": site, "page": "/", "ts": epoch_now()}
    for bad in ({"site": site, "page": "/"}, {"site": site}, {"site": site, "page": 1}):
        for events in ([timed, bad], [bad, timed], [bad]):
            response = by_body(http, events)
            assert response.status == 422 and "every event must have a ts" in response.json["detail"], response
            assert len(response.errors) == 1
            lines = "\n".join(json.dumps(e) for e in events)
            assert by_body(http, lines, NDJSON).status == 422
    assert by_body(http, [{"site": site, "page": "/"}]).errors == [{"index": 0, "pointer": "/ts", "detail": "ts is required with dedupe=body"}]
    assert pv(http, site) == 0
    # a bad event with its time takes nothing with it, and a line that is no JSON is no event
    assert by_body(http, [timed, {"site": site, "page": 1, "ts": 1}]).json["accepted"] == 1
    assert by_body(http, json.dumps(timed) + "\n{", NDJSON).json["rejected"] == 1
    assert pv(http, site) == 2


def test_dedupe_and_a_key_do_not_go_together(http, site):
    event = {"site": site, "page": "/", "ts": epoch_now()}
    response = keyed(http, event, "k", dedupe="body")
    assert response.status == 400 and response.errors[0]["parameter"] == "dedupe"
    for value in ("", "Body", "1", "id"):
        response = http.post(event, dedupe=value)
        assert response.status == 400 and response.errors[0]["parameter"] == "dedupe"
    assert pv(http, site) == 0


def test_a_body_is_a_key_of_its_token(start_tallyd, redis, directory, site):
    directory.mkdir(exist_ok=True)
    path = directory / "tokens"
    path.write_text("".join(token_line(t, f"ingest,read {t}") for t in ("a", "b")))
    http = start_tallyd("--tokens", path, redis=redis).client()
    event = {"site": site, "page": "/", "ts": epoch_now()}
    for token, again in (("a", False), ("b", False), ("a", True), ("b", True)):
        answer = by_body(http, event, headers={"Authorization": f"Bearer {token}"})
        assert answer.status == 202 and replayed(answer) == again
