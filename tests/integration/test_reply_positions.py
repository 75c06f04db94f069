"""Every kind of request, its commands and replies cut, delayed and doubled, short; `make test-faults` has each position in each
way.  TALLYD_SEED repeats a run."""

import pytest

from lib.log import HELD
from lib.proxy import Fault, is_any
from lib.reply_positions import CUTS, DELAYED, DOUBLED, Sweep, fault_of, positions_of_all
from lib.request_kinds import CHANGES, QUESTIONS
from lib.waiting import wait_until


def test_positions(chance, seed):
    print(f"TALLYD_SEED={seed}")
    sweep = Sweep()
    positions_of_all(sweep, harms=(*CUTS, DELAYED, DOUBLED), steps=3, chance=chance)
    print(sweep.line())
    sweep.check()
    assert sum(sweep.tried.values()) > len(QUESTIONS) + len(CHANGES)


# What no request asks for: each conversation of its own, harmed where its commands are recognized.


def names(*words):
    """Commands with such a key or of such a name."""
    def match(args):
        return args[0].upper() in words or any(a.endswith(w) for a in args[1:6] for w in words)
    return match


BACKGROUND = {
    "the leader's lock": names(b":lock"),
    "heads of logs": names(b":heads"),
    "trimming": names(b"XTRIM", b"XDEL"),
    "hot pages": names(b":hot"),
}


@pytest.mark.parametrize("harm", [*CUTS, DELAYED, DOUBLED])
@pytest.mark.parametrize("which", BACKGROUND)
def test_what_nobody_asks_for(start_redis, start_proxy, start_tallyd, site, which, harm):
    """Each of its first commands: events count once, and in the end the process leads and rolls up."""
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    tallyd = start_tallyd("--partitions", "2", "--request-timeout", "3s", redis=proxy)
    http, sent = tallyd.client(), 0
    for nth in range(1, 4):
        fault = proxy.arm(fault_of(harm, nth, BACKGROUND[which]))

        def goes_on():
            nonlocal sent
            assert http.post({"site": site, "page": f"/{sent}", "user": f"u{sent}"}).status in (202,)
            sent += 1
            http.get("/hotkeys")
            http.question("/pv", site=site)
            return fault.fired

        wait_until(goes_on, f"{which} is harmed", pause_s=0.1)
        if fault.point == "command-stuck":
            fault.deliver()
        proxy.disarm()
        assert http.count("pv", site=site, from_="now-1h") == sent
    wait_until(lambda: http.request("POST", "/rollup").status == 200 and http.question("/rollup")["leader"], "it leads")
    assert http.count("pv", site=site, from_="now-1h") == http.count("uv", site=site, from_="now-1h") == sent


@pytest.mark.parametrize("point", CUTS)
def test_a_stop_is_harmed(start_redis, start_proxy, start_tallyd, site, point):
    """Each command behind SIGTERM, which folds and closes the process's own log: it ends in time, and another one has all."""
    redis = start_redis(appendonly=True)
    proxy = start_proxy(redis)
    other = start_tallyd("--partitions", "2", redis=redis, name="other").client()
    for nth in range(1, 40):
        tallyd = start_tallyd("--partitions", "2", "--request-timeout", "2s", redis=proxy, env=HELD, name=f"stops-{nth}")
        tallyd.client().accept([{"site": site, "page": f"/{nth}", "user": f"{nth}-{i}"} for i in range(5)])
        fault = proxy.arm(Fault(point, nth=nth, match=is_any))
        assert tallyd.terminate() == 0
        proxy.disarm()
        assert other.count("pv", site=site, from_="now-1h") == 5 * nth
        assert other.count("pv", site=site, page=f"/{nth}", from_="now-1h") == 5
        if not fault.fired:
            break
    assert nth > 4, "so few commands close no log"
