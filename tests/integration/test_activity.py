"""Exact activity: every answer is the naive model's, whoever wrote and in whatever order."""

import calendar
import re
import threading
import time

import pytest

from lib.activity import DAY_S, ActivityModel, date_of, indices, pages, streaks
from lib.client import JSON
from lib.log import counted

ACTIONS = ["checkin", "buy", "a.b:c_d-e"]
# one user each, also those that look alike
USERS = [0, 7, "7a", 2**63, -2**63, 2**64 - 1, "", "user", "Ü-ñ/ø?&%", "a:b", "{x}", "u" * 256, "-0", "active", "checkin"]


@pytest.fixture(scope="module")
def other(redis):
    from lib.process import Tallyd
    daemon = Tallyd(redis=redis, name="other")
    try:
        yield daemon.start()
    finally:
        daemon.stop()


@pytest.fixture
def today(redis):
    return int(redis.time()) // DAY_S


def random_events(chance, site, today, n, users=300, days=40):
    """Events of some weeks, in any order; some without a user."""
    events = []
    names = [u for u in USERS if u != ""] + [f"user-{i}" for i in range(users)]
    for _ in range(n):
        event = {"site": site, "page": f"/{chance.randrange(5)}", "ts": (today - int(days * chance.random() ** 2)) * DAY_S}
        event["ts"] += chance.randrange(60) if event["ts"] // DAY_S == today else chance.randrange(DAY_S)
        if chance.random() < 0.9:
            event["user"] = names[int(len(names) * chance.random() ** 2)]
        else:
            event["ip"] = "192.0.2.1"
        if chance.random() < 0.4:
            event["actions"] = chance.choices([*ACTIONS, "active"], k=chance.randrange(1, 4))
        events.append(event)
    return events


def post(clients, chance, events, model):
    """In batches of any size, over several processes."""
    i = 0
    while i < len(events):
        n = chance.choice([1, 2, 30, 400])
        chance.choice(clients).accept(events[i:i + n])
        i += n
    for event in events:
        model.add(event)


def check_counts(http, model, chance, site, today):
    for _ in range(40):
        first, end = sorted(chance.sample(range(today - 42, today + 2), 2))
        if chance.random() < 0.5:
            end = min(first + chance.randrange(1, 4), end)
        actions = chance.sample(["active", *ACTIONS, "never"], chance.choice([1, 1, 2]))
        for match in ("any", "all"):
            expected = model.who(site, actions, first, end, match)
            params = {"from_": date_of(first), "to": date_of(end), "match": match, "action": actions}
            answer = http.question("/active", site=site, **params)
            assert answer == {"site": site, "actions": actions, "match": match, "from": date_of(first), "to": date_of(end),
                              "users": len(expected)}
            found = pages(http, site, chance.choice([1, 7, 1000]) if len(expected) < 50 else 50, **params)
            assert len(found) == len(set(found)) and set(found) == expected
        series = http.question("/dau", site=site, action=actions[0], from_=date_of(first), to=date_of(end))["series"]
        assert series == [{"date": date_of(day), "users": len(model.on(site, actions[0], day))} for day in range(first, end)]
    assert http.question("/dau", site=site, date=date_of(today)) == {
        "site": site, "date": date_of(today), "action": "active", "users": len(model.on(site, "active", today))}


def check_days(http, model, chance, site, today):
    import urllib.parse
    for user in [*(str(u) for u in USERS if u != ""), "user-0", "user-250", "nobody"]:
        first, end = sorted(chance.sample(range(today - 42, today + 2), 2))
        end = min(end, today + 1)
        first = min(first, end - 1)
        action = chance.choice(["active", *ACTIONS])
        path = f"/users/{urllib.parse.quote(user, safe='')}/activity"
        answer = http.question(path, site=site, action=action, from_=date_of(first), to=date_of(end))
        days = model.days(site, user, action, first, end)
        longest, current = streaks(days, end - 1)
        assert answer == {"site": site, "user": user, "action": action, "from": date_of(first), "to": date_of(end),
                          "days": [date_of(day) for day in days], "active_days": len(days),
                          "current_streak": current, "longest_streak": longest}
        assert http.question(path, site=site)["active_days"] == len(model.days(site, user, "active", 0, today + 2))


