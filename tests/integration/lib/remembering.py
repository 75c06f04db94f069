"""Processes that remember what is over, and one beside them that does not and must say the same numbers."""

import pytest

from .world import FOREVER, World

START = "2026-03-10 10:56:20"


@pytest.fixture(scope="module")
def world():
    """tallyd 0 and 1 remember, 2 (`plain`) does not."""
    world = World(START, *FOREVER)
    world.add_tallyd()
    world.args = (*FOREVER, "--cache-mb", "0")
    world.add_tallyd()
    yield world
    world.close()


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
