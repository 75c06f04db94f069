"""Scripts that change a partition's state, each by itself: what they leave, when they refuse."""

import pytest

from lib.scripts import runner

OLD, NEW, OTHER = "0123456789abcdef", "fedcba9876543210", "0000000000000000"


@pytest.fixture
def run(redis):
    redis.command("FLUSHALL")
    with redis.connect() as connection:
        yield runner(connection)


def state(redis, *names):
    return redis.command("HMGET", "state", *names)


def test_what_was_remembered_before_a_deletion_does_not_hold(redis, run):
    """Each id by which something may be remembered is new.  The instant up to which minutes are
    over stays."""
    redis.command("HSET", "state", "ver", "v", "users", "u", "over", "01773140160 o", "fold", "f")
    assert run("deletion_mark", ["state", "pass"], 1, "site", 0, NEW, 0, OLD) == 1
    assert state(redis, "ver", "users", "over", "fold") == [NEW, NEW, f"01773140160 {NEW}", NEW]
    assert state(redis, "deleting", "deleted") == [OLD, f"site 0 {NEW}\n"]


def test_a_mark_drops_lines_of_which_all_was_counted(redis, run):
    redis.command("HSET", "state", "deleted", "old 99 x\nlate 100 x\ngoing 0 x\n")
    assert run("deletion_mark", ["state", "pass"], 1, "site", 200, NEW, 100, "") == 1
    assert state(redis, "deleted") == [f"late 100 x\ngoing 0 x\nsite 200 {NEW}\n"]
    assert state(redis, "deleting", "over", "fold") == [None] * 3, "nothing is made"


def test_an_older_leader_is_refused(redis, run):
    redis.command("HSET", "pass", "ftok", 7)
    redis.command("HSET", "state", "deleting", OLD)
    redis.command("HSET", "deletions", "site", f"{OLD} 0 0")
    redis.command("SET", "key", 1)
    assert run("deletion_mark", ["state", "pass"], 6, "site", 0, NEW, 0, OLD) == 0
    assert run("deletion_step", ["pass", "deletions"], 6, "site", OLD, "", 5) == 0
    assert run("delete", ["state", "pass", "key"], 6, OLD, 1, "HDEL", 0) == -1
    assert redis.command("EXISTS", "key") == 1 and redis.command("HLEN", "deletions") == 1
    assert state(redis, "deleted", "ver") == [None, None]
    assert run("delete", ["state", "pass", "key"], 7, OLD, 1, "HDEL", 0) == 1


@pytest.mark.parametrize("deleting", [None, OTHER])
def test_nothing_is_taken_away_without_the_mark(redis, run, deleting):
    """A partition that has gone back behind its mark counts again what came since."""
    redis.command("SET", "key", 1)
    if deleting:
        redis.command("HSET", "state", "deleting", deleting)
    assert run("delete", ["state", "pass", "key"], 1, OLD, 1, "HDEL", 0) == -2
    assert redis.command("EXISTS", "key") == 1


def test_the_end_of_a_deletion_leaves_its_instant(redis, run):
    """Whoever does not find the record any more learns from the instant what counts.  The instant
    never goes back."""
    for instant, over in ((500, "500"), (400, "500"), (600, "600")):
        redis.command("HSET", "deletions", "site", f"{OLD} 9900 {instant}")
        keys = ["pass", "deletions"]
        assert run("deletion_step", keys, 1, "site", OTHER, "", 900) == 0, "another deletion"
        assert run("deletion_step", keys, 1, "site", OLD, "", instant) == 1
        assert redis.command("HGET", "pass", "over") == over
        assert redis.command("EXISTS", "deletions") == 0


def test_days_before_the_first_one_that_is_kept(redis, run):
    """The first day that is kept stays, and readers are told up to which day bitmaps are gone."""
    redis.command("HSET", "state", "cfg", "c")
    for day in (10, 11, 12):
        redis.command("ZADD", "acts", day, f"s:{day}")
        redis.command("SETBIT", f"act:s:{day}", 1, 1)
    assert run("sweep_days", ["state", "acts", "act:"], "another", 12, 9) == -1
    assert run("sweep_days", ["state", "acts", "act:"], "c", 12, 1) == 1
    assert redis.command("ZRANGE", "acts", 0, -1) == ["s:11", "s:12"]
    assert state(redis, "swept") == ["12"]
    assert run("sweep_days", ["state", "acts", "act:"], "c", 11, 9) == 0
    assert run("sweep_days", ["state", "acts", "act:"], "c", 12, 9) == 1
    assert [redis.command("EXISTS", f"act:s:{day}") for day in (10, 11, 12)] == [0, 0, 1]
    redis.command("ZADD", "acts", 9, "s:9")
    assert run("sweep_days", ["state", "acts", "act:"], "c", 11, 9) == 1
    assert state(redis, "swept") == ["12"], "never back"


