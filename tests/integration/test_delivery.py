"""What an answer to a write promises while Redis does not take it: 202 is counted once, 503 never (also not later),
504 at most once.

Requests come at set times, so that those of one entry have different deadlines: who is late is answered while the entry
goes on for the others.  A log has an order: a 202 behind the others means that they were all dealt with.
"""

import signal
import threading
import time

import pytest

from lib.client import Unknown
from lib.process import sanitized
from lib.resp import RespError
from lib.waiting import wait_until

ONE = ("--partitions", "1")
BIG = 9000  # events: so many must wait before a second entry begins behind a first one of as many


class Volley:
    """Requests at set times, each with a page of its own, and what they were told."""

    def __init__(self, tallyd, site):
        self.tallyd, self.site = tallyd, site
        self.sent = {}     # name -> number of events
        self.answers = {}  # name -> status, None without an answer
        self.begin = time.monotonic()
        self.timers = []

    def post(self, name, n=1):
        self.sent[name] = n
        http = self.tallyd.client()
        try:
            answer = http.post([{"site": self.site, "page": f"/{name}"}] * n)
            status = answer.status
            assert status != 503 or int(answer.headers["Retry-After"]) >= 1
        except Unknown:
            status = None
        finally:
            http.close()
        self.answers[name] = status
        return status

    def at(self, after_s, name, n=1):
        """Post so long after the volley began, on a thread of its own."""
        self.do(after_s, self.post, name, n)

    def do(self, after_s, action, *args):
        timer = threading.Timer(self.begin + after_s - time.monotonic(), action, args)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)

    def wait(self, *names):
        """Until these are answered; all without names."""
        if not names:
            for timer in self.timers:
                timer.join(30)
        wait_until(lambda: set(names or self.sent) <= set(self.answers), f"{names or 'all'} are answered")

    def check(self):
        """Every request was answered, and is counted as its answer says."""
        print(self.answers)
        assert set(self.answers) == set(self.sent) and None not in self.answers.values(), self.answers
        assert set(self.answers.values()) <= {202, 503, 504}, self.answers
        http = self.tallyd.client()
        # behind all others in the log: what stands before it is appended or given up
        wait_until(lambda: self.post(f"end/{time.monotonic_ns()}") == 202, "a last request is accepted")
        wait_until(lambda: http.get("/pv").status == 200, "questions are answered")
        for name, n in self.sent.items():
            got = http.count("pv", site=self.site, page=f"/{name}", from_="now-1h")
            allowed = {202: (n, n), 503: (0, 0), 504: (0, n)}[self.answers[name]]
            assert allowed[0] <= got <= allowed[1], f"{name}: answered {self.answers[name]}, {got} of {n} counted"


class Busy:
    """Somebody's script that does not end: Redis answers BUSY to everybody else."""

    OPTIONS = ("--busy-reply-threshold", "50")

    def __init__(self, redis):
        self.redis = redis
        self.connection = redis.connect(30)

    def begin(self):
        self.connection.send("EVAL", "while true do end", 0)
        wait_until(self.is_busy, "Redis is busy")

    def is_busy(self):
        try:
            self.redis.command("PING")
        except RespError as error:
            return str(error).startswith("BUSY")
        return False

    def end(self):
        wait_until(lambda: self.redis.command("SCRIPT", "KILL") == "OK", "the script is stopped")
        with pytest.raises(RespError):
            self.connection.receive()
        self.connection.close()


class Stopped:
    """Redis stands still."""

    OPTIONS = ()

    def __init__(self, redis):
        self.redis = redis

    def begin(self):
        self.redis.signal(signal.SIGSTOP)

    def end(self):
        self.redis.signal(signal.SIGCONT)


@pytest.fixture
def between(start_redis, start_proxy, start_tallyd):
    """between(timeout, trouble) -> (tallyd, proxy, Redis's trouble)."""
    def start(timeout, trouble):
        redis = start_redis(options=trouble.OPTIONS)
        proxy = start_proxy(redis)
        return start_tallyd(*ONE, "--request-timeout", timeout, redis=proxy), proxy, trouble(redis)

    return start


