"""Provides databases by pytest-postgresql, whose plugin makes one template per worker.

``--postgresql-port``, ``--postgresql-user`` and ``--postgresql-load`` select the server and the
file of statements that fill the template.
"""

from typing import TYPE_CHECKING

import pytest
from pytest_postgresql import factories

from benchmarks.servers.postgres import uri_of

if TYPE_CHECKING:
    import psycopg

database = factories.postgresql("postgresql_noproc")


@pytest.fixture
def database_uri(database: "psycopg.Connection[tuple[object, ...]]") -> str:
    """The URI of a new database."""
    return uri_of(database.info.port, database.info.dbname)
