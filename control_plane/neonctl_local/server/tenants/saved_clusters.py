"""Copies of the clusters of a tenant, to which a reset of the tenant returns."""

from collections.abc import Iterable
from uuid import uuid4

from neonctl_local.engine.work import ConfigureBranch, SuspendCompute, Work, touches
from neonctl_local.postgres.clusters import Clusters


class SavedClusters:
    """Keeps a copy of each cluster that changes after a save, as it was before its first change.

    The ids of the copies start with ``saved-`` and are in no table.
    """

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._saved: frozenset[str] = frozenset()
        self._copies: dict[str, str] = {}
        self._changed: set[str] = set()
        self._prepared: dict[str, int] = {}

    async def before(self, work: Work) -> None:
        """Copy the saved clusters that work is going to change. Raise ClusterError."""
        # A server that is suspended or configured was started before.
        if not isinstance(work, SuspendCompute | ConfigureBranch):
            changing = touches(work).exclusive
            for cluster_id in changing & self._saved - self._copies.keys():
                await self._copy(cluster_id)
            self._changed |= changing

    async def save(self, ids: Iterable[str]) -> None:
        """Save only the clusters with these ids, as they are now. Raise ClusterError."""
        wanted = frozenset(ids)
        outdated = self._copies.keys() - (wanted - self._changed)
        await self._clusters.delete(*(self._copies.pop(cluster_id) for cluster_id in outdated))
        self._changed.clear()
        self._saved = wanted
        for cluster_id in wanted - self._copies.keys():
            if self._clusters.is_running(cluster_id):  # clients change it without any work
                await self._copy(cluster_id)
                self._changed.add(cluster_id)

    async def _copy(self, cluster_id: str) -> None:
        copy = f"saved-{uuid4().hex}"
        await self._clusters.copy(cluster_id, copy)
        self._copies[cluster_id] = copy

    async def prepare(self, cluster_id: str, count: int) -> None:
        """Keep ``count`` started copies of a cluster ready, also after :meth:`restore`."""
        await self._clusters.prepare(cluster_id, count)
        self._prepared[cluster_id] = count

    async def restore(self) -> None:
        """Replace changed clusters with their copies. Raise ClusterError."""
        for cluster_id in self._changed & self._copies.keys():
            await self._clusters.copy(self._copies[cluster_id], cluster_id)
            if cluster_id in self._prepared:
                await self._clusters.prepare(cluster_id, self._prepared[cluster_id])
        self._changed.clear()
