"""Requests broken on purpose, by the thousand: each refusal is a problem, in time and in /metrics, and no count is wrong."""

from collections import Counter

from lib.malformed import beside, campaign
from lib.process import sanitized

TIMEOUT_S = 1
LIMIT_S = 3 * TIMEOUT_S + (15 if sanitized() else 2)  # up to three requests on a connection, each with a time of its own


def test_a_thousand_malformed_requests(start_redis, start_tallyd, chance):
    tallyd = start_tallyd("--request-timeout", f"{TIMEOUT_S}s", "--bots", "count", redis=start_redis())
    faults, heard = campaign(tallyd, chance, 1000, LIMIT_S)
    assert not faults, "\n".join([f"{len(faults)} faults", *faults[:5]])
    assert tallyd.alive() and tallyd.client().get("/healthz").status == 200
    assert {200, 202, 400, 404, 408, 413, 415, 422} <= heard.keys(), heard
    assert "level=error" not in tallyd.log_text()


def test_answers_that_metrics_has_alone_are_found():
    """Each that nobody heard needs a connection that was reset; none is heard that is not counted."""
    heard = Counter({200: 7, 400: 3})
    assert beside(Counter({200: 7, 400: 3}), heard, 0) is None
    assert beside(Counter({200: 7, 400: 4}), heard, 0) and beside(Counter({200: 7, 400: 4}), heard, 1) is None
    assert beside(Counter({200: 7, 400: 9}), heard, 1) and beside(Counter({200: 6, 400: 3}), heard, 1)
