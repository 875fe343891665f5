"""The migrations of the suite. A plugin could not override the fixture of another plugin."""

from collections.abc import Awaitable, Callable

import pytest

from benchmarks.peers.databases import FILL
from benchmarks.servers.queries import execute
from neonctl_async import ConnectionUri


@pytest.fixture(scope="session")
def neon_migrations(rows: int) -> Callable[[ConnectionUri], Awaitable[None]]:
    """Fill the parent of all branches, once in a run."""

    async def migrate(uri: ConnectionUri) -> None:
        await execute(uri.asyncpg, FILL.format(rows=rows))

    return migrate
