"""Figures that are compared with each other are of one moment, also while folds go on between the commands of a question."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lib.log import HELD
from lib.process import Redis
from lib.proxy import Fault, Proxy

ARGS = ("--partitions", "16", "--cache-mb", "0")
USERS = 5


@pytest.fixture
def world(start_redis, start_tallyd, start_proxy):
    """Who asks does so through a proxy; another process counts meanwhile."""
    redis = start_redis()
    proxy = start_proxy(redis)
    return proxy, start_tallyd(*ARGS, redis=proxy, env=HELD).client(), start_tallyd(*ARGS, redis=redis).client()


def pages(site, n):
    return [f"/{site}/{i}" for i in range(n)]


def reads(kind, page):
    """A command about this page's keys of a kind: sketches have the page in their names, page views in a field."""
    kind, page = f":{kind}:".encode(), page.encode()
    return lambda args: any(kind in a and (a.endswith(b":" + page) or page in args[2:]) for a in args[1:])


@pytest.mark.parametrize("kind", ["uv", "ip", "pv"])
def test_sketches_and_page_views_of_a_page(world, site, kind):
    """Visitors come while the question stands still before it reads the page's keys of one kind."""
    proxy, asker, other = world
    names = pages(site, 12)
    other.accept([{"site": site, "page": name, "user": "first", "ip": "10.0.0.1"} for name in names])
    asked = {"site": site, "page": names, "from_": "now-1m"}
    for _ in range(3):  # what the partitions say is learnt, and is the same again
        assert asker.question("/stats", **asked)["pv"] == len(names)
    fault = proxy.arm(Fault("command-held", match=reads(kind, names[-1])))
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(asker.question, "/stats", **asked)
        assert fault.arrived.wait(5)
        other.accept([{"site": site, "page": names[-1], "user": f"u{i}", "ip": f"10.0.1.{i}"} for i in range(USERS)])
        assert other.count("pv", site=site, page=names[-1], from_="now-1m") == 1 + USERS, "it is counted"
        fault.release()
        figures = answer.result()
    more = {figures["pv"] - len(names), figures["uv"] - 1, figures["ips"] - 1}
    assert len(more) == 1 and more < {0, USERS}, figures
