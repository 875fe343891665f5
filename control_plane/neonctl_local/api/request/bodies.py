"""Request bodies and their parts.

Bodies are checked against the published description before they are decoded into these types, so
only limits that are not published appear here. Unknown fields are ignored, except when a key is
created.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from neonctl_local.api.request.decoding import EMAIL, HTTPS_URL, LSN, NAME
from neonctl_local.engine.allowed_addresses import AllowedIps

MAX_NAME_LENGTH: Final = 256
Name = Annotated[str, Meta(max_length=MAX_NAME_LENGTH, pattern=NAME)]
ProjectName = Annotated[str, Meta(max_length=64, pattern=NAME)]
PostgresName = Annotated[str, Meta(max_length=63, pattern=NAME)]
Provisioner = Literal["k8s-neonvm", "k8s-pod"]
EndpointType = Literal["read_write", "read_only"]
Timestamp = Annotated[datetime, Meta(tz=True)]
PublishedRole = Literal["admin", "member", "editor", "viewer", "collaborator"]
Email = Annotated[str, Meta(max_length=256, pattern=EMAIL)]
HttpsUrl = Annotated[str, Meta(pattern=HTTPS_URL)]
Lsn = Annotated[str, Meta(pattern=LSN)]
TimeToLive = Annotated[int, Meta(ge=1, le=31536000)]


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A request body, or a part of it."""


class KeyCreate(Body, frozen=True, forbid_unknown_fields=True):
    """A key to create.

    Unknown fields are errors: if a ``project_id`` were ignored, the key would have too much access.
    """

    key_name: Name


class OrganizationKeyCreate(KeyCreate, frozen=True, forbid_unknown_fields=True):
    """An organization's key. ``project_id`` limits it to a project."""

    project_id: str | None = None


class Quota(Body, frozen=True):
    """The consumption limits of a project."""

    active_time_seconds: int | UnsetType = UNSET
    compute_time_seconds: int | UnsetType = UNSET
    written_data_bytes: int | UnsetType = UNSET
    data_transfer_bytes: int | UnsetType = UNSET
    logical_size_bytes: int | UnsetType = UNSET


class MaintenanceWindow(Body, frozen=True):
    """The time of the week at which a project may be updated."""

    weekdays: list[int]
    start_time: str
    end_time: str


class PreloadLibraries(Body, frozen=True):
    """The libraries that Postgres loads when it starts."""

    use_defaults: bool | UnsetType = UNSET
    enabled_libraries: list[str] | UnsetType = UNSET


class ProjectSettings(Body, frozen=True):
    """The settings of a project."""

    quota: Quota | UnsetType = UNSET
    allowed_ips: AllowedIps | UnsetType = UNSET
    enable_logical_replication: bool | UnsetType = UNSET
    maintenance_window: MaintenanceWindow | UnsetType = UNSET
    block_public_connections: bool | UnsetType = UNSET
    block_vpc_connections: bool | UnsetType = UNSET
    audit_log_level: str | UnsetType = UNSET
    hipaa: bool | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class EndpointSettings(Body, frozen=True):
    """The settings of a compute."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    preload_libraries: PreloadLibraries | UnsetType = UNSET


class EndpointDefaults(Body, frozen=True):
    """The default settings of a project's new computes."""

    pg_settings: dict[str, str] | UnsetType = UNSET
    pgbouncer_settings: dict[str, str] | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    suspend_timeout_seconds: int | UnsetType = UNSET


class FirstBranch(Body, frozen=True):
    """The first branch of a new project."""

    name: Name = "main"
    role_name: PostgresName | None = None
    database_name: PostgresName = "neondb"
    annotations: dict[str, str] = {}

    @property
    def owner_name(self) -> str:
        """The name of the role that owns the database, within Postgres's limit of 63 characters."""
        return self.role_name or f"{self.database_name[:57]}_owner"


class ProjectSpec(Body, frozen=True):
    """A project to create."""

    name: ProjectName | None = None
    org_id: str | None = None
    region_id: str = "aws-us-east-2"
    pg_version: int | UnsetType = UNSET
    provisioner: Provisioner = "k8s-neonvm"
    branch: FirstBranch = FirstBranch()
    settings: ProjectSettings = ProjectSettings()
    default_endpoint_settings: EndpointDefaults = EndpointDefaults()
    autoscaling_limit_min_cu: float | None = None
    autoscaling_limit_max_cu: float | None = None
    store_passwords: bool = True
    history_retention_seconds: int = 86400


class ProjectChanges(Body, frozen=True):
    """Changes to a project."""

    name: ProjectName | UnsetType = UNSET
    settings: ProjectSettings | UnsetType = UNSET
    default_endpoint_settings: EndpointDefaults | UnsetType = UNSET
    history_retention_seconds: int | UnsetType = UNSET


class ProjectsTransfer(Body, frozen=True):
    """Projects to move to an organization. ``org_id`` is the old name of the field."""

    project_ids: list[str]
    destination_org_id: str | None = None
    org_id: str | None = None


class PermissionGrant(Body, frozen=True):
    """The email address of the user that a project is shared with."""

    email: str