def test_busy_while_an_entry_has_several_deadlines(between, site):
    """Two entries are under way and refused (BUSY); when the first one's client has given up, those who wait make the
    third.  Its early clients are late before its last one, for whom it is sent until Redis takes it."""
    tallyd, _, busy = between("2s", Busy)
    assert Volley(tallyd, site).post("before") == 202
    busy.begin()
    volley = Volley(tallyd, site)
    volley.at(0, "first")
    volley.at(0.1, "second")
    early = [f"early{i}" for i in range(4)]
    for i, name in enumerate(early):
        volley.at(0.4 + 0.1 * i, name)
    volley.at(1.5, "last")
    volley.wait("first", "second", *early)
    busy.end()
    volley.wait()
    volley.check()
    assert volley.answers["last"] == 202, "Redis was well again before its deadline"


def test_stopped_while_an_entry_has_several_deadlines(between, site):
    """A big entry is on its way; the next one, behind it and not sent yet, has clients with different deadlines."""
    tallyd, _, stopped = between("2s", Stopped)
    assert Volley(tallyd, site).post("before") == 202
    stopped.begin()
    volley = Volley(tallyd, site)
    volley.at(0, "big", BIG)
    early = [f"early{i}" for i in range(3)]
    for i, name in enumerate(early):
        volley.at(0.4 + 0.1 * i, name)
    volley.at(1.3, "last", BIG)
    volley.wait("big", *early)
    stopped.end()
    volley.wait()
    volley.check()
    assert volley.answers["last"] == 202, "Redis was well again before its deadline"


@pytest.mark.parametrize("trouble", [Busy, Stopped])
@pytest.mark.parametrize("cuts", [0, 2], ids=["", "and cut"])
def test_trouble_at_random(between, site, chance, seed, trouble, cuts):
    """Requests at random times, Redis busy or stopped for about as long as a request may take, perhaps the
    connection cut meanwhile: what was sent is in doubt then."""
    print(f"TALLYD_SEED={seed}")
    tallyd, proxy, trouble = between("700ms", trouble)
    assert Volley(tallyd, site).post("before") == 202
    volley = Volley(tallyd, site)
    length = chance.uniform(0.9, 1.5)
    for i in range(40):
        volley.at(chance.uniform(0, 2), i, chance.choice([1, 1, 2, 50, 3000]))
    for _ in range(cuts):
        volley.do(chance.uniform(0.2, 0.2 + length), proxy.cut_all)
    volley.do(0.2, trouble.begin)
    volley.do(0.2 + length, trouble.end)
    volley.wait()
    volley.check()
    assert 202 in volley.answers.values()


def test_a_silent_connection_is_given_up(start_redis, start_proxy, start_tallyd, site):
    """The connections that are there swallow everything, as when a firewall forgot them: nothing comes back, nothing is
    closed; new ones work.  After 5 s without a reply tallyd takes a new one and sends again what was on its way; and
    when the old one spits out what it took, nothing is counted twice.  (Those 5 s are this test's time; a question has
    its deadline instead.)"""
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd(*ONE, "--readers", "1", "--request-timeout", "10s", redis=proxy)
    assert Volley(tallyd, site).post("before") == 202
    assert tallyd.client().get("/pv").status == 200
    proxy.freeze()
    volley, questions = Volley(tallyd, site), []
    volley.do(0, lambda: questions.append(tallyd.client().get("/pv").status))
    for i in range(10):
        volley.at(0.02 * i, i, 1 + 100 * (i % 2))
    volley.wait(*range(10))
    took = time.monotonic() - volley.begin
    assert set(volley.answers.values()) == {202}, volley.answers
    assert 4 < took < (10 if sanitized() else 6.5), took
    volley.wait()
    assert questions[0] in (200, 503, 504)
    volley.check()

    def scripts():
        return redis.command("INFO", "commandstats").partition("cmdstat_evalsha:calls=")[2].partition(",")[0]

    before = scripts()
    proxy.thaw()
    wait_until(lambda: scripts() != before, "what the old connection took has arrived")
    volley.check()
