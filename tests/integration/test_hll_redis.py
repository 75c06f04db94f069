"""storage/hll against a real Redis, bit for bit: registers, estimates, and what is refused.

The C side is tests/tools/hll_tool.c, taken from the directory TALLYD_TOOLS (default build/tools);
the other side is a redis-server of our own on a unix socket.  Its registers come from PFDEBUG
GETREG, Redis's own decoder: a misreading of the encoding cannot hide by being made twice.

The sets are random but the same in each run; TALLYD_SEED=n gives others.
"""

import os
import pathlib
import random
import shutil
import socket
import subprocess

import pytest

from lib.some import few
from lib.waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = pathlib.Path(os.environ.get("TALLYD_TOOLS", ROOT / "build" / "tools")) / "hll_tool"
SEED = int(os.environ.get("TALLYD_SEED", "1"))

REGISTERS = 16384
HEADER_SIZE = 16
DENSE_SIZE = 12304
SPARSE_MAX = 3000  # hll-sparse-max-bytes: a longer string becomes dense
BATCH = 100  # cases for one run of the tool
SETS = few(20) * BATCH

pytestmark = [
    pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is missing: make build/tools/hll_tool"),
    pytest.mark.skipif(not shutil.which("redis-server"), reason="redis-server is not installed"),
]


class RedisError(Exception):
    pass


class Redis:
    """The little of RESP2 that is needed here."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        self.socket.sendall(encode_command(words))
        reply = self.read()
        if isinstance(reply, RedisError):
            raise reply
        return reply

    def pipeline(self, *commands):
        """The replies, errors among them as values."""
        self.socket.sendall(b"".join(map(encode_command, commands)))
        return [self.read() for _ in commands]

    def read(self):
        line = self.file.readline()
        assert line.endswith(b"\r\n"), "redis-server closed the connection"
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return RedisError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        assert kind == b"*", line
        return [self.read() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()


def encode_command(words):
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    head = b"*%d\r\n" % len(words)
    return head + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)


@pytest.fixture(scope="module")
def redis(tmp_path_factory):
    directory = tmp_path_factory.mktemp("hll")
    path = directory / "r.sock"
    arguments = ["--port", "0", "--unixsocket", path, "--save", "", "--dir", directory]
    with open(directory / "redis.log", "wb") as log:
        server = subprocess.Popen(["redis-server", *map(str, arguments)], stdout=log, stderr=log)
    try:
        connection = connect(path, server)
        yield connection
        connection.close()
    finally:
        server.kill()
        server.wait()


def connect(path, server):
    def connected():
        assert server.poll() is None, "redis-server did not start, see redis.log"
        try:
            return Redis(path)
        except OSError:
            return None

    return wait_until(connected, "redis-server answers")


# The tool


class Sketch:
    """What the tool says of one case.  estimate is None if a string was refused."""

    def __init__(self, line):
        words = line.split()
        self.estimate = None if words[0] == b"refused" else int(words[0])
        self.registers = bytes.fromhex(words[-1].decode())


def run_tool(cases):
    """Each case is ("merge", strings) or ("add", elements)."""
    parts = []
    for verb, items in cases:
        parts.append(b"%b %d\n" % (verb.encode(), len(items)))
        parts.extend(b"%d\n%b\n" % (len(item), item) for item in items)
    done = subprocess.run([TOOL], input=b"".join(parts), stdout=subprocess.PIPE, check=True)
    sketches = [Sketch(line) for line in done.stdout.splitlines()]
    assert len(sketches) == len(cases)
    return sketches


# Redis


def as_unsigned(count):
    """PFCOUNT replies a uint64 as a signed number; only forged registers come that far."""
    return count % 2**64


def registers_in_redis(redis, key):
    """GETREG makes the key dense, so it gets a copy."""
    redis("COPY", key, "registers:" + key, "REPLACE")
    registers = bytes(redis("PFDEBUG", "GETREG", "registers:" + key))
    redis("DEL", "registers:" + key)
    return registers


def random_element(rng):
    """Short and long, text and binary, the empty one too: all 8 lengths of the hash's tail."""
    if rng.random() < 0.5:
        return b"visitor:%d" % rng.getrandbits(40)
    return rng.randbytes(rng.randrange(40))


def random_size(rng):
    """Mostly sparse, many around the border to dense (near 1700 elements), some far beyond."""
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(60)
    if kind < 0.65:
        return rng.randrange(1500)
    if kind < 0.93:
        return rng.randrange(1500, 1900)
    return rng.randrange(1900, 9000)


