"""deploy/clients, Python and Node alike: batches, keys, retries, spools, exits; every count is exact under cuts and kills."""

import json
import resource
import shutil
import time

import pytest

from lib.http_proxy import CUTS, Answer, HttpProxy, harm
from lib.process import Tallyd, free_port
from lib.sender import Sender, node
from lib.waiting import wait_until

SOON = {"intervalMs": 30}


@pytest.fixture(params=["python", "node"])
def language(request):
    if request.param == "node" and node() is None:
        pytest.skip("node 18 is not installed (apt-get install nodejs)")
    return request.param


@pytest.fixture
def start(language, directory, site, cleanup):
    """start(url, **options): a Sender of events of this test's site."""
    directory.mkdir(exist_ok=True)
    cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))

    def start(url, **options):
        sender = Sender(language, url, directory, **{"site": site, **options})
        cleanup.append(sender.stop)
        return sender

    return start


def views(http, site):
    """{page: page views}, all of the site's."""
    answer = http.question("/pages", site=site, from_="now-2h", limit=1000)
    assert len(answer["pages"]) == answer["total_pages"]
    return {row["page"]: row["pv"] for row in answer["pages"]}


def pages(n, name="p"):
    return [f"/{name}{i}" for i in range(n)]


def events_of(request):
    return [json.loads(line) for line in request.text().splitlines()]


# What is sent


def test_a_full_batch_goes_at_once_and_the_rest_after_the_interval(start, proxy, http, site):
    began = time.time()
    sender = start(proxy.url, intervalMs=400, token="secret", bots=None)
    assert all(sender.track(*pages(1200), user="u", ip="192.0.2.1"))
    wait_until(lambda: sender.stats()["accepted"] == 1200, "all are counted")
    assert [len(events_of(request)) for request in proxy.requests] == [500, 500, 200]
    assert http.count("pv", site=site, from_="now-1h") == 1200
    assert len({request.key for request in proxy.requests}) == 3
    for request in proxy.requests:
        headers = request.headers
        assert request.line == "POST /events HTTP/1.1" and headers["Authorization"] == "Bearer secret"
        assert headers["Content-Type"] == "application/x-ndjson" and headers["Content-Encoding"] == "gzip"
        assert all(began - 1 <= event["ts"] / 1000 <= time.time() + 1 for event in events_of(request))
    assert sender.end() == 0


def test_the_time_is_that_of_the_event(start, proxy, http, site):
    """Of track(), not of the request, and what the caller says goes first."""
    sender = start(proxy.url, intervalMs=60_000)
    proxy.plan = harm(Answer(503), Answer(503))
    before = time.time()
    sender.track("/now")
    sender.track("/then", ts=int(before) - 3600)
    after = time.time()
    assert sender.flush()
    now, then = events_of(proxy.requests[-1])
    assert before - 0.01 <= now["ts"] / 1000 <= after + 0.01 and then["ts"] == int(before) - 3600
    assert views(http, site) == {"/now": 1, "/then": 1}


def test_robots_are_left_out_and_said(start, proxy, http, site):
    sender = start(proxy.url, **SOON)
    sender.track("/a", ua="Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", ip="192.0.2.1")
    sender.track("/b", ua="Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", ip="192.0.2.1")
    assert sender.flush()
    assert proxy.requests[0].line == "POST /events?bots=drop HTTP/1.1"
    assert views(http, site) == {"/b": 1} and sender.stats()["filtered"] == 1


def test_what_tallyd_rejects_is_counted_and_logged(start, proxy, http, site):
    sender = start(proxy.url, **SOON)
    assert sender.track("/good", "", "/" + "x" * 3000) == [True] * 3
    assert sender.flush()
    stats = sender.stats()
    assert (stats["accepted"], stats["rejected"]) == (1, 2) and "rejects 2 of 3" in sender.log.read_text()
    sender.track("")
    assert sender.flush() and sender.stats()["dropped"] == {"refused": 1}
    assert views(http, site) == {"/good": 1}


def test_an_upgrade_is_no_answer(start, proxy, http, site):
    """A 101 that nobody asked for: the connection is another protocol's then."""
    sender = start(proxy.url, timeoutMs=500, **SOON)
    proxy.plan = harm(Answer(101, (("Connection", "upgrade"), ("Upgrade", "other"))))
    assert sender.track("/a") == [True] and sender.flush()
    assert sender.stats()["retries"] == 1 and views(http, site) == {"/a": 1}


