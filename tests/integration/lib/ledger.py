"""What clients sent, what they were told, and whether the counts agree."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from .client import Client, Unknown
from .truth import slack
from .waiting import wait_until

EVENTS = 8  # of a batch: over several partitions
AT_ONCE = 50  # pages asked for together
ASKERS = 8  # questions under way together
SAMPLE = 100  # pairs (user, page) that are asked for
SETTLED_S = 20  # a request without an answer is counted, or will never be


def answered(http, path, **params):
    """The answer's JSON: a deadline may be short, and the machine busy."""
    found = []
    wait_until(lambda: found.append(http.get(path, **params)) or found[-1].status == 200, f"an answer of {path}")
    return found[-1].json


def asked_of_each(http, ask, things):
    """[ask(client, thing)] over several connections to where `http` leads: a question may wait for a fold, and those that come
    meanwhile share that fold."""
    clients, mine = [], threading.local()

    def connect():
        mine.http = Client(http.connection.host, http.connection.port)
        clients.append(mine.http)

    with ThreadPoolExecutor(ASKERS, initializer=connect) as pool:
        answers = list(pool.map(lambda thing: ask(mine.http, thing), things))
    for client in clients:
        client.close()
    return answers


def wrong(http, site, pages, right):
    """{page: views} of those that do not have exactly `right` views; many are asked for at once."""
    def pv(client, page):
        return answered(client, "/pv", site=site, page=page, from_="now-1h")["pv"]

    groups = [pages[i:i + AT_ONCE] for i in range(0, len(pages), AT_ONCE)]
    views = asked_of_each(http, pv, groups)
    doubtful = [p for some, n in zip(groups, views) if n != right * len(some) for p in some]
    return {p: n for p, n in zip(doubtful, asked_of_each(http, pv, doubtful)) if n != right}


