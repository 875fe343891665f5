from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from neonctl_async import OperationStatus
from neonctl_async.cli.labels import (
    action_label,
    duration_label,
    is_pending,
    status_label,
)
from neonctl_local.console.labels import status_label as console_label
from tests.support.records import EPOCH, operation


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ("finished", "OK"),
        ("skipped", "OK"),
        ("scheduling", "Scheduling"),
        ("running", "In progress"),
        ("cancelling", "In progress"),
        ("failed", "Error"),
        ("error", "Error"),
        ("cancelled", "Error"),
        ("paused", "paused"),
    ],
)
def test_status_has_the_label_of_the_console(status: str, label: str) -> None:
    assert status_label(operation(status=status)) == label


def test_every_published_status_has_a_label() -> None:
    for status in OperationStatus:
        assert status_label(operation(status=status)) in {
            "OK",
            "Scheduling",
            "In progress",
            "Error",
        }


def test_action_is_printed_as_words() -> None:
    assert action_label(operation()) == "Create branch"


@pytest.mark.parametrize(
    ("status", "milliseconds", "label"),
    [
        ("finished", 1234, "1.2 s"),
        ("finished", 123_400, "0:02:03"),
        ("finished", None, "7.0 s"),
        ("running", None, ""),
        ("running", 500, "0.5 s"),
    ],
)
def test_duration_is_that_of_the_record_or_computed_from_its_times(
    status: str, milliseconds: int | None, label: str
) -> None:
    record = replace(
        operation(status=status),
        total_duration_ms=milliseconds,
        updated_at=EPOCH + timedelta(seconds=7),
    )
    assert duration_label(record) == label


def test_failed_operation_with_a_planned_retry_is_pending() -> None:
    failed = operation(status="failed")
    assert not is_pending(failed)
    assert is_pending(replace(failed, retry_at=datetime.now(UTC) + timedelta(hours=1)))


@pytest.mark.parametrize("status", ["failed", "error", "cancelled"])
def test_failed_operation_with_a_planned_retry_has_the_label_of_the_console(status: str) -> None:
    failed = replace(operation(status=status), retry_at=datetime.now(UTC) + timedelta(hours=1))
    assert status_label(failed) == console_label(status, will_retry=True)


def test_failed_operation_whose_retry_is_due_is_an_error() -> None:
    failed = replace(operation(status="failed"), retry_at=datetime.now(UTC) - timedelta(hours=1))
    assert status_label(failed) == "Error"
