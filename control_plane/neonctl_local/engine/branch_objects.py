"""The roles and databases of a branch, which are both identified by their names."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from neonctl_local.clock import Instant, span
from neonctl_local.errors import conflict, locked, not_found, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import NEVER, Branch, Database, Operation, Project, Role
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


class _FormerName(msgspec.Struct, frozen=True, array_like=True):
    """A name that a database had in Postgres until a time. It may still have it if that is None."""

    name: str
    until: Instant | None = None


def of_branch(tx: Transaction, kind: type[NamedT], branch_id: str) -> list[NamedT]:
    """Return the roles or databases of a branch, oldest first."""
    return tx.select(kind, "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id", branch_id)


def at_point(
    tx: Transaction, branch_id: str, at: Instant | None, lsn: str | None
) -> tuple[list[Role], list[Database]]:
    """Return the roles and databases of a branch at a point in time, for a copy of its data.

    Databases have their current names and owners, so the owners are included even if they are
    newer. :func:`former_names` returns the names that databases may have in the copy. A database
    keeps its name of that time if it has been deleted, or if another one had its current name.

    The time of an LSN is not known, so an LSN selects the current roles and databases.
    """
    if at is None:
        databases = of_branch(tx, Database, branch_id)
        if lsn is not None:
            databases = _named(tx, databases, None)
        return of_branch(tx, Role, branch_id), databases
    branch = tx.get(Branch, branch_id)
    at = max(at, branch.last_reset_at or branch.created_at)
    databases = _named(tx, _existing(tx, Database, branch_id, at), at)
    roles = {role.name: role for role in _existing(tx, Role, branch_id, at)}
    for name in {database.owner_name for database in databases} - roles.keys():
        owner = tx.first(Role, f"{_WHERE_NAMED} ORDER BY id DESC", branch_id, name)
        if owner is not None:
            roles[name] = owner
    oldest_first = sorted(roles.values(), key=lambda role: role.id)
    return [replace(role, deleted_at=None) for role in oldest_first], databases


def name_at(database: Database, at: Instant | None) -> str:
    """Return the name that a database had in Postgres at a time, or its current name."""
    return database.name if at is None else _names_since(database, at)[0]


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
    return [
        former.name
        for former in _former_names(database)
        if former.until is None and former.name != database.name
    ]


def renaming(tx: Transaction, database: Database, name: str) -> dict[str, SqlValue]:
    """Return the column changes that rename a database.

    A real database keeps its old name until an operation has renamed it in Postgres. Names from
    before the history are forgotten.
    """
    project = tx.get(Project, tx.get(Branch, database.branch_id).project_id)
    oldest = tx.now - span(project.history_retention_seconds)
    names = [one for one in _former_names(database) if one.until is None or one.until >= oldest]
    return {"name": name, "former_names": _encode([*names, _former_name(tx, database.name)])}


def check_not_applying(tx: Transaction, branch_id: str) -> None:
    """Raise 423 while an operation is applying the databases of a branch.

    The operation reads them when its work starts. If they were replaced before that, it would drop
    the old ones.
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
                f"the database {database.name!r} may still have the name {name!r} in Postgres, "
                "until the start of a compute applies its new name: start or restart one first"
            )


def note_applied_names(tx: Transaction, operation: Operation) -> None:
    """Record until when databases had their former names if an operation has applied the new ones.

    A database cannot be renamed while such an operation is running (:func:`check_applied`).
    """
    applies = operation.action in {"start_compute", "apply_config"} and operation.succeeds
    if not applies or operation.work is None:
        return
    where = (
        "WHERE branch_id = ? AND former_names LIKE '%null%' "
        "AND EXISTS (SELECT 1 FROM endpoints WHERE running_on = databases.branch_id)"
    )
    for database in tx.select(Database, where, operation.branch_id):
        names = [
            replace(former, until=tx.now) if former.until is None else former
            for former in _former_names(database)
        ]
        tx.update(database, former_names=_encode(names))


def _existing(tx: Transaction, kind: type[NamedT], branch_id: str, at: Instant) -> list[NamedT]:
    where = "WHERE branch_id = ? AND created_at <= ? AND (deleted_at IS NULL OR deleted_at > ?)"
    return tx.select(kind, f"{where} ORDER BY id", branch_id, at, at)


def _named(tx: Transaction, databases: list[Database], at: Instant | None) -> list[Database]:
    """Return databases of an earlier time, or of an LSN, as :func:`at_point` describes them."""
    then = {row.id: name_at(row, at) for row in databases}
    taken = set(then.values())
    names = {
        row.id: then[row.id] if row.deleted_at is not None or row.name in taken else row.name
        for row in databases
    }
    taken |= set(names.values())
    named: list[Database] = []
    for row in databases:
        # A rename is recorded after Postgres has done it, so the copy may already have a later
        # name. But a name that belongs to another database would mix up their data.
        former = [
            _former_name(tx, name)
            for name in dict.fromkeys(_names_since(row, at))
            if name != names[row.id] and (name == then[row.id] or name not in taken)
        ]
        named.append(
            replace(row, name=names[row.id], deleted_at=None, former_names=_encode(former))
        )
    return named


def _former_name(tx: Transaction, name: str) -> _FormerName:
    """Return a name that a database may still have in Postgres, if there is a Postgres."""
    return _FormerName(name, tx.now if tx.rules.postgres is None else None)


def _names_since(database: Database, at: Instant | None) -> list[str]:
    """Return the names that a database had at a time or later, or all names if it is None."""
    former = [
        former.name
        for former in _former_names(database)
        if at is None or former.until is None or former.until > at
    ]
    return [*former, database.name]


def _former_names(database: Database) -> list[_FormerName]:
    names: list[_FormerName] = msgspec.json.decode(database.former_names, type=list[_FormerName])
    return names


def _encode(names: list[_FormerName]) -> str:
    return msgspec.json.encode(names).decode()


def _noun(kind: type[Role] | type[Database]) -> str:
    return kind.__name__.lower()
