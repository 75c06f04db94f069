"""GET /seen: no false no, whatever dies; few false yeses; months that go."""

import json
import re
import threading

import pytest

from lib.client import Unknown, query
from lib.clock import epoch
from lib.log import HELD, commands, counted
from lib.proxy import Fault
from lib.waiting import wait_until

LOG = 16384  # pairs in a log that is due to be folded
ONE = ("--partitions", "1")


def seen(http, user, page, **params):
    answer = http.question("/seen", user=user, page=page, **params)
    assert answer.keys() == {"seen", "certain", "false_positive_rate"} and answer["certain"] is not answer["seen"]
    assert 0 <= answer["false_positive_rate"] <= 1
    return answer["seen"]


def pairs(n, tag, site):
    return [{"site": site, "page": f"/{i % 97}", "user": f"{tag}-{i}"} for i in range(n)]


def post(http, events):
    for i in range(0, len(events), 5000):
        http.accept(events[i:i + 5000])


def missing(http, events, step=1):
    return [e for e in events[::step] if not seen(http, e["user"], e["page"], site=e["site"])]


def false_yeses(http, site, n, tag="never"):
    return sum(seen(http, f"{tag}-{i}", f"/{i % 97}", site=site) for i in range(n))


def keys(redis, site, what=""):
    return sorted(k for k in redis.command("KEYS", "t:*:seen:*") if f":seen:{site}:" in k and what in k)


def layers(redis, site):
    return [int(redis.command("HGET", k, "n")) for k in keys(redis, site, ":filter")]


def folds(tallyd):
    return tallyd.client().metric("tallyd_seen_folds_total")


# What is asked and answered


def test_what_was_viewed(http, site):
    http.accept([{"site": site, "page": "/a", "user": "u"}, {"site": site, "page": "/b", "user": 42}])
    assert seen(http, "u", "/a", site=site) and seen(http, "42", "/b", site=site)
    assert not seen(http, "u", "/b", site=site) and not seen(http, "v", "/a", site=site)
    assert not seen(http, "u", "/a"), "another site"
    assert not seen(http, "u", "/a", site=site + "x")


def test_it_is_visible_when_the_202_arrives(http, site):
    for i in range(200):
        http.accept({"site": site, "page": f"/{i}", "user": f"u{i % 7}"})
        assert seen(http, f"u{i % 7}", f"/{i}", site=site)


def test_visitors_without_user_are_not_remembered(redis, http, site):
    http.accept({"site": site, "page": "/a", "ip": "192.0.2.1"})
    counted(http)
    assert not keys(redis, site)


def test_an_old_event_is_remembered_as_long_as_any(redis, http, site):
    """It counts where it arrived."""
    http.accept({"site": site, "page": "/a", "user": "u", "ts": "2019-05-05T00:00:00Z"})
    assert seen(http, "u", "/a", site=site)


@pytest.mark.parametrize("params, parameter", [
    ({"page": "/a"}, "user"), ({"user": "u"}, "page"), ({}, "user"), ({"user": "u", "page": "/a", "from_": "now"}, "from"),
    ({"user": "u", "page": ["/a", "/b"]}, "page"), ({"user": "", "page": "/a"}, "user"), ({"user": "u\n", "page": "/"}, "user"),
    ({"user": "u" * 257, "page": "/"}, "user"), ({"user": "u", "page": "p" * 2049}, "page"),
    ({"user": "u", "page": "/", "site": "A"}, "site"),
])
def test_bad_questions(http, params, parameter):
    response = http.get("/seen", **params)
    assert response.status == 400 and [e["parameter"] for e in response.errors] == [parameter], response


def test_off(redis, start_tallyd, site):
    tallyd = start_tallyd("--seen", "off", redis=redis)
    tallyd.client().accept({"site": site, "page": "/a", "user": "u"})
    counted(tallyd.client())
    assert not keys(redis, site)
    for response in (tallyd.client().get("/seen", user="u", page="/a"),
                     tallyd.client().request("POST", "/seen", '{"user":"u","pages":["/a"]}')):
        assert response.status == 422 and "--seen off" in response.json["detail"]


