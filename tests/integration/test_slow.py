"""Slow clients by the thousand: those who behave are served in time."""

from lib.process import sanitized
from lib.slow import withstand


def test_a_thousand_slow_clients(start_redis, start_tallyd):
    tallyd = start_tallyd("--request-timeout", "3s", redis=start_redis())
    figures = withstand(tallyd, 1000, 8)
    print(figures)
    assert sanitized() or figures["KiB a connection"] < 48, figures
