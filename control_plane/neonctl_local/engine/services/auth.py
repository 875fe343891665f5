"""Neon Auth on a branch. Its data is in a database of the branch, and is copied with the branch."""

import msgspec
from msgspec.structs import replace

from neonctl_local.storage.service_tables import AuthIntegration, AuthUser
from neonctl_local.storage.transactions import Transaction


class AuthContent(msgspec.Struct, frozen=True):
    """Neon Auth on a branch: its settings, or None if there is no Neon Auth, and its users."""

    integration: AuthIntegration | None = None
    users: list[AuthUser] = []


def find(tx: Transaction, branch_id: str) -> AuthIntegration | None:
    """Return the settings of Neon Auth on a branch, or None. Neon Auth may be disabled."""
    return tx.first(AuthIntegration, "WHERE id = ?", branch_id)


def content(tx: Transaction, branch_id: str) -> AuthContent:
    """Return the settings and users of Neon Auth on a branch, to copy or restore them."""
    users = tx.select(AuthUser, "WHERE branch_id = ? ORDER BY id", branch_id)
    return AuthContent(find(tx, branch_id), users)


def replace_content(tx: Transaction, branch_id: str, new: AuthContent) -> None:
    """Replace the settings and users of Neon Auth on a branch with copies."""
    delete_content(tx, branch_id)
    if new.integration is not None:
        tx.insert(replace(new.integration, id=branch_id))
    for user in new.users:
        tx.insert(replace(user, id=0, branch_id=branch_id))


def delete_content(tx: Transaction, branch_id: str) -> None:
    """Delete the settings and users of Neon Auth on a branch."""
    tx.execute("DELETE FROM auth_users WHERE branch_id = ?", branch_id)
    tx.execute("DELETE FROM auth_integrations WHERE id = ?", branch_id)


def rename_database(tx: Transaction, branch_id: str, name: str, new_name: str) -> None:
    """Record the new name of the database that contains the data of Neon Auth."""
    sql = "UPDATE auth_integrations SET database_name = ? WHERE id = ? AND database_name = ?"
    tx.execute(sql, new_name, branch_id, name)


def delete_database(tx: Transaction, branch_id: str, name: str) -> None:
    """Delete Neon Auth on a branch if the deleted database contained its data."""
    integration = find(tx, branch_id)
    if integration is not None and integration.database_name == name:
        delete_content(tx, branch_id)
