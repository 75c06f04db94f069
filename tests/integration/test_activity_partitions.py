"""Days of users in many partitions: bitmaps are asked for ahead over all of these, and behind them whether they were kept.
No answer depends on the number of partitions, and what goes wrong with one partition leaves nothing behind."""

import threading

import pytest

from lib.activity import DAY_S, date_of, pages
from lib.proxy import Fault
from lib.waiting import wait_until

DAYS = 6
ACTIONS = ("active", "x")
# users of a block, whole bytes of a bitmap: pieces are 128 KB, 16 KB in /active/users, and shorter with many sets
BLOCKS = [8, 1_048_576 + 80, 64, 150_000, 0, 131_072, 40, 8] * 3
CAME_DAILY = 3  # of each block, and has a name


def tags_with_users(http, redis):
    """All tags that users can lie under."""
    http.accept([{"site": "another", "page": "/", "user": f"u{i}"} for i in range(4000)])
    http.question("/dau", site="another")
    return sorted(key.split(":")[1] for key in redis.command("KEYS", "t:*:uid:another"))


def blocks_of(chance, today):
    """[{(action, day): bytes}], the same for any number of partitions."""
    blocks = []
    for users in BLOCKS:
        block = {}
        for back in range(DAYS):
            for action in ACTIONS:
                n = users // 8
                bits = bytearray((chance.getrandbits(users) & chance.getrandbits(users)).to_bytes(n, "big") if n else b"")
                if n:
                    bits[0] |= 0x80 >> CAME_DAILY
                block[action, today - back] = bytes(bits)
        blocks.append(block)
    return blocks


def put(redis, site, tags, blocks):
    """Straight into Redis, block after block, each behind those that lie in the same partition."""
    lists = {tag: [] for tag in tags}
    for i, block in enumerate(blocks):
        lists[tags[i * 5 % len(tags)]].append((i, block))
    with redis.connect() as connection:
        for tag, there in lists.items():
            begin = 0
            bitmaps = {}
            for i, block in there:
                if BLOCKS[i] > 0:
                    index = begin + CAME_DAILY
                    connection.command("RPUSH", f"t:{tag}:ids:{site}:{index // 128}",
                                       *[""] * (index % 128 - connection.command("LLEN", f"t:{tag}:ids:{site}:{index // 128}")),
                                       f"block {i}")
                begin += BLOCKS[i]
                for of, value in block.items():
                    bitmaps[of] = bitmaps.get(of, b"") + value
            if begin > 0:
                connection.command("HSET", f"t:{tag}:uid:{site}", "", begin)
            for (action, day), value in bitmaps.items():
                if value:
                    name = f"{site}:{action}:{date_of(day).replace('-', '')}"
                    connection.command("SET", f"t:{tag}:act:{name}", value)
                    connection.command("ZADD", f"t:{tag}:acts", day, name)


def size(value):
    return value.bit_count()


def check_answers(http, site, blocks, today):
    def on(action, day):
        return int.from_bytes(b"".join(block.get((action, day), b"") for block in blocks), "big")

    def union(action, first, end):
        found = 0
        for day in range(first, end):
            found |= on(action, day)
        return found

    first, end = today - DAYS + 1, today + 1
    window = {"site": site, "from_": date_of(first), "to": date_of(end)}
    active, x = union("active", first, end), union("x", first, end)
    assert [d["users"] for d in http.question("/dau", **window)["series"]] == [size(on("active", d)) for d in range(first, end)]
    assert http.question("/active", **window)["users"] == size(active)
    assert [s["users"] for s in http.question("/funnel", step=["active", "x"], **window)["steps"]] == [size(active), size(active & x)]
    days = http.question("/dau", new_within="2d", site=site, from_=date_of(today - 400), to=date_of(end))["series"]
    assert [(d["users"], d["new"]) for d in days[-DAYS:]] == [
        (size(on("active", d)), size(on("active", d) & ~union("active", d - 2, d))) for d in range(first, end)]
    retained = http.question("/retention", site=site, cohort=date_of(first), days=4)["returned"]
    assert [r["users"] for r in retained] == [size(on("active", first) & on("active", d)) for d in range(first + 1, first + 5)]
    on_days = [active] + [0] * DAYS
    for day in range(first, end):
        there = on("active", day)
        on_days = [on_days[n] & ~there | (on_days[n - 1] & there if n else 0) for n in range(DAYS + 1)]
    assert [d["users"] for d in http.question("/frequency", **window)["days"]] == [size(users) for users in on_days[1:]]
    names = sorted(f"block {i}" for i, users in enumerate(BLOCKS) if users)
    for limit in (1, 4, 1000):  # most who came on all days have no name, as if they were forgotten
        assert sorted(pages(http, site, limit, min_days=DAYS, from_=window["from_"], to=window["to"])) == names


