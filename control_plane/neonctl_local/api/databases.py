"""Requests that manage the databases of a branch and return the URIs to connect to.

Changes start an ``apply_config`` operation. URIs include the password.
"""

from typing import Final
from urllib.parse import quote

from msgspec import UNSET

from neonctl_local.api import roles
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.engine import branch_objects, computes, operations, sql_changes
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services import auth, data_apis
from neonctl_local.errors import invalid, not_found
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Database, Endpoint, Role
from neonctl_local.storage.transactions import Transaction

DEFAULT_PORT: Final = 5432


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/databases``: the owner must be a role of the branch."""
    project, branch = access.branch(tx, call)
    spec = call.part("database", bodies.DatabaseSpec)
    branch_objects.check_new(tx, Database, branch.id, spec.name)
    branch_objects.check_applied(tx, branch.id, spec.name)
    branch_objects.get(tx, Role, branch.id, spec.owner_name)
    chain = operations.start_chain(tx, project.id, branch.id)
    database = add(tx, branch.id, spec.name, spec.owner_name)
    data_apis.delete(tx, branch.id, spec.name)  # left by a database that a restore removed
    computes.configure_branch(tx, branch, chain)
    return _changed(database, chain, 201)


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/databases``."""
    _, branch = access.branch(tx, call)
    found = branch_objects.of_branch(tx, Database, branch.id)
    return respond({"databases": [record(database) for database in found]})


def get(tx: Transaction, call: Call) -> Response:
    """``GET .../databases/{database_name}``."""
    _, branch = access.branch(tx, call)
    found = branch_objects.get(tx, Database, branch.id, call.path["database_name"])
    return respond({"database": record(found)})


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH .../databases/{database_name}``: change the name or the owner."""
    project, branch = access.branch(tx, call)
    database = branch_objects.get(tx, Database, branch.id, call.path["database_name"])
    body = call.part("database", bodies.DatabaseChanges)
    changes: dict[str, SqlValue] = {}
    if body.name is not UNSET and body.name != database.name:
        branch_objects.check_name_free(tx, Database, branch.id, body.name)
        branch_objects.check_possible(Database, body.name)
        branch_objects.check_applied(tx, branch.id, body.name, renamed=database)
        changes |= branch_objects.renaming(tx, database, body.name)
        auth.rename_database(tx, branch.id, database.name, body.name)
        data_apis.rename(tx, branch.id, database.name, body.name)
    if body.owner_name is not UNSET:
        branch_objects.get(tx, Role, branch.id, body.owner_name)
        changes["owner_name"] = body.owner_name
    chain = operations.start_chain(tx, project.id, branch.id)
    if changes:
        database = tx.update(database, updated_at=tx.now, **changes)
        computes.configure_branch(tx, branch, chain)
    return _changed(database, chain)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../databases/{database_name}``: return 204 if already deleted."""
    project, branch = access.branch(tx, call)
    name = call.path["database_name"]
    if branch_objects.was_deleted(tx, Database, branch.id, name):
        return Response(204)
    database = branch_objects.get(tx, Database, branch.id, name)
    chain = operations.start_chain(tx, project.id, branch.id)
    database = sql_changes.drop_database(tx, database)
    computes.configure_branch(tx, branch, chain)
    return _changed(database, chain)


def add(tx: Transaction, branch_id: str, name: str, owner_name: str) -> Database:
    """Store a database. Raise 422 if Postgres does not allow its name."""
    branch_objects.check_possible(Database, name)
    database = Database(
        id=0,
        branch_id=branch_id,
        name=name,
        owner_name=owner_name,
        created_at=tx.now,
        updated_at=tx.now,
    )
    return tx.insert(database)


def record(database: Database) -> Json:
    """Return a database as the API shows it."""
    return fields(database, "id", "branch_id", "name", "owner_name", "created_at", "updated_at")


def get_uri(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/connection_uri``: by default, use the default branch."""
    project = access.project(tx, call)
    branch = access.branch_or_default(tx, project.id, call.query.get("branch_id"))
    database_name, role_name = call.required("database_name"), call.required("role_name")
    branch_objects.get(tx, Database, branch.id, database_name)
    role = branch_objects.get(tx, Role, branch.id, role_name)
    roles.known_password(role)
    endpoint = _endpoint(tx, branch, call.query.get("endpoint_id"))
    pooled = call.flag("pooled")
    return respond({"uri": _uri(tx, endpoint, role, database_name, pooled=pooled)})


def uris_of_branch(tx: Transaction, branch: Branch, endpoint: Endpoint) -> list[Json]:
    """Return the connection URI and parameters of a branch's databases, for their owners.

    Databases are left out if the API does not know the owner's password.
    """
    owners = {role.name: role for role in branch_objects.of_branch(tx, Role, branch.id)}
    return [
        _details(tx, endpoint, owner, database)
        for database in branch_objects.of_branch(tx, Database, branch.id)
        if (owner := owners.get(database.owner_name)) is not None and owner.password is not None
    ]


def _changed(database: Database, chain: OperationChain, status: int = 200) -> Response:
    return respond({"database": record(database), "operations": operation_records(chain)}, status)


def _endpoint(tx: Transaction, branch: Branch, endpoint_id: str | None) -> Endpoint:
    # A read_write compute comes first: "read_write" sorts after "read_only".
    candidates = sorted(computes.of_branch(tx, branch.id), key=lambda candidate: candidate.type)
    for endpoint in reversed(candidates):
        if endpoint_id in (None, "", endpoint.id):
            return endpoint
    if endpoint_id:
        raise not_found("endpoint", endpoint_id)
    raise invalid(f"invalid request: branch_id: branch {branch.id!r} has no endpoint")


def _uri(
    tx: Transaction, endpoint: Endpoint, role: Role, database_name: str, *, pooled: bool = False
) -> str:
    user, password = quote(role.name, safe=""), quote(role.password or "", safe="")
    name = quote(database_name, safe="")
    login, postgres = f"postgresql://{user}:{password}", tx.rules.postgres
    if postgres is None or postgres.domain is not None:
        port = "" if postgres is None or postgres.port == DEFAULT_PORT else f":{postgres.port}"
        host = computes.host(tx, endpoint, pooled=pooled)
        return f"{login}@{host}{port}/{name}?sslmode=require"
    host = f"[{postgres.host}]" if ":" in postgres.host else postgres.host
    options = f"options=endpoint%3D{endpoint.id}{'-pooler' if pooled else ''}"
    if postgres.ca_file is None:
        tls = "sslmode=disable"
    else:
        tls = f"sslmode=verify-full&sslrootcert={quote(postgres.ca_file)}"
    return f"{login}@{host}:{postgres.port}/{name}?{options}&{tls}"


def _details(tx: Transaction, endpoint: Endpoint, role: Role, database: Database) -> Json:
    return {
        "connection_uri": _uri(tx, endpoint, role, database.name),
        "connection_parameters": {
            "database": database.name,
            "password": role.password,
            "role": role.name,
            "host": computes.host(tx, endpoint),
            "pooler_host": computes.host(tx, endpoint, pooled=True),
        },
    }
