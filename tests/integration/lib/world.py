"""A Redis, or a cluster, with a movable clock, a tallyd on it, and the model of what was posted."""

from .clock import FakeClock, epoch, rfc3339
from .cluster import Cluster
from .process import Redis, Tallyd, short_directory
from .truth import Model, is_close
from .waiting import wait_until

FOREVER = ("--keep-minutes", "forever", "--keep-hours", "forever", "--keep-days", "forever")


class World:
    """post() feeds tallyd and the model alike; check() compares every figure of a window."""

    def __init__(self, start, *args, appendonly=False, cluster=False, env=None):
        directory = short_directory()
        directory.mkdir(exist_ok=True)
        self.clock = FakeClock(directory, start)
        if cluster:
            self.redis = Cluster(primaries=3, replicas=0, clock=self.clock).start()
            args = (*args, "--ack-replicas", "0")
        else:
            self.redis = Redis(directory, clock=self.clock, appendonly=appendonly).start()
        self.model = Model()
        self.tallyds = []
        self.args = args
        self.env = env
        self.http = None
        self.add_tallyd()

    def add_tallyd(self, *more):
        """One more process on the same Redis, with @more options.  The first one is `tallyd`, asked through `http`."""
        tallyd = Tallyd(*self.args, *more, redis=self.redis, env=self.env, name=f"tallyd{len(self.tallyds)}")
        self.tallyds.append(tallyd)
        tallyd.start()
        if self.http is None:
            self.http = tallyd.client()
        return tallyd

    @property
    def tallyd(self):
        return self.tallyds[0]

    def restart(self):
        """Start tallyd again after it was killed; a new port."""
        self.tallyd.start()
        self.http = self.tallyd.client()

    def close(self):
        for tallyd in self.tallyds:
            tallyd.stop()
        self.redis.stop()

    def now(self):
        return self.clock.now()

    def stroll(self, at):
        """move() in steps of 20 minutes, for the times when writers are at work: they meet the rollups at each step."""
        while self.now() + 1200 < at:
            self.move(int(self.now()) + 1200)
        self.move(at)

    def move(self, at):
        """Set the clock and let every tallyd hear of it: each answer of Redis brings the time."""
        self.clock.set(at)
        minute = rfc3339(epoch(at) if isinstance(at, str) else at)[:16]
        for tallyd in self.tallyds:
            if tallyd.alive():
                http = tallyd.client()
                wait_until(lambda h=http: h.question("/pv", from_="now-1m")["to"][:16] > minute,
                           f"tallyd knows that it is {minute}")
                http.close()

    def post(self, events, http=None):
        """Post events (each with a ts in epoch seconds), in batches; they must all be counted."""
        for i in range(0, len(events), 5000):
            batch = events[i:i + 5000]
            (http or self.http).accept(batch)
            for event in batch:
                self.model.add(event, int(self.now()))

    def check(self, site, from_, to, pages=None, http=None, metrics=("pv", "uv", "ips", "visits")):
        """Every figure of the window is the model's; returns the last answer."""
        from_s, to_s = (epoch(t) if isinstance(t, str) else t for t in (from_, to))
        expected = self.model.counts(site, from_s, to_s, pages)
        for metric in metrics:
            answer = (http or self.http).question(
                "/" + metric, site=site, page=pages, from_=rfc3339(from_s), to=rfc3339(to_s))
            got, n = answer[metric], expected[metric]
            right = is_close(got, n) if metric in ("uv", "ips") else got == n
            assert right, f"{metric} of {site} {pages} {rfc3339(from_s)}..{rfc3339(to_s)}: {got}, not {n}"
        return answer

    def cover(self, site, from_, to, metric="uv", **params):
        """{'minute': a, 'hour': b, 'day': c, 'month': d, 'keys': K} of a window."""
        from_, to = (t if isinstance(t, str) else rfc3339(t) for t in (from_, to))
        return self.http.question("/" + metric, site=site, from_=from_, to=to, **params)["cover"]

    @staticmethod
    def _must_hold(check):
        """A wrong answer is no "not yet": wait_until would go on after an AssertionError."""
        try:
            check()
        except AssertionError as error:
            raise RuntimeError(f"while the rollups run: {error}") from error

    def wait_cover(self, site, from_, to, check=None, **levels):
        """Wait until the rollups allow a cover of just these keys; check() holds all the while."""
        def reached():
            if check is not None:
                self._must_hold(check)
            cover = self.cover(site, from_, to)
            return {k: v for k, v in cover.items() if k in ("minute", "hour", "day", "month") and v} == levels

        try:
            wait_until(reached, f"a cover of {levels}", deadline_s=60)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.cover(site, from_, to)}") from None
