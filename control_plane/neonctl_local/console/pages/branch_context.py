"""Reads what the pages of branches and computes show."""

from collections.abc import Mapping
from typing import ClassVar, Final, TypeVar

import msgspec

from neonctl_local.clock import in_seconds, in_seconds_or_none
from neonctl_local.console.operation_list import OperationRow, read_newest
from neonctl_local.console.records import (
    Branch,
    BranchFound,
    Endpoint,
    EndpointFound,
    Endpoints,
    Project,
    ProjectFound,
)
from neonctl_local.console.visits import Visit
from neonctl_local.engine.branches import deletion_blocker
from neonctl_local.errors import invalid, not_found
from neonctl_local.storage import tables
from neonctl_local.storage.rows import Row
from neonctl_local.storage.transactions import Transaction

T = TypeVar("T")

MAXIMUM_CHILDREN: Final = 50
"""The largest number of children that a page lists."""

MAXIMUM_OPERATIONS: Final = 5
"""The largest number of operations that a branch's page lists."""

MAXIMUM_OPTIONS: Final = 100
"""The largest number of branches for which a form offers a complete list."""

MAXIMUM_SUGGESTIONS: Final = 1000
"""The largest number of branches that a form suggests while a person types."""


class BranchName(Row, frozen=True):
    """The id and the name of a branch, and whether it is the default branch."""

    table: ClassVar[str] = "branches"

    id: str
    name: str
    is_default: bool


class Relatives(msgspec.Struct, frozen=True, kw_only=True):
    """The parent, children and newest operations of a branch, and the source of its last restore.

    ``deletion_blocker`` is the reason why the branch cannot be deleted, or empty.
    """

    parent: BranchName | None
    source: BranchName | None
    children: list[BranchName]
    child_count: int
    deletion_blocker: str
    operations: list[OperationRow]


class DeletedBranch(msgspec.Struct, frozen=True, kw_only=True):
    """A branch that was deleted. ``method`` is ``user`` or ``ttl``."""

    id: str
    name: str
    deleted_at: str
    method: str
    recoverable_until: str | None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The branches that a form offers: all of them, or some suggestions if there are many."""

    branches: list[BranchName]
    is_complete: bool

    @property
    def options(self) -> list[tuple[str, str]]:
        """The ids and names of the branches."""
        return [
            (branch.id, f"{branch.name} (default)" if branch.is_default else branch.name)
            for branch in self.branches
        ]

    def without(self, branch_id: str) -> "Choice":
        """Return the choice without the given branch."""
        others = [branch for branch in self.branches if branch.id != branch_id]
        return Choice(branches=others, is_complete=self.is_complete)


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The branch that a page is about, with its project, relatives and computes."""

    project: Project
    branch: Branch
    relatives: Relatives
    endpoints: list[Endpoint]

    @property
    def path(self) -> str:
        """The path of the branch's page, below ``/console``."""
        return branch_path(self.project.id, self.branch.id)


def branch_path(project_id: str, branch_id: str) -> str:
    """Return the path of a branch's page, below ``/console``."""
    return f"/projects/{project_id}/branches/{branch_id}"


async def call_branch(
    visit: Visit,
    method: str,
    action: str,
    kind: type[T],
    *,
    branch_id: str = "",
    query: Mapping[str, str] | None = None,
    body: object = None,
) -> T:
    """Send a request about a branch. Its path ends with ``action``, such as ``/restore``.

    Without ``branch_id``, the branch is the one in the path of the visit.
    """
    return await visit.call(
        f"{method} /projects/{{project_id}}/branches/{{branch_id}}{action}",
        kind,
        query=query,
        body=body,
        project_id=visit.path["project_id"],
        branch_id=branch_id or visit.path["branch_id"],
    )


async def call_endpoint(
    visit: Visit, method: str, action: str, kind: type[T], *, body: object = None
) -> T:
    """Send a request about the compute in the path of the visit."""
    return await visit.call(
        f"{method} /projects/{{project_id}}/endpoints/{{endpoint_id}}{action}",
        kind,
        body=body,
        project_id=visit.path["project_id"],
        endpoint_id=visit.path["endpoint_id"],
    )


