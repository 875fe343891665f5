"""What workers that were killed have left on the platform."""

import asyncio
import os
from datetime import UTC, datetime, timedelta

from neonctl_async.client import NeonClient
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.testing.naming import LIFETIME_SECONDS, PREFIX, prefix_of_run


def sweep_now(run: str) -> list[str]:
    """Delete the branches that a test run has left behind; a line for each, and each failure.

    So are those of other runs that should have expired.
    """
    return asyncio.run(_sweep(os.environ["NEON_PROJECT_ID"], run))


async def _sweep(project_id: str, run: str) -> list[str]:
    async with NeonClient() as neon:
        try:
            found = await neon.branches.list(project_id, search=PREFIX).collect()
        except NeonError as error:
            return [f"could not look for branches that were left behind: {error}"]
        now = datetime.now(UTC)
        left = [branch for branch in found if _is_left_behind(branch, run, now)]
        # Newest first: a branch may be the child of an older one.
        left.sort(key=lambda branch: branch.created_at, reverse=True)
        return [await _delete(neon, branch) for branch in left]


def _is_left_behind(branch: Branch, run: str, now: datetime) -> bool:
    if not branch.name.startswith(PREFIX):
        return False
    is_over = now - branch.created_at > timedelta(seconds=LIFETIME_SECONDS)
    return is_over or branch.name.startswith(prefix_of_run(run))


async def _delete(neon: NeonClient, branch: Branch) -> str:
    try:
        await neon.branches.delete(branch.project_id, branch.id)
    except NeonError as error:
        return f"branch {branch.name} ({branch.id}) was left behind: {error}"
    return f"deleted branch {branch.name} ({branch.id}), which was left behind"
