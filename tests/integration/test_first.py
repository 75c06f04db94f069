"""POST /events?first=1: which actions were the first of their user's day.  How it works is in storage/users/README.md."""

import json
import signal
import threading
import time
from urllib.parse import quote, urlencode
from zoneinfo import ZoneInfo

import pytest

from lib.activity import DAY_S, ActivityModel, date_of
from lib.client import NDJSON
from lib.clock import epoch
from lib.firsts import notes, told
from lib.log import HELD, counted, records
from lib.process import Redis, short_directory
from lib.waiting import wait_until

FEW = ("--partitions", "4")


@pytest.fixture(scope="module")
def redis():
    """One that cannot go back: another one is waited for."""
    server = Redis(appendonly=True)
    server.start()
    yield server
    server.stop()


def ask(http, body, key=None, **params):
    """{index: actions} that were first."""
    return told(http.post(body, first=1, headers={"Idempotency-Key": key} if key else None, **params))


def check_in(site, user, *actions, **more):
    return {"site": site, "user": user, "actions": list(actions or ["checkin"]), **more}


def zones_of(zones):
    path = short_directory() / "tallyd.conf"
    path.write_text("".join(f"site.{site}.tz = {zone}\n" for site, zone in zones.items()))
    return "--config", path


def take_back(http, user, **params):
    answer = http.request("DELETE", f"/users/{quote(user, safe='')}/activity?" + urlencode(params))
    assert answer.status == 204, answer


@pytest.fixture
def today(redis):
    """A day that does not end within the test."""
    wait_until(lambda: redis.time() % DAY_S < DAY_S - 20, "a day that goes on", deadline_s=30)
    return int(redis.time()) // DAY_S


# What the answer says


@pytest.mark.usefixtures("today")
def test_once_a_day(http, site):
    assert ask(http, check_in(site, "ann")) == {0: ["checkin"]}
    assert ask(http, check_in(site, "ann")) == {}
    assert ask(http, check_in(site, "ann", "checkin", "share")) == {0: ["share"]}
    assert ask(http, check_in(site, "bob")) == {0: ["checkin"]}
    assert ask(http, check_in(site + "-2", "ann")) == {0: ["checkin"]}, "another site"
    assert http.question("/dau", site=site, action="checkin")["users"] == 2


@pytest.mark.usefixtures("today")
def test_what_was_done_before_by_an_event_that_did_not_ask(http, site):
    http.accept([check_in(site, "ann"), check_in(site, "bob", "share")])
    assert ask(http, [check_in(site, "ann"), check_in(site, "bob", "checkin", "share")]) == {1: ["checkin"]}


@pytest.mark.usefixtures("today")
def test_the_first_one_of_an_array(http, site):
    """Later ones are not, whoever asks; the index is that of the array, and an action counts once."""
    batch = [
        {"site": site, "page": "/"},
        check_in(site, "ann", "a", "a", "active", "b"),
        {"site": site},
        check_in(site, "ann", "b", "c"),
        check_in(site, "ann", "a", "c"),
        {"site": site, "page": "/", "user": "bob", "actions": ["a"]},
        {"site": site, "event": "signup", "user": "cid", "visitor": "v", "actions": ["a"]},
        {"site": site, "page": "/", "user": "dan", "actions": ["active"]},
        {"site": site, "page": "/", "user": "eve"},
        {"site": site, "page": "/", "visitor": "v", "actions": ["a"]},
    ]
    answer = http.post(batch, first=1)
    assert told(answer) == {1: ["a", "b"], 3: ["c"], 5: ["a"], 6: ["a"]}
    assert answer.json["accepted"] == 9 and answer.json["rejected"] == 1
    assert list(answer.json) == ["accepted", "rejected", "errors", "first"]


