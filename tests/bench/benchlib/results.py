"""Figures of several runs: medians with their range, and ratios taken run by run."""

import statistics


def summary(values):
    if not values:  # a ratio of figures of which none is above a clock tick
        return {"median": None, "min": None, "max": None, "runs": []}
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": values}


class Series:
    """One contender's runs.  A record is {"metric": number}; a metric may be missing from all."""

    def __init__(self, key, label, records):
        self.key, self.label, self.records = key, label, records

    def metrics(self):
        return [m for m in self.records[0] if all(m in r for r in self.records)]

    def median(self, metric):
        return statistics.median(self.values(metric))

    def values(self, metric):
        return [record[metric] for record in self.records]

    def as_json(self):
        return {"key": self.key, "label": self.label,
                **{m: summary(self.values(m)) for m in self.metrics()}}


class Ratio:
    """How many times a's figure is b's.  Runs i of both were neighbours in time, so the ratio is taken run by run.

    must, goal: what it has to reach; None: for information.
    """

    def __init__(self, label, a, b, metric="rate", must=None, goal=None):
        self.label, self.must, self.goal = label, must, goal
        self.key, self.of, self.to, self.metric = f"{a.key}/{b.key}", a.key, b.key, metric
        self.values = [x / y for x, y in zip(a.values(metric), b.values(metric)) if y]
        self.median = statistics.median(self.values) if self.values else float("nan")

    def verdict(self):
        if self.must is None:
            return ""
        return verdict(self.median >= self.must, self.goal is None or self.median >= self.goal,
                       f"at least {self.must:g}", self.goal and f"goal {self.goal:g}")

    def as_json(self):
        return {"label": self.label, "of": self.of, "to": self.to, "metric": self.metric,
                **summary(self.values), "must": self.must, "goal": self.goal}


class Limit:
    """A figure that must stay under a bound."""

    def __init__(self, label, value, bound, unit):
        self.label, self.value, self.bound, self.unit = label, value, bound, unit

    def verdict(self):
        return verdict(self.value < self.bound, True, f"under {self.bound:g} {self.unit}", None)

    def as_json(self):
        return {"label": self.label, "value": self.value, "under": self.bound, "unit": self.unit}


def verdict(reached, goal_reached, must, goal):
    if not reached:
        return f"MISSED: must be {must}"
    if not goal:
        return f"reached ({must})"
    return f"reached, {goal} too" if goal_reached else f"reached ({must}), {goal} not"


class Section:
    def __init__(self, key, title):
        self.key, self.title = key, title
        self.series, self.ratios, self.limits, self.notes, self.extra = [], [], [], [], {}

    def find(self, key):
        return next((s for s in self.series if s.key == key), None)

    def ratio(self, label, a, b, **more):
        """Compare two series by key; nothing where one was not measured."""
        a, b = self.find(a), self.find(b)
        if a and b:
            self.ratios.append(Ratio(label, a, b, **more))

    def as_json(self):
        return {"title": self.title, "series": [s.as_json() for s in self.series],
                "ratios": [r.as_json() for r in self.ratios], "limits": [x.as_json() for x in self.limits],
                "notes": self.notes, **self.extra}
