"""Days on a moved clock: events of now and late ones, rollups, expiries and kills, and each day's figures against the naive
model.  Two processes: one is killed, as Redis is; the other lives on, so that its memory can be looked at."""

import collections
import statistics
import threading
from dataclasses import dataclass

from .client import Unknown
from .clock import epoch, rfc3339
from .memory import MIB, of_redis, resident
from .truth import Estimates
from .waiting import wait_until
from .world import World

BEGIN = "2026-03-20 00:00"     # a month ends within the days
DAY_S, HOUR_S = 86400, 3600
STEP_S = 960  # no whole number of them is 3600 s, after which a visitor is forgotten: the model has no milliseconds
KEEP_HOURS_D = 5
KEEP = ("--keep-minutes", "48h", "--keep-hours", f"{KEEP_HOURS_D}d")
PAGES, USERS, EVENTS = 40, 600, 40  # EVENTS in a step
LATE_S = 40 * HOUR_S
STEADY_DAYS = KEEP_HOURS_D + 2      # from then on as much expires as comes
GROWTH = 1.15                       # of Redis's memory after that: days and users stay


@dataclass
class Day:
    number: int
    events: int
    kills: int
    keys: int
    redis: int   # bytes
    tallyd: int  # bytes, of the process that lives on


class Fortnight:
    def __init__(self, chance, days, steps=DAY_S // STEP_S):
        self.chance, self.n_days, self.steps = chance, days, steps
        self.begin = epoch(BEGIN)
        self.days = []
        self.kills = collections.Counter()
        self.estimates = Estimates()
        self.sent = self.compared = 0
        self.users = collections.defaultdict(set)  # by day

    def run(self, stopping):
        self.world = World(self.begin, "--partitions", "4", *KEEP, appendonly=True)
        try:
            self.survivor = self.world.add_tallyd()
            for number in range(self.n_days):
                self._day(number, stopping)
                if stopping.is_set():
                    break
            self.estimates.check()
        finally:
            self.world.close()

    def _day(self, number, stopping):
        begin = self.begin + number * DAY_S
        for step in range(self.steps):
            if stopping.is_set():
                return
            at_s = begin + step * DAY_S // self.steps
            if at_s > self.world.now():
                self.world.move(at_s)
            self._post(self.chance.random() < 0.15)
        self.world.move(begin + DAY_S + 1)
        self._compare(number)
        redis = self.world.redis
        memory = of_redis(redis.command("INFO", "memory"))
        self.days.append(Day(number, self.sent, sum(self.kills.values()), redis.command("DBSIZE"), memory, resident(self.survivor.pid)))
        print(row(self.days[-1]), flush=True)

    # ---- what happens ----

    def _events(self):
        chance, now = self.chance, int(self.world.now())
        for _ in range(EVENTS):
            late = chance.randrange(LATE_S) if chance.random() < 0.1 else chance.randrange(60)
            user = int(USERS ** chance.random())
            yield {"page": f"/{int(PAGES ** chance.random())}", "user": f"u{user}", "ip": f"192.0.2.{user % 250}",
                   "ts": max(now - late, self.begin)}

    def _post(self, harmed):
        """One request with a key, until it is taken; meanwhile something is killed."""
        events = list(self._events())
        killer = threading.Thread(target=self._kill) if harmed else None
        if killer:
            killer.start()
        key = {"Idempotency-Key": f"{self.sent}"}

        def taken():
            try:
                answer = self.world.tallyd.client().post(events, headers=key)
            except Unknown:
                return False
            assert answer.status != 202 or answer.json["accepted"] == EVENTS, answer
            return answer.status == 202

        wait_until(taken, "the request is taken", deadline_s=60)
        if killer:
            killer.join()
            self.world.http = self.world.tallyd.client()
            wait_until(lambda: self.world.http.get("/readyz").status == 200, "ready")
        for event in events:
            self.world.model.add(event, int(self.world.now()))
            self.users[(event["ts"] - self.begin) // DAY_S].add(event["user"])
        self.sent += len(events)

    def _kill(self):
        what = self.chance.choice(["tallyd", "Redis", "both"])
        tallyd, redis = self.world.tallyd, self.world.redis
        if what != "tallyd":
            redis.kill()
        if what != "Redis":
            tallyd.kill()
        self.kills[what] += 1 + (what == "both")
        if what != "tallyd":
            redis.start()
        if what != "Redis":
            tallyd.start(wait_ready=False)
            tallyd.wait_ready_line()

    # ---- what must be true ----

    def _compare(self, number):
        """Windows of the days so far, from both processes: whole days, hours and minutes that are kept, pages."""
        end = self.begin + (number + 1) * DAY_S
        windows = [(end - DAY_S, end, None), (self.begin, end, None), (self.begin, end, ["/1", "/7"])]
        kept = max(self.begin, end - (KEEP_HOURS_D - 1) * DAY_S)
        for _ in range(4):
            a, b = sorted(self.chance.sample(range(kept, end + 1, HOUR_S), 2))
            windows.append((a, b, self.chance.choice([None, ["/1"], ["/2", "/30"]])))
        for _ in range(3):
            a, b = sorted(self.chance.sample(range(max(self.begin, end - 47 * HOUR_S), end + 1, 60), 2))
            windows.append((a, b, None))
        for from_s, to_s, pages in windows:
            self._window(from_s, to_s, pages)
        for day in range(max(0, number - 2), number + 1):
            date = rfc3339(self.begin + day * DAY_S)[:10]
            got = self.world.http.question("/dau", date=date)["users"]
            assert got == len(self.users[day]), (date, got, len(self.users[day]))
            self.compared += 1

    def _window(self, from_s, to_s, pages):
        expected = self.world.model.counts("default", from_s, to_s, pages)
        for tallyd in self.world.tallyds:
            http = tallyd.client()
            for metric, n in expected.items():
                got = http.question("/" + metric, page=pages, from_=rfc3339(from_s), to=rfc3339(to_s))[metric]
                self.compared += 1
                if metric in ("uv", "ips"):
                    self.estimates.add(f"{metric} {pages} {from_s} {to_s}", got, n)
                else:
                    assert got == n, f"{metric} of {pages} {rfc3339(from_s)}..{rfc3339(to_s)}: {got}, not {n} ({tallyd.name})"
            http.close()

    def judge(self):
        """Redis keeps as much as before, once as much expires as comes.  Single days differ by a tenth: kills leave work for later."""
        print(f"soak: {len(self.days)} days, {self.sent} events, SIGKILLs {dict(self.kills)}: {self.compared} figures are those of the model", flush=True)
        steady = self.days[STEADY_DAYS:]
        if steady:
            for name in ("redis", "keys"):
                first, last = (statistics.median(getattr(day, name) for day in days) for days in (steady[:3], steady[-3:]))
                assert last <= first * GROWTH, f"{name}: {first} from day {steady[0].number + 1} on, {last} at the end"
            most = max(day.tallyd for day in steady)
            assert most <= steady[0].tallyd + 4 * MIB, f"tallyd: {steady[0].tallyd / MIB:.1f} MiB, then {most / MIB:.1f}"


def row(day):
    return (f"soak: day {day.number + 1:3}  {day.events:7} events  {day.kills:4} kills  Redis {day.redis / MIB:6.1f} MiB {day.keys:7} keys  "
            f"tallyd {day.tallyd / MIB:5.1f} MiB")
