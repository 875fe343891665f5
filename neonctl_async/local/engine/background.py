"""What the control plane does by itself (section 2.3), caught up with at the next request.

Whatever is to happen is stored as the time at which it falls due. Before a request on a project
is served, all that fell due in it is done, in order and as of its own time, so that nothing has
to run meanwhile and a process that was away has missed nothing.
"""

from collections.abc import Callable
from typing import Final

from neonctl_async.local.clock import SECOND, span
from neonctl_async.local.engine import computes, timelines
from neonctl_async.local.engine.branches import delete_branch, deletion_blocker
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.engine.snapshots import delete_snapshot
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Branch, DueEvent, Endpoint, Project, Snapshot

MAXIMUM_CHECKS: Final = 100
"""How many missed checks of availability are made up for, shared by the branches of a project."""

EARLIEST: Final = "WHERE project_id = ? AND at <= ? ORDER BY at, id LIMIT 1"
"""The first of the due events of a project. The indexes of the schema are in this order."""


def on_project_request(tx: Transaction, project: Project) -> None:
    """Do what fell due in a project, and reattach it if it was detached."""
    catch_up(tx, project.id)
    project = tx.get(Project, project.id)
    if project.detached:
        _reattach(tx, project)
    _postpone_detachment(tx, project)


def catch_up(tx: Transaction, project_id: str) -> None:
    """Do what fell due in a project. Whatever is done has to leave nothing due at its time."""
    _skip_checks(tx, project_id)
    while due := tx.first(DueEvent, EARLIEST, project_id, tx.now):
        _EVENTS[due.event](tx.at(due.at), due.id)


def _skip_checks(tx: Transaction, project_id: str) -> None:
    # Who was away for long finds the last checks that were missed, at the times they were due.
    every = tx.rules.intervals.check_availability_every
    due = "project_id = ? AND check_at <= ?"
    branches_due = tx.number(f"SELECT count(*) FROM branches WHERE {due}", project_id, tx.now)
    if every is None or not branches_due:
        return
    kept = max(1, MAXIMUM_CHECKS // branches_due)
    period = span(every)
    tx.execute(
        f"UPDATE branches SET check_at = check_at + ((? - check_at) / ? - ?) * ? "
        f"WHERE {due} AND (? - check_at) / ? >= ?",
        *(tx.now, period, kept - 1, period),
        *(project_id, tx.now),
        *(tx.now, period, kept),
    )


def _suspend(tx: Transaction, endpoint_id: str) -> None:
    endpoint = tx.get(Endpoint, endpoint_id)
    if computes.timeout(tx, endpoint) is None:
        tx.update(endpoint, idle_at=None)
        return
    computes.suspend(tx, endpoint, Chain(tx, endpoint.project_id))


def _check(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    every = tx.rules.intervals.check_availability_every
    candidates = computes.of_branch(tx, branch.id)
    if every is None or not candidates:
        tx.update(branch, check_at=None)
        return
    # "read_write" sorts after "read_only".
    checked = max(candidates, key=lambda endpoint: endpoint.type)
    Chain(tx, branch.project_id).add(
        "check_availability", branch_id=branch.id, endpoint_id=checked.id
    )
    tx.update(branch, check_at=tx.now + span(every))


def _archive(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    if tx.rules.intervals.archive_after_age is None:
        tx.update(branch, archive_at=None)
        return
    timelines.archive(tx, branch, Chain(tx, branch.project_id))


def _expire(tx: Transaction, branch_id: str) -> None:
    branch = tx.get(Branch, branch_id)
    if deletion_blocker(tx, branch) is None:
        delete_branch(tx, branch, Chain(tx, branch.project_id), "ttl")
    tx.update(branch, expires_at=None)


def _expire_snapshot(tx: Transaction, snapshot_id: str) -> None:
    snapshot = tx.get(Snapshot, snapshot_id)
    delete_snapshot(tx, snapshot, Chain(tx, snapshot.project_id))


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
    operation = Chain(tx, project_id).add("tenant_detach")
    tx.update(project, detached=operation.succeeds, detach_at=None)
    if operation.succeeds:
        tx.execute("UPDATE branches SET check_at = NULL WHERE project_id = ?", project_id)


def _reattach(tx: Transaction, project: Project) -> None:
    operation = Chain(tx, project.id).add("tenant_reattach")
    tx.update(project, detached=not operation.succeeds)
    where = "WHERE project_id = ? AND deleted_at IS NULL"
    for branch in tx.select(Branch, where, project.id):
        computes.watch_branch(tx, branch.id)


def _postpone_detachment(tx: Transaction, project: Project) -> None:
    after = tx.rules.intervals.detach_after
    if after is None:
        return
    at = tx.now + span(after)
    # To the second is enough, and spares most requests a write.
    if project.detach_at is None or at - project.detach_at >= SECOND:
        tx.update(project, detach_at=at)


_EVENTS: Final[dict[str, Callable[[Transaction, str], None]]] = {
    "suspend": _suspend,
    "check": _check,
    "archive": _archive,
    "expire": _expire,
    "expire_snapshot": _expire_snapshot,
    "detach": _detach,
}
