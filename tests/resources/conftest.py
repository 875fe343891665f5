"""A local control plane that uses the clock of the event loop, and clients for it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane
from tests.connections.postgres_server import PostgresServer, authenticating
from tests.resources.computes import Api
from tests.support.records import EPOCH


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    """A local control plane whose operations take one second, which virtual time skips."""
    loop = asyncio.get_running_loop()
    async with LocalControlPlane(
        clock=lambda: EPOCH + timedelta(seconds=loop.time())
    ) as control_plane:
        yield control_plane


@pytest.fixture
async def guest(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client with the API key of another user, ``guest@example.com``."""
    user_id = await control_plane.create_user("guest", "guest@example.com")
    key = await control_plane.create_api_key("guest", user_id=user_id)
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


@pytest.fixture
async def server() -> AsyncIterator[PostgresServer]:
    """A server that requests authentication."""
    async with PostgresServer(authenticating) as server:
        yield server


@pytest.fixture
async def api(server: PostgresServer) -> AsyncIterator[Api]:
    """An API whose computes are behind the server."""
    async with Api(port=server.port) as api:
        yield api
