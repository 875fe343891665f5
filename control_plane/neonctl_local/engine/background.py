"""Background work of the control plane, which does not need a task of its own.

Each event is stored with the time at which it is due. Before a request on a project is served, the
due events of the project run in order, each as if at its own time. A process that was stopped does
not miss any event. The suspension of a compute with a Postgres server is not such an event: a
request must not suspend it, because a client may be using it (:func:`servers.suspend_due`).
"""

from collections.abc import Callable
from typing import Final

from neonctl_local.clock import SECOND, span
from neonctl_local.engine import computes, quotas, timelines
from neonctl_local.engine.branches import delete_branch, deletion_blocker
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.snapshots import delete_snapshot
from neonctl_local.storage.tables import Branch, DueEvent, Endpoint, Project, Snapshot
from neonctl_local.storage.transactions import Transaction

MAXIMUM_CHECKS: Final = 100
"""The largest number of missed availability checks that run later for a project."""

EARLIEST: Final = "WHERE project_id = ? AND at <= ? ORDER BY at, id LIMIT 1"
"""The SQL clauses for the next due event of a project. They match the indexes of the schema."""


def on_project_request(tx: Transaction, project: Project) -> None:
    """Run the due events of a project, and reattach the project if it was detached."""
    catch_up(tx, project.id)
    project = tx.get(Project, project.id)
    if project.detached:
        _reattach(tx, project)
    postpone_detachment(tx, project)


def is_due(tx: Transaction, project: Project) -> bool:
    """Return whether :func:`catch_up` has work to do."""
    event = tx.first(DueEvent, EARLIEST, project.id, tx.now)
    return event is not None or quotas.is_due(tx, project)


def catch_up(tx: Transaction, project_id: str) -> None:
    """Run the due events of a project, then suspend its computes if it exceeds a quota.

    Each event must clear or postpone its own due time.
    """
    _skip_checks(tx, project_id)
    while due := tx.first(DueEvent, EARLIEST, project_id, tx.now):
        _EVENTS[due.event](tx.at(due.at), due.id)
    quotas.suspend_exceeding(tx, tx.get(Project, project_id))


def _skip_checks(tx: Transaction, project_id: str) -> None:
    # After a long pause, only the most recent missed checks run, each at the time it was due.
    every = tx.rules.intervals.check_availability_every
    due = "project_id = ? AND check_at <= ?"
    branches_due = tx.number(f"SELECT count(*) FROM branches WHERE {due}", project_id, tx.now)
    if every is None or not branches_due:
        return
    checks = max(1, MAXIMUM_CHECKS // branches_due)
    period = span(every)
    tx.execute(
        f"UPDATE branches SET check_at = check_at + ((? - check_at) / ? - ?) * ? "
        f"WHERE {due} AND (? - check_at) / ? >= ?",
        *(tx.now, period, checks - 1, period),
        *(project_id, tx.now),
        *(tx.now, period, checks),
    )


def suspend(tx: Transaction, endpoint_id: str) -> None:
    """Suspend an idle compute, unless it may no longer be suspended."""
    endpoint = tx.get(Endpoint, endpoint_id)
    if computes.suspend_timeout(tx, endpoint) is None:
        tx.update(endpoint, idle_at=None)
        return
    computes.suspend(tx, endpoint, OperationChain(tx, endpoint.project_id))


def _check(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    every = tx.rules.intervals.check_availability_every
    candidates = computes.of_branch(tx, branch.id)
    if every is None or not candidates:
        tx.update(branch, check_at=None)
        return
    # A read_write compute comes first: "read_write" sorts after "read_only".
    endpoint = max(candidates, key=lambda candidate: candidate.type)
    OperationChain(tx, branch.project_id).add(
        "check_availability", branch_id=branch.id, endpoint_id=endpoint.id
    )
    tx.update(branch, check_at=tx.now + span(every))


def _archive(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    if tx.rules.intervals.archive_after_age is None:
        tx.update(branch, archive_at=None)
        return
    timelines.archive(tx, branch, OperationChain(tx, branch.project_id))


def _expire(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    if deletion_blocker(tx, branch) is None:
        delete_branch(tx, branch, OperationChain(tx, branch.project_id), "ttl")
    tx.update(branch, expires_at=None, ttl_interval_seconds=None)


def _expire_snapshot(tx: Transaction, snapshot_id: str) -> None:
    snapshot = tx.get(Snapshot, snapshot_id)
    delete_snapshot(tx, snapshot, OperationChain(tx, snapshot.project_id))


def _detach(tx: Transaction, project_id: str) -> None:
    project = tx.get(Project, project_id)
    after = tx.rules.intervals.detach_after
    if after is None:
        tx.update(project, detach_at=None)
        return
    active = "WHERE project_id = ? AND deleted_at IS NULL AND state = 'active'"
    if tx.first(Endpoint, active, project_id):
        tx.update(project, detach_at=tx.now + max(span(after), SECOND))
        return
    operation = OperationChain(tx, project_id).add_for_project("tenant_detach")
    tx.update(project, detached=operation.succeeds, detach_at=None)
    if operation.succeeds:
        tx.execute("UPDATE branches SET check_at = NULL WHERE project_id = ?", project_id)


def _reattach(tx: Transaction, project: Project) -> None:
    operation = OperationChain(tx, project.id).add_for_project("tenant_reattach")
    tx.update(project, detached=not operation.succeeds)
    where = "WHERE project_id = ? AND deleted_at IS NULL"
    for branch in tx.select(Branch, where, project.id):
        computes.schedule_checks(tx, branch.id)


def postpone_detachment(tx: Transaction, project: Project) -> None:
    """Restart the idle time after which a project is detached."""
    after = tx.rules.intervals.detach_after
    if after is None:
        return
    at = tx.now + span(after)
    # A precision of one second saves most requests a write.
    if project.detach_at is None or at - project.detach_at >= SECOND:
        tx.update_later(project, detach_at=at)


_EVENTS: Final[dict[str, Callable[[Transaction, str], None]]] = {
    "suspend": suspend,
    "check": _check,
    "archive": _archive,
    "expire": _expire,
    "expire_snapshot": _expire_snapshot,
    "detach": _detach,
}
