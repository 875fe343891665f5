"""What a key reaches (section 2.1), and what it may do there.

An object out of a key's reach is not found: 404. One that it sees but may not act on: 403.
"""

from enum import IntEnum
from typing import Final

from neonctl_async.local.api.request.calls import Call
from neonctl_async.local.engine.api_keys import Principal
from neonctl_async.local.errors import forbidden, not_found
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import (
    Branch,
    Endpoint,
    Member,
    Organization,
    Permission,
    Project,
)

GRANTED: Final = "revoked_at IS NULL AND email = (SELECT email FROM users WHERE id = ?)"
"""The condition on a permission that it is in force for a user."""


class Level(IntEnum):
    """How far a key's power over an object goes."""

    NONE = 0
    MEMBER = 1
    ADMIN = 2


def organization(
    tx: Transaction, call: Call, need: Level = Level.MEMBER, *, parameter: str = "org_id"
) -> Organization:
    """The organization of the path. A project-scoped key acts on none (2.1, rule 3)."""
    org_id = call.path[parameter]
    found = tx.first(Organization, "WHERE id = ?", org_id)
    level = level_in(tx, call.principal, org_id)
    if found is None or level is Level.NONE:
        raise not_found("organization", org_id)
    if call.principal.kind == "project":
        raise forbidden("a project-scoped key cannot act on its organization")
    if level < need:
        raise forbidden("only an administrator of the organization can do this")
    return found


def project(
    tx: Transaction, call: Call, need: Level = Level.MEMBER, *, deleted: bool = False
) -> Project:
    """The project of the path; one that is deleted only where ``deleted`` allows it."""
    project_id = call.path["project_id"]
    found = reached_project(tx, call.principal, project_id)
    if found is None or (found.deleted_at is not None and not deleted):
        raise not_found("project", project_id)
    if level_on(tx, call.principal, found) < need:
        raise forbidden("this key has member-level access, which does not allow this")
    return found


def branch(tx: Transaction, call: Call) -> tuple[Project, Branch]:
    """The branch of the path, and its project."""
    owner = project(tx, call)
    return owner, branch_of(tx, owner.id, call.path["branch_id"])


def branch_of(tx: Transaction, project_id: str, branch_id: str) -> Branch:
    """A branch of a project."""
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = tx.first(Branch, where, branch_id, project_id)
    if found is None:
        raise not_found("branch", branch_id)
    return found


def default_branch(tx: Transaction, project_id: str) -> Branch:
    """The default branch of a project: there always is one."""
    where = "WHERE project_id = ? AND is_default AND deleted_at IS NULL"
    return tx.select(Branch, where, project_id)[0]


def branch_or_default(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """A branch of a project, its default one unless told."""
    if branch_id:
        return branch_of(tx, project_id, branch_id)
    return default_branch(tx, project_id)


def endpoint(tx: Transaction, call: Call) -> tuple[Project, Endpoint]:
    """The compute of the path, and its project."""
    owner = project(tx, call)
    endpoint_id = call.path["endpoint_id"]
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = tx.first(Endpoint, where, endpoint_id, owner.id)
    if found is None:
        raise not_found("endpoint", endpoint_id)
    return owner, found


def reached_project(tx: Transaction, principal: Principal, project_id: str) -> Project | None:
    """A project, deleted ones included, where the key reaches it."""
    found = tx.first(Project, "WHERE id = ?", project_id)
    if found is None or level_on(tx, principal, found) is Level.NONE:
        return None
    return found


def level_on(tx: Transaction, principal: Principal, project: Project) -> Level:
    """A key's level on a project."""
    if principal.kind == "project":
        return Level.MEMBER if principal.project_id == project.id else Level.NONE
    if project.org_id is not None:
        level = level_in(tx, principal, project.org_id)
    else:
        level = Level.ADMIN if project.user_id == principal.user_id else Level.NONE
    if level is Level.NONE and _is_shared(tx, principal, project):
        return Level.MEMBER
    return level


def level_in(tx: Transaction, principal: Principal, org_id: str) -> Level:
    """A key's level in an organization."""
    if principal.kind != "personal":
        admin = principal.kind == "organization"
        return (
            (Level.ADMIN if admin else Level.MEMBER) if principal.org_id == org_id else Level.NONE
        )
    return _level_of_user(tx, principal.user_id, org_id)


def administers(tx: Transaction, user_id: str, project: Project) -> bool:
    """Whether a user administers a project."""
    if project.org_id is None:
        return project.user_id == user_id
    return _level_of_user(tx, user_id, project.org_id) is Level.ADMIN


def personal(call: Call) -> str:
    """The user whose personal key the request carries. Raises 403 for any other key."""
    if call.principal.user_id is None:
        raise forbidden("this takes a personal API key")
    return call.principal.user_id


def new_owner(
    tx: Transaction, principal: Principal, org_id: str | None
) -> tuple[str | None, str | None]:
    """The user or the organization that a project comes to belong to: the caller's unless told."""
    if principal.kind == "project":
        raise forbidden("a project-scoped key cannot create or accept projects")
    org_id = org_id or principal.org_id
    if org_id is None:
        return principal.user_id, None
    if level_in(tx, principal, org_id) is Level.NONE:
        raise not_found("organization", org_id)
    return None, org_id


def _level_of_user(tx: Transaction, user_id: str | None, org_id: str) -> Level:
    member = tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id)
    if member is None:
        return Level.NONE
    return Level.ADMIN if member.role == "admin" else Level.MEMBER


def _is_shared(tx: Transaction, principal: Principal, project: Project) -> bool:
    where = f"WHERE project_id = ? AND {GRANTED}"
    return tx.first(Permission, where, project.id, principal.user_id) is not None
