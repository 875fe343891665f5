"""All clusters of one control plane."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres import dumps
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.admin import Activity, load_driver
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cluster import Cluster, Machine
from neonctl_local.postgres.configuration import Desired, SqlChanges
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.directories import DataFile, Directories
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.archive import copied_at
from neonctl_local.postgres.history.bases import Base, Moment, oversized
from neonctl_local.postgres.logins import Password, ServerLogin
from neonctl_local.postgres.migrated import find_migrated, keep_migrated
from neonctl_local.postgres.recovery import check_moment, keep_history, list_outdated, recover
from neonctl_local.postgres.registry import Registry
from neonctl_local.postgres.servers.extensions import TrustedExtensions
from neonctl_local.postgres.servers.guarding import Guard
from neonctl_local.postgres.servers.scheduling import (
    Background,
    ClusterLock,
    complete,
    in_thread,
    logger,
)
from neonctl_local.postgres.spares import Spares
from neonctl_local.postgres.template import Template, prepare_template

SLOTS: Final = 4
"""The largest number of starts and copies that run at the same time."""

UNUSED_TIME: Final = 10.0
"""How long the server of a prepared copy keeps running, unused, after the copy is given an id, in
seconds."""


class Clusters:
    """The clusters of one control plane, by id.

    Without ``directory``, the data is temporary: it is removed by ``close``, or by the guardian if
    the control plane is killed. ``durable`` servers write to disk before they confirm a commit.
    With ``history``, clusters can be copied as they were at an earlier moment. ``on_crash`` is
    called with the id and the reason if a server ends without having been stopped.
    """

    def __init__(
        self,
        installations: Mapping[int, Installation],
        account: ServerAccount | None,
        *,
        directory: Path | None,
        durable: bool,
        history: bool = False,
        data_file: DataFile | None = None,
    ) -> None:
        self.on_crash: Callable[[str, str], None] = _log_crash
        self._installations = installations
        self._account = account
        self._durable = durable
        self._directories = Directories(
            directory, account, durable=durable, history=history, data_file=data_file
        )
        extensions = TrustedExtensions(Path(), account)
        self._machine = Machine(
            installations, account, Path(), durable, extensions, history=history
        )
        self._registry = Registry(self._directories, self._crashed, durable=durable)
        self._locks: dict[str, ClusterLock] = {}
        self._slots = asyncio.Semaphore(SLOTS)
        self._spares = Spares(self._make_spare, self._restore_spare, self._registry.discard)
        self._background = Background()
        self._unused: dict[str, asyncio.TimerHandle] = {}
        self._guard: Guard | None = None

    async def open(self) -> None:
        """Lock the data, start the guardian, and remove what a killed control plane left behind.

        Raise RuntimeError if another control plane uses the directory, if data that ``data_file``
        needs is missing, or if the data belongs to another data file.
        """
        try:
            await self._open()
        except BaseException:
            await self.close()
            raise

    async def _open(self) -> None:
        await in_thread(load_driver)
        paths = await in_thread(self._directories.open)
        sockets = self._directories.sockets
        extensions = TrustedExtensions(self._directories.extensions, self._account)
        self._machine = msgspec.structs.replace(
            self._machine, sockets=sockets, extensions=extensions
        )
        self._registry.load(paths, self._machine)
        directories = self._directories
        self._guard = Guard(directories.root, directories.temporary, directories.locks)
        await self._guard.start()

    async def claim(self, id: str) -> None:
        """Store the id of the data file that the directory belongs to."""
        if not self._directories.is_temporary:
            await in_thread(self._directories.claim, id)

    async def close(self) -> None:
        """Stop all servers, and remove temporary data. A cancellation takes effect at the end."""
        await complete(self._close())

    async def _close(self) -> None:
        for timer in self._unused.values():
            timer.cancel()
        await self._spares.stop()
        await self._background.stop()
        immediately = self._directories.is_temporary
        running, spares = self._registry.running(), self._spares.take_all()
        stops = [self._stop_quietly(cluster, immediately=immediately) for cluster in running]
        stops += [self._stop_quietly(spare, immediately=True) for spare in spares]
        await asyncio.gather(*stops)
        await self._registry.close()
        await in_thread(self._directories.close)
        if self._guard is not None:
            await self._guard.stop()

    @property
    def root(self) -> Path:
        """The directory that contains the data. Only this user and the servers can enter it."""
        return self._directories.root

    def ids(self) -> set[str]:
        """Return the ids of all clusters."""
        return set(self._registry)

    def is_running(self, id: str) -> bool:
        """Return whether the server of a cluster was started and accepts connections."""
        cluster = self._registry.find(id)
        return cluster is not None and cluster.running and id not in self._unused

    def socket(self, id: str) -> Path | None:
        """Return the socket of a running server."""
        return self._registry.get(id).socket if self.is_running(id) else None

    async def initialize(self, id: str, major: int) -> None:
        """Create an empty cluster, unless it exists."""
        async with self._hold(exclusive=[id]):
            if self._registry.find(id) is None:
                await self._create(id, partial(self._copy_template, major))

    async def copy(self, source: str, target: str) -> None:
        """Make ``target`` a copy of ``source`` at one point in time, replacing its earlier data."""
        if spare := await self._spares.take(source):
            try:
                async with self._hold(exclusive=[target]):
                    await self._replace(target, spare)
            except BaseException:
                if self._registry.find(target) is not spare:
                    await self._registry.discard(spare)
                raise
            self._stop_unless_used(target)
            return
        async with self._hold(exclusive=[target], shared=[source]):
            await self._create(target, self._registry.get(source).copy_to)

    @property
    def keeps_history(self) -> bool:
        """True if clusters can be copied as they were at an earlier moment."""
        return self._machine.history

    async def check_moment(self, id: str, moment: Moment) -> None:
        """Raise ClusterError, with the reason, if a cluster's history does not cover a moment."""
        async with self._hold(shared=[id]):
            await check_moment(self._registry.get(id), moment)

    async def copy_past(self, source: str, target: str, moment: Moment) -> None:
        """Make ``target`` a copy of ``source`` as it was at an earlier moment."""
        async with self._hold(exclusive=[target], shared=[source]):
            await self._create(target, partial(self._recover, self._registry.get(source), moment))

    async def copied_at(self, id: str) -> str:
        """Return the LSN of the source at which a copy was made, or "" if it is unknown."""
        return await in_thread(copied_at, self._registry.get(id).data)

    async def keep_history(self, retention: Mapping[str, float]) -> None:
        """Copy clusters whose WAL has grown enough, and remove history beyond the retention period.

        ``retention`` maps ids of clusters to seconds. Failures are logged.
        """
        for id in retention.keys() & self.ids():
            try:
                async with self._hold(shared=[id]), self._slots:
                    cluster = self._registry.find(id)
                    if cluster is None:
                        continue
                    await keep_history(cluster)
                    old = await list_outdated(cluster, retention[id])
                if old:
                    await self._drop_history(id, cluster, old)
            except (ClusterError, OSError) as error:
                logger.warning("the history of %s is not complete: %s", id, error)

    async def limit_history(self, limit: int) -> bool:
        """Drop the oldest history beyond ``limit`` bytes. Return whether any was dropped."""
        clusters: dict[str, Cluster] = {}
        usage: dict[str, list[tuple[Base, int]]] = {}
        for id in self.ids():
            async with self._hold(shared=[id]):
                cluster = self._registry.find(id)
                if cluster is not None and cluster.history is not None:
                    clusters[id] = cluster
                    usage[id] = await in_thread(cluster.history.usage)
        dropped = oversized(usage, limit)
        for id, bases in dropped.items():
            await self._drop_history(id, clusters[id], bases)
        return bool(dropped)

    async def copy_schema(self, source: str, target: str) -> None:
        """Make ``target`` a cluster with the roles and schemas of ``source``, without rows."""
        async with self._hold(exclusive=[target], shared=[source]):
            await self._create(target, partial(self._copy_empty, self._registry.get(source)))

    async def load(self, key: str, id: str) -> bool:
        """Create a cluster from the cache entry for a key and the latest installed Postgres.

        Return False if there is no such entry. The caller holds the lock of the key.
        """
        newest = self._installations[max(self._installations)]
        kept = await in_thread(find_migrated, key, newest)
        if kept is None:
            return False
        async with self._hold(exclusive=[id]):
            await self._create(id, partial(self._copy_stopped, kept))
        return True

    async def keep(self, id: str, key: str) -> str:
        """Keep a copy of a stopped cluster in the cache, for :meth:`load` in later runs.

        Return an empty string if this succeeds, or the reason if it fails. The caller holds the
        lock of the key.
        """
        async with self._hold(shared=[id]):
            data = self._registry.get(id).data
            try:
                installation = await in_thread(self._machine.installation, data)
                await in_thread(keep_migrated, data, key, installation)
            except (OSError, ClusterError) as error:
                return str(error)
        return ""

    async def rename(self, id: str, new_id: str) -> None:
        """Stop a cluster and give it a new id. Nothing happens if ``new_id`` exists already."""
        async with self._hold(exclusive=[id, new_id]):
            if self._registry.find(new_id) is not None:
                return
            cluster = self._registry.get(id)
            self._spares.invalidate(id, forget=True)
            self._cancel_stop(id)
            await cluster.stop()
            await self._registry.move(id, new_id)

    async def delete(self, *ids: str) -> None:
        """Stop and remove clusters. Missing ids are ignored."""
        await asyncio.gather(*(self._delete(id) for id in ids))

    async def start(self, id: str, desired: Desired) -> None:
        """Start the server of a cluster, unless it is running, and apply ``desired`` in SQL.

        Return when the server accepts connections.
        """
        async with self._hold(exclusive=[id]), self._slots:
            cluster = self._registry.get(id)
            self._spares.invalidate(id)
            self._cancel_stop(id)
            await cluster.start(desired)

    async def configure(self, id: str, desired: Desired) -> None:
        """Apply ``desired`` to a running server. Restart the server if a setting requires it."""
        async with self._hold(exclusive=[id]):
            cluster = self._registry.get(id)
            if not cluster.running:
                raise ClusterError(f"The Postgres server of {id} is not running")
            await cluster.start(desired)

    async def stop(self, id: str) -> None:
        """Stop the server of a cluster, if it is running. Its sessions get SQLSTATE 57P01."""
        async with self._hold(exclusive=[id]):
            await self._stop(id)
        self._spares.fill()

    async def stop_unused(self, id: str, is_unused: Callable[[], Awaitable[bool]]) -> None:
        """Stop the server of a cluster as ``stop`` does, if ``is_unused`` returns True.

        A start that is requested after ``is_unused`` is called waits for the stop, and then starts
        the server again.
        """
        async with self._hold(exclusive=[id]):
            if await is_unused():
                await self._stop(id)
        self._spares.fill()

    async def _stop(self, id: str) -> None:
        self._cancel_stop(id)
        cluster = self._registry.find(id)
        if cluster is not None:
            await cluster.stop()

    async def login(self, id: str, role: str, database: str) -> ServerLogin | None:
        """Return what a running server checks at a login, or None if the role does not exist.

        Raise ClusterError if the server is not running.
        """
        return await self._registry.get(id).login(role, database)

    async def password(self, id: str, role: str, desired: Desired) -> Password | None:
        """Return the password that a stopped server will accept after a start with ``desired``.

        Return None if the password is unknown, because the server is running or was not stopped
        cleanly.
        """
        cluster = self._registry.find(id)
        return None if cluster is None else await in_thread(cluster.password, role, desired)

    async def activity(self, id: str) -> Activity:
        """Return the activity of a running server."""
        async with self._hold(shared=[id]):
            return await self._registry.get(id).activity()

    async def pass_sql_changes(
        self, id: str, store: Callable[[SqlChanges], Awaitable[bool]]
    ) -> None:
        """Call ``store`` with the changes that clients made to roles and databases in SQL.

        Do nothing if there are no changes, or if the server is not running. Changes for which
        ``store`` returns False are reported again by the next call.
        """
        if not self.is_running(id):
            return
        async with self._hold(shared=[id]):
            cluster = self._registry.find(id)
            if cluster is None or not await cluster.sql_changes():
                return
        async with self._hold(exclusive=[id]):
            changes = await self._registry.get(id).sql_changes()
            if changes and await store(changes):
                await self._registry.get(id).accept(changes)

    async def forget_found(self, id: str, desired: Desired) -> None:
        """Forget the roles and databases that clients created, unless they are in ``desired``.

        The next :meth:`pass_sql_changes` reports them again. Call this after a copy.
        """
        async with self._hold(exclusive=[id]):
            await in_thread(self._registry.get(id).forget_found, desired)

    async def size(self, id: str) -> int:
        """Return the number of bytes that a cluster uses on disk, or 0 if it does not exist."""
        async with self._hold(shared=[id]):
            cluster = self._registry.find(id)
            return 0 if cluster is None else await in_thread(cluster.size)

    async def changed_at(self, id: str) -> datetime:
        """Return the time of the last commit in a cluster."""
        async with self._hold(exclusive=[id]):
            return await self._registry.get(id).changed_at()

    async def dump_schema(self, id: str, database: str) -> str:
        """Return the schema of a database as SQL. A stopped server is started for this."""
        async with self._running(id) as cluster:
            return await dumps.dump_schema(cluster, database, self._account)

    async def describe_schema(self, id: str, database: str) -> str:
        """Return the tables of a database as JSON. A stopped server is started for this."""
        async with self._running(id) as cluster:
            return await dumps.describe_tables(cluster, database)

    async def prepare(self, source: str, count: int) -> None:
        """Keep ``count`` started copies of a stopped cluster ready for ``copy``."""
        self._registry.get(source)
        self._spares.want(source, count)

    def prepared(self, source: str) -> int:
        """Return the number of started copies of a cluster that are ready."""
        return self._spares.ready(source)

    @asynccontextmanager
    async def _hold(
        self, *, exclusive: Collection[str] = (), shared: Collection[str] = ()
    ) -> AsyncGenerator[None]:
        """Hold the locks of clusters, acquired in the order of their ids to prevent deadlocks."""
        async with AsyncExitStack() as stack:
            for id in sorted({*exclusive, *shared}):
                lock = self._locks.setdefault(id, ClusterLock())
                stack.callback(self._release, id)
                held = lock.exclusive() if id in exclusive else lock.shared()
                await stack.enter_async_context(held)
            yield

    def _release(self, id: str) -> None:
        """Forget a lock, unless somebody holds it or waits for it."""
        if id in self._locks and self._locks[id].free:
            del self._locks[id]

    @asynccontextmanager
    async def _running(self, id: str) -> AsyncGenerator[Cluster]:
        """Yield a locked, running cluster. A stopped server is started, and stopped on exit."""
        async with self._hold(shared=[id]):
            if self._registry.get(id).running:
                yield self._registry.get(id)
                return
        async with self._hold(exclusive=[id]):
            cluster = self._registry.get(id)
            started = not cluster.running
            await cluster.start()
            try:
                yield cluster
            finally:
                if started:
                    await cluster.stop()

    async def _create(self, id: str, write: Callable[[Path], Awaitable[None]]) -> None:
        """Create the data of a cluster with ``write``, and give the cluster this id."""
        data = await in_thread(self._directories.new)
        cluster = Cluster(data, self._machine)
        try:
            async with self._slots:
                await write(data)
            await self._replace(id, cluster)
        except BaseException:
            if self._registry.find(id) is not cluster:
                await self._registry.remove_files(data)
            raise

    async def _copy_template(self, major: int, data: Path) -> None:
        if major not in self._installations:
            found = ", ".join(map(str, self._installations))
            raise ClusterError(f"Postgres {major} is not installed: found {found}")
        installation = self._installations[major]
        await self._copy_stopped(
            await in_thread(prepare_template, installation, self._account), data
        )

    async def _copy_stopped(self, template: Template, data: Path) -> None:
        copy = partial(copy_cluster, template.directory, data, account=self._account)
        await in_thread(copy)
        cluster = Cluster(data, self._machine)
        await in_thread(cluster.copy_password, template.directory, data)
        await in_thread(cluster.record_change)
        await in_thread(cluster.record_copy)

    async def _copy_empty(self, source: Cluster, data: Path) -> None:
        await source.copy_to(data)
        target = Cluster(data, self._machine)
        try:
            await target.empty()
        except BaseException:
            await in_thread(target.end_leftover_servers)
            raise

    async def _recover(self, source: Cluster, moment: Moment, data: Path) -> None:
        target = Cluster(data, self._machine)
        try:
            await recover(source, moment, target)
        except BaseException:
            await in_thread(target.end_leftover_servers)
            raise

    async def _drop_history(self, id: str, cluster: Cluster, old: Iterable[Base]) -> None:
        """Drop copies of a cluster, unless its id has been given to another cluster meanwhile."""
        async with self._hold(exclusive=[id]):
            if self._registry.find(id) is cluster and cluster.history is not None:
                await in_thread(cluster.history.drop, old)

    async def _replace(self, id: str, cluster: Cluster) -> None:
        self._spares.invalidate(id)
        self._cancel_stop(id)
        await self._registry.put(id, cluster)

    async def _delete(self, id: str) -> None:
        async with self._hold(exclusive=[id]):
            if self._registry.find(id) is not None:
                await self._remove(id)

    async def _remove(self, id: str) -> None:
        self._spares.invalidate(id, forget=True)
        self._cancel_stop(id)
        # A restored copy would keep the history of its earlier use.
        is_restorable = self._directories.is_temporary and not self.keeps_history
        if is_restorable and self._spares.give_back(self._registry.get(id)):
            await self._registry.detach(id)
        else:
            await self._registry.drop(id)

    async def _make_spare(self, source: str) -> Cluster | None:
        """Copy a stopped cluster, and start the copy.

        Return None if the cluster is running or was deleted.
        """
        spare = Cluster(await in_thread(self._directories.new), self._machine)
        try:
            async with self._hold(shared=[source]):
                original = self._registry.find(source)
                if original is None or original.running:
                    return None
                async with self._slots:
                    await original.copy_to(spare.data)
                    await spare.record_files(original)
            async with self._slots:
                await spare.start()
                await spare.warm()
        except BaseException:
            await self._registry.discard(spare)
            raise
        return spare

    async def _restore_spare(self, source: str, spare: Cluster) -> Cluster | None:
        """Reset a used copy of a stopped cluster to the data of that cluster, and start the copy.

        Discard the copy, and return None, if the cluster is running, was deleted or has changed.
        """
        try:
            await spare.stop(immediately=True)
            async with self._hold(shared=[source]):
                original = self._registry.find(source)
                is_stopped = original is not None and not original.running
                if not (is_stopped and self._spares.is_current(spare)):
                    await self._registry.discard(spare)
                    return None
                async with self._slots:
                    await spare.restore_files()
            async with self._slots:
                await spare.start()
                await spare.warm()
        except BaseException:
            await self._registry.discard(spare)
            raise
        return spare

    def _stop_unless_used(self, id: str) -> None:
        """Stop a prepared copy after UNUSED_TIME, unless ``start`` is called first."""
        loop = asyncio.get_running_loop()
        stop = partial(self._stop_unused, id)
        self._unused[id] = loop.call_later(UNUSED_TIME, lambda: self._background.spawn(stop()))

    def _cancel_stop(self, id: str) -> None:
        if timer := self._unused.pop(id, None):
            timer.cancel()

    async def _stop_unused(self, id: str) -> None:
        async with self._hold(exclusive=[id]):
            if id in self._unused:
                await self._registry.get(id).stop()
                self._cancel_stop(id)

    async def _stop_quietly(self, cluster: Cluster, *, immediately: bool) -> None:
        try:
            await cluster.stop(immediately=immediately)
        except (ClusterError, OSError) as error:
            logger.warning("a server did not stop cleanly: %s", error)

    def _crashed(self, id: str, reason: str) -> None:
        self._cancel_stop(id)
        self._background.spawn(self._clean_up(id))
        self.on_crash(id, reason)

    async def _clean_up(self, id: str) -> None:
        """End the processes of a server that was killed."""
        async with self._hold(exclusive=[id]):
            cluster = self._registry.find(id)
            if cluster is not None and not cluster.running:
                await in_thread(cluster.end_leftover_servers)


def _log_crash(id: str, reason: str) -> None:
    logger.warning("%s: %s", id, reason)
