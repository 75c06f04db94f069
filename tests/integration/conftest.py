"""Fixtures that all integration tests share.  See tests/README.md."""

import os
import pathlib
import random
import re
import time

import pytest

from lib import process
from lib.browser import Browser
from lib.cluster import Cluster, running, server_missing
from lib.dashboard import send_shop
from lib.http_proxy import HttpProxy
from lib.process import Redis, Tallyd, binary, short_directory
from lib.proxy import Proxy
from lib.some import ALL, leave_out
from lib.world import World

SEED = int(os.environ.get("TALLYD_SEED") or time.time_ns() % 1_000_000)
os.environ["TALLYD_SEED"] = str(SEED)  # for the processes of `pytest -n`, which must agree on the order


def pytest_report_header():
    return f"tallyd: {binary()}, TALLYD_SEED={SEED}, {'all' if ALL else 'some'} cases of what has many"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Some cases of what is marked so, but all of what failed before; in random order: of the files, and of the tests in each
    (what a file shares is started once)."""
    if not config.getoption("lf", False):
        items[:], left_out = leave_out(items, SEED)
        config.hook.pytest_deselected(items=left_out)
    chance = random.Random(SEED)
    files = sorted({item.path for item in items})
    chance.shuffle(files)
    rank = {path: i for i, path in enumerate(files)}
    chance.shuffle(items)
    items.sort(key=lambda item: rank[item.path])


def pytest_runtest_setup(item):
    if item.get_closest_marker("cluster") is not None and server_missing() is not None:
        pytest.skip(server_missing())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the end of every running process's log."""
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for p in process.running:
            state = "running" if p.alive() else f"ended {p.process.returncode}"
            report.sections.append((f"{p.name} ({state}), last lines of its log", p.tail(40 if p.name != "redis" else 8)))


def pytest_sessionfinish(session):
    """A sanitizer's report fails the run, whatever the tests say."""
    logs = os.environ.get("TALLYD_SAN_LOGS")
    for log in sorted(pathlib.Path(logs).glob("san*")) if logs else []:
        print(f"\n== {log}\n{log.read_text(errors='replace')[:4000]}")
        session.exitstatus = 1


@pytest.fixture
def seed():
    """Of this run; TALLYD_SEED repeats it."""
    return SEED


@pytest.fixture
def chance(request):
    """A generator of its own for each test, from the seed and the test's name."""
    return random.Random(f"{SEED} {request.node.name}")


# What a file shares: one Redis without persistence, one tallyd on it.  A file that needs other
# options defines its own TALLYD_ARGS.


@pytest.fixture(scope="module")
def redis():
    server = Redis()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def tallyd(redis, request):
    daemon = Tallyd(*getattr(request.module, "TALLYD_ARGS", ()), redis=redis)
    try:
        yield daemon.start()
    finally:
        daemon.stop()


@pytest.fixture
def http(tallyd):
    client = tallyd.client()
    yield client
    client.close()


@pytest.fixture
def site(request):
    """A tenant of this test's own on the shared tallyd."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return f"{name[:50].strip('-')}-{random.getrandbits(32):08x}"


# Processes of a test's own, stopped at its end in reverse order.


@pytest.fixture
def directory():
    """Short enough for sockets; removed by what is started in it, or left empty in /tmp."""
    path = short_directory()
    yield path
    if path.exists() and not any(path.iterdir()):
        path.rmdir()


@pytest.fixture
def cleanup():
    """A list of functions to call at the end, the last one first."""
    actions = []
    yield actions
    for action in reversed(actions):
        action()


@pytest.fixture
def start_redis(cleanup):
    def start(*args, **options):
        server = Redis(*args, **options)
        cleanup.append(server.stop)
        return server.start()

    return start


@pytest.fixture
def start_tallyd(cleanup):
    def start(*args, wait_ready=True, **options):
        daemon = Tallyd(*args, **options)
        cleanup.append(daemon.stop)
        return daemon.start(wait_ready)

    return start


@pytest.fixture
def start_proxy(cleanup):
    def start(redis):
        proxy = Proxy(redis.directory, redis.path)
        cleanup.append(proxy.close)
        return proxy

    return start


@pytest.fixture
def proxy(tallyd, cleanup):
    """Between a client and the tallyd of this file."""
    between = HttpProxy(tallyd.port)
    cleanup.append(between.close)
    return between


@pytest.fixture
def start_world(cleanup):
    def start(*args, **options):
        world = World(*args, **options)
        cleanup.append(world.close)
        return world

    return start


# A cluster that loses nothing by itself: three primaries with a replica each, which sync what they append.


@pytest.fixture(scope="module")
def cluster():
    with running(Cluster(options=("--appendonly", "yes", "--appendfsync", "always"), node_timeout_ms=2000)) as one:  # a busy machine fails nothing over
        yield one


@pytest.fixture
def healed(cluster):
    """The cluster of this file with all its nodes; they are brought back at the end."""
    yield cluster
    cluster.bring_back()


@pytest.fixture
def on_cluster(start_tallyd):
    """on_cluster(cluster, *options): a tallyd with few partitions, so that little costs little."""
    def start(cluster, *more):
        return start_tallyd("--partitions", "24", *more, redis=cluster)

    return start


# The dashboard in a browser.


@pytest.fixture(scope="module")
def shop(tallyd):
    """The site whose dashboard the tests look at."""
    http = tallyd.client()
    send_shop(http)
    http.close()
    return "shop"


@pytest.fixture
def look(tallyd, cleanup):
    """A browser on the dashboard."""
    def open_(path, base=None, **options):
        browser = Browser(base or tallyd.url, **options)
        cleanup.append(browser.close)
        browser.open(path)
        return browser
    return open_
