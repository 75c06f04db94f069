"""Processes that remember what is over, and one beside them that does not and must say the same numbers."""

import pytest

from .clock import rfc3339
from .world import FOREVER, World

START = "2026-03-10 10:56:20"
BELOW = {"TALLYD_TEST_ANSWERS": "off"}  # whole answers are given again, too (test_answers.py): what is tried here lies below


def two_and_plain(*args, env=None):
    """For a fixture: a world in which tallyd 0 and 1 remember, and 2 (`plain`) does not."""
    world = World(START, *FOREVER, *args, env=env)
    world.add_tallyd()
    world.args = (*world.args, "--cache-mb", "0")
    world.add_tallyd()
    yield world
    world.close()


@pytest.fixture(scope="module")
def world():
    yield from two_and_plain(env=BELOW)


@pytest.fixture
def clients(world):
    clients = [t.client() for t in world.tallyds]
    yield clients
    for client in clients:
        client.close()


def events(site, chance, n, first, last, pages="abc"):
    return [{"site": site, "page": f"/{chance.choice(pages)}", "user": chance.randrange(3000),
             "ip": f"10.1.{chance.randrange(20)}.{chance.randrange(250)}", "ts": chance.randrange(first, last)}
            for _ in range(n)]


def window(first, last):
    return {"from_": rfc3339(first), "to": rfc3339(last)}


def work(client):
    """(runs remembered, keys read) so far."""
    return client.metric("tallyd_cache_hits_total"), client.metric("tallyd_query_keys_total")


def questions(world, clients, site, chance, draw, late, rounds, every, days):
    """(number, question), mostly one that was asked before, while hours, once days, close and `late` events come to those
    that remember.  draw() is a question but for its site and window."""
    first = int(world.now()) // 86400 * 86400 - days * 86400
    asked = []
    for i in range(rounds):
        if i % every == every - 1:
            world.stroll(int(world.now()) + 3600 + (40000 if i == 3 * every - 1 else 0))
        now = int(world.now())
        if chance.random() < 0.6:
            chance.choice(clients[:2]).accept(late(site, chance, chance.randrange(1, 30), first, now))
        if chance.random() < 0.4 or not asked:
            begin = chance.randrange(first - 86400, now)
            asked.append({"site": site, **draw(), **window(begin, chance.randrange(begin + 60, now + 7200))})
        yield i, chance.choice(asked[-6:])
