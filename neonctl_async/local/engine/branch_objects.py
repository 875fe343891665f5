"""The roles and databases of a branch, which both have a name."""

from typing import TypeVar

import msgspec

from neonctl_async.local.errors import conflict, not_found
from neonctl_async.local.storage.database import SqlValue, Transaction
from neonctl_async.local.storage.tables import Database, Role

NamedT = TypeVar("NamedT", Role, Database)

_WHERE_NAMED = "WHERE branch_id = ? AND name = ?"


def of_branch(tx: Transaction, kind: type[NamedT], branch_id: str) -> list[NamedT]:
    """Return the roles or databases of a branch, oldest first."""
    return tx.select(kind, "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id", branch_id)


def find(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> NamedT | None:
    """Return the role or database with a name, or ``None``."""
    return tx.first(kind, f"{_WHERE_NAMED} AND deleted_at IS NULL", branch_id, name)


def get(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> NamedT:
    """Return the role or database with a name. Raise 404 if there is none."""
    found = find(tx, kind, branch_id, name)
    if found is None:
        raise not_found(_noun(kind), name)
    return found


def was_deleted(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> bool:
    """Return whether a role or database with this name was deleted and not created again."""
    if find(tx, kind, branch_id, name) is not None:
        return False
    return tx.first(kind, f"{_WHERE_NAMED} AND deleted_at IS NOT NULL", branch_id, name) is not None


def check_name_free(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> None:
    """Raise 409 if the branch has a role or database with this name."""
    if find(tx, kind, branch_id, name) is not None:
        raise conflict(f"a {_noun(kind)} named {name!r} already exists in the branch")


def renaming(tx: Transaction, database: Database, name: str) -> dict[str, SqlValue]:
    """Return the changes that rename a database.

    Its cluster still has the old name until the change was applied, so the row keeps the old name.
    """
    forget_former_name(tx, database.branch_id, name)
    names = [old for old in former_names(database) if old != name]
    return {"name": name, "former_names": _encode([*names, database.name])}


def former_names(database: Database) -> list[str]:
    """Return the names that a database had before, oldest first."""
    names: list[str] = msgspec.json.decode(database.former_names, type=list[str])
    return names


def forget_former_name(tx: Transaction, branch_id: str, name: str) -> None:
    """Forget that databases had a name before, because another database gets this name."""
    for database in of_branch(tx, Database, branch_id):
        names = former_names(database)
        if name in names:
            names.remove(name)
            tx.update(database, former_names=_encode(names))


def _encode(names: list[str]) -> str:
    return msgspec.json.encode(names).decode()


def _noun(kind: type[Role] | type[Database]) -> str:
    return kind.__name__.lower()
