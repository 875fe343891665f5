"""The responses to authenticated requests. Reads run concurrently, even during a write.

A read of operations that are about to settle waits until they have settled, so a client that polls
a moment too early does not need another poll. Neon does not do this.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from neonctl_local.api import operations
from neonctl_local.api.branch_data.schemas import SchemaRead
from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Response
from neonctl_local.clock import SECOND, Instant
from neonctl_local.engine import api_keys, background
from neonctl_local.engine.operations import default_branch
from neonctl_local.engine.points import UncheckedPointError
from neonctl_local.errors import StorageFullError
from neonctl_local.events import first_of
from neonctl_local.server.lists import is_long
from neonctl_local.server.routes import Route
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import NEVER, Branch, Operation, Project
from neonctl_local.storage.transactions import Transaction

_Readable = Response | SchemaRead | None
_Read = Callable[[Transaction, Route, Call], _Readable]

_SHOWS_ROLES: Final = re.compile(
    r"/branches/\{branch_id\}/|/connection_uri$|^POST .*/(branches|branch_anonymized)$"
)
"""The routes whose responses show or copy the roles and databases of a branch."""
LONGEST_WAIT: Final = 0.2
"""The longest time for which a response waits, in seconds."""
_SHORTEST_WAIT: Final = 0.001
"""The shortest time between two checks, in seconds, even if a clock stands still."""
_logger = logging.getLogger(__name__)


class _Parent(msgspec.Struct, frozen=True):
    parent_id: str | None = None


class _Named(msgspec.Struct, frozen=True):
    """The branches that a body names."""

    branch: _Parent = _Parent()
    source_branch_id: str | None = None


async def respond_when_settled(
    state: TenantState, route: Route, call: Call, stopping: asyncio.Event
) -> Response:
    """Return the response of a route, after waiting for operations that settle soon.

    Raise ApiError if the request fails.
    """
    response = await respond(state, route, call)
    if await _until_settled(state, route, call, stopping):
        response = await respond(state, route, call)
    return response


async def respond(state: TenantState, route: Route, call: Call) -> Response:
    """Return the response of a route. Raise ApiError if the request fails."""
    if state.databases is not None and _SHOWS_ROLES.search(str(route)):
        branches = await state.database.read(_branches, call)
        await state.databases.store_sql_changes(branches)
    is_read = route.method == "GET"
    if is_read:
        response, has_written = await _read(state, route, call)
    else:
        response, has_written = await _change(state, route, call), True
    if state.databases is not None:
        if has_written:
            state.databases.runner.wake()
        if isinstance(response, SchemaRead):
            response = await state.databases.read(response)
    assert isinstance(response, Response), "without Postgres, no schema is read"
    return response


async def _read(state: TenantState, route: Route, call: Call) -> tuple[Response | SchemaRead, bool]:
    """Return the response, and whether background work had to write to the database first."""
    response = await _read_with(_read_unless_due, state, route, call)
    if response is not None:
        return response, False
    try:
        await state.database.run(_catch_up, call)
    except StorageFullError as error:
        _logger.info("background work of project %s waits: %s", call.path["project_id"], error)
    response = await _read_with(_read_now, state, route, call)
    assert response is not None, "nothing is due now"
    return response, True


async def _read_with(read: _Read, state: TenantState, route: Route, call: Call) -> _Readable:
    """Call a function for reads, in the thread for long lists if the response may be long."""
    if not is_long(route, call):
        return await state.database.read(read, route, call)
    path, query = tuple(call.path.values()), tuple(call.query.items())
    key = (route, call.principal, path, query)
    if key in state.short_lists:
        response = await state.database.read(read, route, call)
    else:
        response = await state.database.read_list((read, key), lambda tx: read(tx, route, call))
    if isinstance(response, Response):
        state.short_lists.note(key, len(response.content))
    return response


async def _change(state: TenantState, route: Route, call: Call) -> Response | SchemaRead:
    """Make a change, and return the response.

    If the change depends on a point in time that was not checked, let the databases check it, and
    repeat the change.
    """
    run = state.database.spend if route.method == "DELETE" else state.database.run
    while True:
        try:
            return await run(_write, route, call)
        except UncheckedPointError as unchecked:
            point = unchecked.point
        assert state.databases is not None, "emulated databases have no points in time"
        await state.databases.check(point)
        call = msgspec.structs.replace(call, checked_points=call.checked_points | {point})


async def _until_settled(
    state: TenantState, route: Route, call: Call, stopping: asyncio.Event
) -> bool:
    """Wait until the pending operations of a response have settled. Return whether it waited.

    Wait only if all of them settle within LONGEST_WAIT. Nobody knows when work on real databases
    will settle, so this waits only until the newest operation is as old as LONGEST_WAIT, and reads
    during longer work do not wait. Operations that start in the meantime do not count. The wait
    ends when the server is stopping.
    """
    if route.handler not in {operations.get, operations.list_page}:
        return False
    project_id, operation_id = call.path["project_id"], call.path.get("operation_id")
    pending = await state.database.read(_pending, project_id, operation_id)
    if not pending:
        return False
    ids = [one.id for one in pending]
    young_until = pending[0].position + int(LONGEST_WAIT * SECOND)
    loop = asyncio.get_running_loop()
    until = loop.time() + LONGEST_WAIT
    has_waited = False
    while not stopping.is_set() and (left := until - loop.time()) > _SHORTEST_WAIT:
        changed = state.database.changed
        settles_at = await state.database.read(_settles_at, ids)
        if settles_at is None:
            break
        if settles_at >= NEVER:
            settles_at = young_until if state.now() < young_until else NEVER
        if settles_at - state.now() > LONGEST_WAIT * SECOND:
            return has_waited
        has_waited = True
        left = min(left, max((settles_at - state.now()) / SECOND, _SHORTEST_WAIT))
        await first_of(changed, stopping, seconds=left)
    return has_waited


def _branches(tx: Transaction, call: Call) -> list[str]:
    """Return the branches that a request names, or the default branch of its project."""
    project = _project(tx, call)
    if project is None:
        return []
    body = _Named()
    with suppress(msgspec.DecodeError):  # the handler explains what is wrong
        body = msgspec.json.decode(call.content or b"{}", type=_Named)
    names = (call.path.get("branch_id"), call.query.get("branch_id"))
    ids = [id for id in (*names, body.source_branch_id, body.branch.parent_id) if id]
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = [id for id in ids if tx.first(Branch, where, id, project.id) is not None]
    return found if ids else [default_branch(tx, project.id).id]


def _read_unless_due(tx: Transaction, route: Route, call: Call) -> Response | SchemaRead | None:
    """Return the response, or None if the background work of the project must run first."""
    api_keys.check_not_revoked(tx, call.principal)
    project = _project(tx, call)
    if project is not None:
        watches = call.principal.watches
        if background.is_due(tx, project) or (project.detached and not watches):
            return None
        if not watches:
            background.postpone_detachment(tx, project)
    return route.handler(tx, call)


def _catch_up(tx: Transaction, call: Call) -> None:
    api_keys.check_not_revoked(tx, call.principal)
    project = _project(tx, call)
    if project is not None and call.principal.watches:
        background.catch_up(tx, project.id)
    elif project is not None:
        background.on_project_request(tx, project)


def _read_now(tx: Transaction, route: Route, call: Call) -> Response | SchemaRead:
    api_keys.check_not_revoked(tx, call.principal)
    return route.handler(tx, call)


def _write(tx: Transaction, route: Route, call: Call) -> Response | SchemaRead:
    api_keys.check_not_revoked(tx, call.principal)
    project = _project(tx, call)
    if project is not None:
        background.on_project_request(tx, project)
    tx.commit()
    return route.handler(tx, call)


def _project(tx: Transaction, call: Call) -> Project | None:
    """Return the project of the path, if it exists and the key can see it."""
    project_id = call.path.get("project_id")
    found = access.find_project(tx, call.principal, project_id) if project_id else None
    return found if found is not None and found.deleted_at is None else None


def _pending(tx: Transaction, project_id: str, operation_id: str | None) -> list[Operation]:
    """Return the pending operations of a project, or only the one with ``operation_id``."""
    where = "WHERE project_id = ? AND settles_at > ? ORDER BY position DESC LIMIT 1000"
    pending = tx.select(Operation, where, project_id, tx.now)
    return [one for one in pending if operation_id in {None, one.id}]


def _settles_at(tx: Transaction, ids: Sequence[str]) -> Instant | None:
    """Return when the last of some operations settles, or None if all have settled."""
    marks = ", ".join("?" * len(ids))
    return tx.number(
        f"SELECT max(settles_at) FROM operations WHERE id IN ({marks}) AND settles_at > ?",
        *ids,
        tx.now,
    )
