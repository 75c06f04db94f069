"""Whose data it is: each partition's state names the data set, and what is of another installation is neither told nor touched.

What a data set leaves behind is compared key by key, before and after.
"""

import hashlib
import re
import shutil

import pytest

from lib.cluster import Cluster
from lib.log import states
from lib.waiting import wait_until

FOUR = ("--partitions", "4")
FOREIGN = "this is the data of another installation"
DIGESTS = """local r = {}
for _, key in ipairs(redis.call('KEYS', '*')) do r[#r + 1] = key .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) end
table.sort(r) return r"""


def content(server):
    """Every key with a digest of its value."""
    return server.command("EVAL", DIGESTS, 0)


def data_set(server, key):
    return re.search(r" set=([0-9a-f]{16})$", server.command("HGET", key, "cfg"))[1]


def make_foreign(server):
    """As a restored data set of another installation leaves it: other states, another secret, no log and no lock of this process.
    Nor has it cursors of this process's log, which its leader would clear away: they have no head."""
    for key in states(server):
        for cursor in [field for field in server.command("HKEYS", key) if re.fullmatch("[0-9a-f]{16}", field)]:
            server.command("HDEL", key, cursor)
        server.command("HSET", key, "cfg", re.sub(r" set=\w+", " set=00000000000000ff", server.command("HGET", key, "cfg")))
    for key in server.command("KEYS", "t:*:secret"):
        server.command("SET", key, "x" * 32)
    for key in [k for name in ("heads", "log:*", "lock", "wish") for k in server.command("KEYS", f"t:*:{name}")]:
        server.command("DEL", key)


def drop_connections(server):
    server.command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def refused(http, site):
    """Every way to the data is refused with the sentence."""
    answers = [http.post([{"site": site, "page": "/x"}]), http.get("/pv", site=site, from_="now-1h"),
               http.get("/rollup"), http.request("PUT", "/filters/f", '{"capacity":10,"error_rate":0.1}', {"Content-Type": "application/json"})]
    assert [a.status for a in answers] == [503] * len(answers), answers
    assert {a.json["detail"] for a in answers} == {FOREIGN}, answers
    ready = http.get("/readyz")
    assert ready.status == 503 and FOREIGN in ready.json["detail"], ready
    return True


def test_each_state_names_the_data_set(start_redis, start_tallyd):
    """The same in all partitions: the first 64 bits of a BLAKE2b of the secret."""
    redis = start_redis()
    start_tallyd(*FOUR, redis=redis)
    sets = {data_set(redis, key) for key in states(redis)}
    assert len(states(redis)) == 4 and len(sets) == 1
    digest = redis.command("EVAL", "local r = '' for c in redis.call('GET', KEYS[1]):gmatch('.') do r = r .. ('%02x'):format(c:byte()) end return r",
                           1, redis.command("KEYS", "t:*:secret")[0])
    secret = bytes.fromhex(digest)
    assert len(secret) == 32 and sets == {hashlib.blake2b(secret, digest_size=16).hexdigest()[:16]}


def test_the_address_leads_to_another_installation(start_redis, start_tallyd, site):
    """503 with a sentence, and not a byte is written there; the own data again, and all goes on."""
    redis, other = start_redis(appendonly=True), start_redis(appendonly=True)
    start_tallyd(*FOUR, redis=other).client().accept([{"site": site, "page": "/theirs"}] * 5)
    tallyd = start_tallyd(*FOUR, redis=redis)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/ours"}])
    assert http.count("pv", site=site, from_="now-1h") == 1
    wait_until(lambda: "AOF rewrite finished" in other.log_text(), "its files stay as they are")
    redis.kill()
    ours, theirs = redis.directory / "appendonlydir", redis.directory / "kept"
    ours.rename(theirs)
    shutil.copytree(other.directory / "appendonlydir", ours)
    redis.start()
    before = content(redis)
    assert before
    wait_until(lambda: refused(tallyd.client(), site), "refused")
    assert content(redis) == before
    wait_until(lambda: "another installation" in tallyd.log_text(), "the log says so")
    redis.kill()
    shutil.rmtree(ours)
    theirs.rename(ours)
    redis.start()
    wait_until(lambda: tallyd.client().post([{"site": site, "page": "/ours"}]).status == 202, "it goes on")
    assert tallyd.client().count("pv", site=site, from_="now-1h") == 2


