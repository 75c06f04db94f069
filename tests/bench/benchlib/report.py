"""The table on the terminal, and the JSON file."""

import json

from .results import Limit

# metric, head, how it is written; a column stands where any row of the section has it
COLUMNS = (
    ("rate", "a second", lambda v: f"{v:,.0f}"),
    ("line_rate", "lines a second", lambda v: f"{v:,.0f}"),
    ("counted_rate", "counted a second", lambda v: f"{v:,.0f}"),
    ("ns", "ns an event", lambda v: f"{v:.1f}"),
    ("to_bare", "to bare", lambda v: f"{v:.2f}"),
    ("kept", "of events alone", lambda v: f"{v:.2f}"),
    ("p50_us", "p50 us", lambda v: f"{v:,.0f}"),
    ("p99_us", "p99 us", lambda v: f"{v:,.0f}"),
    ("lag_p99_us", "client late p99", lambda v: f"{v:,.0f}"),
    ("tallyd_us", "tallyd us CPU", lambda v: f"{v:.2f}"),
    ("server_us", "server us CPU", lambda v: f"{v:.2f}"),
    ("redis_us", "Redis us CPU", lambda v: f"{v:.2f}"),
    ("held_us", "Redis us in commands", lambda v: f"{v:.2f}"),
    ("append_events", "events an append", lambda v: f"{v:,.0f}"),
    ("fold_events", "events a fold", lambda v: f"{v:,.0f}"),
    ("aof_bytes", "bytes of AOF", lambda v: f"{v:.0f}"),
    ("peak_mib", "tallyd's MiB", lambda v: f"{v:.1f}"),
    ("tallyd_cores", "tallyd cores", lambda v: f"{v:.2f}"),
    ("redis_cores", "Redis cores", lambda v: f"{v:.2f}"),
    ("client_cores", "clients' cores", lambda v: f"{v:.2f}"),
    ("client_us", "client us CPU", lambda v: f"{v:.2f}"),
    ("redis_bytes", "bytes in Redis", lambda v: f"{v:.1f}"),
    ("events", "events", lambda v: f"{v:,.0f}"),
    ("others_percent", "others %", lambda v: f"{v:.0f}"),
)
HIDDEN = {"decoder": {"rate"}, "robots": {"rate"}, "uv": {"rate", "client_us", "events", "lag_p99_us", "held_us"},
          "ask_after_202": {"rate", "tallyd_us", "redis_us", "client_us"}, "activity": {"rate", "client_us", "events", "lag_p99_us"}}


def cell(series, metric, write):
    if metric not in series.metrics():
        return ""
    values = series.values(metric)
    middle = write(series.median(metric))
    low, high = write(min(values)), write(max(values))
    return middle if low == high else f"{middle} ({low}-{high})"


def table(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  " + "  ".join(
            text.ljust(w) if i == 0 else text.rjust(w) for i, (text, w) in enumerate(zip(row, widths))).rstrip()


def section_lines(section):
    yield ""
    yield section.title
    hidden = HIDDEN.get(section.key, set()) | (set() if section.key == "growth" else {"events"})
    if not any(v < 0.99 * rate for s in section.series if "counted_rate" in s.metrics()
               for v, rate in zip(s.values("counted_rate"), s.values("rate"))):
        hidden = hidden | {"counted_rate"}
    if not section.key.startswith("rate_"):
        hidden = hidden | {"lag_p99_us"}
    columns = [c for c in COLUMNS if c[0] not in hidden and any(c[0] in s.metrics() for s in section.series)]
    yield from [] if not section.series else table([["", *(head for _, head, _ in columns)]] + [
        [s.label, *(cell(s, metric, write) for metric, _, write in columns)] for s in section.series])
    for ratio in section.ratios:
        yield (f"  -> {ratio.label}: {ratio.median:.2f} ({min(ratio.values):.2f}-{max(ratio.values):.2f})"
               f"{'  ' + ratio.verdict() if ratio.verdict() else ''}") if ratio.values else \
            f"  -> {ratio.label}: not measurable"
    for limit in section.limits:
        yield f"  -> {limit.label}: {limit.value:.2f} {limit.unit}  {limit.verdict()}"
    for note in section.notes:
        yield f"  -> {note}"


def head_lines(machine, settings):
    yield (f"tallyd {machine['commit']}{' + changes' if machine['tree_changed'] else ''}, {machine['date']}: "
           f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_mib'] // 1024} GiB, Linux "
           f"{machine['kernel']}, {machine['filesystem']}")
    yield ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if version)
    yield (f"{settings.runs} runs of {settings.seconds:g} s, in turn; median (least-most); load generators share the "
           "cores; CPU is us an event (uv: a question)")


def memory_section(bench):
    peak = max(bench.peak_kib.values(), default=0) / 1024
    return peak, Limit("tallyd's peak resident memory over all sections", peak, 32, "MiB")


def report(bench, machine, problems):
    settings = bench.settings
    lines = list(head_lines(machine, settings))
    for section in bench.sections:
        lines += section_lines(section)
    peak, limit = memory_section(bench)
    if bench.peak_kib:
        lines += ["", "memory", f"  -> {limit.label}: {peak:.1f} MiB  {limit.verdict()}  (" + ", ".join(
            f"{k} {v / 1024:.1f}" for k, v in bench.peak_kib.items()) + ")"]
    others = [v for s in bench.sections for x in s.series if "others_percent" in x.metrics()
              for v in x.values("others_percent")]
    if others:
        others.sort()
        lines += ["", f"others used {others[len(others) // 2]:.0f} % of the machine in the median run, at most "
                      f"{others[-1]:.0f} %" + (": not quiet, trust ratios and CPU times only" if
                                               others[len(others) // 2] > 5 else "")]
    lines += [f"PROBLEM: {p}" for p in problems]
    print("\n".join(lines))
    data = {"machine": machine,
            "settings": {"runs": settings.runs, "seconds": settings.seconds, "quick": settings.quick,
                         "threads": settings.threads},
            "sections": {s.key: s.as_json() for s in bench.sections},
            "tallyd_peak_kib": bench.peak_kib, "problems": problems}
    settings.out.parent.mkdir(parents=True, exist_ok=True)
    settings.out.write_text(json.dumps(data, indent=1) + "\n")
    print(f"\nall figures of all runs: {settings.out}")
