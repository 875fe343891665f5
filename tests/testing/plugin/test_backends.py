"""What the fixtures work with, without pytest between."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from neonctl_async import APIError, NeonClient, NeonError
from neonctl_async.local import Durations, Fault, LocalControlPlane
from neonctl_async.testing.plugin import commands
from neonctl_async.testing.plugin.backends import Backend, open_cloud_backend, open_local_backend
from neonctl_async.testing.plugin.server import ControlServer
from neonctl_async.types import BranchCreated
from pytest_neonctl_async.server_process import CloudAccount, ServerURLs


@pytest.fixture
async def plane() -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(durations=Durations(default=0.01)) as plane:
        yield plane


@pytest.fixture
async def served(plane: LocalControlPlane) -> AsyncIterator[ServerURLs]:
    """A control plane with its console, both on the loop of the test."""
    console = ControlServer(plane)
    await console.start()
    yield ServerURLs(plane.base_url, console.url, console.token)
    await console.stop()


@pytest.fixture
async def platform(plane: LocalControlPlane) -> CloudAccount:
    """What a run with ``--neon-cloud`` knows of a plane that stands in for the platform."""
    async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
        project_id = (await neon.projects.create(name="tests", wait=True)).project.id
    return CloudAccount(
        {
            "NEON_API_KEY": plane.api_key,
            "NEON_API_HOST": plane.base_url,
            "NEON_PROJECT_ID": project_id,
        }
    )


async def test_branches_are_gone_when_the_factory_is_left(served: ServerURLs) -> None:
    def use() -> None:
        with open_local_backend(served, "0a0a0a0a") as bench:
            project = bench.project()
            with bench.branches(project.id) as factory:
                parent = factory.create()
                child = factory.create(parent_id=parent.branch.id, endpoints=[])
                assert parent.branch.name.startswith("neonctl-pytest-0a0a0a0a-")
                assert child.branch.parent_id == parent.branch.id
            assert asyncio.run(count(bench, project.id)) == 1

    await asyncio.to_thread(use)


async def test_a_factory_is_of_one_test(served: ServerURLs) -> None:
    def use() -> None:
        with open_local_backend(served, "0a0a0a0a") as bench:
            project = bench.project()
            with bench.branches(project.id) as factory:
                pass
            with pytest.raises(RuntimeError, match="the test that this factory was for is over"):
                factory.create()
            assert asyncio.run(count(bench, project.id)) == 1

    await asyncio.to_thread(use)


async def test_on_the_platform_all_that_came_of_a_branch_goes_with_it(
    platform: CloudAccount,
) -> None:
    def use() -> None:
        with open_cloud_backend(platform, "0a0a0a0a") as bench:
            assert bench.project().id == platform.project_id
            bench.clear()
            with bench.branches(platform.project_id) as factory:
                asyncio.run(burden(bench, factory.create()))
            assert asyncio.run(count(bench, platform.project_id)) == 1

    await asyncio.to_thread(use)


async def burden(bench: Backend, created: BranchCreated) -> None:
    """Give a branch a child, and protect it."""
    where = created.branch.project_id
    async with bench.client() as neon:
        await neon.branches.create(where, parent_id=created.branch.id, name="child", wait=True)
        await neon.branches.update(where, created.branch.id, protected=True, wait=True)


async def test_what_cannot_be_deleted_on_the_platform_fails_the_test(
    platform: CloudAccount,
) -> None:
    def use() -> None:
        with open_cloud_backend(platform, "0a0a0a0a") as bench:
            with bench.branches(platform.project_id) as factory:
                branch_id = factory.create().branch.id
                asyncio.run(make_default(bench, platform.project_id, branch_id))

    with pytest.raises(APIError, match="default"):
        await asyncio.to_thread(use)


async def make_default(bench: Backend, project_id: str, branch_id: str) -> None:
    async with bench.client() as neon:
        await neon.branches.set_as_default(project_id, branch_id, wait=True)


async def count(bench: Backend, project_id: str) -> int:
    async with bench.client() as neon:
        return await neon.branches.count(project_id)


async def test_faults_of_a_test_do_not_keep_its_branches(served: ServerURLs) -> None:
    def use() -> None:
        with open_local_backend(served, "0a0a0a0a") as bench:
            project = bench.project()
            assert bench.control_plane is not None
            with bench.branches(project.id) as factory:
                factory.create()
                asyncio.run(bench.control_plane.inject(Fault(status=503)))
            assert asyncio.run(count(bench, project.id)) == 1

    await asyncio.to_thread(use)


async def test_a_creation_that_nobody_waits_for_any_more_is_undone(served: ServerURLs) -> None:
    def use() -> None:
        with open_local_backend(served, "0a0a0a0a") as bench:
            project = bench.project()
            with bench.branches(project.id) as factory:
                assert bench.control_plane is not None
                slow = Fault(route="POST /projects/{project_id}/branches", delay=0.1, when="after")
                asyncio.run(bench.control_plane.inject(slow))
                asyncio.run(give_up(factory()))
            assert asyncio.run(count(bench, project.id)) == 1

    await asyncio.to_thread(use)


async def give_up(creation: object) -> None:
    assert asyncio.iscoroutine(creation)
    task = asyncio.create_task(creation)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cleared_tenant_disturbs_no_other(served: ServerURLs) -> None:
    def use() -> None:
        with open_local_backend(served, "a") as mine, open_local_backend(served, "b") as anothers:
            project = anothers.project()
            mine.project()
            mine.clear()
            assert asyncio.run(projects(mine)) == []
            assert asyncio.run(projects(anothers)) == [project.id]

    await asyncio.to_thread(use)


async def projects(bench: Backend) -> list[str]:
    async with bench.client() as neon:
        return [project.id async for project in neon.projects.list()]


async def test_the_console_is_for_those_who_have_its_token(served: ServerURLs) -> None:
    async with NeonClient("another", base_url=served.control_url) as stranger:
        with pytest.raises(NeonError, match="the console of a test run"):
            await stranger.request("POST", "/tenants/0", body=commands.Reset())


async def test_a_bench_leaves_no_thread_behind(served: ServerURLs) -> None:
    before = threading.active_count()

    def use() -> int:
        with open_local_backend(served, "a"):
            during = threading.active_count()
        assert threading.active_count() < during
        return threading.active_count()

    after = await asyncio.to_thread(use)
    assert after <= before + 1  # the thread of to_thread
