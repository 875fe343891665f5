"""Long polls of operations, whose responses wait until the pending operations have settled.

A request asks for one with ``Prefer: wait=0.25``, in seconds (RFC 7240, with a fraction).
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
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

LONGEST: Final = 5.0
"""The longest time for which a response waits, in seconds."""
ANNOUNCEMENT: Final = {"Accept-Prefer": f"wait={LONGEST:g}"}
"""The header that announces long polls. Responses of Neon do not have it."""
_SHORTEST: Final = 0.001
"""The shortest time between two checks, in seconds: a clock may stand still, a timer end early."""
_WAIT: Final = re.compile(r"wait=([0-9]{1,9}(?:\.[0-9]{1,9})?)")


def requested_seconds(route: Route, headers: Mapping[str, str]) -> float:
    """Return for how long the response to a request may wait, in seconds."""
    wait = _WAIT.fullmatch(headers.get("Prefer", "").strip())
    if wait is None or route.handler not in {operations.get, operations.list_page}:
        return 0.0
    return min(float(wait[1]), LONGEST)


async def until_settled(
    state: TenantState, call: Call, seconds: float, stopping: asyncio.Event
) -> None:
    """Wait until the pending operations of a response have settled, at most for some seconds.

    Operations that start in the meantime do not count. Ends when the server stops.
    """
    project_id, operation_id = call.path["project_id"], call.path.get("operation_id")
    ids = await state.database.read(_pending, project_id, operation_id)
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while not stopping.is_set() and (left := until - loop.time()) > _SHORTEST:
        changed = state.database.changed
        settles_at = await state.database.read(_settles_at, ids)
        if settles_at is None:
            return
        if settles_at < NEVER:
            left = min(left, max((settles_at - state.now()) / SECOND, _SHORTEST))
        await first_of(changed, stopping, seconds=left)


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
