"""With ``--neon-cloud``, the same tests run against Neon and leave no branch behind."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.until import until

RunInCloud: TypeAlias = Callable[..., Coroutine[None, None, pytest.RunResult]]

pytestmark = [
    pytest.mark.process,
    pytest.mark.control_plane(durations=Durations(default=0.01)),
]

MISBEHAVING = """
    import asyncio, os
    import pytest

    pytestmark = pytest.mark.asyncio

    @pytest.mark.parametrize("number", range(4))
    async def test_passes(number, neon_client, neon_branch, neon_project):
        assert neon_project.id == os.environ["NEON_PROJECT_ID"] == neon_branch.branch.project_id
        assert neon_branch.branch.expires_at is not None
        assert neon_branch.branch.name.startswith("neonctl-pytest-")

    async def test_raises(neon_branch):
        raise RuntimeError("a failing test")

    async def test_is_cancelled(neon_branch_factory):
        await neon_branch_factory()
        asyncio.current_task().cancel()
        await neon_branch_factory()

    async def test_cancels_a_creation(neon_branch_factory):
        async with asyncio.timeout(0):
            await neon_branch_factory()

    async def test_deletes_its_branch(neon_client, neon_branch):
        await neon_client.branches.delete(neon_branch.branch.project_id, neon_branch.branch.id)

    async def test_leaves_children_and_protection(neon_client, neon_branch, neon_branch_factory):
        project_id = neon_branch.branch.project_id
        branches = neon_client.branches
        await branches.update(project_id, neon_branch.branch.id, expires_at=None, wait=True)
        child = await branches.create(project_id, parent_id=neon_branch.branch.id, wait=True)
        await branches.create(project_id, parent_id=child.branch.id, name="mine", wait=True)
        other = await neon_branch_factory()
        await branches.update(
            project_id, other.branch.id, protected=True, expires_at=None, wait=True
        )

    async def test_changes_the_environment(monkeypatch, neon_client, neon_branch):
        del os.environ["NEON_PROJECT_ID"]
        monkeypatch.delenv("NEON_API_KEY")
        await neon_client.branches.get(neon_branch.branch.project_id, neon_branch.branch.id)

    async def test_needs_the_local_control_plane(neon_control_plane):
        raise AssertionError("this test must be skipped")
"""

INTERRUPTED = """
    import os, pathlib, signal, threading, time

    def interrupt():
        while not pathlib.Path("requested").exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def test_it(neon_branch_factory):
        threading.Thread(target=interrupt).start()
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
def run_in_cloud(run_suite: RunSuite, pytester: pytest.Pytester) -> RunInCloud:
    """Runs a test file with ``--neon-cloud``."""

    async def run(source: str, *options: str) -> pytest.RunResult:
        await asyncio.to_thread(pytester.makepyfile, source)
        return await asyncio.to_thread(run_suite, "--neon-cloud", *options)

    return run


async def names(neon: NeonClient, project_id: str) -> set[str]:
    """Return the names of all branches except the default branch."""
    return {branch.name async for branch in neon.branches.list(project_id) if not branch.default}


@pytest.mark.scale
async def test_misbehaving_tests_leave_no_branch_behind(
    run_in_cloud: RunInCloud, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(MISBEHAVING + KILLED, "-n2")
    assert await names(neon, project_id) == set()
    run.assert_outcomes(passed=7, failed=4, skipped=1)
    run.stdout.fnmatch_lines(["*worker 'gw?' crashed*", "neon: deleted branch neonctl-pytest-*"])
    assert sum(line.startswith("neon: deleted") for line in run.outlines) == 2
    assert control_plane.api_key not in run.stdout.str() + run.stderr.str()


@pytest.mark.scale
async def test_branches_are_swept_even_if_another_plugin_fails_at_the_end(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    failing = "def pytest_sessionfinish(): raise ValueError('a failing hook')"
    await asyncio.to_thread(pytester.makeconftest, failing)
    run = await run_in_cloud(KILLED, "-n1", "--asyncio-mode=auto")
    assert "ValueError: a failing hook" in run.stderr.str() + run.stdout.str()
    assert await names(neon, project_id) == set()


@pytest.mark.scale
@pytest.mark.usefixtures("interruptible")
async def test_ctrl_c_during_a_creation_leaves_no_branch_behind(
    run_in_cloud: RunInCloud,
    pytester: pytest.Pytester,
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
) -> None:
    creation = Fault(route="POST /projects/{project_id}/branches", delay=0.5, when="after")
    injected = control_plane.inject(creation)
    run = asyncio.create_task(run_in_cloud(INTERRUPTED))
    await until(lambda: injected.fired > 0)
    await asyncio.to_thread((pytester.path / "requested").touch)
    assert (await run).ret == pytest.ExitCode.INTERRUPTED
    assert await names(neon, project_id) == set()


@pytest.mark.long
def test_missing_environment_variable_is_a_usage_error(
    run_suite: RunSuite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEON_API_KEY", "neon_api_key_unknown")
    run = run_suite("--neon-cloud")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines("ERROR: --neon-cloud needs NEON_PROJECT_ID to be set")
