from datetime import timedelta
from typing import Any

import msgspec
import pytest

from neonctl_async import Operation, OperationStatus
from neonctl_async.waiting.status import Outcome, is_unchanged, outcome
from tests.support.records import EPOCH, operation

SUCCEEDED = {"finished", "skipped"}
UNSUCCESSFUL = {"failed", "error", "cancelled"}


@pytest.mark.parametrize("status", [*OperationStatus, "hibernating"])
def test_each_status_has_one_outcome_and_unknown_ones_are_pending(status: str) -> None:
    expected = (
        Outcome.SUCCEEDED
        if status in SUCCEEDED
        else Outcome.UNSUCCESSFUL
        if status in UNSUCCESSFUL
        else Outcome.PENDING
    )
    assert outcome(operation(status=status), EPOCH) is expected


@pytest.mark.parametrize(
    ("status", "retry_in", "expected"),
    [
        ("failed", 1, Outcome.PENDING),
        ("error", 1, Outcome.PENDING),
        ("failed", 0, Outcome.UNSUCCESSFUL),
        ("failed", -1, Outcome.UNSUCCESSFUL),
        ("finished", 1, Outcome.SUCCEEDED),
    ],
)
def test_failure_with_a_future_retry_is_pending(
    status: str, retry_in: float, expected: Outcome
) -> None:
    record = msgspec.structs.replace(
        operation(status=status), retry_at=EPOCH + timedelta(seconds=retry_in)
    )
    assert outcome(record, EPOCH) is expected


def test_zero_timestamp_is_not_a_retry() -> None:
    record = msgspec.convert(
        {**msgspec.to_builtins(operation(status="failed")), "retry_at": "0001-01-01T00:00:00Z"},
        Operation,
    )
    assert outcome(record, EPOCH) is Outcome.UNSUCCESSFUL


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"total_duration_ms": 5}, True),
        ({"status": OperationStatus.FAILED}, False),
        ({"updated_at": EPOCH + timedelta(seconds=1)}, False),
        ({"failures_count": 1}, False),
        ({"retry_at": EPOCH}, False),
        ({"error": "disk full"}, False),
    ],
)
def test_records_that_differ_only_in_duration_are_unchanged(
    changes: dict[str, Any], expected: bool
) -> None:
    record = operation()
    assert is_unchanged(record, msgspec.structs.replace(record, **changes)) is expected
