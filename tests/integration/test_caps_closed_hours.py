"""Caps of hours that are long over, as in an import: their counters tell which names have a place."""

import collections
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.clock import epoch, rfc3339
from lib.log import counted
from lib.waiting import wait_until
from lib.world import FOREVER, World

CAP = 6
ARGS = (*FOREVER, "--max-values", str(CAP), "--max-pages", str(CAP), "--partitions", "1")
HOUR_S = 3600


@pytest.fixture
def world():
    world = World("2026-03-10 10:10", *ARGS)
    yield world
    world.close()


def events_of(names, at):
    return [{"site": "s", "page": f"/{name}", "referrer": f"https://{name}/", "user": name, "ts": at + i % 60} for i, name in enumerate(names)]


def hour(http, at):
    """What is listed of an hour, and what was put together: of sources, and of pages."""
    window = {"site": "s", "from_": rfc3339(at), "to": rfc3339(at + HOUR_S), "limit": 1000}
    sources = http.question("/breakdown", by="source", **window)
    assert sources["total"] == sources["other"] + sum(r["pv"] for r in sources["rows"])
    pages = http.question("/pages", **window)["pages"]
    return ({r["value"]: r["pv"] for r in sources["rows"]}, sources["other"],
            {r["page"][1:]: r["pv"] for r in pages if not r.get("capped")})


def lose_hashes(world, hours=None):
    """The hashes of places expire a quarter of an hour after the last new name.  Of these hours, or of all."""
    names = ["*"] if hours is None else [f"h{rfc3339(at)[:13].replace('-', '').replace('T', '')}00" for at in hours]
    for name in names:
        for key in world.redis.command("KEYS", f"t:*:places:s:{name}"):
            world.redis.command("DEL", key)


def test_an_hour_that_no_cap_touches_has_no_hash(start_world):
    world = start_world("2026-03-10 10:10", *FOREVER, "--max-values", "50", "--partitions", "1")
    at = epoch("2026-02-10 10:00")
    world.http.accept(events_of(["a", "b", "c"], at))
    world.http.accept(events_of(["a", "d"], at))
    assert hour(world.http, at) == ({"a": 2, "b": 1, "c": 1, "d": 1}, 0, {"a": 2, "b": 1, "c": 1, "d": 1})
    assert world.redis.command("KEYS", "t:*:places:*") == []


