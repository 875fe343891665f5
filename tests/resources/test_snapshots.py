from datetime import UTC, datetime, timedelta, timezone

import pytest

from neonctl_async import BackupSchedule
from neonctl_async.types import (
    BackupScheduleItem,
    OperationsResponse,
    Snapshot,
    SnapshotCreated,
    SnapshotRestored,
)
from tests.models.records import BRANCH, OPERATION, SNAPSHOT, JsonObject, decode
from tests.resources.wire import Call, SentRequest, check_call

PATH = "/projects/p-1/snapshots"
BRANCH_PATH = "/projects/p-1/branches/br-1"
CREATED: JsonObject = {"snapshot": SNAPSHOT, "operations": [OPERATION]}
RESTORED: JsonObject = {"branch": BRANCH, "operations": [OPERATION]}
OPERATIONS: JsonObject = {"operations": [OPERATION]}
SCHEDULE: JsonObject = {
    "schedule": [
        {"frequency": "daily", "hour": 0},
        {"frequency": "yearly", "day": 31, "month": 12, "retention_seconds": 3600},
    ]
}

CALLS = [
    Call(
        lambda neon: neon.snapshots.list("p-1"),
        sends=SentRequest("GET", PATH, {}, None),
        response={"snapshots": [SNAPSHOT]},
        returns=[decode(Snapshot, SNAPSHOT)],
    ),
    Call(
        lambda neon: neon.snapshots.create("p-1", "br-1"),
        sends=SentRequest("POST", f"{BRANCH_PATH}/snapshot", {}, None),
        response=CREATED,
        returns=decode(SnapshotCreated, CREATED),
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
        sends=SentRequest(
            "POST",
            f"{BRANCH_PATH}/snapshot",
            {
                "name": "before & after",
                "lsn": "0/1E88FA8",
                "timestamp": "2026-01-01T12:30:00+00:00",
                "expires_at": "2026-02-01T00:00:00+00:00",
            },
            None,
        ),
        response={"snapshot": SNAPSHOT},
        returns=decode(SnapshotCreated, {"snapshot": SNAPSHOT}),
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1"),
        sends=SentRequest("PATCH", f"{PATH}/snap-1", {}, {"snapshot": {}}),
        response={"snapshot": SNAPSHOT},
        returns=decode(Snapshot, SNAPSHOT),
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1", name="nightly"),
        sends=SentRequest("PATCH", f"{PATH}/snap-1", {}, {"snapshot": {"name": "nightly"}}),
        response={"snapshot": SNAPSHOT},
        returns=decode(Snapshot, SNAPSHOT),
    ),
    Call(
        lambda neon: neon.snapshots.delete("p-1", "snap-1"),
        sends=SentRequest("DELETE", f"{PATH}/snap-1", {}, None),
        response=OPERATIONS,
        returns=decode(OperationsResponse, OPERATIONS),
    ),
    Call(
        lambda neon: neon.snapshots.restore("p-1", "snap-1"),
        sends=SentRequest("POST", f"{PATH}/snap-1/restore", {}, None),
        response=RESTORED,
        returns=decode(SnapshotRestored, RESTORED),
    ),
    Call(
        lambda neon: neon.snapshots.restore(
            "p-1", "snap-1", name="as it was", target_branch_id="br-2", finalize_restore=False
        ),
        sends=SentRequest(
            "POST",
            f"{PATH}/snap-1/restore",
            {},
            {"name": "as it was", "target_branch_id": "br-2", "finalize_restore": False},
        ),
        response=RESTORED,
        returns=decode(SnapshotRestored, RESTORED),
    ),
    Call(
        lambda neon: neon.snapshots.get_schedule("p-1", "br-1"),
        sends=SentRequest("GET", f"{BRANCH_PATH}/backup_schedule", {}, None),
        response=SCHEDULE,
        returns=decode(BackupSchedule, SCHEDULE),
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
        sends=SentRequest("PUT", f"{BRANCH_PATH}/backup_schedule", {}, SCHEDULE),
        response={},
        returns=None,
    ),
    Call(
        lambda neon: neon.snapshots.set_schedule("p-1", "br-1", schedule=[]),
        sends=SentRequest("PUT", f"{BRANCH_PATH}/backup_schedule", {}, {"schedule": []}),
        response=None,
        returns=None,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)
