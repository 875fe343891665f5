"""Access to a project: permissions, transfer requests, JSON Web Key Sets."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.operations import OperationsResponse


class ProjectPermission(Model, kw_only=True):
    """A permission of a user to access a project."""

    id: str
    granted_to_email: str
    granted_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class ProjectPermissionsResponse(Model, kw_only=True):
    """A response that lists the permissions of a project."""

    project_permissions: list[ProjectPermission]


class TransferRequest(Model, kw_only=True):
    """An offer to transfer a project to another account."""

    id: str
    """The id that accepts the offer. Anyone who knows it can take over the project."""
    project_id: str
    created_at: Timestamp | None = None
    expires_at: Timestamp | None = None


class JWKS(Model, kw_only=True):
    """A JSON Web Key Set: the keys that verify the JSON Web Tokens of a provider."""

    id: str
    project_id: str
    jwks_url: str
    """The URL of the keys."""
    provider_name: str
    branch_id: str | None = None
    """The branch that accepts the tokens; None for all branches."""
    jwt_audience: str | None = None
    """The required ``aud`` claim of the tokens."""
    role_names: list[str] | None = None
    """The Postgres roles that the tokens may use."""
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class JWKSCreated(OperationsResponse, kw_only=True):
    """A new key set, and the operations that configure the computes for it."""

    jwks: JWKS


class JWKSResponse(Model, kw_only=True):
    """A response that lists the key sets of a project."""

    jwks: list[JWKS]
