"""The local control plane: a server on a socket, with a database behind it."""

import ipaddress
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from aiohttp import web

from neonctl_async.local import accounts, console, operations, routes
from neonctl_async.local.app import BASE_PATH, Application, ServedRequest, server_logger
from neonctl_async.local.clock import Clock, utc_now
from neonctl_async.local.console import Home
from neonctl_async.local.database import Database
from neonctl_async.local.faults import Fault, Faults, InjectedFault
from neonctl_async.local.lifecycle import AS_PLANNED, Failure
from neonctl_async.local.rows import MemberRole, PlannedFailure
from neonctl_async.local.settings import (
    Durations,
    Lock,
    Periods,
    RateLimits,
    Rules,
    check_action,
)

PLANNED: Final = frozenset({"failed", "error", "cancelled", "skipped"})
"""The final statuses that an operation can be planned to have."""
_logger = logging.getLogger(__name__)
_SHUTDOWN_SECONDS: Final = 0.5
_DURATIONS: Final = Durations()
_PERIODS: Final = Periods()


class LocalControlPlane:
    """A control plane that serves the specification on loopback.

    ``async with LocalControlPlane() as plane``, or ``start()`` and ``stop()``, from any task.

    - ``data``: the SQLite file to keep everything in; in memory if left out. A process that is
      killed loses nothing that was answered.
    - ``host``, ``port``: where it listens; port 0 is any free one.
    - ``durations``: how long operations take; ``periods``: when the plane acts by itself.
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
        periods: Periods = _PERIODS,
        clock: Clock = utc_now,
        rate_limits: bool | RateLimits = False,
        lock: Lock = "none",
        expose: bool = False,
    ) -> None:
        if not is_loopback(host):
            if not expose:
                raise ValueError(f"host {host!r} is not loopback: pass expose=True if you mean it")
            _logger.warning("serving on %s: keys and passwords cross the network in clear", host)
        self._host = host
        self._port = port
        self._clock = clock
        self._limits = RateLimits() if rate_limits is True else rate_limits or None
        self._faults = Faults()
        self._database = Database(
            None if data is None else Path(data),
            clock,
            Rules(durations=durations, periods=periods, lock=lock),
        )
        self._runner: web.AppRunner | None = None
        self._application: Application | None = None
        self._home: Home | None = None
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
        await self._database.open()
        try:
            self._application = Application(self._database, self._faults, self._clock, self._limits)
            self._runner = web.AppRunner(
                self._application.build(),
                access_log=None,
                shutdown_timeout=_SHUTDOWN_SECONDS,
                lingering_time=0,
                logger=server_logger,
            )
            await self._runner.setup()
            await web.TCPSite(self._runner, self._host, self._port).start()
            # Last, for the first key is shown by a start that succeeds, and never again.
            self._home = await self._database.run(console.sign_in)
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
        await self._database.close()

    @property
    def base_url(self) -> str:
        """The base address, version segment included: ``http://127.0.0.1:PORT/api/v2``."""
        if self._runner is None:
            raise RuntimeError("the control plane is not running")
        return self._base_url

    @property
    def api_key(self) -> str:
        """The first key: a personal one of the first user, made at first start.

        A file holds only its hash, so it is not known again at the next start: keep it, or make
        another with :meth:`create_api_key`.
        """
        token = self.first_start_key
        if token is None:
            raise RuntimeError(
                "the first key was shown at first start only: make another with create_api_key()"
            )
        return token

    @property
    def first_start_key(self) -> str | None:
        """The first key if this start made it, ``None`` if an earlier one did."""
        return self._signed_in.api_key

    @property
    def user_id(self) -> str:
        """The first user."""
        return self._signed_in.user_id

    @property
    def org_id(self) -> str:
        """The first organization, of which the first user is an administrator."""
        return self._signed_in.org_id

    @property
    def requests(self) -> Sequence[ServedRequest]:
        """The requests that came in, newest last; the oldest of very many are forgotten."""
        return () if self._application is None else tuple(self._application.requests)

    @property
    def requests_served(self) -> int:
        """How many requests came in since the start."""
        return 0 if self._application is None else self._application.requests_served

    @property
    def open_connections(self) -> int:
        """How many connections clients have open."""
        server = None if self._runner is None else self._runner.server
        return 0 if server is None else len(server.connections)

    @property
    def faults(self) -> Sequence[InjectedFault]:
        """The faults in force, each with how often it fired."""
        return self._faults.injected

    def inject(self, fault: Fault) -> InjectedFault:
        """Put a fault in force; the answer counts how often it fires.

        Raises ValueError for a route that there is not.
        """
        if fault.route != "*":
            routes.check(fault.route)
        return self._faults.inject(fault)

    def clear_faults(self) -> None:
        """Take every fault away."""
        self._faults.clear()

    async def fail_next(
        self,
        action: str,
        *,
        times: int = 1,
        retry_after: float | None = None,
        status: str = "failed",
        error: str = AS_PLANNED,
    ) -> None:
        """Have the next operation of an action fail, or the next ``times`` of them.

        With ``retry_after`` seconds it shows a ``retry_at`` once it has failed, runs again then,
        and finishes. ``status`` is the final status otherwise. What comes after it in the same
        request does not start, and fails too. Raises ValueError for an action that no request
        starts here.
        """
        check_action(action)
        if status not in PLANNED:
            raise ValueError(f"status is {status!r}: one of {', '.join(sorted(PLANNED))}")
        if times < 1:
            raise ValueError(f"times is {times}: at least 1")
        if retry_after is not None and not 0 <= retry_after < math.inf:
            raise ValueError(f"retry_after is {retry_after}: a number of seconds, 0 or more")
        failure = Failure(status=status, error=error, retry_after=retry_after)
        await self._database.run(operations.fail_next, action, failure, times)

    async def planned_failures(self) -> Sequence[PlannedFailure]:
        """What :meth:`fail_next` planned, oldest first, each with how often it ``fired``."""
        return await self._database.run(operations.planned_failures)

    async def create_api_key(self, name: str, *, user_id: str | None = None) -> str:
        """A new personal key, as made in the console: of the first user unless another is given."""
        owner = user_id or self._signed_in.user_id
        return await self._database.run(console.create_api_key, owner, name)

    async def create_user(self, name: str, email: str) -> str:
        """Sign a user up; answers their id."""
        return (await self._database.run(accounts.create_user, name, email)).id

    async def create_organization(self, name: str, *, admin_id: str | None = None) -> str:
        """Found an organization, administered by the first user unless told; answers its id."""
        admin = admin_id or self._signed_in.user_id
        return (await self._database.run(accounts.create_organization, name, admin)).id

    async def add_member(self, org_id: str, user_id: str, role: MemberRole = "member") -> None:
        """Have a user join an organization, as ``"admin"`` or ``"member"``."""
        await self._database.run(accounts.add_member, org_id, user_id, role)

    async def remove_member(self, org_id: str, user_id: str) -> None:
        """Have a user leave an organization."""
        await self._database.run(accounts.remove_member, org_id, user_id)

    @property
    def _signed_in(self) -> Home:
        if self._home is None:
            raise RuntimeError("the control plane was not started")
        return self._home


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
