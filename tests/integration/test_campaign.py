"""The fault campaigns, short; `make test-faults` runs the long ones.  TALLYD_SEED repeats a run."""

import io
import os
import random
import re
import signal
import subprocess
import sys
import threading

import pytest

from campaign import stop_with
from lib import ledger as ledgers
from lib.campaign import Victims, kills, positions
from lib.ledger import EVENTS, Ledger
from lib.node_campaign import ClusterVictims, SentinelVictims
from lib.process import ROOT
from lib.record import FILE, Fuzzing, Kills, Table, Target
from lib.report import WRONG, Progress, Report
from lib.waiting import wait_until

STEPS = 6  # of so many positions one, in each way another one


@pytest.mark.parametrize("embedded", [True, False], ids=["its own Redis", "another Redis"])
def test_kills(chance, seed, embedded):
    report = Report(seed)
    kills(report, chance, goal=8, victims=Victims(embedded))
    print(report.line())
    report.check()
    assert report.killed() >= 8 and report.acknowledged > 100


@pytest.mark.cluster
@pytest.mark.parametrize("victims", [SentinelVictims, ClusterVictims], ids=["Sentinels", "a cluster"])
def test_kills_of_several_servers(chance, seed, victims):
    report = Report(seed)
    kills(report, chance, goal=4, victims=victims())
    print(report.line(), dict(report.kills))
    report.check()
    assert report.killed() >= 4 and report.acknowledged > 100


def test_positions_of_an_append_and_its_fold(seed):
    report = Report(seed)
    positions(report, only={"command-before", "command-inside", "command-after", "reply-before", "reply-inside", "reply-after",
                            "delay", "LOADING", "OOM", "READONLY", "MISCONF", "BUSY", "NOSCRIPT"}, steps=STEPS)
    print(report.line())
    report.check()
    assert report.positions >= 13 * 6  # how many commands a fold has, depends on what they take here (pace.h)


@pytest.fixture
def sent(tallyd, site, monkeypatch):
    """A ledger of two acknowledged requests, and the client that sent them."""
    monkeypatch.setattr(ledgers, "SETTLED_S", 0.2)
    http, ledger = tallyd.client(), Ledger(site)
    for name in "ab":
        assert ledger.send(http, name) == 202
    assert not any(ledger.audit(tallyd).values())
    return ledger, http


def view(ledger, page, user=None):
    return {"site": ledger.site, "page": page, "user": user or f"user of {page}"}


def test_an_audit_finds_what_is_lost(tallyd, sent):
    ledger, _ = sent
    ledger.counted.append("/c/0")
    found = ledger.audit(tallyd)
    assert found["lost"] == ["/c/0"] and not found["doubled"] and not found["phantom"]


def test_an_audit_finds_what_is_doubled(tallyd, sent):
    ledger, http = sent
    http.accept([view(ledger, "/a/3")])
    found = ledger.audit(tallyd)
    assert found["doubled"] == ["/a/3"] and not found["lost"] and not found["half"] and not found["phantom"]


@pytest.mark.parametrize("keyed", [False, True])
def test_an_audit_finds_requests_that_are_counted_in_part(tallyd, sent, keyed):
    ledger, http = sent
    pages = [f"/c/{i}" for i in range(EVENTS)]
    if keyed:
        ledger.open_keyed["c"] = pages
    else:
        ledger.unknown += pages
    assert not any(ledger.audit(tallyd).values()), "it is not counted at all"
    http.accept([view(ledger, page) for page in pages[:3]])
    assert ledger.audit(tallyd)["half"] == ["/c/0"]
    http.accept([view(ledger, page) for page in pages[3:]])
    assert not any(ledger.audit(tallyd).values()), "it is counted whole"


def test_an_audit_finds_events_that_lack_a_part(tallyd, sent):
    """A page view without its user, who is not active, begins no visit and has not seen the page."""
    ledger, http = sent
    http.accept([{"site": ledger.site, "page": "/c/0"}])
    ledger.counted.append("/c/0")
    found = ledger.audit(tallyd)
    assert found["forgotten"] == ["/c/0"] and len(found["half"]) == 2 and not found["lost"], found


