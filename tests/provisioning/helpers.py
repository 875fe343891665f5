"""Helpers for the tests of ephemeral and ensured branches."""

from typing import Any

import msgspec
import pytest

from neonctl_async import EndpointSpec, NeonClient
from neonctl_async.types import BranchCreated, EnsuredBranch
from neonctl_local import Fault, LocalControlPlane

CREATE = "POST /projects/{project_id}/branches"
DELETE = "DELETE /projects/{project_id}/branches/{branch_id}"
COMPUTE = EndpointSpec(type="read_write")
unlocked = pytest.mark.control_plane(lock="none")
"""No request gets a 423: for tests that count requests, or whose operations never finish."""


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


def inject_faults(
    control_plane: LocalControlPlane, seed: int, *, rate_limited: float = 0.03
) -> None:
    """Lose requests and responses, reject requests, and lock the project."""
    faults = [
        Fault(route=CREATE, probability=0.15, drop=True, when="after"),
        Fault(route=CREATE, probability=0.15, status=423),
        Fault(route=CREATE, probability=0.1, delay=0.2, drop=True, when="after"),
        Fault(route=CREATE, probability=0.1, status=500, when="after"),
        Fault(probability=0.05, drop=True),
        Fault(probability=0.05, truncate=True),
        Fault(probability=rate_limited, status=429, headers={"Retry-After": "0"}),
        Fault(probability=0.03, status=503),
    ]
    for number, fault in enumerate(faults):
        control_plane.inject(msgspec.structs.replace(fault, seed=100 * seed + number))
