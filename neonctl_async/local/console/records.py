"""The fields of API records that pages show."""

import msgspec


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project in a list."""

    id: str
    name: str
    region_id: str
    pg_version: int
    created_at: str
    org_id: str | None = None


class Pagination(msgspec.Struct, frozen=True):
    """The cursor of the next page."""

    cursor: str = ""


class Projects(msgspec.Struct, frozen=True):
    """A page of projects."""

    projects: list[Project]
    pagination: Pagination = Pagination()


class ProjectCreated(msgspec.Struct, frozen=True):
    """The response to the creation of a project."""

    project: Project


class ProjectFound(msgspec.Struct, frozen=True):
    """The response to a request for a project."""

    project: Project


class Creator(msgspec.Struct, frozen=True):
    """The person who created a branch."""

    name: str = ""


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """A branch."""

    id: str
    project_id: str
    name: str
    current_state: str
    created_at: str
    default: bool
    protected: bool
    pending_state: str | None = None
    parent_id: str | None = None
    parent_lsn: str | None = None
    parent_timestamp: str | None = None
    logical_size: int | None = None
    expires_at: str | None = None
    last_reset_at: str | None = None
    init_source: str = ""
    restored_from: str | None = None
    created_by: Creator = Creator()


class BranchFound(msgspec.Struct, frozen=True):
    """The response to a request for a branch."""

    branch: Branch


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A compute, which the API calls endpoint."""

    id: str
    branch_id: str
    type: str
    current_state: str
    autoscaling_limit_min_cu: float
    autoscaling_limit_max_cu: float
    suspend_timeout_seconds: int
    disabled: bool
    created_at: str
    pending_state: str | None = None
    name: str | None = None
    last_active: str | None = None
    started_at: str | None = None
    suspended_at: str | None = None


class EndpointFound(msgspec.Struct, frozen=True):
    """The response to a request for a compute."""

    endpoint: Endpoint


class Endpoints(msgspec.Struct, frozen=True):
    """The computes of a branch."""

    endpoints: list[Endpoint]


class StartedOperation(msgspec.Struct, frozen=True):
    """An operation that a request started."""

    action: str


class BranchChanged(msgspec.Struct, frozen=True):
    """A branch after a request, and the operations that the request started."""

    branch: Branch
    operations: list[StartedOperation] = []


class EndpointChanged(msgspec.Struct, frozen=True):
    """A compute after a request, and the operations that the request started."""

    endpoint: Endpoint
    operations: list[StartedOperation] = []


class Named(msgspec.Struct, frozen=True):
    """A database or a role."""

    name: str


class Databases(msgspec.Struct, frozen=True):
    """The databases of a branch."""

    databases: list[Named]


class Roles(msgspec.Struct, frozen=True):
    """The roles of a branch."""

    roles: list[Named]
