"""Servers with past data of branches, for connections that name a point in time."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import uuid4

from neonctl_local.engine import databases
from neonctl_local.engine.points import PointInTime
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.server.tenants.cluster_work import ClusterWork, desired
from neonctl_local.storage.database import Database

IDLE_SECONDS: Final = 30.0
"""The time after the last connection until the server and its data are removed, as on Neon."""
MAXIMUM: Final = 8
"""The largest number of points in time that one tenant's clients can be connected to at once."""


@dataclass
class _Past:
    cluster_id: str = field(default_factory=lambda: f"past-{uuid4().hex}")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_at: float = field(default_factory=lambda: asyncio.get_running_loop().time())


class PastServers:
    """The servers of one tenant that have the data of a branch at a point in time.

    The ``endpoint_id`` of such a server also names the point in time. ``connections`` returns the
    number of connections through the proxy to an ``endpoint_id``.
    """

    def __init__(
        self,
        database: Database,
        clusters: Clusters,
        work: ClusterWork,
        connections: Callable[[str], int],
    ) -> None:
        self._database: Final = database
        self._clusters: Final = clusters
        self._work: Final = work
        self._connections: Final = connections
        self._pasts: dict[str, _Past] = {}
        self._is_closed = False

    def open(self) -> None:
        """Allow servers to start again after :meth:`close`, for example after a tenant's reset."""
        self._is_closed = False

    async def start(self, endpoint_id: str, point: PointInTime) -> str:
        """Start the server for a point in time, unless it is running. Return its cluster's id.

        The proxy must have counted the connection already. The server accepts the passwords that
        the branch accepts now. Raise ClusterError if the branch has no data for that time, if too
        many points in time are in use, or if the control plane is stopping.
        """
        while True:
            past = self._pasts.get(endpoint_id)
            if past is None:
                past = self._add(endpoint_id)
            async with past.lock:
                # While this waited, the server may have been removed, or its copy may have failed.
                if self._pasts.get(endpoint_id) is past:
                    await self._start(endpoint_id, past.cluster_id, point)
                    past.used_at = asyncio.get_running_loop().time()
                    return past.cluster_id

    def _add(self, endpoint_id: str) -> _Past:
        if self._is_closed:
            raise ClusterError("the local control plane is stopping")
        if len(self._pasts) >= MAXIMUM:
            raise ClusterError(
                f"clients are connected to {MAXIMUM} points in time: disconnect from one, and "
                f"connect again after {IDLE_SECONDS:g} seconds"
            )
        past = self._pasts[endpoint_id] = _Past()
        return past

    async def _start(self, endpoint_id: str, id: str, point: PointInTime) -> None:
        if id not in self._clusters.ids():
            try:
                await self._work.check(point)
                await self._work.copy_at(point, id)
            except BaseException:
                del self._pasts[endpoint_id]
                raise
        state = await self._database.read(databases.desired, *point)
        await self._clusters.start(id, desired(state))

    async def sweep(self) -> None:
        """Remove the servers that nobody has used for a while, and those of deleted branches."""
        now = asyncio.get_running_loop().time()
        for endpoint_id, past in tuple(self._pasts.items()):
            route = await self._database.read(databases.past_route, endpoint_id.partition(" ")[0])
            if route is not None and self._connections(endpoint_id):
                past.used_at = now
            elif past.lock.locked():  # a recovery takes long, and all other sweeps would wait
                continue
            elif route is None or now - past.used_at >= IDLE_SECONDS:
                await self._remove(endpoint_id, past)

    async def close(self) -> None:
        """Remove all servers."""
        self._is_closed = True
        for endpoint_id, past in tuple(self._pasts.items()):
            await self._remove(endpoint_id, past)

    async def _remove(self, endpoint_id: str, past: _Past) -> None:
        async with past.lock:
            if self._pasts.get(endpoint_id) is past:
                await self._clusters.delete(past.cluster_id)
                del self._pasts[endpoint_id]
