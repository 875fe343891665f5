"""Postgres roles of a branch."""

from neonctl_async.local.calls import Json, present
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.database import Transaction
from neonctl_async.local.rows import Role


def of_branch(tx: Transaction, branch_id: str) -> list[Role]:
    """The roles of a branch, oldest first."""
    where = "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id"
    return tx.select(Role, where, branch_id)


def record(role: Role, *, password: bool = False) -> Json:
    """A role as the API shows it; its ``password`` where it was just made."""
    return present(
        {
            "branch_id": role.branch_id,
            "name": role.name,
            "password": role.password if password else None,
            "protected": role.protected,
            "authentication_method": "no_login" if role.no_login else "password",
            "created_at": in_seconds(role.created_at),
            "updated_at": in_seconds(role.updated_at),
        }
    )
