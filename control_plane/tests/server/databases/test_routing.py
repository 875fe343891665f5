"""Connections to computes: they start, resume and are refused as on Neon."""

import asyncio
from pathlib import Path

import asyncpg
import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from control_plane.tests.storage.limits import largest_file
from neonctl_local import PostgresSettings
from neonctl_local.postgres.cluster import APPLIED
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Desired
from tests.support.databases import databases, execute, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


SET_AND_SHOW = ("SET search_path = shop", "SHOW search_path")


async def status(plane: Plane) -> str | None:
    endpoint = await plane.neon.endpoints.get(plane.project_id, plane.project.endpoints[0].id)
    return endpoint.current_state


@pytest.mark.fact("connections-8")
@pytest.mark.long
@pytest.mark.process
async def test_connection_starts_an_idle_compute(plane: Plane) -> None:
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    assert await status(plane) == "idle"
    assert await execute(plane.uri, "SELECT 1") == 1
    assert await status(plane) == "active"
    actions = [page.action async for page in plane.neon.operations.list(plane.project_id)]
    assert actions[:2] == ["start_compute", "suspend_compute"]


async def test_many_connections_start_a_compute_once(plane: Plane) -> None:
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    assert await asyncio.gather(*(execute(plane.uri, "SELECT 1") for _ in range(5))) == [1] * 5
    actions = [page.action async for page in plane.neon.operations.list(plane.project_id)]
    assert actions[:2] == ["start_compute", "suspend_compute"]


@pytest.mark.parametrize(
    ("moment", "reason"),
    [
        ("timestamp:2020-01-01T00:00:00Z", "with history=True or --history"),
        ("lsn:0/1A2B3C", "with history=True or --history"),
        ("timestamp:2099-01-01T00:00:00Z", "is not within the restore window"),
        ("timestamp:yesterday", "neon_timestamp: 'yesterday' is invalid: expected"),
        ("timestamp:2026-01-01T00:00:00", "is invalid"),
        ("timestamp:0001-01-01T00:00:00+01:00", "is invalid"),
        ("lsn:1", "neon_lsn: '1' is invalid"),
        ("lsn:2026-01-01T00:00:00Z", "neon_lsn: '2026-01-01T00:00:00Z' is invalid"),
    ],
)
async def test_connection_of_the_past_without_history_is_refused_with_the_reason(
    plane: Plane, moment: str, reason: str
) -> None:
    uri = plane.past_uri(moment, plane.root_id)
    with pytest.raises(psycopg.OperationalError) as refused:
        await execute(uri, "SELECT 1")
    assert reason in str(refused.value)
    password = plane.uri.partition("@")[0].rpartition(":")[2]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await execute(uri.replace(password, "wrong"), "SELECT 1")


async def test_connection_to_a_deleted_branch_is_refused(plane: Plane) -> None:
    branch = await plane.branch()
    await plane.neon.branches.delete(plane.project_id, branch.branch.id, wait=True)
    with pytest.raises(psycopg.OperationalError, match="requested endpoint could not be found"):
        await execute(uri_of(branch), "SELECT 1")


async def test_compute_whose_server_ended_before_its_start_was_recorded_starts_again(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Clusters.start

    async def start_and_end(clusters: Clusters, id: str, desired: Desired) -> None:
        await start(clusters, id, desired)
        await clusters.stop(id)

    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.suspend(plane.project_id, endpoint_id, wait=True)
    monkeypatch.setattr(Clusters, "start", start_and_end)
    await plane.neon.endpoints.start(plane.project_id, endpoint_id, wait=True)
    monkeypatch.undo()
    assert await status(plane) == "active"
    assert await execute(plane.uri, "SELECT 1") == 1


async def test_client_whose_compute_is_starting_during_a_reset_is_connected_after_it(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.suspend(plane.project_id, endpoint_id, wait=True)
    await plane.control_plane.save()
    starting = asyncio.Event()

    async def start_for_ever(*_: object) -> None:
        starting.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Clusters, "start", start_for_ever)
    connecting = asyncio.create_task(execute(plane.uri, "SELECT 1"))
    await starting.wait()
    monkeypatch.undo()
    await plane.control_plane.reset()
    async with asyncio.timeout(20):
        assert await connecting == 1


async def test_failed_start_is_shown_to_the_client(plane: Plane) -> None:
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    await plane.control_plane.fail_next("start_compute", error="no capacity")
    with pytest.raises(psycopg.OperationalError, match="the compute did not start: no capacity"):
        await execute(plane.uri, "SELECT 1")
    assert await execute(plane.uri, "SELECT 1") == 1


async def test_client_of_a_branch_with_a_damaged_file_learns_what_to_do(
    open_directory: Path,
) -> None:
    async with databases(data=open_directory / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        await neon.endpoints.suspend(project.project.id, project.endpoints[0].id, wait=True)
        [file] = await asyncio.to_thread(lambda: [*open_directory.glob(f"*/clusters/*/{APPLIED}")])
        await asyncio.to_thread(file.write_text, "{")
        with pytest.raises(psycopg.OperationalError, match=f"{APPLIED}' is damaged .*: delete it"):
            await execute(uri_of(project), "SELECT 1")
        await asyncio.to_thread(file.unlink)
        assert await execute(uri_of(project), "SELECT 1") == 1


async def test_pooler_host_uses_the_pooler(plane: Plane) -> None:
    uri = await plane.neon.projects.connection_uri(
        plane.project_id, database_name="neondb", role_name="neondb_owner", pooled=True
    )
    connection = await asyncpg.connect(uri.asyncpg)
    try:
        assert [await connection.fetchval(query) for query in SET_AND_SHOW][1] != "shop"
        await connection.execute("ALTER ROLE CURRENT_USER PASSWORD 'changed'")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(uri.asyncpg)
        other = await asyncpg.connect(uri.asyncpg, password="changed")
        await other.close()
    finally:
        await connection.close()


async def test_pooler_host_connects_directly_without_a_pooler() -> None:
    async with databases(postgres=PostgresSettings(pooler=False)) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        connection = await asyncpg.connect(project.connection_uri.as_pooled().asyncpg)
        try:
            assert [await connection.fetchval(query) for query in SET_AND_SHOW][1] == "shop"
        finally:
            await connection.close()


async def test_running_compute_accepts_connections_while_the_disk_is_full(
    open_directory: Path,
) -> None:
    async with databases(data=open_directory / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        uri = uri_of(project)
        assert await execute(uri, "SELECT 1") == 1
        with largest_file(1 << 12):
            assert await execute(uri, "SELECT 2") == 2
