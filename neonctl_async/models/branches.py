"""Branches of a project, the schemas of their databases, and their anonymization."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypeAlias, TypedDict

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import ConnectionDetails, Database
from neonctl_async.models.endpoints import Endpoint, EndpointSpec
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.roles import Role

InitSource: TypeAlias = Literal["parent-data", "schema-only"]
"""What a new branch contains: the data of its parent, or only the schema."""


class BranchContents(TypedDict, total=False):
    """The settings of every call that creates a branch. Neon chooses values for unset settings."""

    init_source: InitSource | UnsetType
    """``parent-data`` or ``schema-only``."""
    endpoints: Sequence[EndpointSpec]
    """The computes to create with the branch."""


class EphemeralSettings(BranchContents, total=False):
    """The settings of a branch for a single block or test; see :meth:`neon.branches.ephemeral`."""

    parent_id: str | UnsetType
    """The id of the parent, by default the default branch."""
    parent_lsn: str | UnsetType
    """The log sequence number of an earlier state of the parent."""
    parent_timestamp: datetime | UnsetType
    """The time of an earlier state of the parent."""


class EnsureSettings(BranchContents, total=False):
    """The settings of a branch that may exist already; see :meth:`neon.branches.ensure`."""

    protected: bool | UnsetType
    """True to protect the branch from deletion and resets."""
    expires_at: datetime | UnsetType
    """The time at which Neon deletes the branch, rounded down to the second."""
    annotation_value: Mapping[str, str] | UnsetType
    """Key-value notes."""


class NewBranch(EphemeralSettings, EnsureSettings, total=False):
    """The settings of a new branch; see :meth:`neon.branches.create`."""

    name: str | UnsetType
    archived: bool | UnsetType
    """True to archive the branch at once."""


class BranchCreator(Model, kw_only=True):
    """The user, organization or integration that created a branch."""

    name: str | None = None
    image: str | None = None
    """The URL of the creator's picture."""


class BranchRestrictedAction(Model, kw_only=True):
    """An action that Neon does not allow on a branch, with the reason."""

    name: str
    reason: str


class DeletionMethod(OpenEnum):
    """The cause of a deletion: a request (``user``) or the branch's expiry (``ttl``)."""

    USER = "user"
    TTL = "ttl"


class BranchRecovery(Model, kw_only=True):
    """The period during which a deleted branch can be recovered."""

    deleted_at: Timestamp
    recoverable_until: Timestamp
    deletion_method: DeletionMethod | None = None


class AnnotationObject(Model, kw_only=True):
    """The object that an annotation belongs to."""

    type: str
    """The kind of the object, such as ``branch``."""
    id: str


class Annotation(Model, kw_only=True):
    """Key-value notes that are attached to an object."""

    object: AnnotationObject
    value: dict[str, str]
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class Branch(Model, kw_only=True):
    """A branch of a project."""

    id: str
    project_id: str
    name: str
    current_state: str
    """``init`` while Neon creates the branch, then ``ready``; ``archived`` in archival storage."""
    created_at: Timestamp
    updated_at: Timestamp
    default: bool = False
    protected: bool = False
    primary: bool | None = None
    """Deprecated by Neon: use ``default``."""
    parent_id: str | None = None
    """The id of the parent branch; None for a root branch."""
    parent_lsn: str | None = None
    """The log sequence number in the parent's history at which the branch starts."""
    parent_timestamp: Timestamp | None = None
    """The time in the parent's history at which the branch starts."""
    pending_state: str | None = None
    """The state that the branch is changing to, if any."""
    state_changed_at: Timestamp | None = None
    logical_size: int | None = None
    """The size of the data, in bytes."""
    creation_source: str | None = None
    cpu_used_sec: int | None = None
    """CPU seconds of all the branch's computes, including deleted computes."""
    compute_time_seconds: int | None = None
    """CPU seconds."""
    active_time_seconds: int | None = None
    """Seconds during which computes of the branch were active."""
    written_data_bytes: int | None = None
    data_transfer_bytes: int | None = None
    """Data sent from the branch to clients, in bytes."""
    ttl_interval_seconds: int | None = None
    """The lifetime of the branch, in seconds, if it expires."""
    expires_at: Timestamp | None = None
    """The time at which Neon deletes the branch."""
    last_reset_at: Timestamp | None = None
    created_by: BranchCreator | None = None
    init_source: str | None = None
    """``parent-data`` or ``schema-only``."""
    restore_status: str | None = None
    """The progress of a restore from a snapshot."""
    restored_from: str | None = None
    """The id of the snapshot or branch that the branch was restored from."""
    restored_as: str | None = None
    """The id of the branch that the restored branch replaces."""
    restricted_actions: list[BranchRestrictedAction] | None = None
    recovery: BranchRecovery | None = None
    """Set for deleted branches that can be recovered."""
    annotation: Annotation | None = None
    """The annotation of the branch. Neon sends it next to the record, not in it."""


class BranchCreated(OperationsResponse, kw_only=True):
    """A new branch, with the computes, roles and databases that were created with it."""

    branch: Branch
    endpoints: list[Endpoint] = []
    roles: list[Role] = []
    databases: list[Database] = []
    connection_uris: list[ConnectionDetails] = []
    """A list that contains the URI of the database; empty if the branch has no compute.

    Neon leaves the URIs out if the branch has more than one role or database. A call that waits for
    the branch then requests the URI of the first database.
    """

    @property
    def connection_uri(self) -> ConnectionUri:
        """The first of the ``connection_uris``, including the password.

        Raises LookupError, with the reason, if the list is empty.
        """
        if not self.connection_uris:
            reason = (
                "Neon leaves them out if the parent has more than one role or database: call "
                "branches.connection_uri() with database_name and role_name"
                if self.endpoints
                else "it has no compute: create it with endpoints=, or call "
                "branches.connection_uri() when it has one"
            )
            raise LookupError(
                f"the response contains no connection URI of branch {self.branch.id}, because "
                f"{reason}"
            )
        return self.connection_uris[0].connection_uri


