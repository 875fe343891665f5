"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from neonctl_async import EndpointSpec, NeonClient
from neonctl_async.local import Durations, LocalControlPlane
from tests.local.postgres.drivers import DRIVERS
from tests.support.postgres import skip_without_postgres

pytestmark = pytest.mark.process

LIST = "SELECT string_agg(name, ', ' ORDER BY name) FROM visits"


@pytest.fixture
async def neon() -> AsyncIterator[NeonClient]:
    """A client of a local control plane with databases."""
    await asyncio.to_thread(skip_without_postgres)
    async with LocalControlPlane(postgres=True, durations=Durations(default=0)) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            yield neon


@pytest.mark.parametrize("driver", DRIVERS)
async def test_driver_sees_that_parent_and_branch_differ(driver: str, neon: NeonClient) -> None:
    execute = DRIVERS[driver]
    project = await neon.projects.create(name=driver, wait=True)
    parent = project.connection_uris[0].connection_uri.reveal()
    assert await execute(parent, "CREATE TABLE visits (name text)") is None
    await execute(parent, "INSERT INTO visits VALUES ('of both')")
    created = await neon.branches.create(
        project.project.id, endpoints=[EndpointSpec(type="read_write")], wait=True
    )
    branch = created.connection_uri.reveal()
    await execute(branch, "INSERT INTO visits VALUES ('of the branch')")
    await execute(parent, "INSERT INTO visits VALUES ('of the parent')")
    assert await execute(branch, LIST) == "of both, of the branch"
    assert await execute(parent, LIST) == "of both, of the parent"
