"""The rows of the tables for the services of a branch, one Struct per table."""

from typing import ClassVar

from neonctl_local.clock import Instant
from neonctl_local.storage.rows import Row


class AuthIntegration(Row, frozen=True):
    """Neon Auth on a branch. ``id`` is the id of the branch.

    ``domains``, ``oauth_providers`` and ``settings`` are JSON. ``name`` is the name of the
    application, or None if it is the name of the project. When Neon Auth is disabled, the row
    remains unless the data is deleted too.
    """

    table: ClassVar[str] = "auth_integrations"

    id: str
    provider: str
    provider_project_id: str
    database_name: str
    created_at: Instant
    name: str | None = None
    enabled: bool = True
    domains: str = "[]"
    oauth_providers: str = "[]"
    settings: str = "{}"


class AuthUser(Row, frozen=True):
    """A user of Neon Auth on a branch. ``roles`` is a JSON list.

    Copies of the user in other branches have the same ``user_id``.
    """

    table: ClassVar[str] = "auth_users"

    id: int
    branch_id: str
    user_id: str
    email: str
    name: str | None
    created_at: Instant
    roles: str = "[]"


class DataApi(Row, frozen=True):
    """The Data API of a database. ``settings`` is JSON."""

    table: ClassVar[str] = "data_apis"

    id: int
    branch_id: str
    database_name: str
    settings: str
    created_at: Instant
