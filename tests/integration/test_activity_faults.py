"""Activity while things break: who was acknowledged is counted, nobody has another one's index, nothing is left behind."""

import signal
import threading
import time

import pytest

from lib.activity import DAY_S, date_of, indices, pages
from lib.client import Unknown
from lib.clock import epoch
from lib.log import HELD, counted
from lib.proxy import CUTS, Fault, is_script
from lib.waiting import wait_until

FEW = ("--partitions", "4")


def partitions(redis, site):
    """[({user: index}, {index: user}, next index, {bitmap: its set indices})] of each partition."""
    found = []
    with redis.connect() as connection:
        for tag, (users, back, following) in indices(redis, site).items():
            bits = {}
            for bitmap in connection.command("KEYS", f"{tag}:act:{site}:*"):
                n = connection.command("STRLEN", bitmap) * 8
                bits[bitmap] = {i for i in range(n) if connection.command("GETBIT", bitmap, i)}
            assert {k.split(":act:")[1] for k in bits} == {
                m for m in connection.command("ZRANGE", f"{tag}:acts", 0, -1) if m.startswith(site + ":")}
            found.append((users, back, following, bits))
    return found


def check_store(redis, site):
    """Names and indices are each other's inverse, given once; no bit is nobody's."""
    found = partitions(redis, site)
    assert found, "nothing is counted"
    for users, back, following, bits in found:
        assert {index: user for user, index in users.items()} == back and len(back) == len(users)
        assert all(index < following for index in back)
        for bitmap, indices in bits.items():
            assert indices <= back.keys(), bitmap


class Crowd:
    """Clients that post events of ever new and of old users, and remember who was acknowledged for which day."""

    def __init__(self, tallyds, site, today, chance):
        self.tallyds, self.site, self.today, self.chance = tallyds, site, today, chance
        self.sent, self.counted, self.lock = set(), set(), threading.Lock()
        self.stop = threading.Event()

    def run(self, number):
        # of one thread alone: the generator is shared
        with self.lock:
            chance = type(self.chance)(self.chance.random())
        i = 0
        while not self.stop.is_set():
            i += 1
            pairs = {(f"new-{number}-{i}" if chance.random() < 0.5 else f"old-{chance.randrange(40)}", self.today - chance.randrange(3))
                     for _ in range(6)}
            with self.lock:
                self.sent |= pairs
            try:
                http = chance.choice(self.tallyds).client(5)
                answer = http.post([{"site": self.site, "page": "/", "user": user, "ts": day * DAY_S} for user, day in sorted(pairs)])
                http.close()
            except (Unknown, ConnectionError):
                continue
            if answer.status == 202:
                with self.lock:
                    self.counted |= pairs

    def check(self, http):
        for day in range(self.today - 2, self.today + 1):
            users = set(pages(http, self.site, 500, from_=date_of(day), to=date_of(day + 1)))
            counted, sent = ({u for u, d in of if d == day} for of in (self.counted, self.sent))
            assert not counted - users, f"day {day}: acknowledged and not there"
            assert not users - sent, f"day {day}: there and not sent"
            assert http.question("/dau", site=self.site, date=date_of(day))["users"] == len(users)


