"""The rows of the operation list, and the choices that its filters offer."""

from collections.abc import Sequence
from typing import ClassVar, Final, cast

import msgspec

from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call
from neonctl_local.clock import Instant
from neonctl_local.console.labels import LABELS, operation_name, status_label
from neonctl_local.engine import lifecycle
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.operation_search import (
    Label,
    OperationFilter,
    OperationPage,
    search,
)
from neonctl_local.storage.rows import Row
from neonctl_local.storage.tables import Branch, Operation, Project
from neonctl_local.storage.transactions import Transaction

PAGE_SIZE: Final = 50
"""The largest number of operations on a page."""

MOST_CHOICES: Final = 200
"""The largest number of branches that the filter lists in full."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The operations to show. ``branch`` is an id or a part of a name.

    An empty string matches every operation. The page contains the operations just before the
    position ``before``, or just after the position ``after``.
    """

    branch: str = ""
    action: str = ""
    status: str = ""
    before: Instant | None = None
    after: Instant | None = None

    @property
    def is_filtered(self) -> bool:
        """True if a filter is set."""
        return bool(self.branch or self.action or self.status)


class FilterBranch(Row, frozen=True):
    """A branch to choose from. ``deleted_at`` is the time of its deletion."""

    table: ClassVar[str] = "branches"

    id: str
    name: str
    deleted_at: Instant | None = None


class OperationRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operation as the console shows it.

    - ``branch``: None for a branch that is not stored, which imported data can contain.
    - ``duration``: in milliseconds, or None if the operation has not started.
    - ``since``: the start of an operation whose duration still grows.
    """

    id: str
    name: str
    action: str
    branch: FilterBranch | None
    endpoint_id: str | None
    label: str
    status: str
    duration: int | None
    since: Instant | None
    created_at: Instant
    error: str | None
    retry_at: Instant | None
    failures_count: int


class OperationList(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a project's operations, and the positions of the next and previous pages.

    ``branches`` lists the branches to choose from. It is None if there are too many.
    """

    project: Project
    rows: list[OperationRow]
    newer: Instant | None
    older: Instant | None
    branches: list[FilterBranch] | None


def check_access(tx: Transaction, principal: Principal, project_id: str) -> Project:
    """Return a project, deleted or not. Raise 404 if the person cannot see it."""
    call = Call(principal=principal, path={"project_id": project_id}, query={})
    return access.project(tx, call, deleted=True)


def read_list(
    tx: Transaction, principal: Principal, project_id: str, wanted: Wanted
) -> OperationList:
    """Return a page of operations, newest first."""
    project = check_access(tx, principal, project_id)
    found = _find_branches(tx, project_id, wanted.branch)
    page = _search(tx, project_id, wanted, found)
    return OperationList(
        project=project,
        rows=_rows(tx, page.operations),
        newer=page.newer,
        older=page.older,
        branches=_choices(tx, project_id, [one for one in found if one.id == wanted.branch]),
    )


def read_newest(tx: Transaction, branch: Branch, limit: int) -> list[OperationRow]:
    """Return the newest operations of a branch."""
    wanted = OperationFilter(branch_ids=(branch.id,))
    return _rows(tx, search(tx, branch.project_id, wanted, limit=limit).operations)


def _find_branches(tx: Transaction, project_id: str, wanted: str) -> list[FilterBranch]:
    """Return the branch with this id, or all branches whose names contain it, deleted or not."""
    if not wanted:
        return []
    branches = tx.select(FilterBranch, "WHERE project_id = ?", project_id)
    part = wanted.casefold()
    by_id = [branch for branch in branches if branch.id == wanted]
    return by_id or [branch for branch in branches if part in branch.name.casefold()]


def _search(
    tx: Transaction, project_id: str, wanted: Wanted, branches: Sequence[FilterBranch]
) -> OperationPage:
    if wanted.status not in {"", *LABELS} or (wanted.branch and not branches):
        return OperationPage([])
    matching = OperationFilter(
        branch_ids=tuple(branch.id for branch in branches) if wanted.branch else None,
        action=wanted.action or None,
        label=cast("Label", wanted.status) if wanted.status else None,
    )
    return search(
        tx, project_id, matching, before=wanted.before, after=wanted.after, limit=PAGE_SIZE
    )


def _choices(
    tx: Transaction, project_id: str, chosen: Sequence[FilterBranch]
) -> list[FilterBranch] | None:
    where = "WHERE project_id = ? AND deleted_at IS NULL LIMIT ?"
    found = tx.select(FilterBranch, where, project_id, MOST_CHOICES + 1)
    if len(found) > MOST_CHOICES:
        return None
    found += [branch for branch in chosen if branch.deleted_at is not None]
    return sorted(found, key=lambda branch: branch.name.casefold())


def _rows(tx: Transaction, operations: Sequence[Operation]) -> list[OperationRow]:
    ids = {operation.branch_id for operation in operations}
    where = f"WHERE id IN ({', '.join('?' * len(ids))})"
    branches = {branch.id: branch for branch in tx.select(FilterBranch, where, *ids)}
    return [
        _row(operation, branches.get(operation.branch_id or ""), tx.now) for operation in operations
    ]


def _row(operation: Operation, branch: FilterBranch | None, now: Instant) -> OperationRow:
    state = lifecycle.state_at(operation, now)
    label = status_label(state.status, will_retry=state.retry_at is not None)
    has_run = operation.runs and now >= operation.starts_at
    is_unsettled = now < operation.settles_at
    return OperationRow(
        id=operation.id,
        name=operation_name(operation.action),
        action=operation.action,
        branch=branch,
        endpoint_id=operation.endpoint_id,
        label=label,
        status=state.status,
        duration=state.duration // 1000 if has_run else None,
        since=operation.starts_at if has_run and is_unsettled else None,
        created_at=operation.created_at,
        error=state.error,
        retry_at=state.retry_at,
        failures_count=state.failures_count,
    )
