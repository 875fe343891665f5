"""The rows of the tables in ``migrations``, one Struct per table. Times are instants."""

from typing import ClassVar, Final, Literal

import msgspec

from neonctl_local.clock import SECOND, Instant
from neonctl_local.ids import KeyKind, password
from neonctl_local.storage.rows import Row

MemberRole = Literal["admin", "member"]
DeletionMethod = Literal["user", "ttl"]

NEVER: Final[Instant] = 200_000_000_000 * SECOND
"""A time after every other time, in the year 8307. SQLite can still add a duration to it."""

FINISHED = "finished"
NOT_STARTED = "not started: the operation before it did not finish"


class User(Row, frozen=True):
    """A person with an account."""

    table: ClassVar[str] = "users"

    id: str
    name: str
    email: str
    created_at: Instant


class Organization(Row, frozen=True):
    """An organization."""

    table: ClassVar[str] = "organizations"

    id: str
    name: str
    created_at: Instant
    updated_at: Instant


class Member(Row, frozen=True):
    """A user in an organization."""

    table: ClassVar[str] = "members"

    id: str
    org_id: str
    user_id: str
    role: MemberRole
    joined_at: Instant


class Invitation(Row, frozen=True):
    """An invitation of an email address to an organization.

    It is pending until it is accepted or revoked, or until it expires. ``digest`` is the SHA-256 of
    the secret that accepts it, or empty until a secret is created.
    """

    table: ClassVar[str] = "invitations"

    id: str
    org_id: str
    email: str
    role: MemberRole
    invited_by: str
    invited_at: Instant
    expires_at: Instant
    accepted_at: Instant | None = None
    revoked_at: Instant | None = None
    digest: bytes = b""


class SpendingLimit(Row, frozen=True):
    """The monthly spending limit of an organization. ``id`` is the id of the organization."""

    table: ClassVar[str] = "spending_limits"

    id: str
    cents: int


class ApiKey(Row, frozen=True):
    """An API key. ``user_id`` owns a personal key, ``org_id`` every other key."""

    table: ClassVar[str] = "api_keys"

    id: int
    kind: KeyKind
    name: str
    locator: str
    digest: bytes
    created_at: Instant
    created_by: str
    user_id: str | None
    org_id: str | None
    project_id: str | None
    last_used_at: Instant | None = None
    last_used_from: str = ""
    ended_at: Instant | None = None


class Project(Row, frozen=True):
    """A project that belongs to a user or an organization.

    ``settings`` and ``default_endpoint_settings`` are JSON.
    """

    table: ClassVar[str] = "projects"

    id: str
    name: str
    user_id: str | None
    org_id: str | None
    region_id: str
    provisioner: str
    pg_version: int
    store_passwords: bool
    history_retention_seconds: int
    settings: str
    default_endpoint_settings: str
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None = None
    detach_at: Instant | None = None
    detached: bool = False


class Permission(Row, frozen=True):
    """The permission for the owner of an email address to use a project."""

    table: ClassVar[str] = "permissions"

    id: str
    project_id: str
    email: str
    granted_at: Instant
    revoked_at: Instant | None = None


class TransferRequest(Row, frozen=True):
    """A request to transfer a project, open until it expires or the project is moved or deleted.

    ``user_id`` is the user who created it, or None if an organization's key did. ``key_id`` is the
    key that created it, or None if the console did.
    """

    table: ClassVar[str] = "transfer_requests"

    id: str
    project_id: str
    user_id: str | None
    created_at: Instant
    expires_at: Instant
    ended_at: Instant | None = None
    key_id: int | None = None


class Jwks(Row, frozen=True):
    """The URL of an authentication provider's public keys. ``role_names`` is JSON."""

    table: ClassVar[str] = "jwks"

    id: str
    project_id: str
    branch_id: str | None
    jwks_url: str
    provider_name: str
    jwt_audience: str | None
    role_names: str
    created_at: Instant
    updated_at: Instant


class VpcEndpoint(Row, frozen=True):
    """A VPC endpoint of an organization. A deleted VPC endpoint cannot be added again."""

    table: ClassVar[str] = "vpc_endpoints"

    id: int
    org_id: str
    region_id: str
    vpc_endpoint_id: str
    label: str
    deleted_at: Instant | None = None


class VpcRestriction(Row, frozen=True):
    """A VPC endpoint from which a project accepts connections."""

    table: ClassVar[str] = "vpc_restrictions"

    id: int
    project_id: str
    vpc_endpoint_id: str
    label: str


class Branch(Row, frozen=True):
    """A branch. Its state is ``state_before`` until ``state_at``, then ``state``.

    ``state_operation`` is the id of the operation that changes the state, while its end is not
    known. ``logical_size`` is in bytes, or None if it has not been measured yet.
    ``ttl_interval_seconds`` is the time between setting ``expires_at`` and the expiry.
    """

    table: ClassVar[str] = "branches"

    id: str
    project_id: str
    name: str
    created_by: str
    created_at: Instant
    updated_at: Instant
    state_at: Instant
    state_before: str = "init"
    state: str = "init"
    state_operation: str | None = None
    logical_size: int | None = None
    parent_id: str | None = None
    parent_lsn: str | None = None
    parent_timestamp: Instant | None = None
    is_default: bool = False
    protected: bool = False
    init_source: str = "parent-data"
    annotation: str = "{}"
    expires_at: Instant | None = None
    ttl_interval_seconds: int | None = None
    last_reset_at: Instant | None = None
    restored_from: str | None = None
    restored_as: str | None = None
    restore_status: str | None = None
    backup_schedule: str = "[]"
    check_at: Instant | None = None
    archive_at: Instant | None = None
    deleted_at: Instant | None = None
    deletion_method: DeletionMethod | None = None
    recoverable_until: Instant | None = None