def test_an_audit_finds_what_nobody_sent(tallyd, sent):
    ledger, http = sent
    ledger.refused.append("/c/0")
    http.accept([view(ledger, "/c/0")])
    assert ledger.audit(tallyd)["phantom"] == ["/c/0"]
    http.accept([view(ledger, "/d/0")])
    assert len(ledger.audit(tallyd)["phantom"]) == 5, "beside it views, pages, visits and users"


def campaign(file, **settings):
    ours = {name: value for name, value in os.environ.items() if name != "TALLYD_SEED"}
    env = {**ours, "TALLYD_FAULTS": str(file), "TALLYD_FAILOVERS": "0", "TALLYD_ROUNDS": "0", **settings}
    return subprocess.Popen([sys.executable, "-B", "tests/integration/campaign.py"], cwd=ROOT, env=env, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def test_a_campaign_that_is_stopped_goes_on(tmp_path):
    """SIGTERM in a piece: what was killed is audited and in the table; the next run kills the rest."""
    file = tmp_path / "faults.json"
    with campaign(file, TALLYD_KILLS="100000", TALLYD_SEED="7") as first:
        wait_until(lambda: "from 0 of" in first.stdout.readline(), "a piece began")
        first.send_signal(signal.SIGTERM)
        out = first.communicate(timeout=60)[0]
    assert first.returncode == 0 and "SIGTERM" in out and "| SIGKILLs of" in out, out
    before = Progress(file)
    assert before.seed == 7 and sum(sums["pieces"] for sums in before.tasks.values()) == 1
    with campaign(file, TALLYD_KILLS="100000") as second:
        wait_until(lambda: "rounds," in second.stdout.readline(), "a piece is done", deadline_s=120)
        second.send_signal(signal.SIGINT)
        out = second.communicate(timeout=120)[0]
    assert second.returncode == 0, out
    after = Progress(file)
    assert after.seed == 7 and sum(sums["pieces"] for sums in after.tasks.values()) in (2, 3)
    done = {task: sums["done"] for task, sums in after.tasks.items()}
    assert all(done[task] >= sums["done"] for task, sums in before.tasks.items())
    for task, n in done.items():
        assert not n or re.search(rf"\| {task} +\| +{n} of ", out), out


class Struck(io.RawIOBase):
    """The first write to it is the moment of a SIGTERM."""

    def __init__(self):
        super().__init__()
        self.struck = False

    def writable(self):
        return True

    def write(self, data):
        if not self.struck:
            self.struck = True
            signal.raise_signal(signal.SIGTERM)
        return len(data)


def test_a_campaign_may_be_stopped_while_it_prints(monkeypatch):
    """A test that reads the line of a piece stops it at once, and the campaign may still be within print()."""
    stopping = threading.Event()
    former = signal.signal(signal.SIGTERM, stop_with(stopping))
    try:
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BufferedWriter(Struck()), write_through=True))
        print("faults: its own Redis, from 0 of 10 on", flush=True)
    finally:
        signal.signal(signal.SIGTERM, former)
    assert stopping.is_set()


def test_progress_adds_up(tmp_path):
    progress = Progress(tmp_path / "faults.json", 1)
    for n, task in enumerate(("one", "two", "one")):
        report = Report(n, rounds=2, acknowledged=10, first_s=0.5 + n)
        report.kills.update({"tallyd": 3, "both": 2 * n})
        progress.add(task, report, 3 + 2 * n, 60, "abc")
    assert progress.of("one")["done"] == 10 and progress.of("one")["kills"] == {"tallyd": 6, "both": 4}
    assert not progress.is_done({"one": 10, "two": 6}) and progress.is_done({"one": 10, "two": 5})
    table = Progress(tmp_path / "faults.json").table({"one": 10, "two": 6})
    assert re.search(r"\| both +\| +4 \| +2 \| +6 \|", table) and re.search(r"\| all +\| +10 \| +5 \| +15 \|", table), table
    assert re.search(r"\| two +\| +5 of 6 \|", table), table
    assert Progress(tmp_path / "faults.json", 1).tasks and not Progress(tmp_path / "faults.json", 2).tasks


