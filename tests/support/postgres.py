"""Tests that need the programs of Postgres."""

import pytest

from neonctl_async.local.postgres.binaries import find_installations
from neonctl_async.local.postgres.errors import PostgresUnavailableError


def skip_without_postgres() -> None:
    """Skip the test if this machine has no Postgres. Block until the programs are found."""
    try:
        find_installations()
    except PostgresUnavailableError as error:
        pytest.skip(str(error))
