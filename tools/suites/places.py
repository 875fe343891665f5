"""Where the suites run: a bare Postgres, and a branch, direct and through the pooler."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection

from benchmarks.servers.nginx import free_port
from benchmarks.servers.postgres import PostgresServer
from neonctl_async import NeonClient
from neonctl_async.types import ConnectionUri
from neonctl_local import LocalControlPlane
from neonctl_local.postgres.binaries import Installation
from neonctl_local.settings import Durations, PostgresSettings

BARE, DIRECT, POOLED = "bare", "direct", "pooled"

SETUP = (
    "CREATE SCHEMA test_schema",
    "CREATE SCHEMA test_schema_2",
    "CREATE EXTENSION hstore",
    "CREATE EXTENSION citext",
)
"""What the tests of SQLAlchemy expect in their database."""


@asynccontextmanager
async def open_places(installation: Installation) -> AsyncGenerator[dict[str, ConnectionUri]]:
    """Start the servers. Return the URI of a database with the objects of SETUP in each place."""
    with PostgresServer(installation) as bare:
        async with (
            LocalControlPlane(
                # A compute has a host of its own, because asyncpg's tests name no compute.
                postgres=PostgresSettings(
                    binaries=installation.directory, domain="db.localhost", port=free_port()
                ),
                durations=Durations(default=0),
            ) as plane,
            NeonClient(plane.api_key, base_url=plane.base_url) as neon,
        ):
            created = await neon.projects.create(name="suites", wait=True)
            ids = created.project.id, created.branch.id
            owner = created.connection_uri.role
            direct = created.connection_uri
            # The suites of direct and pooled connections do not meet in one database.
            await neon.databases.create(*ids, name="pooled", owner_name=owner, wait=True)
            pooled = await neon.branches.connection_uri(*ids, database_name="pooled", pooled=True)
            unpooled = await neon.branches.connection_uri(*ids, database_name="pooled")
            for uri in (bare.uri(), direct.reveal(), unpooled.reveal()):
                async with await AsyncConnection.connect(uri, autocommit=True) as connection:
                    for statement in SETUP:
                        await connection.execute(statement)
            yield {BARE: ConnectionUri(bare.uri()), DIRECT: direct, POOLED: pooled}
