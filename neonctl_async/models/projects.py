"""Projects, and access to them."""

from typing import TypedDict

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.branches import Branch, BranchCreated
from neonctl_async.models.endpoints import PreloadLibraries
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.organizations import MemberRole


class SubscriptionType(OpenEnum):
    """The subscription of an account. ``UNKNOWN`` for an account without billing."""

    UNKNOWN = "UNKNOWN"
    DIRECT_SALES = "direct_sales"
    DIRECT_SALES_V3 = "direct_sales_v3"
    AWS_MARKETPLACE = "aws_marketplace"
    FREE_V2 = "free_v2"
    FREE_V3 = "free_v3"
    LAUNCH = "launch"
    LAUNCH_V3 = "launch_v3"
    SCALE = "scale"
    SCALE_V3 = "scale_v3"
    BUSINESS = "business"
    VERCEL_PG_LEGACY = "vercel_pg_legacy"


class AdvisorCategory(OpenEnum):
    """The category of an issue."""

    SECURITY = "SECURITY"
    PERFORMANCE = "PERFORMANCE"


class AdvisorFacing(OpenEnum):
    """The audience of an issue: users of the database, or its owner."""

    EXTERNAL = "EXTERNAL"
    INTERNAL = "INTERNAL"


class AdvisorIssue(Model, kw_only=True):
    """An issue that Neon's advisors found in a database."""

    name: str
    title: str
    level: str
    """``INFO``, ``WARN`` or ``ERROR``."""
    cache_key: str
    """A key that identifies the issue."""
    facing: AdvisorFacing | None = None
    categories: list[AdvisorCategory] = []
    description: str | None = None
    detail: str | None = None
    remediation: str | None = None
    metadata: dict[str, object] = {}


class AdvisorIssuesResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/advisors``."""

    issues: list[AdvisorIssue]


class ProjectQuota(Model, kw_only=True):
    """The limits of a project for one billing period. 0 means no limit.

    If a project exceeds a limit other than ``logical_size_bytes``, Neon suspends its computes.
    """

    active_time_seconds: int | UnsetType = UNSET
    """Seconds during which computes are active."""
    compute_time_seconds: int | UnsetType = UNSET
    """CPU seconds."""
    written_data_bytes: int | UnsetType = UNSET
    """Data written to all branches, in bytes."""
    data_transfer_bytes: int | UnsetType = UNSET
    """Data sent to clients, in bytes."""
    logical_size_bytes: int | UnsetType = UNSET
    """The logical size of each branch, in bytes. Writes to a larger branch fail."""


class AllowedIps(Model, kw_only=True):
    """The addresses from which clients may connect to a project."""

    ips: list[str] | UnsetType = UNSET
    """IP addresses and ranges."""
    protected_branches_only: bool | UnsetType = UNSET
    """True to apply the list to protected branches only."""


class MaintenanceWindow(Model, kw_only=True):
    """The weekly period in which Neon may do maintenance."""

    weekdays: list[int]
    """1 (Monday) to 7 (Sunday)."""
    start_time: str
    """``HH:MM`` in UTC."""
    end_time: str
    """``HH:MM`` in UTC."""


class AuditLogLevel(OpenEnum):
    """How much detail the audit log of a project contains."""

    BASE = "base"
    EXTENDED = "extended"
    FULL = "full"


class ProjectSettings(Model, kw_only=True):
    """Settings of a project."""

    quota: ProjectQuota | UnsetType = UNSET
    allowed_ips: AllowedIps | UnsetType = UNSET
    enable_logical_replication: bool | UnsetType = UNSET
    """True to set ``wal_level=logical`` on all computes. Once enabled, it cannot be disabled."""
    maintenance_window: MaintenanceWindow | UnsetType = UNSET
    block_public_connections: bool | UnsetType = UNSET
    """True to reject connections from the public internet."""
    block_vpc_connections: bool | UnsetType = UNSET
    """True to reject connections through VPC endpoints."""
    audit_log_level: AuditLogLevel | UnsetType = UNSET
    hipaa: bool | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class DefaultEndpointSettings(Model, kw_only=True):
    """The default settings of new computes of a project."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    """The smallest size, in compute units, at least 0.25."""
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    """The largest size, in compute units."""
    suspend_timeout_seconds: int | UnsetType = UNSET
    """The idle time before Neon suspends a compute, in seconds, at most 604800. 0 means Neon's
    default, and -1 means never."""


class ProjectOwner(Model, kw_only=True):
    """The account that owns a project."""

    email: str | None = None
    name: str | None = None
    branches_limit: int | None = None
    subscription_type: SubscriptionType | None = None


class ProjectPermissionLevel(OpenEnum):
    """The caller's permissions for a project."""

    VIEWER = "VIEWER"
    EDITOR = "EDITOR"
    ADMIN = "ADMIN"