def test_every_answer_is_the_models(tallyd, other, chance, site, today):
    model = ActivityModel()
    clients = [tallyd.client(), other.client()]
    for n in (50, 3000):
        post(clients, chance, random_events(chance, site, today, n), model)
        post(clients, chance, random_events(chance, site + "-b", today, 50), model)
        for http in clients:
            check_counts(http, model, chance, site, today)
            check_days(http, model, chance, site, today)


def periods_from(period, day, n):
    """[(first, end)..] of n periods, the first one with the day."""
    import datetime
    date = datetime.date.fromisoformat(date_of(day))
    found = []
    for _ in range(n):
        if period == "day":
            first, after = date, date + datetime.timedelta(days=1)
        elif period == "week":
            first = date - datetime.timedelta(days=date.weekday())
            after = first + datetime.timedelta(days=7)
        else:
            first = date.replace(day=1)
            after = (first + datetime.timedelta(days=32)).replace(day=1)
        found.append(tuple(int((d - datetime.date(1970, 1, 1)).days) for d in (first, after)))
        date = after
    return found


@pytest.mark.parametrize("period, days", [("day", 40), ("week", 60), ("month", 150)])
def test_retention_is_the_models(http, chance, site, today, period, days):
    model = ActivityModel()
    post([http], chance, random_events(chance, site, today, 4000, users=150, days=days), model)
    for _ in range(6):
        day = today - chance.randrange(days)
        n, k = chance.randrange(1, 12), chance.randrange(1, 12)
        action = chance.choice(["active", "checkin"])

        def expected(from_day):
            periods = [p for p in periods_from(period, from_day, n + 1) if p[0] <= today]
            size, returned = model.retention(site, action, periods, n)
            return {"cohort": date_of(periods[0][0]), "size": size, "returned": [
                {"offset": i + 1, "users": users, "rate": pytest.approx(users / size if size else 0, abs=1e-5)}
                for i, users in enumerate(returned)]}

        question = {"site": site, "cohort": date_of(day), "days": n, "period": period, "action": action}
        same = {"site": site, "action": action, "period": period}
        assert http.question("/retention", **question) == {**same, **expected(day)}
        cohorts = [p[0] for p in periods_from(period, day, k) if p[0] <= today]
        assert http.question("/retention", cohorts=k, **question) == {**same, "cohorts": [expected(c) for c in cohorts]}


def test_a_cohort_in_the_future(http, site, today):
    http.accept({"page": "/", "user": "u", "site": site})
    assert http.question("/retention", site=site, cohort=date_of(today + 40), days=3) == {
        "site": site, "action": "active", "period": "day", "cohort": date_of(today + 40), "size": 0, "returned": []}


def test_one_user_however_written(http, site, today):
    """42 and "42" are one user; it is not another site's, and -0 is 0."""
    http.post('[{"page":"/","user":42,"site":"%s"},{"page":"/","user":"42","site":"%s"},'
              '{"page":"/","user":-0,"site":"%s"},{"page":"/","user":0,"site":"%s"}]' % ((site,) * 4), JSON)
    assert http.question("/dau", site=site)["users"] == 2
    assert sorted(http.question("/active/users", site=site)["users"]) == ["0", "42"]
    assert http.question("/dau", site=site + "x")["users"] == 0


def test_actions_older_than_the_days_that_are_kept(http, site):
    """Actions alone count by day and nowhere else: what is accepted is counted."""
    told = http.get("/users/u/activity", site=site, from_="2020-01-01", to="now").json["detail"]
    first = re.search(r"days before (\d{4}-\d\d-\d\d)", told)[1]
    begin = calendar.timegm(time.strptime(first, "%Y-%m-%d"))
    event = {"site": site, "user": "u", "actions": ["checkin"]}
    answer = http.post([{**event, "ts": begin}, {**event, "ts": begin - 1}, {**event, "page": "/", "ts": begin - 1}])
    assert (answer.status, answer.json["accepted"], answer.json["rejected"]) == (202, 2, 1)
    assert answer.json["errors"][0]["index"] == 1 and answer.json["errors"][0]["pointer"] == "/ts"
    assert http.question("/users/u/activity", site=site, action="checkin", from_=first, to="now")["days"] == [first]


