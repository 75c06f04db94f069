"""What the documents say is so: commands run, answers have the members shown, tables are the program's, links lead somewhere."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import document
from lib.clock import FakeClock
from lib.process import ROOT, Redis, Tallyd, binary, environment, run, short_directory
from lib.waiting import wait_until

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
NOW = "2026-11-20 15:03:30"  # when the README's examples take place


def files(*skipped):
    """What is ours, without looking into what was built: `make test-deb` has a root there, whose /proc is never the same twice."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = set(folders) - {"build", "node_modules", "data", ".git", *skipped}
        yield from (pathlib.Path(folder, name) for name in names)


def pages():
    return sorted(p for p in files() if p.suffix == ".md" and not any(part.startswith(".") for part in p.relative_to(ROOT).parts))


def page_id(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    """[(language, text)] of a page's fenced blocks."""
    return FENCE.findall(path.read_text(encoding="utf-8"))


def documents(text):
    """The JSON documents that follow each other in a text, with or without white space between them."""
    found, at = [], 0
    while (start := re.compile(r"\s*").match(text, at).end()) < len(text):
        value, at = json.JSONDecoder().raw_decode(text, start)
        found.append(value)
    return found


def shape(value):
    """The members and types of a JSON value; of a list those of its first item."""
    if isinstance(value, dict):
        return {name: shape(v) for name, v in value.items()}
    if isinstance(value, list):
        return [shape(v) for v in value[:1]]
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


# The README's commands


SHELL = [text for language, text in blocks(ROOT / "README.md") if language == "sh"]


def commands_of(text):
    """A block without what is not run here: make (see below) and git clone."""
    return "\n".join(line for line in text.splitlines() if not re.match(r"(make|git clone|cd|sudo|apt|systemctl)\b", line))


@pytest.fixture(scope="module")
def reader():
    """Somebody who follows the README: a directory with build/tallyd in it and a log, and a server with the README's
    configuration on the README's day.  The port is the test's own: a curl and a tallyd in front of the real ones put it in place of 8080."""
    directory = short_directory()
    redis = Redis(clock=FakeClock(directory, NOW)).start()
    config = directory / "tallyd.conf"
    config.write_text("".join(text for language, text in blocks(ROOT / "README.md") if language == "ini"))
    tallyd = Tallyd("--config", config, redis=redis)
    try:
        tallyd.start()
        (directory / "bin").mkdir()
        (directory / "build").mkdir()
        wrapper(directory / "bin/curl", f'''for a; do
    case "$a" in localhost:8080*) a="127.0.0.1:{tallyd.port}${{a#localhost:8080}}" ;; esac
    set -- "$@" "$a"; shift
done
exec {shutil.which("curl")} -sS --fail-with-body --max-time 20 "$@"''')
        wrapper(directory / "build/tallyd", f'''case "$1" in
    import|query) command=$1; shift; exec {binary()} "$command" --url {tallyd.url} "$@" ;;
    *) exec {binary()} "$@" ;;
esac''')
        (directory / "tests").symlink_to(ROOT / "tests")
        yield directory
    finally:
        tallyd.stop()
        redis.stop()
        shutil.rmtree(directory, ignore_errors=True)


def wrapper(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def follow(reader, text):
    env = environment({"PATH": f"{reader}/bin:{os.environ['PATH']}"})
    return subprocess.run(["sh", "-e", "-u", "-c", text], cwd=reader, env=env, capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
@pytest.mark.parametrize("text", [t for t in SHELL if commands_of(t).strip()], ids=lambda t: commands_of(t)[:50])
def test_commands_run_and_answers_are_as_shown(reader, text):
    done = follow(reader, commands_of(text))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.match(r"\s*```(json|text)\n(.*?)^```$", page[page.index(text) + len(text) + len("```"):], re.M | re.S)
    if shown and shown[1] == "json":
        assert [shape(d) for d in documents(done.stdout)] == [shape(d) for d in documents(shown[2])]
    elif shown:
        assert done.stdout.endswith(shown[2])


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
def test_what_the_example_imports_its_question_finds(reader):
    """One behind the other, in whatever order the commands run elsewhere; what was imported before does not count again."""
    (imported,) = (t for t in SHELL if "import --site blog" in t)
    (asked,) = (t for t in SHELL if "/pv?site=blog" in t)
    assert follow(reader, commands_of(imported)).returncode == 0
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    expected = re.search(r"```json\n(.*?)^```$", page[page.index(asked):], re.M | re.S)[1]
    assert documents(follow(reader, commands_of(asked)).stdout) == documents(expected)


def test_a_wrong_command_would_be_found(reader):
    assert follow(reader, "curl 'localhost:8080/uv?form=now-1d'").returncode != 0
    assert follow(reader, "build/tallyd config --no-such-option").returncode != 0
    assert shape({"a": 1, "b": [{"c": None}]}) != shape({"a": 1, "b": [{"d": None}]})


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_make_targets_exist(path):
    text = path.read_text(encoding="utf-8")
    lines = [line for language, block in FENCE.findall(text) if language == "sh" for line in block.splitlines()]
    named = {m[1] for line in lines if (m := re.match(r"(?:sudo )?make ([a-z][a-z-]*)\b", line))}
    named |= set(re.findall(r"`make ([a-z][a-z-]*)[^`]*`", text))
    targets = {t for rule in re.findall(r"^([a-z][a-z -]*):(?!=)", MAKEFILE, re.M) for t in rule.split()}
    assert named <= targets


# Tables


def test_tables_are_the_programs(tallyd):
    http = tallyd.client()
    labelled = "tallyd_http_requests_total{"  # there once a request has ended
    wait_until(lambda: labelled in http.get("/metrics").body.decode(), "a request is told of")
    exposition = http.get("/metrics").body.decode()
    for marker, table in document.tables(run("--help").stdout, exposition).items():
        text = document.PAGES[marker].read_text(encoding="utf-8")
        start, end = document.between(marker, text)
        assert text[start:end] == table, f"{page_id(document.PAGES[marker])} is old: make docs"


def test_metrics_that_are_named_exist(tallyd):
    """Every tallyd_.. in a document, an alarm's for example, is one that the server has."""
    known = set(re.findall(r"^# TYPE (\S+) ", tallyd.client().get("/metrics").body.decode(), re.M))
    for path in (ROOT / name for name in ("README.md", "deploy/README.md", "deploy/METRICS.md")):
        for name in re.findall(r"\btallyd_[a-z_]+[a-z]\b(?!\()", path.read_text(encoding="utf-8")):
            assert name in known or re.sub("_(bucket|sum|count)$", "", name) in known, f"{page_id(path)}: {name}"


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_options_that_are_named_exist(path):
    """`--name` in the text, as tallyd's option: of serve or of import."""
    known = set(re.findall(r"^ +--([a-z-]+)", run("--help").stdout + run("import", "--help").stdout, re.M))
    known |= {"help", "version", "explain"}
    for command in re.findall(r"\btallyd (?:serve|config|import)\b[^`\n]*", path.read_text(encoding="utf-8")):
        for name in re.findall(r"\s--([a-z][a-z-]*)", command):
            assert name in known, f"{page_id(path)}: --{name} in: {command}"


def test_the_503s_are_the_programs():
    """deploy/README.md explains the texts that the source has, and every one of storage's that is a 503."""
    page = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    table = page[page.index("| `detail` | what to do |"):].partition("\n\n")[0]
    explained = [row.split("|")[1].split(", or ")[0].strip() for row in table.splitlines()[2:]]
    code = "".join(p.read_text() for p in SOURCES)
    assert not [text for text in explained if f'"{text}"' not in code]
    storage = re.findall(r'X\((STORAGE_\w+), "([^"]+)"\)', (ROOT / "storage/job/error.h").read_text())
    problems = (ROOT / "handlers/reply/problem.c").read_text()
    cases = re.search(r"switch \(err\) {(.*?)return PROBLEM_UNAVAILABLE", problems, re.S)[1]
    assert not [t for name, t in storage if f"case {name}:" in cases and t not in explained and name != "STORAGE_NOMEM"]


def test_every_command_is_in_the_manual():
    said = run("--help").stdout.partition("Options")[0]
    commands = set(re.findall(r"^  tallyd ([a-z]+)", said, re.M))
    assert {"serve", "import", "query"} < commands
    manual = (ROOT / "debian/tallyd.1").read_text(encoding="utf-8").replace("\\", "")
    assert commands == set(re.findall(r"^\.B tallyd ([a-z]+)", manual, re.M))


def test_every_endpoint_is_in_the_readme():
    """The table of endpoints is openapi.yaml's paths and methods, each once."""
    rows = re.findall(r"^\| `([A-Z, ]+) (/\S*)` \|", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)
    described = re.search(r"^paths:\n(.*?)^\w", (ROOT / "openapi.yaml").read_text(encoding="utf-8"), re.M | re.S)[1]
    paths = [(path, method.upper()) for path, block in re.findall(r"^  (/\S*):\n((?:(?:    .*)?\n)+)", described, re.M)
             for method in re.findall(r"^    (get|put|post|delete):$", block, re.M)]
    assert len(paths) > 40
    assert sorted((path, method) for methods, path in rows for method in methods.split(", ")) == sorted(paths)


# Names and links


def anchors(path):
    """As GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", head.strip().lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_links_lead_somewhere(path):
    for target in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{page_id(path)}: {target}"
        assert there.is_relative_to(ROOT), f"{page_id(path)}: {target} leaves the project"
        assert not anchor or anchor in anchors(there), f"{page_id(path)}: {target}"


SOURCES = sorted(p for d in ("storage", "handlers", "service") for p in (ROOT / d).rglob("*.[ch]"))


def file_is_there(name):
    if "/" in name:
        return (ROOT / name).exists()
    by_name = any(p.name == name for d in ("storage", "handlers", "service", "tests") for p in (ROOT / d).rglob(name))
    return by_name or (ROOT / name).exists() or any(re.search(rf"#include <(\w+/)?{re.escape(name)}>", p.read_text()) for p in SOURCES)


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_files_that_are_named_exist(path):
    """In backticks any file, also as `{one,two}.c`; of our own kinds without them too."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    named = set(re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:c|h|lua|sh|py|md|yaml|yml|conf|service|supp|pml|txt))`", text))
    named |= set(re.findall(r"(?<![\w./*{-])((?:\w[\w-]*/)*\w[\w-]*\.(?:c|h|lua|py|sh|pml|supp))\b(?![./*])", text))
    named |= set(re.findall(r"`((?:storage|handlers|service|tests|deploy)/[\w./-]*)`", text))
    assert not sorted(n for n in named if not (file_is_there(n) or (path.parent / n).exists()))


FOLDERS = [p for p in pages() if page_id(p).split("/")[0] in ("storage", "handlers", "service")]


@pytest.mark.parametrize("path", [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *FOLDERS], ids=page_id)
def test_functions_that_are_named_exist(path):
    code = "".join(p.read_text() for p in SOURCES)
    names = re.findall(r"`(\w+)\(\)`", path.read_text(encoding="utf-8"))
    assert not [f for f in names if not re.search(rf"\b{f}\(", code)]


def test_architecture_is_a_map():
    """Short enough to be read at once; what it does not hold itself, it leads to."""
    path = ROOT / "ARCHITECTURE.md"
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= 150 and not [line for line in lines if len(line) > 120]
    linked = {(path.parent / target.partition("#")[0]).resolve() for target in LINK.findall(text)}
    assert not [page_id(p) for p in FOLDERS if p not in linked]


def test_the_lock_order_is_whole():
    """ARCHITECTURE.md names every mutex of the tree, as `struct.member`, and no other."""
    there = set()
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for lock in re.finditer(r"\bpthread_(?:mutex|rwlock|spinlock)_t (\w+);", text):
            there.add(f"{re.findall(r'struct (?P<name>[a-z_]+) {', text[:lock.start()])[-1]}.{lock[1]}")
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    order = text[text.index("Lock order:"):text.index("## Glossary")]
    assert len(there) > 10 and set(re.findall(r"`(\w+\.\w+)`", order)) == there


def test_every_source_file_has_a_place():
    """Every .h begins with its name and a sentence that says what it is for."""
    bad = [page_id(p) for p in SOURCES if p.suffix == ".h" and not p.read_text().startswith(f"/* {p.name} - ")]
    assert not bad


def test_what_sighup_reads_again_is_what_the_table_says():
    """The options that deploy/README.md names are those marked `live` in option_table.c, and no others."""
    table = (ROOT / "service/options/option_table.c").read_text(encoding="utf-8")
    entries = re.findall(r'^    \{"([a-z-]+)", OPTION_(.*?)\},$', table, re.M | re.S)
    live = {name for name, rest in entries if ".live = true" in rest}
    text = (ROOT / "deploy/README.md").read_text(encoding="utf-8")
    named = re.search(r"In effect at once: (.*?)\. All others", text, re.S).group(1)
    assert len(entries) > 30 and set(re.findall(r"`([a-z-]+)`", named)) == live


def code_beside(path):
    """The text of a source without what a comment's lines begin with."""
    return re.sub(r"\n\s*(\*|--|#) ?", " ", path.read_text(encoding="utf-8", errors="replace"))


def headings(path):
    return set(re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M))


