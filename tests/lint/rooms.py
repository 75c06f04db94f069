"""rooms.py - which folder may include which, checked from the tables that people read.

README.md of each layer has one table "| folder | may include | what it is |".  Its rows go from the lowest folder to the
highest.  A row's folder is a folder of the layer ("base/"), or files that stand in the layer itself ("storage.c, storage.h").
"may include" names folders and files of the layer, "all" (every row above), or files and folders of other layers in full
("storage/job/").  A row whose folder is "every folder" holds for all of them.

Printed, a line each: files that no row names, includes that no row allows, rows that name what is not there or what stands
below them, and circles of includes, where a .c and its .h count as one.
"""

import graphlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("storage", "handlers", "service")
ROW = re.compile(r"^\| *([^|]+?) *\| *([^|]*?) *\| *[^|]+\|$", re.M)
INCLUDE = re.compile(r'^#include "((?:storage|handlers|service)/[^"]+)"', re.M)


def read_table(layer, faults):
    """[(places, allowed)] of a layer, both as sets of paths; a folder ends with a slash."""
    text = (ROOT / layer / "README.md").read_text(encoding="utf-8")
    rows, everywhere = [], set()
    for folder, allowed in ROW.findall(text):
        if folder in ("folder", "---"):
            continue
        names = re.findall(r"[\w./]+", allowed.replace("`", "")) if allowed != "-" else []
        above = {place for places, _ in rows for place in places}
        may = set()
        for name in names:
            if name == "all":
                may |= above
            elif (full := name if name.split("/")[0] in LAYERS else f"{layer}/{name}") and (ROOT / full).exists():
                if full.startswith(f"{layer}/") and full not in above:
                    faults.append(f"{layer}/README.md: {folder} may not include {name}: it has no row above")
                may.add(full)
            else:
                faults.append(f"{layer}/README.md: {folder}: there is no {name}")
        if folder == "every folder":
            everywhere = may
            continue
        places = {f"{layer}/{name}" for name in re.findall(r"[\w./]+", folder.replace("`", ""))}
        faults += [f"{layer}/README.md: there is no {place}" for place in places if not (ROOT / place).exists()]
        rows.append((places, may | everywhere))
    return rows


def place_of(path, places):
    """The folder of a row, or the file itself, that @path belongs to; None: no row names it."""
    return next((p for p in places if path == p or p.endswith("/") and path.startswith(p)), None)


def modules(layer):
    return sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / layer).rglob("*.[ch]") if p.name != "yaml_to_json.c")


def check_includes(layer, faults):
    rows = read_table(layer, faults)
    for path in modules(layer):
        row = next(((places, may) for places, may in rows if place_of(path, places)), None)
        if row is None:
            faults.append(f"{path}: no row of {layer}/README.md names it")
            continue
        places, may = row
        for target in INCLUDE.findall((ROOT / path).read_text(encoding="utf-8")):
            if not (place_of(target, places) or place_of(target, may)):
                faults.append(f"{path} includes {target}, which {layer}/README.md does not allow")


def check_circles(layer, faults):
    graph = {}
    for path in modules(layer):
        module = path[:-2]
        found = {t[:-2] for t in INCLUDE.findall((ROOT / path).read_text(encoding="utf-8"))}
        graph.setdefault(module, set()).update(found - {module})
    while True:  # one circle at a time, until none is left
        try:
            graphlib.TopologicalSorter(graph).prepare()
            return
        except graphlib.CycleError as circle:
            path = list(reversed(circle.args[1]))
            faults.append("a circle: " + " -> ".join(path))
            graph[path[0]].discard(path[1])


def main():
    faults = []
    for layer in LAYERS:
        check_includes(layer, faults)
        check_circles(layer, faults)
    print("\n".join(faults), end="\n" if faults else "")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
