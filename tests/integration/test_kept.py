"""While questions come, large requests are acknowledged between two rounds of folds: a question waits for the round that is under
way, and not for the next one, too."""

import threading
import time

from lib.proxy import Fault

ARRAY, SMALL = 150, 1
DAY = {"from_": "now-1d", "to": "now"}


def is_trim(args):
    """The last command of a fold's transaction."""
    return args[0].upper() == b"XTRIM"


class Sending(threading.Thread):
    """A request on its way."""

    def __init__(self, send):
        super().__init__(daemon=True)
        self.send, self.answer, self.ended_s = send, None, None
        self.start()

    def run(self):
        self.answer = self.send()
        self.ended_s = time.monotonic()

    def wait(self):
        self.join(10)
        assert not self.is_alive(), "it is answered"
        return self.answer


def events(site, n):
    return [{"site": site, "page": f"/{i % 7}", "user": f"u{i}", "ip": f"10.0.{i // 250}.{i % 250}"} for i in range(n)]


def test_a_large_request_waits_for_the_round_under_way(start_redis, start_tallyd, start_proxy, site):
    redis = start_redis()
    proxy = start_proxy(redis)
    tallyd = start_tallyd("--partitions", "4", redis=proxy)
    http = tallyd.client()
    http.accept(events(site, SMALL))
    assert http.count("pv", site=site, **DAY) == SMALL  # the scripts are loaded, the partitions are known
    http.accept(events(site, SMALL))
    fault = proxy.arm(Fault("command-held", match=is_trim))
    asked = Sending(lambda: tallyd.client().count("pv", site=site, **DAY))
    assert fault.arrived.wait(10), "a round is under way"
    began_s = time.monotonic()
    large = Sending(lambda: tallyd.client().post(events(site, ARRAY)))
    assert large.wait().status == 202, "the round takes long: its end is not waited for"
    assert large.ended_s - began_s >= 0.09, "it was waited for"
    assert tallyd.client().post(events(site, SMALL)).status == 202, "a small one does not wait"
    assert asked.answer is None
    came = Sending(lambda: tallyd.client().count("pv", site=site, **DAY))
    fault.release()
    assert asked.wait() >= 2 * SMALL
    assert came.wait() == 3 * SMALL + ARRAY, "all was acknowledged before that question came"
