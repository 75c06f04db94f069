"""Sets of users and days: funnels, frequencies, new users, return by another action, at least n days.  Every answer is the
naive model's, over random histories in several zones, through two processes, with rollups between."""

import datetime
import time
import zoneinfo

import pytest

from lib.activity import DAY_S, ActivityModel, date_of, pages
from lib.clock import epoch
from lib.cluster import Cluster
from lib.log import counted
from lib.process import Tallyd, short_directory
from lib.proxy import Fault
from lib.waiting import wait_until

ZONES = {"algebra-kolkata": "Asia/Kolkata", "algebra-york": "America/New_York", "algebra-apia": "Pacific/Apia"}
SITES = [*ZONES, "algebra-utc"]
ACTIONS = ["active", "view", "cart", "order", "never"]
DAYS = 45


@pytest.fixture(scope="module")
def config():
    path = short_directory() / "tallyd.conf"
    path.write_text("".join(f"site.{site}.tz = {zone}\n" for site, zone in ZONES.items()))
    return path


@pytest.fixture(scope="module")
def pair(redis, config):
    daemons = [Tallyd("--config", config, redis=redis, name=name) for name in ("one", "two")]
    try:
        yield [daemon.start().client() for daemon in daemons]
    finally:
        for daemon in daemons:
            daemon.stop()


@pytest.fixture
def http(pair):
    """A tallyd without the zones would refuse the data."""
    return pair[0]


@pytest.fixture
def model():
    return ActivityModel({site: zoneinfo.ZoneInfo(zone) for site, zone in ZONES.items()})


def history(chance, now_s, site, n, name):
    """Events of users who come often or once, on late days too, with steps that fewer and fewer take."""
    events = []
    for _ in range(n):
        user = f"{name}-{int(400 * chance.random() ** 3)}"
        event = {"site": site, "page": "/", "user": user, "ts": now_s - int(DAYS * DAY_S * chance.random() ** 1.5)}
        if chance.random() < 0.05:
            del event["user"]
            event["ip"] = "192.0.2.7"
        elif chance.random() < 0.5:
            event["actions"] = ACTIONS[1:1 + chance.randrange(4)]
        kind = chance.random()
        if kind < 0.2 and event.get("actions"):
            del event["page"]  # a check-in
        elif kind < 0.4:
            event.update(event=chance.choice("ab"), visitor=f"v{chance.randrange(9)}")
        events.append(event)
    chance.shuffle(events)
    return events


def window(chance, today):
    first, end = sorted(chance.sample(range(today - DAYS - 2, today + 2), 2))
    return (first, end) if chance.random() < 0.7 else (first, min(end, first + chance.randrange(1, 4)))


def rates(users):
    def rate(n, of):
        return pytest.approx(n / of if of else 0, abs=1e-5)

    return [(n, rate(n, users[0]), rate(n, users[max(i - 1, 0)])) for i, n in enumerate(users)]


def check_funnel(http, model, chance, site, today):
    first, end = window(chance, today)
    steps = chance.choices(ACTIONS, k=chance.randrange(2, 9))
    answer = http.question("/funnel", site=site, step=steps, from_=date_of(first), to=date_of(end))
    found = answer.pop("steps")
    assert answer == {"site": site, "from": date_of(first), "to": date_of(end), "ordered": False}
    assert [step["action"] for step in found] == steps
    assert [(s["users"], s["rate"], s["step_rate"]) for s in found] == rates(model.funnel(site, steps, first, end))
    assert all(step.keys() == {"action", "users", "rate", "step_rate"} for step in found)


def check_frequency(http, model, chance, site, today):
    first, end = window(chance, today)
    action = chance.choice(ACTIONS)
    n_days = list(model.n_days(site, [action], first, end).values())
    assert http.question("/frequency", site=site, action=action, from_=date_of(first), to=date_of(end)) == {
        "site": site, "action": action, "from": date_of(first), "to": date_of(end),
        "days": [{"n": n, "users": n_days.count(n)} for n in range(1, end - first + 1)]}


def check_min_days(http, model, chance, site, today):
    first, end = window(chance, today)
    actions = chance.sample(ACTIONS, chance.choice([1, 1, 2, 3]))
    match = chance.choice(["any", "all"])
    least = chance.randrange(1, end - first + 2)
    expected = {user for user, n in model.n_days(site, actions, first, end, match).items() if n >= least}
    found = pages(http, site, chance.choice([1, 7, 1000]) if len(expected) < 20 else 60, action=actions, match=match,
                  min_days=least, from_=date_of(first), to=date_of(end))
    assert len(found) == len(set(found)) and set(found) == expected


