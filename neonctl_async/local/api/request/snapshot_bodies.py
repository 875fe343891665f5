"""Request bodies about snapshots. Unknown fields are ignored, as in :mod:`bodies`."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from neonctl_async.local.api.request.bodies import Body, Name


class SnapshotChanges(Body, frozen=True):
    """What may change of a snapshot."""

    name: Name | UnsetType = UNSET


class SnapshotUpdate(Body, frozen=True):
    """Changes a snapshot."""

    snapshot: SnapshotChanges


class SnapshotRestore(Body, frozen=True):
    """Restores a snapshot to a new branch; finalized, it replaces the target."""

    name: Name | None = None
    target_branch_id: str | None = None
    finalize_restore: bool = False


class FinalizeRestore(Body, frozen=True):
    """Has a restored branch replace its target; ``name`` is what the target is called then."""

    name: Name | None = None


class ScheduleItem(Body, frozen=True):
    """When snapshots are taken, and for how long they are kept."""

    frequency: Literal["hourly", "daily", "weekly", "monthly", "yearly"]
    hour: Annotated[int, Meta(ge=0, le=23)] | UnsetType = UNSET
    day: Annotated[int, Meta(ge=1, le=31)] | UnsetType = UNSET
    month: Annotated[int, Meta(ge=1, le=12)] | UnsetType = UNSET
    retention_seconds: Annotated[int, Meta(ge=3600)] | UnsetType = UNSET


class BackupSchedule(Body, frozen=True):
    """Replaces the backup schedule of a branch."""

    schedule: list[ScheduleItem]
