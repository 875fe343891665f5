"""Users, and organizations with their members."""

import msgspec
from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.engine.api_keys import create_user_key
from neonctl_local.errors import conflict, not_found, unprocessable
from neonctl_local.storage.tables import ApiKey, Member, MemberRole, Organization, User
from neonctl_local.storage.transactions import Transaction


def create_user(tx: Transaction, name: str, email: str) -> User:
    """Create a user. Raise 409 if the email address is in use."""
    if tx.first(User, "WHERE email = ? COLLATE NOCASE", email):
        raise conflict(f"a user with the address {email!r} already exists")
    return tx.insert(User(id=ids.uuid_text(), name=name, email=email, created_at=tx.now))


def create_organization(tx: Transaction, name: str, admin_id: str) -> Organization:
    """Create an organization with its first administrator."""
    _check_user_exists(tx, admin_id)
    organization = tx.insert(
        Organization(id=ids.object_id("org-"), name=name, created_at=tx.now, updated_at=tx.now)
    )
    add_member(tx, organization.id, admin_id, "admin")
    return organization


def add_member(tx: Transaction, org_id: str, user_id: str, role: MemberRole) -> Member:
    """Add a user to an organization. Raise 409 if the user is a member already."""
    _check_user_exists(tx, user_id)
    check_is_no_member(tx, org_id, user_id)
    member = Member(id=ids.uuid_text(), org_id=org_id, user_id=user_id, role=role, joined_at=tx.now)
    return tx.insert(member)


def check_is_no_member(tx: Transaction, org_id: str, user_id: str) -> None:
    """Raise 409 if a user is a member of an organization."""
    if tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id):
        raise conflict(f"user {user_id!r} is already a member")


def remove_member(tx: Transaction, org_id: str, user_id: str) -> None:
    """Remove a user from an organization, which ends the user's access to its projects."""
    member = tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id)
    if member is None:
        raise not_found("member", user_id)
    check_admin_remains(tx, member)
    tx.execute("DELETE FROM project_grants WHERE member_id = ?", member.id)
    tx.execute("DELETE FROM members WHERE id = ?", member.id)


def _check_user_exists(tx: Transaction, user_id: str) -> None:
    if tx.first(User, "WHERE id = ?", user_id) is None:
        raise not_found("user", user_id)


def check_admin_remains(tx: Transaction, member: Member) -> None:
    """Raise 422 if the member is the only administrator of the organization."""
    where = "WHERE org_id = ? AND role = 'admin' AND id <> ?"
    if member.role == "admin" and tx.first(Member, where, member.org_id, member.id) is None:
        raise unprocessable(
            "an organization needs at least one administrator: make another member one first"
        )


class FirstAccount(msgspec.Struct, frozen=True, kw_only=True):
    """The first user, and the organization that this user administers.

    ``api_key`` is the token of the first key. It is set only when the key has just been created,
    because only its hash is stored.
    """

    user_id: str
    org_id: str
    api_key: str | None


def first_account(tx: Transaction) -> FirstAccount | None:
    """Return the first user and organization, or None in an empty database."""
    user = tx.first(User, "ORDER BY created_at, rowid")
    organization = tx.first(Organization, "ORDER BY created_at, rowid")
    if user is None or organization is None:
        return None
    return FirstAccount(user_id=user.id, org_id=organization.id, api_key=None)


def is_first_user(tx: Transaction, user_id: str | None) -> bool:
    """Return whether this is the first user, who runs the local control plane."""
    first = first_account(tx)
    return first is not None and first.user_id == user_id


def ensure_first_account(tx: Transaction) -> FirstAccount:
    """Return the first user and organization. If the database is empty, create them and a key."""
    if (found := first_account(tx)) is not None:
        return found
    user = create_user(tx, "First User", "first.user@neon.invalid")
    organization = create_organization(tx, "First Organization", user.id)
    _, token = create_user_key(tx, user.id, "first key")
    return FirstAccount(user_id=user.id, org_id=organization.id, api_key=token)


def reset_to_first_account(tx: Transaction) -> None:
    """Delete everything except the first user, organization and key.

    The user is an administrator again, and the key is valid, with no record of its use.
    """
    (user,) = tx.select(User, "ORDER BY created_at, rowid LIMIT 1")
    (organization,) = tx.select(Organization, "ORDER BY created_at, rowid LIMIT 1")
    (key,) = tx.select(ApiKey, "ORDER BY id LIMIT 1")
    tx.delete_all()
    for row in (user, organization):
        tx.insert(row)
    add_member(tx, organization.id, user.id, "admin")
    tx.insert(replace(key, last_used_at=None, last_used_from="", ended_at=None))


def create_api_key(tx: Transaction, user_id: str, name: str) -> str:
    """Create a personal key and return its token. Raise 404 for an unknown user."""
    _check_user_exists(tx, user_id)
    _, token = create_user_key(tx, user_id, name)
    return token