def check_dau(http, model, chance, site, today):
    first, end = window(chance, today)
    action, within = chance.choice(ACTIONS[:3]), chance.choice([1, 2, 7, 8, 30, 90])
    same = {"site": site, "action": action, "new_within": f"{within}d"}
    days = [{"date": date_of(day), "users": len(model.on(site, action, day)),
             "new": len(model.new(site, action, day, day + 1, within))} for day in range(first, end)]
    assert http.question("/dau", **same, from_=date_of(first), to=date_of(end)) == {
        **same, "from": date_of(first), "to": date_of(end), "series": days}
    assert http.question("/dau", **same, date=date_of(first)) == {**same, **days[0]}


def periods_of(period, day, n):
    """[(first, end)..] of n periods, the first one with the day; by the calendar alone."""
    date, found = datetime.date(1970, 1, 1) + datetime.timedelta(days=day), []
    for _ in range(n):
        first = {"day": date, "week": date - datetime.timedelta(days=date.weekday()), "month": date.replace(day=1)}[period]
        date = {"day": first + datetime.timedelta(days=1), "week": first + datetime.timedelta(days=7),
                "month": (first + datetime.timedelta(days=32)).replace(day=1)}[period]
        found.append(((first - datetime.date(1970, 1, 1)).days, (date - datetime.date(1970, 1, 1)).days))
    return found


def check_retention(http, model, chance, site, today):
    period = chance.choice(["day", "week", "month"])
    day, offsets, cohorts = today - chance.randrange(DAYS), chance.randrange(1, 9), chance.randrange(1, 6)
    action, back, within = chance.choice(ACTIONS[:3]), chance.choice([None, *ACTIONS[:4]]), chance.choice([None, 1, 6, 30, 90])

    def expected(from_day):
        there = [p for p in periods_of(period, from_day, offsets + 1) if p[0] <= today]
        size, returned = model.retention(site, action, there, offsets, back, within)
        return {"cohort": date_of(there[0][0]), "size": size, "returned": [
            {"offset": i + 1, "users": n, "rate": pytest.approx(n / size if size else 0, abs=1e-5)} for i, n in enumerate(returned)]}

    asked = {"return": back, "new_within": within and f"{within}d"}
    same = {"site": site, "action": action, "period": period, **{k: v for k, v in asked.items() if v}}
    assert http.question("/retention", cohort=date_of(day), days=offsets, **same) == {**same, **expected(day)}
    firsts = [p[0] for p in periods_of(period, day, cohorts) if p[0] <= today]
    assert http.question("/retention", cohort=date_of(day), days=offsets, cohorts=cohorts, **same) == {
        **same, "cohorts": [expected(first) for first in firsts]}


def check_histories(pair, model, chance, site, now_s):
    name = f"u{chance.getrandbits(30):x}"
    for round_ in range(2):
        events = history(chance, now_s, site, 1500, f"{name}-{round_}")
        for i in range(0, len(events), 300):
            chance.choice(pair).accept(events[i:i + 300])
        for event in events:
            model.add(event)
        assert chance.choice(pair).request("POST", "/rollup").status == 200
        today = model.day_of(site, now_s)
        for http in pair:
            for check in (check_funnel, check_frequency, check_min_days, check_dau, check_retention):
                for _ in range(12):
                    check(http, model, chance, site, today)


@pytest.mark.some(2)
@pytest.mark.parametrize("site", SITES)
def test_every_answer_is_the_models(redis, pair, model, chance, site):
    check_histories(pair, model, chance, site, int(redis.time()))


@pytest.mark.cluster
def test_every_answer_is_the_models_on_a_cluster(config, model, chance, cleanup):
    """Three primaries, two processes."""
    cluster = Cluster(primaries=3, replicas=0)
    cleanup.append(cluster.stop)
    cluster.start()
    pair = []
    for name in ("one", "two"):
        daemon = Tallyd("--config", config, "--partitions", "24", "--ack-replicas", "0", redis=cluster, name=name)
        cleanup.append(daemon.stop)
        pair.append(daemon.start().client())
    for site in SITES[:2]:
        check_histories(pair, model, chance, site, int(time.time()))


