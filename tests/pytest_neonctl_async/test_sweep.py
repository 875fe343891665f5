"""The sweep deletes the branches that test runs left behind on Neon, and no others."""

import asyncio
from datetime import UTC, datetime

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane, ManualClock
from pytest_neonctl_async import cloud
from pytest_neonctl_async.cloud import CloudAccount
from pytest_neonctl_async.naming import LIFETIME_SECONDS

OF_THIS_RUN = "neonctl-pytest-0a0a0a0a-gw0-1"
OF_ANOTHER_RUN = "neonctl-pytest-ffffffff-gw0-1"
PARENT_OF_THIS_RUN = "neonctl-pytest-0a0a0a0a-gw0-parent-1"
PARENT_OF_ANOTHER_RUN = "neonctl-pytest-ffffffff-gw0-parent-1"


async def sweep(server: LocalControlPlane, project_id: str) -> list[str]:
    environment = {
        "NEON_API_HOST": server.base_url,
        "NEON_API_KEY": server.api_key,
        "NEON_PROJECT_ID": project_id,
    }
    return await asyncio.to_thread(cloud.sweep, CloudAccount(environment), "0a0a0a0a")


async def names(neon: NeonClient, project_id: str) -> set[str]:
    return {branch.name async for branch in neon.branches.list(project_id) if not branch.default}


async def test_sweep_deletes_children_before_parents_and_keeps_other_branches() -> None:
    clock = ManualClock(datetime.now(UTC))
    async with LocalControlPlane(clock=clock, lock="none") as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            parent = await neon.branches.create(project_id, name=OF_THIS_RUN)
            clock.advance(1)
            await neon.branches.create(
                project_id, name=f"{OF_THIS_RUN}-b", parent_id=parent.branch.id
            )
            for name in (OF_ANOTHER_RUN, "mine"):
                await neon.branches.create(project_id, name=name)
            lines = await sweep(server, project_id)
            assert await names(neon, project_id) == {OF_ANOTHER_RUN, "mine"}
    assert [line.split()[:3] for line in lines] == [
        ["deleted", "branch", f"{OF_THIS_RUN}-b"],
        ["deleted", "branch", OF_THIS_RUN],
    ]


async def test_sweep_deletes_branches_of_other_runs_once_they_have_expired_for_the_server() -> None:
    clock = ManualClock()
    async with LocalControlPlane(clock=clock, lock="none") as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=OF_ANOTHER_RUN)
            await neon.branches.create(project_id, name="mine")
            await sweep(server, project_id)
            assert await names(neon, project_id) == {OF_ANOTHER_RUN, "mine"}
            clock.advance(LIFETIME_SECONDS + 60)
            await sweep(server, project_id)
            assert await names(neon, project_id) == {"mine"}


async def test_sweep_deletes_the_parent_of_this_run_without_a_line() -> None:
    async with LocalControlPlane(durations=Durations(default=0)) as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=PARENT_OF_THIS_RUN)
            await neon.branches.create(project_id, name=PARENT_OF_ANOTHER_RUN)
            assert await sweep(server, project_id) == []
            assert await names(neon, project_id) == {PARENT_OF_ANOTHER_RUN}


@pytest.mark.parametrize(("hours", "is_kept"), [(2, True), (25, False)])
async def test_parent_of_another_run_is_kept_for_a_day(hours: int, is_kept: bool) -> None:
    clock = ManualClock()
    async with LocalControlPlane(clock=clock, durations=Durations(default=0)) as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=PARENT_OF_ANOTHER_RUN)
            clock.advance(hours * 3600)
            lines = await sweep(server, project_id)
            assert await names(neon, project_id) == ({PARENT_OF_ANOTHER_RUN} if is_kept else set())
    assert len(lines) == (0 if is_kept else 1)


async def test_failures_of_the_sweep_are_reported() -> None:
    async with LocalControlPlane(durations=Durations(default=0)) as server:
        [line] = await sweep(server, "gone-away-12345678")
        assert line.startswith("could not list the branches that test runs left behind: ")
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=OF_THIS_RUN)
        server.inject(Fault(route="DELETE /projects/{project_id}/branches/{branch_id}", status=500))
        [line] = await sweep(server, project_id)
        assert line.startswith(f"could not delete branch {OF_THIS_RUN} (")


async def test_branch_that_cannot_be_deleted_is_reported_with_the_reason() -> None:
    async with LocalControlPlane(durations=Durations(default=0)) as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            parent = await neon.branches.create(project_id, name=OF_THIS_RUN)
            child = await neon.branches.create(project_id, parent_id=parent.branch.id, name="child")
            await neon.branches.set_as_default(project_id, child.branch.id)
        lines = await sweep(server, project_id)
    reasons = [line.partition(" of a test run: ")[2] for line in lines]
    assert sorted(reasons) == [
        "it is the default branch",
        "its child child remains",
    ]


async def test_sweep_that_is_stopped_reports_what_it_has_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud, "SWEEP_SECONDS", 0.5)
    async with LocalControlPlane(durations=Durations(default=0)) as server:
        async with NeonClient(server.api_key, base_url=server.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            for number in range(2):
                await neon.branches.create(project_id, name=f"{OF_THIS_RUN}-{number}")
        route = "DELETE /projects/{project_id}/branches/{branch_id}"
        server.inject(Fault(route=route, hang=True, times=1))
        deleted, stopped = await sweep(server, project_id)
    assert deleted.startswith(f"deleted branch {OF_THIS_RUN}-")
    assert stopped == "the sweep stopped after 0.5 s: branches may be left behind"


async def test_sweep_stops_after_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloud, "SWEEP_SECONDS", 0.0)
    async with LocalControlPlane() as server:
        lines = await sweep(server, "late-frost-12345678")
    assert lines == ["the sweep stopped after 0 s: branches may be left behind"]