def test_the_index_of_a_line(http, site):
    """Blank lines count, and lines that are no events."""
    lines = ["", json.dumps(check_in(site, "ann")), "", "{", json.dumps({"page": "/", "site": site}), json.dumps(check_in(site, "bob"))]
    assert ask(http, "\n".join(lines), content_type=NDJSON) == {1: ["checkin"], 5: ["checkin"]}


def test_arrays_of_a_thousand(http, site):
    """Over all partitions, several transactions, and in the order of the array."""
    users = [f"u{i % 400}" for i in range(1000)]
    batch = [check_in(site, user, "a", f"x{i % 3}") for i, user in enumerate(users)]
    seen, expected = set(), {}
    for i, event in enumerate(batch):
        new = [a for a in event["actions"] if (event["user"], a) not in seen]
        seen.update((event["user"], a) for a in new)
        if new:
            expected[i] = new
    assert ask(http, batch, key=site) == expected
    assert ask(http, batch, key=site) == expected, "a replay"
    assert ask(http, batch) == {}


@pytest.mark.parametrize("body", [[], {"page": "/"}, {"page": "/", "user": "ann"}, {"event": "signup", "user": "ann"},
                                  {"page": "/", "user": "ann", "actions": []}, {"user": "bob", "actions": ["active"]}],
                         ids=json.dumps)
def test_nothing_that_could_be_first(http, redis, body):
    """There is nothing to wait for, and nothing is noted."""
    before = notes(redis)
    assert ask(http, body) == {}
    answer = http.post(body, first=1, headers={"Idempotency-Key": f"none {json.dumps(body)}"})
    again = http.post(body, first=1, headers={"Idempotency-Key": f"none {json.dumps(body)}"})
    assert told(answer) == told(again) == {} and again.body == answer.body
    assert "Idempotency-Replayed" in again.headers and notes(redis) == before


@pytest.mark.parametrize("value", ["", "2", "yes", "01", "1%20", "-1", "%00", "1&first=1", "1&first=0"])
def test_another_value_is_refused(http, site, value):
    answer = http.request("POST", f"/events?first={value}", json.dumps(check_in(site, "ann")), {"Content-Type": "application/json"})
    assert answer.status == 400 and answer.errors[0]["parameter"] == "first", answer
    assert http.question("/dau", site=site)["users"] == 0


@pytest.mark.parametrize("params", [{}, {"first": 0}, {"first": "false"}])
def test_who_does_not_ask_is_not_told(http, redis, site, params):
    before = notes(redis)
    http.accept(check_in(site, "ann"), **params)
    counted(http)
    assert notes(redis) == before
    assert ask(http, check_in(site, "ann")) == {}


def test_a_request_that_is_refused_is_no_first(http, site):
    assert http.post([check_in(site, "ann"), {"bad": 1}], first=1, strict=1).status == 422
    assert http.post('{"site', first=1).status == 400
    assert ask(http, check_in(site, "ann")) == {0: ["checkin"]}


def test_it_is_counted_in_the_metrics(http, site):
    before = http.metrics()
    ask(http, [check_in(site, "ann", "a", "b"), check_in(site, "bob", "a")])
    ask(http, check_in(site, "ann", "a"))
    after = http.metrics()
    assert after["tallyd_first_requests_total"] - before["tallyd_first_requests_total"] == 2
    assert after["tallyd_first_actions_total"] - before["tallyd_first_actions_total"] == 3


# Sent again


@pytest.mark.parametrize("params", [{}, {"dedupe": "body"}], ids=["a key", "dedupe=body"])
def test_a_replay_says_the_same(http, redis, site, params):
    now = int(redis.time())
    batch = [check_in(site, "ann", "a", "b", ts=now), {"site": site, "bad": 1, "ts": now}, check_in(site, "bob", ts=now), check_in(site, "ann", ts=now)]
    key = None if params else site
    first = http.post(batch, first=1, headers={"Idempotency-Key": key} if key else None, **params)
    assert told(first) == {0: ["a", "b"], 2: ["checkin"], 3: ["checkin"]}
    assert ask(http, batch[0]) == {}
    for _ in range(3):
        again = http.post(batch, first=1, headers={"Idempotency-Key": key} if key else None, **params)
        assert again.body == first.body and again.headers["Idempotency-Replayed"] == "true"


