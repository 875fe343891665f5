"""The real databases of a local control plane: opening and closing them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from neonctl_local.api.regions import REGIONS
from neonctl_local.engine import accounts, computes, databases
from neonctl_local.postgres.account import check_reachable, server_account
from neonctl_local.postgres.binaries import Installation, find_installations
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.directories import OBJECTS, DataFile
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.postgres.proxy.listener import Listener
from neonctl_local.postgres.proxy.proxy import Proxy
from neonctl_local.postgres.settings import LIBRARIES
from neonctl_local.server.databases.routing import ComputeRoutes
from neonctl_local.server.databases.watching import ActivityWatch, Crashes, HistoryKeeper
from neonctl_local.server.names import is_loopback
from neonctl_local.server.serverless.endpoints import Serverless
from neonctl_local.server.tenants.cluster_work import REPLACEMENT
from neonctl_local.server.tenants.databases import TenantDatabases
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.settings import PostgresRules, PostgresSettings
from neonctl_local.storage.transactions import Transaction

if TYPE_CHECKING:
    from neonctl_local.postgres.proxy.certificates import Certificates

KEPT_BYTES: Final = 1 << 30
"""The bytes on disk that deleted branches and projects may use while they can be recovered."""
_RESOLUTION_SECONDS: Final = 10.0
_logger = logging.getLogger(__name__)


class Databases:
    """The clusters of all tenants, and the proxy in front of them. Create it with :meth:`open`.

    ``rules`` contains what the API knows about Postgres while the databases are open.
    """

    def __init__(
        self,
        clusters: Clusters,
        tenants: Sequence[TenantState],
        routes: ComputeRoutes,
        proxy: Proxy,
        rules: PostgresRules,
    ) -> None:
        self.rules: Final = rules
        self._clusters: Final = clusters
        self._tenants: Final = tenants
        self._routes: Final = routes
        self._proxy: Final = proxy
        self._sizes: dict[str, int] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: PostgresSettings,
        tenants: Sequence[TenantState],
        *,
        directory: Path | None,
        host: str,
        public_host: str,
        history: bool = False,
    ) -> AsyncGenerator[Self]:
        """Find Postgres, take ownership of the clusters, and listen for connections.

        ``tenants`` may grow. ``directory`` contains the clusters of the first tenant; None means a
        temporary directory. With ``history``, the clusters keep their past. The proxy listens on
        ``host``. Connection URIs contain ``public_host``. At the end, all connections are closed
        and all servers stopped. Running work stays unfinished.

        Raise PostgresUnavailableError if Postgres cannot be used or the hosts of computes are not
        on this machine, RuntimeError if the directory is in use or does not fit the tables, and
        OSError if the port is taken.
        """
        installations = await asyncio.to_thread(find_installations, settings.binaries)
        async with AsyncExitStack() as opened:
            clusters = await _open_clusters(
                opened, installations, tenants, directory, settings, history=history
            )
            certificates = await asyncio.to_thread(
                _certificates, clusters.root, settings, public_host
            )
            routes = ComputeRoutes(tenants, clusters)
            proxy, port = await _listen(opened, routes, host, settings, certificates)
            rules = PostgresRules(
                versions=tuple(installations),
                libraries=await asyncio.to_thread(_libraries, installations),
                host=public_host,
                port=port,
                ca_file=None if certificates is None else str(certificates.ca_file),
                domain=settings.domain,
                history=history,
            )
            self = cls(clusters, tenants, routes, proxy, rules)
            _watch(opened, ActivityWatch(tenants, self.sweep))
            if history:
                _watch(opened, HistoryKeeper(tenants, clusters))
            opened.push_async_callback(self._stop_tenants)
            yield self

    @property
    def listener(self) -> Listener:
        """The listener for connections to computes."""
        return self._proxy.listener

    def serverless(self, origins: frozenset[str]) -> Serverless:
        """Return the routes for SQL over HTTP and WebSocket."""
        return Serverless(
            self._proxy,
            origins,
            lambda: [state.database.changed for state in self._tenants],
            self._routes.login_check,
        )

    async def add(self, state: TenantState) -> None:
        """Give real databases to a tenant whose database is open."""
        state.databases = TenantDatabases(
            state.database,
            state.clock,
            self._clusters,
            close_connections=self._proxy.close_connections,
            connections=self._proxy.connections,
            sweep=self.sweep,
            make_room=self.make_room,
        )
        await state.databases.start()

    async def claim(self, id: str) -> None:
        """Store the data file's id, so that a server with another data file deletes no clusters."""
        await self._clusters.claim(id)

    async def sweep(self) -> None:
        """Delete the clusters that no tenant needs, and stop the servers that no tenant uses."""
        ids = {id for id in self._clusters.ids() if id.startswith(OBJECTS)}
        unneeded = {id.removesuffix(REPLACEMENT) for id in ids}
        for state in tuple(self._tenants):
            unneeded = await state.database.read(databases.unreferenced, unneeded)
        await self._clusters.delete(*(id for id in ids if id.removesuffix(REPLACEMENT) in unneeded))
        running = {id for id in ids & self._clusters.ids() if self._clusters.is_running(id)}
        await asyncio.gather(*map(self._stop_unused, await self._unused(running)))
        for state in tuple(self._tenants):
            if state.databases is not None:
                await state.databases.past.sweep()
        await self._limit_deleted()

    async def _unused(self, ids: set[str]) -> set[str]:
        for state in tuple(self._tenants):
            ids = await state.database.read(databases.unused_servers, ids)
        return ids

    async def _stop_unused(self, id: str) -> None:
        async def is_unused() -> bool:
            return bool(await self._unused({id}))

        await self._clusters.stop_unused(id, is_unused)

    async def make_room(self) -> bool:
        """Free space by permanently deleting the oldest deleted branch or project.

        If there is none, delete the history. Return False if nothing can be deleted.
        """
        for state, deleted in await self._deleted():
            if await state.database.spend(databases.forget, deleted.id):
                _logger.warning("%s cannot be recovered any more: the disk is full", deleted.id)
                await self._clusters.delete(*deleted.clusters)
                return True
        return await self._clusters.limit_history(0)

    async def _limit_deleted(self) -> None:
        """Permanently delete the oldest deleted branches and projects beyond the space limit."""
        kept = 0
        deleted = await self._deleted()
        known = {id: size for id, size in self._sizes.items() if id in self._clusters.ids()}
        sizes: dict[str, int] = {}  # sweeps can overlap, so this one keeps its own
        for state, item in reversed(deleted):
            for id in item.clusters:
                sizes[id] = known[id] if id in known else await self._clusters.size(id)
            kept += sum(sizes[id] for id in item.clusters)
            if kept > KEPT_BYTES and await state.database.spend(databases.forget, item.id):
                await self._clusters.delete(*item.clusters)
        self._sizes = sizes

    async def _deleted(self) -> list[tuple[TenantState, databases.Deleted]]:
        """Return the deleted branches and projects of all tenants, oldest first."""
        found = [
            (state, item)
            for state in tuple(self._tenants)
            for item in await state.database.read(databases.recoverable)
        ]
        return sorted(found, key=lambda pair: pair[1].deleted_at)

    async def _stop_tenants(self) -> None:
        for state in self._tenants:
            if state.databases is not None:
                await state.databases.stop()
                state.databases = None


