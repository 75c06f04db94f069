"""Scripts of filters, each by itself: what they write, what they refuse, and what outlives a deletion."""

import pytest

from lib.resp import RespError
from lib.scripts import runner

DONE, GROWN, STALE, GONE = range(4)
SHARD = "shard"
STRINGS = ["string1", "string2"]
WEEK_MS = 7 * 86_400_000


@pytest.fixture
def run(redis):
    redis.command("FLUSHALL")
    with redis.connect() as connection:
        yield runner(connection)


@pytest.fixture
def add(run):
    """add(id, items): each item is the number of its string and its two bits."""
    def add(id_, *items, layers=1, capacity=10, grows=1, length=0):
        words = [word for item in items for word in item]
        return run("filter_add", [SHARD, *STRINGS], id_, layers, layers - 1, capacity, grows, 2,
                   len(items), length, *words)

    return add


def fields(redis, key=SHARD):
    words = redis.command("HGETALL", key)
    return dict(words) if isinstance(words, dict) else dict(zip(words[::2], words[1::2]))


def create(run):
    return run("filter_create", [SHARD], 100, "0.01", 2, 1, 1)


def test_a_filter_is_made_once(redis, run):
    assert create(run) == 1
    made = fields(redis)
    assert run("filter_create", [SHARD], 200, "0.1", 1, 4, 2) == 0
    assert fields(redis) == made
    assert {**made, "id": ""} == {"id": "", "capacity": "100", "error": "0.01", "expansion": "2",
                                  "shards": "1", "rules": "1"}
    seconds, _ = redis.command("TIME")
    assert 0 <= int(seconds) - int(made["id"]) // 1_000_000 < 60, "the id is a time"


def test_a_filter_that_is_made_again_has_a_greater_id_and_no_end(redis, run):
    """Redis's clock may have been set back since the earlier filter was made."""
    ahead = 4_000_000_000_000_000
    redis.command("HSET", SHARD, "last", ahead)
    redis.command("EXPIRE", SHARD, 7200)
    assert create(run) == 1
    assert fields(redis)["id"] == str(ahead + 1) and "last" not in fields(redis)
    assert redis.command("PTTL", SHARD) == -1


def test_a_deletion_is_remembered_for_two_hours(redis, run, add):
    """Whoever still has the deleted filter's id adds nothing, and deletes nothing of a later filter."""
    assert add(5, (1, 3, 4)) == [DONE, "1"]
    redis.command("HSET", SHARD, "n", 3)
    assert run("filter_drop", [SHARD], 5, "fence") == 3
    assert fields(redis)["drop"] == "1"
    assert add(5, (1, 3, 4), layers=3) == [GONE, ""], "the strings are being deleted"
    assert run("filter_drop", [SHARD], 5, "over") == 3
    assert fields(redis) == {"last": "5"}
    assert 7190 < redis.command("TTL", SHARD) <= 7200
    assert run("filter_drop", [SHARD], 5, "fence") == -1
    assert add(5, (1, 3, 4)) == add(4, (1, 3, 4)) == [GONE, ""]
    assert fields(redis) == {"last": "5"}
    assert add(6, (1, 3, 4))[0] == DONE
    assert fields(redis) == {"id": "6", "n": "1"}, "the item was there: its string was not deleted"
    assert redis.command("PTTL", SHARD) == -1
    assert run("filter_drop", [SHARD], 5, "fence") == run("filter_drop", [SHARD], 5, "over") == -1
    assert fields(redis) == {"id": "6", "n": "1"}


def test_a_shard_without_items_of_the_filter_is_fenced_too(redis, run, add):
    redis.command("HSET", SHARD, "last", 5)
    redis.command("EXPIRE", SHARD, 7200)
    assert run("filter_drop", [SHARD], 6, "fence") == 0
    assert redis.command("PTTL", SHARD) == -1, "a fence stands until its deletion is over"
    assert add(6, (1, 3, 4)) == [GONE, ""]
    redis.command("HSET", SHARD, "n", 4)
    assert run("filter_drop", [SHARD], 7, "fence") == 0, "the four layers are another filter's"


