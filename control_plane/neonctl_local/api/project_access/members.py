"""The roles of an organization's members on one of its projects.

A member's role is the higher of two: the role that is set on the project, and the default, which is
"admin" for administrators of the organization and "editor" for its other members.
"""

from typing import Final

import msgspec

from neonctl_local.api.request import access, bodies, paging
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.calls import Call, Json, Response, drop_none, respond
from neonctl_local.errors import ApiError, conflict, not_found
from neonctl_local.storage.access_tables import ProjectGrant, ProjectRole
from neonctl_local.storage.tables import ApiKey, Member, Project, User
from neonctl_local.storage.transactions import Transaction

_MAX_LIMIT: Final = 500
_RANKS: Final[dict[ProjectRole, int]] = {"viewer": 0, "editor": 1, "admin": 2}


class _Roles(msgspec.Struct, frozen=True):
    """A member's default role on a project, and the explicitly set role, if any."""

    default: ProjectRole
    explicit: ProjectRole | None

    @property
    def effective(self) -> ProjectRole:
        """The higher of the two roles."""
        return max(self.default, self.explicit or self.default, key=_RANKS.__getitem__)

    @property
    def source(self) -> str:
        """The reason for the effective role, as the API names it."""
        if self.default == "admin":
            return "org_admin_override"
        return "org_role_default" if self.explicit is None else "explicit"


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/members``: newest members first."""
    project, org_id = _project(tx, call)
    page = paging.SortedPage.from_call(call, ("joined_at",), "joined_at", _MAX_LIMIT)
    where, values = page.clauses("org_id = ?", org_id)
    members, pagination = page.paginate(tx.select(Member, where, *values))
    shown: list[Json] = []
    for member in members:
        roles = _roles(tx, project, member)
        shown.append(_record(tx, member, roles) | {"grant_source": roles.source})
    return respond({"project_members": shown, "pagination": pagination})


def set_role(tx: Transaction, call: Call) -> Response:
    """``PUT /projects/{project_id}/members/{member_id}/role``, for administrators."""
    project, member = _member(tx, call)
    before = _roles(tx, project, member)
    after = _Roles(before.default, call.body(bodies.ProjectRoleSet).role)
    _check_own_role(call, member, before, after, "confirm_self_demotion")
    tx.execute(
        "INSERT INTO project_grants (project_id, member_id, role) VALUES (?, ?, ?) "
        "ON CONFLICT (project_id, member_id) DO UPDATE SET role = excluded.role",
        *(project.id, member.id, after.explicit),
    )
    return respond(_changed(tx, project, member, before, after))


def remove_role(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}/members/{member_id}/role``, for administrators.

    The member keeps the default role. If no role is set on the project, nothing changes.
    """
    project, member = _member(tx, call)
    before = _roles(tx, project, member)
    after = _Roles(before.default, None)
    _check_own_role(call, member, before, after, "confirm_self_lockout")
    where = "project_id = ? AND member_id = ?"
    tx.execute(f"DELETE FROM project_grants WHERE {where}", project.id, member.id)
    return respond(_changed(tx, project, member, before, after))


def remove_roles(tx: Transaction, project_id: str) -> None:
    """Remove all roles on a project that is leaving its organization."""
    tx.execute("DELETE FROM project_grants WHERE project_id = ?", project_id)


def _project(tx: Transaction, call: Call, required: Level = Level.MEMBER) -> tuple[Project, str]:
    """Return the project in the path, and its organization. Raise 404 for a user's project."""
    project = access.project(tx, call, required)
    if project.org_id is None:
        raise ApiError(
            404,
            f"project {project.id!r} belongs to a user: only the projects of organizations have "
            "members",
        )
    return project, project.org_id


def _member(tx: Transaction, call: Call) -> tuple[Project, Member]:
    project, org_id = _project(tx, call, Level.ADMIN)
    member_id = call.path["member_id"]
    member = tx.first(Member, "WHERE id = ? AND org_id = ?", member_id, org_id)
    if member is None:
        raise not_found("member", member_id)
    return project, member


def _roles(tx: Transaction, project: Project, member: Member) -> _Roles:
    where = "WHERE project_id = ? AND member_id = ?"
    grant = tx.first(ProjectGrant, where, project.id, member.id)
    default: ProjectRole = "admin" if member.role == "admin" else "editor"
    return _Roles(default, None if grant is None else grant.role)


def _check_own_role(
    call: Call, member: Member, before: _Roles, after: _Roles, confirmation: str
) -> None:
    """Raise 409 if callers would lower their own role without having confirmed it."""
    is_own = call.principal.user_id == member.user_id
    if is_own and _is_lower(after, before) and not call.flag(confirmation):
        raise conflict(
            f"this would change your own role on the project from {before.effective!r} to "
            f"{after.effective!r}: send {confirmation}=true to confirm it"
        )


def _is_lower(after: _Roles, before: _Roles) -> bool:
    return _RANKS[after.effective] < _RANKS[before.effective]


def _changed(
    tx: Transaction, project: Project, member: Member, before: _Roles, after: _Roles
) -> Json:
    is_lower = _is_lower(after, before)
    where = "WHERE project_id = ? AND created_by = ? AND ended_at IS NULL"
    has_keys = tx.first(ApiKey, where, project.id, member.user_id) is not None
    return {
        "project_id": project.id,
        **_record(tx, member, after),
        "credential_rotation_recommended": is_lower,
        "org_api_key_rotation_recommended": is_lower and has_keys,
    }


def _record(tx: Transaction, member: Member, roles: _Roles) -> Json:
    user = tx.get(User, member.user_id)
    return drop_none(
        {
            "member_id": member.id,
            "user_id": user.id,
            "email": user.email,
            "name": user.name,
            "org_role": member.role,
            "project_role": roles.effective,
            "org_default_project_permission": roles.default.upper(),
            "explicit_project_permission": roles.explicit and roles.explicit.upper(),
            "effective_project_permission": roles.effective.upper(),
        }
    )
