"""Searches for a project's operations by branch, action and label. Pages are newest first.

The four labels are those of the console. A settled operation has the label of its outcome. The
label of an unsettled operation follows from its plan and the time (lifecycle.py).

Each filter reads an index in which the newest matching rows come first. So a search for a rare
value takes the same time as a search for a common value. Only a filter with several branches also
reads the operations of other branches.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final, Literal, NamedTuple

import msgspec

from neonctl_local.clock import Instant
from neonctl_local.settings import ACTIONS
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

Label = Literal["OK", "Scheduling", "In progress", "Error"]
"""The status of an operation as the console shows it."""

OUTCOMES: Final[Mapping[Label, tuple[str, ...]]] = {
    "OK": ("finished", "skipped"),
    "Error": ("failed", "error", "cancelled"),
}
"""The terminal statuses of each label. The other two labels are for unsettled operations."""

_ALL_OUTCOMES: Final = tuple(outcome for outcomes in OUTCOMES.values() for outcome in outcomes)
_WAITS: Final = "(? < starts_at OR (retry_at IS NOT NULL AND ends_at <= ? AND ? < retry_at))"
"""The SQL condition that an unsettled operation has not started, or is waiting for its retry."""
_AFTER_ALL: Final = (1 << 63) - 1

Found = list[tuple[int, int]]
"""The positions and rowids of operations."""


class _Condition(NamedTuple):
    """An SQL condition on operations, and the index for it.

    The condition fixes all columns of the index that come before the position, so SQLite does not
    have to sort. It sorts only unsettled operations, which are few.
    """

    index_name: str
    where: str
    values: Sequence[SqlValue]

    @property
    def select(self) -> str:
        """The start of the statement that selects the operations."""
        return (
            f"SELECT position, rowid FROM operations INDEXED BY {self.index_name} "
            f"WHERE {self.where}"
        )


class OperationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The branches, the action and the label of the operations to find.

    A field that is None matches every operation.
    """

    branch_ids: tuple[str, ...] | None = None
    action: str | None = None
    label: Label | None = None


class OperationPage(msgspec.Struct, frozen=True):
    """A page of operations, newest first.

    ``newer`` is the parameter ``after`` for the page with newer operations, and ``older`` the
    parameter ``before`` for the page with older ones. Each is None if there is no such page.
    """

    operations: list[Operation]
    newer: Instant | None = None
    older: Instant | None = None


def search(
    tx: Transaction,
    project_id: str,
    wanted: OperationFilter,
    *,
    before: Instant | None = None,
    after: Instant | None = None,
    limit: int,
) -> OperationPage:
    """Return the newest matching operations, or those next to a position.

    ``before`` selects the newest operations that are older than a position, and ``after`` the
    oldest operations that are newer than a position. Without older operations, or if the newer ones
    do not fill a page, the newest page is returned.
    """
    conditions = _conditions(project_id, wanted, tx.now)
    found: Found = []
    if after is not None:
        found = _oldest_after(tx, conditions, after, limit + 1)
        found = found[limit - 1 :: -1] if len(found) > limit else []
    elif before is not None:
        found = _newest_before(tx, conditions, before, limit)
    if not found:
        found = _newest_before(tx, conditions, _AFTER_ALL, limit)
    if not found:
        return OperationPage([])
    newest, oldest = found[0][0], found[-1][0]
    return OperationPage(
        _load(tx, found),
        newer=newest if _oldest_after(tx, conditions, newest, 1) else None,
        older=oldest if _newest_before(tx, conditions, oldest, 1) else None,
    )


def _newest_before(
    tx: Transaction, conditions: Sequence[_Condition], position: Instant, limit: int
) -> Found:
    found: Found = []
    for one in conditions:
        found += tx.pairs(
            f"{one.select} AND position < ? ORDER BY position DESC LIMIT ?",
            *(*one.values, position, limit),
        )
    return sorted(found, reverse=True)[:limit]


def _oldest_after(
    tx: Transaction, conditions: Sequence[_Condition], position: Instant, limit: int
) -> Found:
    found: Found = []
    for one in conditions:
        found += tx.pairs(
            f"{one.select} AND position > ? ORDER BY position LIMIT ?",
            *(*one.values, position, limit),
        )
    return sorted(found)[:limit]


def _conditions(project_id: str, wanted: OperationFilter, now: Instant) -> list[_Condition]:
    """Return conditions. Each operation that matches the filter meets exactly one of them."""
    if wanted == OperationFilter():
        return [_Condition("operations_by_project", "project_id = ?", (project_id,))]
    if wanted.label is not None and wanted.label not in OUTCOMES:
        return [_unsettled(project_id, wanted, now)]
    if wanted.branch_ids is not None and len(wanted.branch_ids) != 1:
        return [_of_branches(project_id, wanted, now)]
    more: list[SqlValue] = []
    if wanted.branch_ids is None:
        index, scope = "operations_by_action", project_id
        where = "project_id = ? AND action = ? AND outcome = ?"
    else:
        index, scope = "operations_by_branch", wanted.branch_ids[0]
        where = "branch_id = ? AND action = ? AND outcome = ? AND project_id = ?"
        more = [project_id]
    if wanted.label is not None:
        where, more = f"{where} AND settles_at <= ?", [*more, now]
    actions = ACTIONS if wanted.action is None else [wanted.action]
    outcomes = _ALL_OUTCOMES if wanted.label is None else OUTCOMES[wanted.label]
    return [
        _Condition(index, where, (scope, action, outcome, *more))
        for action, outcome in product(actions, outcomes)
    ]


def _unsettled(project_id: str, wanted: OperationFilter, now: Instant) -> _Condition:
    """Return the condition for a label of unsettled operations."""
    waits = _WAITS if wanted.label == "Scheduling" else f"NOT {_WAITS}"
    where, values = _narrowed(wanted)
    where = f"project_id = ? AND settles_at > ? AND {waits}{where}"
    return _Condition("operations_unsettled", where, [project_id, *[now] * 4, *values])


def _of_branches(project_id: str, wanted: OperationFilter, now: Instant) -> _Condition:
    """Return the condition for a filter that names no branch or several branches."""
    where, values = _narrowed(wanted)
    if wanted.label is not None:
        outcomes = OUTCOMES[wanted.label]
        where += f" AND outcome IN ({', '.join('?' * len(outcomes))}) AND settles_at <= ?"
        values += [*outcomes, now]
    return _Condition("operations_by_project", f"project_id = ?{where}", [project_id, *values])


def _narrowed(wanted: OperationFilter) -> tuple[str, list[SqlValue]]:
    """Return the conditions on the branches and the action, each with a leading ``AND``."""
    where, values = "", list[SqlValue]()
    if wanted.branch_ids is not None:
        where += " AND branch_id IN (SELECT value FROM json_each(?))"
        values.append(msgspec.json.encode(wanted.branch_ids).decode())
    if wanted.action is not None:
        where += " AND action = ?"
        values.append(wanted.action)
    return where, values


def _load(tx: Transaction, found: Found) -> list[Operation]:
    marks = ", ".join("?" * len(found))
    where = f"WHERE rowid IN ({marks}) ORDER BY position DESC"
    return tx.select(Operation, where, *(rowid for _, rowid in found))
