"""Permissions, which share a project with a user who is identified by email address."""

from neonctl_local import ids
from neonctl_local.api.people.organizations import MemberWithEmail
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.errors import conflict, forbidden, not_found
from neonctl_local.storage.tables import Permission
from neonctl_local.storage.transactions import Transaction


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/permissions``: list valid permissions, oldest first."""
    project = access.project(tx, call)
    where = "WHERE project_id = ? AND revoked_at IS NULL ORDER BY granted_at, rowid"
    found = tx.select(Permission, where, project.id)
    return respond({"project_permissions": [_record(permission) for permission in found]})


def grant(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/permissions``: share a project with a user.

    Any key that can access the project may do this, except for a project-scoped key.
    """
    project = access.project(tx, call)
    if call.principal.kind == "project":
        raise forbidden("a project-scoped key cannot share its project: use another key")
    email = call.body(bodies.PermissionGrant).email
    if tx.first(
        MemberWithEmail, "WHERE org_id = ? AND email = ? COLLATE NOCASE", project.org_id, email
    ):
        raise conflict(f"{email!r} is a member of the organization, and has access already")
    where = "WHERE project_id = ? AND email = ? AND revoked_at IS NULL"
    if tx.first(Permission, where, project.id, email):
        raise conflict(f"the project is already shared with {email!r}")
    permission = Permission(
        id=ids.uuid_text(), project_id=project.id, email=email, granted_at=tx.now
    )
    return respond(_record(tx.insert(permission)))


def revoke(tx: Transaction, call: Call) -> Response:
    """``DELETE .../permissions/{permission_id}``: stop sharing a project.

    Neither project-scoped keys nor users with whom the project is shared can do this.
    """
    project = access.project(tx, call)
    if call.principal.kind == "project" or access.is_collaborator(tx, call.principal, project):
        raise forbidden("only its owner and members of its organization end the sharing")
    permission_id = call.path["permission_id"]
    where = "WHERE id = ? AND project_id = ? AND revoked_at IS NULL"
    permission = tx.first(Permission, where, permission_id, project.id)
    if permission is None:
        raise not_found("permission", permission_id)
    return respond(_record(tx.update(permission, revoked_at=tx.now)))


def revoke_of_owner(tx: Transaction, project_id: str, user_id: str | None) -> None:
    """Revoke the permissions that a project's new owner had on the project."""
    where = f"project_id = ? AND {access.GRANTED}"
    sql = f"UPDATE permissions SET revoked_at = ? WHERE {where}"
    tx.execute(sql, tx.now, project_id, user_id)


def _record(permission: Permission) -> Json:
    shown = fields(permission, "id", "granted_at", "revoked_at")
    return shown | {"granted_to_email": permission.email}
