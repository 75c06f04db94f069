"""What no request asks for, harmed as in reply_positions.py: the leader's lock, the heads of logs, hot pages, and the stop of a
process."""

from .process import Redis, Tallyd
from .proxy import Fault, Proxy, is_any
from .reply_positions import HARMS, fault_of
from .waiting import wait_until


def about(*names):
    """Commands with such a key."""
    return lambda args: any(name in a for a in args[1:6] for name in names)


BACKGROUND = {"the leader's lock": about(b":lock"), "heads of logs": about(b":heads"), "hot pages": about(b":hot")}
SOON_S = 30  # a heartbeat, or a renewal of the lock


def background(which, harms=HARMS):
    """The next command of this kind, in each way: events count once, and in the end the process leads and rolls up."""
    redis = Redis(appendonly=True).start()
    proxy = Proxy(redis.directory, redis.path)
    tallyd = Tallyd("--partitions", "2", "--request-timeout", "3s", redis=proxy)
    site, sent = "background", 0
    try:
        http = tallyd.start().client()
        for harm in harms:
            fault = proxy.arm(fault_of(harm, 1, BACKGROUND[which]))

            def goes_on(armed=fault):
                nonlocal sent
                key = {"Idempotency-Key": f"{site} {sent}"}
                event = {"site": site, "page": f"/{sent}", "user": f"u{sent}"}
                wait_until(lambda: http.post(event, headers=key).status == 202, "it is taken")
                sent += 1
                assert http.get("/hotkeys").status in (200, 503)
                return armed.fired

            wait_until(goes_on, f"{which} is harmed: {harm}", SOON_S, pause_s=0.1)
            if fault.point == "command-stuck":
                fault.deliver()
            proxy.disarm()
            counted = wait_until(lambda: (a := http.get("/stats", site=site, from_="now-1h")).status == 200 and a, "it is counted")
            assert counted.json["pv"] == counted.json["visits"] == sent, (which, harm, counted)
        wait_until(lambda: http.request("POST", "/rollup").status == 200 and http.question("/rollup")["leader"], "it leads")
        assert http.count("pv", site=site, from_="now-1h") == sent
    finally:
        tallyd.stop()
        proxy.close()
        redis.stop()


def stops(point, steps=1, first=1, most=40):
    """Each command behind SIGTERM, which folds and closes the process's own log: it ends in time with 0, and another process has
    all that was acknowledged.  Returns how many commands were harmed."""
    redis = Redis(appendonly=True).start()
    proxy = Proxy(redis.directory, redis.path)
    other, site, rounds = Tallyd("--partitions", "2", redis=redis, name="other"), "stops", 0
    try:
        http = other.start().client()
        for nth in range(first, most, steps):
            tallyd = Tallyd("--partitions", "2", "--request-timeout", "2s", redis=proxy, name="stopping")
            try:
                tallyd.start().client().accept([{"site": site, "page": f"/{nth}", "user": f"{nth}-{i}"} for i in range(5)])
                fault = proxy.arm(Fault(point, nth=nth, match=is_any))
                assert tallyd.terminate() == 0, f"{point} at {nth}"
            finally:
                tallyd.stop()
            proxy.disarm()
            rounds += 1
            assert http.count("pv", site=site, from_="now-1h") == 5 * rounds, f"{point} at {nth}"
            assert http.count("pv", site=site, page=f"/{nth}", from_="now-1h") == 5, f"{point} at {nth}"
            if not fault.fired:
                break
        return rounds - 1
    finally:
        other.stop()
        proxy.close()
        redis.stop()
