"""What tallyd must say about activity: a naive model, one set of users per site, action and day."""

import collections
import datetime

DAY_S = 86400
EPOCH = datetime.date(1970, 1, 1)


def date_of(day):
    return (EPOCH + datetime.timedelta(days=day)).isoformat()


class ActivityModel:
    """`zones`: site -> zoneinfo.ZoneInfo in which its days lie; others are UTC."""

    def __init__(self, zones=None):
        self.users = collections.defaultdict(set)  # (site, action, day) -> users, as text
        self.zones = zones or {}

    def day_of(self, site, ts):
        zone = self.zones.get(site, datetime.timezone.utc)
        return (datetime.datetime.fromtimestamp(ts, zone).date() - EPOCH).days

    def add(self, event):
        if "user" in event:
            for action in ["active", *event.get("actions", [])]:
                self.users[event["site"], action, self.day_of(event["site"], event["ts"])].add(str(event["user"]))

    def forget(self, site, user):
        for (of, _, _), users in self.users.items():
            if of == site:
                users.discard(user)

    def on(self, site, action, day):
        return self.users.get((site, action, day), set())

    def who(self, site, actions, first, end, match):
        sets = [self.on(site, action, day) for action in actions for day in range(first, end)]
        return set.union(*sets) if match == "any" else set.intersection(*sets)

    def new(self, site, action, first, end, within):
        """Users of [first, end) who did nothing on the `within` days before; None: everyone."""
        there = self.who(site, [action], first, end, "any")
        return there - self.who(site, [action], first - within, first, "any") if within else there

    def retention(self, site, action, periods, offsets, back=None, within=None):
        """Of the (new) users of the first period, how many were back in the next ones."""
        cohort = self.new(site, action, *periods[0], within)
        return len(cohort), [len(cohort & self.who(site, [back or action], *p, "any")) for p in periods[1:offsets + 1]]

    def funnel(self, site, steps, first, end):
        did = [self.who(site, [step], first, end, "any") for step in steps]
        return [len(set.intersection(*did[:i + 1])) for i in range(len(did))]

    def n_days(self, site, actions, first, end, match="any"):
        """user -> on how many days any or all of the actions were done."""
        return collections.Counter(user for day in range(first, end) for user in self.who(site, actions, day, day + 1, match))

    def days(self, site, user, action, first, end):
        return [day for day in range(first, end) if user in self.on(site, action, day)]


def streaks(days, last):
    """(the longest, the one that ends on the last day or the one before)."""
    days = set(days)

    def ending(day):
        n = 0
        while day - n in days:
            n += 1
        return n

    return max((ending(day) for day in days), default=0), ending(last) or ending(last - 1)


def indices(redis, site):
    """{partition tag: ({user: index}, {index: user}, next index)}"""
    found = {}
    with redis.connect() as connection:
        for key in connection.command("KEYS", f"t:*:uid:{site}"):
            tag = key.split("}")[0] + "}"
            pairs = connection.command("HGETALL", key)
            users = dict(zip(pairs[::2], map(int, pairs[1::2])))
            following = users.pop("")
            back = {}
            for block in connection.command("KEYS", f"{tag}:ids:{site}:*"):
                names = connection.command("LRANGE", block, 0, -1)
                number = int(block.rpartition(":")[2])
                back.update({number * 128 + at: user for at, user in enumerate(names) if user})
            found[tag] = users, back, following
    return found


def pages(http, site, limit, **params):
    """All users of /active/users, page by page."""
    users, cursor = [], None
    while True:
        answer = http.question("/active/users", site=site, limit=limit, cursor=cursor, **params)
        users += answer["users"]
        assert len(answer["users"]) <= limit
        cursor = answer["next_cursor"]
        if cursor is None:
            return users
        assert len(answer["users"]) == limit