def test_steps_have_no_order(http, site):
    """The second step first, on another day: a funnel of days cannot tell, and says so."""
    now_s = int(epoch("2026-11-10"))
    answer = http.get("/funnel", site=site, step=["a", "b"])
    assert answer.status == 200 and answer.json["ordered"] is False
    http.accept([{"site": site, "page": "/", "user": "u", "ts": now_s + day * DAY_S, "actions": [action]}
                 for day, action in ((0, "b"), (1, "a"))])
    steps = http.question("/funnel", site=site, step=["a", "b", "a"], from_="2026-11-10", to="2026-11-12")["steps"]
    assert [(s["users"], s["rate"], s["step_rate"]) for s in steps] == [(1, 1, 1)] * 3
    steps = http.question("/funnel", site=site, step=["a", "b"], from_="2026-11-11", to="2026-11-12")["steps"]
    assert [(s["users"], s["rate"], s["step_rate"]) for s in steps] == [(1, 1, 1), (0, 0, 0)]


def test_new_is_what_the_days_before_say(http, site, redis):
    """The first day outside of new_within does not count any more."""
    today = int(redis.time()) // DAY_S
    http.accept([{"site": site, "page": "/", "user": "u", "ts": (today - back) * DAY_S} for back in (0, 7)])
    for within, new in ((6, 1), (7, 0), (8, 0)):
        assert http.question("/dau", site=site, new_within=f"{within}d")["new"] == new
        answer = http.question("/retention", site=site, cohort=date_of(today), new_within=f"{within}d")
        assert answer["size"] == new
    http.accept({"site": site, "page": "/", "user": "u", "ts": (today - 3) * DAY_S})  # late
    assert http.question("/dau", site=site, new_within="6d")["new"] == 0
    assert http.request("DELETE", f"/users/u?site={site}").status == 200
    http.accept({"site": site, "page": "/", "user": "u"})
    assert http.question("/dau", site=site, new_within="6d")["new"] == 1


@pytest.mark.parametrize("path, params, status, parameter", [
    ("/funnel", {}, 400, "step"), ("/funnel", {"step": ["a"]}, 400, "step"), ("/funnel", {"step": list("abcdefghi")}, 400, "step"),
    ("/funnel", {"step": ["a", "B"]}, 400, "step"), ("/funnel", {"step": ["a", "b"], "action": "c"}, 400, "action"),
    ("/funnel", {"step": list("abcd"), "from_": "2000-01-01", "to": "2010-01-01"}, 422, "from"),
    ("/funnel", {"step": ["a", "b"], "from_": "2010-01-01"}, 422, "from"),
    ("/frequency", {"action": ["a", "b"]}, 400, "action"), ("/frequency", {"from_": "2010-01-01"}, 422, "from"),
    ("/frequency", {"from_": "1970-01-01", "to": "2010-01-01"}, 422, "from"), ("/frequency", {"match": "all"}, 400, "match"),
    ("/active/users", {"min_days": "0"}, 400, "min_days"), ("/active/users", {"min_days": "11001"}, 400, "min_days"),
    ("/active", {"min_days": "2"}, 400, "min_days"),
    *(("/dau", {"new_within": text}, 400, "new_within") for text in ("90", "d", "0d", "-1d", "1.5d", "11001d", "9" * 30 + "d", "2w", "1dd", "+1d")),
    ("/dau", {"new_within": "11000d"}, 422, "new_within"), ("/dau", {"new_within": "2000d"}, 422, "new_within"),
    ("/dau", {"new_within": "90d", "date": "2010-01-01"}, 422, "date"), ("/dau", {"new_within": "90d", "from_": "2010-01-01"}, 422, "from"),
    ("/retention", {"cohort": "2026-11-01", "return": "A"}, 400, "return"), ("/retention", {"cohort": "2026-11-01", "return": ["a", "b"]}, 400, "return"),
    ("/retention", {"cohort": "2026-11-01", "new_within": "x"}, 400, "new_within"),
    ("/retention", {"cohort": "2026-11-01", "new_within": "11000d"}, 422, "cohorts"),
    ("/retention", {"cohort": "2026-11-01", "new_within": "2000d"}, 422, "new_within"),
    ("/retention", {"cohort": "2010-11-01", "new_within": "2d"}, 422, "cohort")])
def test_refusals_name_the_parameter(http, path, params, status, parameter):
    answer = http.get(path, **params)
    assert answer.status == status and answer.errors[0]["parameter"] == parameter, answer


@pytest.mark.parametrize("path, params, more, parameter", [
    ("/active", {"action": list("abcdefghij")}, {"action": list("abcdefghijk")}, "from"),
    ("/active/users", {"action": list("abcdefghij")}, {"action": list("abcdefghijk")}, "from"),
    ("/dau", {"new_within": "90d"}, {"new_within": "10000d"}, "new_within")])
