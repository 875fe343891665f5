"""The roles and databases of a branch, which are both identified by their names."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from neonctl_local.clock import Instant
from neonctl_local.errors import conflict, locked, not_found, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import NEVER, Branch, Database, Operation, Role
from neonctl_local.storage.transactions import Transaction

NamedT = TypeVar("NamedT", Role, Database)

MAXIMUM: Final = 500
"""The largest number of roles, and of databases, that a branch can have."""

_MAX_LENGTH: Final = 63
"""The length of the longest possible Postgres name, in bytes."""

# An operation that applies such a name would fail, and so would all later ones on the branch.
_RESERVED: Final[Mapping[type[Role] | type[Database], re.Pattern[str]]] = {
    Role: re.compile("pg_.*|neon_superuser|cloud_admin|zenith_admin|public|none", re.DOTALL),
    Database: re.compile("postgres|template0|template1"),
}
_WHERE_NAMED = "WHERE branch_id = ? AND name = ?"


def of_branch(
    tx: Transaction, kind: type[NamedT], branch_id: str, at: Instant | None = None
) -> list[NamedT]:
    """Return the roles or databases of a branch, oldest first.

    ``at`` selects those that existed at an earlier time.
    """
    if at is None:
        return tx.select(kind, "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id", branch_id)
    branch = tx.get(Branch, branch_id)
    at = max(at, branch.last_reset_at or branch.created_at)
    where = "WHERE branch_id = ? AND created_at <= ? AND (deleted_at IS NULL OR deleted_at > ?)"
    found = tx.select(kind, f"{where} ORDER BY id", branch_id, at, at)
    return [replace(row, deleted_at=None) for row in found]


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


def check_new(tx: Transaction, kind: type[NamedT], branch_id: str, name: str) -> None:
    """Raise 409 if the name is taken, and 422 if the branch cannot have more such objects."""
    check_name_free(tx, kind, branch_id, name)
    if len(of_branch(tx, kind, branch_id)) >= MAXIMUM:
        raise unprocessable(
            f"branch {branch_id!r} has {MAXIMUM} {_noun(kind)}s, and no branch has more: "
            "delete one first"
        )


def check_possible(kind: type[NamedT], name: str) -> None:
    """Raise 422 if a role or database cannot have this name."""
    if _RESERVED[kind].fullmatch(name):
        raise unprocessable(f"the name {name!r} of the {_noun(kind)} is reserved: use another name")
    length = len(name.encode())
    if length > _MAX_LENGTH:
        raise unprocessable(
            f"the name {name!r} of the {_noun(kind)} has {length} bytes: expected at most "
            f"{_MAX_LENGTH} bytes"
        )


def former_names(database: Database) -> list[str]:
    """Return the earlier names that the database may still have in Postgres, oldest first."""
    names: list[str] = msgspec.json.decode(database.former_names, type=list[str])
    return names


def renaming(database: Database, name: str) -> dict[str, SqlValue]:
    """Return the column changes that rename a database.

    The old name becomes a former name, until an operation has renamed the database in Postgres.
    """
    names = [former for former in former_names(database) if former != name]
    encoded = msgspec.json.encode([*names, database.name]).decode()
    return {"name": name, "former_names": encoded}


def check_not_applying(tx: Transaction, branch_id: str) -> None:
    """Raise 423 while an operation is applying the databases of a branch.

    It reads them when its work starts. If they were replaced before, it would drop the old ones.
    """
    where = "WHERE branch_id = ? AND work IS NOT NULL AND settles_at >= ? AND action IN (?, ?)"
    applying = tx.first(Operation, where, branch_id, NEVER, "start_compute", "apply_config")
    if applying is not None:
        raise locked(
            f"branch {branch_id!r} has the running operation {applying.action} {applying.id}, "
            "which applies the names of databases: retry after it has finished"
        )


def check_applied(
    tx: Transaction, branch_id: str, name: str, *, renamed: Database | None = None
) -> None:
    """Raise 423 or 409 if giving a database this name could mix up the data of two databases.

    Real databases get their names when an operation applies them. Until then, a database that was
    deleted or renamed still has its old name in Postgres. So running operations must finish before
    a database is ``renamed``, or created with the name of a deleted one.
    """
    if tx.rules.postgres is None:
        return
    if renamed or was_deleted(tx, Database, branch_id, name):
        check_not_applying(tx, branch_id)
    for database in of_branch(tx, Database, branch_id):
        is_other = renamed is None or database.id != renamed.id
        if is_other and name in former_names(database):
            raise conflict(
                f"the database {database.name!r} still has the name {name!r} in Postgres, because "
                "an apply_config failed: restart its compute first"
            )


def forget_former_names(tx: Transaction, operation: Operation) -> None:
    """Forget the former names of a branch's databases if an operation has applied the new ones.

    A database cannot be renamed while such an operation is running (:func:`check_applied`).
    """
    applies = operation.action in {"start_compute", "apply_config"} and operation.succeeds
    if not applies or operation.work is None:
        return
    tx.execute(
        "UPDATE databases SET former_names = '[]' WHERE branch_id = ? AND former_names <> '[]' "
        "AND EXISTS (SELECT 1 FROM endpoints WHERE running_on = databases.branch_id)",
        operation.branch_id,
    )


def _noun(kind: type[Role] | type[Database]) -> str:
    return kind.__name__.lower()
