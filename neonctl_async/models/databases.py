"""Databases of a branch."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.secret import Secret


class ConnectionParameters(Model, kw_only=True):
    """The parts of a connection URI."""

    database: str
    role: str
    host: str
    password: Secret
    pooler_host: str | None = None


class ConnectionDetails(Model, kw_only=True):
    """A connection URI, which includes the password, and its parts."""

    connection_uri: Secret
    connection_parameters: ConnectionParameters


class ConnectionURIResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/connection_uri``."""

    uri: Secret


class Database(Model, kw_only=True):
    """A database and the role that owns it."""

    id: int
    branch_id: str
    name: str
    owner_name: str
    created_at: Timestamp
    updated_at: Timestamp


class DatabaseUpdated(OperationsResponse, kw_only=True):
    """A database, and the operations that create or change it."""

    database: Database


class DatabaseDeleted(OperationsResponse, kw_only=True):
    """The answer to a database deletion. Both parts are empty where the platform answers 204."""

    database: Database | None = None
    operations: list[Operation] = []


class DatabaseResponse(Model, kw_only=True):
    """The answer that shows one database."""

    database: Database


class DatabasesResponse(Model, kw_only=True):
    """The answer that lists the databases of a branch."""

    databases: list[Database]
