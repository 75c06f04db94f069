"""--keep-* in unusual orders and at unusual times."""

import time

from lib.clock import rfc3339
from lib.waiting import wait_until

FEW = ("--partitions", "4")
DAY_S = 86400


def day_of(at_s):
    begin = at_s // DAY_S * DAY_S
    return {"from_": rfc3339(begin), "to": rfc3339(begin + DAY_S)}


def test_days_kept_longer_than_months(start_tallyd, site):
    """An event that any level still keeps is accepted and counted; one older than that is rejected."""
    tallyd = start_tallyd(*FEW, "--keep-months", "366d", "--keep-days", "1100d")
    http, now = tallyd.client(), int(time.time())
    for days in (200, 365, 367, 500, 1099):
        at = now - days * DAY_S
        http.accept({"site": site, "page": f"/{days}", "user": days, "ip": "192.0.2.1", "ts": at})
        for metric in ("pv", "uv", "ips", "visits"):
            for page in (None, f"/{days}"):
                assert http.count(metric, site=site, page=page, **day_of(at)) == 1, f"{metric}, {days} days old"
    answer = http.post([{"site": site, "page": f"/{days}", "ts": now - days * DAY_S} for days in (1102, 1500, 9000)])
    assert answer.status == 422 and len(answer.errors) == 3, answer
    assert [e["pointer"] for e in answer.errors] == ["/ts"] * 3
    assert http.count("pv", site=site, from_=rfc3339(now - 600 * DAY_S)[:10], to=rfc3339(now)[:10]) == 4


def test_what_was_gone_does_not_come_back(start_redis, start_tallyd, site):
    """Where more is kept from now on: what no bucket would count is rejected, and the rest is counted."""
    redis = start_redis()
    before = start_tallyd(*FEW, "--keep-days", "366d", "--keep-months", "366d", redis=redis, name="before")
    now = int(time.time())
    before.client().accept({"site": site, "page": "/", "ts": now - 200 * DAY_S})
    before.terminate()
    for months in ("800d", "forever"):
        tallyd = start_tallyd(*FEW, "--keep-days", "800d", "--keep-months", months, redis=redis, name=months)
        http = tallyd.client()
        answer = http.post([{"site": site, "ts": now - days * DAY_S, "page": "/"} for days in (400, 500, 799)])
        assert answer.status == 422 and [e["pointer"] for e in answer.errors] == ["/ts"] * 3, answer
        http.accept({"site": site, "page": "/", "ts": now - 300 * DAY_S})
        tallyd.terminate()
    http = start_tallyd(*FEW, "--keep-days", "800d", "--keep-months", "forever", redis=redis, name="after").client()
    for days, n in ((200, 1), (300, 2)):
        assert http.count("pv", site=site, **day_of(now - days * DAY_S)) == n


def test_settings_that_come_back_are_replaced_again(start_redis, start_tallyd, site):
    """Redis lost its last writes (restored from a copy, a replica promoted): there again is what this process found and
    replaced when it started."""
    redis = start_redis()
    before = start_tallyd(*FEW, redis=redis, name="before")
    before.client().accept({"site": site, "page": "/"})
    states = redis.command("KEYS", "t:*:state")
    assert len(states) == 4
    found = {key: redis.command("HGET", key, "cfg") for key in states}
    before.terminate()
    http = start_tallyd(*FEW, "--keep-minutes", "72h", "--request-timeout", "3s", redis=redis).client()
    http.accept({"site": site, "page": "/"})
    own = {key: redis.command("HGET", key, "cfg") for key in states}
    assert all(own[key] != found[key] for key in states)
    for n in range(3):
        for key, cfg in found.items():
            redis.command("HSET", key, "cfg", cfg)
            redis.command("HDEL", key, "kept")
        statuses = []

        def accepted(statuses=statuses):
            statuses.append(http.post({"site": site, "page": f"/back/{len(statuses)}"}).status)
            return statuses[-1] == 202

        wait_until(accepted, f"it serves again: {statuses}", deadline_s=5)
        assert set(statuses) <= {202, 503, 504}
        if n == 0:  # all partitions, also those that this event does not touch
            wait_until(lambda: {key: redis.command("HGET", key, "cfg") for key in states} == own,
                       "its settings are there")
        assert http.count("pv", site=site, page=f"/back/{len(statuses) - 1}", from_="now-1h") >= 1
    wait_until(lambda: http.get("/readyz").status == 200, "it is ready: other partitions' settings took a connection each")
    assert http.count("pv", site=site, page="/", from_="now-1h") == 2


def test_a_users_days_of_which_none_is_kept(start_redis, start_tallyd, site):
    """Without a beginning what is kept of the days is asked for: of a year that is long gone that is nothing."""
    http = start_tallyd(*FEW, "--keep-days", "100d", redis=start_redis()).client()
    http.accept({"site": site, "page": "/", "user": "u"})
    for to in ("1970-01-02", "1999-12-31", "2020-01-01"):
        answer = http.question("/users/u/activity", site=site, to=to)
        assert (answer["days"], answer["active_days"], answer["from"], answer["to"]) == ([], 0, to, to)
    assert http.question("/users/u/activity", site=site)["active_days"] == 1
