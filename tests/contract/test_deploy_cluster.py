"""deploy/cluster: the nodes' file and the script that makes a cluster of them, started as plain processes with two tallyds;
what the manifests say is held to these files.  And one Redis' data is moved into a cluster by the
commands of the page there."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
import yaml

from lib.cluster import BUS, Cluster, TcpServer, free_ports
from lib.process import ROOT, binary, short_directory
from lib.truth import is_close
from lib.waiting import wait_until

HERE = ROOT / "deploy/cluster"
COMPOSE = yaml.safe_load((HERE / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = list(yaml.safe_load_all((HERE / "kubernetes.yaml").read_text(encoding="utf-8")))
NODES = 9

pytestmark = pytest.mark.skipif(shutil.which("redis-server") is None or shutil.which("redis-cli") is None, reason="redis is missing")


def manifest(kind):
    return next(m for m in MANIFESTS if m["kind"] == kind)


def meant(text):
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_yamllint_finds_nothing():
    """Its default rules, with lines as long as elsewhere here, and one document without `---`."""
    if shutil.which("yamllint") is None:
        pytest.skip("yamllint is not installed")
    files = sorted(f for end in ("yaml", "yml") for f in (ROOT / "deploy").rglob(f"*.{end}"))
    rules = (
        "{extends: default, rules: {line-length: {max: 165}, document-start: disable, comments: {min-spaces-from-content: 1}, "
        "comments-indentation: disable}}")
    assert {HERE / "compose.yaml", HERE / "kubernetes.yaml", ROOT / "deploy/kubernetes/tallyd.yaml"} <= set(files)
    done = subprocess.run(["yamllint", "--strict", "-d", rules, *files], text=True, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_manifests_have_the_files_of_this_directory():
    files = manifest("ConfigMap")["data"]
    assert files["create.sh"] == (HERE / "create.sh").read_text()
    assert meant(files["redis.conf"])[3:] == meant((HERE / "redis.conf").read_text())
    assert all(os.path.exists(HERE / c["file"]) for c in COMPOSE["configs"].values())


def test_all_name_the_same_nodes():
    services = COMPOSE["services"]
    addresses = [s["networks"]["inside"]["ipv4_address"] + ":6379" for name, s in services.items() if name.startswith("redis-")]
    assert services["create"]["command"] == addresses and len(addresses) == NODES
    url = services["tallyd-0"]["environment"]["TALLYD_REDIS"]
    assert set(url.removeprefix("redis-cluster://").split(",")) <= set(addresses)
    stateful, job = manifest("StatefulSet"), manifest("Job")["spec"]["template"]["spec"]["containers"][0]
    name = stateful["metadata"]["name"]
    assert stateful["spec"]["replicas"] == NODES and stateful["spec"]["serviceName"] == manifest("Service")["metadata"]["name"] == name
    assert job["args"] == [f"{name}-{i}.{name}:6379" for i in range(NODES)]


def test_pods_have_limits_and_no_rights():
    for kind in ("StatefulSet", "Job"):
        pod = manifest(kind)["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        (container,) = pod["containers"]
        assert container["resources"]["limits"]["memory"] and container["resources"]["requests"]
        assert container["securityContext"]["readOnlyRootFilesystem"] and container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {m["name"] for m in container["volumeMounts"]} <= {
            *(v["name"] for v in pod["volumes"]), *(c["metadata"]["name"] for c in manifest(kind)["spec"].get("volumeClaimTemplates", []))}
    labels = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for other in (manifest("Service")["spec"]["selector"], manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                  manifest("NetworkPolicy")["spec"]["podSelector"]["matchLabels"]):
        assert other.items() <= labels.items()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is missing")
def test_the_script_has_no_mistakes():
    subprocess.run(["shellcheck", HERE / "create.sh"], check=True)


def users_file(tallyd, admin):
    """The users' file of the manifests, with these passwords."""
    allowed = re.search(r"^user default on nopass (.*)$", (ROOT / "deploy/redis.conf").read_text(), re.M)[1]
    head = re.search(r"with\n# +(\+.*) behind\)$", (HERE / "kubernetes.yaml").read_text(), re.M)[1]
    return f"user default off\nuser tallyd on >{tallyd} {allowed} {head}\nuser admin on >{admin} allkeys allchannels +@all\n"


