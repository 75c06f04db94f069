"""What cannot be run here is held to what can: Dockerfile, compose, Kubernetes, the package's files."""

import contextlib
import re
import shutil
import socket
import subprocess
import threading

import pytest
import yaml

from lib.process import ROOT, Process, binary, environment, free_port
from lib.resp import Resp
from lib.waiting import wait_until

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = [m for f in ("redis", "tallyd") for m in yaml.safe_load_all((DEPLOY / f"kubernetes/{f}.yaml").read_text(encoding="utf-8"))]
VERSION = re.search(r'TALLYD_VERSION "(.*)"', (ROOT / "service/ops/version.h").read_text())[1]


def options():
    """Names of all options, as in the environment."""
    text = subprocess.run([binary(), "config"], env=environment(), capture_output=True, text=True, check=True).stdout
    return {"TALLYD_" + line.split()[0].upper().replace("-", "_") for line in text.splitlines()[1:] if line.split()}


def accepted(directory, text):
    """A configuration file that tallyd takes."""
    file = directory / "tallyd.conf"
    file.write_text(text)
    try:
        done = subprocess.run([binary(), "config", "--config", file], env=environment(), capture_output=True, text=True, check=False)
    finally:
        file.unlink()
    assert done.returncode == 0, done.stderr
    return done.stdout


def workloads():
    return [m for m in MANIFESTS if m["kind"] in ("Deployment", "StatefulSet")]


def test_environment_variables_are_options():
    names = set(re.findall(r"^(?:ENV| +) ?(TALLYD_[A-Z_]+)=", DOCKERFILE, re.M)) | COMPOSE["services"]["tallyd"]["environment"].keys()
    names |= {e["name"] for w in workloads() for c in w["spec"]["template"]["spec"]["containers"] for e in c.get("env", [])}
    assert len(names) >= 6 and names <= options()


def test_the_dockerfile_builds_with_what_the_makefile_needs():
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    needed = set(re.search(r"^PACKAGES_BUILD = (.*)$", makefile, re.M)[1].split())
    build, run = re.findall(r"install -y --no-install-recommends (.*?) +&& rm", DOCKERFILE.replace("\\\n", " "), re.S)
    assert needed <= set(build.split()) and set(re.search(r"^PACKAGES_RUN = (.*)$", makefile, re.M)[1].split()) <= set(run.split())
    for name in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.M):
        assert all((ROOT / part).exists() for part in name.split()), name
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.M) and re.search(r"^HEALTHCHECK ", DOCKERFILE, re.M)


@pytest.mark.skipif(shutil.which("ldd") is None or shutil.which("dpkg-query") is None, reason="not a Debian")
def test_the_image_has_the_libraries():
    run = set(re.findall(r"install -y --no-install-recommends (.*?) +&& rm", DOCKERFILE.replace("\\\n", " "), re.S)[1].split())
    direct = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", binary()], capture_output=True, text=True, check=True).stdout)
    found = subprocess.run(["dpkg-query", "-S", *(f"*/{library}" for library in direct)], capture_output=True, text=True, check=False).stdout
    for library in direct:
        owners = {line.partition(":")[0] for line in found.splitlines() if line.endswith("/" + library)}
        assert owners & (run | {"libc6", "libgcc-s1"}) or "san" in library, library


def test_compose_mounts_what_there_is():
    services = COMPOSE["services"]
    for service in services.values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()
        assert service["restart"] and all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert services["tallyd"]["stop_grace_period"] == "40s" and services["redis"]["healthcheck"]


def loading_server(listener):
    """A Redis that loads its data: it answers every command so."""
    connection = listener.accept()[0]
    with connection:
        while connection.recv(4096):
            connection.sendall(b"-LOADING Redis is loading the dataset in memory\r\n")


