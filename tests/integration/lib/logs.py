"""Logs as they stand in Redis, written by hand: heads, streams and cursors (storage/schema/log_state.h)."""

import re
import secrets
import struct


def tag_of(redis):
    """The hash tag of partition 0."""
    return redis.command("KEYS", "t:*:meta")[0].split(":")[1]


def states(redis):
    return sorted(redis.command("KEYS", "t:*:state"))


def commands(redis, name):
    """How often a command ran."""
    found = re.search(rf"cmdstat_{name}:calls=(\d+)", redis.command("INFO", "commandstats"))
    return int(found[1]) if found else 0


class FakeLog:
    """A log of n entries that no process can decode, so nothing but the test moves its cursors."""

    def __init__(self, redis, n, silent_s=0, age_s=None):
        """silent_s: since its writer was heard of.  age_s: since its first entry arrived; None: no entry can be read."""
        self.redis, self.n, self.id, tag = redis, n, secrets.token_hex(8), tag_of(redis)
        self.heads, self.stream = f"t:{tag}:heads", f"t:{tag}:log:{self.id}"
        now_ms = int(redis.time() * 1000)
        for i in range(1, n + 1):
            head = b"\xff" if age_s is None else struct.pack("<BQ", 1, now_ms - int(age_s * 1000) + i)
            redis.command("XADD", self.stream, f"{i}-0", "h", head, "p", b"\xff\xff\xff")
        self.head(n, silent_s)

    def head(self, n, silent_s=0):
        redis = self.redis
        redis.command("HSET", self.heads, self.id, f"{n} 0123456789abcdef {int((redis.time() - silent_s) * 1000)}")

    def append(self):
        """One more entry."""
        self.n += 1
        self.redis.command("XADD", self.stream, f"{self.n}-0", "h", b"\xff", "p", b"\xff\xff\xff")
        self.head(self.n)

    def cursor(self, text, keys=None):
        """Set the cursor of all partitions, or of those with these keys."""
        for key in keys or states(self.redis):
            self.redis.command("HSET", key, self.id, text)

    def cursors(self):
        return [self.redis.command("HGET", key, self.id) for key in states(self.redis)]

    def is_open(self):
        return self.redis.command("HEXISTS", self.heads, self.id) == 1

    def close(self):
        self.redis.command("HDEL", self.heads, self.id)
        self.redis.command("DEL", self.stream)