def test_processes_and_redis_are_killed(start_redis, start_tallyd, site, chance):
    redis = start_redis(appendonly=True)
    tallyds = [start_tallyd(*FEW, "--request-timeout", "2s", redis=redis, name=f"t{i}") for i in range(2)]
    crowd = Crowd(tallyds, site, int(redis.time()) // DAY_S, chance)
    threads = [threading.Thread(target=crowd.run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    try:
        for victim in (tallyds[0], redis, tallyds[1], redis, tallyds[0]):
            before = len(crowd.counted)
            wait_until(lambda n=before: len(crowd.counted) > n + 100, "somebody was counted")
            victim.kill()
            victim.start()
        before = len(crowd.counted)
        wait_until(lambda: len(crowd.counted) > before + 100, "somebody was counted")
    finally:
        crowd.stop.set()
        for thread in threads:
            thread.join()
    for tallyd in tallyds:
        crowd.check(tallyd.client())
    check_store(redis, site)


@pytest.mark.parametrize("point", CUTS)
def test_cut_while_users_come(start_redis, start_proxy, start_tallyd, site, point):
    """The connection is cut anywhere in an append: the same users, the same indices."""
    redis = start_redis()
    proxy = start_proxy(redis)
    http = start_tallyd(*FEW, redis=proxy).client()
    http.accept([{"site": site, "page": "/", "user": f"a{i}"} for i in range(50)])
    fault = proxy.arm(Fault(point))
    http.accept([{"site": site, "page": "/", "user": u} for i in range(50) for u in (f"a{i}", f"b{i}")])
    assert fault.fired == 1
    http.accept([{"site": site, "page": "/", "user": u, "actions": ["x"]} for i in range(50) for u in (f"b{i}", f"c{i}")])
    assert http.question("/dau", site=site)["users"] == 150
    assert http.question("/dau", site=site, action="x")["users"] == 100
    check_store(redis, site)
    assert sum(following for _, _, following, _ in partitions(redis, site)) == 150


def test_data_that_goes_back(start_redis, start_tallyd, site):
    """Redis lost its last users; another process gave their indices to others.  What was remembered is of no use: who was
    acknowledged by a process that lives comes back, with an index of his own."""
    redis = start_redis()
    one = start_tallyd("--partitions", "1", redis=redis, name="one")
    two = start_tallyd("--partitions", "1", redis=redis, name="two")
    first, second = one.client(), two.client()
    first.accept({"site": site, "page": "/", "user": "kept"})
    counted(first)
    redis.command("SAVE")
    first.accept([{"site": site, "page": "/", "user": u} for u in ("lost-1", "lost-2")])
    counted(first)  # it knows their indices
    one.signal(signal.SIGSTOP)
    redis.kill()
    redis.start()
    try:
        wait_until(lambda: second.post([{"site": site, "page": "/", "user": u} for u in ("other-1", "other-2")]).status == 202,
                   "counted again")
        assert sorted(second.question("/active/users", site=site)["users"]) == ["kept", "other-1", "other-2"]
    finally:
        one.signal(signal.SIGCONT)
    wait_until(lambda: first.post([{"site": site, "page": "/", "user": u} for u in ("kept", "lost-1")]).status == 202, "counted again")
    everybody = ["kept", "lost-1", "lost-2", "other-1", "other-2"]
    assert sorted(second.question("/active/users", site=site)["users"]) == everybody
    assert second.question("/dau", site=site)["users"] == 5
    assert second.count("pv", site=site, from_="now-1h") == 7
    check_store(redis, site)


def test_everything_deleted_under_our_feet(start_redis, start_tallyd, site):
    redis = start_redis()
    http = start_tallyd(*FEW, redis=redis).client()
    http.accept([{"site": site, "page": "/", "user": i} for i in range(20)])
    redis.command("FLUSHALL")
    wait_until(lambda: http.post([{"site": site, "page": "/", "user": i} for i in (3, 4, 5)]).status == 202, "counted again")
    assert sorted(http.question("/active/users", site=site)["users"]) == ["3", "4", "5"]
    check_store(redis, site)


# Forgetting


def half_forgotten(redis, site, user):
    """As forget_user.lua leaves it: the name and the index are gone, the bits are not yet."""
    with redis.connect() as connection:
        for key in connection.command("KEYS", f"t:*:uid:{site}"):
            index = connection.command("HGET", key, user)
            if index is not None:
                tag = key.split("}")[0] + "}"
                connection.command("HDEL", key, user)
                connection.command("LSET", f"{tag}:ids:{site}:{int(index) // 128}", int(index) % 128, "")
                connection.command("SADD", f"{tag}:gone", f"{site}:{index}")
                return
    raise AssertionError(f"{user} has no index")


@pytest.mark.parametrize("who", ["the same request again", "the leader"])
def test_forgetting_that_was_broken_off_is_finished(start_redis, start_tallyd, site, who):
    redis = start_redis(appendonly=True)
    tallyd = start_tallyd(*FEW, redis=redis)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/", "user": u, "actions": ["x"]} for u in ("a", "b")])
    counted(http)
    half_forgotten(redis, site, "a")
    assert http.question("/dau", site=site)["users"] == 2
    if who == "the leader":
        tallyd.kill()
        http = tallyd.start().client()
        wait_until(lambda: redis.command("KEYS", "t:*:gone") == [], "the leader has swept")
    else:
        assert http.request("DELETE", f"/users/a?site={site}").status == 200
        assert redis.command("KEYS", "t:*:gone") == []
    for action in ("active", "x"):
        assert http.question("/dau", site=site, action=action)["users"] == 1
    check_store(redis, site)


def test_bits_of_another_who_was_half_forgotten_are_not_the_users(start_redis, start_tallyd, site):
    """Who has no index has no bits, whatever is cleared on the way."""
    redis = start_redis(appendonly=True)
    http = start_tallyd("--partitions", "1", redis=redis).client()
    http.accept({"site": site, "page": "/", "user": "a"})
    counted(http)
    half_forgotten(redis, site, "a")
    answer = http.request("DELETE", f"/users/nobody?site={site}").json
    assert (answer["forgotten"], answer["bits_cleared"]) == (False, 0)
    assert http.question("/dau", site=site)["users"] == 0


def test_more_bitmaps_than_redis_lists_at_once(start_redis, start_tallyd, site):
    redis = start_redis(appendonly=True)
    http = start_tallyd("--partitions", "1", redis=redis).client()
    actions = [f"x{i}" for i in range(1200)]
    http.accept([{"site": site, "page": "/", "user": "a", "actions": actions[i:i + 8]} for i in range(0, len(actions), 8)])
    counted(http)
    assert http.request("DELETE", f"/users/a?site={site}").json["bits_cleared"] == 1 + len(actions)
    check_store(redis, site)


@pytest.mark.parametrize("nth", range(1, 4))
@pytest.mark.parametrize("point", ["command-before", "command-after", "reply-before", "reply-inside"])
def test_forgetting_is_cut(start_redis, start_proxy, start_tallyd, site, point, nth):
    """Cut at each of its steps it is done again, to its end."""
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    http = start_tallyd(*FEW, "--readers", "1", redis=proxy).client()
    http.accept([{"site": site, "page": "/", "user": u, "actions": ["x", "y"]} for u in ("a", "b")])
    http.question("/dau", site=site)  # the reader is connected
    steps = ("evalsha", "srandmember", "zscan")
    fault = proxy.arm(Fault(point, match=lambda args: str(args[0]).strip("b'").lower() == steps[nth - 1]))
    answer = http.request("DELETE", f"/users/a?site={site}")
    assert answer.status == 200 and fault.fired == 1
    assert nth == 1 or answer.json["forgotten"] is True
    assert [http.question("/dau", site=site, action=action)["users"] for action in ("active", "x", "y")] == [1, 1, 1]
    assert redis.command("KEYS", "t:*:gone") == []
    check_store(redis, site)


def test_forgetting_that_is_refused_half_way_is_in_doubt(start_redis, start_proxy, start_tallyd, site):
    """The id is forgotten, and Redis does not list the bitmaps: a 503 would say that nothing was done."""
    proxy = start_proxy(start_redis())
    http = start_tallyd(*FEW, redis=proxy).client()
    http.accept({"site": site, "page": "/", "user": "a"})
    assert http.question("/dau", site=site)["users"] == 1
    refused = proxy.arm(Fault("error", match=lambda args: args[0] == b"ZSCAN", times=1000, text="NOPERM this user has no permissions"))
    answer = http.request("DELETE", f"/users/a?site={site}")
    assert refused.fired and answer.status == 504, answer


def test_a_day_that_is_taken_back_or_not_is_in_doubt(start_redis, start_proxy, start_tallyd, site):
    """The bit may be cleared, and Redis refuses the second try: a 503 would say that nothing was done."""
    proxy = start_proxy(start_redis())
    http = start_tallyd(*FEW, redis=proxy).client()
    http.accept({"site": site, "page": "/", "user": "a"})
    assert http.question("/dau", site=site)["users"] == 1

    def clears(args):
        return is_script(args) and any(b":uid:" in word for word in args)

    refused = Fault("error", match=clears, times=1000, text="NOPERM this user has no permissions")
    cut = proxy.arm(Fault("reply-before", match=clears, then=refused))
    answer = http.request("DELETE", f"/users/a/activity?site={site}&action=active&date={date_of(int(time.time()) // DAY_S)}")
    assert cut.fired and refused.fired and answer.status == 504, answer


def test_an_index_that_is_somebodys_again_is_not_cleared(start_redis, start_proxy, start_tallyd, site):
    """While bits are cleared the site is deleted, so its indices begin anew.  The user who gets the index has come afterwards."""
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    http = start_tallyd("--partitions", "1", "--readers", "1", redis=proxy, name="one").client()
    other = start_tallyd("--partitions", "1", redis=redis, name="two").client()
    http.accept({"site": site, "page": "/", "user": "a"})
    assert http.question("/dau", site=site)["users"] == 1
    came = []

    def delete_site(args):
        if args[0].upper() == b"ZSCAN" and not came:
            came.append("b")
            for kind in ("uid", "ids", "visit"):  # a sweep's order is any; the bitmap stays until now, for ZSCAN to find it
                for key in redis.command("KEYS", f"t:*:{kind}:{site}*"):
                    redis.command("DEL", key)
            redis.command("DEL", "t:{0}:gone", *redis.command("KEYS", f"t:*:act:{site}:*"))
            other.accept({"site": site, "page": "/", "user": "b"})
            assert other.question("/dau", site=site)["users"] == 1
        return False

    proxy.arm(Fault("command-before", match=delete_site))
    assert http.request("DELETE", f"/users/a?site={site}").status == 200
    assert came and other.question("/dau", site=site)["users"] == 1
    assert other.question("/users/b/activity", site=site)["active_days"] == 1
    check_store(redis, site)


def test_a_redis_that_is_full(start_redis, start_tallyd, site):
    """Questions and forgetting need no memory."""
    redis = start_redis()
    http = start_tallyd(*FEW, redis=redis).client()
    http.accept([{"site": site, "page": "/", "user": u} for u in ("a", "b", "c")])
    redis.command("CONFIG", "SET", "maxmemory", "1")
    assert http.post({"site": site, "page": "/", "user": "d"}).status == 503
    assert http.question("/dau", site=site)["users"] == 3
    assert http.question("/active", site=site, from_="now-3d")["users"] == 3
    assert sorted(http.question("/active/users", site=site)["users"]) == ["a", "b", "c"]
    assert http.request("DELETE", f"/users/b?site={site}").json["bits_cleared"] == 1
    assert http.question("/dau", site=site)["users"] == 2
    check_store(redis, site)


def test_many_new_users_while_redis_is_full(start_redis, start_tallyd, site):
    """A fold beyond maxmemory is one script, and no command of a script has more than 8,000 words.  Folds of known users are cheap, so
    the next fold takes many events at a time."""
    redis = start_redis()
    dead = start_tallyd("--partitions", "1", redis=redis, env=HELD, name="dead")
    http = start_tallyd("--partitions", "1", redis=redis, name="living").client()
    for _ in range(25):
        http.accept([{"site": site, "user": f"known {i}", "actions": ["a"]} for i in range(4000)])
        assert http.question("/dau", site=site)["users"] == 4000
    dead.client().accept([{"site": site, "user": f"new {i}", "actions": ["a"]} for i in range(10000)])
    redis.command("CONFIG", "SET", "maxmemory", "1")
    dead.kill()
    assert http.question("/dau", site=site)["users"] == 14000
    check_store(redis, site)


# What is left behind


def test_questions_leave_nothing_behind(redis, tallyd, http, site):
    """No key is made by a question, temporary or not."""
    http.accept([{"site": site, "page": "/", "user": i} for i in range(100)])
    counted(http)

    def keys():
        return {k for k in redis.command("KEYS", "*") if k.rpartition(":")[2] not in ("lock", "fence", "probe")}

    def made():
        before = keys()
        for path, params in (("/dau", {"from_": "now-30d"}), ("/active", {"from_": "now-30d"}), ("/active", {"from_": "now-7d", "match": "all"}),
                             ("/retention", {"cohort": date_of(int(redis.time()) // DAY_S - 9), "days": 9, "cohorts": 9}),
                             ("/active/users", {"from_": "now-30d"}), ("/users/1/activity", {})):
            http.question(path, site=site, **params)
        return keys() - before

    assert not made() or not made()  # a rollup makes keys, too, once a minute
    assert "cmdstat_bitop" not in redis.command("INFO", "commandstats")


def test_days_are_kept_as_long_as_was_said(start_world, site):
    """Then their bitmaps are taken away, also those of a site that nobody writes to any more; a longer time brings no
    day back, and says so."""
    world = start_world("2026-03-01 10:00:10", *FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d")
    http, begin = world.http, epoch("2026-03-01") // DAY_S
    http.accept([{"site": s, "page": "/", "user": "u", "ts": (begin - back) * DAY_S} for s in (site, site + "-dead") for back in (0, 5, 31)])
    counted(http)

    def bitmaps(of):
        return sorted(k.rpartition(":")[2] for k in world.redis.command("KEYS", f"t:*:act:{of}:*"))

    def dau(day):
        answer = http.get("/dau", site=site, date=date_of(day))
        return answer.json["users"] if answer.status == 200 else answer.status

    assert bitmaps(site) == bitmaps(site + "-dead") == ["20260129", "20260224", "20260301"]
    assert [dau(begin - back) for back in (0, 5, 31, 32, 33)] == [1, 1, 1, 0, 422]
    world.move("2026-03-10 10:00:10")
    assert [dau(begin - back) for back in (0, 5, 23, 24, 31)] == [1, 1, 0, 422, 422]
    wait_until(lambda: bitmaps(site) == bitmaps(site + "-dead") == ["20260224", "20260301"], "the old day is swept away", deadline_s=30)
    http.accept({"site": site, "page": "/", "user": "u", "ts": (begin - 31) * DAY_S})  # months are kept: it counts there
    counted(http)
    assert bitmaps(site) == ["20260224", "20260301"]
    answer = http.get("/active", site=site, from_=date_of(begin - 31), to=date_of(begin))
    assert answer.status == 422 and date_of(begin - 23) in answer.json["detail"], answer
    assert http.question("/users/u/activity", site=site)["days"] == [date_of(begin - 5), date_of(begin)]

    world.tallyd.terminate()
    world.tallyd.args = (*FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "400d")
    world.restart()
    http = world.http
    assert [dau(begin - back) for back in (5, 23)] == [1, 0]
    assert [dau(begin - back) for back in (31, 200)] == [422, 422]
    check_store(world.redis, site)


def test_the_oldest_day_of_a_site_is_kept_until_its_own_midnight(start_world, directory):
    """West of UTC a day begins and ends later.  The sweep deletes it neither with UTC's day nor before it is refused."""
    directory.mkdir(exist_ok=True)
    (directory / "tallyd.conf").write_text("site.west.tz = Pacific/Honolulu\nsite.east.tz = Pacific/Auckland\n")
    world = start_world("2026-03-01 12:00:10", *FEW, "--keep-minutes", "2h", "--keep-hours", "2d", "--keep-days", "32d",
                        "--config", directory / "tallyd.conf")
    http, noon = world.http, epoch("2026-02-05 12:00")
    days = {"west": 5, "plain": 5, "east": 6}  # of February: where 12:00 UTC lies
    for i, site in enumerate(days):
        http.accept([{"site": site, "page": "/", "user": f"u{i}", "ts": noon}, {"site": site, "page": "/", "user": "far", "ts": noon - 7 * DAY_S}])
    counted(http)

    def kept(site):
        """Days of which Redis has bits; what the oldest one answers."""
        found = sorted(int(k[-4:]) for k in world.redis.command("KEYS", f"t:*:act:{site}:active:*"))
        answer = http.get("/dau", site=site, date=f"2026-02-{days[site]:02}")
        return [day for day in found if day > 200], answer.json["users"] if answer.status == 200 else answer.status

    # 32 days back it is 5 February 22:00 UTC: 12:00 in Honolulu, the 6th in Auckland
    for when, answers in (("2026-03-09 22:01:00", {"west": 1, "plain": 1, "east": 1}),
                          ("2026-03-10 09:59:00", {"west": 1, "plain": 422, "east": 1}),
                          ("2026-03-10 10:01:00", {"west": 422, "plain": 422, "east": 1}),
                          ("2026-03-10 11:01:00", {"west": 422, "plain": 422, "east": 422})):
        world.move(when)
        assert http.request("POST", "/rollup").status == 200
        wait_until(lambda: not world.redis.command("KEYS", "t:*:act:*:0129"), "what is far back is swept away")
        for site, answer in answers.items():
            assert kept(site)[1] == answer, (when, site)
            assert answer == 422 or kept(site)[0] == [200 + days[site]], (when, site)
