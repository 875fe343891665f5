"""Points in time from which branches, restores and snapshots start."""

from typing import NamedTuple

from neonctl_local import ids
from neonctl_local.clock import SECOND, Instant, in_seconds, span
from neonctl_local.errors import invalid
from neonctl_local.storage.tables import Branch, Project
from neonctl_local.storage.transactions import Transaction


class PointInTime(NamedTuple):
    """A time or an LSN in the past of a branch. One of them is set."""

    branch_id: str
    at: Instant | None
    lsn: str | None


class UncheckedPointError(Exception):
    """A request needs the data of a point in time, and no server was asked yet if it has them."""

    def __init__(self, point: PointInTime) -> None:
        super().__init__(point)
        self.point = point


def shown_lsn(tx: Transaction, lsn: str | None) -> str | None:
    """Return the LSN that a new branch or snapshot shows. Emulated data have a random one.

    With history, an LSN that no server has would be refused later.
    """
    has_history = tx.rules.postgres is not None and tx.rules.postgres.history
    return lsn if lsn or has_history else ids.lsn()


def check_window(tx: Transaction, branch: Branch, at: Instant, name: str) -> None:
    """Raise 400 that names the field, unless ``at`` is in the restore window of a branch.

    It starts when the branch was created or last restored, and is not longer than the history
    retention of the project. The API shows the first time in whole seconds, and that is accepted.
    """
    project = tx.get(Project, branch.project_id)
    began = branch.last_reset_at or branch.created_at
    oldest = max(began, tx.now - span(project.history_retention_seconds))
    is_start = oldest == began and at == began // SECOND * SECOND
    if not (is_start or oldest <= at <= tx.now):
        raise invalid(
            f"invalid request: {name}: {in_seconds(at)} is not within the restore window, "
            f"{in_seconds(oldest)} to {in_seconds(tx.now)}"
        )