def test_a_detail_that_is_no_text(start, proxy, http, site):
    sender = start(proxy.url, **SOON)
    proxy.plan = harm(*[Answer(503, body=body) for body in (b'{"detail":{"toString":1,"valueOf":1}}', b'{"detail":[[1]]}', b"null")])
    assert sender.track("/a") == [True] and sender.flush()
    assert sender.stats()["retries"] == 3 and views(http, site) == {"/a": 1}


def test_what_cannot_be_an_event_is_refused_at_once(start, proxy):
    sender = start(proxy.url, **SOON)
    assert sender.track("/a", ua="x" * 70_000) == [False]
    assert sender.track("/a", props={"deep": [[{}]], "text": "\ud800"}) == [True]  # tallyd's to judge
    assert sender.stats()["dropped"] == {"invalid": 1}


# Cuts, errors, silence: counted once


@pytest.mark.some(4)
@pytest.mark.parametrize("point", CUTS)
def test_a_cut_counts_once(start, proxy, http, site, point):
    proxy.plan = harm(None, point, None, point, point)
    sender = start(proxy.url, batchEvents=10, **SOON)
    for i in range(10):
        sender.track(*(f"/{i}-{j}" for j in range(10)))
    assert sender.flush()
    assert sorted(views(http, site).values()) == [1] * 100
    bodies = {}
    for request in proxy.requests:
        bodies.setdefault(request.key, set()).add(request.text())
    assert len(bodies) == 10 and all(len(texts) == 1 for texts in bodies.values()), "a key has one body"


@pytest.mark.some(6)
@pytest.mark.parametrize("answer", [Answer(503), Answer(504, applied=True), Answer(504), Answer(502, applied=True), Answer(500), Answer(401),
                                    Answer(429, (("Retry-After", "0"),))], ids=lambda a: f"{a.status}{'-applied' if a.applied else ''}")
def test_an_answer_that_is_none_is_asked_again(start, proxy, http, site, answer):
    proxy.plan = harm(answer, answer)
    sender = start(proxy.url, **SOON)
    sender.track(*pages(20))
    assert sender.flush()
    assert views(http, site) == dict.fromkeys(pages(20), 1)
    assert len(proxy.requests) == 3 and len({(request.key, request.text()) for request in proxy.requests}) == 1
    stats = sender.stats()
    assert (stats["accepted"], stats["requests"], stats["retries"]) == (20, 3, 2)


def test_an_answer_that_does_not_come_may_have_been_applied(start, proxy, http, site):
    proxy.plan = harm("silence", "silence")
    sender = start(proxy.url, timeoutMs=300, **SOON)
    sender.track(*pages(20))
    assert sender.flush()
    assert views(http, site) == dict.fromkeys(pages(20), 1) and len(proxy.requests) == 3


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for(start, proxy, status):
    times = []

    def plan(_request):
        times.append(time.monotonic())
        return Answer(status, (("Retry-After", "2"),)) if len(times) == 1 else None

    proxy.plan = plan
    sender = start(proxy.url, **SOON)
    sender.track("/")
    assert sender.flush()
    assert 1.95 <= times[1] - times[0] < 4 and len(times) == 2


@pytest.mark.parametrize("text", ["", "soon", "-1", "Fri, 31 Dec 2100 23:59:59 GMT"])
def test_a_retry_after_that_is_no_number_is_as_none(start, proxy, text):
    """tallyd's is always a number; a proxy between may say anything."""
    proxy.plan = harm(Answer(503, (("Retry-After", text),)))
    sender = start(proxy.url, **SOON)
    sender.track("/")
    assert sender.flush(5000) and len(proxy.requests) == 2


def test_back_off_grows_and_has_jitter(start, proxy):
    times = []

    def plan(_request):
        times.append(time.monotonic())
        return Answer(503) if len(times) < 5 else None

    proxy.plan = plan
    sender = start(proxy.url, **SOON)
    sender.track("/")
    assert sender.flush()
    gaps = [b - a for a, b in zip(times, times[1:])]
    for i, gap in enumerate(gaps):
        assert 0.25 * 2 ** i * 0.95 <= gap <= 0.5 * 2 ** i + 0.5, gaps
    assert len({round(gap / 2 ** i, 3) for i, gap in enumerate(gaps)}) > 1


