"""The forms that create and delete a role of a branch, and that reset or show its password."""

from aiohttp import web
from markupsafe import Markup

from neonctl_local.console.access.sessions import NewPassword
from neonctl_local.console.notices import sentence
from neonctl_local.console.pages.branch_context import call_branch
from neonctl_local.console.pages.databases import (
    BRANCH,
    BranchContext,
    chosen_name,
    path_of_branch,
    read_context,
    show_found,
    started_by,
    with_operations,
)
from neonctl_local.console.records import Password, RoleChanged
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, not_found

ROLE = f"{BRANCH}/roles/{{role_name}}"


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/roles/new``: the form that creates a role."""
    return show_found(visit, await read_context(visit), "role_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST …/roles/new``: create a role, and show its password once."""
    spec: dict[str, object] = {"name": visit.typed("name")}
    if visit.typed("no_login"):
        spec["no_login"] = True
    try:
        created = await call_branch(visit, "POST", "/roles", RoleChanged, body={"role": spec})
    except ApiError as error:
        return await show_new(visit, error=error)
    return _changed(visit, created, sentence("Role {} created.", created.role.name))


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/roles/delete?name=…``: ask for confirmation."""
    name = chosen_name(visit)
    found = await read_context(visit)
    _check_exists(found, name)
    return show_found(
        visit, found, "role_delete.html", error=error, name=name, owned=found.objects.owned_by(name)
    )


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST …/roles/delete``: delete a role."""
    name = chosen_name(visit)
    try:
        response = await visit.call(
            f"DELETE {ROLE}",
            object,
            project_id=visit.path["project_id"],
            branch_id=visit.path["branch_id"],
            role_name=name,
        )
    except ApiError as error:
        return await show_delete(visit, error=error)
    done = sentence("Role {} deleted.", name)
    return visit.redirect(path_of_branch(visit), with_operations(visit, done, started_by(response)))


async def show_reset(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/roles/reset?name=…``: ask for confirmation."""
    name = chosen_name(visit)
    found = await read_context(visit)
    _check_exists(found, name)
    return show_found(visit, found, "role_reset.html", error=error, name=name)


async def reset(visit: Visit) -> web.StreamResponse:
    """``POST …/roles/reset``: give a role a new password, and show it once."""
    name = chosen_name(visit)
    try:
        changed = await visit.call(
            f"POST {ROLE}/reset_password",
            RoleChanged,
            project_id=visit.path["project_id"],
            branch_id=visit.path["branch_id"],
            role_name=name,
        )
    except ApiError as error:
        return await show_reset(visit, error=error)
    return _changed(visit, changed, sentence("Password of role {} reset.", name))


async def show_new_password(visit: Visit) -> web.StreamResponse:
    """``GET …/roles/password``: show a new password. It is shown only once."""
    found = await read_context(visit)
    is_read = visit.request.method == "GET" and not visit.is_refresh
    new = visit.session.take_new_password() if is_read else None
    return show_found(visit, found, "role_password.html", shown=new)


async def show_password(visit: Visit) -> web.StreamResponse:
    """``POST …/roles/password``: the password of a role."""
    name = chosen_name(visit)
    found = await read_context(visit)
    shown, refused = None, None
    try:
        answer = await visit.call(
            f"GET {ROLE}/reveal_password",
            Password,
            project_id=visit.path["project_id"],
            branch_id=visit.path["branch_id"],
            role_name=name,
        )
        shown = NewPassword(name, answer.password)
    except ApiError as error:
        refused = error
    return show_found(visit, found, "role_password.html", error=refused, shown=shown)


def _check_exists(found: BranchContext, name: str) -> None:
    if name not in [role.name for role in found.objects.roles]:
        raise not_found("role", name)


def _changed(visit: Visit, changed: RoleChanged, done: Markup) -> web.Response:
    role = changed.role
    notice = with_operations(visit, done, changed.operations)
    if role.password is None:
        return visit.redirect(path_of_branch(visit), notice)
    visit.session.new_password = NewPassword(role.name, role.password)
    return visit.redirect(f"{path_of_branch(visit)}/roles/password", notice)
