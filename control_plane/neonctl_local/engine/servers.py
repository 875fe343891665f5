"""Queries about the servers of real databases, and the suspension of computes."""

from typing import Final

from neonctl_local.clock import Instant
from neonctl_local.engine import background, quotas
from neonctl_local.storage.tables import Branch, Endpoint, Project, Snapshot
from neonctl_local.storage.transactions import Transaction

_UP: Final = "WHERE running_on IS NOT NULL AND deleted_at IS NULL"


def snapshots_of(tx: Transaction, branch_id: str) -> list[Snapshot]:
    """Return the snapshots of a branch, newest first."""
    where = "WHERE source_branch_id = ? AND taken AND deleted_at IS NULL"
    return tx.select(Snapshot, f"{where} ORDER BY created_at DESC, rowid DESC", branch_id)


def history_retention(tx: Transaction) -> dict[str, float]:
    """Return how long each branch, deleted or not, keeps its history, in seconds."""
    projects = {each.id: each.history_retention_seconds for each in tx.select(Project, "")}
    return {branch.id: projects[branch.project_id] for branch in tx.select(Branch, "")}


def suspensions(tx: Transaction) -> dict[str, Instant | None]:
    """Return the time of the next suspension, if any, on each branch with a running server."""
    found: dict[str, Instant | None] = {}
    for endpoint in tx.select(Endpoint, _UP):
        branch_id = endpoint.running_on or ""
        times = [endpoint.idle_at, found.get(branch_id)]
        found[branch_id] = min((at for at in times if at is not None), default=None)
    return found


def suspend_due(tx: Transaction, checked_at: Instant) -> bool:
    """Suspend the computes that have been idle for too long, or whose project exceeds a quota.

    ``checked_at`` is the time just before their activity was last checked. It is used instead of
    the current time, because a check may take longer than the time by which it postpones a
    suspension. Return whether any computes were due.
    """
    due = tx.select(Endpoint, f"{_UP} AND idle_at <= ? ORDER BY idle_at, id", checked_at)
    then = tx.at(checked_at)
    for endpoint in due:
        background.catch_up(then, endpoint.project_id)
        # This may have deleted or suspended the compute.
        if tx.get(Endpoint, endpoint.id).idle_at == endpoint.idle_at:
            background.suspend(then, endpoint.id)
    projects = tx.select(Project, f"WHERE id IN (SELECT project_id FROM endpoints {_UP})")
    exceeding = [project.id for project in projects if quotas.is_due(tx, project)]
    for project_id in exceeding:
        background.catch_up(tx, project_id)
    return bool(due or exceeding)
