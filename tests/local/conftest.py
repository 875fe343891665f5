"""A plane for each test, under a clock that only the test moves."""

from collections.abc import AsyncIterator

import pytest

from neonctl_async.local import LocalControlPlane, ManualClock
from tests.local.client import Client


@pytest.fixture
def clock() -> ManualClock:
    """A clock that stands still until the test moves it."""
    return ManualClock()


@pytest.fixture
async def control_plane(clock: ManualClock) -> AsyncIterator[LocalControlPlane]:
    """A plane with the default settings: operations take a second."""
    async with LocalControlPlane(clock=clock) as control_plane:
        yield control_plane


@pytest.fixture
async def api(control_plane: LocalControlPlane) -> AsyncIterator[Client]:
    """A client with the first key, of an administrator of the first organization."""
    async with Client(control_plane) as client:
        yield client


@pytest.fixture
async def project_id(api: Client) -> str:
    """A project of the first organization, its two operations under way."""
    project = await api.project()
    return str(project["project"]["id"])
