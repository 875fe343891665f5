"""The objects that a key can access, and its access level.

A request for an object that the key cannot see returns 404. A request for a visible object that
the key may not change returns 403.
"""

from enum import IntEnum
from typing import Final

from neonctl_local.api.request.calls import Call
from neonctl_local.clock import Instant
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.operations import default_branch
from neonctl_local.errors import ApiError, forbidden, invalid, not_found
from neonctl_local.storage.access_tables import ProjectGrant
from neonctl_local.storage.tables import (
    NEVER,
    Branch,
    Endpoint,
    Member,
    Organization,
    Permission,
    Project,
)
from neonctl_local.storage.transactions import Transaction

GRANTED: Final = "revoked_at IS NULL AND email = (SELECT email FROM users WHERE id = ?)"
"""The SQL condition for a valid permission that is granted to a user."""


class Level(IntEnum):
    """The access level of a key on a project or an organization."""

    NONE = 0
    MEMBER = 1
    ADMIN = 2


def organization(
    tx: Transaction, call: Call, required: Level = Level.MEMBER, *, parameter: str = "org_id"
) -> Organization:
    """Return the organization in the path. Raise 403 for project-scoped keys."""
    return organization_of(tx, call.principal, call.path[parameter], required)


def organization_of(
    tx: Transaction, principal: Principal, org_id: str, required: Level = Level.MEMBER
) -> Organization:
    """Return an organization. Raise 403 for project-scoped keys."""
    found = tx.first(Organization, "WHERE id = ?", org_id)
    level = organization_level(tx, principal, org_id)
    if found is None or level is Level.NONE:
        raise not_found("organization", org_id)
    if principal.kind == "project":
        raise forbidden("a project-scoped key cannot act on its organization")
    if level < required:
        raise forbidden("only an administrator of the organization can do this")
    return found


def project(
    tx: Transaction, call: Call, required: Level = Level.MEMBER, *, deleted: bool = False
) -> Project:
    """Return the project in the path. Raise 404 if it was deleted, unless ``deleted`` is true."""
    project_id = call.path["project_id"]
    found = find_project(tx, call.principal, project_id)
    if found is None or (found.deleted_at is not None and not deleted):
        raise not_found("project", project_id)
    if project_level(tx, call.principal, found) < required:
        raise forbidden("this key has member-level access; use the key of an administrator")
    return found


def branch(tx: Transaction, call: Call) -> tuple[Project, Branch]:
    """Return the branch in the path, and its project."""
    owner = project(tx, call)
    return owner, branch_of(tx, owner.id, call.path["branch_id"])


def branch_of(tx: Transaction, project_id: str, branch_id: str) -> Branch:
    """Return a branch of a project. Raise 404 if the project has no such branch."""
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = tx.first(Branch, where, branch_id, project_id)
    if found is None:
        raise ApiError(404, "branch not found")
    return found


def branch_or_default(tx: Transaction, project_id: str, branch_id: str | None) -> Branch:
    """Return a branch of a project, or its default branch if ``branch_id`` is empty."""
    if branch_id:
        return branch_of(tx, project_id, branch_id)
    return default_branch(tx, project_id)


def endpoint(tx: Transaction, call: Call) -> tuple[Project, Endpoint]:
    """Return the compute in the path, and its project."""
    owner = project(tx, call)
    endpoint_id = call.path["endpoint_id"]
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = tx.first(Endpoint, where, endpoint_id, owner.id)
    if found is None:
        raise not_found("endpoint", endpoint_id)
    return owner, found


def find_project(tx: Transaction, principal: Principal, project_id: str) -> Project | None:
    """Return a project, deleted or not, if the key can see it."""
    found = tx.first(Project, "WHERE id = ?", project_id)
    if found is None or project_level(tx, principal, found) is Level.NONE:
        return None
    return found