@pytest.mark.parametrize("what", [*WRONG, "slow"])
def test_what_a_piece_found_stays(tmp_path, what):
    report = Report(1)
    if what == "slow":
        report.first("killed Redis", 2.5)
    else:
        report.found[what].append("/x")
    with pytest.raises(AssertionError):
        report.check()
    progress = Progress(tmp_path / "faults.json", 1)
    progress.add("one", report, 1, 1, "abc")
    assert len(Progress(tmp_path / "faults.json").wrong()) == 1


RECORD = """# Record

## Kills

| commit | task | kills | acknowledged | unknown | refused | lost | doubled | half | phantom | forgotten | other | minutes | killed were |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
| earlier | before | 3 | 100 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 | |

## Fuzzing

| target | CPU min | runs | edges | crashes | last |
|---|---|---|---|---|---|
"""


def test_a_record_adds_up(tmp_path):
    """A row for each commit and task; what stands around the table stays."""
    file = tmp_path / "RECORD.md"
    file.write_text(RECORD, encoding="utf-8")
    for commit in ("abc", "abc", "def"):
        report = Report(1, acknowledged=10, unknown=2, refused=1)
        report.kills.update({"tallyd": 3, "primary, a replica takes over": 2, "both": 0})
        report.first("killed Redis", 2.5 if commit == "def" else 1.0)
        report.found["doubled"] += ["/x"] if commit == "def" else []
        Kills(file).add(commit, "one", report, 30)
    rows = {(row["commit"], row["task"]): row for row in Table(file, "Kills").rows}
    assert list(rows) == [("earlier", "before"), ("abc", "one"), ("def", "one")]
    both = rows["abc", "one"]
    assert both["killed were"] == "tallyd 6; primary, a replica takes over 4" and (both["kills"], both["minutes"]) == ("10", "1.0")
    assert [both[name] for name in ("acknowledged", "unknown", "refused", *WRONG, "other")] == ["20", "4", "2", *"000000"]
    assert Kills(file).killed() == 18 and Kills(file).killed({"one"}) == 15 and Kills(file).wrong() == 2
    Fuzzing(file).put("b", Target(90, 1000, 20, 0, "abc"))
    Fuzzing(file).put("a", Target(60, 1, 2, 1, "abc"))
    Fuzzing(file).put("b", Target(180, 2000, 21, 0, "def"))
    assert Fuzzing(file).read() == {"a": Target(60, 1, 2, 1, "abc"), "b": Target(180, 2000, 21, 0, "def")}
    assert file.read_text(encoding="utf-8").startswith("# Record\n\n## Kills\n\n| commit") and Kills(file).killed() == 18


def test_the_repository_has_a_record():
    """Its tables can be read, and what was tried stays in them."""
    assert Kills(FILE).killed() >= 2643 and isinstance(Fuzzing(FILE).read(), dict)


def test_kills_go_on_from_the_record(tmp_path):
    """What the table has is not done again; a piece is added to it."""
    file = tmp_path / "RECORD.md"
    file.write_text(RECORD, encoding="utf-8")
    with campaign(tmp_path / "faults.json", TALLYD_RECORD=str(file), TALLYD_KILLS="6", TALLYD_SEED="3") as first:
        out = first.communicate(timeout=120)[0]
    assert first.returncode == 0 and "3 kills are in" in out, out
    kills_now = Kills(file).killed()
    assert kills_now >= 6 and Kills(file).wrong() == 0, file.read_text(encoding="utf-8")
    with campaign(tmp_path / "faults.json", TALLYD_RECORD=str(file), TALLYD_KILLS="6") as second:
        out = second.communicate(timeout=60)[0]
    assert second.returncode == 0 and "from 0 of" not in out and Kills(file).killed() == kills_now, out