def test_a_batch_that_can_never_fit_goes_in_halves(start, start_tallyd, redis, site, cleanup):
    tallyd = start_tallyd("--ingest-limit", "40/1s", redis=redis)
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    sender = start(between.url, intervalMs=60_000)
    sender.track(*pages(100))
    assert sender.flush()
    assert views(tallyd.client(), site) == dict.fromkeys(pages(100), 1)
    assert len(events_of(between.requests[0])) == 100 and sender.stats()["dropped"] == {}


def test_the_queue_is_bounded(start, http, site, tallyd):
    sender = start(f"http://127.0.0.1:{free_port()}", queueEvents=10, **SOON)
    assert sender.track(*pages(12)) == [True] * 10 + [False] * 2
    assert not sender.flush(300)
    assert sender.ask("close", ms=200) is False
    assert sender.stats()["dropped"] == {"full": 2, "exit": 10}
    assert sender.track("/late") == [False]
    assert "2 events" not in sender.log.read_text() and "10 events were not sent" in sender.log.read_text()
    sender = start(tallyd.url, queueBytes=1000, **SOON)
    assert sender.track("/" + "a" * 700, "/" + "b" * 700) == [True, False]
    assert sender.flush() and list(views(http, site).values()) == [1]


# The end of a process


def test_what_is_queued_is_sent_at_the_end(start, tallyd, http, site):
    sender = start(tallyd.url, intervalMs=60_000)
    sender.track(*pages(700))
    assert sender.end() == 0
    assert views(http, site) == dict.fromkeys(pages(700), 1)


def test_the_end_does_not_wait_for_ever(start, proxy, http, site):
    proxy.plan = harm(then="silence")
    sender = start(proxy.url, exitMs=700, timeoutMs=60_000, intervalMs=60_000)
    sender.track(*pages(3))
    began = time.monotonic()
    assert sender.end() == 0
    assert time.monotonic() - began < 6
    assert "3 events were not sent" in sender.log.read_text()


def test_a_close_does_not_wait_for_a_long_back_off(start, proxy, http, site):
    proxy.plan = harm(Answer(429, (("Retry-After", "600"),)))
    sender = start(proxy.url, **SOON)
    sender.track("/")
    wait_until(lambda: sender.stats()["retries"] == 1, "it waits")
    assert sender.ask("close", ms=5000) is True and views(http, site) == {"/": 1}


# The spool


def test_what_a_close_leaves_the_next_process_sends(start, directory, proxy, http, site):
    proxy.plan = harm(then=Answer(503))
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON)
    sender.track(*pages(30))
    assert sender.ask("close", ms=300) is False
    assert sender.stats()["left"] == 30 and sender.end() == 0
    proxy.plan = harm()
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON)
    assert sender.flush() and sender.stats()["recovered"] == sender.stats()["accepted"] == 30
    assert views(http, site) == dict.fromkeys(pages(30), 1)
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in directory.glob("spool*")), "addresses are in it"


@pytest.mark.parametrize("fault", ["silence", "cut-before-reply", Answer(504, applied=True)], ids=str)
def test_a_batch_in_doubt_is_sent_again_as_it_was(start, directory, proxy, http, site, fault):
    """Applied, not answered, and the sender is killed: the next process sends the same bytes under the same key."""
    proxy.plan = harm(then=fault)
    sender = start(proxy.url, spool=str(directory / "spool"), batchEvents=7, intervalMs=60_000)
    sender.track(*pages(20))
    wait_until(lambda: proxy.requests and http.count("pv", site=site, from_="now-1h") == 7, "the first batch is applied")
    sender.kill()
    proxy.plan = harm()
    sender = start(proxy.url, spool=str(directory / "spool"), batchEvents=500, **SOON)
    sender.track("/later")
    assert sender.flush()
    assert views(http, site) == dict.fromkeys([*pages(20), "/later"], 1)
    repeats = [request for request in proxy.requests if request.key == proxy.requests[0].key]
    assert len(repeats) >= 2 and len({request.text() for request in repeats}) == 1


