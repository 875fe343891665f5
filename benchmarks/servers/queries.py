"""Queries by asyncpg, over new connections."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped] # it has no types


# Any: asyncpg has no types.
@asynccontextmanager
async def connected(uri: str) -> AsyncGenerator[Any]:
    """Provide a connection."""
    connection = await asyncpg.connect(uri)
    try:
        yield connection
    finally:
        await connection.close()


async def execute(uri: str, statements: str) -> None:
    """Execute statements."""
    async with connected(uri) as connection:
        await connection.execute(statements)


async def fetch_number(uri: str, query: str) -> int:
    """Return the number that is the result of a query."""
    async with connected(uri) as connection:
        return int(await connection.fetchval(query))
