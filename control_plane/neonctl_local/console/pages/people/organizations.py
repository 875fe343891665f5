"""The organizations of the signed-in person: list them, create one, leave one."""

import msgspec
from aiohttp import web

from neonctl_local.clock import in_seconds
from neonctl_local.console.pages.people.memberships import read_membership
from neonctl_local.console.pages.people.records import OrganizationCreated
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError
from neonctl_local.storage.tables import Member
from neonctl_local.storage.transactions import Transaction


class Role(msgspec.Struct, frozen=True):
    """The role of a person in an organization."""

    name: str
    joined_at: str


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/organizations``: the person's organizations, with the role in each."""
    roles = await visit.read(_roles, visit.session.user_id)
    return visit.page("organizations.html", roles=roles)


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/organizations/new``: the form that creates an organization."""
    return visit.page("organization_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/organizations/new``: create an organization."""
    try:
        created = await visit.call(
            "POST /local/v1/organizations",
            OrganizationCreated,
            body={"name": visit.typed("name")},
        )
    except ApiError as error:
        return await show_new(visit, error=error)
    path = f"/organizations/{created.organization.id}/members"
    return visit.redirect(path, "Organization created. You are its administrator.")


async def confirm_leaving(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/organizations/{org_id}/leave``: show what the person would lose."""
    membership = await read_membership(visit)
    return visit.page("organization_leave.html", organization=membership.organization, error=error)


async def leave(visit: Visit) -> web.StreamResponse:
    """``POST /console/organizations/{org_id}/leave``: leave an organization."""
    path = "POST /local/v1/organizations/{org_id}/leave"
    try:
        await visit.call(path, dict, org_id=visit.path["org_id"])
    except ApiError as error:
        return await confirm_leaving(visit, error=error)
    return visit.redirect("/organizations", "You have left the organization.")


def _roles(tx: Transaction, user_id: str) -> dict[str, Role]:
    """Return the roles of a user, by organization."""
    found = tx.select(Member, "WHERE user_id = ?", user_id)
    return {member.org_id: Role(member.role, in_seconds(member.joined_at)) for member in found}
