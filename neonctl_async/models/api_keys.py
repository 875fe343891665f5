"""API keys: personal, organization and project-scoped."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.secret import Secret


class ApiKeyCreated(Model, kw_only=True):
    """A new API key with its secret token. Neon returns the token only once.

    Some responses contain only ``id`` and ``key``.
    """

    id: int
    key: Secret
    """The secret token."""
    name: str | None = None
    created_at: Timestamp | None = None
    created_by: str | None = None
    """The id of the user who created the key."""
    project_id: str | None = None
    """The project of a project-scoped key; None for other keys."""


class ApiKeyCreator(Model, kw_only=True):
    """The user who created an API key."""

    id: str
    name: str | None = None
    image: str | None = None
    """The URL of the user's picture."""


class ApiKey(Model, kw_only=True):
    """An API key in a list, without its token."""

    id: int
    name: str
    created_at: Timestamp | None = None
    created_by: ApiKeyCreator | str | None = None
    """The user who created the key. Some responses contain only the user's id."""
    last_used_at: Timestamp | None = None
    last_used_from_addr: str | None = None
    """The IP address of the last request; empty if the key was never used."""
    project_id: str | None = None
    """The project of a project-scoped key; None for other keys."""


class ApiKeyRevoked(Model, kw_only=True):
    """An API key that was revoked by this call."""

    id: int
    name: str
    revoked: bool
    created_at: Timestamp | None = None
    created_by: str | None = None
    last_used_at: Timestamp | None = None
    last_used_from_addr: str | None = None
    project_id: str | None = None
