"""What a piece of a fault campaign found, and what all pieces of it found so far: sums in a file, so that a campaign may be
stopped and goes on later, and a table."""

import collections
import json
import os
import time
from dataclasses import dataclass, field

FIRST_S = 2.0  # the first 202 after a fault ended
WRONG = ("lost", "doubled", "half", "phantom", "forgotten")  # what Ledger.audit() looks for
EXAMPLES = 20  # of what was wrong, kept in the file


@dataclass
class Report:
    seed: object
    rounds: int = 0
    positions: int = 0
    kills: collections.Counter = field(default_factory=collections.Counter)  # SIGKILLs by what was killed
    acknowledged: int = 0
    unknown: int = 0
    refused: int = 0
    first_s: float = 0.0     # longest until the first 202
    slowest_s: float = 0.0   # longest answer
    found: dict = field(default_factory=lambda: {what: [] for what in WRONG})
    faults: list = field(default_factory=list)  # what else was not as promised

    def killed(self):
        return sum(self.kills.values())

    def add(self, ledger, tallyd):
        self.acknowledged += len(ledger.counted)
        self.unknown += len(ledger.unknown)
        self.refused += len(ledger.refused)
        self.slowest_s = max(self.slowest_s, ledger.slowest_s)
        for what, pages in ledger.audit(tallyd).items():
            self.found[what] += pages

    def first(self, what, took_s):
        self.first_s = max(self.first_s, took_s)
        if took_s > FIRST_S:
            self.faults.append(f"{what}: {took_s:.2f} s until the first 202")

    def line(self):
        wrong = ", ".join(f"{len(self.found[what])} {what}" for what in WRONG)
        return (f"faults: seed {self.seed}, {self.rounds} rounds, {self.killed()} kills, {self.positions} positions; events: "
                f"{self.acknowledged} acknowledged, {self.unknown} unknown, {self.refused} refused; {wrong}; "
                f"first 202 after {self.first_s:.2f} s at most, slowest answer {self.slowest_s:.2f} s")

    def check(self):
        """All that was promised was kept."""
        assert not any(self.found.values()), {k: v[:5] for k, v in self.found.items()}
        assert not self.faults, self.faults


@dataclass
class Faults:
    """What a sweep found that was not as promised, and its slowest answer."""

    slowest_s: float = 0.0
    faults: list = field(default_factory=list)

    def check(self):
        assert not self.faults, "\n".join(self.faults[:20])


def blank():
    return {"done": 0, "pieces": 0, "rounds": 0, "positions": 0, "acknowledged": 0, "unknown": 0, "refused": 0, "first_s": 0.0,
            "slowest_s": 0.0, "seconds": 0.0, "kills": {}, "found": {what: 0 for what in WRONG}, "faults": 0, "wrong": []}


class Progress:
    """The sums of a campaign by task, in a JSON file.

    The file is written anew behind each piece, so what is stopped in the middle of a piece loses that piece alone.
    """

    def __init__(self, path, seed=None):
        """Goes on with the campaign of the file; with a seed that is another one's, or where there is none, a new one begins."""
        self.path, self.seed, self.tasks, self.versions = path, seed, {}, []
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            if seed in (None, kept["seed"]):
                self.seed, self.tasks, self.versions = kept["seed"], kept["tasks"], kept["versions"]
        if self.seed is None:
            self.seed = time.time_ns() % 1_000_000

    def of(self, task):
        return self.tasks.setdefault(task, blank())

    def add(self, task, report, done, seconds, version):
        """One piece: so many of the task's units."""
        sums = self.of(task)
        sums["pieces"] += 1
        sums["done"] += done
        sums["seconds"] += seconds
        for name in ("rounds", "positions", "acknowledged", "unknown", "refused"):
            sums[name] += getattr(report, name)
        for name in ("first_s", "slowest_s"):
            sums[name] = max(sums[name], getattr(report, name))
        for what, n in report.kills.items():
            sums["kills"][what] = sums["kills"].get(what, 0) + n
        for what, pages in report.found.items():
            sums["found"][what] += len(pages)
        sums["faults"] += len(report.faults)
        wrong = [f"{what}: {page}" for what, pages in report.found.items() for page in pages] + report.faults
        sums["wrong"] += [f"seed {report.seed}: {w}" for w in wrong][:EXAMPLES]
        if version not in self.versions:
            self.versions.append(version)
        self._write()

    def _write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"seed": self.seed, "versions": self.versions, "tasks": self.tasks}, indent=1) + "\n", encoding="utf-8")
        os.replace(new, self.path)

    def is_done(self, goals):
        return all(self.of(task)["done"] >= goal for task, goal in goals.items())

    def wrong(self):
        return [f"{task}: {text}" for task, sums in self.tasks.items() for text in sums["wrong"]]

    def table(self, goals):
        """Text: kills by kind and by task, then what was found."""
        tasks = [task for task, sums in self.tasks.items() if sums["pieces"]]
        kinds = list(dict.fromkeys(kind for task in tasks for kind in self.tasks[task]["kills"]))
        rows = [["SIGKILLs of", *tasks, "all"]]
        for kind in kinds:
            kills = [self.tasks[task]["kills"].get(kind, 0) for task in tasks]
            rows.append([kind, *kills, sum(kills)])
        sums = [sum(self.tasks[task]["kills"].values()) for task in tasks]
        rows.append(["all", *sums, sum(sums)])
        names = ("acknowledged", "unknown", "refused")
        found = [["task", "done of", "pieces", "rounds", "minutes", *names, *WRONG, "other", "first 202", "slowest"]]
        for task in tasks:
            s = self.tasks[task]
            found.append([task, f"{s['done']} of {goals.get(task, s['done'])}", s["pieces"], s["rounds"], f"{s['seconds'] / 60:.1f}",
                          *(s[n] for n in names), *(s["found"][w] for w in WRONG), s["faults"], f"{s['first_s']:.2f} s",
                          f"{s['slowest_s']:.2f} s"])
        return f"seed {self.seed}, versions {', '.join(self.versions)}\n\n{aligned(rows)}\n\n{aligned(found)}"


def aligned(rows):
    """A table of Markdown whose columns stand below each other."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    lines = ["| " + " | ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
