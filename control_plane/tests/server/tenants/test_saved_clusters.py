"""Saved databases: a reset returns to them, and new branches are prepared copies of them."""

import errno
import os
from pathlib import Path

import pytest
from psycopg import AsyncConnection

from control_plane.tests.server.conftest import Plane
from neonctl_async import OperationFailedError
from neonctl_local import LocalControlPlane
from neonctl_local.postgres import clusters
from tests.support.databases import client, execute, uri_of

pytestmark = pytest.mark.postgres

NAMES = "SELECT string_agg(name, ' ' ORDER BY name) FROM people"
INSERT = "INSERT INTO people VALUES ('Grace')"


async def save(plane: Plane) -> None:
    """Create a table, suspend the compute, and save."""
    await execute(plane.uri, "CREATE TABLE people AS SELECT 'Ada' AS name", "SELECT 1")
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    await plane.control_plane.save()


async def test_reset_returns_to_the_saved_data_of_the_default_branch(plane: Plane) -> None:
    await save(plane)
    for _ in range(2):
        await execute(plane.uri, INSERT, "SELECT 1")
        await plane.control_plane.reset()
        assert await execute(plane.uri, NAMES) == "Ada"


async def test_reset_returns_to_the_saved_password(plane: Plane) -> None:
    await save(plane)
    role = plane.project.roles[0].name
    await plane.neon.roles.reset_password(plane.project_id, plane.root_id, role, wait=True)
    await plane.control_plane.reset()
    assert await execute(plane.uri, NAMES) == "Ada"


async def test_reset_returns_to_a_deleted_project(plane: Plane) -> None:
    await save(plane)
    await plane.neon.projects.delete(plane.project_id)
    await plane.control_plane.reset()
    assert await execute(plane.uri, NAMES) == "Ada"


async def test_reset_deletes_branches_and_their_databases(plane: Plane) -> None:
    await save(plane)
    branch = await plane.branch()
    assert await execute(uri_of(branch), INSERT, NAMES) == "Ada Grace"
    await plane.control_plane.reset()
    assert await plane.neon.branches.count(plane.project_id) == 1
    with pytest.raises(Exception, match="requested endpoint could not be found"):
        await execute(uri_of(branch), NAMES)


async def test_database_that_was_saved_while_it_ran_is_restored_and_idle(plane: Plane) -> None:
    await execute(plane.uri, "CREATE TABLE people AS SELECT 'Ada' AS name", "SELECT 1")
    await plane.control_plane.save()
    await execute(plane.uri, INSERT, "SELECT 1")
    await plane.control_plane.reset()
    [endpoint] = await plane.neon.endpoints.list(plane.project_id)
    assert endpoint.current_state == "idle"
    assert await execute(plane.uri, NAMES) == "Ada"


async def test_shared_branch_keeps_its_rows_and_connections(plane: Plane) -> None:
    await save(plane)
    created = await plane.branch()
    uri = uri_of(created)
    await plane.control_plane.save(shared=[created.branch.id])
    async with await AsyncConnection.connect(uri, autocommit=True) as connection:
        for count in (2, 3):
            await connection.execute(INSERT)
            await execute(plane.uri, INSERT, "SELECT 1")
            await plane.control_plane.reset()
            rows = await (await connection.execute("SELECT count(*) FROM people")).fetchone()
            assert rows == (count,)
            assert await execute(plane.uri, NAMES) == "Ada"
    assert await execute(uri, NAMES) == "Ada Grace Grace"


async def test_shared_branch_can_be_idle_during_a_reset(plane: Plane) -> None:
    await save(plane)
    created = await plane.branch()
    await plane.control_plane.save(shared=[created.branch.id])
    await execute(uri_of(created), INSERT, "SELECT 1")
    await plane.neon.endpoints.suspend(plane.project_id, created.endpoints[0].id, wait=True)
    await plane.control_plane.reset()
    endpoint = await plane.neon.endpoints.get(plane.project_id, created.endpoints[0].id)
    assert endpoint.current_state == "idle"
    assert await execute(uri_of(created), NAMES) == "Ada Grace"


async def test_second_save_restores_what_was_changed_since_the_first(plane: Plane) -> None:
    await save(plane)
    await execute(plane.uri, INSERT, "SELECT 1")
    await plane.control_plane.save()
    await execute(plane.uri, "DELETE FROM people", "SELECT 1")
    await plane.control_plane.reset()
    assert await execute(plane.uri, NAMES) == "Ada Grace"


async def test_kept_template_is_the_start_of_later_projects(
    plane: Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    await save(plane)
    key = "0" * 64
    assert await plane.control_plane.load_template(key) == ""
    template = await plane.control_plane.publish_template(plane.root_id)
    assert await plane.control_plane.keep_template(template, key) == ""
    await execute(plane.uri, INSERT, "SELECT 1")
    await plane.control_plane.use_template(await plane.control_plane.load_template(key))
    for _ in range(2):
        assert await execute(uri_of(await plane.neon.projects.create(wait=True)), NAMES) == "Ada"


async def test_project_cannot_take_a_branch(plane: Plane) -> None:
    with pytest.raises(ValueError, match=f"^template is '{plane.root_id}': expected the id"):
        await plane.control_plane.use_template(plane.root_id, is_last=True)


async def test_last_project_of_a_template_takes_it(plane: Plane) -> None:
    await save(plane)
    template = await plane.control_plane.publish_template(plane.root_id)
    await plane.control_plane.use_template(template, is_last=True)
    assert await execute(uri_of(await plane.neon.projects.create(wait=True)), NAMES) == "Ada"
    with pytest.raises(OperationFailedError, match=f"no data of {template}"):
        await plane.neon.projects.create(wait=True)


async def test_reason_is_returned_if_a_template_cannot_be_kept(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(clusters, "keep_migrated", fail)
    template = await plane.control_plane.publish_template(plane.root_id)
    problem = await plane.control_plane.keep_template(template, "0" * 64)
    assert problem == "[Errno 28] No space left on device"


async def test_save_is_refused_while_operations_run(plane: Plane) -> None:
    await plane.neon.branches.create(plane.project_id)
    with pytest.raises(ValueError, match=r"operations of this tenant are running: wait for them"):
        await plane.control_plane.save()


async def test_prepared_branches_are_copies_of_the_saved_data(plane: Plane) -> None:
    await save(plane)
    await plane.control_plane.prepare_branches(plane.root_id, 1)
    for _ in range(3):
        await execute(plane.uri, INSERT, "SELECT 1")  # the compute runs: no copy can be prepared
        await plane.control_plane.reset()
        assert await execute(uri_of(await plane.branch()), NAMES) == "Ada"


async def test_template_is_the_start_of_the_projects_of_other_tenants(plane: Plane) -> None:
    await save(plane)
    template = await plane.control_plane.publish_template(plane.root_id)
    await plane.control_plane.reset()
    tenant = await plane.control_plane.add_tenant()
    async with client(plane.control_plane, tenant.api_key) as neon:
        await tenant.use_template(template)
        copied = await neon.projects.create(name="copied", wait=True)
        await tenant.use_template(None)
        empty = await neon.projects.create(name="empty", wait=True)
    assert await execute(uri_of(copied), NAMES) == "Ada"
    assert await execute(uri_of(empty), "SELECT to_regclass('people') IS NULL")


async def test_templates_need_databases() -> None:
    async with LocalControlPlane() as control_plane:
        with pytest.raises(ValueError, match="has no real databases: pass postgres=True"):
            await control_plane.use_template(None)