def test_each_process_has_a_file_of_its_own(start, directory, proxy, http, site):
    proxy.plan = harm(then=Answer(503))
    senders = [start(proxy.url, spool=str(directory / "spool"), **SOON) for _ in range(3)]
    for i, sender in enumerate(senders):
        sender.track(*pages(10, f"s{i}-"))
    assert [sender.stats()["recovered"] for sender in senders] == [0, 0, 0], "what lives is not taken from its owner"
    senders[0].kill()
    senders[2].kill()
    proxy.plan = harm()
    heir = start(proxy.url, spool=str(directory / "spool"), **SOON)
    assert heir.flush() and heir.stats()["recovered"] == 20
    assert senders[1].flush()
    assert views(http, site) == dict.fromkeys([page for i in range(3) for page in pages(10, f"s{i}-")], 1)


def test_a_key_that_tallyd_has_forgotten_is_not_used_again(start, directory, proxy, http, site, language):
    """A batch in doubt for a day could count twice: it is dropped, and said.  What was not sent yet is not in doubt."""
    proxy.plan = harm(then=Answer(504, applied=True))
    sender = start(proxy.url, spool=str(directory / "spool"), batchEvents=5, intervalMs=60_000)
    sender.track(*pages(12))
    wait_until(lambda: http.count("pv", site=site, from_="now-1h") == 5, "the first batch is applied")
    sender.kill()
    files = list(directory.glob("spool.*"))
    ((file, mark),) = [(file, line) for file in files for line in file.read_text().splitlines() if line.startswith("#")]
    since = int(mark.removeprefix("# 0 5 "))
    unit = 1 if language == "python" else 1000
    assert len(files) == 3 and abs(since / unit - time.time()) < 30
    file.write_text(file.read_text().replace(mark, f"# 0 5 {since - 24 * 3600 * unit}"))
    proxy.plan = harm()
    sender = start(proxy.url, spool=str(directory / "spool"), batchEvents=5, **SOON)
    assert sender.flush()
    assert views(http, site) == dict.fromkeys(pages(12), 1)
    assert sender.stats()["dropped"] == {"expired": 5} and "might count twice" in sender.log.read_text()


def test_a_batch_that_goes_in_parts_and_a_kill(start, start_tallyd, redis, directory, site, cleanup):
    """The first part is counted and the second one is in doubt when the sender dies: the next one sends the second as it was.
    The sender asks until then, because the limit may refuse the second part at first, which the proxy does not tell."""
    tallyd = start_tallyd("--ingest-limit", "40/1s", redis=redis)
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    second = Answer(504, applied=True)
    between.plan = lambda request: second if events_of(request)[0]["page"] == "/p25" else None  # of 100, 50 and twice 25 events
    sender = start(between.url, spool=str(directory / "spool"), intervalMs=60_000)
    sender.track(*pages(100))
    sender.tell("flush", ms=60_000)
    wait_until(lambda: sum(views(tallyd.client(), site).values()) == 50, "the second part is applied")
    sender.kill()
    between.plan = harm()
    sender = start(between.url, spool=str(directory / "spool"), **SOON)
    assert sender.flush() and sender.stats()["recovered"] == 75
    assert views(tallyd.client(), site) == dict.fromkeys(pages(100), 1)


def test_a_full_disk_costs_the_protection_not_the_events(start, directory, proxy, http, site):
    """A file may have 1,000 bytes here.  A batch of more is in memory only, and is sent while the process lives; the next
    one has a file again."""
    proxy.plan = harm(then=Answer(503))
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON,
                   preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)))
    assert all(sender.track(*pages(40)))
    assert not list(directory.glob("spool*")) and "disk full" in sender.log.read_text()
    proxy.plan = harm()
    assert sender.flush()
    assert views(http, site) == dict.fromkeys(pages(40), 1)
    proxy.plan = harm(then=Answer(503))
    sender.track("/again")
    sender.kill()
    proxy.plan = harm()
    assert start(proxy.url, spool=str(directory / "spool"), **SOON).flush()
    assert views(http, site) == dict.fromkeys([*pages(40), "/again"], 1)


