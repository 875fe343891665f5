import msgspec

from neonctl_async.types import BackupScheduleItem, Snapshot, SnapshotCreated
from tests.models.records import SNAPSHOT, decode


def test_times_of_any_format_are_kept() -> None:
    snapshot = decode(Snapshot, {**SNAPSHOT, "created_at": "yesterday", "timestamp": "12:00"})
    assert (snapshot.created_at, snapshot.timestamp) == ("yesterday", "12:00")


def test_operations_of_a_new_snapshot_are_optional() -> None:
    assert decode(SnapshotCreated, {"snapshot": SNAPSHOT}).operations == []


def test_unset_fields_of_a_schedule_are_not_sent() -> None:
    item = BackupScheduleItem(frequency="daily", hour=0)
    assert msgspec.to_builtins(item) == {"frequency": "daily", "hour": 0}
