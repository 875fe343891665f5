"""The code under test: a shop that takes orders with asyncpg and reports with SQLAlchemy."""

from collections.abc import Sequence

import asyncpg
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    """The base class of the tables."""


class Item(Base):
    """An item for sale."""

    __tablename__ = "items"
    name: Mapped[str] = mapped_column(primary_key=True)
    stock: Mapped[int]


async def order(connection: asyncpg.Connection, item: str, count: int) -> int:
    """Take items from the stock and store the order. Return the id of the order."""
    async with connection.transaction():
        await connection.execute("UPDATE items SET stock = stock - $2 WHERE name = $1", item, count)
        order_id: int = await connection.fetchval(
            "INSERT INTO orders (item, count) VALUES ($1, $2) RETURNING id", item, count
        )
    return order_id


async def scarce_items(session: AsyncSession, at_most: int) -> Sequence[str]:
    """Return the names of the items with a small stock, in alphabetical order."""
    query = select(Item.name).where(Item.stock <= at_most).order_by(Item.name)
    return (await session.scalars(query)).all()
