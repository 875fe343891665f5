"""Operations: the platform's records of work it does."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp


class OperationAction(OpenEnum):
    """What an operation does. The published list; an unlisted action is kept as it came."""

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
    TENANT_DETACH = "tenant_detach"
    TENANT_IGNORE = "tenant_ignore"
    TENANT_REATTACH = "tenant_reattach"
    TIMELINE_ARCHIVE = "timeline_archive"
    TIMELINE_MARK_INVISIBLE = "timeline_mark_invisible"
    TIMELINE_UNARCHIVE = "timeline_unarchive"
    TIMELINE_UPDATE_PROTECTED_CONFIG = "timeline_update_protected_config"
    UPDATE_CATALOG = "update_catalog"


class OperationStatus(OpenEnum):
    """Where an operation stands (the published list)."""

    SCHEDULING = "scheduling"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    ERROR = "error"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class OperationRef(Model, kw_only=True):
    """The two ids that name an operation.

    Holds no secret and goes to JSON and back (``msgspec.json``), so that another process can
    resume a wait: ``await neon.operations.wait(ref)``.
    """

    project_id: str
    id: str

    @property
    def ref(self) -> "OperationRef":
        """Itself, so that records and references can be treated alike."""
        return self


class Operation(Model, kw_only=True):
    """One operation.

    ``total_duration_ms`` is in milliseconds. ``retry_at`` in the future means that the platform
    is about to try a failed operation again.
    """

    id: str
    project_id: str
    action: OperationAction
    status: OperationStatus
    created_at: Timestamp
    updated_at: Timestamp
    branch_id: str | None = None
    endpoint_id: str | None = None
    error: str | None = None
    failures_count: int = 0
    retry_at: Timestamp | None = None
    total_duration_ms: int | None = None

    @property
    def ref(self) -> OperationRef:
        """What is needed to find the operation again."""
        return OperationRef(project_id=self.project_id, id=self.id)


class OperationsResponse(Model, kw_only=True):
    """An answer that announces the operations its request started."""

    operations: list[Operation]


class OperationResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/operations/{operation_id}``."""

    operation: Operation


class OperationsPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/operations``, newest operation first."""

    operations: list[Operation]
    pagination: Pagination | None = None
