"""The state of a branch, its name, and its archiving and unarchiving."""

from typing import Final

from neonctl_local.clock import Instant, span
from neonctl_local.engine.operations import OperationChain
from neonctl_local.storage.tables import Branch, Operation
from neonctl_local.storage.transactions import Transaction

INIT: Final = "init"
READY: Final = "ready"
ARCHIVED: Final = "archived"


def state(branch: Branch, now: Instant) -> str:
    """Return the state of a branch: ``init``, ``ready`` or ``archived``."""
    return branch.state if now >= branch.state_at else branch.state_before


def archive(tx: Transaction, branch: Branch, chain: OperationChain) -> Branch:
    """Archive a branch."""
    operation = chain.add("timeline_archive", branch_id=branch.id)
    return _change_state(tx, branch, operation, ARCHIVED)


def unarchive(tx: Transaction, branch: Branch, chain: OperationChain) -> Branch:
    """Unarchive a branch that is archived or being archived, after its archived ancestors.

    Do nothing for other branches.
    """
    if branch.state != ARCHIVED:
        return branch
    if (parent := tx.first(Branch, "WHERE id = ?", branch.parent_id)) is not None:
        unarchive(tx, parent, chain)
    operation = chain.add("timeline_unarchive", branch_id=branch.id)
    return _change_state(tx, branch, operation, READY)


def schedule_archiving(tx: Transaction, branch_id: str, idle_since: Instant) -> None:
    """Schedule the archiving of a branch, based on its age and on ``idle_since``.

    Default, protected and archived branches are never archived, nor are branches with an active
    compute or with children that are not archived.
    """
    intervals = tx.rules.intervals
    if intervals.archive_after_age is None:
        tx.execute("UPDATE branches SET archive_at = NULL WHERE id = ?", branch_id)
        return
    tx.execute(
        "UPDATE branches SET archive_at = CASE "
        "WHEN is_default OR protected OR deleted_at IS NOT NULL OR state = 'archived' OR EXISTS ("
        "SELECT 1 FROM endpoints WHERE branch_id = branches.id AND state = 'active' "
        "AND deleted_at IS NULL) OR EXISTS (SELECT 1 FROM branches child "
        "WHERE child.parent_id = branches.id AND child.deleted_at IS NULL "
        "AND child.state <> 'archived') THEN NULL "
        "ELSE max(created_at + ?, ?) END WHERE id = ?",
        span(intervals.archive_after_age),
        idle_since + span(intervals.archive_after_idle),
        branch_id,
    )


def set_states(tx: Transaction, operation: Operation) -> None:
    """Set the states of branches that were waiting for the end of an operation."""
    for branch in tx.select(Branch, "WHERE state_operation = ?", operation.id):
        tx.update(
            branch,
            state=branch.state if operation.succeeds else branch.state_before,
            state_at=operation.settles_at,
            state_operation=None,
        )
        schedule_archiving(tx, branch.id, operation.settles_at)


def _change_state(tx: Transaction, branch: Branch, operation: Operation, to: str) -> Branch:
    before = state(branch, tx.now)
    changed = tx.update(
        branch,
        state_before=before,
        state=to if operation.succeeds else before,
        state_at=operation.settles_at,
        state_operation=operation.open_id,
        updated_at=tx.now,
    )
    for changed_id in (branch.id, branch.parent_id):
        schedule_archiving(tx, changed_id or "", operation.settles_at)
    return changed


def is_name_taken(tx: Transaction, project_id: str, name: str) -> bool:
    """Return whether a branch of the project has this name."""
    where = "WHERE project_id = ? AND name = ? AND deleted_at IS NULL"
    return tx.first(Branch, where, project_id, name) is not None
