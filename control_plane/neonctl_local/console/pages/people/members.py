"""The pages that list, invite and remove members of an organization, and change their roles."""

from aiohttp import web

from neonctl_local.console.pages.people.invitations import read_invitations
from neonctl_local.console.pages.people.key_lists import Owner, count_keys_created_by
from neonctl_local.console.pages.people.memberships import Membership, read_membership
from neonctl_local.console.pages.people.records import (
    Account,
    Invitations,
    ListedMember,
    Member,
    Members,
)
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError
from neonctl_local.storage.tables import User
from neonctl_local.storage.transactions import Transaction

ROWS = 100
"""The largest number of members on a page."""

INVITATIONS = 100
"""The largest number of invitations that the page shows."""

_ORGANIZATION = "/organizations/{org_id}"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_OPEN = frozenset({"pending", "expired"})


async def show(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/organizations/{org_id}/members``: members, pending and expired invitations."""
    membership = await read_membership(visit)
    query = {"limit": str(ROWS)}
    if cursor := visit.query.get("cursor"):
        query["cursor"] = cursor
    else:
        query |= {"sort_by": "joined_at", "sort_order": "asc"}
    org_id = membership.organization.id
    members = await visit.call(f"GET {_ORGANIZATION}/members", Members, query=query, org_id=org_id)
    invitations = [one for one in await read_invitations(visit) if one.status in _OPEN]
    return visit.page(
        "members.html",
        organization=membership.organization,
        is_admin=membership.is_admin,
        members=members.members,
        cursor=cursor or "",
        next=members.pagination.next,
        invitations=invitations[:INVITATIONS],
        hidden_invitations=len(invitations[INVITATIONS:]),
        error=error,
    )


async def invite(visit: Visit) -> web.StreamResponse:
    """``POST /console/organizations/{org_id}/members``: invite a person, or add a user."""
    org_id, email = visit.path["org_id"], visit.typed("email").strip()
    body = {"invitations": [{"email": email, "role": visit.typed("role")}]}
    route = f"POST {_ORGANIZATION}/invitations"
    try:
        created = await visit.call(route, Invitations, body=body, org_id=org_id)
    except ApiError as error:
        return await show(visit, error=error)
    (invited,) = created.invitations
    statuses = {one.id: one.status for one in await read_invitations(visit)}
    notice = (
        f"{email} has a pending invitation. The local control plane sends no mail: "
        "create a secret, and pass it on."
    )
    if statuses.get(invited.id) == "accepted":
        notice = f"{email} has an account and is a member now."
    return visit.redirect(f"/organizations/{org_id}/members", notice)


async def show_role(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/members/{member_id}/role``: the form that changes a role, for administrators."""
    membership, listed, _ = await _read_member(visit)
    return visit.page(
        "member_role.html", organization=membership.organization, listed=listed, error=error
    )


async def change_role(visit: Visit) -> web.StreamResponse:
    """``POST …/members/{member_id}/role``: change the role of a member."""
    body = {"role": visit.typed("role")}
    try:
        await visit.call(
            f"PATCH {_MEMBER}",
            dict,
            body=body,
            org_id=visit.path["org_id"],
            member_id=visit.path["member_id"],
        )
    except ApiError as error:
        return await show_role(visit, error=error)
    return visit.redirect(f"/organizations/{visit.path['org_id']}/members", "Role changed.")


async def confirm_removal(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/members/{member_id}/remove``: show administrators what the member would lose."""
    membership, listed, user = await _read_member(visit)
    org_id = membership.organization.id
    if listed.member.user_id == visit.session.user_id:
        return visit.redirect(f"/organizations/{org_id}/leave")
    owner = Owner("org_id", org_id)
    return visit.page(
        "member_remove.html",
        organization=membership.organization,
        listed=listed,
        projects=await visit.read(_count_projects, org_id),
        creator=user.name,
        keys=await visit.read(count_keys_created_by, owner, user.id),
        error=error,
    )


async def remove(visit: Visit) -> web.StreamResponse:
    """``POST …/members/{member_id}/remove``: remove a member."""
    try:
        await visit.call(
            f"DELETE {_MEMBER}",
            dict,
            org_id=visit.path["org_id"],
            member_id=visit.path["member_id"],
        )
    except ApiError as error:
        return await confirm_removal(visit, error=error)
    return visit.redirect(f"/organizations/{visit.path['org_id']}/members", "Member removed.")


async def _read_member(visit: Visit) -> tuple[Membership, ListedMember, User]:
    """Return the administrator's membership, and the member in the path with the member's user."""
    membership = await read_membership(visit)
    membership.require_admin()
    member = await visit.call(
        f"GET {_MEMBER}", Member, org_id=visit.path["org_id"], member_id=visit.path["member_id"]
    )
    user = await visit.read(Transaction.get, User, member.user_id)
    return membership, ListedMember(member, Account(user.email)), user


def _count_projects(tx: Transaction, org_id: str) -> int:
    sql = "SELECT count(*) FROM projects WHERE org_id = ? AND deleted_at IS NULL"
    return tx.number(sql, org_id) or 0