def test_a_question_has_so_many_bitmaps(http, site, redis, path, params, more, parameter):
    """A day of each action is one, and so is a day on which new users must not have been."""
    today = int(redis.time()) // DAY_S
    window = {"site": site, "from_": date_of(today - 1000), "to": date_of(today + 1)}
    assert http.get(path, **window, **params).status == 200
    refused = http.get(path, **window, **more)
    assert refused.status == 422 and refused.errors[0]["parameter"] == parameter, refused
    assert "at most 11000 days" in refused.json["detail"], refused


def test_a_cursor_belongs_to_its_number_of_days(http, site, redis):
    today = int(redis.time()) // DAY_S
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "ts": (today - back) * DAY_S} for i in range(50) for back in (0, 1)])
    ask = {"site": site, "from_": date_of(today - 1), "to": date_of(today + 1), "limit": 7}
    cursor = http.question("/active/users", **ask, min_days=2)["next_cursor"]
    assert http.get("/active/users", **ask, min_days=2, cursor=cursor).status == 200
    for other in ({"min_days": 1}, {}):
        refused = http.get("/active/users", **ask, **other, cursor=cursor)
        assert refused.status == 400 and refused.errors[0]["parameter"] == "cursor"


QUESTIONS = [
    ("/funnel", {"step": ["active", "x", "y"], "from_": "now-9d"}, lambda a: [s["users"] for s in a["steps"]], [60, 30, 20]),
    ("/frequency", {"from_": "now-1d"}, lambda a: [d["users"] for d in a["days"]], [40, 20]),
    ("/dau", {"new_within": "1d"}, lambda a: (a["users"], a["new"]), (60, 40)),
    ("/active/users", {"from_": "now-1d", "min_days": 2}, lambda a: len(a["users"]), 20)]


def fill(http, site, today):
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "actions": (["x"] if i % 2 else []) + (["y"] if i % 3 else [])}
                 for i in range(60)])
    http.accept([{"site": site, "page": "/", "user": f"u{i}", "ts": (today - 1) * DAY_S} for i in range(20)])
    counted(http)


def is_reading(args):
    return args[0].upper() == b"GETRANGE"


