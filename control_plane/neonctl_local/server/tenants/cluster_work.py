"""Performs the work of operations on clusters."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import uuid4

from neonctl_local.clock import EPOCH, Instant, in_seconds, instant, utc_now
from neonctl_local.engine import databases, servers, sql_changes
from neonctl_local.engine.points import PointInTime
from neonctl_local.engine.work import (
    ConfigureBranch,
    CopyCluster,
    CreateCluster,
    DeleteClusters,
    ReplaceCluster,
    StartCompute,
    StopClusters,
    SuspendCompute,
    Work,
)
from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import (
    DatabaseSpec,
    Desired,
    RoleSpec,
    SqlChanges,
    verifies,
)
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.bases import Moment
from neonctl_local.storage.database import Database


class Content(NamedTuple):
    """The data of a branch from ``changed_at`` to ``until``, in the cluster with this id.

    ``until`` is the time at which a snapshot was taken; None means the present.
    """

    id: str
    changed_at: Instant
    until: Instant | None


def content_at(at: Instant, contents: Sequence[Content]) -> str | None:
    """Return the id of a cluster that certainly contains the data of the time ``at``, or None.

    For a time between a snapshot and the next ``changed_at``, the result is None, because only the
    time of the last change is known.
    """
    for content in contents:
        if content.changed_at <= at and (content.until is None or at <= content.until):
            return content.id
    return None


_logger = logging.getLogger(__name__)
REPLACEMENT: Final = ".new"
"""The id suffix of a cluster that will replace a branch's cluster."""