@pytest.mark.parametrize("pieces", [1, 3, 40])
def test_names_beyond_the_cap_are_put_together(world, pieces):
    at = epoch("2026-02-10 10:00")
    names = [f"n{i}" for i in range(20)] * 2
    for i in range(pieces):
        world.http.accept(events_of(names[i * len(names) // pieces:(i + 1) * len(names) // pieces], at))
        counted(world.http)
    first = {f"n{i}": 2 for i in range(CAP)}
    assert hour(world.http, at) == (first, 40 - 2 * CAP, first)
    lose_hashes(world)
    world.http.accept(events_of(["n0", "n19", "new"], at))
    first["n0"] = 3
    assert hour(world.http, at) == (first, 42 - 2 * CAP, first)


def test_a_name_of_the_hour_before_keeps_its_place(world):
    at = epoch("2026-02-10 10:00")
    before, now = [f"b{i}" for i in range(CAP)], [f"n{i}" for i in range(CAP)]
    world.http.accept(events_of(before, at))
    counted(world.http)
    lose_hashes(world)
    for names in (now, ["late"]):  # one after the other, also where a busy machine counts a request in pieces
        world.http.accept(events_of(names, at + HOUR_S))
        counted(world.http)
    world.http.accept(events_of(["late"], at))  # the hour before has no place left for it
    counted(world.http)
    world.http.accept(events_of([*before, "late"], at + HOUR_S))
    listed = dict.fromkeys([*now, *before], 1)
    assert hour(world.http, at + HOUR_S) == (listed, 2, listed)


def test_a_name_that_was_refused_stays_so(world):
    """It comes to the hour before when this hour had refused it."""
    at = epoch("2026-02-10 10:00")
    now = [f"n{i}" for i in range(CAP)]
    for names in (now, ["late"]):  # one after the other, also where a busy machine counts a request in pieces
        world.http.accept(events_of(names, at + HOUR_S))
        counted(world.http)
    world.http.accept(events_of(["late"], at))
    counted(world.http)
    for _ in range(2):
        world.http.accept(events_of(["late"], at + HOUR_S))
        counted(world.http)
        lose_hashes(world)
    assert hour(world.http, at) == ({"late": 1}, 0, {"late": 1})
    assert hour(world.http, at + HOUR_S) == (dict.fromkeys(now, 1), 3, dict.fromkeys(now, 1))


def test_the_hour_two_hours_before_keeps_nothing(world):
    """A place was kept for its names, and they did not come."""
    at = epoch("2026-02-10 10:00")
    first = [f"a{i}" for i in range(CAP)]
    for hours, names in ((0, first), (1, [f"b{i}" for i in range(CAP + 1)]), (2, [f"c{i}" for i in range(CAP)]), (2, [*first, "b0"])):
        world.http.accept(events_of(names, at + hours * HOUR_S))
        counted(world.http)
    listed = dict.fromkeys([f"c{i}" for i in range(CAP)] + ["b0"], 1)
    assert hour(world.http, at + 2 * HOUR_S) == (listed, CAP, listed)


def test_a_late_name_of_the_hour_before_stays_in_the_hour_that_runs(world):
    last, now = epoch("2026-03-10 10:00"), epoch("2026-03-10 11:00")
    world.http.accept(events_of(["a"], last))
    world.move("2026-03-10 11:10")
    wait_until(lambda: int(world.redis.command("HGET", "t:{0}:state", "st").split()[1]) >= now, "the hour is closed")
    for at, names in ((now, [f"n{i}" for i in range(CAP)]), (last, ["late"]), (now, ["late", "new"])):
        world.http.accept(events_of(names, at))
        counted(world.http)
    listed = dict.fromkeys([f"n{i}" for i in range(CAP)] + ["late"], 1)
    assert hour(world.http, now) == (listed, 1, listed)


def test_sections_take_no_places(start_world, tmp_path):
    """They stand in the same counters, and so do the sums over visits."""
    config = tmp_path / "tallyd.conf"
    config.write_text("".join(f"section.s{i} = /\n" for i in range(CAP)))
    world = start_world("2026-03-10 10:10", *ARGS, "--config", str(config))
    at = epoch("2026-02-10 10:00")
    for names in (["p0", "p0"], [f"p{i}" for i in range(1, CAP + 2)]):
        world.http.accept(events_of(names, at))
        counted(world.http)
    listed = {"p0": 2, **dict.fromkeys((f"p{i}" for i in range(1, CAP)), 1)}
    assert hour(world.http, at) == (listed, 2, listed)


ZONES = (None, "Asia/Karachi", "Europe/Berlin", "America/New_York", "Pacific/Auckland")  # whole hours


def random_events(rng, hours, truth):
    """A request: some hours, names of which few come often."""
    events = []
    for at in rng.choices(hours, k=rng.choice((1, 1, 3))):
        names = [f"n{int(rng.paretovariate(rng.choice((0.5, 0.9))))}" for _ in range(rng.choice((1, 3, 30, 200)))]
        events += events_of(names, at)
        truth[at].update(names)
    return events


@pytest.mark.some(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_imports(start_world, tmp_path, seed):
    """One process or two at once, requests of any size, hours of which some are 26 hours over meanwhile: a name that an hour lists has
    all that came for it.  (1,600 other seeds passed.)"""
    rng = random.Random(seed)
    cap, begin = rng.choice((3, 6, 20)), epoch("2026-03-10 10:10")
    zone, config = rng.choice(ZONES), tmp_path / "tallyd.conf"
    config.write_text(f"site.s.tz = {zone}\n" if zone else "")
    world = start_world(rfc3339(begin)[:16].replace("T", " "), *FOREVER, "--max-values", str(cap), "--max-pages", str(cap),
                        "--partitions", rng.choice(("1", "2", "16")), "--config", str(config))
    if rng.random() < 0.7:
        world.add_tallyd()
    newest = epoch(rng.choice(("2026-03-09 10:00", "2026-03-10 08:00", "2026-02-27 23:00")))
    hours = [newest - i * HOUR_S for i in range(rng.choice((3, 8, 30)))]
    old = [at for at in hours if at + 27 * HOUR_S < begin]  # their hashes of places may be gone
    truth = collections.defaultdict(collections.Counter)
    for step in range(80):
        if step % 16 == 15:
            world.move(rfc3339(begin + (step // 16 + 1) * HOUR_S)[:16].replace("T", " "))
        with ThreadPoolExecutor() as pool:
            sent = [pool.submit(tallyd.client().accept, random_events(rng, hours, truth)) for tallyd in world.tallyds]
        for one in sent:
            one.result()
        if rng.random() < 0.1:
            lose_hashes(world, old)
    capped = 0
    for at in hours:
        found = [hour(tallyd.client(), at) for tallyd in world.tallyds]
        assert all(one == found[0] for one in found)
        listed, other, pages = found[0]
        for of in (listed, pages):
            assert of == {name: truth[at][name] for name in of}
            assert len(of) >= min(cap, len(truth[at]))
        assert other == sum(truth[at].values()) - sum(listed.values())
        capped += other > 0
    assert capped > 0


def test_once_full_an_hour_stays_so(world):
    """A process with higher caps finds that names were put together."""
    at = epoch("2026-02-10 10:00")
    world.http.accept(events_of([f"n{i}" for i in range(CAP + 1)], at))
    counted(world.http)
    lose_hashes(world)
    higher = world.add_tallyd("--max-values", "1000", "--max-pages", "1000").client()
    higher.accept(events_of(["n0", f"n{CAP}", "new"], at))
    first = {**dict.fromkeys((f"n{i}" for i in range(CAP)), 1), "n0": 2}
    assert hour(higher, at) == (first, 3, first)


def test_a_name_without_a_place_gets_none_before_the_hour_is_told_by_counters():
    """Places are kept until 26 hours after the hour's end, whenever the last one was given."""
    world = World("2026-03-10 10:05", *FOREVER, "--max-values", str(CAP), "--max-pages", str(CAP), "--partitions", "1")
    try:
        at = epoch("2026-03-10 10:00")
        world.http.accept(events_of([f"n{i}" for i in range(CAP)] + ["late"], at))
        counted(world.http)
        world.move("2026-03-11 12:30")
        wait_until(lambda: int(world.redis.command("HGET", "t:{0}:state", "st").split()[1]) > at + 3600, "the hour is closed")
        world.http.accept(events_of(["late"], at))
        counted(world.http)
        assert "late" not in hour(world.http, at)[0]
    finally:
        world.close()
