"""The clusters of a control plane by id, in memory and in the index of the data directories."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from neonctl_local.postgres.cluster import Cluster, Machine
from neonctl_local.postgres.copying import remove
from neonctl_local.postgres.directories import Directories
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.archive import history_of
from neonctl_local.postgres.servers.scheduling import complete, in_thread, logger
from neonctl_local.postgres.template import password_file

REMOVALS: Final = 8
"""How many directories may be removed at a time. A removal mostly waits for the disk."""


class Registry:
    """The clusters by id. The caller holds the lock of each id that it changes.

    Each change is completed, even if the caller is cancelled. ``on_crash`` is called with the id
    and the reason if a server ends without having been stopped.
    """

    def __init__(
        self, directories: Directories, on_crash: Callable[[str, str], None], *, durable: bool
    ) -> None:
        self._directories = directories
        self._on_crash = on_crash
        self._durable = durable
        self._clusters: dict[str, Cluster] = {}
        self._index_lock = asyncio.Lock()
        self._removals = ThreadPoolExecutor(REMOVALS, "neonctl-async-removal")

    def __iter__(self) -> Iterator[str]:
        return iter(self._clusters)

    def load(self, paths: Mapping[str, Path], machine: Machine) -> None:
        """Add the clusters of existing data directories."""
        for id, path in paths.items():
            self._register(id, Cluster(path, machine))

    def find(self, id: str) -> Cluster | None:
        """Return the cluster with an id, or None."""
        return self._clusters.get(id)

    def get(self, id: str) -> Cluster:
        """Return the cluster with an id. Raise ClusterError if there is none."""
        if id not in self._clusters:
            raise ClusterError(f"There are no data of {id}")
        return self._clusters[id]

    def running(self) -> list[Cluster]:
        """Return the clusters whose servers are running."""
        return [cluster for cluster in self._clusters.values() if cluster.running]

    async def put(self, id: str, cluster: Cluster) -> None:
        """Give a cluster an id in one step, and remove the previous cluster with that id."""
        await complete(self._put(id, cluster))

    async def move(self, id: str, new_id: str) -> None:
        """Give a stopped cluster a new id."""
        await complete(self._move(id, new_id))

    async def drop(self, id: str) -> None:
        """Remove a cluster with its data."""
        await complete(self._drop(id))

    async def detach(self, id: str) -> Cluster:
        """Remove an id, and return its cluster, whose crashes are no longer reported."""
        return await complete(self._detach(id))

    async def discard(self, cluster: Cluster) -> None:
        """Stop the server of a cluster that has no id, and remove the cluster's data."""
        await complete(self._discard(cluster))

    async def remove_files(self, data: Path) -> None:
        """Remove a data directory with its history and password. Errors are logged."""
        try:
            for path in (data, history_of(data)):
                await in_thread(remove, path, executor=self._removals)
            await in_thread(partial(password_file(data).unlink, missing_ok=True))
        except OSError as error:
            logger.warning("%s is removed at the next start: %s", data, error)

    async def close(self) -> None:
        """Forget all clusters, and wait until all removals have finished."""
        self._clusters.clear()
        await in_thread(self._removals.shutdown)

    def _register(self, id: str, cluster: Cluster) -> None:
        cluster.on_crash = partial(self._on_crash, id)
        self._clusters[id] = cluster

    async def _put(self, id: str, cluster: Cluster) -> None:
        old = self._clusters.get(id)
        if old is not None:
            await old.stop(immediately=True)
        if self._durable:
            await in_thread(os.sync)  # before the index names the directory
        await self._assign({id: cluster.data})
        self._register(id, cluster)
        if old is not None:
            await self._discard(old)

    async def _move(self, id: str, new_id: str) -> None:
        await self._assign({id: None, new_id: self._clusters[id].data})
        self._register(new_id, self._clusters.pop(id))

    async def _drop(self, id: str) -> None:
        cluster = self._clusters.pop(id)
        try:
            await self._assign({id: None})
        except ClusterError:  # without the data, a full disk has space for the index
            await self._discard(cluster)
            await self._assign({id: None})
        else:
            await self._discard(cluster)

    async def _detach(self, id: str) -> Cluster:
        cluster = self._clusters.pop(id)
        cluster.on_crash = _ignore
        await self._assign({id: None})
        return cluster

    async def _discard(self, cluster: Cluster) -> None:
        cluster.on_crash = _ignore
        await cluster.stop(immediately=True)
        await in_thread(cluster.end_leftover_servers)
        await self.remove_files(cluster.data)

    async def _assign(self, changes: Mapping[str, Path | None]) -> None:
        async with self._index_lock:
            await in_thread(self._directories.assign, changes)


def _ignore(_reason: str) -> None:
    """Do nothing when a server without an id crashes, because it is no longer used."""
