"""Snapshots of branches, and the schedules that create them."""

import builtins
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.models.snapshots import (
    BackupSchedule,
    BackupScheduleItem,
    Snapshot,
    SnapshotCreated,
    SnapshotResponse,
    SnapshotRestored,
    SnapshotsResponse,
)
from neonctl_async.resources.base import Resource, as_list, check_name, drop_unset
from neonctl_async.resources.names import Wanted
from neonctl_async.waiting.waiter import Wait

_BRANCH = "/projects/{project_id}/branches/{branch_id}"
_SCHEDULE = f"{_BRANCH}/backup_schedule"
_SNAPSHOTS = "/projects/{project_id}/snapshots"
_SNAPSHOT = f"{_SNAPSHOTS}/{{snapshot_id}}"
_NO_COMPUTE: Final = "a snapshot has no compute: use wait=True"


class Snapshots(Resource):
    """Snapshots of branches.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    async def list(self, project_id: str) -> builtins.list[Snapshot]:
        """Return the snapshots of a project."""
        response = await self._send("GET", _SNAPSHOTS, SnapshotsResponse, project_id)
        return response.snapshots

    async def find(self, project_id: str, name: str) -> Snapshot:
        """Return the snapshot with exactly this name. Sends one request.

        Raises LookupFailedError, suggesting other names, if there is no such snapshot, and
        ValueError, listing the ids, if more than one snapshot has the name.
        """
        check_name("name", name)
        wanted = Wanted("snapshot", f"project {project_id}", name)
        return wanted.one(await self.list(project_id))

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        slug: str | UnsetType = UNSET,
        lsn: str | UnsetType = UNSET,
        timestamp: datetime | UnsetType = UNSET,
        expires_at: datetime | UnsetType = UNSET,
        wait: Wait = False,
    ) -> SnapshotCreated:
        """Create a snapshot of a branch.

        The snapshot contains the current state of the branch, or the state at ``lsn`` or
        ``timestamp``. Neon deletes it at ``expires_at``. ``slug`` is a name that is unique within
        the project: lowercase letters, digits and hyphens. Without it, Neon chooses one. Raises
        ValueError for a datetime without a time zone.
        """
        return await self._start(
            "POST",
            f"{_BRANCH}/snapshot",
            SnapshotCreated,
            project_id,
            branch_id,
            query={
                "name": name,
                "slug": slug,
                "lsn": lsn,
                "timestamp": timestamp,
                "expires_at": expires_at,
            },
            wait=wait,
            no_compute=_NO_COMPUTE,
        )

    async def update(
        self,
        project_id: str,
        snapshot_id: str,
        *,
        name: str | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
    ) -> Snapshot:
        """Rename a snapshot, or change when Neon deletes it.

        With ``expires_at=None``, Neon keeps the snapshot. Raises ValueError for a datetime without
        a time zone.
        """
        body = {"snapshot": drop_unset(("expires_at",), name=name, expires_at=expires_at)}
        response = await self._send(
            "PATCH", _SNAPSHOT, SnapshotResponse, project_id, snapshot_id, body=body
        )
        return response.snapshot

    async def delete(
        self, project_id: str, snapshot_id: str, *, wait: Wait = False
    ) -> OperationsResponse:
        """Delete a snapshot."""
        return await self._start(
            "DELETE",
            _SNAPSHOT,
            OperationsResponse,
            project_id,
            snapshot_id,
            wait=wait,
            no_compute=_NO_COMPUTE,
        )

    async def restore(
        self,
        project_id: str,
        snapshot_id: str,
        *,
        name: str | UnsetType = UNSET,
        target_branch_id: str | UnsetType = UNSET,
        finalize_restore: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> SnapshotRestored:
        """Restore a snapshot to a new branch called ``name``.

        With ``finalize_restore``, the new branch immediately replaces ``target_branch_id``, by
        default the snapshot's source branch. Without it, you can check the new branch first, and
        then call :meth:`neon.branches.finalize_restore`.

        Beta: Neon may change this endpoint.
        """
        spec = drop_unset(
            name=name, target_branch_id=target_branch_id, finalize_restore=finalize_restore
        )
        return await self._start(
            "POST",
            f"{_SNAPSHOT}/restore",
            SnapshotRestored,
            project_id,
            snapshot_id,
            body=spec or UNSET,
            wait=wait,
        )

    async def get_schedule(self, project_id: str, branch_id: str) -> BackupSchedule:
        """Return the snapshot schedule of a branch."""
        return await self._send("GET", _SCHEDULE, BackupSchedule, project_id, branch_id)

    async def set_schedule(
        self, project_id: str, branch_id: str, *, schedule: Sequence[BackupScheduleItem]
    ) -> None:
        """Replace the snapshot schedule of a branch."""
        body = drop_unset(schedule=as_list("schedule", schedule))
        await self._send("PUT", _SCHEDULE, Empty, project_id, branch_id, body=body)
