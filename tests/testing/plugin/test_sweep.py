"""What is swept of a project on the platform, and what is not."""

import asyncio
from datetime import UTC, datetime, timedelta

from neonctl_async import NeonClient
from neonctl_async.local import Durations, Fault, LocalControlPlane, ManualClock
from neonctl_async.testing.plugin.naming import LIFETIME_SECONDS
from neonctl_async.testing.plugin.sweep import sweep_now
from pytest_neonctl_async.server_process import CloudAccount

MINE = "neonctl-pytest-0a0a0a0a-gw0-1"
ANOTHERS = "neonctl-pytest-ffffffff-gw0-1"


async def sweep(plane: LocalControlPlane, project_id: str) -> list[str]:
    environment = {
        "NEON_API_HOST": plane.base_url,
        "NEON_API_KEY": plane.api_key,
        "NEON_PROJECT_ID": project_id,
    }
    return await asyncio.to_thread(sweep_now, CloudAccount(environment), "0a0a0a0a")


async def names(neon: NeonClient, project_id: str) -> set[str]:
    return {branch.name async for branch in neon.branches.list(project_id) if not branch.default}


async def test_children_go_before_their_parents_and_others_stay() -> None:
    clock = ManualClock(datetime.now(UTC))
    async with LocalControlPlane(clock=clock) as plane:
        async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            parent = await neon.branches.create(project_id, name=MINE)
            clock.advance(1)
            await neon.branches.create(project_id, name=f"{MINE}-b", parent_id=parent.branch.id)
            for name in (ANOTHERS, "mine"):
                await neon.branches.create(project_id, name=name)
            told = await sweep(plane, project_id)
            assert await names(neon, project_id) == {ANOTHERS, "mine"}
    assert [line.split()[:3] for line in told] == [
        ["deleted", "branch", f"{MINE}-b"],
        ["deleted", "branch", MINE],
    ]


async def test_those_of_other_runs_go_once_they_should_have_expired() -> None:
    clock = ManualClock(datetime.now(UTC) - timedelta(seconds=LIFETIME_SECONDS + 60))
    async with LocalControlPlane(clock=clock) as plane:
        async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=ANOTHERS)
            await neon.branches.create(project_id, name="mine")
            await sweep(plane, project_id)
            assert await names(neon, project_id) == {"mine"}


async def test_what_fails_is_told() -> None:
    async with LocalControlPlane(durations=Durations(default=0)) as plane:
        [line] = await sweep(plane, "gone-away-12345678")
        assert line.startswith("could not look for branches that were left behind: ")
        async with NeonClient(plane.api_key, base_url=plane.base_url) as neon:
            project_id = (await neon.projects.create(name="tests")).project.id
            await neon.branches.create(project_id, name=MINE)
        plane.inject(Fault(route="DELETE /projects/{project_id}/branches/{branch_id}", status=500))
        [line] = await sweep(plane, project_id)
        assert f"branch {MINE} (" in line
        assert "was left behind: " in line