@pytest.mark.parametrize("file", ["compose.yaml", "cluster/compose.yaml"])
def test_a_redis_that_loads_is_not_healthy(file, start_redis):
    services = yaml.safe_load((DEPLOY / file).read_text(encoding="utf-8"))["services"]
    cmd, program, *arguments = next(s["healthcheck"]["test"] for name, s in services.items() if name.startswith("redis"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=loading_server, args=(listener,), daemon=True).start()
        loading = subprocess.run([program, "-p", str(listener.getsockname()[1]), *arguments], capture_output=True, text=True, check=False, timeout=20)
    assert cmd == "CMD" and loading.returncode != 0, loading.stdout
    healthy = subprocess.run([program, "-p", str(start_redis(port=free_port()).port), *arguments], capture_output=True, text=True, check=False, timeout=20)
    assert healthy.returncode == 0 and healthy.stdout == "PONG\n"


def test_compose_provisions_the_data_sources_that_the_dashboards_name():
    given = yaml.safe_load((DEPLOY / "grafana/provisioning/datasources/tallyd.yaml").read_text(encoding="utf-8"))["datasources"]
    ours = {s.get("uid"): s for s in yaml.safe_load(COMPOSE["configs"]["datasources"]["content"])["datasources"]}
    for source in given:
        mine = ours[source["uid"]]
        assert {k: mine[k] for k in ("name", "type", "access")} == {k: source[k] for k in ("name", "type", "access")}
        assert mine["url"] == source["url"].replace("127.0.0.1", "tallyd")
    provider = yaml.safe_load((DEPLOY / "grafana/provisioning/dashboards/tallyd.yaml").read_text(encoding="utf-8"))["providers"][0]
    assert f"./grafana/dashboards:{provider['options']['path']}:ro" in COMPOSE["services"]["grafana"]["volumes"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing")
def test_prometheus_takes_composes_configuration(directory):
    directory.mkdir(exist_ok=True)
    files = [directory / "prometheus.yml", directory / "tallyd.rules.yml"]
    files[0].write_text(COMPOSE["configs"]["prometheus"]["content"])
    files[1].write_text("groups: []\n")
    done = subprocess.run(["promtool", "check", "config", files[0]], capture_output=True, text=True, check=False)
    for file in files:
        file.unlink()
    assert done.returncode == 0, done.stdout + done.stderr


def test_pods_have_probes_limits_and_no_rights():
    assert {w["kind"] for w in workloads()} == {"Deployment", "StatefulSet"}
    for workload in workloads():
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault"
        labels = workload["spec"]["template"]["metadata"]["labels"]
        assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
        volumes = {v["name"] for v in pod["volumes"]} | {v["metadata"]["name"] for v in workload["spec"].get("volumeClaimTemplates", [])}
        for container in pod["containers"]:
            assert {"startupProbe", "readinessProbe", "livenessProbe"} <= container.keys()
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]
            assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                                    "capabilities": {"drop": ["ALL"]}}
            assert {m["name"] for m in container["volumeMounts"]} == volumes
            ports = {p["name"] for p in container["ports"]}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                assert next(iter(container[probe].values()), {}).get("port", "http") in ports


def test_tallyds_pods_are_asked_what_they_can_answer(http):
    deployment = next(w for w in workloads() if w["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] >= 2
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"].endswith(":" + VERSION)
    for probe, path in (("livenessProbe", "/healthz"), ("startupProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"]["path"] == path and http.get(path).status == 200


def test_services_find_pods():
    pods = [w["spec"]["template"]["metadata"]["labels"] for w in workloads()]
    names = {m["metadata"]["name"] for m in MANIFESTS if m["kind"] == "Service"}
    for manifest in MANIFESTS:
        if manifest["kind"] == "Service":
            assert sum(manifest["spec"]["selector"].items() <= p.items() for p in pods) == 1
    assert {"tallyd", "tallyd-redis"} == names


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is missing")
def test_kustomize_takes_them():
    done = subprocess.run(["kubectl", "kustomize", DEPLOY / "kubernetes"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(yaml.safe_load_all(done.stdout))) == len(MANIFESTS)


def config_map(name, key):
    return next(m for m in MANIFESTS if m["kind"] == "ConfigMap" and m["metadata"]["name"] == name)["data"][key]


def test_configuration_files_are_taken(directory):
    directory.mkdir(exist_ok=True)
    accepted(directory, config_map("tallyd", "tallyd.conf"))
    text = (DEPLOY / "tallyd.conf").read_text()
    accepted(directory, text)
    every = re.sub(r"^# (?=[a-z.-]+ = )", "", text, flags=re.M)
    shown = accepted(directory, every)
    assert every.count("\n") == text.count("\n") and "policy.login" in shown


def test_the_pods_redis_starts_with_its_file(directory):
    directory.mkdir(exist_ok=True)
    text = config_map("tallyd-redis", "redis.conf")
    (directory / "users.acl").write_text("user default on nopass allkeys allchannels +@all\n")
    text = text.replace("/etc/redis-secret", str(directory)).replace("dir /data", f"dir {directory}")
    text = re.sub(r"^bind .*$", f"bind 127.0.0.1\nport 0\nunixsocket {directory}/r.sock", text, flags=re.M)
    (directory / "redis.conf").write_text(text)
    process = Process(directory, "redis")
    process.spawn(["redis-server", directory / "redis.conf"])
    try:
        def settings():
            with Resp.unix(directory / "r.sock", 5) as redis:
                return [redis.command("CONFIG", "GET", name)[1] for name in ("appendonly", "appendfsync", "maxmemory-policy")]

        def listens():
            with contextlib.suppress(OSError), Resp.unix(directory / "r.sock", 5):
                return True
            return False

        wait_until(listens, "it listens")
        assert settings() == ["yes", "always", "noeviction"]
    finally:
        process.stop()
        shutil.rmtree(directory)


def test_the_package_has_the_programs_version():
    changelog = (ROOT / "debian/changelog").read_text()
    assert re.match(r"tallyd \((.*?)\)", changelog)[1] == VERSION
    assert f'"tallyd {VERSION}"' in (ROOT / "debian/tallyd.1").read_text()
    for script in ("postinst", "postrm"):
        assert subprocess.run(["sh", "-n", ROOT / f"debian/tallyd.{script}"], check=False).returncode == 0
