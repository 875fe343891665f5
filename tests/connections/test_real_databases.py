"""Connections to real databases of a local control plane, with and without TLS."""

import asyncio

import pytest

from neonctl_async import NeonClient, NotConnectableError
from neonctl_local import PostgresSettings
from tests.support.databases import READ_WRITE, databases
from tests.support.postgres import skip_without_postgres

pytestmark = pytest.mark.postgres


@pytest.fixture(autouse=True)
async def postgres() -> None:
    await asyncio.to_thread(skip_without_postgres)


async def change_everything(neon: NeonClient) -> None:
    """Make calls that create, start and restart computes, and wait for connections."""
    project = await neon.projects.create(name="shop", wait="connect")
    project_id = project.project.id
    created = await neon.branches.create(project_id, endpoints=[READ_WRITE], wait="connect")
    branch_id, compute_id = created.branch.id, created.endpoints[0].id
    await neon.endpoints.create(project_id, branch_id=branch_id, type="read_only", wait="connect")
    await neon.roles.create(project_id, branch_id, name="ada", wait="connect")
    await neon.branches.reset_from_parent(project_id, branch_id, wait="connect")
    await neon.endpoints.restart(project_id, compute_id, wait="connect")
    await neon.endpoints.suspend(project_id, compute_id, wait=True)
    started = await neon.endpoints.wait_connectable(project_id, compute_id)
    assert started.current_state == "active"  # unlike on Neon, a connection starts the compute
    await neon.endpoints.update(project_id, compute_id, disabled=True, wait=True)
    with pytest.raises(NotConnectableError, match="it is disabled"):
        await neon.endpoints.wait_connectable(project_id, compute_id)


@pytest.mark.long
@pytest.mark.process
async def test_computes_are_connectable_without_tls() -> None:
    async with databases() as (_, neon):
        await change_everything(neon)


async def test_computes_are_connectable_with_tls() -> None:
    async with databases(postgres=PostgresSettings(tls=True)) as (_, neon):
        await change_everything(neon)
