"""A local control plane for each test, with a clock that only the test advances."""

from collections.abc import AsyncIterator

import pytest

from neonctl_async.local import LocalControlPlane, ManualClock
from tests.local.client import Client


@pytest.fixture
def clock() -> ManualClock:
    """Return a clock that only the test advances."""
    return ManualClock()


@pytest.fixture
async def control_plane(clock: ManualClock) -> AsyncIterator[LocalControlPlane]:
    """Run a local control plane with the default settings. Operations take one second."""
    async with LocalControlPlane(clock=clock) as control_plane:
        yield control_plane


@pytest.fixture
async def api(control_plane: LocalControlPlane) -> AsyncIterator[Client]:
    """Open a client with the first key, which belongs to an administrator."""
    async with Client(control_plane) as client:
        yield client


@pytest.fixture
async def project_id(api: Client) -> str:
    """Create a project of the first organization. Its two operations are running."""
    created = await api.project()
    return str(created["project"]["id"])


@pytest.fixture
async def branch_path(api: Client, clock: ManualClock, project_id: str) -> str:
    """Return the path of the first branch of the project. Its compute is running."""
    clock.advance(9)
    (branch,) = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    return f"/projects/{project_id}/branches/{branch['id']}"
