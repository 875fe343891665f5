"""The labels of the states of branches and computes."""

import pytest

from neonctl_local.console import states


@pytest.mark.parametrize(
    ("state", "pending", "label"),
    [
        ("init", "ready", "Creating"),
        ("init", None, "Not created"),
        ("ready", None, "Ready"),
        ("ready", "ready", "Ready"),
        ("ready", "archived", "Archiving"),
        ("archived", "ready", "Unarchiving"),
        ("archived", None, "Archived"),
        ("new_state", None, "New state"),
        ("new_state", "ready", "New state"),
    ],
)
def test_state_of_a_branch_has_a_label(state: str, pending: str | None, label: str) -> None:
    assert states.branch_state(state, pending) == label


@pytest.mark.parametrize(
    ("state", "pending", "label"),
    [
        ("init", "active", "Starting"),
        ("idle", "active", "Starting"),
        ("active", "idle", "Suspending"),
        ("active", "active", "Restarting"),
        ("active", None, "Active"),
        ("idle", None, "Idle"),
    ],
)
def test_state_of_a_compute_has_a_label(state: str, pending: str | None, label: str) -> None:
    assert states.compute_state(state, pending) == label


def test_label_has_a_mark() -> None:
    assert [states.kind(label) for label in ("Active", "Starting", "New state")] == [
        "ok",
        "busy",
        "quiet",
    ]
