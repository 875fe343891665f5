"""After the move: each test has its own database, a branch of the migrated one.

    pip install 'neonctl-async[postgres,testing]' 'sqlalchemy[asyncio]' alembic
    pip install pytest-asyncio pytest-xdist
    pytest examples/sqlalchemy_suite

The tests need no other database, and can run in many processes.
"""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from alembic import command
from alembic.config import Config
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

from neonctl_async import ConnectionUri
from neonctl_async.types import BranchCreated
from sqlalchemy_suite.library import Book


def migrate(connection_uri: ConnectionUri) -> None:
    """Run the Alembic migrations."""
    url = connection_uri.sqlalchemy("asyncpg")
    config = Config(Path(__file__).with_name("alembic.ini"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")


@pytest.fixture(scope="session")
def neon_migrations() -> Callable[[ConnectionUri], None]:
    """The migrations. They run once; then all tests branch from the migrated database."""
    return migrate


@pytest_asyncio.fixture
async def sessions(neon_branch: BranchCreated) -> AsyncIterator[async_sessionmaker[AsyncSession]]:
    """A factory of sessions on the test's database, which contains one book."""
    engine = create_async_engine(neon_branch.connection_uri.sqlalchemy("asyncpg"))
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
