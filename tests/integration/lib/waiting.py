"""Waiting for something to become true: the only place where a test passes time."""

import time

DEADLINE_S = 20.0


def wait_until(predicate, what, deadline_s=DEADLINE_S, pause_s=0.01):
    """The first true value of predicate(); AssertionError with `what` after the deadline.

    An AssertionError of the predicate counts as "not yet", and the last one is shown.
    """
    end = time.monotonic() + deadline_s
    last = None
    while True:
        try:
            value = predicate()
            if value:
                return value
            last = value
        except AssertionError as error:
            last = error
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:g} s: {what} (last: {last!s:.2000})")
        time.sleep(pause_s)
