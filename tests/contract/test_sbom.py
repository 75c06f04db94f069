"""deploy/DEPENDENCIES.md and the SBOM name what the program is made of, as dpkg has it."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys

import pytest

from lib.process import ROOT, binary, sanitized

pytestmark = pytest.mark.skipif(shutil.which("dpkg-query") is None or shutil.which("readelf") is None or sanitized(), reason="no Debian, or a build of tests")
TABLE = re.compile(r"^\| (?:\[([^\]]+)\]\([^)]*\)|(\S+)) \| (\S+) \| ([^|]+) \| ([^|]*) \|$", re.M)


@pytest.fixture(scope="module")
def sbom():
    spec = importlib.util.spec_from_file_location("sbom", ROOT / "deploy/sbom.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["sbom"] = module
    spec.loader.exec_module(module)
    return module


def rows(text):
    """{package: (version, licence, role)}"""
    return {linked or plain: (version, licence.strip(), role.strip()) for linked, plain, version, licence, role in TABLE.findall(text)}


def test_the_table_is_current(sbom):
    """Packages, licences and what they are for; of a library that is linked also its version, which Debian keeps."""
    written = rows((ROOT / "deploy/DEPENDENCIES.md").read_text(encoding="utf-8"))
    now = rows(sbom.table(binary()))
    assert len(now) > 12 and written.keys() == now.keys(), "make docs"
    for name, (version, licence, role) in now.items():
        assert written[name][1:] == (licence, role), f"{name}: make docs"
        assert role != sbom.LINKED or written[name][0] == version, f"{name}: make docs"
        assert "see its" not in licence, f"{name}: no licence is known"


def test_packages_that_the_package_needs_are_in_the_table(sbom):
    control = (ROOT / "debian/control").read_text(encoding="utf-8")
    depends = re.search(r"^Depends: (.*?)\n\w", control, re.M | re.S)[1]
    named = {re.split(r"[ (]", d.strip())[0] for d in depends.split(",")} - {"adduser"}
    assert {n for n in named if not n.startswith("$")} <= rows((ROOT / "deploy/DEPENDENCIES.md").read_text(encoding="utf-8")).keys()


def test_the_sbom_names_every_library_that_is_loaded(sbom):
    done = subprocess.run([sys.executable, "-B", ROOT / "deploy/sbom.py", "cyclonedx", binary()], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    version = subprocess.run([binary(), "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    assert document["metadata"]["component"]["version"] == version
    components = {c["name"]: c for c in document["components"]}
    assert len(components) == len(document["components"]), "each once"
    loaded = re.findall(r"=> (/\S+)", subprocess.run(["ldd", binary()], capture_output=True, text=True, check=True).stdout)
    assert loaded and set(sbom.owners(loaded).values()) <= components.keys()
    told = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", *components], capture_output=True, text=True, check=True).stdout
    installed = dict(line.split() for line in told.splitlines())
    for c in components.values():
        assert c["version"] == installed[c["name"]] and c["purl"].startswith(f"pkg:deb/debian/{c['name']}@") and c["licenses"]
    assert set(document["dependencies"][0]["dependsOn"]) <= {c["bom-ref"] for c in components.values()}
