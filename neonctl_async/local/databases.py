"""Databases of a branch, and the URIs to connect to them."""

from urllib.parse import quote

from neonctl_async.local import endpoints
from neonctl_async.local.calls import Json
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.database import Transaction
from neonctl_async.local.rows import Database, Endpoint, Role


def of_branch(tx: Transaction, branch_id: str) -> list[Database]:
    """The databases of a branch, oldest first."""
    where = "WHERE branch_id = ? AND deleted_at IS NULL ORDER BY id"
    return tx.select(Database, where, branch_id)


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


def connection_uri(
    endpoint: Endpoint, role: Role, database_name: str, *, pooled: bool = False
) -> str:
    """The URI of a database, with the password of the role."""
    host = endpoints.host(endpoint, pooled=pooled)
    user, name = quote(role.name, safe=""), quote(database_name, safe="")
    return f"postgresql://{user}:{role.password}@{host}/{name}?sslmode=require"


def connection_details(endpoint: Endpoint, role: Role, database: Database) -> Json:
    """The URI of a database and its parts."""
    return {
        "connection_uri": connection_uri(endpoint, role, database.name),
        "connection_parameters": {
            "database": database.name,
            "password": role.password,
            "role": role.name,
            "host": endpoints.host(endpoint),
            "pooler_host": endpoints.host(endpoint, pooled=True),
        },
    }
