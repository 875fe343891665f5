"""Snapshots of branches, and the schedules that create them."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model
from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import Operation, OperationsResponse


class Snapshot(Model, kw_only=True):
    """The state of a branch at one point in time.

    Times are strings, because Neon does not specify their format.
    """

    id: str
    name: str
    slug: str | None = None
    """A name that is unique within the project. It is not the id."""
    created_at: str | None = None
    expires_at: str | None = None
    """The time at which Neon deletes the snapshot."""
    lsn: str | None = None
    """The log sequence number in the branch's history that the snapshot captures."""
    timestamp: str | None = None
    """The time in the branch's history that the snapshot captures."""
    source_branch_id: str | None = None
    manual: bool | None = None
    """True for a snapshot that was requested, False for one that a schedule created."""
    full_size: int | None = None
    """In bytes."""
    diff_size: int | None = None
    """In bytes."""


class SnapshotCreated(OperationsResponse, kw_only=True):
    """A new snapshot, and the operations that create it."""

    snapshot: Snapshot
    operations: list[Operation] = []


class SnapshotRestored(OperationsResponse, kw_only=True):
    """The branch that a snapshot is restored to."""

    branch: Branch
    endpoints: list[Endpoint] = []


class SnapshotResponse(Model, kw_only=True):
    """A response that contains one snapshot."""

    snapshot: Snapshot


class SnapshotsResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/snapshots``."""

    snapshots: list[Snapshot]


class BackupScheduleItem(Model, kw_only=True):
    """A rule that creates snapshots regularly."""

    frequency: str
    """``daily``, ``weekly`` or ``monthly``."""
    hour: int | UnsetType = UNSET
    """0 to 23."""
    day: int | UnsetType = UNSET
    """The day of the week or of the month, 1 to 31."""
    month: int | UnsetType = UNSET
    """1 to 12."""
    retention_seconds: int | UnsetType = UNSET
    """The lifetime of a snapshot in seconds, at least 3600. If unset, snapshots never expire."""


class BackupSchedule(Model, kw_only=True):
    """The snapshot schedule of a branch."""

    schedule: list[BackupScheduleItem]
