"""The API's records, with the fields that pages show."""

import msgspec

from neonctl_local.console import states


class Pagination(msgspec.Struct, frozen=True):
    """The cursor of the next page."""

    cursor: str = ""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A project."""

    id: str
    name: str
    region_id: str
    pg_version: int
    created_at: str
    owner_id: str
    history_retention_seconds: int = 0
    store_passwords: bool = True
    deleted_at: str | None = None
    recoverable_until: str | None = None


class Projects(msgspec.Struct, frozen=True):
    """A page of projects."""

    projects: list[Project]
    pagination: Pagination = Pagination()


class ProjectFound(msgspec.Struct, frozen=True):
    """The response to a request for a project."""

    project: Project


class Region(msgspec.Struct, frozen=True):
    """A region in which a project can be created."""

    region_id: str
    name: str
    default: bool


class Regions(msgspec.Struct, frozen=True):
    """All regions."""

    regions: list[Region]


class StartedOperation(msgspec.Struct, frozen=True):
    """An operation that a request has started."""

    id: str
    action: str


class Started(msgspec.Struct, frozen=True):
    """The response to a request that starts operations."""

    operations: list[StartedOperation]


class ProjectCreated(Started, frozen=True):
    """The response to the creation of a project."""

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

    @property
    def label(self) -> str:
        """The state, as pages show it."""
        return states.branch_state(self.current_state, self.pending_state)


class BranchFound(msgspec.Struct, frozen=True):
    """The response to a request for a branch."""

    branch: Branch


class Database(msgspec.Struct, frozen=True):
    """A database of a branch."""

    name: str
    owner_name: str
    created_at: str


class Databases(msgspec.Struct, frozen=True):
    """All databases of a branch."""

    databases: list[Database]


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """A role of a branch. ``password`` is set in the response that creates it."""

    name: str
    created_at: str
    authentication_method: str
    password: str | None = None

    @property
    def can_log_in(self) -> bool:
        """True if the role has a password."""
        return self.authentication_method != "no_login"

    def __repr__(self) -> str:
        """Return a string without the password."""
        return f"<Role {self.name}>"


class Roles(msgspec.Struct, frozen=True):
    """All roles of a branch."""

    roles: list[Role]


class RoleChanged(Started, frozen=True):
    """The response to the creation of a role, or to a reset of its password."""

    role: Role


class Password(msgspec.Struct, frozen=True):
    """The password of a role."""

    password: str

    def __repr__(self) -> str:
        """Return a string without the password."""
        return "<Password>"


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A compute, which the API calls an endpoint."""

    id: str
    branch_id: str
    type: str
    current_state: str
    autoscaling_limit_min_cu: float
    autoscaling_limit_max_cu: float
    suspend_timeout_seconds: int
    disabled: bool = False
    pending_state: str | None = None
    name: str | None = None
    last_active: str | None = None

    @property
    def label(self) -> str:
        """The state, as pages show it."""
        return states.compute_state(self.current_state, self.pending_state)

    @property
    def is_running(self) -> bool:
        """True if the compute is active or starting."""
        return (self.pending_state or self.current_state) == "active"

    @property
    def size(self) -> str:
        """The size, or the limits of the size, in compute units."""
        smallest, largest = self.autoscaling_limit_min_cu, self.autoscaling_limit_max_cu
        if smallest == largest:
            return f"{smallest:g} CU"
        return f"{smallest:g} to {largest:g} CU"


class EndpointFound(msgspec.Struct, frozen=True):
    """The response to a request for a compute."""

    endpoint: Endpoint


class Endpoints(msgspec.Struct, frozen=True):
    """The computes of a branch."""

    endpoints: list[Endpoint]


class BranchChanged(msgspec.Struct, frozen=True):
    """A branch after a request, and the operations that the request started."""

    branch: Branch
    operations: list[StartedOperation] = []


class EndpointChanged(msgspec.Struct, frozen=True):
    """A compute after a request, and the operations that the request started."""

    endpoint: Endpoint
    operations: list[StartedOperation] = []


class ConnectionUri(msgspec.Struct, frozen=True):
    """A connection URI, which includes the password."""

    uri: str

    def __repr__(self) -> str:
        """Return a string without the URI."""
        return "<ConnectionUri>"
