"""Three processes on one Redis under load, each killed in turn: what a dead one took is counted by the others, and somebody leads."""

import random

from lib.ledger import Clients, Ledger
from lib.waiting import wait_until

FEW = ("--partitions", "4")
MOST = 8000  # batches of a process: fewer pages than a site may have in an hour


def test_each_is_killed_under_load(start_redis, start_tallyd, site, seed):
    """Requests with keys are sent again to the same process, those without are not.  Nothing that was acknowledged is missing in
    the first answer of any other process, and nothing counts twice."""
    print(f"TALLYD_SEED={seed}")
    chance = random.Random(seed)
    redis = start_redis(appendonly=True)
    tallyds = [start_tallyd(*FEW, redis=redis, name=f"tallyd{i}") for i in range(3)]
    ledgers = [Ledger(f"{i}-{site[-40:]}") for i in range(3)]
    with Clients(ledgers[0], tallyds[0], limit=MOST, keyed=2) as first, Clients(ledgers[1], tallyds[1], limit=MOST, keyed=2), \
            Clients(ledgers[2], tallyds[2], limit=MOST, keyed=2):
        for n in chance.sample(range(3), 3):
            before = len(ledgers[n].counted)
            wait_until(lambda n=n, b=before: len(ledgers[n].counted) > b + 80 or len(ledgers[n].counted) > 8 * (MOST - 50), "it takes requests", deadline_s=30)
            tallyds[n].kill()
            with ledgers[n].lock:
                pages = ledgers[n].counted[-15:]
            for other in (t for i, t in enumerate(tallyds) if i != n):
                counts = [other.client().count("pv", site=ledgers[n].site, page=page) for page in pages]
                assert counts == [1] * len(pages), (n, other.name, counts)
            tallyds[n].start()
        if first.sent < MOST - 50:
            first.more()
    for i, ledger in enumerate(ledgers):
        ledger.check(tallyds[(i + 1) % 3])
    assert len(wait_until(lambda: [t for t in tallyds if t.leads()], "one leads", deadline_s=20)) == 1
