"""What the pytest plugin takes: in a suite that has no use for it, and with a branch a test."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.results import OURS, Row, Target, row
from benchmarks.harness.run_size import Effort

SUITES = 3
TIMED = """
from time import perf_counter
from _pytest.config import get_config
get_config()
began = perf_counter()
import pytest_neonctl_async.plugin
print(perf_counter() - began)
"""
SETTINGS = """
[pytest]
addopts = -p no:cacheprovider
asyncio_default_fixture_loop_scope = function
"""
SUITE = """
import pytest

@pytest.mark.asyncio
@pytest.mark.parametrize("number", range(200))
async def test_it(number, neon_client, neon_branch):
    assert await neon_client.branches.count(neon_branch.branch.project_id) == 2
"""


def run(effort: Effort) -> list[Row]:
    """Both suites; quickly, the first one."""
    with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as folder:
        rows = [start(compiled, effort.of(thorough=25, quick=2))]
        if effort is Effort.THOROUGH:
            rows.append(branches(Path(folder)))
    return rows


def start(compiled: str, runs: int) -> Row:
    """What the plugin adds to the start of pytest: the import of it, in fresh interpreters."""
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", TIMED]
    times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(runs + 1)
    ]
    added = {OURS: times[1:]}  # the first one compiled it
    scenario = "the plugin, in a suite without use for it"
    return row(scenario, "added to the start", "ms", added, targets=[Target(10.0)])


def branches(folder: Path) -> Row:
    """A branch for each of 200 tests, offline."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_branches.py").write_text(SUITE)
    taken = {OURS: [run_suite(folder) for _ in range(SUITES)]}
    scenario = "the plugin, 200 tests with a branch each"
    return row(scenario, "two workers, whole run", "s", taken, targets=[Target(20.0)])


def run_suite(folder: Path) -> float:
    """The seconds that the suite takes."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n2"]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began
