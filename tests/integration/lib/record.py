"""What the long campaigns have tried, over all machines: the tables of tests/RECORD.md, which are committed.

A table stands below its heading, and its columns are those of the file.  A campaign reads it, adds what a piece found, and
writes it back, so it goes on wherever the repository is.
"""

import os
import pathlib
import subprocess
from dataclasses import dataclass

from .process import ROOT
from .report import WRONG, aligned

FILE = ROOT / "tests" / "RECORD.md"
SUMS = ("kills", "acknowledged", "unknown", "refused", *WRONG, "other")


@dataclass
class Target:
    """A fuzz target's sums."""

    seconds: float = 0.0  # of CPU
    runs: int = 0
    edges: int = 0        # that all inputs reach together, of the program
    crashes: int = 0
    last: str = ""        # commit


def version():
    """The commit that is tried, with a star where the tree differs from it in more than the record and the corpora."""
    def git(*args):
        return subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!tests/RECORD.md", ":!tests/fuzz/corpus")
    return (git("rev-parse", "--short=8", "HEAD") or "no commit") + ("*" if changed else "")


class Table:
    """Rows as {column: text}."""

    def __init__(self, path, heading):
        self.path, self.lines = path, path.read_text(encoding="utf-8").splitlines()
        self.begin = next(i for i in range(self.lines.index("## " + heading), len(self.lines)) if self.lines[i].startswith("|"))
        self.end = next((i for i in range(self.begin, len(self.lines)) if not self.lines[i].startswith("|")), len(self.lines))
        self.columns, _, *rows = [self._cells(line) for line in self.lines[self.begin:self.end]]
        assert all(len(row) == len(self.columns) for row in rows), f"{path}: a row of another length below {heading}"
        self.rows = [dict(zip(self.columns, row)) for row in rows]

    @staticmethod
    def _cells(line):
        return [cell.strip() for cell in line.strip().strip("|").split("|")]

    def write(self):
        table = aligned([self.columns, *([row[column] for column in self.columns] for row in self.rows)])
        new = self.path.with_suffix(".new")
        new.write_text("\n".join([*self.lines[:self.begin], table, *self.lines[self.end:]]) + "\n", encoding="utf-8")
        os.replace(new, self.path)


class Kills:
    """Kills and what was found, a row for each commit and task."""

    def __init__(self, path=FILE):
        self.path = pathlib.Path(path)

    def _rows(self):
        return Table(self.path, "Kills").rows

    def killed(self, tasks=None):
        """How many, by these tasks or by all."""
        return sum(int(row["kills"]) for row in self._rows() if tasks is None or row["task"] in tasks)

    def wrong(self):
        """How many things were not as promised, whatever the commit."""
        return sum(int(row[column]) for row in self._rows() for column in (*WRONG, "other"))

    def add(self, commit, task, report, seconds):
        table = Table(self.path, "Kills")
        row = next((r for r in table.rows if (r["commit"], r["task"]) == (commit, task)), None)
        if row is None:
            row = {**dict.fromkeys(table.columns, "0"), "commit": commit, "task": task, "killed were": ""}
            table.rows.append(row)
        found = {"kills": report.killed(), "other": len(report.faults), **{what: len(report.found[what]) for what in WRONG},
                 **{name: getattr(report, name) for name in ("acknowledged", "unknown", "refused")}}
        for column in SUMS:
            row[column] = str(int(row[column]) + found[column])
        row["minutes"] = f"{float(row['minutes']) + seconds / 60:.1f}"
        kinds = {kind: int(n) for kind, _, n in (text.strip().rpartition(" ") for text in row["killed were"].split(";") if text.strip())}
        for kind, n in report.kills.items():
            kinds[kind] = kinds.get(kind, 0) + n
        row["killed were"] = "; ".join(f"{kind} {n}" for kind, n in kinds.items() if n)
        table.write()


class Fuzzing:
    """{name: Target}, of the targets that have run."""

    def __init__(self, path=FILE):
        self.path = pathlib.Path(path)

    def read(self):
        return {row["target"]: Target(float(row["CPU min"]) * 60, int(row["runs"]), int(row["edges"]), int(row["crashes"]), row["last"])
                for row in Table(self.path, "Fuzzing").rows}

    def put(self, name, target):
        table = Table(self.path, "Fuzzing")
        row = {"target": name, "CPU min": f"{target.seconds / 60:.2f}", "runs": str(target.runs), "edges": str(target.edges),
               "crashes": str(target.crashes), "last": target.last}
        table.rows = sorted([*(r for r in table.rows if r["target"] != name), row], key=lambda r: r["target"])
        table.write()