def test_actions_of_the_first_day_that_is_kept_beside_another_zone(start_redis, start_tallyd, directory):
    """In another site's zone the day before is not kept any more: its midnight was within the hour."""
    hour, config = int(time.time()) // 3600 % 24, directory / "tallyd.conf"
    directory.mkdir(exist_ok=True)
    config.write_text(f"site.other.tz = Etc/GMT{f'+{hour}' if hour <= 12 else f'-{24 - hour}'}\n")
    http = start_tallyd("--config", config, "--keep-days", "100d", redis=start_redis()).client()
    told = http.get("/users/u/activity", from_="2020-01-01", to="now").json["detail"]
    first = re.search(r"days before (\d{4}-\d\d-\d\d)", told)[1]
    begin = calendar.timegm(time.strptime(first, "%Y-%m-%d"))
    event = {"user": "u", "actions": ["checkin"]}
    answer = http.post([{**event, "ts": begin}, {**event, "ts": begin - 1}])
    assert (answer.json["accepted"], [error["index"] for error in answer.json["errors"]]) == (1, [1])
    assert http.question("/users/u/activity", action="checkin", from_=first, to="now")["days"] == [first]


def test_a_user_never_seen(http, site):
    answer = http.question("/users/nobody/activity", site=site, from_="2026-01-01", to="2026-01-03")
    assert answer == {"site": site, "user": "nobody", "action": "active", "from": "2026-01-01", "to": "2026-01-03",
                      "days": [], "active_days": 0, "current_streak": 0, "longest_streak": 0}
    assert http.question("/active/users", site=site)["users"] == []


def test_streaks(http, site, today):
    """It ends on the window's last day or the day before."""
    for back in (9, 8, 7, 4, 3, 2, 1):
        http.accept({"page": "/", "user": "s", "site": site, "ts": (today - back) * DAY_S})

    def ask(end):
        answer = http.question("/users/s/activity", site=site, from_=date_of(today - 9), to=date_of(end))
        return answer["longest_streak"], answer["current_streak"]

    assert ask(today + 1) == (4, 4)  # nothing yet today
    assert ask(today + 30) == (4, 4)
    assert ask(today) == (4, 4)
    assert ask(today - 5) == (3, 3)  # the last day is free, the one before is not
    assert ask(today - 4) == (3, 0)
    http.accept({"page": "/", "user": "s", "site": site})
    assert ask(today + 1) == (5, 5)


def test_a_streak_goes_on_on_days_ahead(start_tallyd, redis, site, today):
    """A clock may be ahead of Redis's: a day that is still to come makes a streak longer, and ends none."""
    http = start_tallyd("--max-future", "1d", redis=redis).client()
    for ahead in (-1, 0, 1):
        http.accept({"page": "/", "user": "s", "site": site, "ts": (today + ahead) * DAY_S})
    answer = http.question("/users/s/activity", site=site, from_=date_of(today - 5), to=date_of(today + 5))
    assert (answer["active_days"], answer["longest_streak"], answer["current_streak"]) == (3, 3, 2)
    answer = http.question("/users/s/activity", site=site, from_=date_of(today + 3), to=date_of(today + 5))
    assert (answer["days"], answer["longest_streak"], answer["current_streak"]) == ([], 0, 0)


def test_times_stand_for_the_days_that_they_touch(http, site, today):
    http.accept([{"page": "/", "user": i, "site": site, "ts": (today - i) * DAY_S} for i in range(10)])
    question = http.question("/active", site=site, from_="now-3d", to="now")
    assert (question["from"], question["to"], question["users"]) == (date_of(today - 3), date_of(today + 1), 4)
    question = http.question("/active", site=site, from_=f"{date_of(today - 3)}T23:59:00Z", to=f"{date_of(today - 1)}T00:00:00Z")
    assert (question["from"], question["to"], question["users"]) == (date_of(today - 3), date_of(today - 1), 2)
    question = http.question("/active", site=site, from_="now/d-1d", to=f"{date_of(today)}T00:01:00Z")
    assert (question["from"], question["to"], question["users"]) == (date_of(today - 1), date_of(today + 1), 2)


