"""Events ahead of the clock.  Readers take it that nothing lies far ahead; how far must be the same for all."""

import pytest

from lib.clock import FakeClock, epoch, rfc3339
from lib.process import short_directory
from lib.world import FOREVER

FEW = ("--partitions", "4")
DAY_S = 86400


@pytest.mark.some(1)
@pytest.mark.parametrize("now", ["2026-03-10 10:30:10", "2026-03-31 10:30:10"], ids=["month", "next month"])
def test_an_event_a_day_ahead_is_seen_by_every_process(start_redis, start_tallyd, site, now):
    """Also by one that would not have accepted it; also when the clock is set back by an hour."""
    directory = short_directory()
    clock = FakeClock(directory, now)
    redis = start_redis(directory, clock=clock)
    writer = start_tallyd(*FEW, "--max-future", "1d", redis=redis, name="writer").client()
    other = start_tallyd(*FEW, redis=redis, name="other").client()
    at = epoch(now) + DAY_S - 70
    ahead = {"site": site, "page": "/ahead", "user": "u", "ip": "192.0.2.1", "ts": at}
    assert other.post(ahead).status == 422
    writer.accept(ahead)
    minute, day = at // 60 * 60, at // DAY_S * DAY_S
    month = "2026-04-01" if "03-31" in now else "2026-03-01"
    windows = [(minute, minute + 60), (at // 3600 * 3600, at // 3600 * 3600 + 3600), (day, day + DAY_S),
               (epoch(now) // 60 * 60 - 3600, minute + 60), (day, day + 10 * DAY_S),
               (epoch(month), epoch(month) + 40 * DAY_S), (epoch("2026-03-01"), epoch("2026-06-01"))]

    def check():
        for name, http in (("writer", writer), ("other", other)):
            for from_s, to_s in windows:
                for page in (None, "/ahead"):
                    for metric in ("pv", "uv", "ips", "visits"):
                        got = http.question("/" + metric, site=site, page=page, from_=rfc3339(from_s), to=rfc3339(to_s))
                        assert got[metric] == 1, f"{name}: {metric} of {page} {rfc3339(from_s)}..{rfc3339(to_s)}: {got}"

    check()
    clock.set_back(3600)
    for http in (writer, other):  # each answer of Redis brings the time
        http.accept({"site": site + "-2", "page": "/"})
        assert epoch(http.question("/pv", site=site, from_="now-1m")["to"]) < epoch(now)
    check()


@pytest.mark.some(1)
@pytest.mark.parametrize("days", [2, 20])
def test_a_clock_that_was_days_ahead(start_redis, start_tallyd, site, days):
    """What was counted while it was wrong is in each answer whose window has it, also when it was set right: from processes
    that were there, and from one that was not."""
    directory = short_directory()
    right = epoch("2026-03-10 10:30:10")
    wrong = right + days * DAY_S
    clock = FakeClock(directory, wrong)
    redis = start_redis(directory, clock=clock)
    clients = [start_tallyd(*FEW, *FOREVER, redis=redis, name=name).client() for name in ("writer", "idle")]
    windows = [(wrong // 60 * 60, wrong // 60 * 60 + 120), (wrong // DAY_S * DAY_S, wrong // DAY_S * DAY_S + DAY_S),
               (right // DAY_S * DAY_S, wrong // DAY_S * DAY_S + DAY_S)]

    def check(*expected):
        for http in clients:
            for (from_s, to_s), n in zip(windows, expected):
                for metric in ("pv", "uv", "visits"):
                    got = http.question("/" + metric, site=site, from_=rfc3339(from_s), to=rfc3339(to_s))
                    assert got[metric] == n, f"{metric} {rfc3339(from_s)}..{rfc3339(to_s)}: {got}"

    clients[0].accept({"site": site, "page": "/", "user": "u"})
    check(1, 1, 1)
    clock.set_back(days * DAY_S)
    clients[0].accept({"site": site, "page": "/", "user": "w", "ts": right})
    check(1, 1, 2)
    clients.append(start_tallyd(*FEW, *FOREVER, redis=redis, name="new").client())
    check(1, 1, 2)


def tiles(items, from_s, to_s):
    """The buckets of one page are disjoint and make up the window."""
    at = from_s
    for item in items:
        assert epoch(item["from"]) == at, item
        at = epoch(item["to"])
    assert at == to_s


@pytest.mark.some(2)
@pytest.mark.parametrize("days", [1, 3, 20, 34])
def test_a_cover_tells_the_future_by_minutes(start_redis, start_tallyd, site, days):
    """CONTRACT: a coarse bucket only at or below its watermark.  Nothing is read for what lies too far ahead."""
    directory = short_directory()
    now = "2026-03-10 10:30:10"
    redis = start_redis(directory, clock=FakeClock(directory, now))
    http = start_tallyd(*FEW, redis=redis).client()
    http.accept([{"site": site, "page": page, "user": "u"} for page in ("/a", "/b")])
    from_s = epoch("2026-03-10 10:00")
    to_s = from_s + days * DAY_S
    window = {"site": site, "from_": rfc3339(from_s), "to": rfc3339(to_s)}
    for path, params in (("/uv", {}), ("/pv", {"page": "/a"}), ("/uv", {"step": "1d"}), ("/overlap", {"page": ["/a", "/b"]})):
        before = http.metric("tallyd_query_keys_total")
        answer = http.question(path, **window, **params, explain="1")
        cover = answer["cover"]
        pages = 2 if path == "/overlap" else 1
        if pages * (to_s - from_s) // 60 <= 50_000:
            assert cover["minute"] == cover["keys"] == pages * (to_s - from_s) // 60
            assert all(item["level"] == "minute" for item in cover["list"])
        assert len(cover["list"]) == cover["keys"] == sum(cover[level] for level in ("minute", "hour", "day", "month"))
        assert len({item["key"] for item in cover["list"]}) == cover["keys"]
        tiles([item for item in cover["list"] if pages == 1 or item["key"].endswith(":/a")], from_s, to_s)
        assert http.question(path, **window, **params)["cover"] == {k: v for k, v in cover.items() if k != "list"}
        reads = 2 * pages if path == "/overlap" else pages  # beside each page, what a cap put together
        assert http.metric("tallyd_query_keys_total") - before < 2 * reads * (27 * 60 + 24 + 40), "it is not read"


@pytest.mark.parametrize("path, params", [("/stats", {}), ("/stats", {"page": ["/a", "/b", "/c"]}), ("/uv", {"page": ["/a", "/b", "/c"]}),
                                          ("/pages", {}), ("/overlap", {"page": ["/a", "/b"]})])
def test_no_list_has_more_than_50000_keys(start_redis, start_tallyd, site, path, params):
    """The minutes of the future leave room for the keys of the other figures and pages."""
    http = start_tallyd(redis=start_redis()).client()
    http.accept([{"site": site, "page": page, "user": "u"} for page in ("/a", "/b")])
    window = {"site": site, "from_": "now-1h", "to": "now+45d"}
    cover = http.question(path, **window, **params, explain="1")["cover"]
    assert 20_000 < len(cover.pop("list")) == cover["keys"] <= 50_000
    assert http.question(path, **window, **params)["cover"]["keys"] == cover["keys"]


def test_a_window_far_ahead_is_answered(start_redis, start_tallyd, site):
    """What would be too many minutes is told as it was planned."""
    http = start_tallyd(*FEW, redis=start_redis()).client()
    http.accept({"site": site, "page": "/", "user": "u"})
    answer = http.question("/uv", site=site, from_="now-1h", to="2300-01-01", explain="1")
    assert answer["uv"] == 1 and answer["cover"]["keys"] == len(answer["cover"]["list"]) < 60_000
    assert answer["cover"]["list"][-1]["to"] == "2300-01-01T00:00:00Z"
