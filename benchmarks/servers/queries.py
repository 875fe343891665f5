"""Queries by asyncpg, over new connections."""

import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

# Any: asyncpg has no types.
_asyncpg: Any = importlib.import_module("asyncpg")
DRIVER_ERRORS: tuple[type[Exception], ...] = (
    *(_asyncpg.PostgresError, _asyncpg.InterfaceError, _asyncpg.InternalClientError),
    *(OSError, EOFError),
)
"""The errors of a connection that cannot be made or that breaks, and of a query that fails."""
_CLOSE_SECONDS = 5.0


# Any: asyncpg has no types.
@asynccontextmanager
async def connected(uri: str, timeout: float = 60.0) -> AsyncGenerator[Any]:
    """Provide a connection."""
    connection = await _asyncpg.connect(uri, timeout=timeout)
    try:
        yield connection
    finally:
        await connection.close(timeout=_CLOSE_SECONDS)


@asynccontextmanager
async def pool_of(uri: str) -> AsyncGenerator[Any]:
    """Provide a pool of connections."""
    async with _asyncpg.create_pool(uri, min_size=1, max_size=20) as pool:
        yield pool


async def execute(uri: str, statements: str) -> None:
    """Execute statements."""
    async with connected(uri) as connection:
        await connection.execute(statements)


async def fetch_number(uri: str, query: str) -> int:
    """Return the number that is the result of a query."""
    async with connected(uri) as connection:
        return int(await connection.fetchval(query))