class Project(Model, kw_only=True):
    """A project. ``projects.get`` returns more fields than ``projects.list``.

    The usage fields count from the start of the billing period. Neon updates them with a delay.
    """

    id: str
    name: str
    platform_id: str
    """The cloud provider, such as ``aws``."""
    region_id: str
    provisioner: str
    pg_version: int
    """The major version of Postgres."""
    proxy_host: str
    cpu_used_sec: int
    """Deprecated by Neon: use ``compute_time_seconds``."""
    branch_logical_size_limit: int
    """The maximum logical size of a branch, in MiB."""
    created_at: Timestamp
    updated_at: Timestamp
    locked: bool | None = None
    active_time: int | None = None
    """Seconds during which computes were active; set in lists of projects."""
    active_time_seconds: int | None = None
    """Seconds during which computes were active."""
    branch_logical_size_limit_bytes: int | None = None
    compute_last_active_at: Timestamp | None = None
    compute_time_seconds: int | None = None
    """CPU seconds of all computes, including deleted computes."""
    consumption_period_end: Timestamp | None = None
    consumption_period_start: Timestamp | None = None
    creation_source: str | None = None
    data_storage_bytes_hour: int | None = None
    """Storage, in byte-hours."""
    data_transfer_bytes: int | None = None
    """Data sent to clients, in bytes."""
    default_endpoint_settings: DefaultEndpointSettings | None = None
    deleted_at: Timestamp | None = None
    effective_project_permission: ProjectPermissionLevel | None = None
    hipaa_enabled_at: Timestamp | None = None
    history_retention_seconds: int | None = None
    """How long Neon keeps the history of all branches, in seconds."""
    maintenance_scheduled_for: Timestamp | None = None
    maintenance_starts_at: Timestamp | None = None
    """The time at which the project enters maintenance mode."""
    org_id: str | None = None
    org_name: str | None = None
    owner: ProjectOwner | None = None
    owner_id: str | None = None
    quota_reset_at: Timestamp | None = None
    """Deprecated by Neon: use ``consumption_period_end``."""
    recoverable_until: Timestamp | None = None
    """The time until which a deleted project can be recovered."""
    settings: ProjectSettings | None = None
    store_passwords: bool | None = None
    """True if Neon stores the passwords of roles, and can return them."""
    synthetic_storage_size: int | None = None
    """Data and write-ahead log of all branches, in bytes."""
    written_data_bytes: int | None = None
    """Write-ahead log of all branches, in bytes."""


class ProjectBranchSpec(Model, kw_only=True):
    """The default branch of a new project, with its role and its database."""

    name: str | UnsetType = UNSET
    role_name: str | UnsetType = UNSET
    database_name: str | UnsetType = UNSET
    annotations: dict[str, str] | UnsetType = UNSET


class ProjectChanges(TypedDict, total=False):
    """The settings of a project that can be changed; see :meth:`neon.projects.update`."""

    name: str | UnsetType
    settings: ProjectSettings | UnsetType
    default_endpoint_settings: DefaultEndpointSettings | UnsetType
    history_retention_seconds: int | UnsetType
    """How long Neon keeps the history of branches, in seconds, 0 to 2592000 (30 days)."""


class NewProject(ProjectChanges, total=False):
    """The settings of a new project; see :meth:`neon.projects.create`."""

    org_id: str | UnsetType
    region_id: str | UnsetType
    pg_version: int | UnsetType
    """The major version of Postgres."""
    provisioner: str | UnsetType
    branch: ProjectBranchSpec | UnsetType
    autoscaling_limit_min_cu: float | UnsetType
    """The smallest size of the compute, in compute units."""
    autoscaling_limit_max_cu: float | UnsetType
    """The largest size of the compute, in compute units."""
    store_passwords: bool | UnsetType


