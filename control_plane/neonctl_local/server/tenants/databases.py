"""The real databases of one tenant, and the copies that a reset of the tenant restores."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from datetime import datetime
from typing import Final
from uuid import uuid4

import msgspec

from neonctl_local.api.branch_data.schemas import SchemaRead
from neonctl_local.api.request.calls import Response
from neonctl_local.engine import databases, work
from neonctl_local.engine.points import PointInTime
from neonctl_local.engine.work import ConfigureBranch, CreateCluster, SuspendCompute, Work, touches
from neonctl_local.errors import locked, unprocessable
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterBusyError, ClusterError, DiskFullError
from neonctl_local.server.failure_log import FailureLog
from neonctl_local.server.tenants.cluster_work import ClusterWork
from neonctl_local.server.tenants.past import PastServers
from neonctl_local.server.tenants.work_runner import WorkRunner
from neonctl_local.storage.database import Database

_logger = logging.getLogger(__name__)

TEMPLATE: Final = "template-"
"""The start of the ids of templates."""


class TenantDatabases:
    """The clusters of one tenant: the work of its operations, and reads of its schemas."""

    def __init__(
        self,
        database: Database,
        utc_now: Callable[[], datetime],
        clusters: Clusters,
        *,
        close_connections: Callable[[str], Awaitable[None]],
        connections: Callable[[str], int],
        sweep: Callable[[], Coroutine[None, None, None]],
        make_room: Callable[[], Awaitable[bool]],
    ) -> None:
        self._make_room = make_room
        self._sweep = sweep
        self._sweeping: asyncio.Task[None] | None = None
        self._failures = FailureLog(_logger, "clusters of a tenant could not be deleted")
        self._clusters = clusters
        self._saved = SavedClusters(clusters)
        self._shared: frozenset[str] = frozenset()
        self._template: str | None = None
        self._takes_template = False
        self._database = database
        self._work = ClusterWork(database, clusters, utc_now, close_connections)
        self.runner: WorkRunner = WorkRunner(database, self._perform)
        self.past: PastServers = PastServers(database, clusters, self._work, connections)

    async def start(self) -> None:
        """Continue unfinished work.

        First, all computes become idle, except those of running ``shared`` branches (:meth:`save`).
        """
        running = {branch for branch in self._shared if self._clusters.is_running(branch)}
        await self._database.spend(databases.stop_all, running)
        self.past.open()
        self.runner.start()

    async def stop(self) -> None:
        """Cancel running work, which stays unfinished."""
        await self.runner.stop()
        await self.past.close()
        await self._finish_sweep()

    @property
    def keeps_history(self) -> bool:
        """True if branches and restores can start at any point in time."""
        return self._clusters.keeps_history

    async def note_activity(self, branch_id: str) -> None:
        """Store how the server of a branch was used, if the server is running."""
        await self._work.note_activity(branch_id)

    async def check(self, point: PointInTime) -> None:
        """Raise ApiError 422, with the reason, if a branch has no data for a point in time."""
        try:
            await self._work.check(point)
        except ClusterError as error:
            raise unprocessable(str(error)) from None

    async def store_sql_changes(self, branch_ids: Iterable[str]) -> None:
        """Store the roles and databases of branches that clients changed with SQL."""
        for branch_id in branch_ids:
            await self._work.store_sql_changes(branch_id)

    async def read(self, read: SchemaRead) -> Response:
        """Return the response to a request for schemas.

        Raise ApiError 422 if a schema cannot be read, and 423 if a client holds a lock on it.
        """
        try:
            schemas = [
                await self._work.read_schema(*source, as_tables=read.as_tables)
                for source in read.sources
            ]
        except ClusterBusyError as error:
            raise locked(str(error)) from None
        except ClusterError as error:
            raise unprocessable(str(error)) from None
        return read.respond(schemas)

    async def save(self, shared: Collection[str] = ()) -> None:
        """Keep a copy of each cluster, for :meth:`replace`. Raise ValueError if work is unfinished.

        The clusters of ``shared`` branches are left as they are when the others are restored, and
        their servers keep running.
        """
        if await self._database.read(work.unfinished):
            raise ValueError("operations of this tenant are running: wait for them before save()")
        ids = self._clusters.ids()
        self._shared = frozenset(shared)
        ids -= await self._database.read(databases.unreferenced, ids)
        await self._saved.save(ids - self._shared)

    async def replace(self, change: Callable[[], Awaitable[None]]) -> None:
        """Replace the tables by calling ``change``, and restore the saved clusters.

        Clusters that are no longer needed are deleted in the background.
        """
        try:
            await self.stop()
            await change()
            await self._saved.restore()
            for branch_id in self._shared:
                await self._work.forget_found(branch_id)
            self._sweeping = asyncio.create_task(self._sweep())
        finally:
            await self.start()

    async def prepare(self, branch_id: str, count: int) -> None:
        """Keep ``count`` running copies of a branch ready for its new child branches."""
        await self._saved.prepare(branch_id, count)

    async def publish_template(self, branch_id: str) -> str:
        """Copy the cluster of a branch to a template that all tenants can use. Return its id."""
        template = f"{TEMPLATE}{uuid4().hex}"
        await self._clusters.copy(branch_id, template)
        return template

    async def load_template(self, key: str) -> str:
        """Return the id of the cached template for a key, or an empty string."""
        template = f"{TEMPLATE}{uuid4().hex}"
        return template if await self._clusters.load(key, template) else ""

    async def keep_template(self, template: str, key: str) -> str:
        """Keep a template in the user's cache, for :meth:`load_template` in later runs.

        Return an empty string if this succeeds, or the reason if it fails.
        """
        return await self._clusters.keep(template, key)

    def use_template(self, template: str | None, *, is_last: bool) -> None:
        """Make new projects start with a copy of a template; None means an empty database.

        With ``is_last``, the next project gets the template itself, so nothing is copied. Raise
        ValueError for the id of a branch, which a project cannot take.
        """
        if is_last and template is not None and not template.startswith(TEMPLATE):
            raise ValueError(f"template is {template!r}: expected the id of a template")
        self._template = template
        self._takes_template = is_last

    async def _perform(self, task: Work) -> None:
        if isinstance(task, CreateCluster):
            task = msgspec.structs.replace(
                task, template=self._template, takes_template=self._takes_template
            )
        while True:
            try:
                await self._saved.before(task)
                return await self._work.perform(task)
            except DiskFullError:
                if not await self._make_room():
                    raise

    async def _finish_sweep(self) -> None:
        """Wait for the deletions of the last reset, so that they do not pile up."""
        sweeping, self._sweeping = self._sweeping, None
        if sweeping is not None:
            with self._failures:
                await sweeping


class SavedClusters:
    """Keeps a copy, as of the last save, of each cluster that was running or has changed since.

    The ids of the copies start with ``saved-`` and are not in any table.
    """

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._saved: frozenset[str] = frozenset()
        self._copies: dict[str, str] = {}
        self._changed: set[str] = set()
        self._prepared: dict[str, int] = {}

    async def before(self, work: Work) -> None:
        """Copy the saved clusters that ``work`` will change. Raise ClusterError on failure."""
        # A server that is suspended or configured was started before.
        if not isinstance(work, SuspendCompute | ConfigureBranch):
            changing = touches(work).exclusive
            for cluster_id in changing & self._saved - self._copies.keys():
                await self._copy(cluster_id)
            self._changed |= changing

    async def save(self, ids: Iterable[str]) -> None:
        """Save only the clusters with these ids, as they are now. Raise ClusterError on failure."""
        wanted = frozenset(ids)
        outdated = self._copies.keys() - (wanted - self._changed)
        await self._clusters.delete(*(self._copies.pop(cluster_id) for cluster_id in outdated))
        self._changed.clear()
        self._saved = wanted
        for cluster_id in wanted - self._copies.keys():
            if self._clusters.is_running(cluster_id):  # clients can change it without an operation
                await self._copy(cluster_id)
                self._changed.add(cluster_id)

    async def _copy(self, cluster_id: str) -> None:
        copy = f"saved-{uuid4().hex}"
        await self._clusters.copy(cluster_id, copy)
        self._copies[cluster_id] = copy

    async def prepare(self, cluster_id: str, count: int) -> None:
        """Keep ``count`` started copies of a cluster ready, even after :meth:`restore`."""
        await self._clusters.prepare(cluster_id, count)
        self._prepared[cluster_id] = count

    async def restore(self) -> None:
        """Replace changed clusters with their copies. Raise ClusterError on failure."""
        for cluster_id in self._changed & self._copies.keys():
            await self._clusters.copy(self._copies[cluster_id], cluster_id)
            if cluster_id in self._prepared:
                await self._clusters.prepare(cluster_id, self._prepared[cluster_id])
        self._changed.clear()
