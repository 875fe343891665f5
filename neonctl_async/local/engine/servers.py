"""What the servers of real databases and their proxy need to know, and to change."""

from typing import Final

from neonctl_async.local.clock import Instant
from neonctl_async.local.engine import background, computes
from neonctl_async.local.engine.operations import OperationChain
from neonctl_async.local.engine.work import NEVER
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint, Operation, Project, Snapshot

_ACTIVE: Final = "WHERE deleted_at IS NULL AND state = 'active'"


def cluster_ids(tx: Transaction) -> set[str]:
    """Return the ids of all branches and snapshots, deleted ones included."""
    branches, snapshots = tx.select(Branch, ""), tx.select(Snapshot, "")
    return {row.id for row in (*branches, *snapshots)}


def snapshots_of(tx: Transaction, branch_id: str) -> list[Snapshot]:
    """Return the snapshots of a branch, newest first."""
    where = "WHERE source_branch_id = ? AND taken AND deleted_at IS NULL"
    return tx.select(Snapshot, f"{where} ORDER BY created_at DESC, rowid DESC", branch_id)


def has_active_compute(tx: Transaction, branch_id: str) -> bool:
    """Return whether a compute of a branch is running or starting."""
    return tx.first(Endpoint, f"{_ACTIVE} AND branch_id = ?", branch_id) is not None


def active_branches(tx: Transaction) -> dict[str, Instant | None]:
    """Return the branches with a running compute, and when the first of them is suspended."""
    found: dict[str, Instant | None] = {}
    for endpoint in tx.select(Endpoint, f"{_ACTIVE} AND state_at <= ?", tx.now):
        times = [endpoint.idle_at, found.get(endpoint.branch_id)]
        found[endpoint.branch_id] = min((at for at in times if at is not None), default=None)
    return found


def suspend_due(tx: Transaction) -> bool:
    """Suspend the computes that have been idle for their time. Return whether there were any."""
    due = tx.select(Endpoint, f"{_ACTIVE} AND idle_at <= ?", tx.now)
    for project_id in dict.fromkeys(endpoint.project_id for endpoint in due):
        background.catch_up(tx, project_id)
    return bool(due)


def ensure_started(tx: Transaction, endpoint_id: str) -> str | None:
    """Start an idle compute. Return the id of the unfinished start, or None if it is running."""
    endpoint = tx.get(Endpoint, endpoint_id)
    background.on_project_request(tx, tx.get(Project, endpoint.project_id))
    endpoint = tx.get(Endpoint, endpoint_id)
    if endpoint.state != computes.ACTIVE:
        chain = OperationChain(tx, endpoint.project_id)
        computes.start(tx, endpoint, chain)
        return chain.operations[-1].id
    where = "WHERE endpoint_id = ? AND action = 'start_compute' ORDER BY position DESC"
    start = tx.first(Operation, where, endpoint_id)
    return None if start is None or start.settles_at < NEVER else start.id


def settled_operation(tx: Transaction, operation_id: str) -> Operation | None:
    """Return an operation if its work is done, else None."""
    operation = tx.get(Operation, operation_id)
    return None if operation.settles_at >= NEVER else operation
