"""Provides a server of its own for each test, made by ``initdb``."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from benchmarks.peers.databases import FILL
from benchmarks.servers.postgres import PostgresServer, newest_installation
from benchmarks.servers.queries import execute


@pytest.fixture
async def database_uri(rows: int) -> AsyncGenerator[str]:
    """The URI of the database of a new server."""
    server = await asyncio.to_thread(PostgresServer(newest_installation()).__enter__)
    try:
        await execute(server.uri(), FILL.format(rows=rows))
        yield server.uri()
    finally:
        await asyncio.to_thread(server.close)
