"""The operations that must finish before an existing object is ready. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint, EndpointState
from neonctl_async.models.operations import Operation, OperationAction
from neonctl_async.waiting.tracked import Outcome, outcome

INIT: Final = "init"
MAX_GAP: Final = timedelta(minutes=1)
"""The longest time between the creation of an object and that of its first operations."""
ROUNDING: Final = timedelta(seconds=2)
"""By how much an operation may seem older than the object that it creates."""
APPLY_GAP: Final = timedelta(seconds=10)
"""The longest time between the creation of a database or role and that of its operations."""
RECENT: Final = timedelta(hours=1)
"""The age from which a database or role counts as applied, because Neon does not report its
state."""
_APPLYING: Final = frozenset({OperationAction.APPLY_CONFIG, OperationAction.START_COMPUTE})


class Unfinished(msgspec.Struct, frozen=True, kw_only=True):
    """A branch or a compute that is changing or was never completed."""

    branch_id: str
    endpoint_id: str | None
    """The compute; None for the branch itself."""
    created_at: datetime

    def owns(self, operation: Operation) -> bool:
        """Return whether an operation works on this object."""
        if self.endpoint_id is None:
            return operation.endpoint_id is None and operation.branch_id == self.branch_id
        return operation.endpoint_id == self.endpoint_id


def unfinished_objects(branch: Branch | None, computes: Iterable[Endpoint]) -> list[Unfinished]:
    """Return the branch if it is not ready, and computes that are not ready or may have failed."""
    objects: list[Unfinished] = []
    if branch is not None and not is_lasting(branch.current_state, branch.pending_state):
        objects.append(
            Unfinished(branch_id=branch.id, endpoint_id=None, created_at=branch.created_at)
        )
    objects += [
        Unfinished(branch_id=one.branch_id, endpoint_id=one.id, created_at=one.created_at)
        for one in computes
        if not is_lasting(one.current_state, one.pending_state) or _was_never_started(one)
    ]
    return objects


def _was_never_started(compute: Endpoint) -> bool:
    """Return whether a compute is idle and was never active. Its creation may have failed.

    A disabled compute is created without being started.
    """
    times = (compute.started_at, compute.last_active, compute.suspended_at)
    return compute.current_state == EndpointState.IDLE and not compute.disabled and not any(times)


def is_lasting(state: str, pending_state: str | None) -> bool:
    """Return whether an object is neither being created nor changing to another state."""
    return state != EndpointState.INIT and pending_state in {None, state}


def search_start(objects: Iterable[Unfinished]) -> datetime:
    """Return the earliest time at which the objects may have operations."""
    return min(one.created_at for one in objects) - MAX_GAP


def are_found(objects: Iterable[Unfinished], operations: Sequence[Operation]) -> bool:
    """Return whether each object has at least one of the operations."""
    return all(any(map(one.owns, operations)) for one in objects)


def operations_to_finish(
    objects: Iterable[Unfinished], operations: Sequence[Operation], now: datetime
) -> list[Operation]:
    """Return the operations that are pending, or whose failure left an object incomplete.

    ``operations`` are newest first, and the result is oldest first. If none of an object's
    operations is pending, only the latest one counts: earlier failures were repaired, and its
    success makes the object ready.
    """
    wanted: list[Operation] = []
    for one in objects:
        own = [operation for operation in operations if one.owns(operation)]
        pending = [each for each in own if outcome(each, now) is Outcome.PENDING]
        if pending:
            wanted += pending
        elif own and outcome(own[0], now) is Outcome.UNSUCCESSFUL:
            wanted.append(own[0])
    return sorted(wanted, key=lambda operation: operation.created_at)


def may_be_unapplied(created_at: datetime, now: datetime) -> bool:
    """Return whether a database or a role is so new that its operations may be pending."""
    return created_at > now - RECENT


def operations_to_apply(
    operations: Sequence[Operation], branch_id: str, created_at: datetime, now: datetime
) -> list[Operation]:
    """Return the operations that create a database or a role in Postgres, unless they succeeded.

    ``operations`` are newest first. A failed operation does not matter if a later one on the same
    compute succeeded, because each operation applies all databases and roles.
    """
    earliest, latest = created_at - ROUNDING, created_at + APPLY_GAP
    wanted: list[Operation] = []
    applied: set[str | None] = set()
    for operation in operations:
        if operation.branch_id != branch_id or operation.action not in _APPLYING:
            continue
        result = outcome(operation, now)
        is_first = earliest <= operation.created_at <= latest
        if result is Outcome.SUCCEEDED:
            applied.add(operation.endpoint_id)
        elif is_first and (result is Outcome.PENDING or operation.endpoint_id not in applied):
            wanted.append(operation)
    return wanted[::-1]