def test_no_names_are_stored(redis, http, site):
    http.accept([{"site": site, "page": "/a-page-of-its-own", "user": f"a-user-of-his-own-{i}"} for i in range(50)])
    counted(http)
    assert keys(redis, site)
    for key in keys(redis, site):
        assert "own" not in key and "own" not in str(redis.command("GET", key))


# Many pages at once


def which(http, user, pages, **params):
    """POST /seen: the answers, in the order of the pages."""
    answer = http.request("POST", "/seen" + query(params), json.dumps({"user": user, "pages": pages}), {"Content-Type": "application/json"})
    assert answer.status == 200, answer
    assert answer.json.keys() == {"seen", "false_positive_rate"} and 0 <= answer.json["false_positive_rate"] <= 1
    assert len(answer.json["seen"]) == len(pages)
    return answer.json["seen"]


def test_many_pages_are_answered_in_their_order(http, site):
    http.accept([{"site": site, "page": f"/{i}", "user": "u"} for i in range(0, 1000, 3)] + [{"site": site, "page": "/1", "user": "v"}])
    pages = [f"/{i}" for i in range(1000)]
    assert which(http, "u", pages, site=site) == [i % 3 == 0 for i in range(1000)]
    assert which(http, "u", list(reversed(pages)), site=site) == [i % 3 == 0 for i in reversed(range(1000))]
    assert which(http, "u", ["/3", "/1", "/3", "/1"], site=site) == [True, False, True, False]
    assert which(http, "w", ["/3"], site=site) == [False]
    assert which(http, "u", ["/3"]) == [False], "another site"
    body = json.dumps({"site": site, "user": "v", "pages": ["/1", "/3"]})
    assert http.request("POST", "/seen", body).json["seen"] == [True, False], "the site in the body"


def test_a_user_may_be_a_number_there_too(http, site):
    http.accept({"site": site, "page": "/a", "user": 42})
    assert which(http, 42, ["/a", "/b"], site=site) == which(http, "42", ["/a", "/b"], site=site) == [True, False]


@pytest.mark.parametrize("body, pointer", [
    ('{"user":"u"}', "/pages"), ('{"user":"u","pages":[]}', "/pages"), ('{"user":"u","pages":"/a"}', "/pages"),
    ('{"user":"u","pages":["/a",3]}', "/pages/1"), ('{"user":"u","pages":["/a",""]}', "/pages/1"),
    ('{"user":"u","pages":["\\u0000"]}', "/pages/0"), ('{"user":"u","pages":["%s"]}' % ("x" * 2049), "/pages/0"),
    ('{"user":"u","pages":[%s]}' % ",".join(['"/a"'] * 1001), "/pages"), ('{"pages":["/a"]}', "/user"),
    ('{"user":"","pages":["/a"]}', "/user"), ('{"user":null,"pages":["/a"]}', "/user"), ('{"user":1.5,"pages":["/a"]}', "/user"),
    ('{"user":"u","pages":["/a"],"page":"/b"}', ""), ('{"user":"u","pages":["/a"],"site":"no such"}', "/site"),
    ('{"user":"u","pages":["/a"],"site":7}', "/site"), ("[]", "")])
def test_a_body_that_asks_nothing(http, body, pointer):
    answer = http.request("POST", "/seen", body)
    assert answer.status == 422 and [e["pointer"] for e in answer.json["errors"]] == [pointer], answer


def test_a_site_in_the_body_and_in_the_query(http, site):
    answer = http.request("POST", f"/seen?site={site}", json.dumps({"site": site, "user": "u", "pages": ["/a"]}))
    assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/site", answer


