"""The suite's fixtures: the migrations, and connections to the test's database.

    pip install 'neonctl-async[postgres,testing]' 'sqlalchemy[asyncio]' pytest-asyncio
    pytest examples/postgres_suite
    pytest examples/postgres_suite --neon-cloud    # on Neon

Each test gets a branch of the migrated database, so it can change anything. By default, the
databases run on this machine. With --neon-cloud, they are branches of the project NEON_PROJECT_ID.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from neonctl_async import ConnectionUri
from neonctl_async.types import BranchCreated
from pytest_neonctl_async import CachedMigrations

MIGRATIONS = Path(__file__).with_name("migrations")


async def migrate(connection_uri: ConnectionUri) -> None:
    """Create the tables and the first items."""
    connection = await asyncpg.connect(connection_uri.asyncpg)
    try:
        for migration in sorted(MIGRATIONS.glob("*.sql")):
            await connection.execute(migration.read_text(encoding="utf-8"))
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def neon_migrations() -> CachedMigrations:
    """The migrations. They run once, and again if they change; all tests branch from the result."""
    return CachedMigrations(migrate, files=[MIGRATIONS])


@pytest_asyncio.fixture
async def connection(neon_branch: BranchCreated) -> AsyncIterator[asyncpg.Connection]:
    """An asyncpg connection to the test's branch."""
    connection = await asyncpg.connect(neon_branch.connection_uri.asyncpg)
    yield connection
    await connection.close()


@pytest_asyncio.fixture
async def session(neon_branch: BranchCreated) -> AsyncIterator[AsyncSession]:
    """A SQLAlchemy session on the test's branch."""
    engine = create_async_engine(neon_branch.connection_uri.sqlalchemy("asyncpg"))
    async with AsyncSession(engine) as session:
        yield session
    await engine.dispose()
