"""Rollups that take longer than the lease of who does them."""

import time

from lib.clock import FakeClock
from lib.process import short_directory
from lib.waiting import wait_until

LEASE_S = 10
ONE = ("--partitions", "1")
DELAY_S = 0.2
PAGES = 1500  # merged in chunks of at most 64, for views and for visits

HOUR = {"from_": "2026-03-10T10:00:00Z", "to": "2026-03-10T11:00:00Z"}


def test_a_pass_longer_than_the_lease_is_finished(start_redis, start_proxy, start_tallyd, cleanup, site):
    """Redis is far away (slow replies), and an hour has many pages.  Who rolls it up keeps the lease from step to step;
    the other process does not take the pass from it, which would then be done again and again and never end.  (Slow:
    the pass must outlive the lease of 10 s.)"""
    directory = short_directory()
    clock = FakeClock(directory, "2026-03-10 10:58:10")
    redis = start_redis(directory, clock=clock)
    proxy = start_proxy(redis)
    both = [start_tallyd(*ONE, redis=proxy, name=f"tallyd{i}") for i in range(2)]
    clients = [tallyd.client() for tallyd in both]
    clients[0].accept([{"site": site, "page": f"/{i}", "user": i} for i in range(PAGES)])
    assert clients[0].count("pv", site=site, from_="now-1h") == PAGES  # a fold behind the pass would leave it little to do
    state = redis.command("KEYS", "t:*:state")[0]
    of_pass = state.replace(":state", ":pass")
    cleanup.append(lambda: setattr(proxy, "delay_s", 0))  # the processes stop at once
    with redis.connect() as connection:

        def field(name):
            return connection.command("HGET", state if name == "st" else of_pass, name)

        watermarks, token, fence = field("st"), int(field("ftok") or 0), field("ftok")
        proxy.delay_s = DELAY_S
        clock.set("2026-03-10 11:01")
        for http in clients:  # each answer of Redis brings the time
            http.accept({"site": site, "page": "/x"})
        wait_until(lambda: field("pass"), "a pass begins")
        begin = time.monotonic()
        wait_until(lambda: field("pass") is None, "the pass is finished", deadline_s=60, pause_s=0.05)
        took = time.monotonic() - begin
        assert took > LEASE_S, f"{took}: too short a pass to show anything"
        assert field("st") != watermarks
        assert int(field("ftok")) - token <= 2, f"taken over again and again: {fence} -> {field('ftok')}"
    proxy.delay_s = 0
    for http in clients:
        wait_until(lambda h=http: h.question("/uv", site=site, **HOUR)["cover"]["hour"] == 1,
                   "the hour is answered as one")
        for page in (0, PAGES // 2, PAGES - 1):
            for metric in ("pv", "uv", "visits"):
                assert http.count(metric, site=site, page=f"/{page}", **HOUR) == 1
