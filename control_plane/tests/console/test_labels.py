"""Names of operations and labels of statuses, as section 3.2 and Neon's console spell them."""

import pytest

from neonctl_async.types import OperationStatus
from neonctl_local.console.labels import (
    LABELS,
    OPERATION_NAMES,
    operation_name,
    status_label,
)
from neonctl_local.settings import ACTIONS


def test_operations_have_the_names_of_the_specification() -> None:
    assert list(OPERATION_NAMES.values()) == [
        "Apply config",
        "Apply storage config",
        "Check availability",
        "Create branch",
        "Create timeline",
        "Delete tenant",
        "Delete timeline",
        "Start compute",
        "Suspend compute",
        "Sync dbs and roles from compute",
        "Tenant attach",
        "Tenant detach",
        "Tenant reattach",
        "Timeline archive",
        "Timeline unarchive",
    ]
    assert OPERATION_NAMES.keys() == ACTIONS


@pytest.mark.parametrize(
    ("action", "name"),
    [("switch_pageserver", "Switch pageserver"), ("sync_LSN", "Sync LSN"), ("", ""), ("_", "")],
)
def test_unknown_action_is_shown_in_words(action: str, name: str) -> None:
    assert operation_name(action) == name


def test_labels_are_those_of_the_specification() -> None:
    assert LABELS == ("OK", "Scheduling", "In progress", "Error")


@pytest.mark.parametrize(
    ("status", "label"),
    [
        ("scheduling", "Scheduling"),
        ("running", "In progress"),
        ("cancelling", "In progress"),
        ("finished", "OK"),
        ("skipped", "OK"),
        ("failed", "Error"),
        ("error", "Error"),
        ("cancelled", "Error"),
    ],
)
def test_label_of_a_status(status: str, label: str) -> None:
    assert status_label(status) == label


def test_every_status_of_the_client_has_a_label() -> None:
    assert {status_label(status) for status in OperationStatus} == set(LABELS)


def test_failed_operation_that_is_retried_waits() -> None:
    assert status_label("failed", will_retry=True) == "Scheduling"


def test_unknown_status_is_its_own_label() -> None:
    assert status_label("paused") == "paused"
