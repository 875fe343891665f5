"""Snapshots of branches, and the schedules by which they are taken."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import Operation, OperationsResponse


class Snapshot(Model, kw_only=True):
    """The state of a branch at one time. The platform does not promise a form for its times.

    ``full_size`` and ``diff_size`` are in bytes.
    """

    id: str
    name: str
    created_at: str | None = None
    expires_at: str | None = None
    lsn: str | None = None
    timestamp: str | None = None
    source_branch_id: str | None = None
    manual: bool | None = None
    full_size: int | None = None
    diff_size: int | None = None


class SnapshotCreated(OperationsResponse, kw_only=True):
    """A snapshot just created."""

    snapshot: Snapshot
    operations: list[Operation] = []


class SnapshotRestored(OperationsResponse, kw_only=True):
    """The branch that a snapshot was restored to."""

    branch: Branch
    endpoints: list[Endpoint] = []


class SnapshotResponse(Model, kw_only=True):
    """The answer that shows one snapshot."""

    snapshot: Snapshot


class SnapshotsResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/snapshots``."""

    snapshots: list[Snapshot]


class BackupScheduleItem(Model, kw_only=True):
    """When snapshots are taken, and how long they are kept.

    ``frequency`` is ``hourly``, ``daily``, ``weekly``, ``monthly`` or ``yearly``; ``hour`` is 0 to
    23, ``day`` of the week or month 1 to 31, ``month`` 1 to 12. ``retention_seconds`` is 3600 or
    more; without it, snapshots are kept for good.
    """

    frequency: str
    hour: int | UnsetType = UNSET
    day: int | UnsetType = UNSET
    month: int | UnsetType = UNSET
    retention_seconds: int | UnsetType = UNSET


class BackupSchedule(Model, kw_only=True):
    """When the snapshots of a branch are taken."""

    schedule: list[BackupScheduleItem]
