"""A store on a Redis server, for the processes of many machines."""

from importlib import resources
from typing import Any, Final

import msgspec
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.messages import Reply, Request

KEY_PREFIX = "neonctl-async:rate-budget:1:"
"""The start of every key. The number is the version of the data."""

SCRIPT: Final = (
    resources.files("neonctl_async.transport.shared")
    .joinpath("exchange.lua")
    .read_text(encoding="utf-8")
)
"""The Lua script of an exchange."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.msgpack.Decoder(Reply).decode


class RedisStore:
    """Keeps accounts on a Redis server, whose clock counts.

    One exchange is one call of a Lua script, which runs atomically.
    """

    def __init__(self, url: Secret, name: str, account: str) -> None:
        self.name = name
        self._key = KEY_PREFIX + account
        redis: Any = Redis  # its types are incomplete
        self._redis = redis.from_url(
            url.reveal(),
            retry=Retry(NoBackoff(), 1),  # the server may have closed an idle connection
            max_connections=2,
            driver_info=None,  # otherwise redis-py reads files while it connects
        )
        self._script = self._redis.register_script(SCRIPT)

    async def exchange(self, request: Request) -> Reply:
        """Apply a report and return the leases. Raise redis.RedisError if that fails."""
        return _decode(await self._script(keys=[self._key], args=[_encode(request)]))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()
