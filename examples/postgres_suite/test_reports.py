"""Tests with SQLAlchemy, and with a branch of a branch."""

import asyncpg
import pytest
from shop import Item, order, scarce_items
from sqlalchemy.ext.asyncio import AsyncSession

from neonctl_async.types import BranchCreated
from pytest_neonctl_async import BranchFactory

pytestmark = pytest.mark.asyncio


async def test_report_lists_scarce_items(session: AsyncSession) -> None:
    assert await scarce_items(session, at_most=5) == []
    session.add_all([Item(name="pin", stock=5), Item(name="ink", stock=0)])
    await session.commit()
    assert await scarce_items(session, at_most=5) == ["ink", "pin"]


async def test_report_includes_orders_of_other_connections(
    session: AsyncSession, connection: asyncpg.Connection
) -> None:
    await order(connection, "book", 8)
    assert await scarce_items(session, at_most=5) == ["book"]


async def test_order_on_a_preview_does_not_change_its_parent(
    neon_branch: BranchCreated, neon_branch_factory: BranchFactory, connection: asyncpg.Connection
) -> None:
    await order(connection, "book", 1)  # the preview contains this order
    preview = await neon_branch_factory(parent_id=neon_branch.branch.id)
    other = await asyncpg.connect(preview.connection_uri.asyncpg)
    assert await order(other, "book", 1) == 2
    await other.close()
    assert await connection.fetchval("SELECT count(*) FROM orders") == 1
