"""Operations: started by requests, read and listed (sections 2.3, 3.2, 4.3 to 4.5)."""

from collections.abc import Sequence
from typing import Final

from neonctl_async.local import clock, ids
from neonctl_async.local.api.request import access
from neonctl_async.local.api.request.calls import Answer, Call, Json, answer, present
from neonctl_async.local.clock import Instant
from neonctl_async.local.engine import lifecycle
from neonctl_async.local.engine.lifecycle import Failure, Plan
from neonctl_async.local.errors import invalid, locked, not_found
from neonctl_async.local.settings import ACTIONS
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Operation, PlannedFailure

DEFAULT_LIMIT: Final = 100
MAXIMUM_LIMIT: Final = 1000


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

    def records(self) -> list[Json]:
        """The operations as an answer announces them (section 4.5)."""
        return [record(operation, self._tx.now) for operation in self.operations]


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


def list_page(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/operations``: newest first (section 4.3).

    A page that is not empty carries the position of its last operation; an empty one is the end.
    """
    project = access.project(tx, call, deleted=True)
    limit = call.integer("limit", 1, MAXIMUM_LIMIT, DEFAULT_LIMIT)
    before = cursor(call)
    page = tx.select(
        Operation,
        "WHERE project_id = ? AND position < ? ORDER BY position DESC LIMIT ?",
        project.id,
        before,
        limit,
    )
    body: Json = {"operations": [record(operation, tx.now) for operation in page]}
    if page:
        body["pagination"] = {"cursor": clock.exactly(page[-1].position)}
    return answer(body)


def get(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/operations/{operation_id}`` (section 4.4)."""
    project = access.project(tx, call, deleted=True)
    operation_id = call.path["operation_id"]
    where = "WHERE id = ? AND project_id = ?"
    operation = tx.first(Operation, where, operation_id, project.id)
    if operation is None:
        raise not_found("operation", operation_id)
    return answer({"operation": record(operation, tx.now)})


def cursor(call: Call) -> Instant:
    """The position that the query parameter ``cursor`` names; left out, the front of the list."""
    text = call.query.get("cursor")
    if not text:
        return (1 << 63) - 1
    try:
        return clock.parse(text)
    except ValueError:
        raise invalid(f"invalid request: cursor: {text!r} is no cursor of this list") from None


def record(operation: Operation, now: Instant) -> Json:
    """An operation as the API shows it at ``now``. ``retry_at`` is exact: clients act on it."""
    state = lifecycle.at(operation, now)
    return present(
        {
            "id": operation.id,
            "project_id": operation.project_id,
            "branch_id": operation.branch_id,
            "endpoint_id": operation.endpoint_id,
            "action": operation.action,
            "status": state.status,
            "error": state.error,
            "failures_count": state.failures_count,
            "retry_at": None if state.retry_at is None else clock.exactly(state.retry_at),
            "created_at": clock.in_seconds(operation.created_at),
            "updated_at": clock.in_seconds(state.updated_at),
            "total_duration_ms": state.duration // 1000,
        }
    )


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
