"""Computes, which the API calls endpoints."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.operations import Operation, OperationsResponse


class EndpointType(OpenEnum):
    """What a compute may do with its branch. A branch has at most one ``read_write``."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"


class EndpointState(OpenEnum):
    """Whether a compute runs."""

    INIT = "init"
    ACTIVE = "active"
    IDLE = "idle"


class PoolerMode(OpenEnum):
    """How the pooler of a compute hands out connections."""

    TRANSACTION = "transaction"


class PreloadLibraries(Model, kw_only=True):
    """Libraries that Postgres loads at start."""

    use_defaults: bool | UnsetType = UNSET
    enabled_libraries: list[str] | UnsetType = UNSET


class EndpointSettings(Model, kw_only=True):
    """Settings of a compute: of Postgres, of PgBouncer, and the libraries to preload."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class EndpointSpec(Model, kw_only=True):
    """A compute to create along with a branch. What is left out, the platform decides.

    ``type`` is an :class:`EndpointType`. Sizes are in compute units, at least 0.25.
    ``suspend_timeout_seconds`` is the idle time before
    a compute is suspended: -1 never, 0 the platform's default, at most 604800.
    """

    type: str
    settings: EndpointSettings | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    provisioner: str | UnsetType = UNSET
    suspend_timeout_seconds: int | UnsetType = UNSET


class Endpoint(Model, kw_only=True):
    """A compute. ``suspend_timeout_seconds`` as in :class:`EndpointSpec`."""

    id: str
    project_id: str
    branch_id: str
    host: str
    type: EndpointType
    current_state: EndpointState
    created_at: Timestamp
    updated_at: Timestamp
    name: str | None = None
    region_id: str | None = None
    pending_state: EndpointState | None = None
    autoscaling_limit_min_cu: float | None = None
    autoscaling_limit_max_cu: float | None = None
    settings: EndpointSettings | None = None
    pooler_enabled: bool | None = None
    pooler_mode: PoolerMode | None = None
    disabled: bool | None = None
    passwordless_access: bool | None = None
    last_active: Timestamp | None = None
    creation_source: str | None = None
    started_at: Timestamp | None = None
    suspended_at: Timestamp | None = None
    proxy_host: str | None = None
    suspend_timeout_seconds: int | None = None
    provisioner: str | None = None
    compute_release_version: str | None = None


class EndpointUpdated(OperationsResponse, kw_only=True):
    """A compute, and the operations that create or change it."""

    endpoint: Endpoint


class EndpointDeleted(OperationsResponse, kw_only=True):
    """The answer to a compute deletion. Both parts are empty where the platform answers 204."""

    endpoint: Endpoint | None = None
    operations: list[Operation] = []


class EndpointResponse(Model, kw_only=True):
    """The answer that shows one compute."""

    endpoint: Endpoint


class EndpointsResponse(Model, kw_only=True):
    """The answer that lists the computes of a project or a branch."""

    endpoints: list[Endpoint]