class EnsuredBranch(OperationsResponse, kw_only=True):
    """A branch that exists with the requested settings.

    ``operations`` are the operations that create the branch or, for an adopted branch, those that
    were still pending or had failed.
    """

    branch: Branch
    created: bool
    """True if a response confirmed that this call created the branch."""
    endpoints: list[Endpoint] = []
    """The computes, in the requested order; empty if the call did not request any."""
    connection_uris: list[ConnectionDetails] = []
    """The URIs from the response that created the branch; empty for an adopted branch."""


class BranchUpdated(OperationsResponse, kw_only=True):
    """A branch, and the operations that change it."""

    branch: Branch


class BranchRecovered(Model, kw_only=True):
    """A recovered branch with its computes."""

    branch: Branch
    endpoints: list[Endpoint] = []


class BranchDeleted(OperationsResponse, kw_only=True):
    """The response to the deletion of a branch. Both fields are empty after a 204 response."""

    branch: Branch | None = None
    operations: list[Operation] = []


class KeptBranch(Model, kw_only=True):
    """A branch that was not deleted, and the reason."""

    branch: Branch
    reason: str


class FailedDeletion(Model, kw_only=True):
    """A branch whose deletion failed."""

    branch: Branch
    error: str
    """The message of the error."""
    status: int | None = None
    """The HTTP status of the response; None if no response arrived."""
    maybe_deleted: bool = False
    """True if Neon may have deleted the branch."""


class PruneReport(OperationsResponse, kw_only=True):
    """The result of ``neon.branches.prune``. ``operations`` carry out the deletions."""

    applied: bool
    """False for a dry run, which deletes nothing."""
    deleted: list[Branch]
    """The deleted branches, children before their parents. In a dry run, the branches that would be
    deleted."""
    kept: list[KeptBranch]
    """The branches that were kept although their names match or, without name criteria, although
    they meet another criterion. With ``report_all``, every branch that was kept."""
    failed: list[FailedDeletion] = []
    not_found: list[str] = []
    """The values of ``names`` that do not match any branch of the project."""


class BranchResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/branches/{branch_id}``."""

    branch: Branch
    annotation: Annotation | None = None


class BranchesPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/branches``."""

    branches: list[Branch]
    annotations: dict[str, Annotation] = {}
    """The annotations of the branches, by branch id."""
    pagination: Pagination | None = None


class BranchesCount(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/branches/count``."""

    count: int


class ColumnSchema(Model, kw_only=True):
    """A column of a table."""

    name: str
    type: str
    """The Postgres type, such as ``bigint``."""
    nullable: bool | None = None
    generated: bool | None = None


class ReferencedTable(Model, kw_only=True):
    """The table and columns that a foreign key refers to."""

    schema: str
    table: str
    columns: list[str]


class TableConstraint(Model, kw_only=True):
    """A constraint of a table."""

    type: str
    """``primary_key``, ``unique`` or ``foreign_key``."""
    columns: list[str]
    name: str | None = None
    referenced_table: ReferencedTable | None = None
    """The target of a foreign key, otherwise None."""


class TableSchema(Model, kw_only=True):
    """A table with its columns and constraints."""

    schema: str
    name: str
    columns: list[ColumnSchema]
    constraints: list[TableConstraint] = []


class DatabaseSchema(Model, kw_only=True):
    """The schema of a database as a list of tables."""

    tables: list[TableSchema]


class BranchSchema(Model, kw_only=True):
    """The schema of a database on a branch, in the requested format; the other field is None."""

    sql: str | None = None
    """The SQL statements that create the schema."""
    json: DatabaseSchema | None = None


class BranchSchemaComparison(Model, kw_only=True):
    """The difference between two schemas."""

    diff: str | None = None
    """A unified diff; empty or None if the schemas are equal."""


class MaskingRule(Model, kw_only=True):
    """A rule that masks a column, either with a function or with a literal value."""

    database_name: str
    schema_name: str
    table_name: str
    column_name: str
    masking_function: str | UnsetType = UNSET
    """A function of the PostgreSQL Anonymizer extension."""
    masking_value: str | UnsetType = UNSET
    """The value that replaces every value of the column."""


class MaskingRulesResponse(Model, kw_only=True):
    """A response that contains the masking rules of a branch."""

    masking_rules: list[MaskingRule]


class AnonymizationRun(Model, kw_only=True):
    """One run of an anonymization."""

    started_at: Timestamp | None = None
    completed_at: Timestamp | None = None
    triggered_by: str | None = None
    """The id of the user who started the run."""
    triggered_by_username: str | None = None
    masked_columns: int | None = None
    """The number of masked columns."""


class AnonymizedBranchStatus(Model, kw_only=True):
    """The progress of a branch's anonymization."""

    project_id: str
    branch_id: str
    state: str
    """One of ``created``, ``initialized``, ``initialization_error``, ``anonymizing``,
    ``anonymized`` and ``error``."""
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    status_message: str | None = None
    failed_at: Timestamp | None = None
    last_run: AnonymizationRun | None = None