def test_files_that_are_none_of_a_spool(start, directory, proxy, http, site, language):
    """Names that are not a client's are left alone.  Half a line, and lines that are no events, count nothing."""
    sender = start(proxy.url, spool=str(directory / "spool"), intervalMs=60_000)
    sender.track("/a")
    sender.kill()
    (file,) = directory.glob("spool.*")
    file.write_bytes(file.read_bytes() + b"nonsense\n" + file.read_bytes()[:-9])
    others = [directory / name for name in ("spool.txt", "spool.", "spool.x-1-1", "spoolx", f"spool.{'0' * 31}", f"spool.{'0' * 32}-x")]
    for other in others:
        other.write_bytes(b"not a spool\n")
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON)
    assert sender.flush() and views(http, site) == {"/a": 1}
    assert sender.stats()["rejected"] == 1 and sender.end() == 0
    assert sorted(directory.glob("spool*")) == sorted(others) and all(other.read_bytes() == b"not a spool\n" for other in others)


def test_half_a_line_does_not_change_what_is_sent_again(start, directory, proxy, http, site):
    """A file ends in the middle of a line, and the process that takes it is killed with the batch in doubt."""
    sender = start(proxy.url, spool=str(directory / "spool"), intervalMs=60_000)
    sender.track(*pages(3))
    sender.kill()
    (file,) = directory.glob("spool.*")
    file.write_bytes(file.read_bytes() + b'{"page":"/ha')
    proxy.plan = harm(then=Answer(504, applied=True))
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON)
    wait_until(lambda: http.count("pv", site=site, from_="now-1h") == 3, "the batch is applied")
    sender.kill()
    proxy.plan = harm()
    sender = start(proxy.url, spool=str(directory / "spool"), **SOON)
    assert sender.flush() and views(http, site) == dict.fromkeys(pages(3), 1)
    assert sender.stats()["accepted"] == 3 and not list(directory.glob("spool*"))


def test_a_spool_that_is_never_empty_stays_small(start, directory, proxy, http, site):
    sender = start(proxy.url, spool=str(directory / "spool"), queueBytes=64 << 20, intervalMs=10, batchEvents=200)
    proxy.plan = harm(then=Answer(503))
    ua = "x" * 12_000
    for i in range(12):
        assert all(sender.track(*[f"/{i}"] * 60, ua=ua))
    assert sum(file.stat().st_size for file in directory.glob("spool.*")) > 8 << 20
    proxy.plan = lambda _request: None if len(proxy.requests) % 20 else Answer(503)
    for i in range(12, 24):
        assert all(sender.track(*[f"/{i}"] * 60, ua=ua))
    assert sender.flush() and not list(directory.glob("spool*"))
    assert views(http, site) == {f"/{i}": 60 for i in range(24)}


def test_counts_are_exact_whatever_dies(start, directory, start_redis, cleanup, site, chance):
    """Senders are killed at any moment, tallyd too, and every second request is harmed.  What track() has acknowledged counts once;
    what it had not acknowledged when its process died counts once or not at all."""
    redis = start_redis(appendonly=True)
    tallyd = Tallyd(redis=redis)
    cleanup.append(tallyd.stop)
    tallyd.start()
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    harms = [*CUTS, "silence", Answer(503), Answer(504, applied=True), Answer(502), Answer(429, (("Retry-After", "0"),))]
    between.plan = lambda _request: chance.choice(harms) if chance.random() < 0.5 else None
    sure, open_ = [], []
    options = {"spool": str(directory / "spool"), "intervalMs": 5, "batchEvents": 9, "timeoutMs": 250}
    for round_ in range(10):
        senders = [start(between.url, **options) for _ in range(chance.choice([1, 1, 2]))]
        for step in range(chance.randrange(2, 7)):
            for i, sender in enumerate(senders):
                names = pages(chance.randrange(1, 9), f"{round_}-{step}-{i}-")
                sender.tell("track", pages=names, members={})
                if chance.random() < 0.8:
                    assert all(sender.answer())
                    sure += names
                else:
                    sender.kill()
                    open_ += names
                    senders[i] = start(between.url, **options)
        if round_ % 4 == 3:
            tallyd.kill()
            tallyd.start()
            between.upstream = tallyd.port
        for sender in senders:
            sender.kill()
    between.plan = harm()
    last = start(between.url, **options)
    assert last.flush(60_000)
    assert last.stats()["dropped"] == {}
    counted = views(tallyd.client(), site)
    assert {page: counted.get(page) for page in sure} == dict.fromkeys(sure, 1)
    assert all(counted[page] == 1 for page in counted) and set(counted) <= {*sure, *open_}
    assert len(sure) > 40 and len({request.key for request in between.requests}) < len(between.requests)
