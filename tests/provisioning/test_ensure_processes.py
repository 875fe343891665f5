"""Many processes ensure the same branches at once, with faults and kills."""

import asyncio
import os
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from neonctl_async import NeonClient, RateBudget
from neonctl_local import Durations, LocalControlPlane
from tests.provisioning.ensuring import Plan, Summary, created_by_name
from tests.provisioning.helpers import inject_faults
from tests.support.pages import ROOT


async def run(control_plane: LocalControlPlane, plan: Plan) -> Summary:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "tests.provisioning.ensuring"),
        msgspec.json.encode(plan).decode(),
        cwd=ROOT,
        env=os.environ
        | {"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url},
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return msgspec.json.decode(output, type=Summary)


async def check(
    tmp_path: Path,
    *,
    processes: int,
    branches: int,
    kills: int,
    seed: int,
    rate_limited: float = 0.03,
) -> Summary:
    """Run the processes, and compare their results with the server."""
    async with (
        LocalControlPlane(durations=Durations(default=0.02), lock="project") as control_plane,
        NeonClient(
            control_plane.api_key,
            base_url=control_plane.base_url,
            budget=RateBudget.unlimited(),
        ) as neon,
    ):
        project_id = (await neon.projects.create(wait=True)).project.id
        inject_faults(control_plane, seed, rate_limited=rate_limited)
        plan = Plan(
            project_id=project_id,
            branches=branches,
            processes=processes,
            kills=kills,
            seconds=processes / 10,
            seed=seed,
            directory=str(tmp_path),
        )
        summary = await run(control_plane, plan)
        control_plane.clear_faults()
        existing = {one.name: one async for one in neon.branches.list(project_id)}
        computes = Counter(one.branch_id for one in await neon.endpoints.list(project_id))
    del existing["main"]
    assert [error for result in summary.results for error in result.errors] == []
    assert summary.failures == []
    assert len(summary.results) == processes
    assert existing.keys() == {*plan.names}
    assert created_by_name(summary.results) == {
        (name, branch.id): processes for name, branch in existing.items()
    }
    assert {one.current_state for one in existing.values()} == {"ready"}
    assert {computes[one.id] for one in existing.values()} == {1}
    assert sum(result.created for result in summary.results) <= branches
    return summary


@pytest.mark.long
@pytest.mark.process
async def test_processes_create_each_branch_once(tmp_path: Path) -> None:
    await check(tmp_path, processes=4, branches=3, kills=2, seed=1, rate_limited=0.0)


@pytest.mark.scale
@pytest.mark.process
async def test_50_processes_create_each_branch_once(tmp_path: Path) -> None:
    await check(tmp_path, processes=50, branches=20, kills=25, seed=1)


@pytest.mark.soak
@pytest.mark.process
@pytest.mark.parametrize("seed", range(2, 12))
async def test_50_processes_with_other_faults(tmp_path: Path, seed: int) -> None:
    await check(tmp_path, processes=50, branches=20, kills=60, seed=seed)