@dataclass
class Ledger:
    """What clients sent and what they were told; pages by outcome."""

    site: str
    events: int = EVENTS
    counted: list = field(default_factory=list)   # 202
    refused: list = field(default_factory=list)   # 503
    unknown: list = field(default_factory=list)   # 504, or no answer
    silent: list = field(default_factory=list)    # why there was no answer
    slowest_s: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)
    statuses: dict = field(default_factory=dict)
    open_keyed: dict = field(default_factory=dict)  # pages that were sent with a key, and not acknowledged yet

    def send(self, http, name, keyed=False):
        """Post one batch; file it by its answer.  Returns the status, None without an answer.

        With a key it is to be sent again until it is counted: another answer than 202 leaves it unknown.
        """
        pages = [f"/{name}/{i}" for i in range(self.events)]
        batch = [{"site": self.site, "page": p, "user": f"user of {p}"} for p in pages]
        begin = time.monotonic()
        try:
            answer = http.post(batch, headers={"Idempotency-Key": f"{self.site} {name}"} if keyed else None)
            status = answer.status
        except Unknown as error:
            if isinstance(error.__cause__, ConnectionRefusedError):
                return None  # nobody heard of it
            answer, status = None, None
            self.silent.append(str(error))
        with self.lock:
            if answer is not None:
                self.slowest_s = max(self.slowest_s, time.monotonic() - begin)
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 202:
                assert answer.json["accepted"] == self.events
                self.counted += pages
                self.open_keyed.pop(name, None)
            elif keyed:
                assert status in (503, 504, None), answer
                self.open_keyed[name] = pages
            elif status == 503:
                assert int(answer.headers["Retry-After"]) >= 1
                self.refused += pages
            else:
                assert status in (504, None), answer
                self.unknown += pages
        return status

    def audit(self, tallyd):
        """Compares what was sent with what is counted, as sets:

        lost       pages of acknowledged events that are not counted
        doubled    pages that are counted more than once
        half       requests of which a part is counted, and figures that lack events which others have
        phantom    pages that were refused (503) and are counted, and figures with events that nobody sent
        forgotten  acknowledged events whose user was not seen on the page

        What is unknown may be counted while this asks, so half and phantom figures are asked for again before they are told.
        """
        http = tallyd.client()
        wait_until(lambda: http.get("/readyz").status == 200, "ready for questions")
        counted, refused = wrong(http, self.site, self.counted, 1), wrong(http, self.site, self.refused, 0)
        found = {"lost": [p for p, n in counted.items() if n == 0],
                 "doubled": [p for p, n in counted.items() if n > 1],
                 "phantom": list(refused),
                 "forgotten": self._forgotten(http)}
        views = len(self.counted) + sum(n - 1 for n in counted.values()) + sum(refused.values())
        pages = len(self.counted) - len(found["lost"]) + len(refused)
        figures = []

        def whole():
            figures[:] = self._figures(http, views, pages)
            return not figures[0] and not figures[1]

        try:
            wait_until(whole, "what is unknown is counted whole, or not at all", deadline_s=SETTLED_S, pause_s=0.1)
        except AssertionError:
            pass
        half, phantom, doubled = figures
        found["doubled"] += doubled
        return {**found, "half": half, "phantom": found["phantom"] + phantom}

    def _figures(self, http, views, pages):
        """(half, phantom, doubled), by what is unknown and by the site's figures; `views` of so many `pages` are known."""
        batches = [self.unknown[i:i + self.events] for i in range(0, len(self.unknown), self.events)]
        batches += list(self.open_keyed.values())
        found = wrong(http, self.site, [p for batch in batches for p in batch], 0)
        half = [batch[0] for batch in batches if 0 < sum(p in found for p in batch) < len(batch)]
        views, pages, phantom = views + sum(found.values()), pages + len(found), []
        for figure, n, expected in (("page views", self._ask(http, "/pv")["pv"], views),
                                    ("pages", self._ask(http, "/pages", limit=1)["total_pages"], pages),
                                    ("visits", self._ask(http, "/visits")["visits"], pages),
                                    ("users", self._users(http), pages)):
            (half if n < expected else phantom if n > expected else []).append(f"{n} {figure}, not {expected}")
        uv = self._ask(http, "/uv")["uv"]
        if abs(uv - pages) > slack(pages, 6):
            (half if uv < pages else phantom).append(f"{uv} visitors, not {pages}")
        return half, phantom, [p for p, n in found.items() if n > 1]

    def _ask(self, http, path, **params):
        return answered(http, path, site=self.site, **{"from_": "now-1h", **params})

    def _users(self, http):
        """Each event has a user of its own."""
        today = datetime.now(timezone.utc).date()
        return self._ask(http, "/active", match="any", from_=today - timedelta(1), to=today + timedelta(1))["users"]

    def _forgotten(self, http):
        some = self.counted[::max(1, len(self.counted) // SAMPLE)]

        def seen(client, page):
            return answered(client, "/seen", site=self.site, user=f"user of {page}", page=page)["seen"]

        return [p for p, known in zip(some, asked_of_each(http, seen, some)) if not known]

    def check(self, tallyd):
        """Nothing that audit() looks for."""
        found = self.audit(tallyd)
        print({what: pages[:20] for what, pages in found.items()})
        assert not found["lost"], f"{len(found['lost'])} of {len(self.counted)} acknowledged events: {found['lost'][:5]}"
        assert not found["phantom"], f"answered 503, or never sent, and counted: {found['phantom'][:5]}"
        assert not found["doubled"], f"counted twice: {found['doubled'][:5]}"
        assert not found["half"], f"counted in part: {found['half'][:5]}"
        assert not found["forgotten"], f"acknowledged, and no longer known: {found['forgotten'][:5]}"


class Threads:
    """Threads that run _run(number) from `with` on until its end, where a fault of theirs is told."""

    def __init__(self, n):
        self.stopping = threading.Event()
        self.faults = []
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(n)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(40)
        assert not self.faults, self.faults[:5]

    def _run(self, me):
        raise NotImplementedError


class Clients(Threads):
    """Threads that post batches, each `pause_s` after the last, until they are told to stop; the last `keyed` ones with keys,
    each batch until it is taken."""

    def __init__(self, ledger, tallyd, n=4, limit=400, keyed=0, pause_s=0):
        super().__init__(n)
        self.ledger, self.tallyd, self.limit, self.keyed_from = ledger, tallyd, limit, n - keyed
        self.sent, self.pause_s = 0, pause_s

    def _run(self, me):
        port, http, n = None, None, 0
        try:
            while not self.stopping.is_set() and self.sent < self.limit:
                if port != self.tallyd.port:  # it was started again
                    port, http = self.tallyd.port, self.tallyd.client()
                keyed = me >= self.keyed_from
                status = self.ledger.send(http, f"{me}/{n}", keyed)
                n += 0 if keyed and status != 202 else 1
                self.sent += 1
                if status != 202 or self.pause_s > 0:
                    self.stopping.wait(max(0.02, self.pause_s))  # a polite client comes again a little later
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)

    def more(self, batches=15):
        """Wait until so many more batches were acknowledged."""
        goal = self.ledger.statuses.get(202, 0) + batches
        wait_until(lambda: self.faults or self.sent >= self.limit or self.ledger.statuses.get(202, 0) >= goal,
                   f"{batches} more batches are acknowledged", deadline_s=30)