def project_position(tx: Transaction, call: Call) -> Instant:
    """Return the position after which a page of projects starts.

    The cursor is the id of the last project on the previous page. Without a cursor, the page starts
    with the newest project.
    """
    cursor = call.query.get("cursor")
    if not cursor:
        return NEVER
    if (last := find_project(tx, call.principal, cursor)) is None:
        raise invalid(f"invalid request: cursor: {cursor!r} is not a cursor of this list")
    return last.created_at


def project_level(tx: Transaction, principal: Principal, project: Project) -> Level:
    """Return the access level of a key on a project."""
    if principal.kind == "project":
        return Level.MEMBER if principal.project_id == project.id else Level.NONE
    level = _own_level(tx, principal, project)
    if level is Level.NONE and _is_shared(tx, principal, project):
        return Level.MEMBER
    return level


def is_collaborator(tx: Transaction, principal: Principal, project: Project) -> bool:
    """Return whether a key can access a project only because the project is shared."""
    return _own_level(tx, principal, project) is Level.NONE


def organization_level(tx: Transaction, principal: Principal, org_id: str) -> Level:
    """Return the access level of a key in an organization."""
    if principal.kind == "personal":
        return _level_of_user(tx, principal.user_id, org_id)
    if principal.org_id != org_id:
        return Level.NONE
    return Level.ADMIN if principal.kind == "organization" else Level.MEMBER


def check_organization_visible(tx: Transaction, principal: Principal, org_id: str) -> None:
    """Raise 404 if the key has no access to an organization."""
    if organization_level(tx, principal, org_id) is Level.NONE:
        raise not_found("organization", org_id)


def administers(tx: Transaction, user_id: str, project: Project) -> bool:
    """Return whether a user owns a project, or is an administrator of its organization."""
    if project.org_id is None:
        return project.user_id == user_id
    return _level_of_user(tx, user_id, project.org_id) is Level.ADMIN


def personal_user_id(call: Call) -> str:
    """Return the user of a personal key. Raise 403 for any other key."""
    if call.principal.user_id is None:
        raise forbidden("this request requires a personal API key")
    return call.principal.user_id


def new_owner(
    tx: Transaction, principal: Principal, org_id: str | None
) -> tuple[str | None, str | None]:
    """Return the user id or the organization id of a project's new owner.

    Without ``org_id``, the new owner is the account of the key.
    """
    if principal.kind == "project":
        raise forbidden("a project-scoped key cannot create or accept projects")
    check_owner_named(tx, principal, org_id)
    org_id = org_id or principal.org_id
    if org_id is None:
        return principal.user_id, None
    check_organization_visible(tx, principal, org_id)
    return None, org_id


def check_owner_named(tx: Transaction, principal: Principal, org_id: str | None) -> None:
    """Raise 400 if an organization is required, and neither the key nor the request names one."""
    if tx.rules.require_org_id and principal.kind == "personal" and not org_id:
        raise invalid("org_id is required, you can find it on your organization settings page")


def _level_of_user(tx: Transaction, user_id: str | None, org_id: str) -> Level:
    member = tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id)
    if member is None:
        return Level.NONE
    return Level.ADMIN if member.role == "admin" else Level.MEMBER


def _own_level(tx: Transaction, principal: Principal, project: Project) -> Level:
    if project.org_id is None:
        return Level.ADMIN if project.user_id == principal.user_id else Level.NONE
    level = organization_level(tx, principal, project.org_id)
    if level is Level.MEMBER and _administers_project(tx, principal, project):
        return Level.ADMIN
    return level


def _administers_project(tx: Transaction, principal: Principal, project: Project) -> bool:
    """Return whether the user of a personal key has the admin role on the project itself."""
    where = (
        "WHERE project_id = ? AND role = 'admin' "
        "AND member_id IN (SELECT id FROM members WHERE org_id = ? AND user_id = ?)"
    )
    found = tx.first(ProjectGrant, where, project.id, project.org_id, principal.user_id)
    return found is not None


def _is_shared(tx: Transaction, principal: Principal, project: Project) -> bool:
    where = f"WHERE project_id = ? AND {GRANTED}"
    return tx.first(Permission, where, project.id, principal.user_id) is not None
