"""Operations: started by requests, read and listed (sections 2.3, 3.2, 4.3 to 4.5)."""

from collections.abc import Sequence

from neonctl_async.local import ids
from neonctl_async.local.clock import Instant
from neonctl_async.local.engine import lifecycle
from neonctl_async.local.engine.lifecycle import Failure
from neonctl_async.local.errors import locked
from neonctl_async.local.settings import ACTIONS
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.plan import Plan
from neonctl_async.local.storage.tables import Operation, PlannedFailure


class Chain:
    """The operations of one request: each one starts when the one before it has finished."""

    def __init__(
        self,
        tx: Transaction,
        project_id: str,
        *,
        at: Instant | None = None,
        touched: Sequence[str] | None = None,
    ) -> None:
        self.operations: list[Operation] = []
        self._tx = tx
        self._project_id = project_id
        self._at = tx.now if at is None else at
        self._touched = touched

    def add(
        self, action: str, *, branch_id: str | None = None, endpoint_id: str | None = None
    ) -> Operation:
        """Store one more operation, its life decided."""
        assert action in ACTIONS
        tx = self._tx
        if self._touched is not None:
            _refuse_if_locked(tx, self._project_id, self._touched)
            self._touched = None  # what this chain starts locks it out of nothing
        newest = tx.number(
            "SELECT max(position) FROM operations WHERE project_id = ?", self._project_id
        )
        previous: Plan | None = self.operations[-1] if self.operations else None
        runs = previous is None or previous.succeeds
        plan = lifecycle.plan(
            action,
            self._at,
            tx.rules.durations,
            after=previous,
            failure=_planned(tx, action) if runs else None,
        )
        operation = Operation(
            id=ids.uuid_text(),
            project_id=self._project_id,
            branch_id=branch_id,
            endpoint_id=endpoint_id,
            action=action,
            # Distinct even where times are not, so that a cursor names one place for good.
            position=max(self._at, (newest or 0) + 1),
            **{name: getattr(plan, name) for name in Plan.__struct_fields__},
        )
        tx.insert(operation)
        self.operations.append(operation)
        return operation

    @property
    def now(self) -> Instant:
        """The time of the request."""
        return self._tx.now


def begin(tx: Transaction, project_id: str, *branch_ids: str | None) -> Chain:
    """Begin the operations of a request on branches of a project.

    The first one added raises 423 where it is locked; a request that starts none is never locked.
    """
    return Chain(tx, project_id, touched=[one for one in branch_ids if one])


def fail_next(tx: Transaction, action: str, failure: Failure, times: int) -> None:
    """Plan the failure of the next operations of an action."""
    tx.insert(
        PlannedFailure(
            id=0,
            action=action,
            times=times,
            fired=0,
            status=failure.status,
            error=failure.error,
            retry_after=failure.retry_after,
        )
    )


def planned_failures(tx: Transaction) -> list[PlannedFailure]:
    """Every failure that was planned, oldest first."""
    return tx.select(PlannedFailure, "ORDER BY id")


def _planned(tx: Transaction, action: str) -> Failure | None:
    where = "WHERE action = ? AND fired < times ORDER BY id"
    planned = tx.first(PlannedFailure, where, action)
    if planned is None:
        return None
    tx.update(planned, fired=planned.fired + 1)
    return Failure(status=planned.status, error=planned.error, retry_after=planned.retry_after)


def _refuse_if_locked(tx: Transaction, project_id: str, branch_ids: Sequence[str]) -> None:
    if tx.rules.lock == "none":
        return
    where = "WHERE project_id = ? AND settles_at > ?"
    values: list[str | int] = [project_id, tx.now]
    if tx.rules.lock == "branch":
        where += f" AND branch_id IN ({', '.join('?' * len(branch_ids))})"
        values += branch_ids
    running = tx.first(Operation, f"{where} ORDER BY position", *values)
    if running is not None:
        raise locked(
            f"project {project_id!r} has running conflicting operations, the first of them "
            f"{running.action} {running.id}: try again when they have finished"
        )
