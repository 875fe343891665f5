"""Drivers connect to a branch of the local control plane, and parent and branch differ."""

import shutil
from urllib.parse import quote

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import create_async_engine

from control_plane.tests.postgres.drivers import (
    DRIVERS,
    Execute,
    assert_parent_and_branch_differ,
    client_of_databases,
    execute_with_each,
    with_psycopg,
)
from neonctl_async import ConnectionUri, NeonClient
from neonctl_async.types import ProjectCreated

ROLE, DATABASE, PASSWORD = "ö:w@n/er %41", "a/b ?#ü%41", "p:a@s/s%41 'ü+&=?#\\"


@pytest.fixture(autouse=True)
def fail_on_blocked_loop() -> None:
    """Allow blocking calls, because asyncpg reads certificates on the event loop."""


@pytest.mark.postgres
@pytest.mark.parametrize("tls", [False, True])
async def test_each_driver_sees_that_parent_and_branch_differ(*, tls: bool) -> None:
    async with client_of_databases(tls=tls) as neon:
        await assert_parent_and_branch_differ(neon, drivers_with(tls=tls))


def drivers_with(*, tls: bool) -> dict[str, Execute]:
    drivers = dict(DRIVERS)
    if tls and shutil.which("psql") is None:
        del drivers["psql"]  # the psql of the extra [postgres] has no TLS
    return drivers


@pytest.mark.postgres
@pytest.mark.parametrize("tls", [False, True])
async def test_each_driver_connects_with_special_characters(*, tls: bool) -> None:
    async with client_of_databases(tls=tls) as neon:
        direct = await uri_with_special_characters(neon, await neon.projects.create(wait=True))
        drivers = drivers_with(tls=tls)
        for uri in (direct, direct.as_pooled()):
            query = "SELECT current_user || current_database()"
            expected = dict.fromkeys(drivers, f"{ROLE}{DATABASE}")
            assert await execute_with_each(drivers, uri, query) == expected


async def uri_with_special_characters(neon: NeonClient, created: ProjectCreated) -> ConnectionUri:
    """Create a database and its owner. Return the URI of the database."""
    ids = created.project.id, created.branch.id
    await neon.roles.create(*ids, name=ROLE, wait=True)
    await neon.databases.create(*ids, name=DATABASE, owner_name=ROLE, wait=True)
    uri = await neon.branches.connection_uri(*ids, database_name=DATABASE)
    new_password = PASSWORD.replace("'", "''")
    await with_psycopg(uri, f"ALTER ROLE CURRENT_USER PASSWORD '{new_password}'")
    login = uri.reveal().replace(f":{uri.password.reveal()}@", f":{quote(PASSWORD, safe='')}@")
    return ConnectionUri(login)


@pytest.mark.postgres
async def test_drivers_reject_options_of_libpq_that_their_forms_leave_out() -> None:
    """The reason for the forms: none is needed as soon as this test fails."""
    async with client_of_databases() as neon:
        uri = (await neon.projects.create(wait=True)).connection_uri
        bound = ConnectionUri(f"{uri.reveal()}&channel_binding=prefer&connect_timeout=9")
        with pytest.raises(asyncpg.PostgresError, match='parameter "channel_binding"'):
            await asyncpg.connect(bound.reveal())
        plain = bound.reveal().replace("postgresql:", "postgresql+asyncpg:")
        engine = create_async_engine(plain)
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            await engine.connect()
        await engine.dispose()
        values = await execute_with_each(DRIVERS, bound, "SELECT 'connected'")
        assert values == dict.fromkeys(DRIVERS, "connected")