def test_pages_are_stable_while_events_come_in(tallyd, other, site, today, chance):
    """Who is there all the while comes exactly once."""
    http = tallyd.client()
    there = {f"old-{i}" for i in range(700)}
    http.accept([{"page": "/", "user": u, "site": site} for u in sorted(there)])
    stop = threading.Event()

    def newcomers():
        client = other.client()
        for i in range(400):  # more would grow faster than small pages are read
            if stop.is_set():
                break
            client.accept([{"page": "/", "user": f"new-{i}-{k}", "site": site} for k in range(20)])

    thread = threading.Thread(target=newcomers)
    thread.start()
    try:
        for _ in range(5):
            found = pages(http, site, chance.choice([10, 33, 200]), from_=date_of(today - 1), to=date_of(today + 1))
            assert len(found) == len(set(found))
            assert there <= set(found)
    finally:
        stop.set()
        thread.join()


def test_a_cursor_belongs_to_its_question(http, site, today):
    """With one of another site, users would be passed by without a word."""
    for name in (site, site[:60] + "-2"):
        http.accept([{"page": "/", "user": f"u{i}", "site": name, "actions": ["a", "b"]} for i in range(50)])
    ask = {"site": site, "action": ["a", "b"], "match": "all", "limit": 7}
    cursor = http.question("/active/users", **ask)["next_cursor"]
    for other in ({"site": site[:60] + "-2"}, {"match": "any"}, {"action": "a"}, {"action": ["a", "b", "active"]}):
        refused = http.get("/active/users", **{**ask, **other}, cursor=cursor)
        assert refused.status == 400 and refused.errors[0]["parameter"] == "cursor", other
    for same in ({}, {"action": ["b", "a"]}, {"from_": date_of(today - 1), "to": date_of(today + 1)}, {"limit": 1}):
        assert http.get("/active/users", **{**ask, **same}, cursor=cursor).status == 200, same
    for number in (f"0{cursor}", cursor.replace(".", ".0", 1)):  # as no answer writes it
        assert http.get("/active/users", **ask, cursor=number).status == 400, number


# Indices


def check_indices(redis, site, dense=True):
    found = indices(redis, site)
    assert found, "nothing is counted"
    for users, back, following in found.values():
        assert len(set(users.values())) == len(users)
        assert {index: user for user, index in users.items()} == back
        if dense:
            assert sorted(back) == list(range(following))
        else:
            assert all(index < following for index in back)


