"""A pool of connections for each tenant."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias
from weakref import WeakValueDictionary

import asyncpg

from neonctl_async import ConnectionUri

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

Pool: TypeAlias = "asyncpg.Pool[asyncpg.Record]"
Connection: TypeAlias = "PoolConnectionProxy[asyncpg.Record]"

SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
LOCK = 7041776
CLOSE_SECONDS = 10.0
LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
"""The errors raised by connections to a compute that may no longer exist."""


class DatabaseUnavailableError(Exception):
    """A tenant's database does not accept connections at the moment."""


class TenantPool:
    """A pool, and the number of requests that use it or wait for one of its connections.

    ``asyncpg.Pool.close`` alone would close connections that it has just lent to waiting requests.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._users = 0
        self._is_unused = asyncio.Event()
        self._is_unused.set()

    async def acquire(self) -> Connection:
        """Wait for a connection."""
        self._users += 1
        self._is_unused.clear()
        try:
            return await self._pool.acquire()
        except BaseException:
            self._leave()
            raise

    async def release(self, connection: Connection) -> None:
        """Return a connection to the pool."""
        try:
            await self._pool.release(connection)
        finally:
            self._leave()

    async def close(self) -> None:
        """Close the pool when no request uses it, or after CLOSE_SECONDS."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._is_unused.wait()
                await self._pool.close()
        except LOST:  # also a TimeoutError
            self._pool.terminate()

    def _leave(self) -> None:
        self._users -= 1
        if not self._users:
            self._is_unused.set()


class TenantPools:
    """Opens a pool on a tenant's first request, and keeps it until the tenant signs off.

    Idle connections are closed after a minute, so that Neon can suspend the compute. A pool without
    connections takes a few kilobytes, so a worker keeps the pools of all tenants.
    """

    def __init__(self, connection_uri: Callable[[str], Awaitable[ConnectionUri]]) -> None:
        self._connection_uri = connection_uri
        self._pools: dict[str, TenantPool] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for tenant in list(self._pools):
            self.discard(tenant)
        await asyncio.gather(*self._closing)

    @asynccontextmanager
    async def connection(self, tenant: str) -> AsyncGenerator[Connection]:
        """Lend a connection to a tenant's database.

        Raises DatabaseUnavailableError, and the errors of ``connection_uri``.
        """
        pool, connection = await self._acquire(tenant)
        try:
            yield connection
        finally:
            await pool.release(connection)

    def discard(self, tenant: str, pool: TenantPool | None = None) -> None:
        """Remove a tenant's pool, and close it when its connections have been returned.

        With ``pool``, do nothing if the tenant has another pool by now.
        """
        current = self._pools.get(tenant)
        if current is not None and (pool is None or current is pool):
            del self._pools[tenant]
            task = asyncio.create_task(current.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _acquire(self, tenant: str) -> tuple[TenantPool, Connection]:
        pool = await self._pool(tenant)
        try:
            return pool, await pool.acquire()
        except LOST:
            # The branch may be gone. A tenant who signed up again has a new branch.
            self.discard(tenant, pool)
        pool = await self._pool(tenant)
        try:
            return pool, await pool.acquire()
        except LOST as error:
            raise DatabaseUnavailableError(tenant) from error

    async def _pool(self, tenant: str) -> TenantPool:
        # Without a lock, the first requests of a tenant would each open a pool.
        lock = self._locks.setdefault(tenant, asyncio.Lock())
        async with lock:
            if tenant not in self._pools:
                uri = await self._connection_uri(tenant)
                try:
                    self._pools[tenant] = TenantPool(await _open(uri))
                except LOST as error:
                    raise DatabaseUnavailableError(tenant) from error
            return self._pools[tenant]


async def _open(uri: ConnectionUri) -> Pool:
    pool = asyncpg.create_pool(
        uri.asyncpg, min_size=0, max_size=5, max_inactive_connection_lifetime=60.0, timeout=15.0
    )
    await pool
    try:
        async with pool.acquire() as connection, connection.transaction():
            # A new version of the application adds its tables here, one worker at a time.
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            await connection.execute(SCHEMA)
    except BaseException:
        pool.terminate()
        raise
    return pool