class ProjectCreated(BranchCreated, kw_only=True):
    """A new project, with its default branch and the records created with it."""

    project: Project


class ProjectUpdated(OperationsResponse, kw_only=True):
    """A project, and the operations that change it."""

    project: Project


class ProjectDeleted(OperationsResponse, kw_only=True):
    """A deleted project. ``operations`` is empty if Neon reports none."""

    project: Project
    operations: list[Operation] = []


class ProjectRecovered(OperationsResponse, kw_only=True):
    """A recovered project. ``operations`` is empty if Neon reports none."""

    project: Project
    branches: list[Branch] = []
    operations: list[Operation] = []


class ProjectResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}``."""

    project: Project


class Application(OpenEnum):
    """An application that is connected to a project."""

    VERCEL = "vercel"
    GITHUB = "github"
    DATADOG = "datadog"
    OPENTELEMETRY = "opentelemetry"


class ProjectsPage(Model, kw_only=True):
    """A page of ``GET /projects`` or ``GET /projects/shared``."""

    projects: list[Project]
    pagination: Pagination | None = None
    unavailable_project_ids: list[str] = []
    """Projects that Neon could not read within the ``timeout`` of the request."""
    applications: dict[str, list[Application]] = {}
    """The applications of each project, by project id."""
    integrations: dict[str, list[Application]] = {}
    """The integrations of each project, by project id."""


class AvailablePreloadLibrary(Model, kw_only=True):
    """A library that Postgres can load at startup."""

    library_name: str
    description: str | None = None
    is_default: bool | None = None
    """True if computes load the library by default."""
    is_experimental: bool | None = None
    version: str | None = None


class AvailablePreloadLibrariesResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/available_preload_libraries``."""

    libraries: list[AvailablePreloadLibrary] = []


class ProjectPermission(Model, kw_only=True):
    """A user's permission to access a project."""

    id: str
    granted_to_email: str
    granted_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class ProjectPermissionsResponse(Model, kw_only=True):
    """A response that lists the permissions of a project."""

    project_permissions: list[ProjectPermission]


class ProjectRole(OpenEnum):
    """An organization member's role on a project."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class ProjectMemberGrantSource(OpenEnum):
    """The source of a member's permissions for a project.

    ``explicit`` permissions were granted for the project. ``unassigned`` means that the member has
    none. All other permissions come with the member's role in the organization.
    """

    EXPLICIT = "explicit"
    ORG_ROLE_DEFAULT = "org_role_default"
    ORG_ADMIN_OVERRIDE = "org_admin_override"
    UNASSIGNED = "unassigned"


class ProjectMemberPermissions(Model, kw_only=True):
    """An organization member's permissions for a project."""

    member_id: str
    """The membership's id. The user's id is ``user_id``."""
    user_id: str
    org_role: MemberRole
    """The role in the organization."""
    email: str | None = None
    name: str | None = None
    project_role: ProjectRole | None = None
    """The role on the project."""
    org_default_project_permission: ProjectPermissionLevel | None = None
    """The permissions that come with ``org_role``."""
    explicit_project_permission: ProjectPermissionLevel | None = None
    """The permissions that were granted for the project."""
    effective_project_permission: ProjectPermissionLevel | None = None
    """The permissions that are in effect."""


class ProjectMember(ProjectMemberPermissions, kw_only=True):
    """A member of the organization that owns a project, and the member's permissions."""

    grant_source: ProjectMemberGrantSource | None = None
    """The source of ``effective_project_permission``."""


class ProjectMemberUpdated(ProjectMemberPermissions, kw_only=True):
    """A member whose role on a project was set or removed."""

    project_id: str
    credential_rotation_recommended: bool | None = None
    """True if the member may know database passwords, which you should reset."""
    org_api_key_rotation_recommended: bool | None = None
    """True if the member has created keys for the project, which you should revoke."""


class ProjectMembersPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/members``."""

    project_members: list[ProjectMember]
    pagination: Pagination | None = None


class TransferRequest(Model, kw_only=True):
    """An offer to transfer a project to another account."""

    id: str
    """The id that the recipient needs to accept the offer. Anyone who knows it can take over the
    project."""
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
