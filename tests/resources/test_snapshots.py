from datetime import UTC, datetime, timedelta, timezone

import pytest

from neonctl_async.types import (
    BackupSchedule,
    BackupScheduleItem,
    OperationsResponse,
    Snapshot,
    SnapshotCreated,
    SnapshotRestored,
)
from tests.models.records import BRANCH, OPERATION, SNAPSHOT, JsonObject
from tests.resources.wire import Call, Response, no_content, record, record_in, records_in

PATH = "/projects/p-1/snapshots"
BRANCH_PATH = "/projects/p-1/branches/br-1"
SCHEDULE: JsonObject = {
    "schedule": [
        {"frequency": "daily", "hour": 0},
        {"frequency": "yearly", "day": 31, "month": 12, "retention_seconds": 3600},
    ]
}
FOUND = record_in("snapshot", Snapshot, SNAPSHOT)
RESTORED = record(SnapshotRestored, {"branch": BRANCH, "operations": [OPERATION]})
LISTED = records_in("snapshots", Snapshot, SNAPSHOT)
CREATED = record(SnapshotCreated, {"snapshot": SNAPSHOT, "operations": [OPERATION]})
STARTED = record(OperationsResponse, {"operations": [OPERATION]})

CALLS = [
    Call(lambda neon: neon.snapshots.list("p-1"), f"GET {PATH}", LISTED),
    Call(
        lambda neon: neon.snapshots.create("p-1", "br-1"), f"POST {BRANCH_PATH}/snapshot", CREATED
    ),
    Call(
        lambda neon: neon.snapshots.create(
            "p-1",
            "br-1",
            name="before & after",
            lsn="0/1E88FA8",
            timestamp=datetime(2026, 1, 1, 14, 30, tzinfo=timezone(timedelta(hours=2))),
            expires_at=datetime(2026, 2, 1, tzinfo=UTC),
        ),
        f"POST {BRANCH_PATH}/snapshot",
        record(SnapshotCreated, {"snapshot": SNAPSHOT}),
        query={
            "name": "before & after",
            "lsn": "0/1E88FA8",
            "timestamp": "2026-01-01T12:30:00+00:00",
            "expires_at": "2026-02-01T00:00:00+00:00",
        },
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1"),
        f"PATCH {PATH}/snap-1",
        FOUND,
        body={"snapshot": {}},
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1", name="nightly"),
        f"PATCH {PATH}/snap-1",
        FOUND,
        body={"snapshot": {"name": "nightly"}},
    ),
    Call(lambda neon: neon.snapshots.delete("p-1", "snap-1"), f"DELETE {PATH}/snap-1", STARTED),
    Call(
        lambda neon: neon.snapshots.restore("p-1", "snap-1"),
        f"POST {PATH}/snap-1/restore",
        RESTORED,
    ),
    Call(
        lambda neon: neon.snapshots.restore(
            "p-1", "snap-1", name="as it was", target_branch_id="br-2", finalize_restore=False
        ),
        f"POST {PATH}/snap-1/restore",
        RESTORED,
        body={"name": "as it was", "target_branch_id": "br-2", "finalize_restore": False},
    ),
    Call(
        lambda neon: neon.snapshots.get_schedule("p-1", "br-1"),
        f"GET {BRANCH_PATH}/backup_schedule",
        record(BackupSchedule, SCHEDULE),
    ),
    Call(
        lambda neon: neon.snapshots.set_schedule(
            "p-1",
            "br-1",
            schedule=(
                BackupScheduleItem(frequency="daily", hour=0),
                BackupScheduleItem(frequency="yearly", day=31, month=12, retention_seconds=3600),
            ),
        ),
        f"PUT {BRANCH_PATH}/backup_schedule",
        Response({}, None),
        body=SCHEDULE,
    ),
    Call(
        lambda neon: neon.snapshots.set_schedule("p-1", "br-1", schedule=[]),
        f"PUT {BRANCH_PATH}/backup_schedule",
        no_content(),
        body={"schedule": []},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
