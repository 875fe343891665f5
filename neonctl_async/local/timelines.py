"""The state of a branch, and its archiving and unarchiving (section 2.3)."""

from typing import Final

from neonctl_async.local.clock import Instant, span
from neonctl_async.local.database import Transaction
from neonctl_async.local.operations import Chain
from neonctl_async.local.rows import Branch, Operation

INIT: Final = "init"
READY: Final = "ready"
ARCHIVED: Final = "archived"


def state(branch: Branch, now: Instant) -> str:
    """``init``, ``ready`` or ``archived``."""
    return branch.state if now >= branch.state_at else branch.state_before


def archive(tx: Transaction, branch: Branch, chain: Chain) -> Branch:
    """Archive a branch."""
    operation = chain.add("timeline_archive", branch_id=branch.id)
    return _move(tx, branch, operation, ARCHIVED)


def unarchive(tx: Transaction, branch: Branch, chain: Chain) -> Branch:
    """Bring a branch back that is archived, or is to be: something needs it."""
    if branch.state != ARCHIVED:
        return branch
    operation = chain.add("timeline_unarchive", branch_id=branch.id)
    return _move(tx, branch, operation, READY)


def archive_at(tx: Transaction, created_at: Instant, idle_since: Instant) -> Instant | None:
    """When a branch is archived that stays idle."""
    periods = tx.rules.periods
    if periods.archive_after_age is None:
        return None
    of_age = created_at + span(periods.archive_after_age)
    return max(of_age, idle_since + span(periods.archive_after_idle))


def _move(tx: Transaction, branch: Branch, operation: Operation, to: str) -> Branch:
    before = state(branch, tx.now)
    return tx.update(
        branch,
        state_before=before,
        state=to if operation.succeeds else before,
        state_at=operation.settles_at,
        updated_at=tx.now,
        archive_at=None,
    )
