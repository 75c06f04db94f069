"""Events ahead of the clock.  Readers take it that nothing lies far ahead; how far must be the same for all."""

import pytest

from lib.clock import FakeClock, epoch, rfc3339
from lib.process import short_directory

FEW = ("--partitions", "4")
DAY_S = 86400


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
