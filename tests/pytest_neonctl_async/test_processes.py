"""The control plane of a run is one process, for all workers, and ends with the run."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.until import until

TELLS = """
    import os, pathlib, time
    import pytest

    SEEN = pathlib.Path(__file__).with_name("seen")

    @pytest.mark.parametrize("number", range(6))
    def test_tells_where_it_runs(number, neon_control_plane, neon_branch, worker_id):
        with SEEN.open("a") as file:
            file.write(f"{neon_control_plane.base_url} {neon_control_plane.api_key} {worker_id}\\n")
        while len({line.split()[-1] for line in SEEN.read_text().splitlines()}) < 2:
            time.sleep(0.01)  # until the other worker is here as well

    def test_kills_its_worker(neon_branch):
        os._exit(1)
"""

MANY = """
    import asyncio, os
    import pytest

    pytestmark = [pytest.mark.process, pytest.mark.asyncio]

    @pytest.mark.parametrize("number", range(200))
    async def test_it(number, neon_client, neon_branch, neon_project):
        listed = neon_client.branches.list(neon_project.id)
        assert {branch.id async for branch in listed if not branch.default} == {
            neon_branch.branch.id
        }

    async def test_raises(neon_branch):
        raise RuntimeError("as it does")

    async def test_is_cancelled(neon_branch_factory):
        asyncio.current_task().cancel()
        await neon_branch_factory()

    async def test_kills_its_worker(neon_branch):
        os._exit(1)
"""

WAITS = """
    import pathlib, time

    def test_it(neon_control_plane):
        pathlib.Path("address").write_text(neon_control_plane.base_url)
        time.sleep(60)
"""


@pytest.mark.scale
@pytest.mark.timeout(120)
async def test_200_tests_have_a_branch_each_whatever_other_tests_do(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    await asyncio.to_thread(pytester.makepyfile, MANY)
    run = await asyncio.to_thread(run_suite, "-n2", "-p", "randomly")
    run.assert_outcomes(passed=200, failed=3)


async def answers(base_url: str) -> bool:
    """Whether anything listens there."""
    server, _, port = base_url.split("/")[2].rpartition(":")
    try:
        _, writer = await asyncio.open_connection(server, int(port))
    except ConnectionError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.mark.scale
async def test_workers_share_one_process_each_as_a_tenant_of_its_own(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    await asyncio.to_thread(pytester.makepyfile, TELLS)
    run = await asyncio.to_thread(run_suite, "-n2")
    run.assert_outcomes(passed=6, failed=1)
    run.stdout.fnmatch_lines("*worker 'gw?' crashed while running*test_kills_its_worker*")
    seen = await asyncio.to_thread((pytester.path / "seen").read_text)
    urls, keys, workers = map(set, zip(*map(str.split, seen.splitlines()), strict=True))
    assert (len(urls), len(keys), len(workers)) == (1, 2, 2)
    assert not await answers(urls.pop())


@pytest.mark.scale
async def test_the_process_ends_even_where_the_run_is_killed(pytester: pytest.Pytester) -> None:
    await asyncio.to_thread(pytester.makepyfile, WAITS)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider"),
        cwd=pytester.path,
        stdout=asyncio.subprocess.DEVNULL,
    )
    address = pytester.path / "address"
    base_url = ""
    while not base_url:
        await asyncio.sleep(0.02)
        base_url = await asyncio.to_thread(read, address)
    assert await answers(base_url)
    process.kill()
    await process.wait()
    await until(lambda: is_silent(base_url), every=0.02)


async def is_silent(base_url: str) -> bool:
    return not await answers(base_url)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