def test_a_data_set_is_restored_under_a_living_connection(start_redis, start_tallyd, site):
    redis = start_redis()
    tallyd = start_tallyd(*FOUR, redis=redis)
    http = tallyd.client()
    http.accept([{"site": site, "page": "/ours"}])
    assert http.count("pv", site=site, from_="now-1h") == 1
    wait_until(lambda: redis.command("KEYS", "t:*:lock"), "it leads: what is on its way to the lock would be written behind the change")
    make_foreign(redis)
    before = content(redis)
    answer = http.post([{"site": site, "page": "/x"}])
    assert answer.status == 503, answer
    wait_until(lambda: refused(tallyd.client(), site), "refused")
    assert content(redis) == before


def test_a_start_does_not_take_over_a_foreign_partition(start_redis, start_tallyd, site):
    """Settings that differ are replaced at a start; another data set is not, and nothing is changed."""
    redis = start_redis()
    start_tallyd(*FOUR, redis=redis).terminate()
    key = states(redis)[2]
    redis.command("HSET", key, "cfg", re.sub(r" set=\w+", " set=00000000000000ff", redis.command("HGET", key, "cfg")))
    before = content(redis)
    tallyd = start_tallyd(*FOUR, "--keep-minutes", "72h", redis=redis, wait_ready=False)
    assert tallyd.process.wait(20) == 2
    assert re.search(r"partition \d has the data of another installation: set 00000000000000ff, and the secret is that of set \w{16}",
                     tallyd.log_text())
    assert content(redis) == before


def test_data_without_its_secret(start_redis, start_tallyd):
    """The visitors' hashes are lost: no other secret is put in its place."""
    redis = start_redis()
    start_tallyd(*FOUR, redis=redis).terminate()
    redis.command("DEL", redis.command("KEYS", "t:*:secret")[0])
    before = content(redis)
    tallyd = start_tallyd(*FOUR, redis=redis, wait_ready=False)
    assert tallyd.process.wait(20) == 2
    assert "the data has lost its secret" in tallyd.log_text()
    assert content(redis) == before


@pytest.mark.parametrize("secret", ["", "short", "x" * 33])
def test_a_secret_that_is_none(start_redis, start_tallyd, secret):
    redis = start_redis()
    start_tallyd(*FOUR, redis=redis).terminate()
    redis.command("SET", redis.command("KEYS", "t:*:secret")[0], secret)
    before = content(redis)
    tallyd = start_tallyd(*FOUR, redis=redis, wait_ready=False)
    assert tallyd.process.wait(20) == 2
    assert "the secret is not one of ours" in tallyd.log_text()
    assert content(redis) == before


@pytest.mark.cluster
def test_a_node_of_a_cluster_with_foreign_data(start_tallyd, site):
    """One node's data is that of another installation: the whole process refuses, whichever node a request is for."""
    cluster = Cluster(primaries=3, replicas=0)
    try:
        tallyd = start_tallyd("--partitions", "16", "--ack-replicas", "0", redis=cluster.start())
        http = tallyd.client()
        http.accept([{"site": site, "page": f"/{i}", "user": str(i)} for i in range(30)])
        assert http.count("pv", site=site, from_="now-1h") == 30
        node = cluster.nodes[1]
        kept = {key: node.command("HGET", key, "cfg") for key in states(node)}
        make_foreign(node)
        before = content(node)
        drop_connections(node)
        wait_until(lambda: refused(tallyd.client(), site), "refused")
        assert content(node) == before
        again = start_tallyd("--partitions", "16", "--ack-replicas", "0", redis=cluster, wait_ready=False)
        assert again.process.wait(20) == 2 and "another installation" in again.log_text()
        assert content(node) == before
        for key, cfg in kept.items():
            node.command("HSET", key, "cfg", cfg)
        wait_until(lambda: tallyd.client().post([{"site": site, "page": "/again"}]).status == 202, "it goes on", deadline_s=20)
    finally:
        cluster.stop()
