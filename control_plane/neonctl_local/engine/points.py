"""Points in time from which branches, restores and snapshots start.

Each point is checked before anything is changed.
"""

from collections.abc import Collection
from typing import NamedTuple

from neonctl_local import ids
from neonctl_local.clock import SECOND, Instant, in_seconds, span
from neonctl_local.engine import timelines
from neonctl_local.errors import invalid, locked
from neonctl_local.storage.tables import Branch, Project
from neonctl_local.storage.transactions import Transaction


class PointInTime(NamedTuple):
    """A time or an LSN in the past of a branch, or the present if both are None."""

    branch_id: str
    at: Instant | None
    lsn: str | None


class UncheckedPointError(Exception):
    """A request needs the data of a point in time that no server has confirmed yet."""

    def __init__(self, point: PointInTime) -> None:
        super().__init__(point)
        self.point = point


def shown_lsn(tx: Transaction, lsn: str | None) -> str | None:
    """Return the LSN that a new branch or snapshot shows, which is random if ``lsn`` is not set.

    With history, return ``None`` instead, because servers would later refuse a random LSN.
    """
    has_history = tx.rules.postgres is not None and tx.rules.postgres.history
    return lsn if lsn or has_history else ids.lsn()


def check(
    tx: Transaction,
    checked: Collection[PointInTime],
    branch: Branch,
    at: Instant | None,
    lsn: str | None,
    name: str,
) -> None:
    """Raise 4xx if a branch does not have the data of a point in time.

    ``name`` is the field that contains the time. Only the server of a branch knows which data it
    has, so this raises UncheckedPointError for a point that is not in ``checked``. Emulated
    databases have the data of their whole restore window.
    """
    if at is None and lsn is None:
        return
    if at is not None and lsn is not None:
        raise invalid(f"invalid request: {name}: not together with an LSN")
    if tx.rules.postgres is None:
        check_window(tx, branch, tx.now if at is None else at, name)
        return
    if timelines.state(branch, tx.now) == timelines.INIT:
        raise locked(f"branch {branch.id!r} is being created: retry after that has finished")
    check_time(tx, branch, at, name)
    point = PointInTime(branch.id, at, lsn)
    if point not in checked:
        raise UncheckedPointError(point)


def check_time(tx: Transaction, branch: Branch, at: Instant | None, name: str) -> None:
    """Raise 400 if a time is outside of the restore window of a branch with a real database.

    Without history, only times in the future are refused, because an earlier time can be that of a
    snapshot.
    """
    postgres = tx.rules.postgres
    if postgres is not None and at is not None and (postgres.history or at > tx.now):
        check_window(tx, branch, at, name)


def check_window(tx: Transaction, branch: Branch, at: Instant, name: str) -> None:
    """Raise 400, naming the field, unless ``at`` is within the restore window of a branch.

    The window starts when the branch was created or last restored, but is never longer than the
    history retention of the project. The API shows this start in whole seconds, so the rounded time
    is accepted too.
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
