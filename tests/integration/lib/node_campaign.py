"""Fault campaigns on several servers: a master of Sentinels, a cluster.  As lib/campaign.py: clients post all the while, and in
the end what they were told is compared with what is counted.

SentinelVictims, ClusterVictims: whom kills() of lib/campaign.py kills there.
failovers(): a master dies, or stands still and wakes up deposed, in turn; it comes back each time.
cluster_rounds(): one of HARMS at a time, by chance; each round has a site of its own, which is audited behind it.
"""

import collections
import contextlib
import time

from .campaign import UNCAPPED
from .cluster import Cluster, wait_ready
from .ledger import Clients, Ledger
from .process import Tallyd
from .sentinel import SentinelGroup
from .waiting import wait_until

SAFE = ("--appendonly", "yes", "--appendfsync", "always")
PROMOTED_S = 30
FOLLOWS_S = 60


def first_again(report, what, clients):
    """Replicas follow again: how long until the next 202."""
    begin = time.monotonic()
    clients.more(1)
    report.first(what, time.monotonic() - begin)


# ---- who is killed ----

KINDS = {  # name: (who, does a replica take over, how often)
    "tallyd": ({"tallyd"}, False, 6),
    "primary": ({"primary"}, False, 3),
    "both": ({"primary", "tallyd"}, False, 3),
    "replica": ({"replica"}, False, 2),
    "primary, a replica takes over": ({"primary"}, True, 1),
    "both, a replica takes over": ({"primary", "tallyd"}, True, 1),
    "Sentinel": ({"sentinel"}, False, 1),
}


class NodeVictims:
    """A tallyd, and primaries of which each has a replica; all sync what they append."""

    def __init__(self, group, partitions):
        self.group = group
        self.tallyd = Tallyd("--partitions", partitions, *UNCAPPED, redis=group)

    def start(self):
        self.group.start()
        self.tallyd.start()

    def close(self):
        self.tallyd.stop()
        self.group.stop()

    def wait(self):
        """tallyd is ready.  A start is refused while the primary has no replica, for example because that one has just taken
        over: then it is started again, now that a replica follows."""
        try:
            self.tallyd.wait_ready_line()
        except RuntimeError:
            if "so no request could be acknowledged there" not in self.tallyd.tail(3):
                raise
            self.tallyd.start(wait_ready=False)
            self.tallyd.wait_ready_line()

    def harm(self, chance, killed):
        """Kill something and heal all but tallyd, which comes back before or behind the servers, and is not waited for.
        `killed` counts SIGKILLs by name."""
        parts = self.parts(chance)
        kinds = {name: often for name, (who, _, often) in KINDS.items() if who <= set(parts)}
        kind = chance.choices(list(kinds), list(kinds.values()))[0]
        who, takes_over, _ = KINDS[kind]
        if "primary" in who:  # a replica that lacks what it is just being sent would be a second fault
            wait_ready(parts["replica"].in_sync, "the replica is in sync", FOLLOWS_S)
        for name in who:
            parts[name].kill()
            killed[kind] += 1
        early = chance.random() < 0.5
        if early and "tallyd" in who:
            self.tallyd.start(wait_ready=False)
        if takes_over:
            self.wait_promoted(parts["primary"], parts["replica"])
        for name in who - {"tallyd"}:
            parts[name].start()
        self.group.wait_ok(FOLLOWS_S)
        if not early and "tallyd" in who:
            self.tallyd.start(wait_ready=False)
        return kind


class SentinelVictims(NodeVictims):
    def __init__(self):
        super().__init__(SentinelGroup(replicas=1, options=SAFE), 4)

    def parts(self, chance):
        master = self.group.master()
        replica = next(s for s in self.group.servers if s is not master)
        return {"tallyd": self.tallyd, "primary": master, "replica": replica, "sentinel": chance.choice(self.group.sentinels)}

    def wait_promoted(self, old, _):
        self.group.wait_new_master(old)


class ClusterVictims(NodeVictims):
    def __init__(self):
        super().__init__(Cluster(primaries=3, replicas=1, options=SAFE, node_timeout_ms=2000), 24)

    def parts(self, chance):
        primary = chance.choice(self.group.primaries())
        return {"tallyd": self.tallyd, "primary": primary, "replica": self.group.replicas_of(primary)[0]}

    def wait_promoted(self, _, replica):
        wait_ready(replica.is_primary, "the replica is promoted", PROMOTED_S)


# ---- Sentinels ----


def failovers(report, group, one, two, site, goal, hurried=False):
    """Under load on two tallyds of the same group.  hurried: the old master is one for a second behind its return, not for eight."""
    ledger, other = Ledger(site), Ledger(site + "2")
    with Clients(ledger, one, limit=10**9, keyed=2) as clients, Clients(other, two, n=2, limit=10**9, keyed=1):
        for i in range(goal):
            clients.more(20)
            old = group.master()
            (old.kill if i % 2 == 0 else old.pause)()
            new = group.wait_new_master(old)
            (old.start if i % 2 == 0 else old.resume)()
            # Sentinels turn it into a replica when they have seen it as a master for 8 s
            with group.hurried() if hurried else contextlib.nullcontext():
                wait_until(lambda n=new: n.replicas_online() > 0, "a replica follows the new master", deadline_s=FOLLOWS_S)
            first_again(report, "a failover of Sentinels", clients)
            group.wait_ok(FOLLOWS_S)
            clients.more(20)
            report.rounds += 1
            report.kills["primary, a replica takes over"] += i % 2 == 0
    report.add(ledger, two)
    report.add(other, one)


