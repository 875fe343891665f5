"""API keys: personal, organization and project-scoped (specification, section 2.1)."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.secret import Secret


class ApiKeyCreated(Model, kw_only=True):
    """A key just created. ``key`` is the secret token, and this is the only time it is shown.

    Some answers hold ``id`` and ``key`` alone. ``project_id`` is set for a project-scoped key.
    """

    id: int
    key: Secret
    name: str | None = None
    created_at: Timestamp | None = None
    created_by: str | None = None
    project_id: str | None = None


class ApiKeyCreator(Model, kw_only=True):
    """Who created a key."""

    id: str
    name: str | None = None
    image: str | None = None


class ApiKey(Model, kw_only=True):
    """A key as it is listed, without its token."""

    id: int
    name: str
    created_at: Timestamp | None = None
    created_by: ApiKeyCreator | str | None = None
    last_used_at: Timestamp | None = None
    last_used_from_addr: str | None = None
    project_id: str | None = None


class ApiKeyRevoked(Model, kw_only=True):
    """A key just revoked."""

    id: int
    name: str
    revoked: bool
    created_at: Timestamp | None = None
    created_by: str | None = None
    last_used_at: Timestamp | None = None
    last_used_from_addr: str | None = None
    project_id: str | None = None
