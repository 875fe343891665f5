"""Finds the server for a connection to the proxy, and starts it if its compute is idle."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from neonctl_local.api.request.decoding import LSN
from neonctl_local.clock import parse
from neonctl_local.engine import allowed_addresses, databases
from neonctl_local.engine.points import PointInTime
from neonctl_local.errors import ApiError, StorageFullError
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Applied, Desired, is_verifier, verifies
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.logins import Password, ServerLogin, password_at_start
from neonctl_local.postgres.proxy.connector import Login, Route
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.scram import Verifier
from neonctl_local.server.tenants.cluster_work import desired
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

UNKNOWN: Final = (
    "The requested endpoint could not be found, or you don't have access to it. "
    "Please check the provided ID and try again."
)
"""Neon's message for a client that names an unknown endpoint."""
DISABLED: Final = "The endpoint has been disabled. Enable it using the API and retry."
_ATTEMPTS: Final = 3

FindLogin: TypeAlias = Callable[[], Awaitable[ServerLogin | None]]


class ComputeRoutes:
    """The computes of all tenants, as the proxy sees them. Endpoint ids are unique."""

    def __init__(self, tenants: Sequence[TenantState], clusters: Clusters) -> None:
        self._tenants: Final = tenants
        self._clusters: Final = clusters

    async def route(self, endpoint_id: str, address: str) -> Route:
        """Return the route to a compute for a client at ``address``. Start an idle compute.

        If the id names a point in time, start a server that has the data of that time instead.

        Raise ComputeRefusedError if the client may not use the compute, or if it does not start.
        """
        state, target = await self._find(endpoint_id)
        if _names_past(endpoint_id):
            return await self._past(state, target, endpoint_id, address)
        return await self._started(state, endpoint_id, address)

    async def stopped(self, endpoint_id: str, address: str, role: str) -> Login | None:
        """Return the login that a stopped compute will accept for a role, without starting it.

        Return None if the compute is running, or if its server was killed, because only a start
        then shows what the compute accepts. The past of a branch accepts the passwords that the
        branch accepts now. Raise ComputeRefusedError if the client may not use the compute.
        """
        state, target = await self._find(endpoint_id)
        is_past = _names_past(endpoint_id)
        if not is_past and self._clusters.is_running(target.branch_id):
            return None
        _check(target, address)
        wanted = desired(await state.database.read(databases.desired, target.branch_id))
        find = self._present_password if is_past else self._clusters.password
        try:
            password = await find(target.branch_id, role, wanted)
        except ClusterError as error:
            raise ComputeRefusedError(str(error), "57P03") from None
        if password is None:
            return None
        text = None if password.text is None else password.text.encode()
        return Login(Verifier.parse(password.verifier), text, compute=target.branch_id)

    async def login_check(self, endpoint_id: str, role: str, database: str) -> FindLogin:
        """Return a function that returns what the running server of a compute checks at a login.

        The function returns None if the server is not running, or if there is no such role or
        compute.
        """
        for state in tuple(self._tenants):
            target = await state.database.read(databases.route, endpoint_id)
            if target is not None:
                return partial(self._running_login, target.branch_id, role, database)
        return _no_login

    async def _running_login(self, branch_id: str, role: str, database: str) -> ServerLogin | None:
        if not self._clusters.is_running(branch_id):
            return None
        with suppress(ClusterError):
            return await self._clusters.login(branch_id, role, database)
        return None

    async def _find(self, endpoint_id: str) -> tuple[TenantState, databases.ComputeRoute]:
        """Return the compute or branch with an id. Raise ComputeRefusedError if there is none."""
        find = databases.past_route if _names_past(endpoint_id) else databases.route
        for state in tuple(self._tenants):
            target = await state.database.read(find, endpoint_id.partition(" ")[0])
            if target is not None:
                return state, target
        raise ComputeRefusedError(UNKNOWN, "XX000")

    async def _past(
        self, state: TenantState, target: databases.ComputeRoute, endpoint_id: str, address: str
    ) -> Route:
        _check(target, address)
        point = _point_in_time(target.branch_id, endpoint_id)
        assert state.databases is not None, "the proxy serves only real databases"
        try:
            await state.database.read(databases.check_past, point)
            await state.databases.store_sql_changes([target.branch_id])
            id = await state.databases.past.start(endpoint_id, point)
        except ApiError as error:
            raise ComputeRefusedError(error.message.removeprefix("invalid request: ")) from None
        except ClusterError as error:
            raise ComputeRefusedError(str(error)) from None
        socket = self._clusters.socket(id)
        if socket is None:
            raise ComputeRefusedError("the server of the past does not stay up", "57P03")
        return Route(socket, read_only=True, find_login=partial(self._find_login, id))

    async def _present_password(self, branch_id: str, role: str, wanted: Desired) -> Password:
        """Return the password that a branch accepts now, in plain text if the tables contain it.

        The plain text is needed because the server of the branch's past has a different verifier
        for the same password.
        """
        if self._clusters.is_running(branch_id):
            login = await self._login(branch_id, role, "")
            verifier = None if login is None else login.verifier
        else:
            password = await self._clusters.password(branch_id, role, wanted)
            if password is None:  # after its start, the server matches the tables
                unknown = partial(password_at_start, role, {}, Applied(), wanted)
                password = await asyncio.to_thread(unknown)
            verifier = password.verifier
        return await asyncio.to_thread(_with_text, verifier, role, wanted)

    async def _started(self, state: TenantState, endpoint_id: str, address: str) -> Route:
        for _ in range(_ATTEMPTS):
            target = await state.database.read(databases.route, endpoint_id)
            if target is None:
                raise ComputeRefusedError(UNKNOWN, "XX000")
            _check(target, address)
            start = await self._wake(state, endpoint_id)
            if start is not None and not await self._settles(state, start):
                continue
            socket = self._clusters.socket(target.branch_id)
            if socket is not None:
                find_login = partial(self._find_login, target.branch_id)
                return Route(socket, target.type == "read_only", find_login)
            if start is None:
                # The server ended before the operation that started it had finished.
                with suppress(StorageFullError):
                    await state.database.run(databases.stopped, target.branch_id)
        raise ComputeRefusedError(f"the compute {endpoint_id} does not stay up", "57P03")

    async def _find_login(self, branch_id: str, role: str, database: str) -> Login:
        found = await self._login(branch_id, role, database)
        if found is None:
            return Login(None, compute=branch_id)
        return Login(
            Verifier.parse(found.verifier), may_connect=found.may_connect, compute=branch_id
        )

    async def _login(self, branch_id: str, role: str, database: str) -> ServerLogin | None:
        try:
            return await self._clusters.login(branch_id, role, database)
        except ClusterError as error:
            raise ComputeRefusedError(str(error), "57P03") from error

    async def _wake(self, state: TenantState, endpoint_id: str) -> Operation | None:
        try:
            return await state.database.run(databases.wake, endpoint_id)
        except StorageFullError:
            return None  # a running compute accepts connections while the disk is full
        except ApiError as error:
            raise ComputeRefusedError(error.message) from None

    async def _settles(self, state: TenantState, start: Operation) -> bool:
        """Wait until an operation settles. Return False if a reset of the tenant removes it."""
        assert state.databases is not None, "the proxy serves only real databases"
        runner = state.databases.runner
        runner.wake()
        while True:
            changed = runner.changed
            found = await state.database.read(
                Transaction.first, Operation, "WHERE id = ?", start.id
            )
            if found is None:
                return False
            if not found.is_open:
                break
            await changed.wait()
        if not found.succeeds:
            raise ComputeRefusedError(f"the compute did not start: {found.error}", "57P03")
        return True