class ClusterWork:
    """Makes the clusters of one tenant match its tables.

    ``clock`` is the clock of the tenant; the servers use the machine's clock. ``close_connections``
    closes the connections of a compute.
    """

    def __init__(
        self,
        database: Database,
        clusters: Clusters,
        clock: Callable[[], datetime],
        close_connections: Callable[[str], Awaitable[None]],
    ) -> None:
        self._close_connections: Final = close_connections
        self._database: Final = database
        self._clusters: Final = clusters
        self._clock: Final = clock
        self._last_active: Final[dict[str, datetime | None]] = {}

    async def perform(self, work: Work) -> None:
        """Do the work of an operation. Raise ClusterError if it fails.

        An earlier attempt may have done part of the work.
        """
        match work:
            case CreateCluster():
                await self._create(work)
            case CopyCluster():
                await self._copy(work)
            case ReplaceCluster():
                await self._replace(work)
            case StartCompute():
                await self._clusters.start(work.branch_id, await self._desired(work.branch_id))
            case SuspendCompute():
                await self._suspend(work)
            case ConfigureBranch():
                await self._configure(work.branch_id)
            case StopClusters():
                await asyncio.gather(*map(self._clusters.stop, work.ids))
            case DeleteClusters():
                await self._clusters.delete(*work.ids)

    async def store_sql_changes(self, branch_id: str) -> None:
        """Store the roles and databases of a running server that clients changed with SQL."""

        async def store(found: SqlChanges) -> bool:
            changes = sql_changes.Changes(
                found.changed.roles,
                found.changed.databases,
                found.dropped_roles,
                found.dropped_databases,
            )
            return await self._database.run(sql_changes.store, branch_id, changes, verifies)

        try:
            await self._clusters.pass_sql_changes(branch_id, store)
        except (ClusterError, StorageFullError) as error:
            _logger.info("the changes of branch %s in SQL are unknown: %s", branch_id, error)

    async def forget_found(self, branch_id: str, cluster_id: str | None = None) -> None:
        """Forget which roles and databases clients created, unless the tables contain them.

        The next :meth:`store_sql_changes` then finds them again. Call this after the tables or the
        cluster of a branch were replaced. ``cluster_id`` is the id of the cluster, if it differs
        from the id of the branch. For snapshots and missing clusters, this does nothing.
        """
        cluster_id = cluster_id or branch_id
        is_branch = await self._database.read(databases.is_branch, branch_id)
        if is_branch and cluster_id in self._clusters.ids():
            await self._clusters.forget_found(cluster_id, await self._desired(branch_id))

    async def read_schema(
        self,
        branch_id: str,
        database_name: str,
        at: Instant | None,
        lsn: str | None,
        *,
        as_tables: bool,
    ) -> str:
        """Return the schema of a database at a point in time, as SQL or as JSON.

        Raise ClusterError if the branch has no data for that time.
        """
        async with self._content(PointInTime(branch_id, at, lsn)) as cluster_id:
            if as_tables:
                return await self._clusters.describe_schema(cluster_id, database_name)
            return await self._clusters.dump_schema(cluster_id, database_name)

    async def check(self, point: PointInTime) -> None:
        """Raise ClusterError, with the reason, if a branch has no data for a point in time."""
        if not self._clusters.keeps_history:
            await self._cluster_at(point)
            return
        try:
            await self._clusters.check_moment(point.branch_id, self._moment(point))
        except ClusterError as error:
            raise ClusterError(f"{_unavailable(point)}: {error}") from error

    async def copy_at(self, point: PointInTime, target: str) -> None:
        """Make ``target`` a cluster with the content of a branch at a point in time."""
        if self._needs_history(point):
            await self._clusters.copy_past(point.branch_id, target, self._moment(point))
        else:
            await self._clusters.copy(await self._cluster_at(point), target)

    async def _create(self, work: CreateCluster) -> None:
        if work.template is None:
            await self._clusters.initialize(work.branch_id, work.pg_version)
            return
        if work.takes_template:
            await self._clusters.rename(work.template, work.branch_id)
        else:
            await self._clusters.copy(work.template, work.branch_id)
        await self.forget_found(work.branch_id)

    async def _configure(self, branch_id: str) -> None:
        if self._clusters.is_running(branch_id):
            await self._clusters.configure(branch_id, await self._desired(branch_id))

    async def _suspend(self, work: SuspendCompute) -> None:
        names = (work.branch_id, work.endpoint_id)
        if await self._database.read(databases.is_shared, *names):
            await self._close_connections(work.endpoint_id)
            return
        if not await self._database.read(databases.is_deleted, work.branch_id):
            await self.note_activity(work.branch_id)
        await self._clusters.stop(work.branch_id)
        self._last_active.pop(work.branch_id, None)

    async def note_activity(self, branch_id: str) -> None:
        """Store how a running server was used, and the size of its data."""
        if not self._clusters.is_running(branch_id):
            return
        try:
            activity = await self._clusters.activity(branch_id)
        except ClusterError as error:
            _logger.info("the activity of branch %s is unknown: %s", branch_id, error)
            return
        last = activity.last_active
        # The clock of a tenant may stand still or jump. The same activity counts only once.
        is_new = last is not None and self._last_active.get(branch_id) != last
        self._last_active[branch_id] = last
        with suppress(StorageFullError):  # a compute can also be stopped on a full disk
            await self._database.run(
                databases.note_activity,
                branch_id,
                busy=activity.busy,
                last_active=self._on_own_clock(last) if last is not None and is_new else None,
                logical_size=activity.logical_size,
            )
        if activity.has_sql_changes:
            await self.store_sql_changes(branch_id)

    async def _copy(self, work: CopyCluster) -> None:
        point = PointInTime(work.source, work.at, work.lsn)
        if work.schema_only:
            async with self._content(point) as source:
                await self._clusters.copy_schema(source, work.target)
        else:
            await self._copy_content(point, work.target, work.target)
        await self.forget_found(work.target)

    async def _replace(self, work: ReplaceCluster) -> None:
        # Each step is skipped if an attempt before a crash has completed it.
        existing, new = self._clusters.ids(), work.branch_id + REPLACEMENT
        preserved = work.preserved_id
        if preserved is not None and preserved in existing:
            if new not in existing:
                return
        elif work.branch_id in existing or new not in existing:
            await self._clusters.delete(new)
            point = PointInTime(work.source, work.at, work.lsn)
            await self._copy_content(point, new, work.branch_id)
            await self.forget_found(work.branch_id, new)
            if preserved is not None:
                await self._clusters.rename(work.branch_id, preserved)
        await self._clusters.delete(work.branch_id)
        await self._clusters.rename(new, work.branch_id)

    async def _desired(self, branch_id: str) -> Desired:
        return desired(await self._database.read(databases.desired, branch_id))

    async def _copy_content(self, point: PointInTime, target: str, object_id: str) -> None:
        """Copy the content for a branch or snapshot, and record its LSN if it is not known yet."""
        await self.copy_at(point, target)
        if self._clusters.keeps_history:
            lsn = await self._clusters.copied_at(target)
            await self._database.run(databases.note_lsn, object_id, lsn)

    @asynccontextmanager
    async def _content(self, point: PointInTime) -> AsyncGenerator[str]:
        """Provide the id of a cluster with the content of a branch at a point in time."""
        if not self._needs_history(point):
            yield await self._cluster_at(point)
            return
        past = f"past-{uuid4().hex}"
        await self._clusters.copy_past(point.branch_id, past, self._moment(point))
        try:
            yield past
        finally:
            await self._clusters.delete(past)

    def _needs_history(self, point: PointInTime) -> bool:
        return self._clusters.keeps_history and (point.at is not None or point.lsn is not None)

    def _moment(self, point: PointInTime) -> Moment:
        """Return a point in time on the clock of the servers."""
        if point.at is None:
            return Moment(lsn=point.lsn)
        return Moment(EPOCH + timedelta(microseconds=point.at - self._ahead()))

    async def _cluster_at(self, point: PointInTime) -> str:
        """Return the id of the cluster that contains a branch's content at a point in time."""
        branch_id, at, lsn = point
        if at is None and lsn is None:
            return branch_id
        snapshots = await self._database.read(servers.snapshots_of, branch_id)
        if lsn is not None:
            found = next((snapshot.id for snapshot in snapshots if snapshot.lsn == lsn), None)
        else:
            assert at is not None
            contents = [
                Content(snapshot.id, await self._changed_at(snapshot.id), snapshot.created_at)
                for snapshot in snapshots
                if snapshot.id in self._clusters.ids()
            ]
            current = Content(branch_id, await self._changed_at(branch_id), None)
            found = content_at(at, [current, *contents])
        if found is None:
            raise ClusterError(
                f"{_unavailable(point)}: a local branch has its current data and that of its "
                "snapshots. Start the local control plane with history=True or --history"
            )
        return found

    async def _changed_at(self, cluster_id: str) -> Instant:
        return self._on_own_clock(await self._clusters.changed_at(cluster_id))

    def _on_own_clock(self, moment: datetime) -> Instant:
        return instant(moment) + self._ahead()

    def _ahead(self) -> int:
        """Return how far the clock of the tenant is ahead of the clock of the servers."""
        return 0 if self._clock is utc_now else instant(self._clock()) - instant(utc_now())


def desired(state: databases.DesiredState) -> Desired:
    """Return what the cluster of a branch must contain."""
    return Desired(
        roles=[RoleSpec(*role) for role in state.roles],
        databases=[DatabaseSpec(*database) for database in state.databases],
        settings=state.settings,
        renamed=state.renamed,
    )


def _unavailable(point: PointInTime) -> str:
    moment = f"LSN {point.lsn}" if point.at is None else in_seconds(point.at)
    return f"the data of branch {point.branch_id!r} at {moment} is not available"
