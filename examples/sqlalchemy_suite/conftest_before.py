"""Before the move: all tests share one database, which is emptied before each test.

    docker run --rm --detach --publish 5432:5432 --env POSTGRES_PASSWORD=test postgres:18
    export TEST_DATABASE_URL=postgresql+asyncpg://postgres:test@127.0.0.1/postgres

The tests need this database, and can run in one process only.
"""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from sqlalchemy_suite.library import Base, Book

TABLES = ", ".join(table.name for table in Base.metadata.sorted_tables)


@pytest.fixture(scope="session")
def database_url() -> str:
    """The URL of the migrated database."""
    url = os.environ["TEST_DATABASE_URL"]
    config = Config(Path(__file__).with_name("alembic.ini"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")
    return url


@pytest_asyncio.fixture
async def sessions(database_url: str) -> AsyncIterator[async_sessionmaker[AsyncSession]]:
    """A factory of sessions on the test's database, which contains one book."""
    engine = create_async_engine(database_url)
    async with engine.begin() as connection:
        await connection.execute(text(f"TRUNCATE {TABLES} RESTART IDENTITY CASCADE"))
    sessions = async_sessionmaker(engine)
    async with sessions.begin() as session:
        session.add(Book(title="Emma", copies=2))
    yield sessions
    await engine.dispose()


@pytest_asyncio.fixture
async def session(sessions: async_sessionmaker[AsyncSession]) -> AsyncIterator[AsyncSession]:
    """A session on the test's database."""
    async with sessions() as session:
        yield session
