"""Clusters of a local control plane, for tests."""

import asyncio
import importlib
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired, RoleSpec
from neonctl_local.postgres.servers.guardian import find_servers
from neonctl_local.postgres.template import ADMINISTRATOR

asyncpg: Any = importlib.import_module("asyncpg")
"""The driver, which publishes no types."""

PASSWORD = "password-of-alice"
ALICE = RoleSpec("alice", PASSWORD)
DESIRED = Desired([ALICE], [DatabaseSpec("app", "alice")])
"""The configuration of the clusters of most tests: the role alice and the database app."""

LEDGER = """
CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
CREATE TABLE transfers (id serial PRIMARY KEY, amount int, account int REFERENCES accounts);
INSERT INTO accounts SELECT n, 100 FROM generate_series(1, 10) AS n;
"""


async def connect(
    socket: Path | None,
    *,
    database: str = "app",
    user: str = "alice",
    password: str | None = PASSWORD,
) -> Any:
    """Connect to a server, as the owner of its database."""
    assert socket is not None, "the server does not run"
    return await asyncpg.connect(
        host=str(socket.parent),
        port=int(socket.suffix.removeprefix(".")),
        user=user,
        password=password,
        database=database,
        ssl=False,
    )


@asynccontextmanager
async def session(clusters: Clusters, id: str, **options: Any) -> AsyncGenerator[Any]:
    """A connection to the server of a cluster."""
    connection = await connect(clusters.socket(id), **options)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def administrator(clusters: Clusters, id: str, database: str) -> AsyncGenerator[Any]:
    """A connection as the superuser. All clusters are copies of one, so they share its password."""
    paths = await asyncio.to_thread(lambda: list(clusters.root.glob("clusters/*.password")))
    password = await asyncio.to_thread(paths[0].read_text, encoding="utf-8")
    options = {"database": database, "user": ADMINISTRATOR, "password": password.strip()}
    async with session(clusters, id, **options) as connection:
        yield connection


async def execute(clusters: Clusters, id: str, *statements: str, **options: Any) -> None:
    """Run statements in a session of their own."""
    async with session(clusters, id, **options) as connection:
        for statement in statements:
            await connection.execute(statement)


async def fetch(clusters: Clusters, id: str, query: str, **options: Any) -> list[Any]:
    """Return the first column of the result of a query."""
    async with session(clusters, id, **options) as connection:
        return [row[0] for row in await connection.fetch(query)]


async def transfer_until(clusters: Clusters, id: str, stop: asyncio.Event) -> list[int]:
    """Move money between accounts until ``stop`` is set. Return the numbers of the transfers."""
    committed: list[int] = []
    async with session(clusters, id) as connection:
        while not stop.is_set():
            async with connection.transaction():
                await connection.execute("UPDATE accounts SET balance = balance - 1 WHERE id = 1")
                await connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 2")
                number = await connection.fetchval(
                    "INSERT INTO transfers (amount, account) VALUES (1, 2) RETURNING id"
                )
            committed.append(number)
    return committed


async def servers(directory: Path) -> list[int]:
    """Return the Postgres processes below a directory."""
    return await asyncio.to_thread(lambda: find_servers(directory.resolve()))


async def first_process(directory: Path) -> int:
    """Return the process that started all others of the only Postgres server below a directory.

    Its number need not be the lowest: numbers start again after the machine's highest.
    """
    return await asyncio.to_thread(lambda: _first_process(directory))


def _first_process(directory: Path) -> int:
    (file,) = directory.glob("*/data/clusters/*/postmaster.pid")
    return int(file.read_text().split()[0])


async def kill_servers(directory: Path) -> None:
    """Kill the Postgres processes below a directory. One may end before it is killed."""
    for pid in await servers(directory):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def files(directory: Path, pattern: str = "*") -> list[str]:
    """Return the sorted paths below a directory that match a pattern."""
    return await asyncio.to_thread(
        lambda: sorted(str(path.relative_to(directory)) for path in directory.glob(pattern))
    )


async def data_directories(directory: Path) -> list[str]:
    """Return the data directories of all clusters with temporary data below a directory."""
    paths = await files(directory, "*/data/clusters/*")
    return [path for path in paths if not path.endswith(".password")]


async def open_descriptors() -> int:
    """Return the number of open descriptors of this process. uvloop keeps one of /dev/null."""
    return await asyncio.to_thread(_open_descriptors)


def _open_descriptors() -> int:
    number = 0
    null = Path(os.devnull).stat()
    for path in list(Path("/dev/fd").iterdir()):
        with suppress(OSError):  # the descriptor of the directory itself is closed
            number += not os.path.samestat(os.fstat(int(path.name)), null)
    return number
