"""Credentials of a branch: tokens for its services."""

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.secret import Secret


class CredentialScope(OpenEnum):
    """An action that a credential permits."""

    STORAGE_READ = "storage:read"
    STORAGE_WRITE = "storage:write"
    AI_GATEWAY_INVOKE = "ai_gateway:invoke"
    FUNCTIONS_INVOKE = "functions:invoke"
    TELEMETRY_WRITE = "telemetry:write"
    """Neon grants this scope itself. You cannot request it."""


class Credential(Model, kw_only=True):
    """A credential in a list, without its secrets."""

    token_id: str
    """The id of the credential. S3 clients use it as their access key id."""
    token_id_short: str
    """The first 12 hexadecimal digits of the id."""
    scopes: list[CredentialScope]
    principal_type: str
    """``user`` for your own credentials, ``function`` and ``system`` for Neon's."""
    created_at: Timestamp
    name: str | None = None
    branch_id: str | None = None
    """The branch that the credential was created on."""
    function_id: str | None = None
    last_used_at: Timestamp | None = None
    revoked_at: Timestamp | None = None
    expires_at: Timestamp | None = None
    """None for a credential that never expires."""


class CredentialSecret(Model, kw_only=True):
    """The secrets of a credential."""

    token_id: str
    """The id of the credential. S3 clients use it as their access key id."""
    api_token: Secret
    """The bearer token for HTTP requests."""
    s3_secret_access_key: Secret
    """The secret access key for S3 clients."""


class CredentialCreated(CredentialSecret, kw_only=True):
    """A new credential with its secrets."""

    token_id_short: str
    """The first 12 hexadecimal digits of the id."""
    scopes: list[CredentialScope]
    branch_id: str
    created_at: Timestamp
    name: str | None = None
    expires_at: Timestamp | None = None
    """None for a credential that never expires."""


class CredentialRotated(CredentialCreated, kw_only=True):
    """A credential with its new secrets. The rotation does not change any other field."""

    principal_type: str
    """``user``: only your own credentials can be rotated."""


class CredentialsResponse(Model, kw_only=True):
    """A response that lists the credentials of a branch."""

    credentials: list[Credential]
