"""The example of a fleet created by the workers of a Dask cluster, one of which is killed."""

import asyncio
import os
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from neonctl_async import NeonClient
from tests.support.server_process import serving
from tests.support.until import until

pytestmark = [pytest.mark.process, pytest.mark.scale]
EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_fleet.py"
BRANCHES = 1000
PROJECTS = 5
WORKERS = 4


async def branches_in(neon: NeonClient, project_ids: Sequence[str]) -> int:
    """Return the number of branches, without the default ones."""
    counts = await asyncio.gather(*(neon.branches.count(one) for one in project_ids))
    return sum(counts) - len(project_ids)


async def check(neon: NeonClient, project_ids: Sequence[str]) -> None:
    """Check that each branch was created by exactly one operation, and that all are finished."""
    names: list[str] = []
    for project_id in project_ids:
        operations = await neon.operations.list(project_id, limit=1000).collect()
        assert {operation.status for operation in operations} == {"finished"}
        created = Counter(one.branch_id for one in operations if one.action == "create_branch")
        branches = await neon.branches.list(project_id, limit=1000).collect()
        assert created == {branch.id: 1 for branch in branches if not branch.default}
        names += [branch.name for branch in branches if not branch.default]
    assert sorted(names) == sorted(f"preview-{number}" for number in range(BRANCHES))


def is_gone(session: int) -> bool:
    try:
        os.killpg(session, 0)
    except ProcessLookupError:
        return True
    return False


async def test_each_branch_is_created_once_even_if_a_worker_is_killed(tmp_path: Path) -> None:
    async with (
        serving("--quiet", "--duration", "2", "--lock", "none") as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        ids = [(await neon.projects.create(wait=True)).project.id for _ in range(PROJECTS)]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, EXAMPLE, str(BRANCHES), "--projects", ",".join(ids)),
            *("--workers", str(WORKERS), "--per-minute", "60000", "--per-second", "1000"),
            env=os.environ
            | {"NEON_API_KEY": control_plane.api_key, "NEON_API_HOST": control_plane.base_url},
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        assert process.stdout is not None
        _, *pids = (await process.stdout.readline()).split()
        assert len(pids) == WORKERS
        count = 0

        async def is_half_done() -> bool:
            nonlocal count
            count = await branches_in(neon, ids)
            return count >= BRANCHES * 0.45

        await until(is_half_done, every=0.1)
        os.kill(int(pids[0]), signal.SIGKILL)
        assert count < BRANCHES
        output, _ = await process.communicate()
        await check(neon, ids)
    assert (process.returncode, output.splitlines()[-1]) == (0, b"1000 of 1000 branches are ready")
    await until(lambda: is_gone(process.pid))
    assert await asyncio.to_thread(os.listdir, tmp_path) == []