class TransferRequestCreate(Body, frozen=True):
    """A transfer request to create, and its time to live in seconds."""

    ttl_seconds: TimeToLive = 86400


class TransferRequestAccept(Body, frozen=True):
    """The organization that accepts a project. The default is the account of the key."""

    org_id: str | None = None


class JwksCreate(Body, frozen=True):
    """The JWKS URL of an authentication provider, to add to a project."""

    jwks_url: HttpsUrl
    provider_name: str
    branch_id: str | None = None
    jwt_audience: str | None = None
    role_names: list[str] = []


class EndpointSpec(Body, frozen=True):
    """A compute to create together with a branch."""

    type: EndpointType
    settings: EndpointSettings = EndpointSettings()
    autoscaling_limit_min_cu: float | None = None
    autoscaling_limit_max_cu: float | None = None
    provisioner: Provisioner | None = None
    suspend_timeout_seconds: int | None = None


class NewEndpoint(EndpointSpec, frozen=True, kw_only=True):
    """A compute to create on an existing branch."""

    branch_id: str
    name: Name | None = None
    region_id: str | None = None
    pooler_enabled: bool = False
    disabled: bool = False
    passwordless_access: bool = True


class EndpointChanges(Body, frozen=True):
    """Changes to a compute."""

    branch_id: str | UnsetType = UNSET
    name: Name | UnsetType = UNSET
    settings: EndpointSettings | UnsetType = UNSET
    autoscaling_limit_min_cu: float | UnsetType = UNSET
    autoscaling_limit_max_cu: float | UnsetType = UNSET
    provisioner: Provisioner | UnsetType = UNSET
    suspend_timeout_seconds: int | UnsetType = UNSET
    pooler_enabled: bool | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    passwordless_access: bool | UnsetType = UNSET


class BranchSpec(Body, frozen=True):
    """A branch to create."""

    name: Name | None = None
    parent_id: str | None = None
    parent_lsn: Lsn | None = None
    parent_timestamp: datetime | None = None
    protected: bool = False
    archived: bool = False
    init_source: Literal["parent-data", "schema-only"] = "parent-data"
    expires_at: datetime | None = None


class BranchCreate(Body, frozen=True):
    """The body that creates a branch."""

    branch: BranchSpec = BranchSpec()
    endpoints: Annotated[list[EndpointSpec], Meta(max_length=100)] = []
    annotation_value: dict[str, str] = {}


class MaskingRule(Body, frozen=True):
    """The masking function or value of a column."""

    database_name: str
    schema_name: str
    table_name: str
    column_name: str
    masking_function: str | UnsetType = UNSET
    masking_value: str | UnsetType = UNSET


class AnonymizedBranchCreate(Body, frozen=True):
    """The body that creates an anonymized branch."""

    branch_create: BranchCreate = BranchCreate()
    annotation_value: dict[str, str] = {}
    masking_rules: list[MaskingRule] = []
    start_anonymization: bool = False


class BranchChanges(Body, frozen=True):
    """Changes to a branch. An ``expires_at`` of null removes the expiry."""

    name: Name | UnsetType = UNSET
    protected: bool | UnsetType = UNSET
    expires_at: datetime | UnsetType | None = UNSET


class BranchRestore(Body, frozen=True):
    """The source of a restore: another branch, or an earlier state of the same branch."""

    source_branch_id: str
    source_lsn: Lsn | None = None
    source_timestamp: datetime | None = None
    preserve_under_name: Name | None = None


class RoleSpec(Body, frozen=True):
    """A role to create."""

    name: PostgresName
    no_login: bool = False


class DatabaseSpec(Body, frozen=True):
    """A database to create."""

    name: PostgresName
    owner_name: str


class DatabaseChanges(Body, frozen=True):
    """Changes to a database."""

    name: PostgresName | UnsetType = UNSET
    owner_name: str | UnsetType = UNSET


class MemberUpdate(Body, frozen=True):
    """The new role of a member."""

    role: PublishedRole


class ProjectRoleSet(Body, frozen=True):
    """The role of a member on a project."""

    role: Literal["viewer", "editor", "admin"]


class SnapshotChanges(Body, frozen=True):
    """Changes to a snapshot. An ``expires_at`` of null removes the expiry."""

    name: Name | UnsetType = UNSET
    # Not in the published description. Neon's command line sends it.
    expires_at: datetime | UnsetType | None = UNSET


class SnapshotRestore(Body, frozen=True):
    """A restore to a new branch. If it is finalized, the new branch replaces the target."""

    name: Name | None = None
    target_branch_id: str | None = None
    finalize_restore: bool = False


class FinalizeRestore(Body, frozen=True):
    """The body that finalizes a restore. ``name`` is the new name of the replaced branch."""

    name: Name | None = None


class ScheduleItem(Body, frozen=True):
    """The time of regular snapshots, and their retention in seconds."""

    frequency: Literal["daily", "weekly", "monthly"]
    hour: int | UnsetType = UNSET
    day: int | UnsetType = UNSET
    month: int | UnsetType = UNSET
    retention_seconds: int | UnsetType = UNSET
