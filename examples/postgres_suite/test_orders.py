"""Tests with asyncpg. Each test changes its own copy of the migrated database."""

import asyncio

import asyncpg
import pytest
from shop import order

from neonctl_async.types import BranchCreated

pytestmark = pytest.mark.asyncio

STOCK = "SELECT stock FROM items WHERE name = 'book'"


async def test_order_takes_items_from_the_stock(connection: asyncpg.Connection) -> None:
    assert await order(connection, "book", 3) == 1
    assert await connection.fetchval(STOCK) == 7


async def test_each_test_starts_with_the_migrated_data(connection: asyncpg.Connection) -> None:
    assert await connection.fetchval(STOCK) == 10
    assert await connection.fetchval("SELECT count(*) FROM orders") == 0
    await connection.execute("DROP TABLE items CASCADE")  # no other test sees this


async def test_order_beyond_the_stock_changes_nothing(connection: asyncpg.Connection) -> None:
    with pytest.raises(asyncpg.CheckViolationError):
        await order(connection, "book", 11)
    assert await connection.fetchval(STOCK) == 10


async def test_last_items_are_sold_once(
    connection: asyncpg.Connection, neon_branch: BranchCreated
) -> None:
    other = await asyncpg.connect(neon_branch.connection_uri.asyncpg)
    buyers = (connection, other)
    outcomes = await asyncio.gather(
        *(order(buyer, "book", 6) for buyer in buyers), return_exceptions=True
    )
    await other.close()
    assert [type(outcome) for outcome in outcomes].count(int) == 1
    assert await connection.fetchval(STOCK) == 4
