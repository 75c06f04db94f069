"""Slow clients by the thousand: those who behave are served in time."""

import socket
import statistics
import threading
import time

import pytest

from lib.process import sanitized
from lib.raw import Raw
from lib.slow import withstand
from lib.waiting import wait_until


def test_a_thousand_slow_clients(start_redis, start_tallyd):
    tallyd = start_tallyd("--request-timeout", "3s", redis=start_redis())
    figures = withstand(tallyd, 1000, 8)
    print(figures)
    assert sanitized() or figures["KiB a connection"] < 48, figures


def test_more_slow_clients_than_there_is_room_for(start_redis, start_tallyd):
    """The silent and slow ones go first, so the others get in, and stay."""
    tallyd = start_tallyd("--max-connections", "400", redis=start_redis())
    figures = withstand(tallyd, 1000, 8, room=400)
    print(figures)


def test_who_waits_for_an_answer_keeps_the_place(start_redis, start_proxy, start_tallyd):
    """Also where all places are taken, and somebody comes all the while."""
    proxy = start_proxy(start_redis())
    tallyd = start_tallyd("--max-connections", "20", redis=proxy)
    tallyd.client().accept({"page": "/", "user": "before"})
    asked, answers = [tallyd.client(30) for _ in range(10)], []
    proxy.hold_replies()
    threads = [threading.Thread(target=lambda h=http: answers.append(h.get("/pv").status)) for http in asked]
    for thread in threads:
        thread.start()
    wait_until(lambda: tallyd.client().metric("tallyd_http_suspended") >= 10, "they wait")
    idle = [socket.create_connection(("127.0.0.1", tallyd.port)) for _ in range(100)]
    for _ in range(20):
        assert tallyd.client().get("/healthz").status == 200
    proxy.hold_replies(False)
    for thread in threads:
        thread.join(20)
    assert answers == [200] * 10
    wait_until(lambda: tallyd.client().metric("tallyd_http_shed_total") >= 80, "the silent ones go")
    for s in idle:
        s.close()


@pytest.mark.parametrize("path, body", [
    ("/events", '{"page":"/"}'), ("/ratelimit", '{"key":"k","algorithm":"sliding","limit":5,"period_s":60}')])
def test_a_body_that_came_slowly_has_its_answer_in_time(start_redis, start_tallyd, path, body):
    """It is late before the requests that wait in front of it, while Redis does not answer.  A busy machine holds up one
    or another, not most of them."""
    timeout_s, redis = 0.2, start_redis()
    tallyd = start_tallyd("--request-timeout", "200ms", redis=redis)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
    over = []
    for left_s in (0.02, 0.04, 0.08) * 5:
        slow, others = Raw(tallyd.port), [Raw(tallyd.port) for _ in range(3)]
        begin = time.monotonic()
        slow.send(head)
        time.sleep(timeout_s - left_s - 0.06)
        redis.pause()
        for other in others:  # of events two entries are under way then, and the third request waits
            other.send(head + body)
            time.sleep(0.01)
        time.sleep(max(0, begin + timeout_s - left_s - time.monotonic()))
        slow.send(body)
        assert slow.receive()[0] in (408, 503, 504)
        over.append(time.monotonic() - begin - timeout_s)
        redis.resume()
        assert {other.receive()[0] for other in others} <= {200, 202, 429, 503, 504}
    assert statistics.median(over) < 0.01, over
