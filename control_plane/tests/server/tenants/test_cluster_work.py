"""The effect of operations on the databases of branches, seen through connections."""

from datetime import datetime, timedelta
from urllib.parse import urlsplit

import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_async import OperationFailedError
from neonctl_async.errors import APIError
from neonctl_async.types import EndpointSettings
from tests.support.databases import READ_WRITE, execute, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

COUNT = "SELECT count(*) FROM t"


async def create_table(uri: str) -> None:
    """Create a table with three rows."""
    await execute(uri, "CREATE TABLE t AS SELECT generate_series(1, 3) AS id", "SELECT 1")


async def add_row(uri: str) -> None:
    await execute(uri, "INSERT INTO t VALUES (0)", "SELECT 1")


@pytest.mark.fact("branch-data-1")
@pytest.mark.process
async def test_branch_has_the_data_of_its_parent_and_then_its_own(plane: Plane) -> None:
    await create_table(plane.uri)
    branch = await plane.branch()
    await add_row(uri_of(branch))
    grandchild = await plane.branch(parent_id=branch.branch.id)
    assert await execute(plane.uri, COUNT) == 3
    assert await execute(uri_of(branch), COUNT) == 4
    assert await execute(uri_of(grandchild), COUNT) == 4


async def test_branch_of_a_suspended_parent_has_its_data(plane: Plane) -> None:
    await create_table(plane.uri)
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    assert await execute(uri_of(await plane.branch()), COUNT) == 3


@pytest.mark.fact("branch-data-4")
async def test_schema_only_branch_has_tables_without_rows(plane: Plane) -> None:
    await create_table(plane.uri)
    branch = await plane.branch(init_source="schema-only")
    assert await execute(uri_of(branch), COUNT) == 0
    assert await execute(plane.uri, COUNT) == 3


@pytest.mark.fact("protected-5")
async def test_child_of_a_protected_branch_has_its_own_password(plane: Plane) -> None:
    await create_table(plane.uri)
    await plane.neon.branches.update(plane.project_id, plane.root_id, protected=True, wait=True)
    own = uri_of(await plane.branch())
    assert await execute(own, COUNT) == 3
    new, old = (str(urlsplit(uri).password) for uri in (own, plane.uri))
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await execute(own.replace(new, old), COUNT)


@pytest.mark.fact("reset-2", "branch-data-2")
async def test_reset_from_parent_keeps_the_connection_uri(plane: Plane) -> None:
    await create_table(plane.uri)
    branch = await plane.branch()
    await execute(uri_of(branch), "DROP TABLE t", "SELECT 1")
    await plane.neon.branches.reset_from_parent(plane.project_id, branch.branch.id, wait=True)
    assert await execute(uri_of(branch), COUNT) == 3


@pytest.mark.fact("protected-7")
async def test_child_of_a_protected_branch_keeps_its_connection_uri_when_it_is_reset(
    plane: Plane,
) -> None:
    await create_table(plane.uri)
    await plane.neon.branches.update(plane.project_id, plane.root_id, protected=True, wait=True)
    branch = await plane.branch()
    await execute(uri_of(branch), "DROP TABLE t", "SELECT 1")
    await plane.neon.branches.reset_from_parent(plane.project_id, branch.branch.id, wait=True)
    assert await execute(uri_of(branch), COUNT) == 3


async def test_restore_keeps_the_old_data_under_another_name(plane: Plane) -> None:
    await create_table(plane.uri)
    branch = await plane.branch()
    await add_row(uri_of(branch))
    await plane.neon.branches.restore(
        plane.project_id,
        branch.branch.id,
        source_branch_id=plane.root_id,
        preserve_under_name="before",
        wait=True,
    )
    assert await execute(uri_of(branch), COUNT) == 3
    pages = plane.neon.branches.list(plane.project_id)
    [preserved] = [found async for found in pages if found.name == "before"]
    compute = await plane.neon.endpoints.create(
        plane.project_id, branch_id=preserved.id, type="read_write", wait=True
    )
    uri = await plane.neon.projects.connection_uri(
        plane.project_id,
        branch_id=preserved.id,
        endpoint_id=compute.endpoint.id,
        database_name="neondb",
        role_name="neondb_owner",
    )
    assert await execute(uri.reveal(), COUNT) == 4


async def test_snapshot_restores_the_data_of_its_time(plane: Plane) -> None:
    await create_table(plane.uri)
    snapshot = await plane.neon.snapshots.create(plane.project_id, plane.root_id, wait=True)
    await add_row(plane.uri)
    await plane.neon.snapshots.restore(
        plane.project_id, snapshot.snapshot.id, finalize_restore=True, wait=True
    )
    assert await execute(plane.uri, COUNT) == 3


async def test_branch_of_the_past_needs_a_snapshot_of_that_time(plane: Plane) -> None:
    await create_table(plane.uri)
    snapshot = await plane.neon.snapshots.create(plane.project_id, plane.root_id, wait=True)
    taken = datetime.fromisoformat(snapshot.snapshot.created_at or "")
    await add_row(plane.uri)
    with pytest.raises(APIError, match="is not available: a local branch has its") as refused:
        await plane.branch(parent_timestamp=taken - timedelta(hours=1))
    assert refused.value.status == 422
    with pytest.raises(APIError, match=r"parent_timestamp: .* is not within the restore window"):
        await plane.branch(parent_timestamp=taken + timedelta(hours=1))
    lsn = snapshot.snapshot.lsn
    assert await execute(uri_of(await plane.branch(parent_lsn=lsn)), COUNT) == 3


