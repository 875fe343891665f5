"""Tests that need the programs of Postgres."""

import os
import shutil
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


def copy_cache(parent: Path) -> str:
    """Return a new cache that has the results of initdb, and no migrated databases."""
    source, target = Path(CACHE, "neonctl-async"), parent / "cache"
    if source.is_dir():
        ignored = shutil.ignore_patterns("migrated", "*.lock", "*.partial")
        shutil.copytree(source, target / source.name, ignore=ignored)
    return str(target)
