"""The fixtures of tests/integration, here too; the same processes, the same clients."""

import importlib.util
import pathlib
import re
import shutil
import socket
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
INTEGRATION = HERE.parent / "integration"
for directory in (INTEGRATION, HERE):  # the other suite's settings may be the ones in force
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))

spec = importlib.util.spec_from_file_location("integration_conftest", INTEGRATION / "conftest.py")
integration = importlib.util.module_from_spec(spec)
spec.loader.exec_module(integration)

seed, chance, directory, cleanup = integration.seed, integration.chance, integration.directory, integration.cleanup
redis, tallyd, http, site = integration.redis, integration.tallyd, integration.http, integration.site
start_redis, start_tallyd = integration.start_redis, integration.start_tallyd
start_proxy, start_world = integration.start_proxy, integration.start_world
pytest_runtest_makereport = integration.pytest_runtest_makereport
pytest_runtest_setup = integration.pytest_runtest_setup

from lib.process import ROOT, Process, free_port  # noqa: E402  # pylint: disable=wrong-import-position
from lib.waiting import wait_until  # noqa: E402  # pylint: disable=wrong-import-position


@pytest.fixture
def start_nginx(directory, cleanup):
    """start_nginx(file of deploy/, {what it says: what is so here}): nginx with that file; its port."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        pytest.skip("nginx is not installed (apt-get install nginx)")

    def start(name, replacements):
        directory.mkdir(exist_ok=True)
        port = free_port()
        text = (ROOT / "deploy" / name).read_text()
        for old, new in replacements.items():
            assert old in text
            text = text.replace(old, new)
        text = re.sub(r"^ *listen 443 .*$", f"    listen 127.0.0.1:{port};", text, flags=re.M)  # no certificate here
        text = re.sub(r"^ *(listen \[::\]|ssl_).*$", "", text, flags=re.M)
        temporary = "".join(f"{k}_temp_path {directory}/{k};\n" for k in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        conf = directory / "nginx.conf"
        conf.write_text(f"daemon off; master_process off; pid {directory}/pid; error_log stderr;\nevents {{}}\n"
                        f"http {{ access_log off; {temporary} {text} }}\n")
        check = subprocess.run([program, "-t", "-p", directory, "-c", conf], capture_output=True, text=True, check=False)
        assert check.returncode == 0 and "[warn]" not in check.stderr, check.stderr
        process = Process(directory, "nginx")
        cleanup.append(lambda: shutil.rmtree(directory, ignore_errors=True))
        cleanup.append(process.stop)
        process.spawn([program, "-p", directory, "-c", conf])

        def listens():
            assert process.alive(), process.tail()
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "nginx listens")
        return port

    return start
