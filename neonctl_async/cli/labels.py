"""Pure: how values read in a table."""

from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from neonctl_async.models.operations import Operation, OperationStatus
from neonctl_async.waiting.status import Outcome, outcome

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
    """What the console calls the status of an operation; an unknown one as it came."""
    return _LABELS.get(operation.status, str(operation.status))


def status_style(operation: Operation) -> str:
    """The colour of the label."""
    return _STYLES.get(status_label(operation), "yellow")


def action_label(operation: Operation) -> str:
    """What the console calls an action: ``Create branch``."""
    return operation.action.replace("_", " ").capitalize()


def duration_label(operation: Operation) -> str:
    """How long an operation took; of one that has not ended, so far."""
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
    """Whether an operation has not ended, or is about to be tried again."""
    return outcome(operation, datetime.now(UTC)) is Outcome.PENDING


def moment_label(moment: datetime | None) -> str:
    """A time, to the second, by the clock of this machine."""
    return "" if moment is None else f"{moment.astimezone():%Y-%m-%d %H:%M:%S}"


def printable(text: str) -> str:
    """A text in a line, with nothing in it that a terminal obeys."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
