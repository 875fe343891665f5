"""Drivers and tools that connect to a database with its connection URI."""

import asyncio
import importlib
import os
import shutil
import ssl
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, TypeAlias

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy.ext.asyncio import create_async_engine

from neonctl_async import ConnectionUri, EndpointSpec, NeonClient
from neonctl_local import Durations, LocalControlPlane, PostgresSettings
from neonctl_local.postgres.binaries import find_installations
from tests.support.postgres import skip_without_postgres

Execute: TypeAlias = Callable[[ConnectionUri, str], Coroutine[None, None, object]]
"""Connects to the database of a URI and executes a statement, in autocommit mode.

It returns the first value of the result, if the statement returns rows.
"""


async def with_asyncpg(uri: ConnectionUri, statement: str) -> object:
    connection = await asyncpg.connect(uri.asyncpg)
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def with_psycopg(uri: ConnectionUri, statement: str) -> object:
    connect = psycopg.AsyncConnection.connect(uri.psycopg, autocommit=True)
    async with await connect as connection:
        cursor = await connection.execute(statement.encode())
        row = await cursor.fetchone() if cursor.description else None
        return row and row[0]


async def with_psycopg_in_a_thread(uri: ConnectionUri, statement: str) -> object:
    def execute() -> object:
        with psycopg.connect(uri.psycopg, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]

    return await asyncio.to_thread(execute)


async def with_pg8000(uri: ConnectionUri, statement: str) -> object:
    """Execute a statement with pg8000, which takes the parts of the URI as arguments."""

    def execute() -> object:
        native = importlib.import_module("pg8000.native")
        authority = uri.options.get("sslrootcert")
        connection = native.Connection(
            uri.role,
            host=uri.host,
            port=uri.port,
            database=uri.database,
            password=uri.password.reveal(),
            ssl_context=ssl.create_default_context(cafile=authority) if authority else None,
            startup_params={"options": uri.options["options"]},
        )
        try:
            rows = connection.run(statement)
            return rows[0][0] if rows else None
        finally:
            connection.close()

    return await asyncio.to_thread(execute)


async def with_sqlalchemy_on_asyncpg(uri: ConnectionUri, statement: str) -> object:
    return await _with_engine(uri.sqlalchemy("asyncpg"), statement)


async def with_sqlalchemy_on_psycopg(uri: ConnectionUri, statement: str) -> object:
    return await _with_engine(uri.sqlalchemy("psycopg"), statement)


async def _with_engine(url: str, statement: str) -> object:
    # In a thread, because SQLAlchemy imports the driver.
    engine = await asyncio.to_thread(create_async_engine, url)
    try:
        async with engine.begin() as connection:
            result = await connection.execute(sqlalchemy.text(statement))
            return result.scalar() if result.returns_rows else None
    finally:
        await engine.dispose()


async def with_django(uri: ConnectionUri, statement: str) -> object:
    """Execute a statement on a connection of Django."""

    def execute() -> object:
        settings = importlib.import_module("django.conf").settings
        if not settings.configured:
            settings.configure()
            importlib.import_module("django").setup()
        handler = importlib.import_module("django.db.utils").ConnectionHandler
        # Any: Django has no types.
        connection: Any = handler({"default": uri.django})["default"]
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchone()[0] if cursor.description else None
        finally:
            connection.close()

    return await asyncio.to_thread(execute)


async def with_psql(uri: ConnectionUri, statement: str) -> object:
    """Execute a statement with the psql of the machine, or of the extra ``[postgres]``."""
    process = await asyncio.create_subprocess_exec(
        *(await asyncio.to_thread(_psql), "--no-psqlrc", "--tuples-only", "--no-align"),
        *("--quiet", "--dbname", uri.without_password, "--command", statement),
        env={**_without_pg_variables(), "PGPASSWORD": uri.password.reveal()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode().strip() or None


def _without_pg_variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def _psql() -> str:
    installed = next(iter(find_installations().values()))
    return shutil.which("psql") or str(installed.program("psql"))


DRIVERS: Final[Mapping[str, Execute]] = {
    "asyncpg": with_asyncpg,
    "psycopg": with_psycopg,
    "psycopg in a thread": with_psycopg_in_a_thread,
    "pg8000": with_pg8000,
    "SQLAlchemy on asyncpg": with_sqlalchemy_on_asyncpg,
    "SQLAlchemy on psycopg": with_sqlalchemy_on_psycopg,
    "Django": with_django,
    "psql": with_psql,
}
"""The drivers and tools of the tests, by name."""


@asynccontextmanager
async def client_of_databases(*, tls: bool = False) -> AsyncGenerator[NeonClient, None]:
    """Open a client of a local control plane with databases, or skip the test."""
    await asyncio.to_thread(skip_without_postgres)
    settings, durations = PostgresSettings(tls=tls), Durations(default=0)
    async with LocalControlPlane(postgres=settings, durations=durations) as control_plane:
        async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
            yield neon


async def execute_with_each(
    drivers: Mapping[str, Execute], uri: ConnectionUri, statement: str
) -> dict[str, object]:
    """Execute a statement with each driver. ``{}`` in it becomes the name of the driver."""
    async with asyncio.TaskGroup() as group:
        tasks = {
            name: group.create_task(execute(uri, statement.format(f'"{name}"')))
            for name, execute in drivers.items()
        }
    return {name: task.result() for name, task in tasks.items()}


async def assert_parent_and_branch_differ(neon: NeonClient, drivers: Mapping[str, Execute]) -> None:
    """Let each driver create a table. Create a branch, and let each driver change both."""

    async def with_each(uri: ConnectionUri, statement: str) -> dict[str, object]:
        return await execute_with_each(drivers, uri, statement)

    project = await neon.projects.create(name="drivers", wait=True)
    parent = project.connection_uri
    nothing = dict.fromkeys(drivers)
    assert await with_each(parent, "CREATE TABLE {} (name text)") == nothing
    assert await with_each(parent, "INSERT INTO {} VALUES ('of both')") == nothing
    compute = [EndpointSpec(type="read_write")]
    created = await neon.branches.create(project.project.id, endpoints=compute, wait=True)
    branch = created.connection_uri
    await with_each(branch, "INSERT INTO {} VALUES ('of the branch')")
    await with_each(parent, "INSERT INTO {} VALUES ('of the parent')")
    names = "SELECT string_agg(name, ', ' ORDER BY name) FROM {}"
    assert await with_each(branch, names) == dict.fromkeys(drivers, "of both, of the branch")
    assert await with_each(parent, names) == dict.fromkeys(drivers, "of both, of the parent")