@pytest.mark.parametrize("point", ["command-before", "reply-before", "reply-inside"])
@pytest.mark.parametrize("path, params, of, expected", QUESTIONS, ids=[q[0] for q in QUESTIONS])
def test_a_question_that_is_cut_is_asked_again(start_redis, start_proxy, start_tallyd, site, point, path, params, of, expected):
    """From its beginning: what was counted before the cut counts once."""
    redis = start_redis()
    proxy = start_proxy(redis)
    http = start_tallyd("--partitions", "4", redis=proxy).client()
    fill(http, site, int(redis.time()) // DAY_S)
    fault = proxy.arm(Fault(point, nth=5, match=is_reading))
    assert of(http.question(path, site=site, **params)) == expected
    assert fault.fired == 1


def keys_of(redis):
    """But for those that a process writes by itself: the lock's, the probe's, the rollups', and its list of hot pages."""
    return {k for k in redis.command("KEYS", "*") if k.rpartition(":")[2] not in ("lock", "fence", "probe", "pass") and ":hot:" not in k}


def test_each_bitmap_is_read_once(redis, http, site):
    """However many sets it belongs to, and however far back it is looked; and nothing is written."""
    today = int(redis.time()) // DAY_S
    fill(http, site, today)

    def calls(name):
        lines = redis.command("INFO", "commandstats").splitlines()
        return sum(int(line.split("calls=")[1].split(",")[0]) for line in lines if line.startswith(f"cmdstat_{name}:"))

    with_users = sum(1 for key in redis.command("KEYS", f"t:*:uid:{site}"))
    keys = keys_of(redis)
    for path, params, bitmaps in (
            ("/dau", {"from_": date_of(today - 29), "to": date_of(today + 1), "new_within": "90d"}, 30 + 90),
            ("/retention", {"cohort": date_of(today - 9), "days": 5, "cohorts": 5, "new_within": "20d"}, 20 + 10),
            ("/retention", {"cohort": date_of(today - 9), "days": 5, "cohorts": 5, "return": "x"}, 5 + 10),
            ("/funnel", {"step": ["x", "y", "x"], "from_": date_of(today - 9), "to": date_of(today + 1)}, 20),
            ("/frequency", {"from_": date_of(today - 9), "to": date_of(today + 1)}, 10)):
        before = calls("getrange")
        http.question(path, site=site, **params)
        assert calls("getrange") - before == bitmaps * with_users, (path, params)
    assert keys_of(redis) == keys


def test_days_that_are_swept_away(start_world, site):
    """An answer that needs them is none."""
    world = start_world("2026-03-01 10:00:10", "--partitions", "2", "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d")
    http, begin = world.http, epoch("2026-03-01") // DAY_S
    http.accept([{"site": site, "page": "/", "user": "u", "ts": (begin - back) * DAY_S} for back in (0, 31)])
    counted(http)
    assert http.question("/dau", site=site, new_within="31d")["new"] == 0
    world.move("2026-03-10 10:00:10")
    wait_until(lambda: len(world.redis.command("KEYS", f"t:*:act:{site}:*")) == 1, "the old day is swept away", deadline_s=30)
    for path, params in (("/dau", {"new_within": "33d"}), ("/retention", {"cohort": date_of(begin), "new_within": "31d"})):
        refused = http.get(path, site=site, **params)
        assert refused.status == 422 and refused.errors[0]["parameter"] == "new_within", refused
        assert date_of(begin - 23) in refused.errors[0]["detail"]
    assert http.question("/dau", site=site, date=date_of(begin), new_within="23d")["new"] == 1
    assert http.get("/frequency", site=site, from_=date_of(begin - 31)).status == 422


# More users than one piece of a bitmap has: straight into Redis, as sets of bits in whole numbers

CROWD = 1_048_576 + 70_003  # in one partition


def crowded(redis, site, today, chance, days):
    """{(action, day): bits}, the first user's bit the greatest."""
    n_bytes = (CROWD + 7) // 8
    everybody = (1 << 8 * n_bytes) - (1 << 8 * n_bytes - CROWD)
    bits = {}
    with redis.connect() as connection:
        connection.command("HSET", f"t:{{0}}:uid:{site}", "", CROWD)
        for back in range(days):
            for action in ("active", "x"):
                value = chance.getrandbits(8 * n_bytes) & chance.getrandbits(8 * n_bytes) & everybody
                name = f"{site}:{action}:{date_of(today - back).replace('-', '')}"
                connection.command("SET", f"t:{{0}}:act:{name}", value.to_bytes(n_bytes, "big"))
                connection.command("ZADD", "t:{0}:acts", today - back, name)
                bits[action, today - back] = value
    return bits


def union(bits, action, first, end):
    found = 0
    for day in range(first, end):
        found |= bits.get((action, day), 0)
    return found


def test_more_users_than_a_piece_has(start_redis, start_tallyd, site, chance):
    redis = start_redis()
    http = start_tallyd("--partitions", "1", redis=redis).client()
    http.accept({"site": "another", "page": "/", "user": "u"})
    today = int(redis.time()) // DAY_S
    bits = crowded(redis, site, today, chance, 6)
    first, window = today - 5, {"site": site, "from_": date_of(today - 5), "to": date_of(today + 1)}

    def size(value):
        return bin(value).count("1")

    active, x = (union(bits, action, first, today + 1) for action in ("active", "x"))
    steps = http.question("/funnel", step=["active", "x"], **window)["steps"]
    assert [step["users"] for step in steps] == [size(active), size(active & x)]

    on = [active] + [0] * 6  # on[n]: the users of n days
    for day in range(first, today + 1):
        there = bits["active", day]
        on = [on[n] & ~there | (on[n - 1] & there if n else 0) for n in range(7)]
    assert [d["users"] for d in http.question("/frequency", **window)["days"]] == [size(users) for users in on[1:]]

    # many sets: shorter pieces
    days = http.question("/dau", site=site, new_within="2d", from_=date_of(today - 400), to=date_of(today + 1))["series"]
    assert [(d["users"], d["new"]) for d in days] == [
        (size(bits.get(("active", day), 0)), size(bits.get(("active", day), 0) & ~union(bits, "active", day - 2, day)))
        for day in range(today - 400, today + 1)]

    answer = http.question("/retention", site=site, cohort=date_of(first + 1), days=4, new_within="1d", **{"return": "x"})
    cohort = bits["active", first + 1] & ~bits["active", first]
    assert (answer["size"], [r["users"] for r in answer["returned"]]) == (
        size(cohort), [size(cohort & bits["x", day]) for day in range(first + 2, today + 1)])

    # one who came every day, the last of all, has a name
    for day in range(first, today + 1):
        redis.command("SETBIT", f"t:{{0}}:act:{site}:active:{date_of(day).replace('-', '')}", CROWD - 1, 1)
    redis.command("RPUSH", f"t:{{0}}:ids:{site}:{(CROWD - 1) // 128}", *([""] * ((CROWD - 1) % 128)), "the last")
    assert http.question("/active/users", min_days=6, **window)["users"] == ["the last"]
