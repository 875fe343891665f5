"""The state of a branch, compute or project in one response. Pure: no I/O."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, Generic, TypeVar

import msgspec

from neonctl_async.models.operations import Operation
from neonctl_async.waiting.status import Outcome, outcome

RecordT = TypeVar("RecordT")

DELETED: Final = "deleted"
"""The state of an object that the API does not find, or marks as deleted."""


class ObservedState(msgspec.Struct, Generic[RecordT], frozen=True, kw_only=True):
    """The state of an object, as the API reported it."""

    state: str
    pending_state: str | None = None
    """The state that the object is changing to, if any."""
    updated_at: datetime | None = None
    record: RecordT | None = None
    branch_id: str | None = None
    """The branch that the object belongs to; for a project, its default branch."""
    pending: list[Operation] | None = None
    """The pending operations of the project, if they were read together with the state."""

    def is_steady(self, state: str) -> bool:
        """Return whether the object is in this state and not changing to another one."""
        return self.state == state and self.pending_state in {None, state}

    def has_same_state(self, other: "ObservedState[RecordT]") -> bool:
        """Return whether both are in the same state and changing to the same state."""
        return (self.state, self.pending_state) == (other.state, other.pending_state)


def check_state(state: object) -> None:
    """Raise TypeError or ValueError unless ``state`` is a non-empty string."""
    if not isinstance(state, str):
        raise TypeError(f"state is {state!r}: expected a string such as 'ready'")
    if not state:
        raise ValueError("state is empty: expected a state such as 'ready'")


def pending_of(operations: Iterable[Operation], now: datetime) -> list[Operation]:
    """Return the operations that are pending at the time ``now``."""
    return [each for each in operations if outcome(each, now) is Outcome.PENDING]


Rank = Callable[[Operation], int | None]
"""Returns how closely an operation belongs to an object: 0 is closest, None means not at all."""


def closest(operations: Iterable[Operation], rank: Rank) -> list[Operation]:
    """Return the operations with the lowest rank."""
    by_rank: dict[int, list[Operation]] = {}
    for operation in operations:
        found = rank(operation)
        if found is not None:
            by_rank.setdefault(found, []).append(operation)
    return by_rank[min(by_rank)] if by_rank else []


def branch_rank(operation: Operation, branch_id: str) -> int | None:
    """Rank the operations of a branch: its own, those of its computes, those of its project."""
    if operation.branch_id is None and operation.endpoint_id is None:
        return 2
    if operation.branch_id != branch_id:
        return None
    return 0 if operation.endpoint_id is None else 1


def compute_rank(operation: Operation, endpoint_id: str, branch_id: str | None) -> int | None:
    """Rank the operations of a compute: its own, those of its branch, those of its project."""
    if operation.endpoint_id is not None:
        return 0 if operation.endpoint_id == endpoint_id else None
    if operation.branch_id is None:
        return 2
    return 1 if operation.branch_id == branch_id else None


def project_rank(operation: Operation, default_branch_id: str | None) -> int | None:
    """Rank the operations of a project: those of no branch, and those of its default branch."""
    return 0 if operation.branch_id in {None, default_branch_id} else None
