"""The check of points in time in requests, before anything is changed."""

from neonctl_local.api.request.calls import Call
from neonctl_local.clock import Instant
from neonctl_local.engine import points, timelines
from neonctl_local.engine.points import PointInTime, UncheckedPointError
from neonctl_local.errors import invalid, locked
from neonctl_local.storage.tables import Branch
from neonctl_local.storage.transactions import Transaction


def check(
    tx: Transaction, call: Call, branch: Branch, at: Instant | None, lsn: str | None, name: str
) -> None:
    """Raise 4xx if a branch has no data of a point in time, and so no operation would succeed.

    ``name`` is the field of the time. Only the server of the branch knows its data, so this raises
    UncheckedPointError at the first call. Emulated databases have no data.
    """
    if tx.rules.postgres is None or (at is None and lsn is None):
        return
    if at is not None and lsn is not None:
        raise invalid(f"invalid request: {name}: not together with an LSN")
    if timelines.state(branch, tx.now) == timelines.INIT:
        raise locked(f"branch {branch.id!r} is being created: retry after that has finished")
    check_time(tx, branch, at, name)
    point = PointInTime(branch.id, at, lsn)
    if point not in call.checked_points:
        raise UncheckedPointError(point)


def check_time(tx: Transaction, branch: Branch, at: Instant | None, name: str) -> None:
    """Raise 400 if a time is outside of the restore window of a branch with a real database.

    Without history, a time before the window can be that of a snapshot.
    """
    postgres = tx.rules.postgres
    if postgres is not None and at is not None and (postgres.history or at > tx.now):
        points.check_window(tx, branch, at, name)
