"""The operations of a wait, and its progress. Pure: no I/O, no event loop."""

import inspect
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol, TypeAlias

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.encoding import path_segment
from neonctl_async.waiting.status import (
    Outcome,
    finality,
    is_new_failure,
    is_retryable_failure,
    is_unchanged,
    outcome,
)
from neonctl_async.waiting.tracked import TrackedOperation


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
    """Return the operations in ``what``, in order, including duplicates.

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
    """The operations of a wait, and which of them it has seen finish.

    ``are_new`` is True if the records are from a response that has just arrived.
    """

    def __init__(self, targets: Sequence[Target], *, are_new: bool = False) -> None:
        self._are_new = are_new
        self._order = [target.ref for target in targets]
        self._operations: dict[OperationRef, TrackedOperation] = {}
        self._reported: dict[OperationRef, Operation] = {}
        self._settled: dict[OperationRef, Outcome] = {}
        """The outcomes of the operations that the wait has seen in a terminal state."""
        for target in targets:
            known = self._operations.setdefault(target.ref, TrackedOperation(target.ref, 0.0))
            if isinstance(target, Operation) and (
                known.record is None or _is_newer(target, known.record)
            ):
                known.record = target

    def __iter__(self) -> Iterator[TrackedOperation]:
        """Iterate over the operations in order, each once."""
        return iter(list(self._operations.values()))

    def track(self, operation: TrackedOperation) -> None:
        """Follow an operation that a poller updates from now on."""
        self._operations[operation.ref] = operation

    def note(self, operation: TrackedOperation) -> None:
        """Record a change."""
        if operation.outcome is not Outcome.PENDING:
            self._settled[operation.ref] = operation.outcome

    def report(self, operation: TrackedOperation) -> bool:
        """Return whether the record of an operation differs from the previously reported one."""
        record = operation.record
        assert record is not None  # every change has one
        known = self._reported.get(operation.ref)
        self._reported[operation.ref] = record
        return known is None or not is_unchanged(known, record)

    def first_outcome(self, record: Operation, now: datetime, grace: float) -> Outcome:
        """Return the outcome of a first record at the time ``now``.

        A failure of the last ``grace`` seconds counts as pending, because only another poll makes
        it final.
        """
        is_retryable = self._are_new and is_retryable_failure(record)
        if is_retryable or is_new_failure(record, now, grace):
            return Outcome.PENDING
        return outcome(record, now)

    def settle_failures(self) -> list[TrackedOperation]:
        """Make final, and return, the failures that no poll has confirmed."""
        failed = [
            one
            for one in self._operations.values()
            if one.record is not None
            and one.ref not in self._settled
            and is_retryable_failure(one.record)
        ]
        self._settled |= {one.ref: Outcome.UNSUCCESSFUL for one in failed}
        return failed

    @property
    def refs(self) -> Collection[OperationRef]:
        """The operations in order, each once."""
        return self._operations.keys()

    @property
    def is_complete(self) -> bool:
        """True if the wait has seen every operation in a terminal state."""
        return len(self._settled) == len(self._operations)

    def is_settled(self, ref: OperationRef) -> bool:
        """Return whether the wait has seen an operation in a terminal state."""
        return ref in self._settled

    def has_failed(self, ref: OperationRef) -> bool:
        """Return whether the wait has seen an operation finish without success."""
        return self._settled.get(ref) is Outcome.UNSUCCESSFUL

    def newest(self) -> list[Operation]:
        """Return the newest records in the order of the targets, including duplicates."""
        records = (self._operations[ref].record for ref in self._order)
        return [record for record in records if record is not None]

    def settled(self, *outcomes: Outcome) -> list[Operation]:
        """Return the final records, each once: all, or only those with one of ``outcomes``."""
        wanted = outcomes or tuple(Outcome)
        return [
            one.record
            for ref, one in self._operations.items()
            if one.record is not None and self._settled.get(ref) in wanted
        ]

    def unsettled(self) -> list[TrackedOperation]:
        """Return the operations that the wait has not seen in a terminal state."""
        return [one for ref, one in self._operations.items() if ref not in self._settled]

    def pending(self) -> list[Target]:
        """Return the newest record of each pending operation, or its reference if there is none."""
        return [one.record or one.ref for one in self.unsettled()]


def _is_newer(record: Operation, known: Operation) -> bool:
    """Return whether ``record`` is the newer of two records that the caller passed in any order."""
    return (finality(record), record.updated_at) > (finality(known), known.updated_at)
