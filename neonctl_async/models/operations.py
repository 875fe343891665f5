"""Operations: records of the work that Neon does on a project."""

from collections.abc import Sequence

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp


class OperationAction(OpenEnum):
    """The kind of work that an operation does. Unknown actions are kept unchanged."""

    APPLY_CONFIG = "apply_config"
    APPLY_SCHEMA_FROM_BRANCH = "apply_schema_from_branch"
    APPLY_STORAGE_CONFIG = "apply_storage_config"
    CHECK_AVAILABILITY = "check_availability"
    CREATE_BRANCH = "create_branch"
    CREATE_COMPUTE = "create_compute"
    CREATE_TIMELINE = "create_timeline"
    DELETE_TENANT = "delete_tenant"
    DELETE_TIMELINE = "delete_timeline"
    DETACH_PARENT_BRANCH = "detach_parent_branch"
    DISABLE_MAINTENANCE = "disable_maintenance"
    EPC_SYNC = "epc_sync"
    FINALIZE_MIGRATION = "finalize_migration"
    IMPORT_DATA = "import_data"
    MARK_MIGRATION_PREPARED = "mark_migration_prepared"
    PREPARE_SECONDARY_PAGESERVER = "prepare_secondary_pageserver"
    PREWARM_REPLICA = "prewarm_replica"
    PROMOTE_REPLICA = "promote_replica"
    REPLACE_SAFEKEEPER = "replace_safekeeper"
    SET_STORAGE_NON_DIRTY = "set_storage_non_dirty"
    START_COMPUTE = "start_compute"
    START_RESERVED_COMPUTE = "start_reserved_compute"
    SUSPEND_COMPUTE = "suspend_compute"
    SWAP_BINDING_ID = "swap_binding_id"
    SWITCH_PAGESERVER = "switch_pageserver"
    SYNC_DBS_AND_ROLES_FROM_COMPUTE = "sync_dbs_and_roles_from_compute"
    TENANT_ATTACH = "tenant_attach"
    TENANT_ATTACH_SAFEKEEPERS = "tenant_attach_safekeepers"
    TENANT_DETACH = "tenant_detach"
    TENANT_DETACH_SAFEKEEPERS = "tenant_detach_safekeepers"
    TENANT_IGNORE = "tenant_ignore"
    TENANT_REATTACH = "tenant_reattach"
    TIMELINE_ARCHIVE = "timeline_archive"
    TIMELINE_MARK_INVISIBLE = "timeline_mark_invisible"
    TIMELINE_UNARCHIVE = "timeline_unarchive"
    TIMELINE_UPDATE_PROTECTED_CONFIG = "timeline_update_protected_config"
    UPDATE_CATALOG = "update_catalog"


class OperationStatus(OpenEnum):
    """The status of an operation. Unknown statuses are kept unchanged, and count as pending."""

    SCHEDULING = "scheduling"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ERROR = "error"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


UNSUCCESSFUL = frozenset({OperationStatus.FAILED, OperationStatus.ERROR, OperationStatus.CANCELLED})
"""The statuses of operations that failed. ``failed`` is not final while a retry is planned."""


class OperationRef(Model, kw_only=True):
    """The two ids that identify an operation.

    A reference contains no secret, and ``msgspec.json`` encodes and decodes it, so another process
    can continue a wait: ``await neon.operations.wait(ref)``.
    """

    project_id: str
    id: str

    @property
    def ref(self) -> "OperationRef":
        """The reference itself, for symmetry with :attr:`Operation.ref`."""
        return self


class Operation(Model, kw_only=True):
    """An operation, as Neon recorded it at ``updated_at``."""

    id: str
    project_id: str
    action: OperationAction
    status: OperationStatus
    created_at: Timestamp
    updated_at: Timestamp
    branch_id: str | None = None
    endpoint_id: str | None = None
    """The compute that the operation works on, if any."""
    error: str | None = None
    """The message of the last failure."""
    failures_count: int = 0
    retry_at: Timestamp | None = None
    """The time of the next attempt. If it is in the future, Neon will retry the operation."""
    total_duration_ms: int | None = None
    """The duration so far, in milliseconds."""

    @property
    def ref(self) -> OperationRef:
        """The reference that another process needs to find the operation."""
        return OperationRef(project_id=self.project_id, id=self.id)


class OperationsResponse(Model, kw_only=True):
    """A response that contains the operations that its request started.

    Methods return subclasses, all of which you can pass to ``neon.operations.wait``.
    """

    operations: list[Operation]


class OperationResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/operations/{operation_id}``."""

    operation: Operation


class OperationsPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/operations``, newest first."""

    operations: list[Operation]
    pagination: Pagination | None = None


_MAX_LISTED = 3


def list_operations(operations: Sequence[Operation | OperationRef]) -> str:
    """Describe operations for an error message: the first three, and how many more there are."""
    shown = "; ".join(_describe(operation) for operation in operations[:_MAX_LISTED])
    more = len(operations) - _MAX_LISTED
    return f"{shown} and {more} more" if more > 0 else shown


def list_failures(settled: Sequence[Operation]) -> str:
    """Return the end of an error message that names the failed operations, or an empty string."""
    failed = [operation for operation in settled if operation.status in UNSUCCESSFUL]
    return f"; failed: {list_operations(failed)}" if failed else ""


def _describe(operation: Operation | OperationRef) -> str:
    if isinstance(operation, OperationRef):
        return f"{operation.id} in {operation.project_id}"
    reason = f": {operation.error}" if operation.error else ""
    of_branch = f" of branch {operation.branch_id}" if operation.branch_id else ""
    return (
        f"{operation.action} {operation.id}{of_branch} in {operation.project_id} is "
        f"{operation.status}{reason}"
    )