def test_one_index_a_user_over_several_processes(redis, tallyd, other, site):
    """Many writers meet the same new users at once: each gets one index, dense, never two."""
    users = [f"racer-{i}" for i in range(400)]
    clients = [(tallyd if i % 2 else other).client() for i in range(6)]

    def write(client, number):
        for k in range(12):
            batch = users[k * 30:(k + 1) * 30 + 40]
            client.accept([{"page": "/", "user": u, "site": site, "actions": [f"a{number}"]} for u in batch])

    threads = [threading.Thread(target=write, args=(c, i)) for i, c in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clients[0].question("/dau", site=site)["users"] == 400
    check_indices(redis, site)
    for number in range(6):
        assert clients[0].question("/dau", site=site, action=f"a{number}")["users"] == 400


def test_bitmaps_do_not_grow_from_hostile_ids(redis, http, site, today):
    """2^63 costs what 7 costs: bits are by index, not by name."""
    http.accept([{"page": "/", "user": u, "site": site} for u in
                 [2**64 - 1 - i for i in range(300)] + [-2**63 + i for i in range(300)] + ["z" * 256] + list(range(300))])
    counted(http)
    with redis.connect() as connection:
        lengths = [connection.command("STRLEN", key) for key in connection.command("KEYS", f"t:*:act:{site}:*")]
    assert 901 / 8 <= sum(lengths) <= 901 / 8 + 16 and http.question("/dau", site=site)["users"] == 901


def test_what_is_known_is_not_sent_again(redis, http, site):
    """A second event of the same users and day asks for no name and sets no bit."""
    events = [{"page": "/", "user": f"k{i}", "site": site} for i in range(200)]
    http.accept(events)
    counted(http)

    def calls():
        stats = {line.split(":")[0]: int(line.split("calls=")[1].split(",")[0])
                 for line in redis.command("INFO", "commandstats").splitlines() if "calls=" in line}
        return stats.get("cmdstat_bitfield", 0)

    before = calls()
    http.accept(events)
    counted(http)
    assert calls() == before
    http.accept([{**e, "actions": ["more"]} for e in events])
    counted(http)
    assert before < calls() <= before + 16 and http.question("/dau", site=site, action="more")["users"] == 200
    check_indices(redis, site)


# Forgetting


def test_forgetting_a_user(redis, tallyd, other, site, today):
    """Gone from every answer; the name may come again, as somebody new, through any process."""
    one, two = tallyd.client(), other.client()
    for client in (one, two):  # both know the index
        client.accept([{"page": "/", "user": u, "site": site, "actions": ["checkin"], "ts": (today - back) * DAY_S}
                       for u in ("a", "b", "ü/x") for back in (3, 2, 1, 0)])
    answer = one.request("DELETE", f"/users/a?site={site}")
    assert answer.status == 200 and answer.json["forgotten"] is True and answer.json["bits_cleared"] == 8
    assert {r["what"] for r in answer.json["remains"]} == {"pv", "uv", "seen", "visits"}
    for client in (one, two):
        assert client.question("/users/a/activity", site=site)["active_days"] == 0
        assert sorted(client.question("/active/users", site=site)["users"]) == ["b", "ü/x"]
        assert [d["users"] for d in client.question("/dau", site=site, from_=date_of(today - 3), to=date_of(today + 1))["series"]
                ] == [2] * 4
    answer = two.request("DELETE", f"/users/a?site={site}")
    assert answer.status == 200 and (answer.json["forgotten"], answer.json["bits_cleared"]) == (False, 0)
    for client in (two, one):
        client.accept({"page": "/", "user": "a", "site": site})
    for client in (one, two):
        assert client.question("/users/a/activity", site=site)["days"] == [date_of(today)]
        assert client.question("/dau", site=site)["users"] == 3
        assert client.question("/dau", site=site, date=date_of(today - 1))["users"] == 2
    check_indices(redis, site, dense=False)
    assert one.request("DELETE", f"/users/%C3%BC%2Fx?site={site}").json["bits_cleared"] == 8
    assert redis.command("KEYS", "t:*:gone") == []


def test_forgetting_a_user_whose_visit_is_open(http, redis, site):
    """What Redis remembers of the visit has the index that was taken away."""
    def comes_again(times=3):  # from the second time on the fold takes the index from there
        for _ in range(times):
            http.accept({"page": "/", "user": "a", "site": site})
            assert http.question("/dau", site=site)["users"] == 1

    comes_again()
    assert http.request("DELETE", f"/users/a?site={site}").json["forgotten"] is True
    assert http.question("/dau", site=site)["users"] == 0
    comes_again()
    assert http.question("/visits", site=site)["visits"] == 1
    check_indices(redis, site, dense=False)


def test_forgetting_leaves_the_other_sites_user(http, site):
    for s in (site, site + "-x", site + "x"):
        http.accept({"page": "/", "user": "a", "site": s})
    assert http.request("DELETE", f"/users/a?site={site}").json["bits_cleared"] == 1
    assert [http.question("/dau", site=s)["users"] for s in (site, site + "-x", site + "x")] == [0, 1, 1]


def test_forgetting_against_writers(start_redis, start_tallyd, site):
    """While two processes write the user's events, it is forgotten again and again: what an index is and whose,
    stays true all the while."""
    redis = start_redis(appendonly=True)  # it loses nothing, so a deletion does not wait
    tallyd, other = (start_tallyd(redis=redis, name=name) for name in ("one", "two"))
    stop = threading.Event()
    errors = []

    def write(daemon):
        client = daemon.client()
        while not stop.is_set():
            response = client.post([{"page": "/", "user": u, "site": site} for u in ("x", "y")])
            if response.status != 202:
                errors.append(response)

    threads = [threading.Thread(target=write, args=(d,)) for d in (tallyd, other)]
    for thread in threads:
        thread.start()
    http = tallyd.client()
    for _ in range(60):
        assert http.request("DELETE", f"/users/x?site={site}").status == 200
    stop.set()
    for thread in threads:
        thread.join()
    assert not errors
    counted(http)
    check_indices(redis, site, dense=False)
    http.accept([{"page": "/", "user": u, "site": site} for u in ("x", "y")])
    assert http.question("/dau", site=site)["users"] == 2  # no bit without a name
    assert sorted(http.question("/active/users", site=site)["users"]) == ["x", "y"]
