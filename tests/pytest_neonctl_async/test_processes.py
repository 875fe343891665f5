"""All workers of a test run share one server process, which stops when the run ends."""

import asyncio
import sys
from pathlib import Path

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.until import until

pytestmark = pytest.mark.process

RECORDS = """
    import os, pathlib, time
    import pytest

    FILE = pathlib.Path(__file__).with_name("records")

    @pytest.mark.parametrize("number", range(6))
    def test_records_its_worker(number, neon_control_plane, neon_branch, worker_id):
        with FILE.open("a") as file:
            file.write(f"{neon_control_plane.base_url} {neon_control_plane.api_key} {worker_id}\\n")
        while len({line.split()[-1] for line in FILE.read_text().splitlines()}) < 2:
            time.sleep(0.01)  # until the other worker has recorded itself

    def test_kills_its_worker(neon_branch):
        os._exit(1)
"""

MANY = """
    import asyncio, os
    import pytest

    pytestmark = pytest.mark.asyncio

    @pytest.mark.parametrize("number", range(200))
    async def test_it(number, neon_client, neon_branch, neon_project):
        listed = neon_client.branches.list(neon_project.id)
        assert {branch.id async for branch in listed if not branch.default} == {
            neon_branch.branch.id
        }

    async def test_raises(neon_branch):
        raise RuntimeError("a failing test")

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
async def test_200_tests_have_one_branch_each_beside_misbehaving_tests(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    await asyncio.to_thread(pytester.makepyfile, MANY)
    run = await asyncio.to_thread(run_suite, "-n2", "-p", "randomly")
    run.assert_outcomes(passed=200, failed=3)


async def is_listening(base_url: str) -> bool:
    """Return whether a server listens at this address."""
    server, _, port = base_url.split("/")[2].rpartition(":")
    try:
        _, writer = await asyncio.open_connection(server, int(port))
    except ConnectionError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.mark.scale
async def test_workers_share_one_process_and_have_one_tenant_each(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    await asyncio.to_thread(pytester.makepyfile, RECORDS)
    run = await asyncio.to_thread(run_suite, "-n2")
    run.assert_outcomes(passed=6, failed=1)
    run.stdout.fnmatch_lines("*worker 'gw?' crashed while running*test_kills_its_worker*")
    records = await asyncio.to_thread((pytester.path / "records").read_text)
    urls, keys, workers = map(set, zip(*map(str.split, records.splitlines()), strict=True))
    assert (len(urls), len(keys), len(workers)) == (1, 2, 2)
    assert not await is_listening(urls.pop())


@pytest.mark.scale
async def test_process_stops_when_the_run_is_killed(pytester: pytest.Pytester) -> None:
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
    assert await is_listening(base_url)
    process.kill()
    await process.wait()
    await until(lambda: is_stopped(base_url), every=0.02)


async def is_stopped(base_url: str) -> bool:
    return not await is_listening(base_url)


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
