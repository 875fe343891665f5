"""The local control plane: a server on a socket, with a database behind it."""

import ipaddress
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from neonctl_async.local.clock import Clock, utc_now
from neonctl_async.local.server.application import BASE_PATH, Application, server_logger
from neonctl_async.local.server.tenant import Tenant
from neonctl_async.local.server.tenant_state import TenantState
from neonctl_async.local.settings import BackgroundIntervals, Durations, Lock, RateLimits, Rules

_logger = logging.getLogger(__name__)
_SHUTDOWN_SECONDS: Final = 0.5
_DURATIONS: Final = Durations()
_INTERVALS: Final = BackgroundIntervals()


class LocalControlPlane(Tenant):
    """A control plane that serves the specification on loopback.

    ``async with LocalControlPlane() as plane``, or ``start()`` and ``stop()``, from any task.

    - ``data``: the SQLite file to keep everything in; in memory if left out. A process that is
      killed loses nothing that was answered.
    - ``host``, ``port``: where it listens; port 0 is any free one.
    - ``durations``: how long operations take; ``intervals``: when the plane acts by itself.
    - ``clock``: tells the time that operations, periods and limits go by.
    - ``rate_limits``: answer 429 past the platform's limits, or past the ones given.
    - ``lock``: what running operations lock (423): ``"none"``, their ``"branch"``, or their
      ``"project"``.
    """

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        durations: Durations = _DURATIONS,
        intervals: BackgroundIntervals = _INTERVALS,
        clock: Clock = utc_now,
        rate_limits: bool | RateLimits = False,
        lock: Lock = "none",
        expose: bool = False,
    ) -> None:
        if not is_loopback(host):
            if not expose:
                raise ValueError(f"host {host!r} is not loopback: pass expose=True if you mean it")
            _logger.warning("serving on %s: keys and passwords cross the network in clear", host)
        rules = Rules(durations=durations, intervals=intervals, lock=lock)
        limits = RateLimits() if rate_limits is True else rate_limits or None
        super().__init__(TenantState(clock, rules, limits, None if data is None else Path(data)))
        self._host = host
        self._port = port
        self._tenants = [self._state]
        self._runner: web.AppRunner | None = None
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
        """Open the database and listen. The first start makes a user, organization and key."""
        if self._runner is not None:
            raise RuntimeError("the control plane is running already")
        await self._state.database.open()
        try:
            self._state.begin()
            self._runner = web.AppRunner(
                Application(self._tenants).build(),
                access_log=None,
                shutdown_timeout=_SHUTDOWN_SECONDS,
                lingering_time=0,
                logger=server_logger,
            )
            await self._runner.setup()
            await web.TCPSite(self._runner, self._host, self._port).start()
            # Last, for the first key is shown by a start that succeeds, and never again.
            await self.sign_in()
        except BaseException:
            await self.stop()
            raise
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._base_url = f"http://{host}:{self._runner.addresses[0][1]}{BASE_PATH}"

    async def stop(self) -> None:
        """Close every connection and the database. Requests under way are given a moment."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        while len(self._tenants) > 1:
            await self._tenants.pop().database.close()
        await self._state.database.close()

    async def add_tenant(self) -> Tenant:
        """Another tenant at the same address, in memory, under the same rules, until the stop."""
        if self._runner is None:
            raise RuntimeError("the control plane is not running")
        state = self._state.another()
        await state.database.open()
        self._tenants.append(state)
        return await Tenant(state).sign_in()

    @property
    def base_url(self) -> str:
        """The base address, version segment included: ``http://127.0.0.1:PORT/api/v2``."""
        if self._runner is None:
            raise RuntimeError("the control plane is not running")
        return self._base_url

    @property
    def open_connections(self) -> int:
        """How many connections clients have open."""
        server = None if self._runner is None else self._runner.server
        return 0 if server is None else len(server.connections)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
