"""The results of ``ensure``: an object that was created, or that existed already."""

from neonctl_async.models.branches import Branch
from neonctl_async.models.databases import ConnectionDetails, Database
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.models.roles import Role


class EnsuredBranch(OperationsResponse, kw_only=True):
    """A branch that exists with the requested settings.

    ``operations`` are those of the creation. For an adopted branch, they are those that were still
    pending or had failed.
    """

    branch: Branch
    created: bool
    """True if a response confirmed that this call created the branch."""
    endpoints: list[Endpoint] = []
    """The computes in the order of the request; empty if the call requested none."""
    connection_uris: list[ConnectionDetails] = []
    """The URIs in the response of the creation; empty for an adopted branch."""


class EnsuredEndpoint(OperationsResponse, kw_only=True):
    """A compute that exists with the requested settings."""

    endpoint: Endpoint
    created: bool
    """True if a response confirmed that this call created the compute."""


class EnsuredDatabase(OperationsResponse, kw_only=True):
    """A database that exists with the requested owner."""

    database: Database
    created: bool
    """True if a response confirmed that this call created the database."""


class EnsuredRole(OperationsResponse, kw_only=True):
    """A role that exists.

    ``role.password`` is set if the call created the role. Otherwise, call
    :meth:`neon.roles.reveal_password`.
    """

    role: Role
    created: bool
    """True if a response confirmed that this call created the role."""
