"""The dashboard of a project, with the computes and databases of a branch, and all branches."""

from typing import Final
from urllib.parse import urlencode

import msgspec
from aiohttp import web

from neonctl_local.api.regions import REGIONS
from neonctl_local.console.fields import natural_number
from neonctl_local.console.pages import connections, databases, projects
from neonctl_local.console.pages.branch_context import find_project
from neonctl_local.console.project_overview import read_branches, read_overview
from neonctl_local.console.records import Endpoints, ProjectFound
from neonctl_local.console.visits import Visit
from neonctl_local.server.application import CONSOLE_PATH

_REGIONS: Final = {region.region_id: region.name for region in REGIONS}


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/projects/{project_id}``."""
    project_id = visit.path["project_id"]
    found = await visit.call("GET /projects/{project_id}", ProjectFound, project_id=project_id)
    overview = await visit.read(
        read_overview,
        visit.principal,
        project_id,
        visit.query.get("branch", ""),
    )
    branch = overview.chosen
    objects = await databases.read(visit, project_id, branch.id)
    computes = await visit.call(
        f"GET {databases.BRANCH}/endpoints",
        Endpoints,
        project_id=project_id,
        branch_id=branch.id,
    )
    url = f"{CONSOLE_PATH}/projects/{project_id}"
    connection = await connections.read(
        visit, objects, computes.endpoints, visit.query, choose_url=f"{url}#connect-title"
    )
    return visit.page(
        "project.html",
        project=found.project,
        overview=overview,
        tree=overview.tree,
        branch=branch,
        objects=objects,
        connection=msgspec.structs.replace(
            connection, branch=branch.name, branches=overview.branch_names
        ),
        endpoints=computes.endpoints,
        # An open page stays with its branch when another one becomes the default.
        refresh=f"{url}?{urlencode({**visit.query, 'branch': branch.id})}",
        owner=projects.owners(visit).get(found.project.owner_id, "Another account"),
        region=_REGIONS.get(found.project.region_id, ""),
        has_postgres=visit.state.databases is not None,
    )


async def show_branches(visit: Visit) -> web.StreamResponse:
    """``GET /console/projects/{project_id}/branches``: all branches as a tree, with a search."""
    project = await find_project(visit)
    search = visit.query.get("search", "").strip()
    number = natural_number(visit.query.get("page", "")) or 1
    return visit.page(
        "branches.html",
        project=project,
        tree=await visit.read(read_branches, project.id, search, number),
        search=search,
        has_postgres=visit.state.databases is not None,
    )
