"""Databases of a branch, and the URIs that connect to them."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.secret import Secret


class ConnectionParameters(Model, kw_only=True):
    """The parts of a connection URI."""

    database: str
    role: str
    host: str
    password: Secret
    pooler_host: str | None = None
    """The host for connections through the pooler."""


class ConnectionDetails(Model, kw_only=True):
    """A connection URI, and its parts."""

    connection_uri: ConnectionUri
    """The URI, which includes the password."""
    connection_parameters: ConnectionParameters


class ConnectionURIResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/connection_uri``."""

    uri: ConnectionUri


class Database(Model, kw_only=True):
    """A database of a branch."""

    id: int
    branch_id: str
    name: str
    owner_name: str
    """The name of the role that owns the database."""
    created_at: Timestamp
    updated_at: Timestamp


class DatabaseUpdated(OperationsResponse, kw_only=True):
    """A database, and the operations that create or change it."""

    database: Database


class EnsuredDatabase(OperationsResponse, kw_only=True):
    """A database that exists with the requested owner."""

    database: Database
    created: bool
    """True if a response confirmed that this call created the database."""


class DatabaseDeleted(OperationsResponse, kw_only=True):
    """The response to the deletion of a database. Both fields are empty after a 204 response."""

    database: Database | None = None
    operations: list[Operation] = []


class DatabaseResponse(Model, kw_only=True):
    """A response that contains one database."""

    database: Database


class DatabasesResponse(Model, kw_only=True):
    """A response that lists the databases of a branch."""

    databases: list[Database]
