"""The databases of a tenant over restarts, resets and crashes."""

import asyncio
import io
import os
import signal
import subprocess
from pathlib import Path

import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_local import LocalControlPlane
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.storage.jsonl import export_data, import_data
from tests.support.databases import (
    READ_WRITE,
    client,
    databases,
    execute,
    uri_of,
)
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


@pytest.mark.long
@pytest.mark.process
async def test_databases_survive_a_restart(open_directory: Path) -> None:
    data = open_directory / "data.db"
    async with databases(data=data) as (control_plane, neon):
        key = control_plane.api_key
        project = await neon.projects.create(name="test", wait=True)
        await execute(uri_of(project), "CREATE TABLE t AS SELECT 7 AS n", "SELECT 1")
        branch = await neon.branches.create(project.project.id, endpoints=[READ_WRITE], wait=True)
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, key) as neon,
    ):
        for branch_id in (project.branch.id, branch.branch.id):
            uri = await neon.projects.connection_uri(
                project.project.id,
                branch_id=branch_id,
                database_name="neondb",
                role_name="neondb_owner",
            )
            assert await execute(uri.reveal(), "SELECT n FROM t") == 7


def move_data(data: Path, new: Path) -> None:
    """Export a data file, import it, and copy its clusters, as the documentation describes."""
    output = io.BytesIO()
    export_data(data, output)
    import_data(new, output.getvalue().splitlines())
    subprocess.run(["cp", "-a", f"{data}.d", f"{new}.d"], check=True)


async def test_databases_work_with_imported_records_and_copied_clusters(
    open_directory: Path,
) -> None:
    data, new = open_directory / "data.db", open_directory / "new.db"
    async with databases(data=data) as (control_plane, neon):
        key = control_plane.api_key
        project = await neon.projects.create(name="test", wait=True)
        await execute(uri_of(project), "CREATE TABLE t AS SELECT 7 AS n", "SELECT 1")
    await asyncio.to_thread(move_data, data, new)
    async with (
        LocalControlPlane(data=new, postgres=True) as control_plane,
        client(control_plane, key) as neon,
    ):
        uri = await neon.projects.connection_uri(
            project.project.id, database_name="neondb", role_name="neondb_owner"
        )
        assert await execute(uri.reveal(), "SELECT n FROM t") == 7


async def test_second_control_plane_cannot_use_the_same_data(open_directory: Path) -> None:
    data = open_directory / "data.db"
    async with databases(data=data):
        with pytest.raises(RuntimeError, match="uses it; connect to its server"):
            await LocalControlPlane(data=data, postgres=True).start()


async def test_reset_deletes_all_databases(plane: Plane) -> None:
    await plane.branch()
    await plane.control_plane.reset()
    with pytest.raises(Exception, match="requested endpoint could not be found"):
        await execute(plane.uri, "SELECT 1")
    project = await plane.neon.projects.create(name="new", wait=True)
    assert await execute(uri_of(project), "SELECT 1") == 1


async def test_reset_after_a_failed_deletion_of_clusters_leaves_the_tenant_usable(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(_clusters: Clusters, id: str) -> int:
        raise PermissionError(id)

    monkeypatch.setattr(Clusters, "size", fail)
    async with databases() as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        branch = await neon.branches.create(project.project.id, wait=True)
        await neon.branches.delete(project.project.id, branch.branch.id, wait=True)
        await control_plane.save()
        for _ in range(2):
            await control_plane.reset()
        assert "clusters of a tenant could not be deleted" in caplog.text
        async with asyncio.timeout(20):
            await neon.projects.create(name="next", wait=True)


async def test_tenant_is_usable_after_a_cancelled_reset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    working, stopping, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def end_late(*_: object) -> None:
        working.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopping.set()
            await may_end.wait()

    async with databases() as (control_plane, neon):
        with monkeypatch.context() as patch:
            patch.setattr(Clusters, "initialize", end_late)
            project = await neon.projects.create(name="test")
            await working.wait()
            resetting = asyncio.create_task(control_plane.reset())
            await stopping.wait()
            resetting.cancel()
            may_end.set()
            with pytest.raises(asyncio.CancelledError):
                await resetting
        async with asyncio.timeout(20):
            await neon.operations.wait(project)
        assert await execute(uri_of(project), "SELECT 1") == 1


async def test_crashed_server_starts_again_at_the_next_connection(
    plane: Plane,
) -> None:
    await execute(plane.uri, "CREATE TABLE t AS SELECT 7 AS n", "SELECT 1")
    directory = await execute(plane.uri, "SHOW unix_socket_directories")
    port = await execute(plane.uri, "SHOW port")
    lock_file = Path(f"{directory}/.s.PGSQL.{port}.lock")
    text = await asyncio.to_thread(lock_file.read_text)
    os.kill(int(text.split()[0]), signal.SIGKILL)

    async def is_idle() -> bool:
        endpoint = await plane.neon.endpoints.get(plane.project_id, plane.project.endpoints[0].id)
        return endpoint.current_state == "idle"

    await until(is_idle)
    assert await execute(plane.uri, "SELECT n FROM t") == 7
