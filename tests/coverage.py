"""What the tests take of our own code, by folder; `make coverage`.

    tests/coverage.py SUMMARY.json      gcovr's --json-summary

gcov counts a branch for each way out of a condition, also the one where memory or a system call fails: there is no telling
them from others, so they are part of the total, and tests/oom/ takes those on the way of requests.  Marked with a star: folders
below GOAL % of branches.  Behind the table the files that lack most.
"""

import collections
import json
import pathlib
import sys

GOAL = 90
WORST = 25


def share(covered, total):
    return f"{100 * covered / total:5.1f}" if total else "  -  "


def main():
    files = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))["files"]
    assert len(files) > 200, f"only {len(files)} files"
    folders = collections.defaultdict(lambda: [0, 0, 0, 0])
    for file in files:
        counts = [file[name] for name in ("line_covered", "line_total", "branch_covered", "branch_total")]
        path = pathlib.PurePath(file["filename"])
        for folder in {str(path.parent), path.parts[0] + " in all", "all"}:
            folders[folder] = [a + b for a, b in zip(folders[folder], counts)]
    print(f"{'folder':26}  lines %    of   branches %    of")
    for folder in sorted(folders, key=lambda f: (f == "all", f)):
        lines, n_lines, branches, n_branches = folders[folder]
        low = "*" if n_branches and branches < n_branches * GOAL / 100 else ""
        print(f"{folder:26} {share(lines, n_lines):>8} {n_lines:6} {share(branches, n_branches):>10} {n_branches:7} {low}")
    print(f"\n{'branches that no test takes':40}  branches %   lines %")
    for file in sorted(files, key=lambda f: f["branch_covered"] - f["branch_total"])[:WORST]:
        print(f"{file['branch_total'] - file['branch_covered']:5}  {file['filename']:44} {share(file['branch_covered'], file['branch_total'])} "
              f"{share(file['line_covered'], file['line_total']):>9}")


if __name__ == "__main__":
    main()
