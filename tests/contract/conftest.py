"""The fixtures of tests/integration, here too; the same processes, the same clients."""

import importlib.util
import pathlib
import sys

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
