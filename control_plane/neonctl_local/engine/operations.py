"""Starting operations, and planning their failures."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.clock import Instant, span
from neonctl_local.engine import lifecycle
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.engine.work import Work, encode
from neonctl_local.errors import locked
from neonctl_local.settings import ACTIONS, Durations
from neonctl_local.storage.tables import Branch, Operation, OperationPlan, PlannedFailure
from neonctl_local.storage.transactions import Transaction


class OperationChain:
    """The operations of one request. Each starts when the previous one has finished.

    With ``changed_branches``, adding the first operation raises 423 if the project or one of these
    branches is locked, depending on the ``lock`` setting.
    """

    def __init__(
        self, tx: Transaction, project_id: str, *, changed_branches: Sequence[str] | None = None
    ) -> None:
        self.operations: list[Operation] = []
        self._tx = tx
        self._project_id = project_id
        self._changed_branches = changed_branches

    def add(
        self,
        action: str,
        *,
        branch_id: str,
        new_name: str | None = None,
        endpoint_id: str | None = None,
        work: Work | None = None,
    ) -> Operation:
        """Plan and store the next operation of the request.

        ``new_name`` is the name of a new branch, whose row is stored only after this operation.

        With real databases, the operation finishes when ``work`` is done. The work is dropped if
        the operation is planned to fail, or if there are no real databases.
        """
        assert action in ACTIONS
        tx = self._tx
        if self._changed_branches is not None:
            _check_not_locked(tx, self._project_id, self._changed_branches)
            self._changed_branches = None  # The operations of one request do not lock each other.
        previous = self.operations[-1] if self.operations else None
        runs = previous is None or previous.succeeds
        failure = _take_planned_failure(tx, action, branch_id, new_name) if runs else None
        plan = lifecycle.plan(action, tx.now, tx.rules.durations, after=previous, failure=failure)
        if tx.rules.postgres is None or not plan.succeeds:
            work = None
        if work is not None:
            plan = lifecycle.without_end(plan)
        operation = replace(
            self._planned(plan, action, branch_id, endpoint_id),
            duration=span(tx.rules.durations.of(action)),
            failure=None if failure is None else msgspec.json.encode(failure).decode(),
            after_id=None if previous is None else previous.open_id,
            work=None if work is None else encode(work),
        )
        self.operations.append(tx.insert(operation))
        return operation

    def add_for_project(self, action: str, *, work: Work | None = None) -> Operation:
        """Add an operation on the whole project, with the default branch as its ``branch_id``."""
        branch = default_branch(self._tx, self._project_id)
        return self.add(action, branch_id=branch.id, work=work)

    def add_done(
        self,
        action: str,
        *,
        branch_id: str,
        endpoint_id: str | None,
        error: str | None = None,
        may_fail: bool = True,
    ) -> Operation:
        """Store an operation that has already ended.

        It has failed if ``error`` is set or a failure was planned, and has finished otherwise.
        Without ``may_fail``, planned failures do not apply.
        """
        failure = Failure(error=error) if error else None
        if failure is None and may_fail:
            failure = _take_planned_failure(self._tx, action, branch_id)
        plan = lifecycle.plan(action, self._tx.now, Durations(default=0), failure=failure)
        operation = self._tx.insert(self._planned(plan, action, branch_id, endpoint_id))
        self.operations.append(operation)
        return operation

    def _planned(
        self, plan: OperationPlan, action: str, branch_id: str, endpoint_id: str | None
    ) -> Operation:
        newest = self._tx.number(
            "SELECT max(position) FROM operations WHERE project_id = ?", self._project_id
        )
        return Operation(
            id=ids.uuid_text(),
            project_id=self._project_id,
            branch_id=branch_id,
            endpoint_id=endpoint_id,
            action=action,
            # Unique even if two times are equal, because a cursor must name one position.
            position=max(self._tx.now, (newest or 0) + 1),
            **{name: getattr(plan, name) for name in OperationPlan.__struct_fields__},
        )

    @property
    def now(self) -> Instant:
        """The time of the request."""
        return self._tx.now


def start_chain(tx: Transaction, project_id: str, *branch_ids: str | None) -> OperationChain:
    """Start the operation chain of a request that changes branches of a project.

    Adding its first operation raises 423 if the project or a branch is locked. A request
    that does not start operations needs no lock.
    """
    changed_branches = [branch_id for branch_id in branch_ids if branch_id]
    return OperationChain(tx, project_id, changed_branches=changed_branches)


def default_branch(tx: Transaction, project_id: str) -> Branch:
    """Return the default branch of a project. Every project has one, even a deleted project."""
    where = "WHERE project_id = ? AND is_default AND deleted_at IS NULL"
    return tx.select(Branch, where, project_id)[0]


def fail_next(
    tx: Transaction,
    action: str,
    failure: Failure,
    times: int,
    after: int = 0,
    branch: str | None = None,
) -> None:
    """Make the next ``times`` operations of an action fail, after skipping ``after`` operations.

    With ``branch``, the name or the id of a branch, only its operations count.
    """
    tx.insert(
        PlannedFailure(
            id=0,
            action=action,
            times=times,
            fired=0,
            branch=branch,
            after=after,
            **{name: getattr(failure, name) for name in Failure.__struct_fields__},
        )
    )


def planned_failure(operation: Operation) -> Failure | None:
    """Return the planned failure of an operation, or None if there is none."""
    if operation.failure is None:
        return None
    return msgspec.json.decode(operation.failure, type=Failure)


def shows_retry_at(operation: Operation) -> bool:
    """Return whether the records of an operation contain the time of its retry."""
    failure = planned_failure(operation)
    return failure is None or failure.show_retry_at


def planned_failures(tx: Transaction) -> list[PlannedFailure]:
    """Return all planned failures, oldest first."""
    return tx.select(PlannedFailure, "ORDER BY id")


def remove_planned_failure(tx: Transaction, failure_id: int) -> bool:
    """Remove a planned failure. Return False if there is none with this id."""
    found = tx.first(PlannedFailure, "WHERE id = ?", failure_id) is not None
    tx.execute("DELETE FROM planned_failures WHERE id = ?", failure_id)
    return found


def clear_planned_failures(tx: Transaction) -> None:
    """Remove all planned failures."""
    tx.execute("DELETE FROM planned_failures")


def _take_planned_failure(
    tx: Transaction, action: str, branch_id: str, new_name: str | None = None
) -> Failure | None:
    """Return the oldest failure that applies to an operation, and record that it fired.

    Older failures that still have operations to skip count this operation as skipped.
    """
    where = (
        "WHERE action = ? AND fired < times AND (branch IS NULL OR branch IN "
        "(?, ?, (SELECT name FROM branches WHERE id = ?))) ORDER BY id"
    )
    for planned in tx.select(PlannedFailure, where, action, branch_id, new_name, branch_id):
        if planned.after:
            tx.update(planned, after=planned.after - 1)
            continue
        tx.update(planned, fired=planned.fired + 1)
        return Failure(**{name: getattr(planned, name) for name in Failure.__struct_fields__})
    return None


def _check_not_locked(tx: Transaction, project_id: str, branch_ids: Sequence[str]) -> None:
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
            "project already has running conflicting operations, scheduling of new ones is"
            f" prohibited: the first is {running.action} {running.id}"
        )
