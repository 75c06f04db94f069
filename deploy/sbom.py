"""What tallyd is made of: packages with versions and licences, from dpkg's own data.

    deploy/sbom.py table PROGRAM          DEPENDENCIES.md (`make docs` writes it)
    deploy/sbom.py cyclonedx PROGRAM      an SBOM of this build, CycloneDX 1.5 as JSON (`make sbom`)

PROGRAM is a built tallyd.  The table has what the project names; the SBOM has also the libraries that those load in turn.
"""

import hashlib
import json
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[1]
# What no library of the program says.
MORE = {
    "libcurl4": "loaded by `import`, `query` and `cluster`",
    "redis-server": "run: the embedded Redis",
    "tzdata": "data: the zones",
    "libjs-chart.js": "built in: the dashboard's charts",
    "esbuild": "build: makes the dashboard's files small",
    "libyaml-dev": "build: openapi.yaml as JSON",
    "gcc": "build",
}
LINKED = "linked"
# Copyright files that are no machine-readable ones.
LICENCES = {"libc6": "LGPL-2.1+", "gcc": "GPL-3+", "libgnutls30": "LGPL-2.1+", "libtasn1-6": "LGPL-2.1+"}


@dataclass
class Package:
    name: str
    version: str
    homepage: str
    licence: str
    role: str

    def upstream(self):
        """Without Debian's epoch and revision."""
        return re.sub(r"^\d+:|-[^-]*$", "", self.version)


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def licence(name):
    """Of `Files: *` in Debian's copyright file."""
    path = pathlib.Path("/usr/share/doc") / name / "copyright"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for paragraph in re.split(r"\n\s*\n", text):
        if re.search(r"^Files: *\*\s*$", paragraph, re.M):
            found = re.search(r"^License: *(\S.*)$", paragraph, re.M)
            if found:
                return found[1].strip()
    return LICENCES.get(name, "see its copyright file")


def package(name, role):
    version, homepage = lines("dpkg-query", "-W", "-f", "${Version}\n${Homepage}\n", name)[:2]
    return Package(name, version, homepage, licence(name), role)


def places(library):
    """Where dpkg may know a file: /lib is a link to /usr/lib, and a name one to a version."""
    real = str(pathlib.Path(library).resolve())
    return [library, real, real.removeprefix("/usr"), library.removeprefix("/usr"), "/usr" + library]


def owners(libraries):
    """{path of a library: the package that it is of}.  dpkg reads its lists of all files for each question, so there is one."""
    asked = {place for library in libraries for place in places(library)}
    told = subprocess.run(["dpkg-query", "-S", *sorted(asked)], capture_output=True, text=True, check=False).stdout
    package_of = {place: re.split(r"[:,]", names)[0] for names, place in re.findall(r"^(\S.*): (/.*)$", told, re.M)}
    found = {library: next((package_of[p] for p in places(library) if p in package_of), None) for library in libraries}
    unknown = [library for library, name in found.items() if name is None]
    if unknown:
        raise SystemExit(f"sbom.py: no package has {', '.join(unknown)}")
    return found


def loaded(program):
    """{soname: path} of all libraries that a program loads."""
    return {name: path for name, path in re.findall(r"(\S+) => (/\S+)", "\n".join(lines("ldd", str(program))))}


def direct(program):
    """What tallyd itself names."""
    paths = loaded(program)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", "\n".join(lines("readelf", "-d", str(program))))
    names = list(dict.fromkeys(owners([paths[soname] for soname in needed]).values()))
    return [package(name, LINKED) for name in names] + [package(name, role) for name, role in MORE.items()]


def table(program):
    rows = "\n".join(f"| {f'[{p.name}]({p.homepage})' if p.homepage else p.name} | {p.upstream()} | {p.licence} | {p.role} |" for p in direct(program))
    return f"""# What tallyd is made of

Packages of Debian 12 with their versions at the last `make docs`, and the licence of most of their files as Debian's
copyright files name it.  tallyd itself is under the [MIT licence](../LICENSE).  `make sbom` writes the same of a build,
with the exact versions and all libraries behind these, as CycloneDX: `build/tallyd.cdx.json`.

| package | version | licence | |
|---|---|---|---|
{rows}
"""


def component(found):
    return {"type": "library" if found.name.startswith("lib") else "application", "bom-ref": f"deb/{found.name}", "name": found.name,
            "version": found.version, "purl": f"pkg:deb/debian/{found.name}@{found.version}?distro=bookworm",
            "licenses": [{"license": {"name": found.licence}}], "scope": "excluded" if found.role.startswith("build") else "required",
            **({"externalReferences": [{"type": "website", "url": found.homepage}]} if found.homepage else {})}


def cyclonedx(program):
    named = direct(program)
    names = {p.name for p in named}
    behind = sorted(set(owners(loaded(program).values()).values()) - names)
    version = re.search(r'TALLYD_VERSION "(.*)"', (ROOT / "service/ops/version.h").read_text(encoding="utf-8"))[1]
    digest = hashlib.sha256(pathlib.Path(program).read_bytes()).hexdigest()
    return json.dumps({
        "bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": "tallyd", "name": "tallyd", "version": version,
                                   "licenses": [{"license": {"id": "MIT"}}], "hashes": [{"alg": "SHA-256", "content": digest}]}},
        "components": [component(p) for p in [*named, *(package(name, "behind") for name in behind)]],
        "dependencies": [{"ref": "tallyd", "dependsOn": [f"deb/{p.name}" for p in named if not p.role.startswith("build")]}],
    }, indent=1) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("table", "cyclonedx"):
        sys.exit(__doc__)
    sys.stdout.write({"table": table, "cyclonedx": cyclonedx}[sys.argv[1]](sys.argv[2]))
