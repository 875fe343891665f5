"""The ways to get a database with the content of another one: ours and those of the peers.

``ready()`` measures the time until the first query of the new database has its result. Removing the
database is not measured.
"""

import asyncio
import time
from abc import ABC, abstractmethod
from typing import ClassVar, Self
from uuid import uuid4

import psycopg

from benchmarks.harness.results import OURS, PYTEST_POSTGRESQL
from benchmarks.servers.postgres import USER, PostgresServer, newest_installation
from benchmarks.servers.queries import connected, execute, fetch_number
from neonctl_async import EndpointSpec, NeonClient
from neonctl_async.types import BranchCreated

BY_HAND = "CREATE DATABASE … TEMPLATE"
INITDB = "initdb per database"
OURS_WAITING = "neonctl-async, wait=True"

FILL = """
CREATE TABLE items (id int PRIMARY KEY, name text NOT NULL, created timestamptz NOT NULL);
INSERT INTO items
SELECT n, md5(n::text), timestamptz '2026-01-01 00:00 UTC' + n * interval '1 second'
FROM generate_series(1, {rows}) AS n;
CREATE INDEX ON items (created);
ANALYZE items;
"""
QUERY = "SELECT count(*) FROM items WHERE id <= 10"


class DatabaseMaker(ABC):
    """One way to make databases with ``rows`` rows in a table. Times are in seconds."""

    name: ClassVar[str]

    def __init__(self, rows: int) -> None:
        self.fill = FILL.format(rows=rows)

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Prepare the database that is copied."""

    @abstractmethod
    async def __aexit__(self, *_: object) -> None:
        """Remove everything."""

    @abstractmethod
    async def ready(self) -> float:
        """Make a database, run a query in it, return the time, and remove the database."""


async def query(uri: str) -> None:
    """Connect, run the first query, and disconnect."""
    assert await fetch_number(uri, QUERY) == 10


class Branches(DatabaseMaker):
    """A branch with a compute. The connection waits until the compute is ready."""

    name = OURS

    def __init__(self, rows: int, neon: NeonClient) -> None:
        super().__init__(rows)
        self._neon = neon
        self._project_id = ""

    async def __aenter__(self) -> Self:
        created = await self._neon.projects.create(name="parent", wait=True)
        self._project_id = created.project.id
        await execute(created.connection_uri.reveal(), self.fill)
        await self._neon.endpoints.suspend(self._project_id, created.endpoints[0].id, wait=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._neon.projects.delete(self._project_id)

    async def ready(self) -> float:
        """Implement DatabaseMaker."""
        started = time.perf_counter()
        created = await self._create()
        await query(created.connection_uri.reveal())
        duration = time.perf_counter() - started
        await self._neon.operations.wait(created)
        await self._neon.branches.delete(self._project_id, created.branch.id, wait=True)
        return duration

    async def _create(self, *, wait: bool = False) -> BranchCreated:
        endpoints = [EndpointSpec(type="read_write")]
        return await self._neon.branches.create(self._project_id, endpoints=endpoints, wait=wait)


class AwaitedBranches(Branches):
    """A branch with a compute, after a wait for its operations."""

    name = OURS_WAITING

    async def _create(self, *, wait: bool = True) -> BranchCreated:
        return await super()._create(wait=wait)


class OnServer(DatabaseMaker):
    """A way that uses databases of one server, which runs all the time."""

    def __init__(self, rows: int, server: PostgresServer) -> None:
        super().__init__(rows)
        self._server = server
        self._template = f"template_{uuid4().hex}"

    async def __aenter__(self) -> Self:
        await execute(self._server.uri(), f"CREATE DATABASE {self._template}")
        await execute(self._server.uri(self._template), self.fill)
        return self

    async def __aexit__(self, *_: object) -> None:
        await execute(self._server.uri(), f"DROP DATABASE {self._template}")


class ByHand(OnServer):
    """``CREATE DATABASE`` with a template, over an open connection of the administrator."""

    name = BY_HAND

    async def ready(self) -> float:
        """Implement DatabaseMaker."""
        name = f"copy_{uuid4().hex}"
        async with connected(self._server.uri()) as admin:
            started = time.perf_counter()
            await admin.execute(f"CREATE DATABASE {name} TEMPLATE {self._template}")
            await query(self._server.uri(name))
            duration = time.perf_counter() - started
            await admin.execute(f"DROP DATABASE {name}")
        return duration


class PytestPostgresql(OnServer):
    """The steps of the fixture ``postgresql``, on a running server."""

    name = PYTEST_POSTGRESQL

    async def ready(self) -> float:
        """Implement DatabaseMaker."""
        return await asyncio.to_thread(self._ready)

    def _ready(self) -> float:
        from pytest_postgresql.janitor import DatabaseJanitor  # noqa: PLC0415 - only the environment of make bench has it

        name = f"copy_{uuid4().hex}"
        started = time.perf_counter()
        janitor = DatabaseJanitor(
            user=USER,
            host="127.0.0.1",
            port=self._server.port,
            dbname=name,
            template_dbname=self._template,
        )
        with janitor:
            with psycopg.connect(self._server.uri(name)) as connection:
                assert connection.execute(QUERY).fetchall() == [(10,)]
            return time.perf_counter() - started


class InitdbPerDatabase(DatabaseMaker):
    """``initdb``, a server, and the statements that fill the database, each time."""

    name = INITDB

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def ready(self) -> float:
        """Implement DatabaseMaker."""
        started = time.perf_counter()
        server = await asyncio.to_thread(PostgresServer(newest_installation()).__enter__)
        try:
            await execute(server.uri(), self.fill)
            await query(server.uri())
            return time.perf_counter() - started
        finally:
            await asyncio.to_thread(server.close)
