"""Requests that manage organizations and their members."""

from neonctl_local.api.request import access, bodies, paging
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.bodies import PublishedRole
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.engine import accounts
from neonctl_local.errors import not_found, unprocessable
from neonctl_local.storage.tables import Member, MemberRole, Organization
from neonctl_local.storage.transactions import Transaction

SORT_FIELDS = ("email", "role", "joined_at")


def get_organization(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}``."""
    return respond(organization_record(access.organization(tx, call)))


def list_members(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/members``."""
    organization = access.organization(tx, call)
    page = paging.SortedPage.from_call(call, SORT_FIELDS, "joined_at", 500)
    where, values = page.clauses("org_id = ?", organization.id)
    members, pagination = page.paginate(tx.select(MemberWithEmail, where, *values))
    found = [{"member": _member(member), "user": {"email": member.email}} for member in members]
    return respond({"members": found, "pagination": pagination})


def get_member(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/members/{member_id}``."""
    organization = access.organization(tx, call)
    return respond(_member(_found_member(tx, organization, call)))


def update_member(tx: Transaction, call: Call) -> Response:
    """``PATCH /organizations/{org_id}/members/{member_id}``, for administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    member = _found_member(tx, organization, call)
    role = member_role(call.body(bodies.MemberUpdate).role)
    if role != "admin":
        accounts.check_admin_remains(tx, member)
    return respond(_member(tx.update(member, role=role)))


def delete_member(tx: Transaction, call: Call) -> Response:
    """``DELETE .../members/{member_id}``, with an administrator's personal key."""
    organization = access.organization(tx, call, Level.ADMIN)
    access.personal_user_id(call)
    member = _found_member(tx, organization, call)
    accounts.remove_member(tx, organization.id, member.user_id)
    return respond({})


class MemberWithEmail(Member, frozen=True):
    """A member and the member's email address, by which the list of members can be sorted."""

    table = "members_with_email"

    email: str


def _found_member(tx: Transaction, organization: Organization, call: Call) -> Member:
    member_id = call.path["member_id"]
    member = tx.first(Member, "WHERE id = ? AND org_id = ?", member_id, organization.id)
    if member is None:
        raise not_found("member", member_id)
    return member


def organization_record(organization: Organization) -> Json:
    """Return an organization as the API shows it."""
    shown = fields(organization, "id", "name", "created_at", "updated_at")
    return shown | {"handle": organization.id, "plan": "launch", "managed_by": "console"}


def member_role(role: PublishedRole) -> MemberRole:
    """Return a published role. Raise 422 if the local control plane does not support it."""
    if role in ("admin", "member"):
        return role
    raise unprocessable(f"the role {role!r} is not available here: use 'admin' or 'member'")


def _member(member: Member) -> Json:
    return fields(member, "id", "user_id", "org_id", "role", "joined_at")