async def test_branch_from_a_snapshot_before_a_rename_keeps_the_data(plane: Plane) -> None:
    await create_table(plane.uri)
    names = (plane.project_id, plane.root_id)
    snapshot = await plane.neon.snapshots.create(*names, wait=True)
    await plane.neon.databases.update(*names, "neondb", name="renamed", wait=True)
    branch = await plane.branch(parent_lsn=snapshot.snapshot.lsn)
    assert await execute(uri_of(branch), COUNT) == 3


async def test_roles_and_databases_of_the_api_exist_in_postgres(plane: Plane) -> None:
    names = (plane.project_id, plane.root_id)
    role = await plane.neon.roles.create(*names, name='o"brien', wait=True)
    await plane.neon.databases.create(*names, name="shop", owner_name='o"brien', wait=True)

    async def uri(database_name: str) -> str:
        found = await plane.neon.projects.connection_uri(
            plane.project_id, database_name=database_name, role_name='o"brien'
        )
        return found.reveal()

    assert await execute(await uri("shop"), "SELECT current_user::text") == 'o"brien'
    await plane.neon.databases.update(*names, "shop", name="store", wait=True)
    assert await execute(await uri("store"), "SELECT current_database()::text") == "store"

    before = await uri("store")
    await plane.neon.roles.reset_password(*names, role.role.name, wait=True)
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        await execute(before, "SELECT 1")
    assert await execute(await uri("store"), "SELECT 1") == 1

    await plane.neon.databases.delete(*names, "store", wait=True)
    await plane.neon.roles.delete(*names, 'o"brien', wait=True)
    found = "SELECT count(*) FROM pg_roles WHERE rolname = 'o\"brien'"
    assert await execute(plane.uri, found) == 0


async def test_settings_of_a_compute_apply_to_postgres(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.update(
        plane.project_id,
        endpoint_id,
        settings=EndpointSettings(pg_settings={"work_mem": "7MB"}),
        wait=True,
    )
    assert await execute(plane.uri, "SHOW work_mem") == "7MB"


async def test_operation_fails_with_the_reason_of_postgres(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    with pytest.raises(OperationFailedError, match="work_mem"):
        await plane.neon.endpoints.update(
            plane.project_id,
            endpoint_id,
            settings=EndpointSettings(pg_settings={"work_mem": "a lot"}),
            wait=True,
        )
    assert await execute(plane.uri, "SELECT 1") == 1


@pytest.mark.fact("branch-data-6", "branch-data-7")
async def test_schemas_are_read_and_compared(plane: Plane) -> None:
    branch = await plane.branch()
    await create_table(uri_of(branch))
    schema = await plane.neon.branches.schema(
        plane.project_id, branch.branch.id, db_name="neondb", format="sql"
    )
    assert schema.sql is not None
    assert "CREATE TABLE public.t" in schema.sql
    tables = await plane.neon.branches.schema(
        plane.project_id, branch.branch.id, db_name="neondb", format="json"
    )
    assert tables.json is not None
    assert [table.name for table in tables.json.tables] == ["t"]
    compared = await plane.neon.branches.compare_schema(
        plane.project_id, branch.branch.id, db_name="neondb"
    )
    assert compared.diff is not None
    assert compared.diff.startswith("--- a/neondb\n+++ b/neondb\n")
    assert "+CREATE TABLE public.t" in compared.diff


async def test_version_that_is_not_installed_is_refused(plane: Plane) -> None:
    with pytest.raises(APIError, match="pg_version: Postgres 14 is not installed") as error:
        await plane.neon.projects.create(name="old", pg_version=14)
    assert error.value.status == 400


async def test_anonymized_branch_is_refused(plane: Plane) -> None:
    with pytest.raises(APIError, match="anon"):
        await plane.neon.branches.create_anonymized(plane.project_id, masking_rules=[])


@pytest.mark.fact("replica-1")
async def test_read_only_compute_refuses_writes(plane: Plane) -> None:
    await create_table(plane.uri)
    compute = await plane.neon.endpoints.create(
        plane.project_id, branch_id=plane.root_id, type="read_only", wait=True
    )
    uri = await plane.neon.projects.connection_uri(
        plane.project_id,
        endpoint_id=compute.endpoint.id,
        database_name="neondb",
        role_name="neondb_owner",
    )
    assert await execute(uri.reveal(), COUNT) == 3
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        await add_row(uri.reveal())
    # It is no replica, as the docs say.
    assert await execute(uri.reveal(), "SELECT pg_is_in_recovery()") is False
    assert await execute(uri.reveal(), "BEGIN READ WRITE", "SHOW transaction_read_only") == "off"


async def test_branches_can_be_created_at_once(plane: Plane) -> None:
    await create_table(plane.uri)
    created = await plane.neon.branches.create(plane.project_id, endpoints=[READ_WRITE])
    others = [
        await plane.neon.branches.create(plane.project_id, endpoints=[READ_WRITE]) for _ in range(3)
    ]
    for branch in (created, *others):
        await plane.neon.operations.wait(branch)
        assert await execute(uri_of(branch), COUNT) == 3
