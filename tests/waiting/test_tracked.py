from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import Operation, OperationStatus
from neonctl_async.waiting.tracked import (
    Outcome,
    finality,
    is_retryable_failure,
    is_unchanged,
    outcome,
    supersedes,
)
from tests.support.records import EPOCH, operation

SUCCEEDED = {"finished", "skipped"}
UNSUCCESSFUL = {"failed", "error", "cancelled"}


@pytest.mark.fact("client-3")
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


def record_of(status: str, at: int, retry_in: int | None) -> Operation:
    return msgspec.structs.replace(
        operation(status=status),
        updated_at=EPOCH + timedelta(seconds=at),
        retry_at=None if retry_in is None else EPOCH + timedelta(seconds=retry_in),
    )


records = st.builds(
    record_of,
    st.sampled_from([*OperationStatus, "hibernating"]),
    st.integers(-3, 3),
    st.none() | st.integers(-3, 3),
)


def at(seconds: int, status: str) -> Operation:
    updated_at = EPOCH + timedelta(seconds=seconds)
    return msgspec.structs.replace(operation(status=status), updated_at=updated_at)


@given(records, records)
def test_success_replaces_any_record_and_only_another_success_replaces_it(
    record: Operation, known: Operation
) -> None:
    if record.status in SUCCEEDED and known.status not in SUCCEEDED:
        assert supersedes(record, known)
        assert not supersedes(known, record)


@given(records, records)
def test_one_of_two_records_replaces_the_other(record: Operation, known: Operation) -> None:
    assert supersedes(record, known) or supersedes(known, record)


@given(records, records)
def test_newer_record_replaces_any_but_a_success(record: Operation, known: Operation) -> None:
    if record.updated_at >= known.updated_at and known.status not in SUCCEEDED:
        assert supersedes(record, known)


@pytest.mark.parametrize(
    ("record", "known", "expected"),
    [
        (at(0, "running"), at(1, "scheduling"), False),
        (at(1, "running"), at(1, "scheduling"), True),
        (at(0, "failed"), at(1, "running"), True),
        (at(2, "running"), at(1, "failed"), True),
        (at(0, "running"), at(1, "failed"), False),
        (at(0, "finished"), at(1, "failed"), True),
        (at(2, "failed"), at(1, "finished"), False),
        (at(0, "finished"), at(1, "skipped"), False),
    ],
)
def test_terminal_status_replaces_other_ones_and_age_decides_otherwise(
    record: Operation, known: Operation, expected: bool
) -> None:
    assert supersedes(record, known) is expected


def test_older_failure_with_a_retry_does_not_replace_a_newer_record() -> None:
    failure = msgspec.structs.replace(at(0, "failed"), retry_at=EPOCH)
    assert not supersedes(failure, at(1, "running"))
    assert finality(failure) == 0


@pytest.mark.parametrize("status", [*OperationStatus, "hibernating"])
def test_only_failed_without_a_retry_is_a_retryable_failure(status: str) -> None:
    record = operation(status=status)
    assert is_retryable_failure(record) is (status == "failed")
    assert not is_retryable_failure(msgspec.structs.replace(record, retry_at=EPOCH))
