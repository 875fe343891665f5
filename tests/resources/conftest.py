"""A local control plane on the clock of the loop, and clients of it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from neonctl_async import NeonClient
from neonctl_async.local import LocalControlPlane
from tests.support.records import EPOCH


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    """A plane whose operations take a second, which is none to a test of virtual time."""
    loop = asyncio.get_running_loop()
    async with LocalControlPlane(
        clock=lambda: EPOCH + timedelta(seconds=loop.time())
    ) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client of the first user."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


@pytest.fixture
async def guest(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client of another user, ``guest@example.com``."""
    user_id = await control_plane.create_user("guest", "guest@example.com")
    key = await control_plane.create_api_key("theirs", user_id=user_id)
    async with NeonClient(key, base_url=control_plane.base_url) as neon:
        yield neon


@pytest.fixture
async def project_id(neon: NeonClient) -> str:
    """A project of the first user, with its branch, compute, role and database."""
    return (await neon.projects.create(name="shop", wait=True)).project.id


@pytest.fixture
async def branch_id(neon: NeonClient, project_id: str) -> str:
    """The default branch of the project."""
    return (await neon.branches.default(project_id)).id
