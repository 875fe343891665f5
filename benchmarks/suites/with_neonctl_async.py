"""Provides branches of a migrated parent, by the plugin of this project."""

import pytest

from neonctl_async.types import BranchCreated


@pytest.fixture
def database_uri(neon_branch: BranchCreated) -> str:
    """The URI of a new branch."""
    return neon_branch.connection_uri.asyncpg