def test_a_replay_after_another_was_first(http, site):
    assert ask(http, check_in(site, "ann"), key=site + "1") == {0: ["checkin"]}
    for _ in range(2):
        assert ask(http, check_in(site, "ann"), key=site + "2") == {}
        assert ask(http, check_in(site, "ann"), key=site + "1") == {0: ["checkin"]}


def test_a_key_belongs_to_a_request_that_asks(http, site):
    """The answer depends on the parameter, so without it the request is another one."""
    assert ask(http, check_in(site, "ann"), key=site) == {0: ["checkin"]}
    assert http.post(check_in(site, "ann"), headers={"Idempotency-Key": site}).status == 422
    http.accept(check_in(site, "ann"), headers={"Idempotency-Key": site + "2"})
    assert http.post(check_in(site, "ann"), first=1, headers={"Idempotency-Key": site + "2"}).status == 422


def test_the_ingestion_guard(start_redis, start_tallyd, site):
    """A repeat gets its answer over the limit, too; the guard's headers stand on all of them."""
    http = start_tallyd(*FEW, "--ingest-limit", "2/1h", "--ingest-burst", "1", "--ingest-limit-by", "site", redis=start_redis(appendonly=True)).client()
    answers = [http.post(check_in(site, "ann"), first=1, headers={"Idempotency-Key": key}) for key in "aabab"]
    assert [told(answer) for answer in answers] == [{0: ["checkin"]}] * 2 + [{}] + [{0: ["checkin"]}] + [{}]
    assert all("RateLimit" in answer.headers for answer in answers)
    for key in "cde":
        last = http.post(check_in(site, "ann"), first=1, headers={"Idempotency-Key": key})
    assert last.status == 429
    assert ask(http, check_in(site, "ann"), key="a") == {0: ["checkin"]}


def test_another_process_says_the_same(start_redis, start_tallyd, site):
    """Whoever folds it, and whoever is asked."""
    redis = start_redis(appendonly=True)
    tallyds = [start_tallyd(*FEW, redis=redis, name=name) for name in "ab"]
    for turn in range(10):
        one, two = (tallyds[(turn + i) % 2].client() for i in (0, 1))
        assert ask(one, check_in(site, f"u{turn}"), key=f"{turn}") == {0: ["checkin"]}
        assert ask(two, check_in(site, f"u{turn}")) == {}
        assert ask(two, check_in(site, f"u{turn}"), key=f"{turn}") == {0: ["checkin"]}


# Taken back, forgotten


@pytest.mark.usefixtures("today")
def test_after_it_was_taken_back(http, site, today):
    """A later event is first again; what was told stays told, also to a repeat."""
    assert ask(http, check_in(site, "ann", "checkin", "share"), key=site + "1") == {0: ["checkin", "share"]}
    take_back(http, "ann", site=site, action="checkin", date=date_of(today))
    assert ask(http, check_in(site, "ann", "checkin", "share"), key=site + "1") == {0: ["checkin", "share"]}
    assert http.question("/dau", site=site, action="checkin")["users"] == 0, "a repeat counts nothing"
    assert ask(http, check_in(site, "ann", "checkin", "share"), key=site + "2") == {0: ["checkin"]}
    assert ask(http, check_in(site, "ann")) == {}
    assert http.question("/dau", site=site, action="checkin")["users"] == 1


