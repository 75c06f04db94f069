"""What is tried by chance, or case by case, by the hundred: some of it in `make test`, all of it in `make test-all`."""

import os
import random

ALL = os.environ.get("TALLYD_ALL") == "1"


def few(n):
    """How often a thing is tried whose every try is another one."""
    return n if ALL else (n + 2) // 3


def leave_out(items, seed):
    """Of each test that is marked some(n) keep n cases, by chance.  Returns what is kept, and what is left out."""
    cases = {}
    for item in items:
        mark = item.get_closest_marker("some")
        if mark is not None and not ALL:
            cases.setdefault((item.path, item.originalname, mark.args[0]), []).append(item)
    out = set()
    for (path, name, n), of_test in cases.items():
        chance = random.Random(f"{seed} {path.name} {name}")
        out.update(chance.sample(of_test, max(len(of_test) - n, 0)))
    return [item for item in items if item not in out], [item for item in items if item in out]
