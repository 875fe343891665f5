"""A Postgres server, and proxies to it."""

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest

from control_plane.tests.postgres.proxy.server import (
    DATABASE,
    PASSWORD,
    ROLE,
    Server,
    running_server,
)
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.proxy.connector import Login, Route
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.proxy import Proxy
from neonctl_local.postgres.proxy.scram import Verifier
from neonctl_local.postgres.template import Template


@pytest.fixture
def path() -> Iterator[Path]:
    """The path of a Unix socket. It is short, because such paths have a limit."""
    with TemporaryDirectory() as directory:
        yield Path(directory, "s")


@pytest.fixture(scope="session")
def server(
    installation: Installation, template: Template, account: ServerAccount | None
) -> Generator[Server]:
    """A Postgres server that all tests share."""
    with running_server(installation, template, account) as server:
        yield server


class Computes:
    """A proxy, and the computes behind it, which share one server.

    The computes ``ep-gone-…`` do not exist, and ``ep-read-…`` are read-only.
    """

    def __init__(self, server: Server, **settings: Any) -> None:
        self.server = server
        self.requested: list[str] = []
        defaults: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "tls": None}
        self.proxy = Proxy(self.find, self.find_stopped, **(defaults | settings))
        self.port = 0

    async def find(self, endpoint_id: str, _address: str) -> Route:
        self.requested.append(endpoint_id)
        if endpoint_id.startswith("ep-gone") or not endpoint_id.startswith("ep-"):
            raise ComputeRefusedError("The requested endpoint could not be found.")
        read_only = endpoint_id.startswith("ep-read")
        return Route(self.server.socket, read_only, self.find_login)

    async def find_login(self, role: str, _database: str) -> Login:
        stored = await asyncio.to_thread(self.server.stored_password, role)
        return Login(Verifier.parse(stored))

    async def find_stopped(self, _endpoint_id: str, _address: str, _role: str) -> Login | None:
        """Say that each compute runs."""
        return None

    async def __aenter__(self) -> Self:
        self.port = await self.proxy.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.proxy.stop()
        assert self.proxy.connections() == 0

    def login(self, endpoint_id: str | None = "ep-frost", **others: Any) -> dict[str, Any]:
        """Return the arguments of psycopg and libpq that connect to an endpoint."""
        login = {"host": "127.0.0.1", "port": self.port, "user": ROLE, "dbname": DATABASE}
        options = {} if endpoint_id is None else {"options": f"endpoint={endpoint_id}"}
        return login | options | {"password": PASSWORD} | others


@pytest.fixture
async def computes(server: Server) -> AsyncIterator[Computes]:
    """A proxy without TLS."""
    async with Computes(server) as computes:
        yield computes
