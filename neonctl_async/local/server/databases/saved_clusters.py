"""Copies of the clusters of a tenant, to which a reset of the tenant returns."""

import asyncio
import logging
from collections.abc import Iterable
from uuid import uuid4

from neonctl_async.local.engine.work import ConfigureBranch, SuspendCompute, Work, touches
from neonctl_async.local.postgres.clusters import Clusters
from neonctl_async.local.postgres.errors import ClusterError

_logger = logging.getLogger(__name__)


class SavedClusters:
    """Keeps a copy of each cluster, and notices which clusters change after that.

    The ids of the copies start with ``saved-``. They are in no table.
    """

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._copies: dict[str, str] = {}
        self._changed: set[str] = set()
        self._spares: dict[str, int] = {}
        self._deletion: asyncio.Task[None] | None = None

    def note(self, work: Work) -> None:
        """Record that work changes clusters. A stopped or configured server was started before."""
        if not isinstance(work, SuspendCompute | ConfigureBranch):
            self._changed |= touches(work).exclusive

    async def save(self, ids: Iterable[str]) -> None:
        """Replace the copies by copies of the clusters with these ids. Raise ClusterError."""
        await self.forget()
        for cluster_id in ids:
            copy = f"saved-{uuid4().hex}"
            await self._clusters.copy(cluster_id, copy)
            self._copies[cluster_id] = copy
        self._changed.clear()

    async def prepare(self, cluster_id: str, count: int) -> None:
        """Keep ``count`` started copies of a cluster ready, also after :meth:`restore`."""
        await self._clusters.prepare(cluster_id, count)
        self._spares[cluster_id] = count

    async def restore(self, gone: Iterable[str]) -> set[str]:
        """Replace changed clusters by their copies, and delete others in the background.

        Return the ids of the replaced clusters. Their servers are stopped. Raise ClusterError if a
        copy fails.
        """
        await self.finish()  # so that deletions of many resets do not pile up
        self._deletion = asyncio.create_task(self._delete(set(gone)))
        replaced = self._changed & self._copies.keys()
        for cluster_id in replaced:
            await self._clusters.delete(cluster_id)
            await self._clusters.copy(self._copies[cluster_id], cluster_id)
            if cluster_id in self._spares:
                await self._clusters.prepare(cluster_id, self._spares[cluster_id])
        self._changed.clear()
        return replaced

    async def forget(self) -> None:
        """Delete the copies."""
        await self.finish()
        copies, self._copies = self._copies, {}
        await self._clusters.delete(*copies.values())

    async def finish(self) -> None:
        """Wait until all deletions are done."""
        deletion, self._deletion = self._deletion, None
        if deletion is not None:
            await deletion

    async def _delete(self, ids: set[str]) -> None:
        try:
            await self._clusters.delete(*ids)
        except ClusterError as error:
            _logger.warning("clusters of a tenant could not be deleted: %s", error)
