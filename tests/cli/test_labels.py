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
def test_a_status_is_called_what_the_console_calls_it(status: str, label: str) -> None:
    assert status_label(operation(status=status)) == label


def test_every_status_of_the_platform_has_a_label() -> None:
    for status in OperationStatus:
        assert status_label(operation(status=status)) in {
            "OK",
            "Scheduling",
            "In progress",
            "Error",
        }


def test_an_action_reads_as_words() -> None:
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
def test_a_duration_is_what_the_platform_tells_else_what_the_times_do(
    status: str, milliseconds: int | None, label: str
) -> None:
    record = replace(
        operation(status=status),
        total_duration_ms=milliseconds,
        updated_at=EPOCH + timedelta(seconds=7),
    )
    assert duration_label(record) == label


def test_what_is_about_to_be_tried_again_is_pending() -> None:
    failed = operation(status="failed")
    assert not is_pending(failed)
    assert is_pending(replace(failed, retry_at=datetime.now(UTC) + timedelta(hours=1)))