def test_pages_that_sources_name_exist():
    """A source that says where its algorithm is explained, `dir/README.md, "Section"` seen from the top, is right."""
    bad, found = [], 0
    for path in [*SOURCES, *sorted((ROOT / "tests").rglob("*.[ch]")), *sorted((ROOT / "storage/lua").glob("*.lua"))]:
        text = code_beside(path)
        sections = re.findall(r'((?:[\w-]+/)*[A-Z]+(?:\.md)?),\s+"([^"]+)"', text)
        for page, name in [(p, n) for p, n in sections if p.endswith(".md") or p == "ARCHITECTURE"]:
            found += 1
            there = ROOT / f"{page.removesuffix('.md')}.md"
            if not there.exists() or name not in headings(there):
                bad.append((page_id(path), page, name))
        bad += [(page_id(path), name) for name in re.findall(r"(?:[\w-]+/)+[A-Z]+\.md", text) if not (ROOT / name).exists()]
        bad += [(page_id(path), name) for name in re.findall(r"tests/[\w./-]*\w", text) if not (ROOT / name).exists()]
        bad += [(page_id(path), word) for word in ("PROTOCOL,", "CONTRACT:", "DESIGN,") if word in text]
    assert found > 5 and not bad


# What merges leave behind


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_nothing_is_said_twice(path):
    """Two branches that changed the same lines may both have left theirs."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if len(line) > 40 and not re.fullmatch(r"[|: -]+", line)]
    assert not {line for line in lines if lines.count(line) > 1}
    heads = re.findall(r"^#+ .+$", text, re.M)
    assert not {head for head in heads if heads.count(head) > 1}
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        rows = [row.rpartition(" | ")[0] if row.count("|") == 3 else row for row in table.splitlines()[2:]]
        assert not {row for row in rows if rows.count(row) > 1}, "the same thing twice in a table"
    assert not re.search(r"^(<<<<<<<|=======|>>>>>>>)", text, re.M)


@pytest.mark.parametrize("path", pages(), ids=page_id)
def test_headings_stand_alone(path):
    lines = re.sub(r"(?s)```.*?```", "", path.read_text(encoding="utf-8")).splitlines()
    for before, head, behind in zip(["", *lines], lines, [*lines[1:], ""]):
        assert not re.match("#+ ", head) or not before.strip() and not behind.strip(), head


# Lists that must be whole


def test_every_test_is_in_the_tests_page():
    rows = re.findall(r"^\| (test_\w+\.py) \|", (ROOT / "tests/README.md").read_text(encoding="utf-8"), re.M)
    there = [p.name for d in ("integration", "contract") for p in (ROOT / "tests" / d).glob("test_*.py")]
    assert sorted(rows) == sorted(there)


def test_settings_of_the_benchmark():
    page = (ROOT / "tests/bench/README.md").read_text(encoding="utf-8")
    sections = re.search(r"^SECTIONS = {\n(.*?)^}", (ROOT / "tests/bench/bench.py").read_text(encoding="utf-8"), re.M | re.S)[1]
    listed = re.search(r"some of: ([\w, ]+) \|", page)[1].split(", ")
    assert listed == re.findall(r'^    "(\w+)":', sections, re.M)
    variables = set(re.findall(r'"(BENCH_\w+)"', (ROOT / "tests/bench/benchlib/settings.py").read_text(encoding="utf-8")))
    assert variables - {"BENCH_BUILD"} == set(re.findall(r"BENCH_[A-Z_]+", page))


def test_nothing_is_of_somebodys_machine():
    """No path of a home or a working directory, no name of a local network."""
    kinds = {".c", ".h", ".lua", ".py", ".sh", ".md", ".yaml", ".yml", ".conf", ".service", ".json", ".html", ".js", ".css", ".pml", ".txt", ""}
    ours = [p for p in files("corpus", "__pycache__") if p.is_file() and p.suffix in kinds]
    assert len(ours) > 300
    pattern = re.compile(r"(?<![\w.])/(?:work|home/\w+|Users/\w+|mnt|opt/\w+)/|\b[\w-]+\.(?:internal|corp|lan)\b")
    assert not [(page_id(p), m[0]) for p in ours if (m := pattern.search(p.read_text(encoding="utf-8", errors="replace")))]
