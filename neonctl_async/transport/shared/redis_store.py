"""A store on a Redis server, for the processes of many machines."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.log import (
    LOG_LENGTH,
    REQUEST,
    SNAPSHOT,
    SNAPSHOT_EVERY,
    Entry,
    Snapshot,
    UnreadableLogError,
    encode,
    order,
    replay,
)
from neonctl_async.transport.shared.messages import Reply, Request
from neonctl_async.transport.shared.state import KEEP, SECOND

KEY_PREFIX = "neonctl-async:rate-budget:2:"
"""The start of every key. The number is the version of the data and of the rules."""
CLOCK_MILLISECONDS = 2 * SECOND
"""The time by which the newest entry may be ahead of the clock of the server."""


class RedisStore:
    """Keeps the log of an account on a Redis server, whose clock counts.

    Redis decides nothing. An exchange adds its request and reads the new entries of the log, in one
    transaction and one round trip.
    """

    _redis: Any  # the types of redis-py are incomplete

    def __init__(self, url: Secret, name: str, account: str) -> None:
        self.name = name
        self._key = KEY_PREFIX + account
        redis: Any = Redis
        self._redis = redis.from_url(
            url.reveal(),
            retry=Retry(NoBackoff(), 1),  # the server may have closed an idle connection
            max_connections=2,
            driver_info=None,  # otherwise redis-py reads files while it connects
        )
        self._known: Snapshot | None = None

    async def exchange(self, request: Request) -> Reply:
        """Apply a report and return the leases. Raise redis.RedisError if that fails."""
        try:
            return await self._exchange(request)
        except UnreadableLogError:
            # The log counts as lost: the clients report what they know to a new one.
            await self._redis.delete(self._key)
            self._known = None
            return await self._exchange(request)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _exchange(self, request: Request) -> Reply:
        known = self._known
        added, entries = await self._add(request)
        # After the clock was set back, there are no entries after the known one.
        if known is not None and (not entries or entries[0][0] != known.entry):
            entries = await self._redis.xrange(self._key, max=added)
            if not entries or order(entries[0][0]) <= order(known.entry) < order(added):
                raise UnreadableLogError  # the server has lost the newest entries
            known = None
        self._known = None  # the replay changes it
        self._known, reply = replay(known, entries)
        return reply

    async def _add(self, request: Request) -> tuple[bytes, Sequence[Entry]]:
        """Add a request to the log. Return its id, and the entries since the last known one."""
        known = self._known
        added: bytes
        entries: Sequence[Entry]
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.time()
            if known is not None and known.number % SNAPSHOT_EVERY == 0:
                pipe.xadd(
                    self._key, {SNAPSHOT: encode(known)}, maxlen=LOG_LENGTH, approximate=False
                )
            pipe.xadd(self._key, {REQUEST: encode(request)}, maxlen=LOG_LENGTH, approximate=False)
            pipe.pexpire(self._key, KEEP)
            pipe.xrange(self._key, known.entry if known is not None else "-")
            (seconds, _), *_, added, _, entries = await pipe.execute()
        if order(added)[0] > seconds * 1000 + CLOCK_MILLISECONDS:
            raise UnreadableLogError  # the clock was set back, and the time of the log stands still
        return added, entries
