"""`make demo`: figures of two months, and nothing left of it afterwards."""

import importlib.util
import random
import re
import signal
import time

from lib.client import Client
from lib.process import ROOT, Process, binary, environment
from lib.waiting import wait_until


def generator():
    spec = importlib.util.spec_from_file_location("demo", ROOT / "deploy/demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_seed_is_the_same_traffic_and_marked_as_made_up():
    demo = generator()
    now = 1795183445.0
    first, again, other = (demo.months(random.Random(seed), now, 3, 500) for seed in (7, 7, 8))
    assert first == again != other and len(first) > 1000
    assert {e["site"] for e in first} == {"demo-shop", "demo-blog"}
    assert all(e["ip"].startswith(demo.NETWORKS) and e.get("user", "demo-").startswith("demo-") for e in first)
    assert [e["ts"] for e in first] == sorted(e["ts"] for e in first) and now - 3 * 86400 <= first[0]["ts"] and first[-1]["ts"] <= now


def test_it_looks_like_a_real_site():
    """Weekdays, a launch, visits of several pages, sources."""
    demo = generator()
    now = 1795183445.0
    views = [e for e in demo.months(random.Random(1), now, 40, 1600) if "page" in e and "event" not in e and e["site"] == "demo-blog"]
    a_day = [sum(now - (n + 1) * 86400 < e["ts"] <= now - n * 86400 for e in views) for n in range(39)]
    usual = sorted(a_day)[len(a_day) // 2]
    assert max(a_day) > 2 * usual and abs(a_day.index(max(a_day)) - demo.LAUNCH_DAYS_AGO) <= 1
    before = [e for e in views if e["ts"] < now - 20 * 86400]
    weekend = sum(time.gmtime(e["ts"]).tm_wday >= 5 for e in before) / len(before)
    assert weekend < 0.25  # of two days in seven, a blog of working days
    began = sum(bool({"referrer", "utm_source"} & e.keys()) for e in views)
    assert 0.15 < began / len(views) < 0.35  # the first page view of most visits says where it came from
    assert {e.get("utm_campaign") for e in views} >= {None, "weekly", "launch"}
    assert len({e["visitor"] for e in views}) * 1.2 < len(views)


def test_two_months_are_there_within_a_minute(directory):
    process = Process(directory, "demo")
    # as in a terminal: whatever runs the tests in the background has made its children ignore Ctrl-C
    process.spawn(["env", "--default-signal=INT", "sh", ROOT / "deploy/demo.sh", binary(), "127.0.0.1:0"],
                  environment({"TMPDIR": str(directory)}))
    try:
        wait_until(lambda: "Page views go on coming in" in process.out.read_text(), "the demo is there", 60)
        text = process.out.read_text()
        events = int(re.search(r"^(\d+) synthetic page views", text, re.M)[1])
        http = Client("127.0.0.1", int(re.search(r"listening on http://127.0.0.1:(\d+)", text)[1]))
        sites = ("demo-shop", "demo-blog")
        wait_until(lambda: sum(http.count("pv", site=s, from_="now-60d/h", round="outer") for s in sites) > events, "more come in")
        for path in re.findall(r"^  curl 'http://[^/]+(/.*)'$", text, re.M):
            assert http.get(path).status == 200, path
        uv, pv, visits = (http.count(m, site=sites[0], from_="now-30d/h") for m in ("uv", "pv", "visits"))
        assert 1000 < uv < visits < pv
        assert http.question("/rollup")["watermarks"]["day"] is not None
    finally:
        process.signal(signal.SIGINT)
        process.wait(30)
        process.stop()
    assert not list(directory.glob("tallyd-demo.*"))
    for file in (process.log, process.out):
        file.unlink()
