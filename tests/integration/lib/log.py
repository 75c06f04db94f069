"""The log in Redis as a test sees it: its commands, what stands in it, and logs written by hand.

storage/schema/log_state.h has the layout of heads, streams and cursors."""

import re
import secrets
import struct
import threading

HELD = {"TALLYD_TEST_FOLD_HOLD": "60000"}  # environment of a tallyd that acknowledges, and for a minute does not fold


def is_append(args):
    """append.lua: heads, a log, and the records of keys."""
    return args[0].upper() == b"EVALSHA" and len(args) >= 11 and args[3].endswith(b":heads") and b":log:" in args[4]


def append_of(text):
    """Appends in which these bytes stand."""
    return lambda args: is_append(args) and any(text.encode() in a for a in args[5:])


class OfAFold:
    """The commands of a fold, WATCH to EXEC, which go over one connection (a thread of the proxy's)."""

    def __init__(self):
        self.inside = set()

    def __call__(self, args):
        me, name = threading.get_ident(), args[0].upper()
        if name == b"WATCH":
            self.inside.add(me)
        found = me in self.inside
        if name in (b"EXEC", b"UNWATCH"):
            self.inside.discard(me)
        return found


class OfTheLog(OfAFold):
    """Those, and the appends."""

    def __call__(self, args):
        return super().__call__(args) or is_append(args)


def is_exec(args):
    """Of a fold, or of a reading."""
    return args[0].upper() == b"EXEC"


CLOSED = "closed"  # the field of a register that is no log: how many were closed


def heads(redis):
    """{id of a log: number of its last entry}"""
    found = {}
    for key in redis.command("KEYS", "t:*:heads"):
        values = redis.command("HGETALL", key)
        found.update({i: int(v.split()[0]) for i, v in zip(values[::2], values[1::2]) if i != CLOSED})
    return found


def logs(redis):
    """Ids of the streams."""
    return {key.rpartition(":")[2] for key in redis.command("KEYS", "t:*:log:*")}


def entries(redis):
    """How many entries stand in all logs."""
    return sum(redis.command("XLEN", key) for key in redis.command("KEYS", "t:*:log:*"))


def cursors(redis, log):
    """What the partitions have counted of a log; those without a cursor are left out."""
    found = (redis.command("HGET", key, log) for key in redis.command("KEYS", "t:*:state"))
    return [c for c in found if c is not None]


def records(redis):
    return redis.command("KEYS", "t:*:key:*")


def counted(http):
    """What was acknowledged is counted, by whomever: no question is answered before that."""
    http.question("/sites")


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
            head = b"\xff" if age_s is None else struct.pack("<BQ", 2, now_ms - int(age_s * 1000) + i)
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
