"""Users, and organizations with their members."""

from neonctl_async.local import ids
from neonctl_async.local.api.request import access, bodies, paging
from neonctl_async.local.api.request.access import Level
from neonctl_async.local.api.request.calls import Answer, Call, Json, answer
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.errors import conflict, not_found, unprocessable
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Member, MemberRole, Organization, User

SORTS = ("email", "role", "joined_at")


def create_user(tx: Transaction, name: str, email: str) -> User:
    """Sign someone up."""
    if tx.first(User, "WHERE email = ?", email):
        raise conflict(f"a user with the address {email!r} already exists")
    user = User(id=ids.uuid_text(), name=name, email=email, created_at=tx.now)
    tx.insert(user)
    return user


def create_organization(tx: Transaction, name: str, admin_id: str) -> Organization:
    """Found an organization with its first administrator."""
    _refuse_unknown(tx, admin_id)
    organization = Organization(
        id=ids.organization_id(), name=name, created_at=tx.now, updated_at=tx.now
    )
    tx.insert(organization)
    add_member(tx, organization.id, admin_id, "admin")
    return organization


def add_member(tx: Transaction, org_id: str, user_id: str, role: MemberRole) -> Member:
    """Have a user join an organization."""
    _refuse_unknown(tx, user_id)
    if tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id):
        raise conflict(f"user {user_id!r} is already a member")
    member = Member(id=ids.uuid_text(), org_id=org_id, user_id=user_id, role=role, joined_at=tx.now)
    tx.insert(member)
    return member


def remove_member(tx: Transaction, org_id: str, user_id: str) -> None:
    """Have a user leave an organization; its projects are out of their reach from then on."""
    member = tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id)
    if member is None:
        raise not_found("member", user_id)
    _refuse_to_lose_the_last_admin(tx, member)
    tx.execute("DELETE FROM members WHERE id = ?", member.id)


def me(tx: Transaction, call: Call) -> Answer:
    """``GET /users/me``."""
    user = tx.get(User, access.personal(call))
    return answer(
        {
            "id": user.id,
            "name": user.name,
            "last_name": "",
            "login": user.email,
            "email": user.email,
            "image": "",
            "plan": "launch",
            "active_seconds_limit": 0,
            "projects_limit": 100,
            "branches_limit": 500,
            "max_autoscaling_limit": 8.0,
            "auth_accounts": [
                {
                    "email": user.email,
                    "image": "",
                    "login": user.email,
                    "name": user.name,
                    "provider": "keycloak",
                }
            ],
            "billing_account": _billing(user),
        }
    )


def auth_details(tx: Transaction, call: Call) -> Answer:
    """``GET /auth``: the account of the key."""
    del tx
    method = "api_key_user" if call.caller.kind == "personal" else "api_key_org"
    return answer({"account_id": call.caller.account, "auth_method": method})


def list_mine(tx: Transaction, call: Call) -> Answer:
    """``GET /users/me/organizations``: of a key that is no user's, the one that owns it."""
    mine = "id = ? OR id IN (SELECT org_id FROM members WHERE user_id = ?)"
    where = f"WHERE {mine} ORDER BY created_at, rowid"
    found = tx.select(Organization, where, call.caller.org_id, call.caller.user_id)
    return answer({"organizations": [_organization(organization) for organization in found]})


def get_organization(tx: Transaction, call: Call) -> Answer:
    """``GET /organizations/{org_id}``."""
    return answer(_organization(access.organization(tx, call)))


def list_members(tx: Transaction, call: Call) -> Answer:
    """``GET /organizations/{org_id}/members``."""
    organization = access.organization(tx, call)
    page = paging.Sorted.of(call, SORTS, "joined_at", 500, 500)
    where, values = page.clauses("org_id = ?", organization.id)
    members, pagination = page.cut(tx.select(MemberWithEmail, where, *values))
    found = [{"member": _member(member), "user": {"email": member.email}} for member in members]
    return answer({"members": found, "pagination": pagination})


def get_member(tx: Transaction, call: Call) -> Answer:
    """``GET /organizations/{org_id}/members/{member_id}``."""
    organization = access.organization(tx, call)
    return answer(_member(_found_member(tx, organization, call)))


def update_member(tx: Transaction, call: Call) -> Answer:
    """``PATCH /organizations/{org_id}/members/{member_id}``: administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    member = _found_member(tx, organization, call)
    role = call.body(bodies.MemberUpdate).role
    if role != "admin":
        _refuse_to_lose_the_last_admin(tx, member)
    return answer(_member(tx.update(member, role=role)))


def delete_member(tx: Transaction, call: Call) -> Answer:
    """``DELETE /organizations/{org_id}/members/{member_id}``: administrators (3.1)."""
    organization = access.organization(tx, call, Level.ADMIN)
    member = _found_member(tx, organization, call)
    remove_member(tx, organization.id, member.user_id)
    return answer({})


class MemberWithEmail(Member, frozen=True):
    """A member with the address that lists of members are sorted by."""

    table = "members_with_email"

    email: str


def _refuse_unknown(tx: Transaction, user_id: str) -> None:
    if tx.first(User, "WHERE id = ?", user_id) is None:
        raise not_found("user", user_id)


def _found_member(tx: Transaction, organization: Organization, call: Call) -> Member:
    member_id = call.path["member_id"]
    member = tx.first(Member, "WHERE id = ? AND org_id = ?", member_id, organization.id)
    if member is None:
        raise not_found("member", member_id)
    return member


def _refuse_to_lose_the_last_admin(tx: Transaction, member: Member) -> None:
    where = "WHERE org_id = ? AND role = 'admin' AND id <> ?"
    if member.role == "admin" and tx.first(Member, where, member.org_id, member.id) is None:
        raise unprocessable("an organization keeps at least one administrator")


def _organization(organization: Organization) -> Json:
    return {
        "id": organization.id,
        "name": organization.name,
        "handle": organization.id,
        "plan": "launch",
        "managed_by": "console",
        "created_at": in_seconds(organization.created_at),
        "updated_at": in_seconds(organization.updated_at),
    }


def _member(member: Member) -> Json:
    return {
        "id": member.id,
        "user_id": member.user_id,
        "org_id": member.org_id,
        "role": member.role,
        "joined_at": in_seconds(member.joined_at),
    }


def _billing(user: User) -> Json:
    address = ("city", "country", "line1", "line2", "postal_code", "state")
    return {
        "state": "active",
        "payment_source": {"type": ""},
        "subscription_type": "launch",
        "payment_method": "none",
        "quota_reset_at_last": in_seconds(user.created_at),
        "name": user.name,
        "email": user.email,
        **{f"address_{part}": "" for part in address},
    }
