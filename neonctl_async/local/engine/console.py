"""What is done in the platform's web console, where the user is signed in: no key is asked for."""

import msgspec
from msgspec.structs import replace

from neonctl_async.local.engine import accounts, api_keys
from neonctl_async.local.errors import not_found
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import ApiKey, Organization, User


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The first user, who administers the first organization.

    ``api_key`` is the first key, there only when it was made just now: later, its hash alone
    is kept.
    """

    user_id: str
    org_id: str
    api_key: str | None


def sign_in(tx: Transaction) -> Home:
    """Make the first user, organization and key of an empty database, or find them again."""
    user = tx.first(User, "ORDER BY created_at, rowid")
    organization = tx.first(Organization, "ORDER BY created_at, rowid")
    if user is not None and organization is not None:
        return Home(user_id=user.id, org_id=organization.id, api_key=None)
    user = accounts.create_user(tx, "First User", "first.user@neon.localhost")
    organization = accounts.create_organization(tx, "First Organization", user.id)
    _, token = api_keys.create_for_user(tx, user.id, "first key")
    return Home(user_id=user.id, org_id=organization.id, api_key=token)


def start_over(tx: Transaction) -> None:
    """Delete everything but the first user, organization and key, which are as at first."""
    user = tx.select(User, "ORDER BY created_at, rowid LIMIT 1")
    organization = tx.select(Organization, "ORDER BY created_at, rowid LIMIT 1")
    [key] = tx.select(ApiKey, "ORDER BY id LIMIT 1")
    tx.delete_all()
    for row in (*user, *organization):
        tx.insert(row)
    accounts.add_member(tx, organization[0].id, user[0].id, "admin")
    tx.insert(replace(key, last_used_at=None, last_used_from="", ended_at=None))


def create_api_key(tx: Transaction, user_id: str, name: str) -> str:
    """A new personal key; answers its token."""
    if tx.first(User, "WHERE id = ?", user_id) is None:
        raise not_found("user", user_id)
    _, token = api_keys.create_for_user(tx, user_id, name)
    return token
