"""What Neon's guides say about roles, settings and connections, seen through SQL."""

import sys
from contextlib import AsyncExitStack
from typing import LiteralString

import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_async import EndpointSettings
from tests.support.databases import execute, uri_of
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

SETTINGS: dict[LiteralString, str] = {
    "max_connections": "104",
    "max_replication_slots": "10",
    "max_wal_senders": "10",
    "wal_level": "replica",
    "password_encryption": "scram-sha-256",
    "superuser_reserved_connections": "7",
    "maintenance_work_mem": "64MB",
    "max_parallel_workers": "8",
    "log_min_error_statement": "panic",
    "fsync": "off",
    "idle_in_transaction_session_timeout": "5min",
}
if sys.platform == "linux":
    SETTINGS["client_connection_check_interval"] = "1min"
ATTRIBUTES = "rolcanlogin, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication"
GROUPS = ("pg_read_all_data", "pg_write_all_data", "pg_monitor", "pg_signal_backend")


async def uri_of_new_role(plane: Plane, name: str) -> str:
    """Create a role with the API. Return its URI."""
    await plane.neon.roles.create(plane.project_id, plane.root_id, name=name, wait=True)
    uri = await plane.neon.branches.connection_uri(
        plane.project_id, plane.root_id, database_name="neondb", role_name=name
    )
    return uri.reveal()


@pytest.mark.fact("postgres-settings-1", "postgres-settings-2", "postgres-settings-3")
@pytest.mark.fact("postgres-settings-4", "postgres-settings-6", "postgres-settings-7")
@pytest.mark.fact("postgres-settings-9", "postgres-settings-10", "postgres-settings-12")
@pytest.mark.fact("postgres-settings-5", "postgres-settings-15")
@pytest.mark.fact("postgres-settings-16", "postgres-settings-20")
async def test_settings_and_locale_are_those_of_a_small_compute(plane: Plane) -> None:
    for name, value in SETTINGS.items():
        assert await execute(plane.uri, "SHOW " + name) == value, name
    locale = "SELECT pg_encoding_to_char(encoding) || ' ' || datcollate FROM pg_database"
    found = await execute(plane.uri, f"{locale} WHERE datname = current_database()")
    assert found == "UTF8 C.UTF-8"


@pytest.mark.fact("postgres-settings-21", "postgres-settings-22")
async def test_role_sets_what_sessions_may_set_and_creates_no_tablespace(plane: Plane) -> None:
    with pytest.raises(psycopg.Error, match="tablespace"):
        await execute(plane.uri, "CREATE TABLESPACE t LOCATION '/tmp'")
    await execute(plane.uri, "ALTER DATABASE neondb SET work_mem = '7MB'", "SELECT 1")
    assert await execute(plane.uri, "SHOW work_mem") == "7MB"
    await execute(plane.uri, "ALTER ROLE neondb_owner SET work_mem = '8MB'", "SELECT 1")
    assert await execute(plane.uri, "SHOW work_mem") == "8MB"


@pytest.mark.fact("sql-roles-1", "sql-roles-2", "sql-roles-5", "sql-roles-6", "sql-roles-7")
@pytest.mark.fact("sql-roles-8", "sql-roles-9")
async def test_only_roles_of_the_api_are_members_of_the_group_of_neon(plane: Plane) -> None:
    await uri_of_new_role(plane, "ada")
    await execute(plane.uri, "CREATE ROLE bea NOLOGIN", "SELECT 1")
    members: dict[LiteralString, bool] = {"neondb_owner": True, "ada": True, "bea": False}
    for role, is_member in members.items():
        member = f"SELECT pg_has_role('{role}', 'neon_superuser', 'member')"
        assert await execute(plane.uri, member) == is_member
    attributes = f"SELECT ({ATTRIBUTES})::text FROM pg_roles WHERE rolname = 'neon_superuser'"
    assert await execute(plane.uri, attributes) == "(f,t,t,t,t)"
    own = "pg_has_role('neondb_owner', oid, 'member') AND"
    for attribute in ("rolcreatedb", "rolcreaterole", "rolbypassrls", "rolreplication"):
        sql = f"SELECT bool_or({attribute}) FROM pg_roles WHERE {own} rolname !~ '^pg_'"
        assert await execute(plane.uri, sql), attribute
    for group in GROUPS:
        assert await execute(
            plane.uri, f"SELECT pg_has_role('neon_superuser', '{group}', 'member')"
        )
    await execute(plane.uri, "GRANT pg_monitor, pg_signal_backend TO bea", "SELECT 1")


@pytest.mark.fact("sql-roles-13", "sql-roles-15")
async def test_role_has_rights_on_tables_of_others_and_gives_none_of_its_own_away(
    plane: Plane,
) -> None:
    other = await uri_of_new_role(plane, "ada")
    await execute(plane.uri, "CREATE TABLE t AS SELECT 1 AS id", "SELECT 1")
    await execute(other, "INSERT INTO t VALUES (2)", "SELECT 1")
    assert await execute(other, "SELECT count(*) FROM t") == 2
    with pytest.raises(psycopg.Error, match="must be able to SET ROLE"):
        await execute(plane.uri, "ALTER TABLE t OWNER TO ada", "SELECT 1")