@pytest.mark.usefixtures("today")
def test_after_the_user_was_forgotten(http, redis, site):
    """The user is a new one.  No note says whose it was."""
    name = "a name that stands nowhere"
    assert ask(http, check_in(site, name), key=site) == {0: ["checkin"]}
    for key in notes(redis):
        assert name not in key and name not in redis.command("GET", key) and site not in key
    assert http.request("DELETE", f"/users/{quote(name)}?site={site}").status == 200
    assert ask(http, check_in(site, name)) == {0: ["checkin"]}
    assert ask(http, check_in(site, name)) == {}


# Days


def test_the_days_are_the_sites(start_world):
    """An event belongs to its own day, in the zone of its site, however late it comes; yesterday's is first, too."""
    world = start_world("2026-03-29 18:20:10", *FEW, "--keep-days", "60d", *zones_of({"there": "Asia/Kathmandu"}), appendonly=True)
    http, midnight = world.http, epoch("2026-03-28 18:15:00")  # the 29th begins in Kathmandu
    assert ask(http, check_in("there", "ann", ts=midnight)) == {0: ["checkin"]}
    assert ask(http, check_in("there", "ann", ts=midnight + DAY_S - 1)) == {}
    assert ask(http, check_in("there", "ann", ts=midnight - 1)) == {0: ["checkin"]}, "late, on the day before"
    assert ask(http, check_in("here", "ann", ts=midnight)) == {0: ["checkin"]}
    assert ask(http, check_in("here", "ann", ts=midnight - 1)) == {}
    assert ask(http, [check_in("here", "ann", ts=midnight - i * DAY_S) for i in range(5)]) == {i: ["checkin"] for i in range(1, 5)}
    world.move("2026-03-30 00:00:20")
    assert ask(http, check_in("here", "ann")) == {0: ["checkin"]}, "by the time of arrival"


def test_a_key_is_remembered_for_two_days(start_world):
    """As what it was told is: a repeat, though it names no time of its own, counts on no other day.  Later nobody remembers.
    A request without a key cannot be repeated by its sender, so its note goes after two hours."""
    world = start_world("2026-03-29 10:00:10", *FEW, appendonly=True)
    http, at = world.http, epoch("2026-03-29 10:00:00")
    assert ask(http, check_in("s", "ann"), key="k") == {0: ["checkin"]}
    assert ask(http, check_in("s", "bob", ts=at)) == {0: ["checkin"]}
    assert len(notes(world.redis)) == 2
    for when, n in (("2026-03-29 11:59:50", 2), ("2026-03-29 12:01:00", 1)):
        world.move(when)
        assert len(notes(world.redis)) == n
    for when in ("2026-03-30 10:00:00", "2026-03-30 13:00:00", "2026-03-31 10:59:00"):
        world.move(when)
        assert ask(http, check_in("s", "ann"), key="k") == {0: ["checkin"]}, when
        assert http.question("/dau", site="s", date=when[:10])["users"] == 0 and len(notes(world.redis)) == 1
    world.move("2026-03-31 11:01:00")
    assert notes(world.redis) == records(world.redis) == []
    assert ask(http, check_in("s", "ann"), key="k") == {0: ["checkin"]}, "of another day"
    assert ask(http, check_in("s", "ann", ts=at)) == {}, "the bit stays"


