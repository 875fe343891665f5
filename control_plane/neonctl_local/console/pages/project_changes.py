"""The forms that rename, delete and recover a project."""

from typing import Final

from aiohttp import web

from neonctl_local.console.notices import sentence
from neonctl_local.console.project_overview import may_delete, read_losses
from neonctl_local.console.records import ProjectFound, Projects
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, forbidden, invalid

MAXIMUM_DELETED: Final = 100
"""The largest number of deleted projects that a page lists."""

_PROJECT: Final = "/projects/{project_id}"


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
    return visit.redirect(
        f"/projects/{visit.path['project_id']}", sentence("Project renamed to {}.", name)
    )


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/delete``: ask for confirmation, and name what is lost."""
    found = await visit.call(f"GET {_PROJECT}", ProjectFound, project_id=visit.path["project_id"])
    project_id = found.project.id
    if not await visit.read(may_delete, visit.principal, project_id):
        error = error or forbidden("only an administrator can delete a project")
    losses = await visit.read(read_losses, project_id)
    return visit.page("project_delete.html", error=error, project=found.project, losses=losses)


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST …/delete``: delete a project if its name or id was typed."""
    found = await visit.call(f"GET {_PROJECT}", ProjectFound, project_id=visit.path["project_id"])
    try:
        if visit.typed("name").strip() not in {found.project.name.strip(), found.project.id}:
            raise invalid("the project is not deleted: type its name or its ID")
        await visit.call(f"DELETE {_PROJECT}", object, project_id=visit.path["project_id"])
    except ApiError as error:
        return await show_delete(visit, error=error)
    return visit.redirect("", sentence("Project {} deleted.", found.project.name))


async def show_deleted(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/projects/deleted``: the newest deleted projects that can be recovered."""
    query = {"recoverable": "true", "limit": str(MAXIMUM_DELETED)}
    found = await visit.call("GET /projects", Projects, query=query)
    return visit.page("projects_deleted.html", error=error, projects=found.projects)


async def to_deleted(visit: Visit) -> web.StreamResponse:
    """``GET …/recover``: redirect to the page with the forms that recover projects."""
    return visit.redirect("/projects/deleted")


async def recover(visit: Visit) -> web.StreamResponse:
    """``POST …/recover``: recover a deleted project."""
    project_id = visit.path["project_id"]
    try:
        found = await visit.call(f"POST {_PROJECT}/recover", ProjectFound, project_id=project_id)
    except ApiError as error:
        return await show_deleted(visit, error=error)
    done = sentence("Project {} recovered.", found.project.name)
    return visit.redirect(f"/projects/{project_id}", done)
