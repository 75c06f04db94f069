"""/metrics as Prometheus takes it: promtool's opinion, what promtool does not see, a real Prometheus, the alerts of deploy/.

What needs Debian's package prometheus is skipped where that is missing."""

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest
import yaml

from lib.process import ROOT, Process, free_port
from lib.tokens import token_line
from lib.waiting import wait_until

DEPLOY = ROOT / "deploy/prometheus"
LINE = re.compile(r'^([a-z_]+)(\{(?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*\})? (\S+)$')

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is missing (apt-get install prometheus)")
needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is missing (apt-get install prometheus)")


def promtool(*args, stdin=None):
    result = subprocess.run(["promtool", *map(str, args)], input=stdin, capture_output=True, timeout=60, check=False)
    return result.returncode, (result.stdout + result.stderr).decode()


@pytest.fixture
def exposition(http, site):
    """After one of everything: counted, rejected, refused, asked."""
    http.accept([{"site": site, "page": "/", "user": i} for i in range(50)])
    http.post(b'[{"page":""}]')
    http.post(b"{")
    http.count("uv", site=site)
    http.get("/nothing/such\"as\\this")
    response = http.get("/metrics")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return response.body.decode()


@needs_promtool
def test_promtool_finds_nothing(exposition):
    assert promtool("check", "metrics", stdin=exposition.encode()) == (0, "")
    code, words = promtool("check", "metrics", stdin=exposition.replace("_seconds", "_minutes").encode())
    assert code == 3 and "base unit" in words, "promtool looks"


def test_what_promtool_does_not_see(exposition):
    """Families in one piece, no series twice, histograms that add up."""
    assert exposition.endswith("\n")
    families, series, buckets = [], {}, {}
    for line in exposition.splitlines():
        if line.startswith("# HELP "):
            families.append(line.split()[2])
        elif line.startswith("# TYPE "):
            assert line.split()[2] == families[-1] and line.split()[3] in ("counter", "gauge", "histogram")
        else:
            name, labels, value = LINE.match(line).groups()
            assert name == families[-1] or re.sub("_(bucket|sum|count)$", "", name) == families[-1], line
            assert (name, labels) not in series, line
            series[name, labels] = float(value)
            if name.endswith("_bucket"):
                rest, le = re.match(r'\{(?:(.*),)?le="(.*)"\}$', labels).groups()
                buckets.setdefault((name.removesuffix("_bucket"), rest), []).append((float(le), float(value)))
    assert len(families) == len(set(families)) > 40
    for (name, labels), points in buckets.items():
        assert points == sorted(points) and [n for _, n in points] == sorted(n for _, n in points), labels
        assert points[-1] == (float("inf"), series[name + "_count", labels and "{" + labels + "}"])
    assert series["tallyd_append_seconds_total", None] > 0
    assert series["tallyd_fold_seconds_count", None] == series["tallyd_folds_total", None] > 0
    assert series["tallyd_fold_events_total", None] > 0
    assert series["tallyd_http_requests_total", '{method="",route="",code="404"}'] >= 1


def ask(port, question):
    address = f"http://127.0.0.1:{port}/api/v1/query?{urllib.parse.urlencode({'query': question})}"
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return [float(sample["value"][1]) for sample in json.load(response)["data"]["result"]]
    except OSError:
        return None


@needs_prometheus
@pytest.mark.parametrize("closed", [False, True], ids=["open", "with-token"])
def test_a_real_one_scrapes_it(redis, start_tallyd, directory, cleanup, closed):
    """With the configuration that deploy/ proposes."""
    directory.mkdir(exist_ok=True)
    (directory / "token").write_text("secret")
    (directory / "tokens").write_text(token_line("secret", "read,ingest prometheus"))
    tallyd = start_tallyd(*(["--tokens", directory / "tokens", "--metrics-token"] if closed else []), redis=redis,
                          wait_ready=False)
    tallyd.wait_ready_line()
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    scrape = config["scrape_configs"][0]
    scrape["static_configs"][0]["targets"] = [f"127.0.0.1:{tallyd.port}"]
    if closed:
        scrape["authorization"] = {"credentials_file": str(directory / "token")}
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    shutil.copy(DEPLOY / "tallyd.rules.yml", directory)
    headers = {"Authorization": "Bearer secret"} if closed else {}
    wait_until(lambda: tallyd.client().post([{"page": "/", "user": i} for i in range(7)], headers=headers).status == 202, "it counts")
    port = free_port()
    prometheus = Process(directory, "prometheus")
    cleanup.append(prometheus.stop)
    prometheus.spawn(["prometheus", f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/tsdb",
                      f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"])
    wait_until(lambda: ask(port, 'up{job="tallyd"}') == [1], "the scrape succeeds", deadline_s=30)
    assert ask(port, "tallyd_events_accepted_total") == [7]
    assert ask(port, 'histogram_quantile(0.5, sum by (le) (tallyd_http_request_duration_seconds_bucket{route="/events"}))')[0] > 0
    assert len(ask(port, "scrape_samples_scraped")) == 1
    wait_until(lambda: ask(port, 'count(ALERTS{alertstate="firing"}) or vector(0)') == [0], "no alert")
    prometheus.stop()
    shutil.rmtree(directory, ignore_errors=True)


@needs_promtool
def test_the_alerts(exposition):
    assert promtool("check", "rules", DEPLOY / "tallyd.rules.yml")[0] == 0
    code, words = promtool("test", "rules", DEPLOY / "tallyd.rules.test.yml")
    assert code == 0, words
    assert promtool("check", "config", "--syntax-only", DEPLOY / "prometheus.yml")[0] == 0


def test_the_alerts_ask_for_what_there_is(exposition):
    """No alert on a metric that does not exist, none without a test."""
    rules = yaml.safe_load((DEPLOY / "tallyd.rules.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    tests = yaml.safe_load((DEPLOY / "tallyd.rules.test.yml").read_text(encoding="utf-8"))["tests"]
    names = set(re.findall(r"^([a-z_]+)[{ ]", exposition, re.M))
    for rule in rules:
        assert set(re.findall(r"\btallyd_\w+", rule["expr"])) <= names, rule["alert"]
        assert {f"{rule['alert']}", f"{rule['alert']}, quiet"} <= {t["name"] for t in tests}
