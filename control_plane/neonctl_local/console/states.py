"""The labels of branch and compute states."""

from collections.abc import Mapping
from typing import Final

_BRANCH: Final[Mapping[tuple[str, str | None], str]] = {
    ("init", None): "Not created",
    ("init", "ready"): "Creating",
    ("ready", "archived"): "Archiving",
    ("archived", "ready"): "Unarchiving",
}
_COMPUTE: Final[Mapping[tuple[str, str | None], str]] = {
    ("init", None): "Creating",
    ("init", "active"): "Starting",
    ("idle", "active"): "Starting",
    ("active", "active"): "Restarting",
    ("active", "idle"): "Suspending",
}
KINDS: Final[Mapping[str, str]] = {
    "Creating": "busy",
    "Archiving": "busy",
    "Unarchiving": "busy",
    "Starting": "busy",
    "Restarting": "busy",
    "Suspending": "busy",
    "Not created": "bad",
    "Ready": "ok",
    "Active": "ok",
}
"""The kind of mark that a page shows before each label. It is ``quiet`` for all other labels."""


def branch_state(state: str, pending: str | None) -> str:
    """Return the label of a branch: ``Ready``, or ``Archiving`` while it is being archived.

    A branch is ``Not created`` if its ``create_branch`` failed.

    ``pending`` is the state after the running operation, or None.
    """
    return _label(_BRANCH, state, pending)


def compute_state(state: str, pending: str | None) -> str:
    """Return the label of a compute: ``Active``, or ``Starting`` while it is being started.

    ``pending`` is the state after the running operation, or None.
    """
    return _label(_COMPUTE, state, pending)


def kind(label: str) -> str:
    """Return the kind of mark that a page shows before a label."""
    return KINDS.get(label, "quiet")


def _label(labels: Mapping[tuple[str, str | None], str], state: str, pending: str | None) -> str:
    # A state that Neon adds later is shown as it is.
    return labels.get((state, pending), state.replace("_", " ").capitalize())
