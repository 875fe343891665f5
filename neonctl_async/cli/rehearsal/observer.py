"""Reads locks and tables of a database, over a connection that the command does not use."""

import asyncio
import importlib
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import ModuleType
from typing import Any, Final, Protocol

from neonctl_async.cli.rehearsal.locks import BLOCKS, LockTally, SeenLock
from neonctl_async.cli.rehearsal.tables import Relation
from neonctl_async.clock import loop_time
from neonctl_async.models.connection_uri import ConnectionUri

FLUSH_SECONDS: Final = 2.0
"""How long to wait for the command's sessions to end. Only then are their statistics complete."""
_CONNECT_SECONDS: Final = 30.0
_QUERY_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_SETTINGS: Final = {
    "application_name": "neonctl-async branches run",
    "search_path": "pg_catalog",  # other schemas could have functions of the same names
}

_CLIENTS: Final = """
SELECT pid FROM pg_stat_activity
WHERE datname = current_database() AND usename IS NOT NULL AND pid <> pg_backend_pid()
"""
"""The other client sessions in this database. Autovacuum and other workers have no user."""
_LOCKS: Final = f"""
SELECT pid, virtualtransaction, locktype, relation::bigint, mode, granted
FROM pg_locks JOIN ({_CLIENTS}) AS clients USING (pid)
WHERE NOT granted OR locktype = 'relation' AND mode = ANY ($1)
"""  # noqa: S608 - the text is a constant
_RELATIONS: Final = """
SELECT pg_class.oid::bigint, format('%I.%I', nspname, relname), relkind::text,
    pg_relation_filenode(pg_class.oid)::bigint, pg_stat_get_tuples_inserted(pg_class.oid),
    pg_stat_get_tuples_updated(pg_class.oid), pg_stat_get_tuples_deleted(pg_class.oid)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname NOT IN ('information_schema', 'pg_catalog', 'pg_toast')
AND nspname !~ '^pg_(toast_)?temp_'
"""


class ObservationError(Exception):
    """The database cannot be read. The message contains no secret."""


class _Connection(Protocol):
    """The methods of asyncpg's Connection, which is not typed."""

    async def fetch(self, query: str, *arguments: object) -> list[tuple[Any, ...]]: ...
    async def close(self) -> None: ...


def require_driver() -> None:
    """Import the driver. Raises ValueError if it is not installed."""
    try:
        importlib.import_module("asyncpg")
    except ImportError:
        raise ValueError(
            "--report needs the package asyncpg: pip install 'neonctl-async[cli,postgres]', or "
            "asyncpg alone"
        ) from None


class Observer:
    """A connection to a database. Its methods raise ObservationError."""

    def __init__(self, connection: _Connection, driver: ModuleType) -> None:
        self._connection = connection
        self._driver = driver

    async def relations(self) -> dict[int, Relation]:
        """Return the tables, indexes, views and sequences by their OID."""
        with _translated(self._driver):
            rows = await self._connection.fetch(_RELATIONS)
        return {oid: Relation(*values) for oid, *values in rows}

    async def sample_locks(self, tally: LockTally) -> None:
        """Add one sample to a tally."""
        sent = loop_time()
        with _translated(self._driver):
            rows = await self._connection.fetch(_LOCKS, list(BLOCKS))
        tally.note([SeenLock(*row) for row in rows], sent=sent, received=loop_time())

    async def wait_for_statistics(self) -> bool:
        """Wait until all other sessions have ended. Return False if some remain."""
        deadline = loop_time() + FLUSH_SECONDS
        with _translated(self._driver):
            while await self._connection.fetch(_CLIENTS):
                if loop_time() > deadline:
                    return False
                await asyncio.sleep(_POLL_SECONDS)
        return True


@asynccontextmanager
async def observing(uri: ConnectionUri) -> AsyncGenerator[Observer]:
    """Connect to a database for the duration of a block. Raises ObservationError."""
    driver = importlib.import_module("asyncpg")
    with _translated(driver):
        connection: _Connection = await driver.connect(
            uri.asyncpg,
            port=uri.port,  # the driver would prefer PGPORT to the default
            timeout=_CONNECT_SECONDS,
            command_timeout=_QUERY_SECONDS,
            server_settings=_SETTINGS,
        )
    try:
        yield Observer(connection, driver)
    finally:
        with suppress(*_errors_of(driver)):
            await connection.close()


@contextmanager
def _translated(driver: ModuleType) -> Generator[None]:
    """Raise an ObservationError in place of the driver's errors."""
    try:
        yield
    except _errors_of(driver) as error:
        raise ObservationError(str(error) or type(error).__name__) from None


def _errors_of(driver: ModuleType) -> tuple[type[Exception], ...]:
    """Return the driver's errors, including the ones that a broken connection can cause."""
    return (
        *(OSError, ValueError),
        *(driver.InterfaceError, driver.PostgresError, driver.InternalClientError),
    )
