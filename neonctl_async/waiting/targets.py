"""The operations of a wait, and its progress. Pure: no I/O, no event loop."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.encoding.paths import path_segment
from neonctl_async.waiting.status import (
    Change,
    Outcome,
    finality,
    is_new_failure,
    is_retryable_failure,
    is_unchanged,
    outcome,
)


class HasOperations(Protocol):
    """An object with a list of operations, such as the response of a call that starts them."""

    @property
    def operations(self) -> list[Operation]:
        """The operations, with their records at the time of the response."""
        ...


Target: TypeAlias = Operation | OperationRef
Waitable: TypeAlias = Target | HasOperations | Iterable[Target | HasOperations]

_EXPECTED = (
    "expected an Operation, an OperationRef, a response with .operations, "
    "or an iterable of these; for a response of request(), pass type=OperationsResponse"
)


def targets_of(what: Waitable) -> list[Target]:
    """Return the operations in ``what``, in order and including duplicates.

    Raises TypeError if ``what`` has a type without operations, and ValueError if it is an empty
    iterable or contains an invalid id.
    """
    targets = _find_targets(what)
    for target in targets:
        path_segment("project_id", target.project_id)
        path_segment("operation_id", target.id)
    return targets


def _find_targets(what: Waitable) -> list[Target]:
    targets = _targets_of_item(what)
    if targets is not None:
        return targets
    if isinstance(what, str | bytes) or not isinstance(what, Iterable):
        if inspect.iscoroutine(what):
            what.close()  # otherwise Python warns that it was never awaited
            raise TypeError("cannot wait on coroutine: await the call, and pass its result")
        raise TypeError(f"cannot wait on {type(what).__name__}: {_EXPECTED}")
    items = list(what)
    if not items:
        raise ValueError(f"cannot wait on an empty {type(what).__name__}: {_EXPECTED}")
    found: list[Target] = []
    for index, item in enumerate(items):
        item_targets = _targets_of_item(item)
        if item_targets is None:
            raise TypeError(f"cannot wait on item {index}, {type(item).__name__}: {_EXPECTED}")
        found += item_targets
    return found


def _targets_of_item(item: object) -> list[Target] | None:
    if isinstance(item, Operation | OperationRef):
        return [item]
    operations: object = getattr(item, "operations", None)
    if not isinstance(operations, list):
        return None
    targets: list[Target] = []
    for operation in operations:  # pyright: ignore[reportUnknownVariableType] - checked right here
        if not isinstance(operation, Operation):
            return None
        targets.append(operation)
    return targets


class Progress:
    """The progress of a wait: the newest record and the outcome of each operation.

    ``are_new`` is True if the records are from a response that has just arrived.
    """

    def __init__(self, targets: Sequence[Target], *, are_new: bool = False) -> None:
        self._are_new = are_new
        self._order = [target.ref for target in targets]
        self._records: dict[OperationRef, Operation | None] = {}
        self._reported: dict[OperationRef, Operation] = {}
        self._outcomes: dict[OperationRef, Outcome] = {}
        for target in targets:
            known = self._records.setdefault(target.ref, None)
            if isinstance(target, Operation) and (known is None or _is_newer(target, known)):
                self._records[target.ref] = target

    def note(self, change: Change) -> None:
        """Record a change."""
        self._records[change.ref] = change.operation
        if change.outcome is not Outcome.PENDING:
            self._outcomes[change.ref] = change.outcome

    def report(self, change: Change) -> bool:
        """Return whether the record of a change differs from the previously reported one."""
        known = self._reported.get(change.ref)
        self._reported[change.ref] = change.operation
        return known is None or not is_unchanged(known, change.operation)

    def first_outcome(self, record: Operation, now: datetime, grace: float) -> Outcome:
        """Return the outcome of a first record at the time ``now``.

        A failure of the last ``grace`` seconds is pending: only another poll makes it final.
        """
        is_retryable = self._are_new and is_retryable_failure(record)
        if is_retryable or is_new_failure(record, now, grace):
            return Outcome.PENDING
        return outcome(record, now)

    def unconfirmed_failures(self) -> list[Change]:
        """Return the failures that no poll has confirmed, as final changes."""
        return [
            Change(ref, record, Outcome.UNSUCCESSFUL)
            for ref, record in self._records.items()
            if record is not None and ref not in self._outcomes and is_retryable_failure(record)
        ]

    @property
    def records(self) -> Mapping[OperationRef, Operation | None]:
        """The newest record of each operation, None if there is none; in order, each once."""
        return self._records

    @property
    def is_complete(self) -> bool:
        """True if every operation has reached a terminal state."""
        return len(self._outcomes) == len(self._records)

    def newest(self) -> list[Operation]:
        """Return the newest records in the order of the targets, including duplicates."""
        return [record for ref in self._order if (record := self._records[ref]) is not None]

    def settled(self, *outcomes: Outcome) -> list[Operation]:
        """Return the final records, each once: all, or only those with one of ``outcomes``."""
        wanted = outcomes or tuple(Outcome)
        return [
            record
            for ref, record in self._records.items()
            if record is not None and self._outcomes.get(ref) in wanted
        ]

    def pending(self) -> list[Target]:
        """Return the newest record of each pending operation, or its reference without a record."""
        return [record or ref for ref, record in self._records.items() if ref not in self._outcomes]


def _is_newer(record: Operation, known: Operation) -> bool:
    """Return whether ``record`` is the newer of two records that the caller passed in any order."""
    return (finality(record), record.updated_at) > (finality(known), known.updated_at)
