"""Blocks with an ephemeral branch, and what is there before and after."""

from neonctl_async import NeonClient
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import BranchCreated

CREATE = "POST /projects/{project_id}/branches"
DELETE = "DELETE /projects/{project_id}/branches/{branch_id}"


async def names(neon: NeonClient, project_id: str) -> list[str]:
    return [branch.name async for branch in neon.branches.list(project_id)]


def sent(control_plane: LocalControlPlane, method: str) -> int:
    return sum(one.method == method and "/branches" in one.path for one in control_plane.requests)


async def enter(neon: NeonClient, project_id: str) -> BranchCreated:
    """Enter the block and leave it."""
    async with neon.branches.ephemeral(project_id) as created:
        return created
