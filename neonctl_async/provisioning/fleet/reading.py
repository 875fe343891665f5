"""Read the projects of a fleet, and what they contain."""

from collections.abc import Set as AbstractSet

from neonctl_async.models.projects import Project
from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.planning import ProjectContent
from neonctl_async.provisioning.fleet.projects import is_project_id
from neonctl_async.provisioning.fleet.tenants import or_unset
from neonctl_async.resources.branches import MAX_PAGE as MAX_BRANCHES
from neonctl_async.resources.projects import MAX_PAGE as MAX_PROJECTS
from neonctl_async.resources.projects import existing


async def read_projects(
    neon: FleetClient, wanted: AbstractSet[str], org_id: str | None
) -> list[Project]:
    """Return the projects whose id or name is wanted.

    The list lacks projects that Neon could not read in time, and projects that others share with
    the account. They are read by id, because an existing project must not be created again.
    """
    listed = neon.projects.list(limit=MAX_PROJECTS, org_id=or_unset(org_id))
    found = {one.id: one async for one in listed if {one.id, one.name} & wanted}
    unlisted = {text for text in wanted if is_project_id(text)} | {*listed.unavailable_project_ids}
    for project in await existing(neon.projects, sorted(unlisted - found.keys())):
        if {project.id, project.name} & wanted:
            found[project.id] = project
    return list(found.values())


async def read_content(
    neon: FleetClient, project: Project, *, with_computes: bool
) -> ProjectContent:
    """Return the branches of a project and, if requested, its computes."""
    branches = await neon.branches.list(project.id, limit=MAX_BRANCHES).collect()
    endpoints = await neon.endpoints.list(project.id) if with_computes else []
    return ProjectContent(project=project, branches=branches, endpoints=endpoints)
