"""The log in Redis as a test sees it: which commands append to it and fold it, and what stands in it."""

import threading

HELD = {"TALLYD_TEST_FOLD_HOLD": "60000"}  # environment of a tallyd that acknowledges, and for a minute does not fold


def is_append(args):
    """append.lua: heads, a log, and the records of keys."""
    return args[0].upper() == b"EVALSHA" and len(args) >= 12 and args[3].endswith(b":heads") and b":log:" in args[4]


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


def ends_a_fold(args):
    """EXEC of a fold, or of a reading: both are answered again."""
    return args[0].upper() == b"EXEC"


def heads(redis):
    """{id of a log: number of its last entry}"""
    found = {}
    for key in redis.command("KEYS", "t:*:heads"):
        values = redis.command("HGETALL", key)
        found.update({i: int(v.split()[0]) for i, v in zip(values[::2], values[1::2])})
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
