"""Tests that need the programs of Postgres."""

import os
from pathlib import Path

import pytest

from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.errors import PostgresUnavailableError

CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
"""The directory of the user's caches. A test with another home directory would run initdb."""


def skip_without_postgres() -> None:
    """Skip the test if this machine has no Postgres. Block until the programs are found."""
    try:
        find_installations()
    except PostgresUnavailableError as error:
        pytest.skip(str(error))
