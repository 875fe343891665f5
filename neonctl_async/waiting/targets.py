"""The operations that a caller may wait on. Pure: no I/O, no event loop."""

import inspect
from collections.abc import Iterable
from typing import Protocol, TypeAlias

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.encoding import path_segment


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