def test_many_pages_behind_logs_and_layers(start_redis, start_tallyd, site):
    """The same answers as one by one, while pairs lie in the log, in a log that was folded, and in layers of filters."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "1000", "--seen-error", "0.02", redis=redis)
    http = tallyd.client()
    for i in range(3):  # of one user, far more pages than one string of bits takes
        post(http, [{"site": site, "page": f"/{i}/{k}", "user": "reader"} for k in range(LOG)])
    counted(http)

    def settled():
        return not keys(redis, site, ":old") and all(redis.command("STRLEN", log) < 8 * LOG for log in keys(redis, site, ":log"))

    wait_until(lambda: folds(tallyd) >= 1 and settled(), "folded")
    http.accept({"site": site, "page": "/last", "user": "reader"})
    counted(http)
    assert layers(redis, site)[0] >= 3 and keys(redis, site, ":log")
    pages = [f"/{i}/{k}" for i in range(5) for k in range(0, LOG, 97)] + ["/last"]
    answers = [a for at in range(0, len(pages), 1000) for a in which(http, "reader", pages[at:at + 1000], site=site)]
    known = [not p.startswith(("/3", "/4")) for p in pages]
    assert all(a for a, k in zip(answers, known) if k), "a false no"
    assert sum(a for a, k in zip(answers, known) if not k) <= 40
    for page, answer in list(zip(pages, answers))[::17]:
        assert seen(http, "reader", page, site=site) == answer


def test_a_thousand_pages_are_one_reading(start_redis, start_tallyd, site):
    """Redis gets as many commands for them as for one page."""
    redis = start_redis()
    http = start_tallyd("--partitions", "4", redis=redis).client()
    http.accept([{"site": site, "page": f"/{i}", "user": "reader"} for i in range(500)])
    counted(http)

    def commands(ask):
        before = redis.command("INFO", "commandstats")
        ask()
        counts = [{line.split(":")[0]: int(line.split("calls=")[1].split(",")[0]) for line in text.splitlines() if "calls=" in line}
                  for text in (before, redis.command("INFO", "commandstats"))]
        ours = ("cmdstat_get", "cmdstat_hgetall", "cmdstat_hmget", "cmdstat_bitfield_ro")
        return [counts[1].get(name, 0) - counts[0].get(name, 0) for name in ours]

    def of_one():
        return commands(lambda: seen(http, "reader", "/1", site=site))

    def of_many():
        return commands(lambda: which(http, "reader", [f"/{i}" for i in range(1000)], site=site))

    assert sum(of_one()) > 2
    wait_until(lambda: of_one() == of_many(), "nothing else of tallyd's comes between")


def bytes_sent(redis):
    return int(next(line for line in redis.command("INFO", "stats").splitlines()
                    if line.startswith("total_net_output_bytes:")).split(":")[1])


def test_filters_are_remembered_until_they_change(start_redis, start_tallyd, site):
    """The strings of bits that a question of many pages reads are read once.  Behind a fold the process that folded has them as
    they are now, and others read them again: no answer is an old one."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "100000", redis=redis)
    http = tallyd.client()

    def fill(name):
        done = folds(tallyd)
        post(http, [{"site": site, "page": f"/{name}/{k}", "user": "reader"} for k in range(LOG + 5)])
        wait_until(lambda: folds(tallyd) > done and not keys(redis, site, ":old"), "folded")

    def ask(name, http=http):
        before = bytes_sent(redis)
        found = which(http, "reader", [f"/{name}/{k}" for k in range(0, 1000)], site=site)
        return sum(found), bytes_sent(redis) - before

    fill("a")
    found, first = ask("a")
    assert found == 1000 and first > 50_000
    wait_until(lambda: ask("a")[1] < 10_000, "nothing else of tallyd's comes between")
    assert ask("b")[0] < 50  # but for false ones
    other = start_tallyd(*ONE, "--seen-capacity", "100000", redis=redis).client()
    assert ask("a", other)[0] == ask("a", other)[0] == 1000
    fill("b")
    found, again = ask("b")
    assert found == 1000 and again < 50_000, "the process has folded, and knows"
    assert ask("a")[0] == 1000
    found, again = ask("b", other)
    assert found == 1000 and again > 50_000
    assert ask("a", other)[0] == 1000


# Folding