async def _open_clusters(
    opened: AsyncExitStack,
    installations: Mapping[int, Installation],
    tenants: Sequence[TenantState],
    directory: Path | None,
    settings: PostgresSettings,
    *,
    history: bool,
) -> Clusters:
    """Open the clusters until ``opened`` is closed. Delete leftovers of an earlier run."""
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
    crashes = Crashes(tenants)
    clusters.on_crash = crashes.note
    opened.push_async_callback(crashes.finish)
    await clusters.open()
    opened.push_async_callback(clusters.close)
    if directory is not None:
        opened.push_async_callback(_delete_of_other_tenants, clusters, tenants)
    # Templates and saved clusters of an earlier run, which are not in any table.
    await clusters.delete(*(id for id in clusters.ids() if not id.startswith(OBJECTS)))
    return clusters


async def _delete_of_other_tenants(clusters: Clusters, tenants: Sequence[TenantState]) -> None:
    """Delete the clusters of tenants in memory, whose tables are lost when the server stops."""
    if len(tenants) > 1:
        mine = DataFile(known=await tenants[0].database.read(databases.known))
        await clusters.delete(*filter(mine.is_strange, clusters.ids()))


async def _listen(
    opened: AsyncExitStack,
    routes: ComputeRoutes,
    host: str,
    settings: PostgresSettings,
    certificates: "Certificates | None",
) -> tuple[Proxy, int]:
    """Start the proxy, and return it with its port. It listens until ``opened`` is closed."""
    proxy = Proxy(
        routes.route,
        routes.stopped,
        host=host,
        port=settings.port,
        tls=None if certificates is None else certificates.context,
        domains=_domains(settings),
        pooler=settings.pooler,
    )
    port = await proxy.start()
    opened.push_async_callback(proxy.stop)
    if settings.domain is not None:
        await check_domain(settings.domain, port)
    return proxy, port


def _watch(opened: AsyncExitStack, watch: ActivityWatch | HistoryKeeper) -> None:
    """Run a watch until ``opened`` is closed."""
    opened.push_async_callback(_cancel, asyncio.create_task(watch.run()))


def _libraries(installations: Mapping[int, Installation]) -> dict[int, frozenset[str]]:
    return {major: found.libraries(LIBRARIES) for major, found in installations.items()}


async def check_domain(domain: str, port: int) -> None:
    """Raise PostgresUnavailableError if the hosts of a domain are not on this machine.

    Otherwise, clients would send passwords to another machine.
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


def _certificates(
    directory: Path, settings: PostgresSettings, public_host: str
) -> "Certificates | None":
    if not settings.requires_tls:
        return None
    from neonctl_local.postgres.proxy.certificates import (  # noqa: PLC0415 - only TLS needs it, and cryptography loads much code
        private_certificates,
    )

    hosts = (f"*.{domain}" for domain in _domains(settings))
    return private_certificates(directory, [public_host, *hosts])


def _domains(settings: PostgresSettings) -> list[str]:
    """Return the domains of the computes' hosts."""
    domains = [computes.unreachable_host(region.region_id) for region in REGIONS]
    return domains if settings.domain is None else [*domains, settings.domain]


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
