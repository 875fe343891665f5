"""Computes. The API calls them endpoints."""

from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.operations import Operation, OperationsResponse


class EndpointType(OpenEnum):
    """A compute's access to its branch. A branch has at most one ``read_write`` compute."""

    READ_ONLY = "read_only"
    READ_WRITE = "read_write"


EndpointTypeName: TypeAlias = EndpointType | Literal["read_only", "read_write"]
"""The type of a new compute, as an enumeration member or a string."""


class EndpointState(OpenEnum):
    """The state of a compute: being created, running or suspended."""

    INIT = "init"
    ACTIVE = "active"
    IDLE = "idle"


class PoolerMode(OpenEnum):
    """How PgBouncer assigns connections to clients."""

    TRANSACTION = "transaction"


class PreloadLibraries(Model, kw_only=True):
    """The libraries that Postgres loads when it starts."""

    use_defaults: bool | UnsetType = UNSET
    """True to load Neon's default libraries."""
    enabled_libraries: list[str] | UnsetType = UNSET


class EndpointSettings(Model, kw_only=True):
    """Settings of a compute."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    """Postgres settings, such as ``{"work_mem": "8MB"}``."""
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class ComputeSettings(TypedDict, total=False):
    """The settings for creating, changing or ensuring a compute.

    Neon chooses values for the unset settings of a new compute.
    """

    name: str | UnsetType
    settings: EndpointSettings | UnsetType
    autoscaling_limit_min_cu: float | UnsetType
    """The smallest size, in compute units, at least 0.25."""
    autoscaling_limit_max_cu: float | UnsetType
    """The largest size, in compute units."""
    provisioner: str | UnsetType
    """``k8s-neonvm``, which can change its size, or ``k8s-pod``."""
    disabled: bool | UnsetType
    """True for a compute that connections cannot start."""
    passwordless_access: bool | UnsetType
    suspend_timeout_seconds: int | UnsetType
    """The idle time before Neon suspends the compute, in seconds, at most 604800. 0 means Neon's
    default, and -1 means never."""


class EndpointSpec(Model, kw_only=True):
    """A compute to create together with a branch. Neon chooses the values of unset fields."""

    if TYPE_CHECKING:
        type: EndpointTypeName
        """``read_write`` or ``read_only``."""
    else:
        type: EndpointType  # msgspec decodes no union of an enumeration and words
    settings: EndpointSettings | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    """The smallest size, in compute units, at least 0.25."""
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    """The largest size, in compute units."""
    provisioner: str | UnsetType = UNSET
    """``k8s-neonvm``, which can change its size, or ``k8s-pod``."""
    suspend_timeout_seconds: int | UnsetType = UNSET
    """The idle time before Neon suspends the compute, in seconds, at most 604800. 0 means Neon's
    default, and -1 means never."""


class Endpoint(Model, kw_only=True):
    """A compute of a branch."""

    id: str
    project_id: str
    branch_id: str
    host: str
    """The host name for connections."""
    type: EndpointType
    current_state: EndpointState
    created_at: Timestamp
    updated_at: Timestamp
    name: str | None = None
    region_id: str | None = None
    pending_state: EndpointState | None = None
    """The state that the compute is changing to, if any."""
    autoscaling_limit_min_cu: float | None = None
    """The smallest size, in compute units."""
    autoscaling_limit_max_cu: float | None = None
    """The largest size, in compute units."""
    settings: EndpointSettings | None = None
    pooler_enabled: bool | None = None
    pooler_mode: PoolerMode | None = None
    disabled: bool | None = None
    """True if connections cannot start the compute."""
    passwordless_access: bool | None = None
    last_active: Timestamp | None = None
    creation_source: str | None = None
    started_at: Timestamp | None = None
    suspended_at: Timestamp | None = None
    proxy_host: str | None = None
    """Deprecated by Neon: use ``host``."""
    suspend_timeout_seconds: int | None = None
    """The idle time before Neon suspends the compute, in seconds. 0 means Neon's default, and -1
    means never."""
    provisioner: str | None = None
    compute_release_version: str | None = None


class EndpointUpdated(OperationsResponse, kw_only=True):
    """A compute, and the operations that create or change it."""

    endpoint: Endpoint


class EnsuredEndpoint(OperationsResponse, kw_only=True):
    """A compute that exists with the requested settings."""

    endpoint: Endpoint
    created: bool
    """True if a response confirmed that this call created the compute."""


class EndpointDeleted(OperationsResponse, kw_only=True):
    """The response to the deletion of a compute. Both fields are empty after a 204 response."""

    endpoint: Endpoint | None = None
    operations: list[Operation] = []


class EndpointResponse(Model, kw_only=True):
    """A response that contains one compute."""

    endpoint: Endpoint


class EndpointsResponse(Model, kw_only=True):
    """A response that lists the computes of a project or a branch."""

    endpoints: list[Endpoint]