def test_logs_are_folded_and_nothing_is_missing(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd = start_tallyd(*ONE, redis=redis)
    http = tallyd.client()
    events = pairs(3 * LOG, "a", site)
    post(http, events)
    wait_until(lambda: folds(tallyd) >= 1 and not keys(redis, site, ":old"), "folded")
    (log,) = keys(redis, site, ":log") or [None]
    assert log is None or redis.command("STRLEN", log) < 3 * 8 * LOG
    assert not missing(http, events, 37)
    assert false_yeses(http, site, 1000) <= 10
    assert all(0 < redis.command("PTTL", k) for k in keys(redis, site))


def test_a_log_is_folded_over_a_connection_that_was_lost_while_it_was_idle(start_redis, start_tallyd, site):
    """The log is found to be due once: again only when it has grown by as much."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "20000", redis=redis)
    http = tallyd.client()
    post(http, pairs(LOG, "a", site))
    wait_until(lambda: folds(tallyd) == 1, "folded")
    redis.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wait_until(lambda: http.get("/readyz").status == 200, "it has a connection again")
    post(http, pairs(LOG, "b", site))
    wait_until(lambda: folds(tallyd) == 2, "folded again")


def test_a_pair_counts_once(start_redis, start_tallyd, site):
    """Capacity is not used up by those who come again, within a log or after it was folded."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "20000", redis=redis)
    http = tallyd.client()
    for _ in range(8):  # each is counted alone: a fold drops what comes twice in one round
        post(http, pairs(5000, "a", site))
        counted(http)
    wait_until(lambda: folds(tallyd) >= 2 and not keys(redis, site, ":old"), "folded twice")
    (key,) = keys(redis, site, ":filter")
    assert 4950 <= int(redis.command("HGET", key, "0")) <= 5000 and redis.command("HGET", key, "n") == "1"


def test_it_grows_by_layers(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "1000", "--seen-error", "0.02", redis=redis)
    http = tallyd.client()
    events = pairs(6 * LOG, "a", site)
    post(http, events)
    wait_until(lambda: folds(tallyd) >= 3 and not keys(redis, site, ":old"), "folded")
    assert layers(redis, site)[0] >= 6
    assert not missing(http, events, 53)
    assert false_yeses(http, site, 2000) <= 40
    rate = http.question("/seen", site=site, user="nobody", page="/")["false_positive_rate"]
    assert 0.001 < rate < 0.02
    pages = json.dumps({"pages": [f"/never/{i}" for i in range(5)]})
    assert http.request("PUT", "/pagesets/five" + query({"site": site}), pages, {"Content-Type": "application/json"}).status == 201
    of_any = http.question("/seen", site=site, user="nobody", pageset="five")["false_positive_rate"]
    assert of_any == pytest.approx(1 - (1 - rate) ** 5, rel=1e-6), "five pages may be wrong, and one is enough"
    body = json.dumps({"site": site, "user": "nobody", **json.loads(pages)})
    each = http.request("POST", "/seen", body, {"Content-Type": "application/json"}).json
    assert each["false_positive_rate"] == pytest.approx(rate, rel=1e-6), "of each page by itself"


@pytest.mark.some(1)
@pytest.mark.parametrize("rules, least, longest", [("3", 14, 128 << 10), ("2", 4, 512 << 10)],
                         ids=["now", "begun when they were longer"])
def test_segments(start_redis, start_tallyd, site, rules, least, longest):
    """A layer of 1.8 MiB: several strings, and a longer log."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "1000000", redis=redis)
    http = tallyd.client()
    events = pairs(10 * LOG, "a", site)
    post(http, events[:1])
    counted(http)
    filter_ = keys(redis, site, ":log")[0].replace(":log", ":filter")
    if rules == "2":
        redis.command("HSET", filter_, "ver", "", "capacity", "1000000", "error", "0.002", "rules", rules, "n", "0")
    post(http, events[1:])
    wait_until(lambda: folds(tallyd) >= 1 and not keys(redis, site, ":old"), "folded")
    assert redis.command("HGET", filter_, "rules") == rules
    strings = keys(redis, site, ":bits:")
    assert len(strings) >= least and longest // 2 < max(redis.command("STRLEN", k) for k in strings) <= longest
    assert not missing(http, events, 211)
    assert false_yeses(http, site, 1000) <= 10


def test_what_somebody_left_half_folded(start_redis, start_tallyd, site):
    """As a process that died at it leaves it: renamed, and perhaps in the filter already."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "20000", redis=redis)
    http = tallyd.client()
    first = pairs(1000, "a", site)
    post(http, first)
    counted(http)
    (log,) = keys(redis, site, ":log")
    redis.command("RENAME", log, log.replace(":log", ":old"))
    assert not missing(http, first, 7)
    more = pairs(LOG + 5000, "b", site)
    post(http, more)
    wait_until(lambda: folds(tallyd) >= 2 and not keys(redis, site, ":old"), "both are folded")
    assert not missing(http, first, 7) and not missing(http, more, 37)


def test_what_waits_to_be_counted_is_seen(start_redis, start_tallyd, site):
    """No fold takes place, and no answer waits for one."""
    redis = start_redis()
    http = start_tallyd("--request-timeout", "300ms", redis=redis, env=HELD).client()
    http.accept([{"site": site, "page": "/a", "user": "u"}, {"site": site, "page": "/b", "user": 42}])
    keyed = [{"site": site, "page": "/k", "user": "u"}, {"site": site, "event": "done", "user": "u"}]
    assert http.post(keyed, headers={"Idempotency-Key": "key"}).status == 202
    http.accept([{"site": "other", "page": "/o", "user": "u"}, {"site": site, "page": "/x", "user": "another"}])
    assert seen(http, "u", "/a", site=site) and seen(http, "42", "/b", site=site) and seen(http, "u", "/k", site=site)
    for user, page in (("u", "/b"), ("42", "/a"), ("u", "done"), ("u", "/o"), ("u", "/x"), ("4", "/b"), ("nother", "/x")):
        assert not seen(http, user, page, site=site), (user, page)
    assert which(http, "u", ["/x", "/k", "/b", "/a"], site=site) == [False, True, False, True]
    assert http.get("/uv", site=site).status == 503, "the entries do wait"


def test_what_waits_elsewhere_is_waited_for(start_redis, start_tallyd, site):
    """What another process took, and what stands in the log under another era than in memory."""
    redis = start_redis()
    one, two = (start_tallyd("--request-timeout", "300ms", redis=redis, env=HELD, name=n).client() for n in ("one", "two"))
    one.accept([{"site": site, "page": "/a", "user": "u"}])
    assert seen(one, "u", "/a", site=site)
    assert two.get("/seen", site=site, user="u", page="/a").status == 503
    two.accept([{"site": site, "page": "/b", "user": "u"}])
    for http, page in ((one, "/b"), (two, "/a")):
        refused = http.get("/seen", site=site, user="u", page=page)
        assert refused.status == 503 and b"behind" in refused.body, refused
    assert seen(one, "u", "/a", site=site) and seen(two, "u", "/b", site=site), "no look elsewhere is needed"
    (key,) = redis.command("KEYS", "t:*:heads")
    values = redis.command("HGETALL", key)
    redis.command("DEL", key)
    assert not seen(one, "u", "/none", site=site), "logs that are closed are counted"
    for log, head in zip(values[::2], values[1::2]):
        n, _, seen_at = head.split()
        redis.command("HSET", key, log, f"{n} {'0' * 16} {seen_at}")
    for http in (one, two):
        assert http.get("/seen", site=site, user="u", page="/none").status == 503


def test_two_processes_feed_and_fold(start_redis, start_tallyd, site):
    redis = start_redis()
    daemons = [start_tallyd(*ONE, "--seen-capacity", "5000", redis=redis, name=f"tallyd{i}") for i in range(2)]
    fed = [pairs(4 * LOG, f"p{i}", site) for i in range(2)]
    threads = [threading.Thread(target=post, args=(d.client(), events)) for d, events in zip(daemons, fed)]
    for thread in threads:
        thread.start()
    http = daemons[0].client()
    early = []
    while any(thread.is_alive() for thread in threads):
        http.accept({"site": site, "page": "/x", "user": f"e{len(early)}"})
        early.append({"site": site, "page": "/x", "user": f"e{len(early)}"})
        assert not missing(http, early[-3:])  # while logs are renamed and folded
    for thread in threads:
        thread.join()
    wait_until(lambda: sum(folds(d) for d in daemons) >= 3, "folded")
    for daemon, events in zip(daemons, reversed(fed)):
        assert not missing(daemon.client(), events, 211)
    assert not missing(http, early, 5)


def test_one_who_folds_slowly_does_no_harm(start_redis, start_proxy, start_tallyd, site):
    """What he read is old by the time he writes: his strings would take the other's bits away."""
    redis = start_redis()
    proxy = start_proxy(redis)
    options = (*ONE, "--seen-capacity", "100000")
    slow = start_tallyd(*options, redis=proxy, name="slow")
    fed = [pairs(LOG + 5, name, site) for name in "abc"]
    reached, go_on = threading.Event(), threading.Event()

    def hold(args):
        """The first string of bits that the slow one writes waits, in the proxy."""
        if args[0] == b"EVALSHA" and any(b":bits:" in a[:100] for a in args[3:6]) and not reached.is_set():
            reached.set()
            go_on.wait(30)
        return False

    proxy.arm(Fault("reply-after", match=hold))
    post(slow.client(), fed[0])
    assert reached.wait(20), "it is told that the log is due"
    quick = start_tallyd(*options, redis=redis, name="quick")  # at its start it counts what others take, and would be told
    post(quick.client(), fed[1])
    post(quick.client(), fed[2])
    wait_until(lambda: folds(quick) >= 2, "the quick one has folded the slow one's log, and its own")
    go_on.set()
    post(quick.client(), pairs(2 * LOG, "d", site))
    wait_until(lambda: folds(quick) >= 3 and not keys(redis, site, ":old"), "nothing is half folded")
    assert folds(slow) == 0
    for events in fed:
        assert not missing(quick.client(), events, 31)


# Crashes


def test_killed_at_any_moment(start_redis, start_tallyd, site, chance):
    """tallyd killed while it is fed and folds: what was acknowledged is there."""
    redis = start_redis(appendonly=True)
    acknowledged = []
    for round_ in range(4):
        tallyd = start_tallyd(*ONE, "--seen-capacity", "3000", redis=redis, name=f"tallyd{round_}")
        killer = threading.Timer(0.1 + chance.random() * 0.6, tallyd.kill)
        killer.start()
        http = tallyd.client()
        try:
            for batch in range(1000):
                events = pairs(2000, f"{round_}.{batch}", site)
                if http.post(events).status == 202:
                    acknowledged += events
        except Exception:  # the kill
            pass
        killer.join()
    http = start_tallyd(*ONE, redis=redis, name="last").client()
    assert len(acknowledged) > 2000
    wait_until(lambda: http.get("/sites").status == 200, "what four processes left behind is counted", deadline_s=60)
    assert not missing(http, acknowledged, max(1, len(acknowledged) // 1500))


@pytest.mark.some(2)
@pytest.mark.parametrize("point", ["command-before", "reply-before"])
@pytest.mark.parametrize("step", range(1, 6))
def test_killed_at_each_step_of_a_fold(start_redis, start_proxy, start_tallyd, site, point, step):
    """Sealed, one string of bits or more written, all but the end, the end: whoever folds next has all of it."""
    redis = start_redis()
    proxy = start_proxy(redis)
    options = (*ONE, "--seen-capacity", "9000")  # a log fills a layer, and half of a second
    tallyd = start_tallyd(*options, redis=proxy, name="first")
    killed = threading.Event()

    def kill(args):
        hit = args[0] == b"RENAMENX" or (args[0] == b"EVALSHA" and args[3].endswith(b":filter"))
        if hit and fault.nth == 1:
            tallyd.kill()
            killed.set()
        return hit

    fault = proxy.arm(Fault(point, nth=step, match=kill))
    first, last = pairs(LOG - 1000, "a", site), pairs(2000, "z", site)
    post(tallyd.client(), first)
    try:
        post(tallyd.client(), last)  # the log is due
        first += last
        wait_until(lambda: killed.is_set() or folds(tallyd) >= 1, "killed, or folded in fewer steps")
    except Unknown:
        wait_until(killed.is_set, "killed")
    assert killed.is_set() or step > 4
    tallyd = start_tallyd(*options, redis=redis, name="second")
    assert not missing(tallyd.client(), first, 101)
    second = pairs(LOG + 1000, "b", site)
    post(tallyd.client(), second)
    wait_until(lambda: folds(tallyd) >= 1 and not keys(redis, site, ":old"), "folded")
    assert not missing(tallyd.client(), first, 101) and not missing(tallyd.client(), second, 101)
    assert false_yeses(tallyd.client(), site, 500) <= 5


def test_redis_killed(start_redis, start_tallyd, site):
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*ONE, redis=redis)
    http = tallyd.client()
    acknowledged = []
    for round_ in range(3):
        events = pairs(LOG + 3000, f"{round_}", site)
        post(http, events)
        acknowledged += events
        redis.kill()
        redis.start()
        wait_until(lambda: tallyd.client().get("/readyz").status == 200, "it is ready again")
    assert not missing(http, acknowledged, 61)


# Months


def month_keys(world, site):
    return {k.split(":")[4][1:7] for k in world.redis.command("KEYS", "t:*:seen:*") if f":seen:{site}:" in k}


def test_months_go_as_a_whole(start_world):
    world = start_world("2026-01-15 10:00:00", *ONE, "--keep-seen", "40d")
    http = world.http

    def view(user):
        http.accept({"site": "s", "page": "/a", "user": user})

    view("january")
    world.move("2026-02-20 10:00:00")
    view("february")
    assert seen(http, "january", "/a", site="s") and seen(http, "february", "/a", site="s")
    counted(http)
    assert month_keys(world, "s") == {"202601", "202602"}
    world.move("2026-03-12 23:50:00")  # not yet the end of January and 40 days
    view("march")
    assert seen(http, "january", "/a", site="s")
    world.move("2026-03-13 00:01:00")
    assert not seen(http, "january", "/a", site="s") and seen(http, "february", "/a", site="s")
    wait_until(lambda: month_keys(world, "s") == {"202602", "202603"}, "January is gone")
    world.move("2026-06-20 00:01:00")
    assert not seen(http, "march", "/a", site="s")
    wait_until(lambda: not month_keys(world, "s"), "all are gone")


def test_a_month_that_begins_meanwhile(start_world):
    """Another process's event in a month that this one has not heard of yet."""
    world = start_world("2026-01-31 23:59:30", *ONE)
    other = world.add_tallyd().client()
    world.clock.set("2026-02-01 00:00:30")
    wait_until(lambda: other.question("/pv", from_="now-1m")["to"] > "2026-02", "the other has heard of February")
    other.accept({"site": "s", "page": "/a", "user": "u", "ts": epoch("2026-01-31T23:59:00Z")})
    other.accept({"site": "s", "page": "/b", "user": "u"})
    counted(other)
    assert month_keys(world, "s") == {"202602"}
    assert seen(world.http, "u", "/a", site="s") and seen(world.http, "u", "/b", site="s")


# Options


def test_the_filter_keeps_its_parameters(start_redis, start_tallyd, site):
    """Another capacity and rate at the next start: for the next month; this one is read as it was made."""
    redis = start_redis()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "2000", "--seen-error", "0.05", redis=redis)
    first = pairs(2 * LOG, "a", site)
    post(tallyd.client(), first)
    wait_until(lambda: folds(tallyd) >= 1 and not keys(redis, site, ":old"), "folded")
    tallyd.terminate()
    tallyd = start_tallyd(*ONE, "--seen-capacity", "900000", "--seen-error", "0.0001", redis=redis, name="again")
    second = pairs(2 * LOG, "b", site)
    post(tallyd.client(), second)
    wait_until(lambda: folds(tallyd) >= 1 and not keys(redis, site, ":old"), "folded again")
    assert not missing(tallyd.client(), first, 61) and not missing(tallyd.client(), second, 61)
    assert redis.command("HGET", keys(redis, site, ":filter")[0], "capacity") == "2040"


def test_many_sites(redis, http, site):
    sites = [f"{site[:40]}-{i}" for i in range(300)]
    http.accept([{"site": s, "page": "/a", "user": "u"} for s in sites])
    assert all(seen(http, "u", "/a", site=s) for s in sites)
    assert not any(seen(http, "v", "/a", site=s) for s in sites)


def test_a_full_redis_still_answers(start_redis, start_tallyd, site):
    redis = start_redis()
    http = start_tallyd(*ONE, redis=redis).client()
    http.accept({"site": site, "page": "/a", "user": "u"})
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert http.post(json.dumps({"site": site, "page": "/b", "user": "u"})).status == 503
    assert seen(http, "u", "/a", site=site) and not seen(http, "u", "/b", site=site)


def test_metrics(tallyd):
    text = tallyd.client().get("/metrics").body.decode()
    assert re.search(r"^tallyd_seen_folds_total \d+$", text, re.M)
    assert re.search(r"^tallyd_seen_folded_total \d+$", text, re.M)


def test_what_another_process_has_counted_and_deleted_is_not_seen(start_redis, start_tallyd, site):
    """It is still in the memory of the one that has acknowledged it, whose folds have stopped."""
    redis = start_redis()
    http, other = start_tallyd(redis=redis, env=HELD).client(), start_tallyd(redis=redis).client()
    http.accept({"site": site, "page": "/a", "user": "u"})
    assert seen(http, "u", "/a", site=site)
    assert other.request("DELETE", f"/sites/{site}").status == 202
    wait_until(lambda: other.get(f"/sites/{site}").status == 404, "it is deleted", deadline_s=40)
    wait_until(lambda: http.get(f"/sites/{site}").status == 404, "the first one knows, too", deadline_s=40)
    assert not seen(http, "u", "/a", site=site)


def test_who_finds_a_log_folded_ends_nothing(start_redis, start_proxy, start_tallyd, site):
    """A process has seen a sealed log, another one folds it and seals the next one: the first one must not end that."""
    redis = start_redis()
    proxy = start_proxy(redis)
    slow = start_tallyd(*ONE, "--seen-capacity", "20000", redis=proxy, name="slow")
    post(slow.client(), pairs(1000, "a", site))
    counted(slow.client())
    (log,) = keys(redis, site, ":log")
    old = log.replace(":log", ":old")
    redis.command("RENAME", log, old)
    reads = proxy.arm(Fault("command-held", match=lambda a: a[0].upper() == b"HGETALL" and a[1].endswith(b":filter")))
    post(slow.client(), pairs(LOG + 5, "b", site))
    wait_until(lambda: reads.fired, "the slow one has seen it")
    quick = start_tallyd(*ONE, "--seen-capacity", "20000", redis=redis, name="quick")  # it would count what the slow one has
    post(quick.client(), pairs(LOG + 5, "c", site))
    wait_until(lambda: folds(quick) >= 2 and not keys(redis, site, ":old"), "the quick one has folded it")
    ends = proxy.arm(Fault("command-held", match=lambda a: a[0].upper() == b"EVALSHA" and any(x.endswith(b":old") for x in a[3:6])))
    reads.release()
    still = pairs(2000, "still", site)
    post(quick.client(), still)
    counted(quick.client())
    assert redis.command("RENAMENX", log, old) == 1
    counted(slow.client())
    ends.release()
    for _ in range(20):
        counted(slow.client())
    assert redis.command("EXISTS", old) and not missing(quick.client(), still, 50)


def test_a_first_fold_over_a_deletion_leaves_nothing(start_redis, start_proxy, start_tallyd, site):
    redis = start_redis()
    proxy = start_proxy(redis)
    slow = start_tallyd(*ONE, "--seen-capacity", "20000", redis=proxy, name="slow")
    bits = proxy.arm(Fault("command-held", match=lambda a: a[0].upper() == b"EVALSHA" and any(b":bits:" in x[:200] for x in a[3:6])))
    post(slow.client(), pairs(LOG + 5, "b", site))
    wait_until(lambda: bits.fired, "bits are to be written")
    http = start_tallyd(*ONE, "--seen-capacity", "20000", redis=redis, name="quick").client()
    assert http.request("DELETE", f"/sites/{site}").status == 202
    wait_until(lambda: http.get(f"/sites/{site}").status == 404, "it is deleted")
    scripts = commands(redis, "evalsha")
    bits.release()
    wait_until(lambda: commands(redis, "evalsha") > scripts, "they are refused")
    assert not keys(redis, site, "")
