"""The tables in deploy/OPTIONS.md and deploy/METRICS.md, which come from the program.

`make docs` writes them between their markers; test_docs.py compares.  Usage: document.py
"""

import pathlib
import re
import sys

INTEGRATION = pathlib.Path(__file__).resolve().parent.parent / "integration"
if str(INTEGRATION) not in sys.path:
    sys.path.insert(0, str(INTEGRATION))

from lib.process import ROOT, Redis, Tallyd, run  # noqa: E402 (the path comes first)

PAGES = {"options": ROOT / "deploy" / "OPTIONS.md", "metrics": ROOT / "deploy" / "METRICS.md"}
OPTION = re.compile(r"^  --([a-z-]+)(\S*)(?: (\S+))?\n {8}(.+)\n {8}(?:(.+); )?default: (.+)$", re.M)


def cell(text):
    return text.replace("|", "\\|")


def options_table(help_text):
    """From the text of `tallyd --help`."""
    rows = ["| option | value | default | |", "|---|---|---|---|"]
    for name, flag, value, text, allowed, default in OPTION.findall(help_text):
        shown = f"`{cell(value)}`" if value else f"`{cell(flag)}`"
        rows.append(f"| `--{name}` | {allowed or shown} | {f'`{default}`' if default != '(empty)' else 'empty'} | {cell(text)} |")
    assert len(rows) - 2 == len(re.findall(r"^  --", help_text, re.M)), "an option's help has another form than the rest"
    return "\n".join(rows) + "\n"


def metrics_table(exposition):
    """From the text of /metrics."""
    helps = dict(re.findall(r"^# HELP (\S+) (.+)$", exposition, re.M))
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", exposition, re.M))
    rows = ["| metric | type | labels | |", "|---|---|---|---|"]
    for name in types:
        labels = []
        for text in re.findall(rf"^{name}(?:_bucket)?{{(.*?)}} ", exposition, re.M):
            labels += [label for label in re.findall(r'(\w+)="', text) if label not in labels]
        rows.append(f"| `{name}` | {types[name]} | {', '.join(sorted(labels))} | {cell(helps[name])} |")
    return "\n".join(rows) + "\n"


def tables(help_text, exposition):
    """{marker: table}"""
    return {"options": options_table(help_text), "metrics": metrics_table(exposition)}


def between(marker, text):
    """(start, end) of what stands between <!-- marker --> and <!-- end of marker -->."""
    begin, end = f"<!-- {marker}: written by `make docs` -->\n", f"<!-- end of {marker} -->"
    assert text.count(begin) == 1 and text.count(end) == 1, f"the page of the {marker} lacks its markers"
    return text.index(begin) + len(begin), text.index(end)


def main():
    redis = Redis().start()
    tallyd = Tallyd(redis=redis)
    try:
        tallyd.start()
        exposition = tallyd.client().get("/metrics").body.decode()
    finally:
        tallyd.stop()
        redis.stop()
    for marker, table in tables(run("--help").stdout, exposition).items():
        page = PAGES[marker]
        old = page.read_text(encoding="utf-8")
        start, end = between(marker, old)
        text = old[:start] + table + old[end:]
        page.write_text(text, encoding="utf-8")
        print(f"{page.relative_to(ROOT)}: {'unchanged' if text == old else 'written'}")


if __name__ == "__main__":
    main()