def random_set(redis, rng, key):
    """Fill @key; the elements.  Sometimes PFCOUNT leaves a valid cache in it."""
    elements = [random_element(rng) for _ in range(random_size(rng))]
    redis("DEL", key)
    redis("PFADD", key)
    for i in range(0, len(elements), 1000):
        redis("PFADD", key, *elements[i : i + 1000])
    if rng.random() < 0.3:
        redis("PFCOUNT", key)
    return elements


# Tests


def test_random_sets(redis):
    """A set as Redis stores it, and the same elements added by us."""
    rng = random.Random(SEED)
    encodings = set()
    for start in range(0, SETS, BATCH):
        cases, expected = [], []
        for i in range(start, start + BATCH):
            elements = random_set(redis, rng, "set")
            string = redis("GET", "set")
            encodings.add((string[4], len(string) > SPARSE_MAX - 300))
            # PFCOUNT last, because it writes its cache into the string
            expected.append((i, registers_in_redis(redis, "set"), redis("PFCOUNT", "set")))
            cases += [("merge", [string]), ("add", elements)]
        sketches = run_tool(cases)
        for (i, registers, count), merged, added in zip(expected, sketches[::2], sketches[1::2]):
            assert merged.registers == registers, f"set {i} of seed {SEED}, merged"
            assert added.registers == registers, f"set {i} of seed {SEED}, added"
            assert merged.estimate == added.estimate == count, f"set {i} of seed {SEED}"
    assert encodings == {(0, True), (1, False), (1, True)}, "dense, sparse, nearly dense"


def test_random_unions(redis):
    """PFMERGE and PFCOUNT of several keys, dense and sparse mixed."""
    rng = random.Random(SEED + 1)
    keys = [f"part{i}" for i in range(40)]
    for key in keys:
        random_set(redis, rng, key)
    for start in range(0, few(5) * BATCH, BATCH):
        cases, expected = [], []
        for i in range(start, start + BATCH):
            random_set(redis, rng, rng.choice(keys))
            chosen = [rng.choice(keys) for _ in range(rng.choice((2, 3, 5, 12, 40)))]
            cases.append(("merge", redis("MGET", *chosen)))
            redis("DEL", "union")
            redis("PFMERGE", "union", *chosen)
            count = redis("PFCOUNT", *chosen)
            assert redis("PFCOUNT", "union") == count
            expected.append((i, registers_in_redis(redis, "union"), count))
        for (i, registers, count), sketch in zip(expected, run_tool(cases)):
            assert sketch.registers == registers, f"union {i} of seed {SEED}"
            assert sketch.estimate == count, f"union {i} of seed {SEED}"


def test_every_size_at_the_border(redis):
    """One key grown element by element until it turns dense, each of its last 200 sparse states."""
    rng = random.Random(SEED + 2)
    redis("DEL", "growing")
    states = []
    while not states or len(states[-1][0]) < DENSE_SIZE:
        redis("PFADD", "growing", rng.randbytes(12))
        states.append((redis("GET", "growing"), redis("PFCOUNT", "growing")))
    states = states[-200:]
    assert states[-2][0][4] == 1 and states[-1][0][4] == 0
    for (_, count), sketch in zip(states, run_tool([("merge", [s]) for s, _ in states])):
        assert sketch.estimate == count


def test_large_sets(redis):
    """The whole range of the estimator, 10 to 3 million elements of one key."""
    rng = random.Random(SEED + 3)
    redis("DEL", "large")
    script = "for i = ARGV[1], ARGV[2] do redis.call('PFADD', KEYS[1], ARGV[3] .. i) end"
    strings, counts, done = [], [], 0
    for size in (10, 100, 1000, 5000, 20000, 40000, 60000, 100000, 300000, 1000000, 3000000):
        redis("EVAL", script, 1, "large", done + 1, size, rng.randbytes(4).hex())
        strings.append(redis("GET", "large"))
        counts.append(redis("PFCOUNT", "large"))
        done = size
    sketches = run_tool([("merge", [string]) for string in strings])
    assert [sketch.estimate for sketch in sketches] == counts


def forged_dense(rng):
    """Any registers at all, 52..63 among them, in a dense string."""
    registers = 0
    values = rng.sample(range(64), rng.choice((1, 2, 5, 64)))
    for i in range(REGISTERS):
        registers |= rng.choice(values) << (6 * i)
    return dense_string(registers)


