"""Project data that pages show, but that no API request returns."""

from collections.abc import Sequence
from typing import Final

import msgspec

from neonctl_local.api.request import access
from neonctl_local.api.request.access import Level
from neonctl_local.console.branch_tree import BranchName, TreePage, read_names, read_page
from neonctl_local.engine.api_keys import Principal
from neonctl_local.errors import not_found
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch
from neonctl_local.storage.transactions import Transaction

FIRST_BRANCHES: Final = 10
"""The largest number of branches on a project's dashboard."""

MAXIMUM_NAMES: Final = 20
"""The largest number of names on the page that confirms a deletion."""

_ACTIVE: Final = "CASE WHEN state_at <= ? THEN state ELSE state_before END = 'active'"


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The first branches of a project, and the branch that was chosen.

    ``branch_names`` starts with the default branch; the others follow, newest first.
    """

    tree: TreePage
    chosen: BranchName
    branch_names: list[str]
    computes: int
    active_computes: int
    may_delete: bool


class ProjectSize(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a project's branches and computes."""

    branches: int
    computes: int
    active_computes: int


class Losses(msgspec.Struct, frozen=True, kw_only=True):
    """What the deletion of a project destroys: counts, and the names of the newest branches."""

    branches: int
    branch_names: list[str]
    databases: int
    computes: int
    keys: int
    protected: list[Branch]
    """Branches that must be unprotected before the project can be deleted, at most 20."""


def read_overview(tx: Transaction, principal: Principal, project_id: str, branch: str) -> Overview:
    """Return the overview of a project. ``branch`` is an id or a name, or "" for the default.

    Raise 404 if the project has no such branch.
    """
    names = read_names(tx, project_id)
    live = "FROM endpoints WHERE project_id = ? AND deleted_at IS NULL"
    return Overview(
        tree=read_page(tx, names, size=FIRST_BRANCHES),
        chosen=_chosen(names, branch),
        branch_names=[found.name for found in sorted(names, key=lambda one: not one.is_default)],
        computes=_count(tx, live, project_id),
        active_computes=_count(tx, f"{live} AND {_ACTIVE}", project_id, tx.now),
        may_delete=may_delete(tx, principal, project_id),
    )


def read_branches(tx: Transaction, project_id: str, search: str, number: int) -> TreePage:
    """Return a page of a project's branches, or with ``search``, of the branches that match."""
    return read_page(tx, read_names(tx, project_id), search=search, number=number)


def read_sizes(tx: Transaction, project_ids: Sequence[str]) -> dict[str, ProjectSize]:
    """Return the numbers of branches and computes of projects, by project id."""
    live = "FROM endpoints WHERE project_id = ? AND deleted_at IS NULL"
    branches = "FROM branches WHERE project_id = ? AND deleted_at IS NULL"
    return {
        id: ProjectSize(
            branches=_count(tx, branches, id),
            computes=_count(tx, live, id),
            active_computes=_count(tx, f"{live} AND {_ACTIVE}", id, tx.now),
        )
        for id in project_ids
    }


def may_delete(tx: Transaction, principal: Principal, project_id: str) -> bool:
    """Return whether a person may delete a project, because the person owns or administers it."""
    project = access.find_project(tx, principal, project_id)
    return project is not None and access.project_level(tx, principal, project) >= Level.ADMIN


def read_losses(tx: Transaction, project_id: str) -> Losses:
    """Return what the deletion of a project would destroy."""
    names = read_names(tx, project_id)
    databases = (
        "FROM databases WHERE deleted_at IS NULL AND branch_id IN "
        "(SELECT id FROM branches WHERE project_id = ? AND deleted_at IS NULL)"
    )
    live = "FROM endpoints WHERE project_id = ? AND deleted_at IS NULL"
    keys = "FROM api_keys WHERE project_id = ? AND ended_at IS NULL"
    protected = "WHERE project_id = ? AND protected AND deleted_at IS NULL ORDER BY rowid LIMIT ?"
    return Losses(
        branches=len(names),
        branch_names=[found.name for found in names[:MAXIMUM_NAMES]],
        databases=_count(tx, databases, project_id),
        computes=_count(tx, live, project_id),
        keys=_count(tx, keys, project_id),
        protected=tx.select(Branch, protected, project_id, MAXIMUM_NAMES),
    )


def _chosen(names: Sequence[BranchName], wanted: str) -> BranchName:
    if not wanted:
        return next(found for found in names if found.is_default)
    for found in names:
        if found.id == wanted:
            return found
    for found in names:
        if found.name == wanted:
            return found
    raise not_found("branch", wanted)


def _count(tx: Transaction, clauses: str, *values: SqlValue) -> int:
    return tx.number(f"SELECT count(*) {clauses}", *values) or 0
