"""The list of projects, and the form that creates one."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from neonctl_local.api.description.published import description
from neonctl_local.api.projects import DEFAULT_PG_VERSION
from neonctl_local.console.fields import natural_number
from neonctl_local.console.notices import sentence, started
from neonctl_local.console.project_overview import read_sizes
from neonctl_local.console.records import ProjectCreated, Projects, Regions
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError
from neonctl_local.server.application import BASE_PATH, CONSOLE_PATH

PAGE_SIZE: Final = 20
"""The largest number of projects on a page."""

YOUR_ACCOUNT: Final = "Your account"


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console``: the projects of the person and of the person's organizations."""
    query = {name: visit.query.get(name, "") for name in ("search", "org_id", "cursor")}
    given = {name: value for name, value in query.items() if value}
    filters = {name: value for name, value in given.items() if name != "cursor"}
    found = await visit.call("GET /projects", Projects, query=_limited(given))
    shared = Projects([])
    if not given:
        shared = await visit.call("GET /projects/shared", Projects, query=_limited({}))
    is_full = len(found.projects) == PAGE_SIZE
    listed = [project.id for project in (*found.projects, *shared.projects)]
    return visit.page(
        "projects.html",
        sizes=await visit.read(read_sizes, listed),
        projects=found.projects,
        shared=shared.projects,
        owners=owners(visit),
        organizations=_organizations(visit),
        search=query["search"],
        org_id=query["org_id"],
        first_page=_url(filters, "") if query["cursor"] else "",
        next_page=_url(filters, found.pagination.cursor) if is_full else "",
        create_command=_create_command(f"{visit.request.url.origin()}{BASE_PATH}"),
    )


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/projects/new``: the form that creates a project."""
    found = await visit.call("GET /regions", Regions)
    versions, default_version = _postgres_versions(visit)
    return visit.page(
        "project_new.html",
        error=error,
        versions=[(str(version), f"Postgres {version}") for version in versions],
        default_version=default_version,
        regions=[(region.region_id, region.name) for region in found.regions],
        default_region=next(region.region_id for region in found.regions if region.default),
        owners=[("", YOUR_ACCOUNT), *_organizations(visit)],
        default_owner=visit.query.get("org_id", ""),
    )


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/projects/new``: create a project."""
    version = visit.typed("pg_version")
    number = natural_number(version)
    spec = {
        "name": visit.typed("name"),
        # The API refuses a string that is not a number, with a message that names the field.
        "pg_version": version if number is None else number,
        "region_id": visit.typed("region_id"),
        "org_id": visit.typed("owner"),
    }
    body = {"project": {name: value for name, value in spec.items() if value != ""}}
    try:
        created = await visit.call("POST /projects", ProjectCreated, body=body)
    except ApiError as error:
        return await show_new(visit, error=error)
    project = created.project
    notice = started(
        sentence("Project {} created.", project.name), project.id, "", created.operations
    )
    return visit.redirect(f"/projects/{project.id}", notice)


def owners(visit: Visit) -> dict[str, str]:
    """Return the names of the accounts that can own the person's projects, by id."""
    return {visit.person.user.id: YOUR_ACCOUNT, **dict(_organizations(visit))}


def _create_command(base_url: str) -> str:
    return (
        f"curl -X POST {base_url}/projects \\\n"
        '  -H "Authorization: Bearer $NEON_API_KEY" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        """  -d '{"project": {"name": "shop"}}'"""
    )


def _limited(query: Mapping[str, str]) -> dict[str, str]:
    return {**query, "limit": str(PAGE_SIZE)}


def _url(query: Mapping[str, str], cursor: str) -> str:
    return f"{CONSOLE_PATH}?{urlencode({**query, 'cursor': cursor} if cursor else query)}"


def _organizations(visit: Visit) -> list[tuple[str, str]]:
    return [(found.id, found.name) for found in visit.person.organizations]


def _postgres_versions(visit: Visit) -> tuple[list[int], int]:
    """Return the Postgres versions that a project can have, newest first, and the default."""
    postgres = visit.state.database.rules.postgres
    if postgres is not None:
        return list(postgres.versions), postgres.versions[0]
    schema = description().schemas["PgVersion"]
    assert schema.minimum is not None
    assert schema.maximum is not None
    return list(range(int(schema.maximum), int(schema.minimum) - 1, -1)), DEFAULT_PG_VERSION
