"""Runs the migrations with asyncpg, like Alembic's ``async`` template."""

import asyncio

from alembic import context
from sqlalchemy import Connection, make_url
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from sqlalchemy_suite.library import Base


def run_migrations(connection: Connection) -> None:
    """Run the pending migrations."""
    context.configure(connection=connection, target_metadata=Base.metadata)
    with context.begin_transaction():
        context.run_migrations()


async def main() -> None:
    """Connect to the database and run the migrations."""
    url = context.config.get_main_option("sqlalchemy.url")
    assert url is not None, "conftest.py sets the URL"
    engine = create_async_engine(make_url(url), poolclass=NullPool)
    async with engine.connect() as connection:
        await connection.run_sync(run_migrations)
    await engine.dispose()


asyncio.run(main())
