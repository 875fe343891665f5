"""Connections of the past: ``options=neon_timestamp:…`` and ``neon_lsn:…``."""

import asyncio
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_async.types import AllowedIps, ProjectSettings
from neonctl_local.server.tenants import past
from tests.support.databases import databases, execute, uri_of
from tests.support.until import until

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.long,
    pytest.mark.usefixtures("require_postgres"),
    pytest.mark.control_plane(history=True),
]

COUNT = "SELECT count(*) FROM rows"


async def fill(plane: Plane) -> tuple[str, str]:
    """Insert a row, and return the time and the LSN before a second one."""
    await execute(plane.uri, "CREATE TABLE rows (n int)", "INSERT INTO rows VALUES (1)")
    lsn = await execute(plane.uri, "SELECT pg_current_wal_lsn()::text")
    moment = datetime.now(UTC).isoformat()
    await execute(plane.uri, "INSERT INTO rows VALUES (2)")
    return f"timestamp:{moment}", f"lsn:{lsn}"


def clusters(folder: Path) -> int:
    """Return the number of data directories."""
    found = os.walk(folder / "data.db.d")  # ignores directories that are being removed
    return sum("pg_hba.conf" in files for _, _, files in found)


async def refusal(uri: str) -> str:
    """Return the message with which a connection is refused."""
    with pytest.raises(psycopg.OperationalError) as refused:
        await execute(uri, "SELECT 1")
    return str(refused.value)


@pytest.mark.fact("connections-16")
async def test_connection_reads_the_data_of_a_time_or_lsn(plane: Plane) -> None:
    moments = await fill(plane)
    for moment in moments:
        assert await execute(plane.past_uri(moment, plane.root_id), COUNT) == 1
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.suspend(plane.project_id, endpoint_id, wait=True)
    for moment in moments:
        assert await execute(plane.past_uri(moment), COUNT) == 1
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await execute(plane.past_uri(moments[0]), "INSERT INTO rows VALUES (3)")
    compute = await plane.neon.endpoints.get(plane.project_id, endpoint_id)
    assert compute.current_state == "idle"
    assert await execute(plane.uri, COUNT) == 2


async def test_past_accepts_the_present_password_only(plane: Plane) -> None:
    moment, _ = await fill(plane)
    first = plane.past_uri(moment)
    changed = re.sub(":[^:@]*@", ":changed@", first)
    refused = "password authentication failed for user 'neondb_owner'"
    endpoint_id = plane.project.endpoints[0].id
    for accepted, old in ((first, changed), (changed, first)):
        for _ in ("running", "suspended"):
            assert await execute(accepted, COUNT) == 1
            assert refused in await refusal(old)
            await plane.neon.endpoints.suspend(plane.project_id, endpoint_id, wait=True)
        if accepted is first:
            await execute(plane.uri, "ALTER ROLE neondb_owner PASSWORD 'changed'", "SELECT 1")


async def test_past_of_a_branch_has_its_limits(plane: Plane) -> None:
    moment, lsn = await fill(plane)
    branch = await plane.branch()
    window = "neon_timestamp: 2020-01-01T00:00:00Z is not within the restore window"
    assert window in await refusal(plane.past_uri("timestamp:2020-01-01T00:00:00Z"))
    assert "not within the restore window" in await refusal(
        plane.past_uri(moment, branch.branch.id)
    )
    assert "its WAL ends at" in await refusal(plane.past_uri("lsn:FF/0"))
    assert "not together with an LSN" in await refusal(plane.past_uri(f"{moment} neon_{lsn}"))
    await plane.neon.branches.delete(plane.project_id, branch.branch.id, wait=True)
    deleted = plane.past_uri(moment, branch.branch.id)
    assert "requested endpoint could not be found" in await refusal(deleted)
    addresses = AllowedIps(ips=["192.0.2.1"])
    settings = ProjectSettings(allowed_ips=addresses)
    await plane.neon.projects.update(plane.project_id, settings=settings, wait=True)
    assert "is not allowed to connect" in await refusal(plane.past_uri(moment))


async def test_past_is_there_after_a_reset(plane: Plane) -> None:
    await plane.control_plane.save()
    await plane.control_plane.reset()
    moment, _ = await fill(plane)
    assert await execute(plane.past_uri(moment), COUNT) == 1


async def test_server_of_the_past_is_removed_after_its_last_connection(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    settings = {"data": open_directory / "data.db", "history": True}
    async with databases(**settings) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        plane = Plane(control_plane, neon, project)
        moment, _ = await fill(plane)

        async def is_as(number: int) -> bool:
            return await asyncio.to_thread(clusters, open_directory) == number

        before = await asyncio.to_thread(clusters, open_directory)
        async with await psycopg.AsyncConnection.connect(plane.past_uri(moment)) as session:
            assert not await is_as(before)
            await session.execute("SELECT 1")
        await until(lambda: is_as(before), every=0.05)
        assert await execute(uri_of(project), COUNT) == 2


async def test_deletion_of_a_branch_ends_the_connections_to_its_past(plane: Plane) -> None:
    branch = await plane.branch()
    id = branch.branch.id
    moment = datetime.now(UTC).isoformat()
    await execute(uri_of(branch), "CREATE TABLE later ()", "SELECT 1")
    uri = plane.past_uri(f"timestamp:{moment}", id)
    async with await psycopg.AsyncConnection.connect(uri, autocommit=True) as session:
        await plane.neon.branches.delete(plane.project_id, id, wait=True)

        async def is_closed() -> bool:
            try:
                await session.execute("SELECT 1")
            except psycopg.OperationalError:
                return True
            return False

        await until(is_closed, every=0.1)
