"""Who and what may reach a project: permissions, transfer requests, JSON web key sets."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.operations import OperationsResponse


class ProjectPermission(Model, kw_only=True):
    """The access to a project that a user was granted."""

    id: str
    granted_to_email: str
    granted_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class ProjectPermissionsResponse(Model, kw_only=True):
    """The answer that lists the permissions of a project."""

    project_permissions: list[ProjectPermission]


class TransferRequest(Model, kw_only=True):
    """An offer of a project: whoever knows its ``id`` can accept it until ``expires_at``."""

    id: str
    project_id: str
    created_at: Timestamp | None = None
    expires_at: Timestamp | None = None


class JWKS(Model, kw_only=True):
    """Where the keys are by which the JSON web tokens of a provider are verified."""

    id: str
    project_id: str
    jwks_url: str
    provider_name: str
    branch_id: str | None = None
    jwt_audience: str | None = None
    role_names: list[str] | None = None
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class JWKSCreated(OperationsResponse, kw_only=True):
    """A key set just added, and the operations that put it into force."""

    jwks: JWKS


class JWKSResponse(Model, kw_only=True):
    """The answer that lists the key sets of a project."""

    jwks: list[JWKS]
