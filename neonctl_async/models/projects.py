"""Projects (specification, section 2.2, and the fields published since)."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.branches import Branch, BranchCreated
from neonctl_async.models.endpoints import PreloadLibraries
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.users import SubscriptionType


class AdvisorCategory(OpenEnum):
    """What an issue endangers."""

    SECURITY = "SECURITY"
    PERFORMANCE = "PERFORMANCE"


class AdvisorFacing(OpenEnum):
    """Whom an issue concerns."""

    EXTERNAL = "EXTERNAL"
    INTERNAL = "INTERNAL"


class AdvisorIssue(Model, kw_only=True):
    """An issue. ``level`` is ``INFO``, ``WARN`` or ``ERROR``; ``cache_key`` tells issues apart."""

    name: str
    title: str
    level: str
    cache_key: str
    facing: AdvisorFacing | None = None
    categories: list[AdvisorCategory] = []
    description: str | None = None
    detail: str | None = None
    remediation: str | None = None
    metadata: dict[str, object] = {}


class AdvisorIssuesResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/advisors``."""

    issues: list[AdvisorIssue]


class ProjectQuota(Model, kw_only=True):
    """Limits of a billing period, in seconds and bytes; 0 is no limit."""

    active_time_seconds: int | UnsetType = UNSET
    compute_time_seconds: int | UnsetType = UNSET
    written_data_bytes: int | UnsetType = UNSET
    data_transfer_bytes: int | UnsetType = UNSET
    logical_size_bytes: int | UnsetType = UNSET


class AllowedIps(Model, kw_only=True):
    """The addresses that may connect."""

    ips: list[str] | UnsetType = UNSET
    protected_branches_only: bool | UnsetType = UNSET


class MaintenanceWindow(Model, kw_only=True):
    """When the platform may do maintenance: days of the week, 1 to 7, and ``HH:MM`` in UTC."""

    weekdays: list[int]
    start_time: str
    end_time: str


class AuditLogLevel(OpenEnum):
    """How much a project logs for audits."""

    BASE = "base"
    EXTENDED = "extended"
    FULL = "full"


class ProjectSettings(Model, kw_only=True):
    """Settings of a project."""

    quota: ProjectQuota | UnsetType = UNSET
    allowed_ips: AllowedIps | UnsetType = UNSET
    enable_logical_replication: bool | UnsetType = UNSET
    maintenance_window: MaintenanceWindow | UnsetType = UNSET
    block_public_connections: bool | UnsetType = UNSET
    block_vpc_connections: bool | UnsetType = UNSET
    audit_log_level: AuditLogLevel | UnsetType = UNSET
    hipaa: bool | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class DefaultEndpointSettings(Model, kw_only=True):
    """What new computes of a project begin with; units as in ``EndpointSpec``."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    suspend_timeout_seconds: int | UnsetType = UNSET


class ProjectOwner(Model, kw_only=True):
    """The account that owns a project."""

    email: str | None = None
    name: str | None = None
    branches_limit: int | None = None
    subscription_type: SubscriptionType | None = None


class ProjectPermissionLevel(OpenEnum):
    """What the caller may do with a project."""

    CAN_VIEW = "CAN_VIEW"
    CAN_EDIT = "CAN_EDIT"
    CAN_MANAGE = "CAN_MANAGE"


class Project(Model, kw_only=True):
    """A project, as listed and as read alone; the latter holds more fields.

    ``branch_logical_size_limit`` is in MiB, ``synthetic_storage_size`` in bytes,
    ``cpu_used_sec``, ``active_time`` and ``history_retention_seconds`` in seconds.
    """

    id: str
    name: str
    platform_id: str
    region_id: str
    provisioner: str
    pg_version: int
    proxy_host: str
    cpu_used_sec: int
    branch_logical_size_limit: int
    created_at: Timestamp
    updated_at: Timestamp
    locked: bool | None = None
    active_time: int | None = None
    active_time_seconds: int | None = None
    branch_logical_size_limit_bytes: int | None = None
    compute_last_active_at: Timestamp | None = None
    compute_time_seconds: int | None = None
    consumption_period_end: Timestamp | None = None
    consumption_period_start: Timestamp | None = None
    creation_source: str | None = None
    data_storage_bytes_hour: int | None = None
    data_transfer_bytes: int | None = None
    default_endpoint_settings: DefaultEndpointSettings | None = None
    deleted_at: Timestamp | None = None
    effective_project_permission: ProjectPermissionLevel | None = None
    hipaa_enabled_at: Timestamp | None = None
    history_retention_seconds: int | None = None
    maintenance_scheduled_for: Timestamp | None = None
    maintenance_starts_at: Timestamp | None = None
    org_id: str | None = None
    org_name: str | None = None
    owner: ProjectOwner | None = None
    owner_id: str | None = None
    quota_reset_at: Timestamp | None = None
    recoverable_until: Timestamp | None = None
    settings: ProjectSettings | None = None
    store_passwords: bool | None = None
    synthetic_storage_size: int | None = None
    written_data_bytes: int | None = None


class ProjectBranchSpec(Model, kw_only=True):
    """The first branch of a project to create, its role and its database."""

    name: str | UnsetType = UNSET
    role_name: str | UnsetType = UNSET
    database_name: str | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET


class ProjectCreated(BranchCreated, kw_only=True):
    """A project just created, with its default branch and everything created along with it."""

    project: Project


class ProjectUpdated(OperationsResponse, kw_only=True):
    """A project, and the operations that change it."""

    project: Project


class ProjectDeleted(OperationsResponse, kw_only=True):
    """A project as it last was. ``operations`` is empty where the platform announces none."""

    project: Project
    operations: list[Operation] = []


class ProjectRecovered(OperationsResponse, kw_only=True):
    """A project that was deleted and is back. ``operations`` as in :class:`ProjectDeleted`."""

    project: Project
    branches: list[Branch] = []
    operations: list[Operation] = []


class ProjectResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}``."""

    project: Project


class Application(OpenEnum):
    """What a project is connected with."""

    VERCEL = "vercel"
    GITHUB = "github"
    DATADOG = "datadog"
    OPENTELEMETRY = "opentelemetry"


class ProjectsPage(Model, kw_only=True):
    """A page of ``GET /projects`` or ``GET /projects/shared``."""

    projects: list[Project]
    pagination: Pagination | None = None
    unavailable_project_ids: list[str] = []
    applications: dict[str, list[Application]] = {}
    integrations: dict[str, list[Application]] = {}


class AvailablePreloadLibrary(Model, kw_only=True):
    """A library that Postgres can load at start."""

    library_name: str
    description: str | None = None
    is_default: bool | None = None
    is_experimental: bool | None = None
    version: str | None = None


class AvailablePreloadLibrariesResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/available_preload_libraries``."""

    libraries: list[AvailablePreloadLibrary] = []
