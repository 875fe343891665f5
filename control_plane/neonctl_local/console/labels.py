"""The names of operations and the labels of their statuses, as Neon's console spells them."""

from collections.abc import Mapping
from typing import Final, get_args

from neonctl_local.engine.operation_search import OUTCOMES, Label
from neonctl_local.settings import ACTIONS

LABELS: Final[tuple[Label, ...]] = get_args(Label)
"""All labels, in the order in which the filter offers them."""

_LABELS: Final[Mapping[str, Label]] = {
    "scheduling": "Scheduling",
    "running": "In progress",
    "cancelling": "In progress",
    **{outcome: label for label, outcomes in OUTCOMES.items() for outcome in outcomes},
}


def operation_name(action: str) -> str:
    """Return the name of an action: ``Create branch`` for ``create_branch``."""
    words = action.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


OPERATION_NAMES: Final[Mapping[str, str]] = {
    action: operation_name(action) for action in sorted(ACTIONS)
}
"""The names of all actions, in alphabetical order."""


def status_label(status: str, *, will_retry: bool = False) -> str:
    """Return the label of an API status. An unknown status is its own label.

    A failed operation that will be retried is ``Scheduling``.
    """
    return "Scheduling" if will_retry else _LABELS.get(status, status)
