"""Organization settings > API keys: organization keys and project-scoped keys."""

from aiohttp import web

from neonctl_local.console.access.created_keys import CreatedKey
from neonctl_local.console.lists import ListQuery
from neonctl_local.console.pages.people.key_lists import Owner, find_key, list_keys
from neonctl_local.console.pages.people.keys import REVOKED, show_once
from neonctl_local.console.pages.people.memberships import Membership, read_membership
from neonctl_local.console.pages.people.records import NewKey
from neonctl_local.console.records import Projects
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, invalid
from neonctl_local.storage.tables import Project
from neonctl_local.storage.transactions import Transaction

CHOICES = 100
"""The largest number of projects to choose from. If there are more, a person types the id."""

_KEYS = "/organizations/{org_id}/api_keys"


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/organizations/{org_id}/keys``: all keys, newest first, for all members."""
    membership = await read_membership(visit)
    keys = await visit.read(list_keys, _owner(membership), ListQuery.of(visit.query))
    return visit.page(
        "organization_keys.html",
        organization=membership.organization,
        is_admin=membership.is_admin,
        keys=keys,
        projects=await visit.read(_names, [key.project_id for key in keys.rows if key.project_id]),
    )


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/organizations/{org_id}/keys/new``: the form that creates a key."""
    membership = await read_membership(visit)
    org_id = membership.organization.id
    query = {"org_id": org_id, "limit": str(CHOICES)}
    projects = (await visit.call("GET /projects", Projects, query=query)).projects
    return visit.page(
        "organization_key_new.html",
        organization=membership.organization,
        is_admin=membership.is_admin,
        projects=projects,
        is_complete=len(projects) < CHOICES,
        error=error,
    )


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/organizations/{org_id}/keys/new``: create a key."""
    membership = await read_membership(visit)
    try:
        body = {"key_name": visit.typed("name")} | _scope(visit)
        new = await visit.call(f"POST {_KEYS}", NewKey, body=body, org_id=visit.path["org_id"])
    except ApiError as error:
        return await show_new(visit, error=error)
    return show_once(visit, await _created(visit, membership, new, body.get("project_id")))


async def confirm_revocation(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/organizations/{org_id}/keys/{key_id}/revoke``, for administrators."""
    membership = await read_membership(visit)
    membership.require_admin()
    key = await visit.read(find_key, _owner(membership), visit.path["key_id"])
    return visit.page(
        "organization_key_revoke.html",
        organization=membership.organization,
        key=key,
        projects=await visit.read(_names, [key.project_id] if key.project_id else []),
        error=error,
    )


async def revoke(visit: Visit) -> web.StreamResponse:
    """``POST /console/organizations/{org_id}/keys/{key_id}/revoke``: revoke a key."""
    try:
        await visit.call(
            f"DELETE {_KEYS}/{{key_id}}",
            dict,
            org_id=visit.path["org_id"],
            key_id=visit.path["key_id"],
        )
    except ApiError as error:
        return await confirm_revocation(visit, error=error)
    return visit.redirect(f"/organizations/{visit.path['org_id']}/keys", REVOKED)


def _owner(membership: Membership) -> Owner:
    return Owner("org_id", membership.organization.id)


def _scope(visit: Visit) -> dict[str, str]:
    """Return the project of the key to create. Raise 400 if the type of key does not match."""
    kind, project_id = visit.typed("type"), visit.typed("project_id").strip()
    if kind == "project":
        if not project_id:
            raise invalid("no project is chosen: choose the project that the key gives access to")
        return {"project_id": project_id}
    if kind != "organization":
        raise invalid(f"the type of the key is {kind!r}: choose organization or project-scoped")
    if project_id:
        raise invalid(
            f"project {project_id!r} is chosen, but an organization key has access to all "
            "projects: choose the type project-scoped, or no project"
        )
    return {}


async def _created(
    visit: Visit, membership: Membership, new: NewKey, project_id: str | None
) -> CreatedKey:
    organization = membership.organization
    if project_id is None:
        access = "It has the rights of an administrator on the whole organization."
        example = "/projects"
    else:
        names = await visit.read(_names, [project_id])
        name = names.get(project_id, project_id)
        access = f"It has access to project \u2068{name}\u2069 only, with the rights of a member."
        example = f"/projects/{project_id}"
    return CreatedKey(
        key_id=str(new.id),
        name=new.name,
        token=new.key,
        access=access,
        example=example,
        back=f"/organizations/{organization.id}/keys",
        org_id=organization.id,
    )


def _names(tx: Transaction, project_ids: list[str]) -> dict[str, str]:
    """Return the names of projects by id."""
    marks = ", ".join("?" * len(project_ids))
    found = tx.select(Project, f"WHERE id IN ({marks})", *project_ids)
    return {project.id: project.name for project in found}