@pytest.mark.parametrize("n", range(2))
def test_random_histories(start_world, chance, site, n):
    """Two processes, days, zones and sites, late events, rollups between, what is taken back, users who are forgotten,
    events that do not ask, and repeats: every answer is the model's."""
    zones = {f"{site[-30:]}-a": "UTC", f"{site[-30:]}-b": "America/St_Johns"}
    world = start_world("2026-03-27 22:10:10", "--partitions", "8" if n else "1", "--keep-minutes", "2h", "--keep-hours", "2d",
                        *zones_of(zones), appendonly=True)
    clients = [world.http, world.add_tallyd().client()]
    model = ActivityModel({s: ZoneInfo(z) for s, z in zones.items()})
    answered = []
    for step in range(60):
        http, kind = chance.choice(clients), chance.random()
        site = chance.choice(list(zones))
        now = int(world.now())
        batch = [{"site": site, "user": f"u{chance.randrange(6)}", "ts": now - chance.choice([0, 0, 3600, DAY_S, 2 * DAY_S]),
                  "actions": chance.sample(["a", "b", "c", "active"], chance.randrange(1, 4)), **chance.choice([{}, {"page": "/"}])}
                 for _ in range(chance.randrange(1, 8))]
        if kind < 0.15:
            day = model.day_of(site, now)
            user, action = f"u{chance.randrange(6)}", chance.choice("abc")
            take_back(http, user, site=site, action=action, date=date_of(day))
            model.users[site, action, day].discard(user)
        elif kind < 0.2:
            user = f"u{chance.randrange(6)}"
            assert http.request("DELETE", f"/users/{user}?site={site}").status == 200
            model.forget(site, user)
        elif kind < 0.3:
            world.move(now + chance.choice([60, 1800, 4 * 3600]))
        elif kind < 0.45 and answered:
            batch, key, expected = chance.choice(answered)
            answer = http.post(batch, first=1, headers={"Idempotency-Key": key})
            if "Idempotency-Replayed" in answer.headers:
                assert told(answer) == expected
            else:  # after a day it counts again; what was told is told again
                assert told(answer) == {**first_of(model, batch), **expected}
                for event in batch:
                    model.add(event)
        else:
            expected, key = first_of(model, batch), f"{step}" if chance.random() < 0.6 else None
            for event in batch:
                model.add(event)
            if chance.random() < 0.3:
                http.accept(batch)
                counted(http)  # until then an event of another process may come before it
            else:
                assert ask(http, batch, key) == expected, f"step {step}"
                answered += [(batch, key, expected)] if key else []
    for (site, action, day), users in model.users.items():
        assert world.http.question("/dau", site=site, action=action, date=date_of(day))["users"] == len(users)


def first_of(model, batch):
    """{index: actions} by the model, which stays as it was."""
    new, found = set(), {}
    for i, event in enumerate(batch):
        day = model.day_of(event["site"], event["ts"])
        for action in event["actions"]:
            bit = (action, day, event["user"])
            if action != "active" and bit not in new and event["user"] not in model.on(event["site"], action, day):
                new.add(bit)
                found.setdefault(i, []).append(action)
    return found


# In time


def test_who_cannot_be_told_in_time(start_redis, start_tallyd, site):
    """The request is in the log, and nothing folds it: 504.  The same key tells later."""
    redis = start_redis(appendonly=True)
    http = start_tallyd(*FEW, "--request-timeout", "1s", redis=redis, env=HELD).client()
    begun = time.monotonic()
    for _ in range(2):
        answer = http.post(check_in(site, "ann"), first=1, headers={"Idempotency-Key": "k"})
        assert answer.status == 504, answer
        assert http.post(check_in(site, "bob"), first=1).status == 504
    assert time.monotonic() - begun < 4.6
    other = start_tallyd(*FEW, redis=redis, name="other").client()
    assert ask(other, check_in(site, "ann"), key="k") == {0: ["checkin"]}
    assert ask(other, check_in(site, "bob")) == {}, "one of those without a key was first, and nobody knows"
    assert other.question("/dau", site=site, action="checkin")["users"] == 2


def test_stopped_while_it_waits(start_redis, start_tallyd, site):
    """SIGTERM: what is in flight is finished, also where it waits until Redis cannot go back."""
    redis = start_redis(appendonly=True, options=("--appendfsync", "everysec"))
    tallyd = start_tallyd(*FEW, redis=redis)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(tallyd.client().post(check_in(site, "ann"), first=1)))
    thread.start()
    wait_until(lambda: notes(redis), "it is folded")
    tallyd.signal(signal.SIGTERM)
    thread.join(15)
    assert told(answers[0]) == {0: ["checkin"]}
    assert tallyd.wait() == 0
