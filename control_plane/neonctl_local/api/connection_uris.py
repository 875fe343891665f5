"""Connection URIs of databases, which include the password."""

from typing import Final
from urllib.parse import quote

from neonctl_local.api import roles
from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.engine import branch_objects, computes
from neonctl_local.errors import invalid, not_found
from neonctl_local.storage.tables import Branch, Database, Endpoint, Role
from neonctl_local.storage.transactions import Transaction

DEFAULT_PORT: Final = 5432


def get_uri(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/connection_uri``: by default, of the default branch."""
    project = access.project(tx, call)
    branch = access.branch_or_default(tx, project.id, call.query.get("branch_id"))
    database_name, role_name = call.required("database_name"), call.required("role_name")
    branch_objects.get(tx, Database, branch.id, database_name)
    role = branch_objects.get(tx, Role, branch.id, role_name)
    roles.known_password(role)
    endpoint = _endpoint(tx, branch, call.query.get("endpoint_id"))
    pooled = call.flag("pooled")
    return respond({"uri": _uri(tx, endpoint, role, database_name, pooled=pooled)})


def of_branch(tx: Transaction, branch: Branch, endpoint: Endpoint) -> list[Json]:
    """Return the connection URI and parameters of each database of a branch, for the owner role.

    A database whose owner has no password that the API knows is left out.
    """
    owners = {role.name: role for role in branch_objects.of_branch(tx, Role, branch.id)}
    return [
        _details(tx, endpoint, owner, database)
        for database in branch_objects.of_branch(tx, Database, branch.id)
        if (owner := owners.get(database.owner_name)) is not None and owner.password is not None
    ]


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
