"""The end of operations with real work, and its effect on the rows that depend on them.

An operation with work has an open end when it is created (:mod:`lifecycle`). :func:`settle` sets
the end when the work is done. This changes the states of the branches, computes and snapshots that
were waiting for the operation. The next operation of the request gets its times, or fails.
"""

from neonctl_local.engine import (
    branch_objects,
    computes,
    lifecycle,
    restores,
    snapshots,
    timelines,
)
from neonctl_local.engine.operations import planned_failure
from neonctl_local.storage.tables import NEVER, Operation, OperationPlan
from neonctl_local.storage.transactions import Transaction


def settle(tx: Transaction, operation_id: str, error: str | None) -> None:
    """Record that the work of an operation is done, or that it failed with ``error``.

    The operation ends now, or at its planned end if that is later. A second call has no effect,
    and neither does a call for an operation that a reset deleted. Raise ValueError if the operation
    before it has not finished.
    """
    operation = tx.first(Operation, "WHERE id = ?", operation_id)
    if operation is None or not operation.is_open:
        return
    if operation.starts_at >= NEVER:
        raise ValueError(
            f"operation {operation.id!r} has not started: settle the operation before it first"
        )
    _finish(tx, operation, lifecycle.with_end(operation, operation.duration, tx.now, error))


def _finish(tx: Transaction, operation: Operation, plan: OperationPlan) -> None:
    """Store the plan of an operation with a known end, and update what depends on the end."""
    operation = _store(tx, operation, plan)
    timelines.set_states(tx, operation)
    computes.set_states(tx, operation)
    snapshots.note_taken(tx, operation)
    branch_objects.note_applied_names(tx, operation)
    restores.undo_failed(tx, operation)
    for following in tx.select(Operation, "WHERE after_id = ?", operation.id):
        _start(tx, following, operation)


def _start(tx: Transaction, operation: Operation, after: Operation) -> None:
    """Plan an operation that was waiting for the end of the operation ``after``."""
    failure = planned_failure(operation)
    plan = lifecycle.follow(operation.created_at, operation.duration, after, failure)
    if operation.work is not None and plan.succeeds:
        _store(tx, operation, lifecycle.without_end(plan))
    else:
        _finish(tx, operation, plan)


def _store(tx: Transaction, operation: Operation, plan: OperationPlan) -> Operation:
    return tx.update(
        operation, **{name: getattr(plan, name) for name in OperationPlan.__struct_fields__}
    )
