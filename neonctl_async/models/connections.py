"""How to connect to a database. Whatever holds a password is a Secret."""

from neonctl_async.models.base import Model
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