def dense_string(registers):
    header = b"HYLL\0\0\0\0\0\0\0\0\0\0\0\x80"
    return header + registers.to_bytes(DENSE_SIZE - HEADER_SIZE, "little")


def test_forged_dense_registers(redis):
    """Values no hash yields, and the estimates of registers no set has."""
    rng = random.Random(SEED + 4)
    ones = sum(1 << (6 * i) for i in range(REGISTERS))
    strings = [dense_string(ones * value) for value in range(64)]
    strings += [forged_dense(rng) for _ in range(40)]
    for i, (string, sketch) in enumerate(zip(strings, run_tool([("merge", [s]) for s in strings]))):
        redis("SET", "forged", string)
        assert sketch.registers == registers_in_redis(redis, "forged"), f"string {i}"
        assert sketch.estimate == as_unsigned(redis("PFCOUNT", "forged")), f"string {i}"


def corrupt(rng, string):
    """Some bytes changed, inserted, removed, or the string cut; its cache made invalid."""
    string = bytearray(string)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        # near the start or the end as often as anywhere
        at = rng.choice((rng.randrange(20), rng.randrange(len(string)), len(string) - 1))
        at = min(at, len(string) - 1)
        kind = rng.randrange(5)
        if kind == 0:
            string[at] = rng.randrange(256)
        elif kind == 1:
            string[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            string[at:at] = rng.randbytes(rng.randrange(1, 4))
        elif kind == 3:
            del string[at : at + rng.randrange(1, 4)]
        else:
            del string[at:]
        if not string:
            break
    if len(string) >= HEADER_SIZE:
        string[HEADER_SIZE - 1] |= 0x80
    return bytes(string)


def refused_by_redis(replies):
    errors = [str(reply) for reply in replies if isinstance(reply, RedisError)]
    assert all(error.startswith(("WRONGTYPE", "INVALIDOBJ")) for error in errors), errors
    assert len(errors) in (0, len(replies)), replies
    return bool(errors)


def test_corrupt_strings(redis):
    """Refused by Redis, refused by us; taken by Redis, the same registers.

    One exception, see the top of hll.c: a last XZERO without its second byte, which Redis takes if
    the NUL behind the string makes it fit.
    """
    rng = random.Random(SEED + 5)
    redis("DEL", "empty", "tiny", "full")
    redis("PFADD", "empty")
    redis("PFADD", "tiny", "a", "b", "c")
    originals = [redis("GET", key) for key in ("empty", "tiny")]
    for _ in range(10):
        random_set(redis, rng, "full")
        originals.append(redis("GET", "full"))
    strings = [corrupt(rng, rng.choice(originals)) for _ in range(few(3000))]
    strings += [originals[0][:HEADER_SIZE] + b"\x7f\xfe\x40"]  # the exception
    tried = run_tool([("merge", [string]) for string in strings])
    with_nul = run_tool([("merge", [string + b"\0"]) for string in strings])
    taken = refused = 0
    for i, (string, sketch, longer) in enumerate(zip(strings, tried, with_nul)):
        counts = redis.pipeline(
            ("SET", "corrupt", string), ("PFCOUNT", "corrupt", "empty"), ("PFCOUNT", "corrupt")
        )[1:]
        what = f"string {i} of seed {SEED}: {string.hex()}"
        if refused_by_redis(counts):
            refused += 1
            assert sketch.estimate is None, what
            assert not any(sketch.registers), what
            continue
        taken += 1
        if sketch.estimate is None:  # the exception
            sketch = longer
        assert sketch.estimate == as_unsigned(counts[0]) == as_unsigned(counts[1]), what
        assert sketch.registers == registers_in_redis(redis, "corrupt"), what
    assert taken > few(100) and refused > few(1000), "the mutations are too gentle or too rough"


def test_a_refused_string_leaves_the_others(redis):
    """A bad key among good ones: the union is that of the good ones."""
    rng = random.Random(SEED + 6)
    strings = []
    for key in ("good1", "good2"):
        random_set(redis, rng, key)
        strings.append(redis("GET", key))
    bad = strings[0][:HEADER_SIZE] + b"\xff" * 100
    with_bad, without = run_tool([("merge", [strings[0], bad, strings[1]]), ("merge", strings)])
    assert with_bad.estimate is None
    assert with_bad.registers == without.registers