@pytest.mark.fact("pooler-4")
async def test_clients_leave_the_reserved_connections_alone(plane: Plane) -> None:
    few = EndpointSettings(pg_settings={"max_connections": "10"})
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.update(plane.project_id, endpoint_id, settings=few, wait=True)
    await plane.neon.endpoints.restart(plane.project_id, endpoint_id, wait=True)
    async with AsyncExitStack() as sessions:
        with pytest.raises(psycopg.OperationalError, match="remaining connection slots are reserv"):
            for _ in range(10):
                connecting = psycopg.AsyncConnection.connect(plane.uri)
                await sessions.enter_async_context(await connecting)


@pytest.mark.fact("connections-9", "connections-12")
async def test_restart_and_suspension_end_sessions_with_their_state(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    endpoints = plane.neon.endpoints
    for stop in (endpoints.restart, endpoints.suspend):
        async with await psycopg.AsyncConnection.connect(plane.uri, autocommit=True) as session:
            await session.execute("SET work_mem = '9MB'")
            await session.execute("CREATE TEMPORARY TABLE mine (id int)")
            await stop(plane.project_id, endpoint_id, wait=True)
            with pytest.raises(psycopg.OperationalError):
                await session.execute("SELECT 1")
        assert await execute(plane.uri, "SHOW work_mem") != "9MB"
        assert await execute(plane.uri, "SELECT to_regclass('mine') IS NULL")


async def test_connections_follow_the_size_of_a_compute(plane: Plane) -> None:
    endpoint = (plane.project_id, plane.project.endpoints[0].id)
    update, show = plane.neon.endpoints.update, "SHOW max_connections"
    await update(*endpoint, autoscaling_limit_min_cu=0.25, autoscaling_limit_max_cu=0.5, wait=True)
    assert await execute(plane.uri, show) == "209"
    own = EndpointSettings(pg_settings={"max_connections": "20"})
    await update(*endpoint, settings=own, wait=True)
    assert await execute(plane.uri, show) == "20"
    await update(
        *endpoint,
        autoscaling_limit_max_cu=0.25,
        settings=EndpointSettings(pg_settings={}),
        wait=True,
    )
    assert await execute(plane.uri, show) == "104"


@pytest.mark.long
async def test_large_compute_has_300_connections(plane: Plane) -> None:
    await plane.neon.endpoints.update(
        plane.project_id,
        plane.project.endpoints[0].id,
        autoscaling_limit_min_cu=4,
        autoscaling_limit_max_cu=4,
        wait=True,
    )
    async with AsyncExitStack() as stack:
        for _ in range(300):
            connection = await psycopg.AsyncConnection.connect(plane.uri)
            await stack.enter_async_context(connection)


@pytest.mark.fact("sql-roles-12")
async def test_role_resets_the_statistics_of_statements(plane: Plane) -> None:
    other = await uri_of_new_role(plane, "ada")
    await execute(plane.uri, "CREATE EXTENSION pg_stat_statements", "SELECT 1 AS counted")
    counted = "SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%AS counted'"
    assert await execute(other, counted) == 1
    await execute(other, "SELECT pg_stat_statements_reset()")
    assert await execute(plane.uri, counted) == 0
    await execute(plane.uri, "CREATE ROLE bea", "SELECT 1")
    with pytest.raises(psycopg.Error, match="permission denied"):
        await execute(
            plane.uri,
            "GRANT bea TO CURRENT_USER",
            "SET ROLE bea",
            "SELECT pg_stat_statements_reset()",
        )


@pytest.mark.fact("connections-13")
async def test_statistics_are_lost_when_a_compute_is_suspended(plane: Plane) -> None:
    await execute(plane.uri, "CREATE EXTENSION pg_stat_statements", "SELECT 1 AS counted")
    await execute(plane.uri, "CREATE TABLE t AS SELECT 1 AS id", "SELECT 1")
    seen: tuple[LiteralString, ...] = (
        "SELECT count(*) FROM pg_stat_statements WHERE query LIKE '%AS counted'",
        "SELECT count(*) FROM pg_stat_user_tables WHERE n_tup_ins > 0",
    )

    async def counted(number: int) -> bool:
        return {await execute(plane.uri, sql) for sql in seen} == {number}

    await until(lambda: counted(1), every=0.05)  # a session reports what it did a moment later
    await plane.neon.endpoints.suspend(plane.project_id, plane.project.endpoints[0].id, wait=True)
    assert await counted(0)


@pytest.mark.fact("branch-data-5")
async def test_schema_only_branch_gets_rows_by_a_restore(plane: Plane) -> None:
    await execute(plane.uri, "CREATE TABLE t AS SELECT 1 AS id", "SELECT 1")
    branch = await plane.branch(init_source="schema-only")
    assert await execute(uri_of(branch), "SELECT count(*) FROM t") == 0
    await plane.neon.branches.restore(
        plane.project_id, branch.branch.id, source_branch_id=plane.root_id, wait=True
    )
    assert await execute(uri_of(branch), "SELECT count(*) FROM t") == 1