@pytest.mark.parametrize("partitions", [1, 16, 256])
def test_no_answer_depends_on_the_number_of_partitions(start_redis, start_tallyd, site, chance, partitions):
    redis = start_redis()
    http = start_tallyd("--partitions", str(partitions), redis=redis).client()
    tags = tags_with_users(http, redis)
    assert len(tags) == min(partitions, 64)
    today = int(redis.time()) // DAY_S
    blocks = blocks_of(chance, today)
    put(redis, site, tags, blocks)
    check_answers(http, site, blocks, today)


def fill(http, site, today):
    """300 users on three days, in about all of 64 partitions."""
    for back in range(3):
        http.accept([{"site": site, "page": "/", "user": f"u{i}", "actions": ["x"], "ts": (today - back) * DAY_S} for i in range(300)])
    http.question("/dau", site=site)


def questions(today):
    """(path, parameters, the command that reads, how many a partition, what is asked about the answer, that)"""
    window = {"from_": date_of(today - 2), "to": date_of(today + 1)}
    return {
        "dau": ("/dau", window, b"BITCOUNT", 3, lambda a: [d["users"] for d in a["series"]], [300] * 3),
        "active": ("/active", window, b"GETRANGE", 3, lambda a: a["users"], 300),
        "funnel": ("/funnel", {"step": ["active", "x"], **window}, b"GETRANGE", 6, lambda a: [s["users"] for s in a["steps"]], [300, 300]),
        "frequency": ("/frequency", window, b"GETRANGE", 3, lambda a: [d["users"] for d in a["days"]], [0, 0, 300]),
        "users": ("/active/users", {"limit": 1000, **window}, b"GETRANGE", 3, lambda a: len(a["users"]), 300),
        "one user": ("/users/u7/activity", window, b"GETBIT", 0, lambda a: a["active_days"], 3)}


KINDS = list(questions(0))


@pytest.fixture
def filled(start_redis, start_proxy, start_tallyd, site):
    """A Redis with the users of three days, the proxy in front of it, who asks through that, and today."""
    redis = start_redis()
    proxy = start_proxy(redis)
    http = start_tallyd("--partitions", "256", redis=proxy).client()
    today = int(redis.time()) // DAY_S
    fill(http, site, today)
    return redis, proxy, http, today


@pytest.mark.parametrize("kind", KINDS)
def test_days_that_are_swept_away_while_the_last_bitmap_is_read(filled, site, kind):
    """Whether they were kept is read behind all that was read of them."""
    redis, proxy, http, today = filled
    path, params, command, of_each, _, _ = questions(today)[kind]
    with_users = len(redis.command("KEYS", f"t:*:uid:{site}"))
    last = proxy.arm(Fault("command-held", nth=of_each * with_users or 3, match=lambda args: args[0].upper() == command))
    answers = []
    asking = threading.Thread(target=lambda: answers.append(http.get(path, site=site, **params)))
    asking.start()
    wait_until(lambda: last.fired, "the last bitmap is asked for")
    for key in redis.command("KEYS", f"t:*:act:{site}:*"):
        redis.command("DEL", key)
    for key in redis.command("KEYS", "t:*:state"):
        redis.command("HSET", key, "swept", today + 1)
    last.release()
    asking.join()
    assert answers[0].status == 422, answers[0]
    assert date_of(today + 1) in answers[0].errors[0]["detail"]


@pytest.mark.some(6)
@pytest.mark.parametrize("point", ["command-before", "reply-before", "reply-inside"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_question_that_is_cut_amid_the_partitions_is_asked_again(filled, site, kind, point):
    _, proxy, http, today = filled
    path, params, command, of_each, of, expected = questions(today)[kind]
    fault = proxy.arm(Fault(point, nth=100 if of_each else 2, match=lambda args: args[0].upper() == command))
    assert of(http.question(path, site=site, **params)) == expected
    assert fault.fired == 1


@pytest.mark.parametrize("kind", KINDS[:-1])
def test_foreign_data_in_one_partition(filled, site, kind):
    """It is refused, and the replies behind it are nobody's: the next answer is right."""
    redis, _, http, today = filled
    path, params, _, _, of, expected = questions(today)[kind]
    keys = sorted(redis.command("KEYS", f"t:*:act:{site}:active:{date_of(today - 1).replace('-', '')}"))
    middle = keys[len(keys) // 2]
    redis.command("RENAME", middle, "aside")
    redis.command("RPUSH", middle, "foreign")
    assert http.get(path, site=site, **params).status == 503
    redis.command("RENAME", "aside", middle)
    assert of(http.question(path, site=site, **params)) == expected
