"""Naive models of rate limits, in whole microseconds and fractions: what every answer must be.

A clock may step back.  A funnel then pays its debt from the new time on; a sliding limit's time stands still until the
clock is there again, or all its calls are one of now where that is further than the period; a penalty lasts no longer
than a new one would.  expire() forgets what Redis has forgotten; then a step back does not bring it back.
"""

import math
from fractions import Fraction

DENIED, PENALISED = -1, -2


class Funnel:
    def __init__(self, count, period_us, burst):
        self.count, self.period_us, self.capacity = count, period_us, burst + 1
        self.interval = Fraction(period_us, count)
        self.reset()

    def reset(self):
        self.at, self.debt = 0, Fraction(0)  # microseconds until all is paid back, at that time

    def expire(self, now):
        if now > self.at + self.debt:
            self.reset()

    def words(self):
        divisor = math.gcd(self.count, self.period_us)
        return ["funnel", self.capacity, self.period_us // divisor, self.count // divisor]

    def owed(self, now):
        return max(self.debt - max(now - self.at, 0), Fraction(0))

    def left(self, now):
        return math.floor((self.capacity * self.interval - self.owed(now)) / self.interval)

    def wait(self, now, n):
        return math.ceil(self.owed(now) + (n - self.capacity) * self.interval)

    def take(self, now, n):
        if n > 0 or now < self.at:
            self.debt, self.at = self.owed(now) + n * self.interval, now
        return math.ceil(self.owed(now))


class Sliding:
    def __init__(self, capacity, period_us):
        self.capacity, self.period_us = capacity, period_us
        self.reset()

    def reset(self):
        self.log = []  # (time, how many), in order

    def words(self):
        return ["sliding", self.capacity, self.period_us, 0]

    def time(self, now):
        return max(now, self.log[-1][0]) if self.log else now

    def window(self, now):
        return [time for time, n in self.log if time > self.time(now) - self.period_us for _ in range(n)]

    def left(self, now):
        if self.log and self.log[-1][0] > now + self.period_us:
            self.log = [(now, len(self.window(now)))]
        return self.capacity - len(self.window(now))

    def expire(self, now):
        if self.log and now > self.log[-1][0] + self.period_us:
            self.reset()

    def wait(self, now, n):
        within = self.window(now)
        return within[len(within) + n - self.capacity - 1] + self.period_us - now

    def take(self, now, n):
        if n > 0:
            self.log.append((self.time(now), n))
        within = self.window(now)
        return within[-1] + self.period_us - now if within else 0


class Penalty:
    def __init__(self, most, within_us, lasts_us):
        self.most, self.within_us, self.lasts_us = most, within_us, lasts_us
        self.reset()

    def reset(self):
        self.ends, self.refusals = 0, []

    def words(self):
        return ["penalty", self.most, self.within_us, self.lasts_us]

    def expire(self, now):
        if now > max(self.ends, self.refusals[-1] + self.within_us if self.refusals else 0):
            self.reset()

    def left(self, now):
        self.ends = min(self.ends, now + self.lasts_us)
        return max(0, self.ends - now)

    def note(self, now):
        self.refusals = [min(time, now) for time in self.refusals if time > now - self.within_us] + [now]
        if len(self.refusals) < self.most:
            self.ends = 0
            return 0
        self.ends, self.refusals = now + self.lasts_us, []
        return self.lasts_us


class Policy:
    def __init__(self, limits, penalty=None):
        self.limits, self.penalty = limits, penalty

    def parts(self):
        return self.limits + ([self.penalty] if self.penalty else [])

    def reset(self):
        for part in self.parts():
            part.reset()

    def expire(self, now):
        for part in self.parts():
            part.expire(now)

    def ask(self, now, n):
        """(granted, remaining, retry_us, reset_us, strictest): `strictest` is the set of those that may be named."""
        rest = self.penalty.left(now) if self.penalty else 0
        lefts = [limit.left(now) for limit in self.limits]
        waits = [math.inf if n > limit.capacity else limit.wait(now, n) if n > left else 0 for limit, left in zip(self.limits, lefts)]
        worst, granted = max(waits), n
        if worst > 0 or rest > 0:
            granted = PENALISED if rest > 0 and worst < math.inf else DENIED
            if rest == 0 and self.penalty:
                rest = self.penalty.note(now)
        resets = [limit.take(now, max(granted, 0)) for limit in self.limits]
        lefts = [limit.left(now) for limit in self.limits]
        tightness = waits if worst > 0 else [(-left, reset) for left, reset in zip(lefts, resets)]
        strictest = {i for i, value in enumerate(tightness) if value == max(tightness)}
        retry = 0 if granted >= 0 else -1 if worst == math.inf else max(worst, rest)
        remaining, reset = min(lefts), resets[min(strictest)]
        return granted, 0 if rest else remaining, retry, max(reset, rest), strictest
