"""Reads of operations that are about to settle: their responses wait for that.

A client that polls a moment too early then needs no other poll. Neon does not do this.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from neonctl_local.api import operations
from neonctl_local.api.request.calls import Call
from neonctl_local.clock import SECOND, Instant
from neonctl_local.events import first_of
from neonctl_local.server.routes import Route
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.operation_plan import NEVER
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

LONGEST: Final = 0.5
"""The longest time for which a response waits, in seconds."""
_SHORTEST: Final = 0.001
"""The shortest time between two checks, in seconds: a clock may stand still, a timer end early."""


async def until_settled(
    state: TenantState, route: Route, call: Call, stopping: asyncio.Event
) -> bool:
    """Wait until the pending operations of a response have settled. Return whether it waited.

    Nothing is waited for unless all of them settle within LONGEST. Operations that start in the
    meantime do not count. Ends when the server stops.
    """
    if route.handler not in {operations.get, operations.list_page}:
        return False
    project_id, operation_id = call.path["project_id"], call.path.get("operation_id")
    ids = await state.database.read(_pending, project_id, operation_id)
    if not ids:
        return False
    loop = asyncio.get_running_loop()
    until = loop.time() + LONGEST
    has_waited = False
    while not stopping.is_set() and (left := until - loop.time()) > _SHORTEST:
        changed = state.database.changed
        settles_at = await state.database.read(_settles_at, ids)
        if settles_at is None:
            break
        if settles_at >= NEVER or settles_at - state.now() > LONGEST * SECOND:
            return has_waited
        has_waited = True
        left = min(left, max((settles_at - state.now()) / SECOND, _SHORTEST))
        await first_of(changed, stopping, seconds=left)
    return has_waited


def _pending(tx: Transaction, project_id: str, operation_id: str | None) -> list[str]:
    """Return the ids of the pending operations of a project, or of one operation."""
    where = "WHERE project_id = ? AND settles_at > ? ORDER BY position DESC LIMIT 1000"
    pending = tx.select(Operation, where, project_id, tx.now)
    return [one.id for one in pending if operation_id in {None, one.id}]


def _settles_at(tx: Transaction, ids: Sequence[str]) -> Instant | None:
    """Return when the last of some operations settles, or None if all have settled."""
    marks = ", ".join("?" * len(ids))
    return tx.number(
        f"SELECT max(settles_at) FROM operations WHERE id IN ({marks}) AND settles_at > ?",
        *ids,
        tx.now,
    )
