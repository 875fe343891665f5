"""Branches of a project."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.databases import ConnectionDetails, Database
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.roles import Role
from neonctl_async.models.secret import Secret


class BranchCreator(Model, kw_only=True):
    """Who created a branch."""

    name: str | None = None
    image: str | None = None


class BranchRestrictedAction(Model, kw_only=True):
    """An action that the platform refuses on a branch, and why."""

    name: str
    reason: str


class DeletionMethod(OpenEnum):
    """Who deleted a branch: a user, or the platform at its ``expires_at``."""

    USER = "user"
    TTL = "ttl"


class BranchRecovery(Model, kw_only=True):
    """Until when a deleted branch can be recovered."""

    deleted_at: Timestamp
    recoverable_until: Timestamp
    deletion_method: DeletionMethod | None = None


class AnnotationObject(Model, kw_only=True):
    """What an annotation is of."""

    type: str
    id: str


class Annotation(Model, kw_only=True):
    """Key-value notes on an object of the platform."""

    object: AnnotationObject
    value: dict[str, str]
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Branch(Model, kw_only=True):
    """A branch. ``annotation`` comes beside the record in answers, and is put into it here.

    ``logical_size``, ``written_data_bytes`` and ``data_transfer_bytes`` are in bytes,
    ``cpu_used_sec``, ``compute_time_seconds``, ``active_time_seconds`` and
    ``ttl_interval_seconds`` in seconds.
    """

    id: str
    project_id: str
    name: str
    current_state: str
    created_at: Timestamp
    updated_at: Timestamp
    default: bool = False
    protected: bool = False
    primary: bool | None = None
    parent_id: str | None = None
    parent_lsn: str | None = None
    parent_timestamp: Timestamp | None = None
    pending_state: str | None = None
    state_changed_at: Timestamp | None = None
    logical_size: int | None = None
    creation_source: str | None = None
    cpu_used_sec: int | None = None
    compute_time_seconds: int | None = None
    active_time_seconds: int | None = None
    written_data_bytes: int | None = None
    data_transfer_bytes: int | None = None
    ttl_interval_seconds: int | None = None
    expires_at: Timestamp | None = None
    last_reset_at: Timestamp | None = None
    created_by: BranchCreator | None = None
    init_source: str | None = None
    restore_status: str | None = None
    restored_from: str | None = None
    restored_as: str | None = None
    restricted_actions: list[BranchRestrictedAction] | None = None
    recovery: BranchRecovery | None = None
    annotation: Annotation | None = None


class BranchCreated(OperationsResponse, kw_only=True):
    """A branch just created, with everything created along with it."""

    branch: Branch
    endpoints: list[Endpoint] = []
    roles: list[Role] = []
    databases: list[Database] = []
    connection_uris: list[ConnectionDetails] = []

    @property
    def connection_uri(self) -> Secret:
        """The first of ``connection_uris``, password included.

        Raises LookupError where the answer holds none, as for a branch made without a compute.
        """
        if not self.connection_uris:
            raise LookupError(
                f"the answer holds no connection URI of branch {self.branch.id}: it takes a "
                "compute, so create the branch with endpoints=, or ask projects.connection_uri()"
            )
        return self.connection_uris[0].connection_uri


class BranchUpdated(OperationsResponse, kw_only=True):
    """A branch, and the operations that change it."""

    branch: Branch


class BranchRecovered(Model, kw_only=True):
    """A branch that was deleted and is back, with its computes."""

    branch: Branch
    endpoints: list[Endpoint] = []


class BranchDeleted(OperationsResponse, kw_only=True):
    """The answer to a branch deletion. Both parts are empty where the platform answers 204."""

    branch: Branch | None = None
    operations: list[Operation] = []


class BranchResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/branches/{branch_id}``."""

    branch: Branch
    annotation: Annotation | None = None


class BranchesPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/branches``; ``annotations`` is keyed by branch id."""

    branches: list[Branch]
    annotations: dict[str, Annotation] = {}
    pagination: Pagination | None = None


class BranchesCount(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/branches/count``."""

    count: int
