"""Databases of a branch. Changing them is an apply_config (section 2.3)."""

from msgspec import UNSET

from neonctl_async.local import access, bodies, computes, operations, roles
from neonctl_async.local.calls import Answer, Call, Json, answer
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.database import SqlValue, Transaction
from neonctl_async.local.errors import conflict, not_found
from neonctl_async.local.operations import Chain
from neonctl_async.local.rows import Branch, Database


def create(tx: Transaction, call: Call) -> Answer:
    """``POST .../branches/{branch_id}/databases``, owned by a role of the branch."""
    project, branch = access.branch(tx, call)
    spec = call.body(bodies.DatabaseCreate).database
    _refuse_taken_name(tx, branch, spec.name)
    _refuse_missing_owner(tx, branch, spec.owner_name)
    chain = operations.begin(tx, project.id, branch.id)
    add(tx, branch.id, spec.name, spec.owner_name)
    computes.configure(tx, branch, chain)
    return _changed(_found(tx, branch, spec.name), chain, 201)


def list_branch(tx: Transaction, call: Call) -> Answer:
    """``GET .../branches/{branch_id}/databases``."""
    _, branch = access.branch(tx, call)
    return answer({"databases": [record(found) for found in of_branch(tx, branch.id)]})


def get(tx: Transaction, call: Call) -> Answer:
    """``GET .../databases/{database_name}``."""
    _, branch = access.branch(tx, call)
    return answer({"database": record(_found(tx, branch, call.path["database_name"]))})


def update(tx: Transaction, call: Call) -> Answer:
    """``PATCH .../databases/{database_name}``: another name, another owner."""
    project, branch = access.branch(tx, call)
    database = _found(tx, branch, call.path["database_name"])
    body = call.body(bodies.DatabaseUpdate).database
    changes: dict[str, SqlValue] = {}
    if body.name is not UNSET and body.name != database.name:
        _refuse_taken_name(tx, branch, body.name)
        changes["name"] = body.name
    if body.owner_name is not UNSET:
        _refuse_missing_owner(tx, branch, body.owner_name)
        changes["owner_name"] = body.owner_name
    chain = operations.begin(tx, project.id, branch.id)
    if changes:
        database = tx.update(database, updated_at=tx.now, **changes)
        computes.configure(tx, branch, chain)
    return _changed(database, chain)


def delete(tx: Transaction, call: Call) -> Answer:
    """``DELETE .../databases/{database_name}``; 204 where it already was."""
    project, branch = access.branch(tx, call)
    name = call.path["database_name"]
    deleted = "WHERE branch_id = ? AND name = ? AND deleted_at IS NOT NULL"
    if not find(tx, branch.id, name) and tx.first(Database, deleted, branch.id, name):
        return Answer(204)
    database = _found(tx, branch, name)
    chain = operations.begin(tx, project.id, branch.id)
    database = tx.update(database, deleted_at=tx.now, updated_at=tx.now)
    computes.configure(tx, branch, chain)
    return _changed(database, chain)


def add(tx: Transaction, branch_id: str, name: str, owner_name: str) -> None:
    """Store a database."""
    database = Database(
        id=0,
        branch_id=branch_id,
        name=name,
        owner_name=owner_name,
        created_at=tx.now,
        updated_at=tx.now,
    )
    tx.insert(database)


def of_branch(tx: Transaction, branch_id: str) -> list[Database]:
    """The databases of a branch, oldest first."""
    where = "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id"
    return tx.select(Database, where, branch_id)


def find(tx: Transaction, branch_id: str, name: str) -> Database | None:
    """The database of a branch that has a name."""
    where = "WHERE branch_id = ? AND name = ? AND deleted_at IS NULL"
    return tx.first(Database, where, branch_id, name)


def record(database: Database) -> Json:
    """A database as the API shows it."""
    return {
        "id": database.id,
        "branch_id": database.branch_id,
        "name": database.name,
        "owner_name": database.owner_name,
        "created_at": in_seconds(database.created_at),
        "updated_at": in_seconds(database.updated_at),
    }


def _refuse_taken_name(tx: Transaction, branch: Branch, name: str) -> None:
    if find(tx, branch.id, name):
        raise conflict(f"a database named {name!r} already exists in the branch")


def _refuse_missing_owner(tx: Transaction, branch: Branch, name: str) -> None:
    if roles.find(tx, branch.id, name) is None:
        raise not_found("role", name)


def _found(tx: Transaction, branch: Branch, name: str) -> Database:
    database = find(tx, branch.id, name)
    if database is None:
        raise not_found("database", name)
    return database


def _changed(database: Database, chain: Chain, status: int = 200) -> Answer:
    return answer({"database": record(database), "operations": chain.records()}, status)
