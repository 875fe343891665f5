"""What a branch holds by name: its roles and its databases."""

from typing import TypeVar

from neonctl_async.local.errors import conflict, not_found
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Database, Role

NamedT = TypeVar("NamedT", Role, Database)

_WHERE_NAMED = "WHERE branch_id = ? AND name = ?"


def of_branch(tx: Transaction, kind: type[NamedT], branch_id: str) -> list[NamedT]:
    """All of a branch, oldest first."""
    return tx.select(kind, "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id", branch_id)


def find(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> NamedT | None:
    """The one that has a name."""
    return tx.first(kind, f"{_WHERE_NAMED} AND deleted_at IS NULL", branch_id, name)


def get(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> NamedT:
    """The one that has a name. Raises 404 where there is none."""
    found = find(tx, kind, branch_id, name)
    if found is None:
        raise not_found(_noun(kind), name)
    return found


def was_deleted(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> bool:
    """Whether there was one of that name, and there is none now."""
    if find(tx, kind, branch_id, name) is not None:
        return False
    return tx.first(kind, f"{_WHERE_NAMED} AND deleted_at IS NOT NULL", branch_id, name) is not None


def refuse_taken(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> None:
    """Raise 409 where there is one of that name."""
    if find(tx, kind, branch_id, name) is not None:
        raise conflict(f"a {_noun(kind)} named {name!r} already exists in the branch")


def _noun(kind: type[Role] | type[Database]) -> str:
    return kind.__name__.lower()