async def _no_login() -> ServerLogin | None:
    return None


def _with_text(verifier: str | None, role: str, wanted: Desired) -> Password:
    """Return a password, in plain text if the tables contain it. This takes milliseconds."""
    texts = (spec.password for spec in wanted.roles if spec.name == role)
    text = next((text for text in texts if text and not is_verifier(text)), None)
    return Password(verifier, text if verifies(verifier, text) else None)


def _names_past(endpoint_id: str) -> bool:
    """Return whether an endpoint id, as the proxy passes it, also names a point in time."""
    return " " in endpoint_id


def _point_in_time(branch_id: str, endpoint_id: str) -> PointInTime:
    at = lsn = None
    for moment in endpoint_id.split(" ")[1:]:
        kind, _, value = moment.partition(":")
        if kind == "lsn" and re.match(LSN, value):
            lsn = value
            continue
        if kind == "timestamp":
            with suppress(ValueError):
                at = parse(value)
                continue
        raise ComputeRefusedError(
            f"neon_{kind}: {value!r} is invalid: expected neon_timestamp with a time like "
            "2026-11-28T12:00:00Z, or neon_lsn with an LSN like 0/1A2B3C"
        )
    return PointInTime(branch_id, at, lsn)


def _check(target: databases.ComputeRoute, address: str) -> None:
    """Raise ComputeRefusedError if clients, or those at this address, may not use a compute."""
    if target.disabled:
        raise ComputeRefusedError(DISABLED, "XX000")
    settings, protected = target.project_settings, target.protected
    if refusal := allowed_addresses.refusal(settings, address, protected=protected):
        raise ComputeRefusedError(refusal, "XX000")
