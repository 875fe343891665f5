"""The forms that rename and delete a project."""

from aiohttp import web

from neonctl_async.local.console.project_overview import may_delete, read_losses
from neonctl_async.local.console.records import ProjectFound
from neonctl_async.local.console.visits import Visit
from neonctl_async.local.errors import ApiError, forbidden

_PROJECT = "/projects/{project_id}"


async def show_rename(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/rename``: the form that renames a project."""
    found = await visit.call(f"GET {_PROJECT}", ProjectFound, project_id=visit.path["project_id"])
    return visit.page("project_rename.html", error=error, project=found.project)


async def rename(visit: Visit) -> web.StreamResponse:
    """``POST …/rename``: rename a project."""
    body = {"project": {"name": visit.typed("name")}}
    try:
        changed = await visit.call(
            f"PATCH {_PROJECT}", ProjectFound, body=body, project_id=visit.path["project_id"]
        )
    except ApiError as error:
        return await show_rename(visit, error=error)
    name = changed.project.name
    return visit.redirect(f"/projects/{visit.path['project_id']}", f"Project renamed to {name}.")


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/delete``: the confirmation, with a list of what is lost."""
    found = await visit.call(f"GET {_PROJECT}", ProjectFound, project_id=visit.path["project_id"])
    project_id = found.project.id
    if not await visit.read(may_delete, visit.principal, project_id):
        error = error or forbidden("only an administrator can delete a project")
    losses = await visit.read(read_losses, project_id)
    return visit.page("project_delete.html", error=error, project=found.project, losses=losses)


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST …/delete``: delete a project."""
    found = await visit.call(f"GET {_PROJECT}", ProjectFound, project_id=visit.path["project_id"])
    try:
        await visit.call(f"DELETE {_PROJECT}", object, project_id=visit.path["project_id"])
    except ApiError as error:
        return await show_delete(visit, error=error)
    return visit.redirect("", f"Project {found.project.name} deleted.")
