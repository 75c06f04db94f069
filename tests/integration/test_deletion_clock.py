"""A deletion, and Redis's clock that is set back behind it: what is acknowledged after the deletion is counted."""

import pytest

from lib.clock import epoch
from lib.waiting import wait_until
from lib.world import FOREVER

WINDOW = {"from_": "2026-03-01", "to": "2026-04-20"}


def start(start_world):
    return start_world("2026-03-10 10:20:10", "--partitions", "4", *FOREVER)


def records(world):
    return [v for key in world.redis.command("KEYS", "t:*:deletions") for v in world.redis.command("HVALS", key)]


def delete(world, target):
    answer = world.http.request("DELETE", target)
    assert answer.status == 202, answer


def set_back(world, client, back_s):
    """Also tallyd knows of it afterwards: an answer has told it the time."""
    before = world.now()
    world.clock.set_back(back_s)
    wait_until(lambda: epoch(client.question("/pv", site="other", from_="now-1m")["to"]) < before, f"{back_s} s back")


def accept_soon(client, event):
    wait_until(lambda: client.post(event).status == 202, "events of the site are taken again", deadline_s=20)


@pytest.mark.parametrize("back_s", [90, 3600, 2 * 86400])
def test_a_site_that_was_deleted(start_world, start_tallyd, site, back_s):
    """Also by a process that has started since."""
    world = start(start_world)
    event = {"site": site, "page": "/p", "user": "ann"}
    world.http.accept(event)
    delete(world, f"/sites/{site}")
    wait_until(lambda: not records(world), "the deletion is over", deadline_s=20)
    set_back(world, world.http, back_s)
    accept_soon(world.http, event)
    assert world.http.count("pv", site=site, **WINDOW) == 1
    new = start_tallyd("--partitions", "4", *FOREVER, redis=world.redis, name="new").client()
    accept_soon(new, event)
    assert [c.count("pv", site=site, page="/p", **WINDOW) for c in (world.http, new)] == [2, 2]


def test_a_page_that_was_deleted(start_world, site):
    world = start(start_world)
    world.http.accept([{"site": site, "page": page, "user": "ann"} for page in ("/p", "/q")])
    delete(world, f"/pages?site={site}&page=/p")
    wait_until(lambda: not records(world), "the deletion is over", deadline_s=20)
    set_back(world, world.http, 3600)
    world.http.accept({"site": site, "page": "/p", "user": "ann"})
    assert world.http.count("pv", site=site, **WINDOW) == 3
    assert world.http.count("pv", site=site, page="/p", **WINDOW) == 1


def test_a_deletion_that_waits_for_its_instant(start_world, site):
    """It does not wait until the clock is there again."""
    world = start(start_world)
    event = {"site": site, "page": "/p", "user": "ann"}
    world.http.accept(event)
    delete(world, f"/sites/{site}")
    record = wait_until(lambda: next((v for v in records(world) if not v.endswith(" 0")), None), "it has an instant", deadline_s=20)
    assert world.now() * 1000 < int(record.split()[2]), "which has not come"
    world.clock.set_back(3600)
    wait_until(lambda: not records(world), "the deletion is over", deadline_s=20)
    accept_soon(world.http, event)
    assert world.http.count("pv", site=site, **WINDOW) == 1
