"""How values are shown in tables. Pure: no I/O."""

from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from neonctl_async.models.operations import UNSUCCESSFUL, Operation, OperationStatus
from neonctl_async.waiting.tracked import Outcome, outcome

_LABELS = MappingProxyType(
    {
        OperationStatus.FINISHED: "OK",
        OperationStatus.SKIPPED: "OK",
        OperationStatus.SCHEDULING: "Scheduling",
        OperationStatus.RUNNING: "In progress",
        OperationStatus.CANCELLING: "In progress",
        OperationStatus.FAILED: "Error",
        OperationStatus.ERROR: "Error",
        OperationStatus.CANCELLED: "Error",
    }
)
_STYLES = MappingProxyType({"OK": "green", "Error": "bold red"})


def status_label(operation: Operation) -> str:
    """Return the Neon console's label for a status, or an unknown status unchanged.

    The label of a failed operation that Neon will retry is ``Scheduling``.
    """
    if operation.status in UNSUCCESSFUL and is_pending(operation):
        return _LABELS[OperationStatus.SCHEDULING]
    return _LABELS.get(operation.status, str(operation.status))


def status_style(operation: Operation) -> str:
    """Return the style of the status label."""
    return _STYLES.get(status_label(operation), "yellow")


def action_label(operation: Operation) -> str:
    """Return the Neon console's label for an action, such as ``Create branch``."""
    return operation.action.replace("_", " ").capitalize()


def duration_label(operation: Operation) -> str:
    """Format the duration of an operation; empty if it is unknown."""
    if operation.total_duration_ms is not None:
        took = timedelta(milliseconds=operation.total_duration_ms)
    elif is_pending(operation):
        return ""
    else:
        took = operation.updated_at - operation.created_at
    if took < timedelta(minutes=1):
        return f"{took.total_seconds():.1f} s"
    return str(timedelta(seconds=round(took.total_seconds())))


def is_pending(operation: Operation) -> bool:
    """Return whether an operation is pending, including a failed one with a planned retry."""
    return outcome(operation, datetime.now(UTC)) is Outcome.PENDING


def moment_label(moment: datetime | None) -> str:
    """Format a time in the local time zone, to the second."""
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def minute_label(moment: datetime | None) -> str:
    """Format a time in the local time zone, to the minute, for narrow tables."""
    return moment_label(moment)[:16]


def printable(text: str) -> str:
    """Escape the control characters in a string, so that it stays on one line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