class AnonymizedBranch(Row, frozen=True):
    """The anonymization of a branch. ``creation`` and ``run`` are ids of operations."""

    table: ClassVar[str] = "anonymized_branches"

    id: str
    masking_rules: str
    created_at: Instant
    updated_at: Instant
    creation: str
    run: str | None = None
    triggered_by: str | None = None
    masked_columns: int = 0


class Snapshot(Row, frozen=True):
    """A snapshot of a branch. ``content`` contains its roles, databases and Neon Auth, as JSON.

    ``creation`` is the id of the operation that takes the snapshot, while the end of the operation
    is not known. ``full_size`` is the size of the snapshot's data in bytes.
    """

    table: ClassVar[str] = "snapshots"

    id: str
    project_id: str
    source_branch_id: str
    name: str
    lsn: str
    timestamp: Instant | None
    content: str
    taken: bool
    created_at: Instant
    expires_at: Instant | None
    deleted_at: Instant | None = None
    creation: str | None = None
    slug: str = ""
    full_size: int = 0


class Endpoint(Row, frozen=True):
    """A compute. Its state is stored like that of a branch. It is suspended at ``idle_at``.

    ``running_on`` is the id of the branch with the Postgres server that the compute uses, or None
    if it uses no server. ``used_at`` is the time of the last query, if that is known.
    """

    table: ClassVar[str] = "endpoints"

    id: str
    project_id: str
    branch_id: str
    name: str | None
    type: str
    region_id: str
    provisioner: str
    autoscaling_limit_min_cu: float
    autoscaling_limit_max_cu: float
    suspend_timeout_seconds: int
    settings: str
    pooler_enabled: bool
    disabled: bool
    passwordless_access: bool
    created_at: Instant
    updated_at: Instant
    state_before: str
    state: str
    state_at: Instant
    state_operation: str | None = None
    running_on: str | None = None
    used_at: Instant | None = None
    started_at: Instant | None = None
    suspended_at: Instant | None = None
    idle_at: Instant | None = None
    deleted_at: Instant | None = None
    deleted_with_branch: bool = False


class Role(Row, frozen=True):
    """A Postgres role of a branch. The table contains the seed of the password.

    ``verifier`` replaces the seed if the password was set with SQL. It is an empty string if the
    role has no password.
    """

    table: ClassVar[str] = "roles"

    id: int
    branch_id: str
    name: str
    password_seed: str
    no_login: bool
    protected: bool
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None = None
    verifier: str | None = None

    @property
    def password(self) -> str | None:
        """The password of the role, or None if it was set with SQL."""
        return password(self.password_seed) if self.verifier is None else None

    @property
    def password_or_verifier(self) -> str:
        """The password, or its verifier if it was set with SQL."""
        return password(self.password_seed) if self.verifier is None else self.verifier


class Database(Row, frozen=True):
    """A Postgres database of a branch.

    ``former_names`` is a JSON list, oldest first, of names, each with the time until which the
    database had this name in Postgres, or with null if it may still have it.
    """

    table: ClassVar[str] = "databases"

    id: int
    branch_id: str
    name: str
    owner_name: str
    created_at: Instant
    updated_at: Instant
    deleted_at: Instant | None = None
    former_names: str = "[]"


class OperationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The times at which an operation changes, and its outcome, set when it is created.

    ``settles_at`` is the time at which the operation reaches its terminal status. Until real work
    is done, this time is not known, and ``settles_at`` is :data:`NEVER` or later.
    """

    created_at: Instant
    starts_at: Instant
    ends_at: Instant
    settles_at: Instant
    outcome: str
    retry_at: Instant | None = None
    error: str | None = None

    @property
    def succeeds(self) -> bool:
        """True if the operation finishes successfully."""
        return self.outcome == FINISHED

    @property
    def runs(self) -> bool:
        """True if the operation starts, False if the operation before it has failed."""
        return self.error != NOT_STARTED

    @property
    def is_open(self) -> bool:
        """True if the end of the operation is not known yet."""
        return self.settles_at >= NEVER


class Operation(Row, OperationPlan, frozen=True, kw_only=True):
    """An operation with its plan and its position in the list of its project.

    - ``position``: the creation time, increased by microseconds until it is unique.
    - ``duration``: the planned duration, in microseconds.
    - ``failure``: the planned failure, as JSON.
    - ``after_id``: the id of the operation before it in the same request, if the end of that
      operation was not known when this one was created.
    - ``work``: the real work, as JSON.
    - ``undo``: the state to go back to if the operation fails, as JSON.
    """

    table: ClassVar[str] = "operations"

    id: str
    project_id: str
    branch_id: str | None
    endpoint_id: str | None
    action: str
    position: Instant
    duration: int = 0
    failure: str | None = None
    after_id: str | None = None
    work: str | None = None
    undo: str | None = None

    @property
    def open_id(self) -> str | None:
        """The id of the operation while its end is not known, and None afterwards."""
        return self.id if self.is_open else None


class PlannedFailure(Row, frozen=True):
    """A plan to make the next ``times`` operations of an action fail. ``fired`` have failed so far.

    The next ``after`` operations are skipped first. With ``branch``, the name or the id of a
    branch, only operations on that branch count.
    """

    table: ClassVar[str] = "planned_failures"

    id: int
    action: str
    times: int
    fired: int
    status: str
    error: str
    retry_after: float | None
    show_retry_at: bool = True
    branch: str | None = None
    after: int = 0


class DueEvent(Row, frozen=True):
    """Background work that is due at the time ``at``, for the object with the id ``id``."""

    table: ClassVar[str] = "due_events"

    event: str
    project_id: str
    id: str
    at: Instant