@pytest.mark.parametrize("busy", ["a", "b"])
def test_the_zone_of_no_site_with_data_changes(redis, run, busy):
    redis.command("HSET", "state", "cfg", "c", "st", "s", "zones", "a=Europe/Berlin")
    redis.command("SADD", "sites", busy)

    def change(cfg, st):
        return run("settings", ["state", "sites"], cfg, st, "c2", "k", "v", "", "a", "b")

    assert change("c", "s") == 0
    assert state(redis, "cfg", "zones") == ["c", "a=Europe/Berlin"]
    redis.command("DEL", "sites")
    assert change("x", "s") == 0, "another process has changed the settings"
    assert change("c", "x") == 0, "a bucket was closed meanwhile"
    assert change("c", "s") == 1
    assert state(redis, "cfg", "kept", "ver", "zones") == ["c2", "k", "v", None]


@pytest.fixture
def merge(redis, run):
    """merge(way, sums of two parts): one page /p put into the hour's sums."""
    def merge(way, *sums, token=1, announced=""):
        redis.command("HSET", "state", "cfg", "c")
        redis.command("HSET", "pass", "pass", "p", "cur", "m0")
        for i, n in enumerate(sums):
            redis.command("HSET", f"part{i}", "/p", n)
            redis.command("PFADD", f"uv{i}", f"visitor {i}")
        keys = ["state", "pass", "open", "sums", "part0", "part1", "uv", "uv0", "uv1"]
        return run("merge", keys, "c", "p", "m0", token, 0, 10_000_000, announced, "H", 2, 1, way,
                   "", "/p", 2, 0)
    return merge


def test_a_bucket_that_is_made_anew_has_its_parts_alone(redis, merge):
    redis.command("PFADD", "uv", "of before", "and another")
    redis.command("ZADD", "sums", 9, "/p")
    assert merge("own", 1, 2) == 1
    assert redis.command("PFCOUNT", "uv") == 4
    assert redis.command("ZSCORE", "sums", "/p") == "3"
    assert merge("anew", 1, 3) == 1
    assert redis.command("PFCOUNT", "uv") == 2
    assert redis.command("ZSCORE", "sums", "/p") == "4"
    assert redis.command("HGET", "pass", "cur") == "m1"


def test_a_pass_of_an_older_leader_merges_nothing(redis, merge):
    redis.command("HSET", "pass", "ftok", 7)
    assert merge("own", 1, 2, token=6) == -1
    assert redis.command("EXISTS", "sums", "uv") == 0
    assert merge("own", 1, 2, token=7) == 1


def test_a_page_without_views_gets_no_entry(redis, merge):
    assert merge("own", announced="site:d20000") == 1
    assert redis.command("EXISTS", "sums", "uv") == 0
    assert redis.command("SMEMBERS", "open") == ["site:d20000"], "the day is to be made of it"


def remember_user(redis):
    """User `name` of site s has index 300: place 44 of the third block of 128 names."""
    redis.command("HSET", "state", "cfg", "c", "users", OLD)
    redis.command("HSET", "uid", "name", 300, "other", 301)
    redis.command("RPUSH", "ids:2", *(f"u{i}" for i in range(256, 384)))


def forget(run, cfg="c", user="name"):
    return run("forget_user", ["state", "uid", "ids:", "gone"], cfg, user, NEW, "s")


def test_a_forgotten_user_has_neither_index_nor_name(redis, run):
    """The index is noted, so that its bits are cleared though the caller dies."""
    remember_user(redis)
    assert forget(run) == 300
    assert redis.command("HKEYS", "uid") == ["other"]
    names = redis.command("LRANGE", "ids:2", 0, -1)
    assert names == [f"u{i}" if i != 300 else "" for i in range(256, 384)]
    assert redis.command("SMEMBERS", "gone") == ["s:300"]
    assert state(redis, "users") == [NEW], "what was remembered of users does not hold"


@pytest.mark.parametrize(("cfg", "user", "reply"), [("x", "name", -2), ("c", "nobody", -1)])
def test_nobody_is_forgotten(redis, run, cfg, user, reply):
    remember_user(redis)
    assert forget(run, cfg, user) == reply
    assert redis.command("HLEN", "uid") == 2 and redis.command("EXISTS", "gone") == 0
    assert redis.command("LINDEX", "ids:2", 44) == "u300"
    assert state(redis, "users") == [OLD]


def test_a_change_of_users_elsewhere_is_told_under_equal_settings(redis, run):
    remember_user(redis)
    assert run("users_changed", ["state"], "x", NEW) == -2
    assert state(redis, "users") == [OLD]
    assert run("users_changed", ["state"], "c", NEW) == 1
    assert state(redis, "users") == [NEW]


def test_a_full_redis_forgets_users(start_redis):
    redis = start_redis()
    remember_user(redis)
    redis.command("CONFIG", "SET", "maxmemory", "1")
    run = runner(redis)
    assert forget(run) == 300
    assert run("users_changed", ["state"], "c", OTHER) == 1
