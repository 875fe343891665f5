"""Pages that create the secret of an invitation, and that revoke or accept an invitation."""

from aiohttp import web

from neonctl_local.console.access.created_keys import CreatedKey
from neonctl_local.console.pages.people.keys import show_once
from neonctl_local.console.pages.people.memberships import read_membership
from neonctl_local.console.pages.people.records import (
    Invitation,
    Invitations,
    InvitationSecret,
    UserCreated,
)
from neonctl_local.console.pages.people.users import new_user_key
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, not_found

_INVITATION = "/local/v1/invitations/{invitation_id}"


async def read_invitations(visit: Visit) -> list[Invitation]:
    """Return all invitations to the organization in the path, newest first."""
    route = "GET /local/v1/organizations/{org_id}/invitations"
    return (await visit.call(route, Invitations, org_id=visit.path["org_id"])).invitations


async def create_secret(visit: Visit) -> web.StreamResponse:
    """``POST …/invitations/{invitation_id}/secret``: a new secret, for administrators."""
    org_id, invitation_id = visit.path["org_id"], visit.path["invitation_id"]
    route = f"POST {_INVITATION}/secret"
    created = await visit.call(route, InvitationSecret, invitation_id=invitation_id)
    return show_once(
        visit,
        CreatedKey(
            key_id=invitation_id,
            name="",
            token=created.secret,
            access="It signs up the person who was invited. Secrets created before are not valid.",
            example="",
            back=f"/organizations/{org_id}/members",
            accepts=f"/organizations/{org_id}/invitations/{invitation_id}/accept",
        ),
    )


async def revoke(visit: Visit) -> web.StreamResponse:
    """``POST …/invitations/{invitation_id}/revoke``: revoke a pending invitation."""
    invitation_id = visit.path["invitation_id"]
    await visit.call(f"DELETE {_INVITATION}", dict, invitation_id=invitation_id)
    path = f"/organizations/{visit.path['org_id']}/members"
    return visit.redirect(path, "Invitation revoked.")


async def show_acceptance(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET …/invitations/{invitation_id}/accept``: the form with which the recipient signs up."""
    membership = await read_membership(visit)
    invitation_id = visit.path["invitation_id"]
    found = [one for one in await read_invitations(visit) if one.id == invitation_id]
    if not found:
        raise not_found("invitation", invitation_id)
    return visit.page(
        "invitation_accept.html",
        organization=membership.organization,
        invitation=found[0],
        error=error,
    )


async def accept(visit: Visit) -> web.StreamResponse:
    """``POST …/invitations/{invitation_id}/accept``: create the recipient's account."""
    route = f"POST {_INVITATION}/accept"
    body = {"name": visit.typed("name"), "secret": visit.typed("secret").strip()}
    invitation_id = visit.path["invitation_id"]
    try:
        created = await visit.call(route, UserCreated, body=body, invitation_id=invitation_id)
    except ApiError as error:
        return await show_acceptance(visit, error=error)
    return show_once(visit, new_user_key(created))