class Shipped:
    """Nine nodes with a file of deploy/, in directories of the test, and what create.sh makes of them."""

    def __init__(self, text, users=False):
        self.directory, self.nodes, self.users = short_directory(), [], users
        if users:
            secret = self.directory / "secret"
            secret.mkdir(parents=True)
            (secret / "users.acl").write_text(users_file("one", "two"))
            (secret / "node.conf").write_text("masteruser admin\nmasterauth two\n")
            text = text.replace("/etc/redis-secret", str(secret))
        for i, port in enumerate(free_ports(NODES, BUS)):
            place = self.directory / f"n{i}"
            place.mkdir(parents=True)
            own = re.sub(r"^port .*$", f"port {port}\nbind 127.0.0.1\ncluster-port {port + BUS}", text, flags=re.M)
            (place / "redis.conf").write_text(re.sub(r"^dir .*$", "", own, flags=re.M) + f"\ndir {place}\n")
            self.nodes.append(TcpServer(place, f"node{i}", port, ["redis-server", place / "redis.conf"]))
            self.nodes[-1].answers = lambda: True  # with users it says NOAUTH; create.sh waits
            self.nodes[-1].start()

    def create(self):
        env = {**os.environ, **({"TALLYD_REDIS_USER": "admin", "REDISCLI_AUTH": "two"} if self.users else {})}
        done = subprocess.run(["sh", HERE / "create.sh", *(n.address for n in self.nodes)], env=env, capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr
        return done.stdout

    def ask(self, node, *command):
        with node.connect(60) as connection:  # nine nodes on a machine that others use
            if self.users:
                connection.command("AUTH", "admin", "two")
            return connection.command(*command)

    @property
    def url(self):
        return "redis-cluster://" + ("tallyd:one@" if self.users else "") + ",".join(n.address for n in self.nodes[:3])

    def stop(self):
        for node in self.nodes:
            node.stop()
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.mark.cluster
@pytest.mark.parametrize("users", [False, True], ids=["compose", "kubernetes"])
def test_it_runs_as_processes(users, start_tallyd, site):
    """Two tallyds; what one acknowledged the other counts; a primary is killed, and both go on."""
    shipped = Shipped(manifest("ConfigMap")["data"]["redis.conf"] if users else (HERE / "redis.conf").read_text(), users)
    try:
        assert "All 16384 slots covered" in shipped.create()
        assert shipped.create() == "there is a cluster\n"
        wait_until(lambda: [shipped.ask(n, "INFO", "replication").count("state=online") for n in shipped.nodes[:3]] == [2, 2, 2],
                   "two replicas each", deadline_s=60)
        one, two = (start_tallyd("--request-timeout", "30s", redis=shipped.url) for _ in range(2))
        one, two = one.client(40), two.client(40)  # longer than tallyd's own deadline
        one.accept([{"site": site, "page": f"/{i}", "user": str(i)} for i in range(300)])
        assert two.count("pv", site=site, from_="now-1h") == 300
        found = two.get("/cluster").json
        assert (found["state"], found["partitions"], len(found["nodes"])) == ("ok", 256, 3), found
        if users:
            denied = [dict(zip(entry[::2], entry[1::2])) for n in shipped.nodes for entry in shipped.ask(n, "ACL", "LOG")]
            assert {d["object"] for d in denied if d["username"] == "tallyd"} == set()
        shipped.nodes[1].kill()
        one.accept([{"site": site, "page": "/after"}])
        wait_until(lambda: two.get("/cluster").json["unserved"] == 0, "its replica has taken over", deadline_s=60)
        assert two.count("pv", site=site, from_="now-1h") == 301
    finally:
        shipped.stop()


QUESTIONS = ("/stats?from=now-4d&round=outer&", "/pages?from=now-4d&round=outer&", "/dau?", "/seen?page=/1&user=u01&", "/pagesets/some?",
             "/active/users?from=now/d&to=now%2B1d/d&limit=1000&", "/visits?pageset=some&from=now-4d&round=outer&")
FILTER = {"items": ["a", "b", "c"]}


def commands_of_the_page(values, passwords):
    """The page's commands "From one Redis to a cluster", block by block, with these values of its variables.  passwords: what
    the second block has, and what is meant; empty where there are no users."""
    page = (HERE / "README.md").read_text(encoding="utf-8")
    section = page.partition("\n## From one Redis to a cluster\n")[2].partition("\n## ")[0]
    first, users, *blocks = [re.sub("^   ", "", b, flags=re.M) for b in re.findall(r"^ *```sh\n(.*?)^ *```$", section, re.M | re.S)]
    assert set(re.findall(r"^(\w+)=", first, re.M)) == set(values), "variables that the page sets"
    settings = "".join(f"{name}='{value}'\n" for name, value in values.items())
    if passwords:
        assert set(re.findall("[A-Z_]+_PASSWORD", users)) == set(passwords)
        settings += re.sub("[A-Z_]+_PASSWORD", lambda word: passwords[word[0]], users)
    return [f"set -eu\n{first}{settings}{block}" for block in blocks]


@pytest.mark.cluster
@pytest.mark.parametrize("users", [False, True], ids=["nobody", "users"])
def test_from_one_redis_to_a_cluster(users, start_tallyd, site, tmp_path):
    """The page's commands, in its order: nodes become a cluster, the data is copied, and every answer is what it was.  With users
    both sides have the manifests' users, with passwords of their own."""
    one_dir = short_directory()
    one_dir.mkdir(parents=True, exist_ok=True)
    passwords = {"OLD_TALLYD_PASSWORD": "three", "OLD_ADMIN_PASSWORD": "four", "TALLYD_PASSWORD": "one", "ADMIN_PASSWORD": "two"} if users else {}
    of_one, of_nodes = (), ()
    if users:
        (tmp_path / "old.acl").write_text(users_file("three", "four"))
        (tmp_path / "new.acl").write_text(users_file("one", "two"))
        of_one, of_nodes = [("--aclfile", tmp_path / f"{name}.acl") for name in ("old", "new")]
        of_nodes += ("--masteruser", "admin", "--masterauth", "two")
    cluster = Cluster(primaries=3, replicas=2, options=of_nodes)
    (port,) = free_ports(1)
    one = TcpServer(one_dir, "one", port, ["redis-server", "--port", port, "--dir", one_dir, "--save", "", *of_one])
    if users:
        one.login = ("admin", "four")
        for node in cluster.nodes:
            node.login = ("admin", "two")
    old_login, login = ("tallyd:three@", "tallyd:one@") if users else ("", "")
    (tmp_path / "create.sh").write_text((HERE / "create.sh").read_text())
    path = f"{pathlib.Path(binary()).resolve().parent}:{os.environ['PATH']}"

    def shell(text):
        done = subprocess.run(["sh", "-c", text], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True,
                              timeout=120, check=False)
        assert done.returncode == 0, done.stdout[-500:] + done.stderr
        return done.stdout

    try:
        cluster.start_nodes()
        one.start()
        now = int(time.time())
        day = time.strftime("%Y-%m-%d", time.gmtime(now - 4 * 86400)), time.strftime("%Y-%m-%d", time.gmtime(now))
        tallyd = start_tallyd(redis=f"redis://{old_login}{one.address}")

        def page():
            return commands_of_the_page({"OLD": one.address, "NODES": " ".join(n.address for n in cluster.nodes),
                                         "TALLYD": f"127.0.0.1:{tallyd.port}", "WINDOW": f"site={site}&from={day[0]}&to={day[1]}"}, passwords)

        create, before, logs, copy, _ = page()
        assert "All 16384 slots covered" in shell(create)
        cluster.wait_ok()
        http = tallyd.client()
        batch = [[{"site": site, "page": f"/{i % 50}", "user": f"u{day}{i}", "ip": f"10.0.{day}.{i % 250}", "ts": now - day * 86400,
                   "actions": ["in"]} for i in range(500)] for day in range(3)]
        for events in batch:
            http.accept(events)
        limit = {"key": site, "algorithm": "sliding", "limit": 3, "period_s": 3600, "cost": 1}
        for method, target, body in (("PUT", f"/pagesets/some?site={site}", {"pages": ["/1", "/2"]}),
                                     ("PUT", f"/filters/f?site={site}", {"capacity": 1000}),
                                     ("POST", f"/filters/f/add?site={site}", FILTER), *[("POST", "/ratelimit", limit)] * 3):
            assert http.request(method, target, json.dumps(body)).status in (200, 201), target

        def answers(client):
            def figures(question):
                answer = client.get(f"{question}site={site}")
                assert answer.status == 200, answer
                return {k: v for k, v in answer.json.items() if k not in ("from", "to", "cover")}
            return [figures(q) for q in QUESTIONS]

        old = answers(http)
        assert old[0]["pv"] == 1500 and old[3]["seen"] and old[6]["visits"] > 0
        assert shell(before).startswith("ok: 16 partitions on 1 server\n")
        assert (tmp_path / "before").read_text().count("\n") > 15, "the figures of two days that are over"
        assert tallyd.terminate() == 0  # counts what it has acknowledged, and closes its log
        assert shell(logs) == ""
        n_keys = one.command("DBSIZE")
        shell(copy)
        # locks may have expired, and minutes of two days ago
        assert sum(n.command("DBSIZE") for n in cluster.primaries()) >= one.command("DBSIZE") > n_keys * 3 / 4
        url = cluster.url.replace("://", f"://{login}")
        other = start_tallyd(redis=url, wait_ready=False)
        assert other.process.wait(20) == 2 and "another number of partitions" in other.tail(), "auto is 256 there"
        tallyd = start_tallyd("--partitions", "16", redis=url)
        *_, after = page()
        assert shell(after).startswith("ok: 16 partitions on 3 servers\n")
        new = tallyd.client()
        assert answers(new) == old
        checked = new.request("POST", f"/filters/f/check?site={site}", json.dumps({"items": ["a", "x", "c"]}))
        assert checked.json["seen"] == [True, False, True]
        assert new.request("POST", "/ratelimit", json.dumps(limit)).status == 429, "what was taken stays taken"
        new.accept(batch[0])
        again = answers(new)[0]
        assert again["pv"] == 2000 and is_close(again["uv"], old[0]["uv"]), "known visitors stay the same"
        denied = [dict(zip(entry[::2], entry[1::2])) for node in (one, *cluster.nodes) for entry in node.command("ACL", "LOG")]
        assert {d["object"] for d in denied if d["username"] == "tallyd"} == set()
    finally:
        cluster.stop()
        one.stop()
        shutil.rmtree(one_dir, ignore_errors=True)
