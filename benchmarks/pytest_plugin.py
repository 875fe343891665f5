"""What the pytest plugin costs: a suite that has no use for it, and one with a branch a test.

``python benchmarks/pytest_plugin.py`` fails where an unrelated suite starts more than 10 ms later
for it, or where 200 tests with a branch each take more than 20 s on two workers of pytest-xdist.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Result, figure, show

STARTS = 25
MOST_MILLISECONDS = 10.0
SUITES = 3
MOST_SECONDS = 20.0
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


def start(compiled: str) -> Result:
    """What the plugin adds to the start of pytest: the import of it, in fresh interpreters."""
    command = [sys.executable, "-I", "-X", f"pycache_prefix={compiled}", "-c", TIMED]
    times = [
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) * 1000
        for _ in range(STARTS + 1)
    ]
    added = times[1:]  # the first one compiled it
    return Result(
        figures=[figure("unrelated suite", "the plugin adds, ms", added, target=MOST_MILLISECONDS)]
    )


def branches(folder: Path) -> Result:
    """A branch for each of 200 tests, offline."""
    (folder / "pytest.ini").write_text(SETTINGS)
    (folder / "test_branches.py").write_text(SUITE)
    taken = [run_suite(folder) for _ in range(SUITES)]
    return Result(
        figures=[figure("200 tests, 2 workers", "whole run, s", taken, target=MOST_SECONDS)]
    )


def run_suite(folder: Path) -> float:
    """The seconds that the suite takes."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-n2"]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def main() -> int:
    """Run the benchmark; answers 1 where a target is missed."""
    with tempfile.TemporaryDirectory() as compiled, tempfile.TemporaryDirectory() as folder:
        results = [start(compiled), branches(Path(folder))]
    show(results)
    return 0 if all(one.ok is not False for result in results for one in result.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
