"""Stores the roles and databases that clients change with SQL, so the API shows the changes."""

from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.engine import branch_objects, computes, restores
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services import auth, data_apis
from neonctl_local.storage.tables import Branch, Database, Role
from neonctl_local.storage.transactions import Transaction

Verifies = Callable[[str | None, str | None], bool]
"""Returns whether a verifier belongs to a password, or equals another verifier."""


class Changes(msgspec.Struct, frozen=True):
    """The new, changed and dropped roles and databases of a branch.

    ``roles`` contains the verifier of each role's password: None if the role cannot log in, and an
    empty string if it has no password. ``databases`` contains the owner of each database.
    """

    roles: Mapping[str, str | None]
    databases: Mapping[str, str]
    dropped_roles: frozenset[str]
    dropped_databases: frozenset[str]


def store(tx: Transaction, branch_id: str, changes: Changes, verifies: Verifies) -> bool:
    """Store the changes that are not in the tables yet, with an operation if there are any.

    Return False if the changes cannot be stored: the operation was planned to fail, the branch is
    deleted and may be recovered, or it is being restored and the changes belong to its old data.
    """
    branch = tx.first(Branch, "WHERE id = ? AND deleted_at IS NULL", branch_id)
    if branch is None or restores.open_restore(tx, branch_id) is not None:
        return False
    roles, databases = _roles(tx, branch_id, changes, verifies), _databases(tx, branch_id, changes)
    rows: list[Role | Database] = [*roles, *databases]
    if rows and not _note(tx, branch):
        return False
    for row in rows:
        if row.id == 0:
            tx.insert(row)
        elif isinstance(row, Database) and row.deleted_at is not None:
            drop_database(tx, row)
        else:
            tx.update(row, **msgspec.structs.asdict(row))
    return True


def drop_database(tx: Transaction, database: Database) -> Database:
    """Record that a database was deleted, together with its Neon Auth and Data API."""
    auth.delete_database(tx, database.branch_id, database.name)
    data_apis.delete(tx, database.branch_id, database.name)
    return tx.update(database, deleted_at=tx.now, updated_at=tx.now)


def _roles(tx: Transaction, branch_id: str, changes: Changes, verifies: Verifies) -> Iterator[Role]:
    """Yield new rows for the roles that clients created, changed or dropped."""
    known = {role.name: role for role in branch_objects.of_branch(tx, Role, branch_id)}
    for name in changes.dropped_roles & known.keys():
        yield replace(known[name], deleted_at=tx.now, updated_at=tx.now)
    for name, verifier in changes.roles.items():
        role = known.get(name) or Role(
            id=0,
            branch_id=branch_id,
            name=name,
            password_seed=ids.password_seed(),
            no_login=True,
            protected=False,
            created_at=tx.now,
            updated_at=tx.now,
            verifier="",
        )
        is_kept = verifier is None or verifies(verifier, role.password_or_verifier)
        new = replace(
            role,
            no_login=verifier is None,
            verifier=role.verifier if is_kept else verifier,
        )
        if new != role or not role.id:
            yield replace(new, updated_at=tx.now)


def _databases(tx: Transaction, branch_id: str, changes: Changes) -> Iterator[Database]:
    """Yield new rows for the databases that clients created, changed or dropped."""
    known = {each.name: each for each in branch_objects.of_branch(tx, Database, branch_id)}
    for name in changes.dropped_databases & known.keys():
        yield replace(known[name], deleted_at=tx.now, updated_at=tx.now)
    for name, owner in changes.databases.items():
        database = known.get(name) or Database(
            id=0,
            branch_id=branch_id,
            name=name,
            owner_name="",
            created_at=tx.now,
            updated_at=tx.now,
        )
        if database.owner_name != owner:
            yield replace(database, owner_name=owner, updated_at=tx.now)


def _note(tx: Transaction, branch: Branch) -> bool:
    """Add an operation that has already finished. Return whether it succeeded."""
    # A read_write compute comes last: "read_only" sorts before "read_write".
    endpoints = sorted(computes.of_branch(tx, branch.id), key=lambda endpoint: endpoint.type)
    operation = OperationChain(tx, branch.project_id).add_done(
        "sync_dbs_and_roles_from_compute",
        branch_id=branch.id,
        endpoint_id=endpoints[-1].id if endpoints else None,
    )
    return operation.succeeds
