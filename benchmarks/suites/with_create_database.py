"""Provides databases by ``CREATE DATABASE … TEMPLATE``, with one template per worker."""

import asyncio
from collections.abc import AsyncGenerator, Generator
from uuid import uuid4

import pytest

from benchmarks.peers.databases import FILL
from benchmarks.servers.postgres import uri_of
from benchmarks.servers.queries import execute


@pytest.fixture(scope="session")
def template(server_port: int, rows: int) -> Generator[str]:
    """The database that is copied."""
    name = f"template_{uuid4().hex}"

    async def create() -> None:
        await execute(uri_of(server_port), f"CREATE DATABASE {name}")
        await execute(uri_of(server_port, name), FILL.format(rows=rows))

    asyncio.run(create())
    yield name
    asyncio.run(execute(uri_of(server_port), f"DROP DATABASE {name}"))


@pytest.fixture
async def database_uri(server_port: int, template: str) -> AsyncGenerator[str]:
    """The URI of a new database."""
    name = f"test_{uuid4().hex}"
    await execute(uri_of(server_port), f"CREATE DATABASE {name} TEMPLATE {template}")
    yield uri_of(server_port, name)
    await execute(uri_of(server_port), f"DROP DATABASE {name}")
