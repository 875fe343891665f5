"""Provides branches of a migrated parent, by the plugin of this project."""

from collections.abc import Awaitable, Callable

import pytest

from benchmarks.peers.databases import FILL
from benchmarks.servers.queries import execute
from neonctl_async.types import BranchCreated


@pytest.fixture(scope="session")
def neon_migrations(rows: int) -> Callable[[str], Awaitable[None]]:
    """Fill the parent of all branches, once in a run."""

    async def migrate(uri: str) -> None:
        await execute(uri, FILL.format(rows=rows))

    return migrate


@pytest.fixture
def database_uri(neon_branch: BranchCreated) -> str:
    """The URI of a new branch."""
    return neon_branch.connection_uri.reveal()
