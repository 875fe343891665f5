"""The real databases of a local control plane: opening and closing them."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from neonctl_local.api.regions import REGIONS
from neonctl_local.engine import accounts, computes, databases
from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.account import check_reachable, server_account
from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.directories import OBJECTS, DataFile
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.postgres.proxy.proxy import Proxy
from neonctl_local.postgres.settings import LIBRARIES
from neonctl_local.server.databases.activity import ActivityWatch
from neonctl_local.server.databases.history import HistoryKeeper
from neonctl_local.server.databases.routing import ComputeRoutes
from neonctl_local.server.names import is_loopback
from neonctl_local.server.serverless.endpoints import Serverless
from neonctl_local.server.tenants.cluster_work import REPLACEMENT
from neonctl_local.server.tenants.databases import TenantDatabases
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.server.tenants.work_runner import RETRY_DELAY
from neonctl_local.settings import PostgresRules, PostgresSettings
from neonctl_local.storage.transactions import Transaction

if TYPE_CHECKING:
    from neonctl_local.postgres.proxy.certificates import Certificates

KEPT_BYTES: Final = 1 << 30
"""The disk space that deleted branches and projects may use until they can no longer be recovered.
"""
_RESOLUTION_SECONDS: Final = 10.0
_logger = logging.getLogger(__name__)


class Databases:
    """The clusters of all tenants, and the proxy in front of them. Create it with :meth:`open`."""

    def __init__(self, clusters: Clusters, tenants: Sequence[TenantState]) -> None:
        self._clusters: Final = clusters
        self._tenants: Final = tenants
        self._opened: Final = AsyncExitStack()
        self._proxy: Proxy | None = None
        self._routes: ComputeRoutes | None = None
        clusters.on_crash = self._note_crash
        self._sizes: dict[str, int] = {}
        self._crashes: Final[set[asyncio.Task[None]]] = set()

    @classmethod
    async def open(
        cls,
        settings: PostgresSettings,
        tenants: Sequence[TenantState],
        *,
        directory: Path | None,
        host: str,
        public_host: str,
        history: bool = False,
    ) -> tuple[Self, PostgresRules]:
        """Find Postgres, take ownership of the clusters, and listen for connections.

        ``tenants`` may grow. ``directory`` contains the clusters of the first one; None is a
        temporary directory.
        With ``history``, they keep their past. The proxy listens on ``host``. Connection URIs
        contain ``public_host``.
        Raise PostgresUnavailableError, also if the hosts of computes do not lead to this machine,
        RuntimeError if the directory does not have what the tables need, or OSError if the port is
        taken.
        """
        installations = await asyncio.to_thread(find_installations, settings.binaries)
        account = await asyncio.to_thread(server_account)
        if directory is not None:
            await asyncio.to_thread(check_reachable, directory.parent, account)
        clusters = Clusters(
            installations,
            account,
            directory=directory,
            durable=settings.durable,
            history=history,
            data_file=await tenants[0].database.read(_describe),
        )
        self = cls(clusters, tenants)
        try:
            await clusters.open()
            self._opened.push_async_callback(clusters.close)
            if directory is not None:
                self._opened.push_async_callback(self._delete_of_other_tenants)
            # Templates and saved clusters of an earlier run, which are in no table.
            await clusters.delete(*(id for id in clusters.ids() if not id.startswith(OBJECTS)))
            certificates = None
            if settings.requires_tls:
                names = _certified_names(settings, public_host)
                certificates = await asyncio.to_thread(_certificates, clusters.root, names)
            self._routes = routes = ComputeRoutes(tenants, clusters)
            self._proxy = proxy = Proxy(
                routes.route,
                routes.stopped,
                host=host,
                port=settings.port,
                tls=None if certificates is None else certificates.context,
                pooler=settings.pooler,
            )
            port = await proxy.start()
            self._opened.push_async_callback(proxy.stop)
            if settings.domain is not None:
                await check_domain(settings.domain, port)
            watch = asyncio.create_task(ActivityWatch(tenants, self.sweep).run())
            self._opened.push_async_callback(_cancel, watch)
            if history:
                keeping = asyncio.create_task(HistoryKeeper(tenants, clusters).run())
                self._opened.push_async_callback(_cancel, keeping)
        except BaseException:
            await self.close()
            raise
        rules = PostgresRules(
            versions=tuple(installations),
            libraries={
                major: await asyncio.to_thread(installation.libraries, LIBRARIES)
                for major, installation in installations.items()
            },
            host=public_host,
            port=port,
            ca_file=None if certificates is None else str(certificates.ca_file),
            domain=settings.domain,
            history=history,
        )
        return self, rules

    def serverless(self, origins: frozenset[str]) -> Serverless:
        """Return the routes of SQL over HTTP and WebSocket."""
        assert self._proxy is not None, "the proxy is open"
        assert self._routes is not None, "the proxy is open"
        return Serverless(
            self._proxy,
            origins,
            lambda: [state.database.changed for state in self._tenants],
            self._routes.login_check,
        )

    async def add(self, state: TenantState) -> None:
        """Give real databases to a tenant whose database is open."""
        assert self._proxy is not None, "the proxy is open"
        state.databases = TenantDatabases(
            state.database,
            state.clock,
            self._clusters,
            close_connections=self._proxy.close_connections,
            sweep=self.sweep,
            make_room=self.make_room,
        )
        await state.databases.start()

    async def claim(self, id: str) -> None:
        """Store the id of the data file in the directory, so that no other one deletes the data."""
        await self._clusters.claim(id)

    async def sweep(self) -> None:
        """Delete the clusters that no tenant needs, and stop the servers that none uses."""
        ids = {id for id in self._clusters.ids() if id.startswith(OBJECTS)}
        unneeded = {id.removesuffix(REPLACEMENT) for id in ids}
        for state in tuple(self._tenants):
            unneeded = await state.database.read(databases.unreferenced, unneeded)
        await self._clusters.delete(*(id for id in ids if id.removesuffix(REPLACEMENT) in unneeded))
        unused = {id for id in ids & self._clusters.ids() if self._clusters.is_running(id)}
        for state in tuple(self._tenants):
            unused = await state.database.read(databases.unused_servers, unused)
        await asyncio.gather(*map(self._clusters.stop, unused))
        await self._limit_deleted()

    async def make_room(self) -> bool:
        """Delete the oldest deleted branch or project for good, and if there is none, history.

        Return False if nothing can be deleted.
        """
        for state, deleted in await self._deleted():
            if await state.database.spend(databases.forget, deleted.id):
                _logger.warning("%s cannot be recovered any more: the disk is full", deleted.id)
                await self._clusters.delete(*deleted.clusters)
                return True
        return await self._clusters.limit_history(0)

    async def _limit_deleted(self) -> None:
        """Delete the oldest deleted branches for good while all of them use too much disk space."""
        kept = 0
        deleted = await self._deleted()
        sizes = {id: size for id, size in self._sizes.items() if id in self._clusters.ids()}
        self._sizes = {}
        for state, item in reversed(deleted):
            for id in item.clusters:
                self._sizes[id] = sizes[id] if id in sizes else await self._clusters.size(id)
            kept += sum(self._sizes[id] for id in item.clusters)
            if kept > KEPT_BYTES and await state.database.spend(databases.forget, item.id):
                await self._clusters.delete(*item.clusters)

    async def _deleted(self) -> list[tuple[TenantState, databases.Deleted]]:
        """Return the deleted branches and projects of all tenants, oldest first."""
        found = [
            (state, item)
            for state in tuple(self._tenants)
            for item in await state.database.read(databases.recoverable)
        ]
        return sorted(found, key=lambda pair: pair[1].deleted_at)

    async def close(self) -> None:
        """Close all connections and stop all servers. Running work stays unfinished."""
        for state in self._tenants:
            if state.databases is not None:
                await state.databases.stop()
                state.databases = None
        await self._opened.aclose()
        await asyncio.gather(*self._crashes)

    async def _delete_of_other_tenants(self) -> None:
        """Delete the clusters of the tenants in memory, which end with the server."""
        if len(self._tenants) > 1:
            known = await self._tenants[0].database.read(databases.known)
            mine = DataFile(known=known)
            await self._clusters.delete(*filter(mine.is_strange, self._clusters.ids()))

    def _note_crash(self, branch_id: str, reason: str) -> None:
        _logger.warning("the server of branch %s ended by itself: %s", branch_id, reason)
        task = asyncio.create_task(self._stop_computes(branch_id, reason))
        self._crashes.add(task)
        task.add_done_callback(self._crashes.discard)

    async def _stop_computes(self, branch_id: str, reason: str) -> None:
        """Record a crash, which a full disk may have caused: as soon as it has space again."""
        for state in tuple(self._tenants):
            while state.databases is not None:
                try:
                    await state.database.run(databases.crashed, branch_id, reason)
                except StorageFullError:
                    await asyncio.sleep(RETRY_DELAY)
                else:
                    break


async def check_domain(domain: str, port: int) -> None:
    """Raise PostgresUnavailableError if the hosts of a domain do not lead to this machine.

    Clients would send passwords to another one.
    """
    name = f"ep-check.{domain}"
    try:
        async with asyncio.timeout(_RESOLUTION_SECONDS):
            _, writer = await asyncio.open_connection(name, port)
    except (OSError, TimeoutError) as error:
        raise PostgresUnavailableError(
            f"no client can reach a compute below {domain!r}: {name}:{port} cannot be connected to"
            f" ({error or 'no response'}). Let the names of the domain resolve to this machine:"
            " names below 'localhost' do with systemd-resolved or Debian's package"
            " libnss-myhostname, others with a wildcard of a DNS server; or omit the domain"
        ) from None
    address, peer = writer.get_extra_info("sockname")[0], writer.get_extra_info("peername")[0]
    writer.close()
    # A connection to another address of this machine comes from that address.
    if address != peer and not is_loopback(peer):
        raise PostgresUnavailableError(
            f"{name} resolves to {peer}, which is another machine: let the names of the domain "
            f"{domain!r} resolve to this one, or omit the domain"
        )


def _describe(tx: Transaction) -> DataFile:
    account = accounts.first_account(tx)
    id = None if account is None else account.user_id
    return DataFile(id, frozenset(databases.needed(tx)), databases.known(tx))


def _certified_names(settings: PostgresSettings, public_host: str) -> list[str]:
    domains = [computes.unreachable_host(region.region_id) for region in REGIONS]
    if settings.domain is not None:
        domains.append(settings.domain)
    return [public_host, *(f"*.{domain}" for domain in domains)]


def _certificates(directory: Path, names: list[str]) -> "Certificates":
    from neonctl_local.postgres.proxy.certificates import (  # noqa: PLC0415 - only TLS needs it, and cryptography loads much code
        private_certificates,
    )

    return private_certificates(directory, names)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
