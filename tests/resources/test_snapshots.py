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
from tests.resources.wire import Asked, Call, check

PATH = "/projects/p-1/snapshots"
BRANCH_PATH = "/projects/p-1/branches/br-1"
CREATED: JsonObject = {"snapshot": SNAPSHOT, "operations": [OPERATION]}
RESTORED: JsonObject = {"branch": BRANCH, "operations": [OPERATION]}
STARTED: JsonObject = {"operations": [OPERATION]}
SCHEDULE: JsonObject = {
    "schedule": [
        {"frequency": "daily", "hour": 0},
        {"frequency": "yearly", "day": 31, "month": 12, "retention_seconds": 3600},
    ]
}

CALLS = [
    Call(
        lambda neon: neon.snapshots.list("p-1"),
        asks=Asked("GET", PATH, {}, None),
        shown={"snapshots": [SNAPSHOT]},
        gives=[decode(Snapshot, SNAPSHOT)],
    ),
    Call(
        lambda neon: neon.snapshots.create("p-1", "br-1"),
        asks=Asked("POST", f"{BRANCH_PATH}/snapshot", {}, None),
        shown=CREATED,
        gives=decode(SnapshotCreated, CREATED),
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
        asks=Asked(
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
        shown={"snapshot": SNAPSHOT},
        gives=decode(SnapshotCreated, {"snapshot": SNAPSHOT}),
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1"),
        asks=Asked("PATCH", f"{PATH}/snap-1", {}, {"snapshot": {}}),
        shown={"snapshot": SNAPSHOT},
        gives=decode(Snapshot, SNAPSHOT),
    ),
    Call(
        lambda neon: neon.snapshots.update("p-1", "snap-1", name="nightly"),
        asks=Asked("PATCH", f"{PATH}/snap-1", {}, {"snapshot": {"name": "nightly"}}),
        shown={"snapshot": SNAPSHOT},
        gives=decode(Snapshot, SNAPSHOT),
    ),
    Call(
        lambda neon: neon.snapshots.delete("p-1", "snap-1"),
        asks=Asked("DELETE", f"{PATH}/snap-1", {}, None),
        shown=STARTED,
        gives=decode(OperationsResponse, STARTED),
    ),
    Call(
        lambda neon: neon.snapshots.restore("p-1", "snap-1"),
        asks=Asked("POST", f"{PATH}/snap-1/restore", {}, None),
        shown=RESTORED,
        gives=decode(SnapshotRestored, RESTORED),
    ),
    Call(
        lambda neon: neon.snapshots.restore(
            "p-1", "snap-1", name="as it was", target_branch_id="br-2", finalize_restore=False
        ),
        asks=Asked(
            "POST",
            f"{PATH}/snap-1/restore",
            {},
            {"name": "as it was", "target_branch_id": "br-2", "finalize_restore": False},
        ),
        shown=RESTORED,
        gives=decode(SnapshotRestored, RESTORED),
    ),
    Call(
        lambda neon: neon.snapshots.get_schedule("p-1", "br-1"),
        asks=Asked("GET", f"{BRANCH_PATH}/backup_schedule", {}, None),
        shown=SCHEDULE,
        gives=decode(BackupSchedule, SCHEDULE),
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
        asks=Asked("PUT", f"{BRANCH_PATH}/backup_schedule", {}, SCHEDULE),
        shown={},
        gives=None,
    ),
    Call(
        lambda neon: neon.snapshots.set_schedule("p-1", "br-1", schedule=[]),
        asks=Asked("PUT", f"{BRANCH_PATH}/backup_schedule", {}, {"schedule": []}),
        shown=None,
        gives=None,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)
