"""The cost of the pytest plugin: in a suite that does not use it, and with a branch per test."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize

SUITE_RUNS = 3
IMPORT = """
from time import perf_counter
from _pytest.config import get_config
get_config()
started = perf_counter()
import pytest_neonctl_async.plugin
print(perf_counter() - started)
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


def run(size: RunSize) -> list[Row]:
    """Measure both suites; a quick run leaves the second one out."""
    with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as folder:
        rows = [unused(compiled, size.pick(full=25, quick=2))]
        if size is RunSize.FULL:
            rows.append(branch_per_test(Path(folder)))
    return rows


def unused(compiled: str, runs: int) -> Row:
    """Measure the time that the plugin adds to the start of pytest, in fresh interpreters."""
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", IMPORT]
    times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(runs + 1)
    ]
    values = {OURS: times[1:]}  # the first run compiles the modules
    scenario = "pytest plugin, not used"
    return make_row(scenario, "added to the start", "ms", values, targets=[Target(10.0)])


def branch_per_test(folder: Path) -> Row:
    """Measure a suite of 200 tests with one branch each, offline."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_branches.py").write_text(SUITE)
    values = {OURS: [run_suite(folder) for _ in range(SUITE_RUNS)]}
    scenario = "pytest plugin, 200 tests with a branch each"
    return make_row(scenario, "whole run, two workers", "s", values, targets=[Target(20.0)])


def run_suite(folder: Path) -> float:
    """Return the time of the suite, in seconds."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n2"]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started
