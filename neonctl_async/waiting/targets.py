"""What can be waited on, and how far a wait has come. Pure: no I/O, no event loop."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.protocol import path_segment
from neonctl_async.waiting.status import Change, Outcome


class HasOperations(Protocol):
    """What holds a list of operations, as every answer to a request that starts work does."""

    @property
    def operations(self) -> list[Operation]:
        """The operations, as they were when the answer came."""
        ...


Target: TypeAlias = Operation | OperationRef
Waitable: TypeAlias = Target | HasOperations | Iterable[Target | HasOperations]

_EXPECTED = (
    "expected an Operation, an OperationRef, an answer that has .operations, "
    "or an iterable of these; for an answer of request(), pass it type=Started"
)


def targets_of(what: Waitable) -> list[Target]:
    """The operations that ``what`` stands for, in order, duplicates included.

    Raises TypeError for what holds no operations by its type, ValueError for an empty iterable or
    an id that cannot be one.
    """
    targets = _find_targets(what)
    for target in targets:
        path_segment("project_id", target.project_id)
        path_segment("operation_id", target.id)
    return targets


def _find_targets(what: Waitable) -> list[Target]:
    targets = _targets_of_one(what)
    if targets is not None:
        return targets
    if isinstance(what, str | bytes) or not isinstance(what, Iterable):
        raise TypeError(f"cannot wait on {type(what).__name__}: {_EXPECTED}")
    items = list(what)
    if not items:
        raise ValueError(f"cannot wait on an empty {type(what).__name__}: {_EXPECTED}")
    found: list[Target] = []
    for place, item in enumerate(items):
        some = _targets_of_one(item)
        if some is None:
            raise TypeError(f"cannot wait on item {place}, {type(item).__name__}: {_EXPECTED}")
        found += some
    return found


def _targets_of_one(what: object) -> list[Target] | None:
    if isinstance(what, Operation | OperationRef):
        return [what]
    operations: object = getattr(what, "operations", None)
    if not isinstance(operations, list):
        return None
    targets: list[Target] = []
    for operation in operations:  # pyright: ignore[reportUnknownVariableType] - checked right here
        if not isinstance(operation, Operation):
            return None
        targets.append(operation)
    return targets


class Progress:
    """How far a wait has come: the newest record of each operation, and how it ended."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self._order = [target.ref for target in targets]
        self._records: dict[OperationRef, Operation | None] = {}
        self._outcomes: dict[OperationRef, Outcome] = {}
        for target in targets:
            known = self._records.setdefault(target.ref, None)
            if isinstance(target, Operation) and (
                known is None or known.updated_at < target.updated_at
            ):
                self._records[target.ref] = target

    def note(self, change: Change) -> None:
        """Take in a change."""
        self._records[change.ref] = change.operation
        if change.outcome is not Outcome.PENDING:
            self._outcomes[change.ref] = change.outcome

    @property
    def records(self) -> Mapping[OperationRef, Operation | None]:
        """Each operation once, in the order given, with its newest record if one was seen."""
        return self._records

    @property
    def is_complete(self) -> bool:
        """Whether every operation has ended."""
        return len(self._outcomes) == len(self._records)

    def newest(self) -> list[Operation]:
        """The newest records in the order given, duplicates included; final ones at the end."""
        return [record for ref in self._order if (record := self._records[ref]) is not None]

    def settled(self, *outcomes: Outcome) -> list[Operation]:
        """The final records, each once: all, or those with one of ``outcomes``."""
        wanted = outcomes or tuple(Outcome)
        return [
            record
            for ref, record in self._records.items()
            if record is not None and self._outcomes.get(ref) in wanted
        ]

    def pending(self) -> list[Target]:
        """Those that have not ended, each once: the newest record, else the reference."""
        return [record or ref for ref, record in self._records.items() if ref not in self._outcomes]