async def find_project(visit: Visit) -> Project:
    """Return the project in the path. Raise 404 if the person cannot see it."""
    name = "GET /projects/{project_id}"
    found = await visit.call(name, ProjectFound, project_id=visit.path["project_id"])
    return found.project


async def find_subject(visit: Visit, branch_id: str) -> Subject:
    """Return a branch of the project in the path, with related data. Raise 404 if there is none."""
    found = await call_branch(visit, "GET", "", BranchFound, branch_id=branch_id)
    computes = await call_branch(visit, "GET", "/endpoints", Endpoints, branch_id=branch_id)
    return Subject(
        project=await find_project(visit),
        branch=found.branch,
        relatives=await visit.read(read_relatives, branch_id),
        endpoints=computes.endpoints,
    )


async def find_endpoint(visit: Visit) -> Endpoint:
    """Return the compute in the path. Raise 404 if there is none."""
    return (await call_endpoint(visit, "GET", "", EndpointFound)).endpoint


def read_relatives(tx: Transaction, branch_id: str) -> Relatives:
    """Return the relatives of a branch."""
    branch = tx.get(tables.Branch, branch_id)
    children = "WHERE parent_id = ? AND deleted_at IS NULL"
    newest = f"{children} ORDER BY created_at DESC, rowid DESC LIMIT ?"
    return Relatives(
        parent=_name(tx, branch.parent_id),
        source=_name(tx, branch.restored_from),
        children=tx.select(BranchName, newest, branch_id, MAXIMUM_CHILDREN),
        child_count=tx.number(f"SELECT count(*) FROM branches {children}", branch_id) or 0,
        deletion_blocker=deletion_blocker(tx, branch) or "",
        operations=read_newest(tx, branch, MAXIMUM_OPERATIONS),
    )


def read_deleted(tx: Transaction, project_id: str, branch_id: str) -> DeletedBranch:
    """Return a deleted branch. Raise 404 if the project has no deleted branch with this id."""
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NOT NULL"
    branch = tx.first(tables.Branch, where, branch_id, project_id)
    if branch is None:
        raise not_found("branch", branch_id)
    return _deleted(tx, branch)


def read_recoverable(tx: Transaction, project_id: str) -> list[DeletedBranch]:
    """Return the deleted branches of a project that can be recovered, newest first."""
    where = (
        "WHERE project_id = ? AND deleted_at IS NOT NULL AND recoverable_until >= ? "
        "ORDER BY deleted_at DESC, rowid DESC"
    )
    return [_deleted(tx, branch) for branch in tx.select(tables.Branch, where, project_id, tx.now)]


def _deleted(tx: Transaction, branch: tables.Branch) -> DeletedBranch:
    until = branch.recoverable_until
    return DeletedBranch(
        id=branch.id,
        name=branch.name,
        deleted_at=in_seconds(branch.deleted_at or 0),
        method=branch.deletion_method or "",
        recoverable_until=in_seconds_or_none(until if (until or 0) >= tx.now else None),
    )


def read_choice(tx: Transaction, project_id: str) -> Choice:
    """Return the branches of a project for a form: the default branch first, then by name."""
    where = (
        "WHERE project_id = ? AND deleted_at IS NULL "
        "ORDER BY is_default DESC, name COLLATE NOCASE, id LIMIT ?"
    )
    branches = tx.select(BranchName, where, project_id, MAXIMUM_SUGGESTIONS)
    return Choice(branches=branches, is_complete=len(branches) <= MAXIMUM_OPTIONS)


def find_branch(tx: Transaction, project_id: str, typed: str) -> str:
    """Return the id of the branch with this id or name. Raise 400 if there is none."""
    where = "WHERE project_id = ? AND deleted_at IS NULL AND (id = ? OR name = ?) ORDER BY id <> ?"
    branch = tx.first(BranchName, where, project_id, typed, typed, typed)
    if branch is None:
        raise invalid(
            f"the project has no branch {typed!r}: type the name or the ID of one of its branches"
        )
    return branch.id


def _name(tx: Transaction, branch_id: str | None) -> BranchName | None:
    return None if branch_id is None else tx.first(BranchName, "WHERE id = ?", branch_id)