def test_what_is_left_of_an_earlier_filter_does_not_count(redis, add):
    redis.command("HSET", SHARD, "id", 5, "n", 3, "0", 10, "2", 7, "drop", 1)
    assert add(6, (1, 3, 4)) == [DONE, "1"]
    assert fields(redis) == {"id": "6", "n": "1", "0": "1"}


def test_another_number_of_layers_is_told(redis, add):
    redis.command("HSET", SHARD, "id", 5, "n", 3)
    assert add(5, (1, 3, 4), layers=2) == [STALE, "3"]
    assert redis.command("EXISTS", *STRINGS) == 0


def test_a_script_makes_one_string_of_its_whole_length(redis, add):
    """Zeros take long to write."""
    items = (1, 3, 4), (1, 5, 6), (2, 3, 4)
    assert add(5, *items, length=800) == [DONE, "11"]
    assert [redis.command("STRLEN", s) for s in STRINGS] == [100, 0]
    assert add(5, *items, length=800) == [DONE, "001"]
    assert [redis.command("STRLEN", s) for s in STRINGS] == [100, 100]
    assert fields(redis)["0"] == "3"


@pytest.mark.parametrize(("grows", "reply", "layers"),
                         [(0, [DONE, "10120"], "1"), (1, [GROWN, "101"], "2")])
def test_a_full_layer_takes_no_new_item(redis, add, grows, reply, layers):
    """The items of before are known to a full layer.  A refused item leaves no bit."""
    items = (1, 0, 1), (1, 1, 0), (1, 2, 3), (1, 4, 5), (1, 3, 0)
    assert add(5, *items, capacity=2, grows=grows) == reply
    assert fields(redis) == {"id": "5", "n": layers, "0": "2"}
    assert redis.command("BITCOUNT", STRINGS[0]) == 4


# The filters of who saw what


def test_a_step_of_a_fold_writes_bits_that_end_with_the_month(redis, run):
    end_ms = int(redis.command("TIME")[0]) * 1000 + WEEK_MS
    redis.command("SET", "old", "pairs")
    keys = ["filter", "old", "bits"]
    assert run("seen_fold", keys, "v", "w", end_ms, "abc", "items", 3) == 0, "it has no ver yet"
    assert redis.command("EXISTS", "filter", "bits") == 0
    assert run("seen_fold", keys, "", "v", end_ms, "abc", "items", 3) == 1
    assert run("seen_fold", keys, "", "w", end_ms, "xyz", "items", 4) == 0, "another has folded"
    assert fields(redis, "filter") == {"ver": "v", "items": "3"}
    assert redis.command("GET", "bits") == "abc" and redis.command("GET", "old") == "pairs"
    assert [redis.command("PEXPIRETIME", key) for key in ("filter", "bits")] == [end_ms] * 2
    assert run("seen_fold", keys[:2], "v", "w", end_ms + 9, "", "items", 5) == 1
    assert redis.command("EXISTS", "old") == 0
    assert fields(redis, "filter") == {"ver": "w", "items": "5"}
    assert redis.command("PEXPIRETIME", "filter") == end_ms + 9
    assert run("seen_fold", keys, "w", "x", end_ms, "abc", "items", 6) == 0, "no log is there"
    assert fields(redis, "filter") == {"ver": "w", "items": "5"}


def test_a_full_redis_deletes_and_takes_nothing_new(start_redis):
    redis = start_redis()
    redis.command("HSET", SHARD, "id", 5, "n", 1)
    redis.command("SET", "old", "pairs")
    redis.command("CONFIG", "SET", "maxmemory", "1")
    run = runner(redis)
    for name, keys, arguments in (
            ("filter_create", ["new"], (100, "0.01", 2, 1, 1)),
            ("filter_add", [SHARD, STRINGS[0]], (5, 1, 0, 10, 1, 2, 1, 0, 1, 3, 4)),
            ("seen_fold", ["filter", "old", "bits"], ("", "v", 9_000_000_000_000, "abc", "n", 1))):
        with pytest.raises(RespError, match="OOM"):
            run(name, keys, *arguments)
    assert redis.command("EXISTS", "new", "filter", "bits", *STRINGS) == 0
    assert run("filter_drop", [SHARD], 5, "fence") == run("filter_drop", [SHARD], 5, "over") == 1
    assert fields(redis) == {"last": "5"}
