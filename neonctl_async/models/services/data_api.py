"""The Data API of a branch: its address and its settings."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model


class DataApiSettings(Model, kw_only=True):
    """Settings of a Data API. Neon chooses the values of unset fields."""

    db_aggregates_enabled: bool | UnsetType = UNSET
    """True to allow aggregate functions, such as ``count()``, in requests."""
    db_anon_role: str | UnsetType = UNSET
    """The Postgres role for requests without a token."""
    db_extra_search_path: str | UnsetType = UNSET
    """Additional schemas for the search path."""
    db_max_rows: int | UnsetType = UNSET
    """The maximum number of rows in a response. If unset, there is no limit."""
    db_schemas: list[str] | UnsetType = UNSET
    """The schemas that the API exposes, by default ``public``."""
    jwt_role_claim_key: str | UnsetType = UNSET
    """The token claim that contains the Postgres role, such as ``.role``."""
    jwt_cache_max_lifetime: int | UnsetType = UNSET
    """How long a verified token may be cached, in seconds."""
    openapi_mode: str | UnsetType = UNSET
    """``ignore-privileges`` or ``disabled``: the mode of the OpenAPI description."""
    server_cors_allowed_origins: str | UnsetType = UNSET
    """The origins that browsers may send requests from."""
    server_timing_enabled: bool | UnsetType = UNSET
    """True to add a ``Server-Timing`` header to responses."""


class BranchDataApi(Model, kw_only=True):
    """The Data API of a database."""

    url: str
    """The base URL for requests to the Data API."""
    status: str
    """The status of its deployment."""
    settings: DataApiSettings | None = None
    available_schemas: list[str] | None = None
    """The schemas of the database."""


class DataApiCreated(Model, kw_only=True):
    """The address of a new Data API."""

    url: str
    """The base URL for requests to the Data API."""
