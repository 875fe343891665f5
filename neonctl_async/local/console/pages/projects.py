"""The list of projects, and the form that creates one."""

from aiohttp import web

from neonctl_async.local.console.records import ProjectCreated, Projects
from neonctl_async.local.console.visits import Visit
from neonctl_async.local.errors import ApiError


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console``: the projects that the person can access."""
    found = await visit.call("GET /projects", Projects, query=visit.query)
    return visit.page("projects.html", projects=found.projects)


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/projects/new``: the form that creates a project."""
    return visit.page("project_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/projects/new``: create a project."""
    try:
        created = await visit.call(
            "POST /projects", ProjectCreated, body={"project": {"name": visit.typed("name")}}
        )
    except ApiError as error:
        return await show_new(visit, error=error)
    return visit.redirect("", f"Project {created.project.name} created.")
