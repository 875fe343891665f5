"""Connections from addresses that a project does not allow."""

import asyncio
from urllib.parse import urlsplit

import pytest

from control_plane.tests.postgres.proxy.clients import parse_refusal, startup
from control_plane.tests.server.conftest import Plane
from neonctl_async.types import AllowedIps, BranchCreated, ProjectCreated, ProjectSettings
from tests.support.databases import uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


async def answer(created: ProjectCreated | BranchCreated, address: str) -> str:
    """Connect from an address. Return the refusal, or "" if the proxy asks for the password."""
    port = urlsplit(uri_of(created)).port
    packet = startup(
        user="neondb_owner", database="neondb", options=f"endpoint={created.endpoints[0].id}"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    try:
        writer.write(packet)
        first = await reader.readexactly(1)
        return "" if first == b"R" else parse_refusal(first + await reader.read()).message
    finally:
        writer.close()


async def set_rules(plane: Plane, settings: ProjectSettings) -> None:
    await plane.neon.projects.update(plane.project_id, settings=settings, wait=True)


@pytest.mark.fact("connections-15")
async def test_allowed_ips_admit_other_addresses_of_the_machine(plane: Plane) -> None:
    assert await answer(plane.project, "127.0.0.3") == ""
    await set_rules(plane, ProjectSettings(allowed_ips=AllowedIps(ips=["127.0.0.2"])))
    assert await answer(plane.project, "127.0.0.2") == ""
    refusal = await answer(plane.project, "127.0.0.3")
    assert refusal.startswith("This IP address 127.0.0.3 is not allowed to connect")
    await set_rules(plane, ProjectSettings(allowed_ips=AllowedIps(ips=[])))
    assert await answer(plane.project, "127.0.0.3") == ""


async def test_allowed_ips_can_apply_to_protected_branches_only(plane: Plane) -> None:
    allowed = AllowedIps(ips=["127.0.0.2"], protected_branches_only=True)
    await set_rules(plane, ProjectSettings(allowed_ips=allowed))
    assert await answer(plane.project, "127.0.0.3") == ""
    await plane.neon.branches.update(plane.project_id, plane.root_id, protected=True)
    assert "127.0.0.3 is not allowed" in await answer(plane.project, "127.0.0.3")


async def test_refused_client_does_not_start_the_compute(plane: Plane) -> None:
    await set_rules(plane, ProjectSettings(block_public_connections=True))
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.suspend(plane.project_id, endpoint_id, wait=True)
    for address in ("127.0.0.1", "127.0.0.2"):
        assert "from a blocked network" in await answer(plane.project, address)
    endpoint = await plane.neon.endpoints.get(plane.project_id, endpoint_id)
    assert endpoint.current_state == "idle"
