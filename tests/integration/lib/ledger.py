"""What clients sent, what they were told, and whether the counts agree."""

import threading
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone

from .client import Unknown
from .waiting import wait_until

EVENTS = 8  # of a batch: over several partitions
AT_ONCE = 50  # pages asked for together
SAMPLE = 100  # pairs (user, page) that are asked for


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
        """{'lost', 'doubled', 'refused', 'forgotten'}: pages of acknowledged events that are missing, pages counted more than
        once, pages that are counted though they were refused (503), and those whose user is not active, or was not seen.

        What is unknown may arrive while this asks, and may be there in part: a page without its site.
        """
        http = tallyd.client()
        wait_until(lambda: http.get("/readyz").status == 200, "ready for questions")

        def pv(page):
            def ask():  # its deadline may be short, and the machine busy
                answer = http.get("/pv", site=self.site, page=page, from_="now-1h")
                return answer.json["pv"] + 1 if answer.status == 200 else None

            return wait_until(ask, "an answer") - 1

        def wrong(pages, right):
            """Those of the pages that do not have exactly `right` views, with what they have; many are asked for at
            once."""
            found = {}
            for i in range(0, len(pages), AT_ONCE):
                some = pages[i:i + AT_ONCE]
                each = {p: pv(p) for p in some} if pv(some) != right * len(some) else {}
                found.update({p: n for p, n in each.items() if n != right})
            return found

        some = [p for pages in self.open_keyed.values() for p in pages]
        counted, unknown = wrong(self.counted, 1), wrong(self.unknown + some, 0)
        return {"lost": [p for p, n in counted.items() if n == 0],
                "doubled": [p for p, n in [*counted.items(), *unknown.items()] if n > 1],
                "refused": list(wrong(self.refused, 0)),
                "forgotten": self._forgotten(http)}

    def _forgotten(self, http):
        """Each acknowledged event has a user of its own: active today, and seen on the page."""
        today = datetime.now(timezone.utc).date()

        def ask(path, **params):
            found = []
            wait_until(lambda: found.append(http.get(path, site=self.site, **params)) or found[-1].status == 200, "an answer")
            return found[-1].json

        users = ask("/active", match="any", from_=today - timedelta(1), to=today + timedelta(1))["users"]
        few = [] if users >= len(self.counted) else [f"{users} users for {len(self.counted)} events"]
        for page in self.counted[::max(1, len(self.counted) // SAMPLE)]:
            few += [] if ask("/seen", user=f"user of {page}", page=page)["seen"] else [page]
        return few

    def check(self, tallyd):
        """Page by page, then the totals."""
        found = self.audit(tallyd)
        print({what: pages[:20] for what, pages in found.items()})
        assert not found["lost"], f"{len(found['lost'])} of {len(self.counted)} acknowledged events: {found['lost'][:5]}"
        assert not found["refused"], f"answered 503 and counted: {found['refused'][:5]}"
        assert not found["doubled"], f"counted twice: {found['doubled'][:5]}"
        assert not found["forgotten"], f"acknowledged, and no longer known: {found['forgotten'][:5]}"
        http = tallyd.client()
        unknown = len(self.unknown) + sum(len(pages) for pages in self.open_keyed.values())
        for metric in ("pv", "visits"):
            total = http.count(metric, site=self.site, from_="now-1h")
            assert len(self.counted) <= total <= len(self.counted) + unknown, (metric, len(self.counted), total, unknown)
        if not unknown:
            assert http.count("pv", site=self.site, from_="now-1h") == len(self.counted)


class Clients:
    """Threads that post batches until they are told to stop; the last `keyed` ones with keys, each batch until it is taken."""

    def __init__(self, ledger, tallyd, n=4, limit=400, keyed=0):
        self.ledger, self.tallyd, self.limit, self.keyed_from = ledger, tallyd, limit, n - keyed
        self.stopping = threading.Event()
        self.faults = []
        self.sent = 0
        self.threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(n)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join(40)
        assert not self.faults, self.faults

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
                if status != 202:
                    self.stopping.wait(0.02)  # a polite client comes again a little later
        except Exception as error:  # pylint: disable=broad-except
            self.faults.append(error)

    def more(self, batches=15):
        """Wait until so many more batches were acknowledged."""
        goal = self.ledger.statuses.get(202, 0) + batches
        wait_until(lambda: self.faults or self.sent >= self.limit or self.ledger.statuses.get(202, 0) >= goal,
                   f"{batches} more batches are acknowledged", deadline_s=30)
