"""A mixed load at a fixed pace, and what must be counted in the end.

Each writer has visitors of its own and sends one request after another, so its order of arrival is known, and with it every
visit.  A request that is not answered with 202 is sent again with its Idempotency-Key.
"""

import collections
import json
import random
import threading
import time

from .client import NDJSON, Unknown
from .truth import VISIT_TIMEOUT_S

PAGES, USERS = 400, 4000  # of a writer
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0"
PAIRS = 200  # that are kept
HEAD = 12  # pages that are asked for


class Truth:
    """What one writer had counted."""

    def __init__(self):
        self.views = collections.Counter()  # by page
        self.visits = self.named = 0
        self.last = {}                       # user -> event time of the last event
        self.ips, self.viewers, self.users = set(), set(), set()
        self.pairs = {}                      # some of (user, page) that were viewed

    def add(self, event):
        user, at_s = event["user"], event["ts"]
        self.users.add(user)
        if "event" in event:  # prolongs a visit, starts none
            self.named += 1
            if at_s - self.last.get(user, 0) <= VISIT_TIMEOUT_S:
                self.last[user] = at_s
            return
        self.views[event["page"]] += 1
        self.ips.add(event["ip"])
        self.viewers.add(user)
        if len(self.pairs) < PAIRS:
            self.pairs[user, event["page"]] = True
        self.visits += at_s - self.last.get(user, 0) > VISIT_TIMEOUT_S
        self.last[user] = at_s


class Worker:
    """A thread that does something so many times a second until it is told to stop."""

    def __init__(self, tallyd, chance, a_second):
        self.tallyd, self.chance, self.pause_s = tallyd, chance, 1 / a_second
        self.http = tallyd.client()
        self.stopping = threading.Event()
        self.fault = None
        self.done = self.refused = self.lost = 0
        self.slowest_s = 0.0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self):
        begin = time.monotonic()
        try:
            while not self.stopping.wait(max(0, begin + self.done * self.pause_s - time.monotonic())):
                self.once()
                self.done += 1
        except Exception as error:  # pylint: disable=broad-except
            self.fault = error

    def once(self):
        raise NotImplementedError

    def end(self):
        self.stopping.set()
        self.thread.join(60)
        assert not self.thread.is_alive()
        if self.fault is not None:
            raise self.fault


class Writer(Worker):
    """Arrays, single events, NDJSON, gzip and named events; now and then a bad event, or the same request once more."""

    def __init__(self, tallyd, chance, a_second, site, me):
        super().__init__(tallyd, chance, a_second)
        self.site, self.me, self.truth = site, me, Truth()

    def event(self):
        chance = self.chance
        user = chance.randrange(USERS)
        event = {"site": self.site, "user": f"{self.me}/{user}", "ts": int(time.time()), "ip": f"198.51.{self.me}.{user % 250}",
                 "ua": AGENT.format(60 + user % 40), "page": f"/{int(PAGES ** chance.random())}"}
        if chance.random() < 0.1:
            event["event"] = f"event {chance.randrange(20)}"
        if chance.random() < 0.2:
            event["referrer"] = f"https://site{chance.randrange(30)}.example/"
        if chance.random() < 0.1:
            event["actions"] = [f"action{chance.randrange(5)}"]
        return event

    def once(self):
        chance = self.chance
        events = [self.event() for _ in range(chance.choice((1, 1, 20, 200)))]
        bad = [{"site": self.site, "page": "", "user": "x"}] * (chance.random() < 0.05)
        body, form = [*events, *bad], {"zipped": chance.random() < 0.3}
        if chance.random() < 0.3:
            body, form["content_type"] = "\n".join(map(json.dumps, body)) + "\n", NDJSON
        key = {"Idempotency-Key": f"{self.site} {self.me} {self.done}"}
        for turn in range(2 if chance.random() < 0.05 else 1):
            answer = self._until_taken(body, form, key)
            assert (answer.json["accepted"], answer.json["rejected"]) == (len(events), len(bad)), (turn, answer)
            assert turn == 0 or answer.headers["Idempotency-Replayed"] == "true"
        for event in events:
            self.truth.add(event)

    def _until_taken(self, body, form, key):
        while True:
            begin = time.monotonic()
            try:
                answer = self.http.post(body, headers=key, **form)
            except Unknown:
                self.lost += 1
                continue
            self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
            if answer.status == 202:
                return answer
            assert answer.status in (503, 504), answer
            self.refused += 1
            self.stopping.wait(0.1)


class Asker(Worker):
    """Every kind of question, each time with another window; connections come and go, some in the middle of a request."""

    def __init__(self, tallyd, chance, a_second, site):
        super().__init__(tallyd, chance, a_second)
        self.site = site

    def questions(self):
        chance = self.chance
        window = {"site": self.site, "from_": f"now-{chance.choice((5, 15, 60, 600))}m"}
        page, user = f"/{chance.randrange(HEAD)}", f"0/{chance.randrange(USERS)}"
        return (("/uv", {**window, "page": page}), ("/stats", {**window, "step": "auto"}), ("/pages", {**window, "by": "uv"}),
                ("/overlap", {**window, "page": [page, "/1" if page != "/1" else "/2"]}), ("/breakdown", {**window, "by": "source"}),
                ("/dau", {"site": self.site, "date": time.strftime("%Y-%m-%d", time.gmtime())}), ("/metrics", {}),
                ("/seen", {"site": self.site, "user": user, "page": page}), (f"/users/{user.replace('/', '%2F')}/activity", {"site": self.site}),
                ("/hotkeys", {}), ("/visits", window), ("/ips", window), ("/rollup", {}), ("/readyz", {}), ("/uv", {**window, "from_": "rubbish"}))

    def once(self):
        chance = self.chance
        path, params = chance.choice(self.questions())
        begin = time.monotonic()
        try:
            answer = self.http.get(path, **params)
        except Unknown:  # the machine stood still for longer than an idle connection may live
            self.lost += 1
            return
        self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
        expected = 400 if params.get("from_") == "rubbish" else 200
        self.refused += answer.status == 503
        assert answer.status in (expected, 503), (path, params, answer)
        if chance.random() < 0.05:
            self.http.close()
        if chance.random() < 0.02:  # it hangs up with half a head, or half a body, sent
            self.http.connection.connect()
            self.http.connection.send(chance.choice((b"GET /uv?fr", b"POST /events HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n[{")))
            self.http.close()
        if chance.random() < 0.1:
            limited = self.http.request("POST", "/ratelimit", json.dumps({"key": f"k{chance.randrange(1000)}", "algorithm": chance.choice(("funnel", "sliding")),
                                                                     "limit": 5, "period_s": 10, "burst": 4}), {"Content-Type": "application/json"})
            assert limited.status in (200, 429), limited


class MixedLoad:
    """`scale` times the usual pace: some 700 events and 40 questions a second."""

    def __init__(self, tallyd, seed, site, writers=3, scale=1.0):
        def chance(name):
            return random.Random(f"{seed} {name}")
        self.site = site
        self.writers = [Writer(tallyd, chance(f"writer {i}"), 4 * scale, site, i) for i in range(writers)]
        self.askers = [Asker(tallyd, chance(f"asker {i}"), 20 * scale, site) for i in range(2)]

    def start(self):
        for worker in [*self.writers, *self.askers]:
            worker.thread.start()
        return self

    def faults(self):
        return [worker.fault for worker in [*self.writers, *self.askers] if worker.fault is not None]

    def end(self):
        for worker in [*self.writers, *self.askers]:
            worker.end()

    def views(self):
        return sum((writer.truth.views for writer in self.writers), collections.Counter())
