"""``--neon-cloud``: the same tests on the platform, and nothing left behind there."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from neonctl_async import NeonClient
from neonctl_async.local import Durations, Fault, LocalControlPlane
from tests.pytest_neonctl_async.conftest import RunOnPlatform, RunSuite
from tests.support.until import until

WHATEVER_TESTS_DO = """
    import asyncio, os
    import pytest

    pytestmark = [pytest.mark.process, pytest.mark.asyncio]

    @pytest.mark.parametrize("number", range(4))
    async def test_passes(number, neon_client, neon_branch, neon_project):
        assert neon_project.id == os.environ["NEON_PROJECT_ID"] == neon_branch.branch.project_id
        assert neon_branch.branch.expires_at is not None
        assert neon_branch.branch.name.startswith("neonctl-pytest-")

    async def test_raises(neon_branch):
        raise RuntimeError("as it does")

    async def test_is_cancelled(neon_branch_factory):
        await neon_branch_factory()
        asyncio.current_task().cancel()
        await neon_branch_factory()

    async def test_gives_up_on_a_branch(neon_branch_factory):
        async with asyncio.timeout(0):
            await neon_branch_factory()

    async def test_deletes_its_branch(neon_client, neon_branch):
        await neon_client.branches.delete(neon_branch.branch.project_id, neon_branch.branch.id)

    async def test_leaves_children_and_protection(neon_client, neon_branch, neon_branch_factory):
        where = neon_branch.branch.project_id
        child = await neon_client.branches.create(where, parent_id=neon_branch.branch.id, wait=True)
        await neon_client.branches.create(where, parent_id=child.branch.id, name="mine", wait=True)
        other = await neon_branch_factory()
        await neon_client.branches.update(where, other.branch.id, protected=True, wait=True)

    async def test_changes_the_environment(monkeypatch, neon_client, neon_branch):
        del os.environ["NEON_PROJECT_ID"]
        monkeypatch.delenv("NEON_API_KEY")
        await neon_client.branches.get(neon_branch.branch.project_id, neon_branch.branch.id)

    async def test_needs_the_local_control_plane(neon_control_plane):
        raise AssertionError("there is none")
"""

INTERRUPTED = """
    import os, signal, threading

    def test_it(neon_branch_factory):
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        neon_branch_factory.create()
"""

KILLED = """
    import os

    async def test_kills_its_worker(neon_branch_factory):
        parent = await neon_branch_factory()
        await neon_branch_factory(parent_id=parent.branch.id)
        os._exit(1)
"""


@pytest.fixture
async def plane() -> AsyncIterator[LocalControlPlane]:
    """What stands in for the platform."""
    async with LocalControlPlane(durations=Durations(default=0.01)) as plane:
        yield plane


@pytest.fixture
async def neon(plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
        yield neon


@pytest.fixture
async def project_id(neon: NeonClient, monkeypatch: pytest.MonkeyPatch) -> str:
    """The project that the tests run in."""
    project_id = (await neon.projects.create(name="tests", wait=True)).project.id
    monkeypatch.setenv("NEON_PROJECT_ID", project_id)
    return project_id


async def names(neon: NeonClient, project_id: str) -> set[str]:
    """Those of the branches that a project has besides its default one."""
    return {branch.name async for branch in neon.branches.list(project_id) if not branch.default}


@pytest.mark.scale
async def test_whatever_tests_do_no_branch_is_left_behind(
    run_on_platform: RunOnPlatform, plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    run = await run_on_platform(plane, WHATEVER_TESTS_DO + KILLED, "-n2")
    assert await names(neon, project_id) == set()
    run.assert_outcomes(passed=7, failed=4, skipped=1)
    run.stdout.fnmatch_lines(["*worker 'gw?' crashed*", "neon: deleted branch neonctl-pytest-*"])
    assert sum(line.startswith("neon: deleted") for line in run.outlines) == 2
    assert plane.api_key not in run.stdout.str() + run.stderr.str()


@pytest.mark.scale
async def test_the_end_of_a_run_is_swept_even_where_a_hook_of_others_fails(
    run_on_platform: RunOnPlatform,
    pytester: pytest.Pytester,
    plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
) -> None:
    failing = "def pytest_sessionfinish(): raise ValueError('as it does')"
    await asyncio.to_thread(pytester.makeconftest, failing)
    run = await run_on_platform(plane, KILLED, "-n1", "--asyncio-mode=auto")
    assert "ValueError: as it does" in run.stderr.str() + run.stdout.str()
    assert await names(neon, project_id) == set()


@pytest.mark.scale
@pytest.mark.usefixtures("interruptible")
async def test_ctrl_c_while_a_branch_is_made_leaves_none_behind(
    run_on_platform: RunOnPlatform, plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    creation = Fault(route="POST /projects/{project_id}/branches", delay=0.5, when="after")
    injected = plane.inject(creation)
    run = asyncio.create_task(run_on_platform(plane, INTERRUPTED))
    await until(lambda: injected.fired > 0)
    assert (await run).ret == pytest.ExitCode.INTERRUPTED
    assert await names(neon, project_id) == set()


def test_it_says_what_it_needs(run_suite: RunSuite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_API_KEY", "neon_api_key_of_nobody")
    run = run_suite("--neon-cloud")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines("ERROR: --neon-cloud needs NEON_PROJECT_ID to be set")
