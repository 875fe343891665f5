"""Roles and databases that clients change with SQL, as the API shows them."""

import pytest
from psycopg.conninfo import make_conninfo

from control_plane.tests.server.conftest import Plane
from neonctl_async import ConnectionUri
from neonctl_async.errors import APIError, NotFoundError
from tests.support.databases import execute, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

SYNC = "sync_dbs_and_roles_from_compute"
SET_PASSWORD = "ALTER ROLE neondb_owner PASSWORD 'chosen-with-sql'"


async def uri(plane: Plane, database: str = "neondb", role: str = "neondb_owner") -> ConnectionUri:
    return await plane.neon.projects.connection_uri(
        plane.project_id, database_name=database, role_name=role
    )


async def databases(plane: Plane) -> dict[str, str]:
    listed = await plane.neon.databases.list(plane.project_id, plane.root_id)
    return {database.name: database.owner_name for database in listed}


async def roles(plane: Plane) -> list[str]:
    listed = await plane.neon.roles.list(plane.project_id, plane.root_id)
    return sorted(role.name for role in listed)


async def syncs(plane: Plane) -> int:
    listed = plane.neon.operations.list(plane.project_id)
    return len([None async for operation in listed if operation.action == SYNC])


async def test_database_that_was_created_and_dropped_with_sql(plane: Plane) -> None:
    await execute(plane.uri, "CREATE DATABASE shop", "SELECT 1")
    assert await databases(plane) == {"neondb": "neondb_owner", "shop": "neondb_owner"}
    assert await execute((await uri(plane, "shop")).reveal(), "SELECT current_database()") == "shop"
    await execute(plane.uri, "DROP DATABASE shop", "SELECT 1")
    with pytest.raises(NotFoundError):
        await uri(plane, "shop")
    assert await databases(plane) == {"neondb": "neondb_owner"}
    assert await syncs(plane) == 2


async def test_roles_and_owners_that_were_changed_with_sql(plane: Plane) -> None:
    await execute(plane.uri, "CREATE ROLE app LOGIN PASSWORD 'secret'", "SELECT 1")
    await execute(plane.uri, "CREATE ROLE readers NOLOGIN", "SELECT 1")
    assert await roles(plane) == ["app", "neondb_owner", "readers"]
    await execute(plane.uri, "GRANT app TO CURRENT_USER", "SELECT 1")
    await execute(plane.uri, "ALTER DATABASE neondb OWNER TO app", "SELECT 1")
    assert await databases(plane) == {"neondb": "app"}
    await execute(plane.uri, "DROP ROLE readers", "SELECT 1")
    assert await roles(plane) == ["app", "neondb_owner"]


async def test_role_that_owns_a_database_of_sql_is_not_deleted(plane: Plane) -> None:
    await plane.neon.roles.create(plane.project_id, plane.root_id, name="bob", wait=True)
    await execute((await uri(plane, role="bob")).reveal(), "CREATE DATABASE shop", "SELECT 1")
    with pytest.raises(APIError, match="'bob' owns the database 'shop'") as refused:
        await plane.neon.roles.delete(plane.project_id, plane.root_id, "bob", wait=True)
    assert refused.value.status == 422
    assert await roles(plane) == ["bob", "neondb_owner"]


async def test_password_that_was_set_with_sql_is_kept_and_not_guessed(plane: Plane) -> None:
    await execute(plane.uri, SET_PASSWORD, "SELECT 1")
    with pytest.raises(APIError, match="was set with SQL, so only Postgres knows it") as unknown:
        await uri(plane)
    assert unknown.value.status == 412
    await plane.neon.endpoints.restart(plane.project_id, plane.project.endpoints[0].id, wait=True)
    assert await execute(make_conninfo(plane.uri, password="chosen-with-sql"), "SELECT 1") == 1
    await plane.neon.roles.reset_password(
        plane.project_id, plane.root_id, "neondb_owner", wait=True
    )
    assert await execute((await uri(plane)).reveal(), "SELECT 1") == 1


async def test_branch_has_what_its_parent_got_with_sql(plane: Plane) -> None:
    await execute(plane.uri, "CREATE DATABASE shop", "SELECT 1")
    await execute(plane.uri, "CREATE ROLE app LOGIN PASSWORD 'secret'", "SELECT 1")
    branch = await plane.branch()
    names = (plane.project_id, branch.branch.id)
    assert {each.name for each in await plane.neon.databases.list(*names)} == {"neondb", "shop"}
    assert {each.name for each in await plane.neon.roles.list(*names)} == {"neondb_owner", "app"}
    login = make_conninfo(uri_of(branch), user="app", password="secret", dbname="shop")
    assert await execute(login, "SELECT current_user") == "app"


async def test_reset_shows_the_roles_and_databases_of_the_parent_again(plane: Plane) -> None:
    branch = await plane.branch()
    names = (plane.project_id, branch.branch.id)
    await execute(uri_of(branch), "CREATE DATABASE own", "SELECT 1")
    assert {each.name for each in await plane.neon.databases.list(*names)} == {"neondb", "own"}
    await execute(plane.uri, "CREATE DATABASE shop", "SELECT 1")
    await plane.neon.branches.reset_from_parent(*names, wait=True)
    await execute(uri_of(branch), "SELECT 1")
    assert {each.name for each in await plane.neon.databases.list(*names)} == {"neondb", "shop"}


async def test_recovered_branch_has_what_it_got_with_sql_before_its_deletion(plane: Plane) -> None:
    branch = await plane.branch()
    names = (plane.project_id, branch.branch.id)
    await execute(uri_of(branch), SET_PASSWORD)
    uri = make_conninfo(uri_of(branch), password="chosen-with-sql")
    await execute(uri, "CREATE ROLE app LOGIN PASSWORD 'secret'")
    await execute(uri, "CREATE DATABASE shop")
    await plane.neon.branches.delete(*names, wait=True)
    await plane.neon.branches.recover(*names)
    assert await execute(uri, "SELECT 1") == 1
    login = make_conninfo(uri, user="app", password="secret", dbname="shop")
    assert await execute(login, "SELECT current_user") == "app"
    assert {each.name for each in await plane.neon.databases.list(*names)} == {"neondb", "shop"}


async def test_api_and_sql_create_the_same_names(plane: Plane) -> None:
    names = (plane.project_id, plane.root_id)
    await execute(plane.uri, "CREATE DATABASE shop", "SELECT 1")
    with pytest.raises(APIError, match="shop") as conflict:
        await plane.neon.databases.create(*names, name="shop", owner_name="neondb_owner")
    assert conflict.value.status == 409
    await plane.neon.databases.delete(*names, "shop", wait=True)
    query = "SELECT count(*) FROM pg_database WHERE datname = 'shop'"
    assert await execute(plane.uri, query) == 0
