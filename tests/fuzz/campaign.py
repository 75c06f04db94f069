"""`make fuzz`: all fuzz targets in pieces, which go on where they were stopped, and a table.

    tests/fuzz/campaign.py PROGRAM ..     the targets, as built

Each target runs for FUZZ_SECONDS; with FUZZ_HOURS the one that ran least goes next, until all together had so many hours of
CPU, over all runs on all machines.  What a target finds new is kept beside it (PROGRAM.new), and is where its next piece begins;
what crashes it is PROGRAM.crash-*.  The sums are in tests/RECORD.md (FUZZ_RECORD: another file).
"""

import os
import pathlib
import re
import resource
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from lib.record import FILE, Fuzzing, Target, version  # noqa: E402  # pylint: disable=wrong-import-position

CORPUS = pathlib.Path("tests/fuzz/corpus")


class Campaign:
    def __init__(self, programs):
        self.programs = {pathlib.Path(p).name: pathlib.Path(p) for p in programs}
        self.record = Fuzzing(os.environ.get("FUZZ_RECORD") or FILE)
        kept = self.record.read()
        self.targets = {name: kept.get(name, Target()) for name in self.programs}
        self.stopping = False

    def hours(self):
        return sum(t.seconds for t in self.targets.values()) / 3600

    def piece(self, name, seconds):
        """One run of libFuzzer.  A SIGINT or SIGTERM ends it, and what it did counts."""
        program, target = self.programs[name], self.targets[name]
        new, log = program.with_name(name + ".new"), program.with_name(name + ".log")
        new.mkdir(exist_ok=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(log, "wb") as out:
            child = subprocess.Popen([program, f"-max_total_time={seconds}", f"-artifact_prefix={program}.", "-print_final_stats=1", new, CORPUS / name],
                                     stdout=out, stderr=subprocess.STDOUT, process_group=0)
            while True:
                try:
                    status = child.wait(0.5)
                    break
                except subprocess.TimeoutExpired:
                    if self.stopping:
                        child.send_signal(signal.SIGINT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = log.read_text(errors="replace")
        target.seconds += after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        target.runs += int((re.findall(r"stat::number_of_executed_units: (\d+)", text) or [0])[-1])
        target.edges = max(map(int, re.findall(r"\bcov: (\d+)", text)), default=target.edges)
        target.last = version()
        crashed = status != 0 and not self.stopping
        target.crashes += crashed
        self.record.put(name, target)
        if crashed:
            print("\n".join(text.splitlines()[-40:]), file=sys.stderr)
        return not crashed

    def table(self):
        rows = [f"{'target':14} {'CPU min':>8} {'runs':>12} {'edges':>6} {'inputs':>7} {'new':>5} {'crashes':>8}"]
        for name, t in self.targets.items():
            new = self.programs[name].with_name(name + ".new")
            n_new = len(list(new.iterdir())) if new.is_dir() else 0
            rows.append(f"{name:14} {t.seconds / 60:8.1f} {t.runs:12} {t.edges:6} {len(list((CORPUS / name).iterdir())):7} {n_new:5} {t.crashes:8}")
        every = self.targets.values()
        rows.append(f"{'all':14} {sum(t.seconds for t in every) / 60:8.1f} {sum(t.runs for t in every):12} {'':6} {'':7} {'':5} {sum(t.crashes for t in every):8}")
        return "\n".join(rows)


def main():
    campaign = Campaign(sys.argv[1:])
    seconds, hours = int(os.environ.get("FUZZ_SECONDS") or 60), float(os.environ.get("FUZZ_HOURS") or 0)

    def stop(*_):
        campaign.stopping = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    fine, once = True, list(campaign.targets)
    while fine and not campaign.stopping and (campaign.hours() < hours if hours else once):
        name = min(campaign.targets, key=lambda n: campaign.targets[n].seconds) if hours else once.pop(0)
        print(name, flush=True)
        fine = campaign.piece(name, seconds)
    print(f"\n{campaign.table()}")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