def sentinel_failovers(report, goal):
    """The same, with a group of its own."""
    group = SentinelGroup(replicas=1, options=SAFE)
    tallyds = []
    try:
        group.start()
        for name in ("one", "two"):
            tallyds.append(Tallyd("--partitions", "4", *UNCAPPED, redis=group, name=name))
            tallyds[-1].start()
        failovers(report, group, *tallyds, "failovers", goal)
    finally:
        for tallyd in tallyds:
            tallyd.stop()
        group.stop()


# ---- a cluster ----


class Harmed:
    """A cluster and a tallyd on it, and who is to be brought back."""

    def __init__(self, chance):
        self.chance = chance
        self.cluster = Cluster(primaries=3, replicas=1, options=SAFE, node_timeout_ms=2000)
        self.tallyd = Tallyd("--partitions", "24", *UNCAPPED, redis=self.cluster)
        self.kills = collections.Counter()

    def start(self):
        self.cluster.start()
        self.tallyd.start()
        node = self.cluster.nodes[0]
        keys = [key for n in self.cluster.primaries() for key in n.command("KEYS", "t:*:state")]
        self.slots = sorted({node.command("CLUSTER", "KEYSLOT", key) for key in keys})

    def stop(self):
        self.tallyd.stop()
        self.cluster.stop()

    def heal(self):
        for node in self.cluster.nodes:
            if node.alive():
                node.resume()
            else:
                node.start()
        self.cluster.wait_ok(60)
        if not self.tallyd.alive():
            self.tallyd.start()

    def shard(self):
        primary = self.chance.choice(self.cluster.primaries())
        return primary, self.cluster.replicas_of(primary)[0]

    def target(self, owner):
        return self.chance.choice([n for n in self.cluster.primaries() if n is not owner])

    # ---- what happens ----

    def primary_is_killed(self):
        primary, replica = self.shard()
        primary.kill()
        self.kills["primary, a replica takes over"] += 1
        wait_ready(replica.is_primary, "the replica is promoted", PROMOTED_S)

    def primary_stands_still(self):
        """It wakes up deposed."""
        primary, replica = self.shard()
        primary.pause()
        wait_ready(replica.is_primary, "the replica is promoted", PROMOTED_S)

    def tallyd_is_killed(self):
        self.tallyd.kill()
        self.kills["tallyd"] += 1

    def both_are_killed(self):
        """A primary, which has a share of the logs and partitions, and the process that could append again."""
        primary, replica = self.shard()
        primary.kill()
        self.tallyd.kill()
        self.kills["both, a replica takes over"] += 2
        wait_ready(replica.is_primary, "the replica is promoted", PROMOTED_S)

    def failover_is_ordered(self):
        self.cluster.failover(self.shard()[1])

    def failover_is_forced(self):
        """Without a word to the primary, which is alive."""
        self.cluster.failover(self.shard()[1], "FORCE")

    def slots_move(self):
        for slot in self.chance.sample(self.slots, 6):
            self.cluster.move_slots(slot, slot, self.target(self.cluster.owner(slot)))

    def slot_stays_open(self, open_s=1):
        """Half moved."""
        slot = self.chance.choice(self.slots)
        owner = self.cluster.owner(slot)
        target = self.target(owner)
        self.cluster.open_slot(slot, target)
        self.cluster.move_keys(slot, owner, target, most=2)
        time.sleep(open_s)
        self.cluster.move_keys(slot, owner, target)
        self.cluster.close_slot(slot, target)

    def slot_stays_open_for_a_minute(self):
        """Longer than any request waits."""
        self.slot_stays_open(60)


HARMS = (Harmed.primary_is_killed, Harmed.primary_stands_still, Harmed.tallyd_is_killed, Harmed.both_are_killed,
         Harmed.failover_is_ordered, Harmed.failover_is_forced, Harmed.slots_move, Harmed.slot_stays_open,
         Harmed.slot_stays_open_for_a_minute)


def cluster_rounds(report, chance, goal, clients=4):
    """So many rounds; every harm comes once before any comes again."""
    harmed = Harmed(chance)
    left = []
    try:
        harmed.start()
        for number in range(goal):
            left = left or chance.sample(HARMS, len(HARMS))
            harm = left.pop()
            ledger = Ledger(f"round-{number}")
            pause_s = 0.1 if harm is Harmed.slot_stays_open_for_a_minute else 0  # each page is asked for afterwards
            with Clients(ledger, harmed.tallyd, n=clients, limit=10**9, keyed=clients // 2, pause_s=pause_s) as load:
                load.more(chance.randrange(5, 40))
                harm(harmed)
                harmed.heal()
                first_again(report, harm.__name__, load)
                load.more(10)
            before = {what: len(pages) for what, pages in report.found.items()}
            report.add(ledger, harmed.tallyd)
            report.rounds += 1
            new = {what: len(pages) - before[what] for what, pages in report.found.items() if len(pages) > before[what]}
            print(f"faults: round {number}: {harm.__name__}: {len(ledger.counted)} events acknowledged, {ledger.statuses}, wrong: {new}", flush=True)
        report.kills.update(harmed.kills)
    finally:
        harmed.stop()
