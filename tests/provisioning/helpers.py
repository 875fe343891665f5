"""Helpers for the tests of ephemeral and ensured branches."""

from typing import Any

from neonctl_async import EndpointSpec, NeonClient
from neonctl_async.local import LocalControlPlane
from neonctl_async.types import BranchCreated, EnsuredBranch

CREATE = "POST /projects/{project_id}/branches"
DELETE = "DELETE /projects/{project_id}/branches/{branch_id}"
COMPUTE = EndpointSpec(type="read_write")


async def branch_names(neon: NeonClient, project_id: str) -> list[str]:
    return [branch.name async for branch in neon.branches.list(project_id)]


def count_requests(control_plane: LocalControlPlane, method: str) -> int:
    """Count the requests for branches with this method."""
    return sum(
        request.method == method and "/branches" in request.path
        for request in control_plane.requests
    )


async def enter_and_exit(neon: NeonClient, project_id: str) -> BranchCreated:
    """Run an empty block with an ephemeral branch."""
    async with neon.branches.ephemeral(project_id) as created:
        return created


async def ensure(neon: NeonClient, project_id: str, **settings: Any) -> EnsuredBranch:
    return await neon.branches.ensure(project_id, name="preview", **settings)
