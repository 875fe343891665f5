"""A local control plane with real databases, and connections to them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, LiteralString

from psycopg import AsyncConnection

from neonctl_async import NeonClient, PollPolicy, RateBudget
from neonctl_async.types import BranchCreated, EndpointSpec, ProjectCreated
from neonctl_local import Durations, LocalControlPlane

READ_WRITE = EndpointSpec(type="read_write")


@asynccontextmanager
async def databases(**settings: Any) -> AsyncGenerator[tuple[LocalControlPlane, NeonClient]]:
    """Run a local control plane with real databases, and open a client."""
    options: dict[str, Any] = {"postgres": True, "durations": Durations(default=0)} | settings
    async with LocalControlPlane(**options) as control_plane, client(control_plane) as neon:
        yield control_plane, neon


def client(control_plane: LocalControlPlane, api_key: str | None = None) -> NeonClient:
    """Return a client that polls often."""
    return NeonClient(
        api_key or control_plane.api_key,
        base_url=control_plane.base_url,
        budget=RateBudget.unlimited(),
        polling=PollPolicy(initial=0.005, maximum=0.05),
    )


def uri_of(created: BranchCreated | ProjectCreated) -> str:
    """Return the first connection URI of a response, with its password."""
    return created.connection_uri.reveal()


async def execute(uri: str, *statements: LiteralString) -> Any:
    """Run statements over one connection. Return the first value of the last result, if any."""
    async with await AsyncConnection.connect(uri, autocommit=True) as connection:
        for statement in statements[:-1]:
            await connection.execute(statement)
        cursor = await connection.execute(statements[-1])
        row = None if cursor.description is None else await cursor.fetchone()
    return None if row is None else row[0]
