"""An operation that is awaited: what the poller of its project knows of it."""

from collections.abc import Iterable

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import Observation


class TrackedOperation:
    """An operation that is awaited: since when, by whom, and its newest record."""

    __slots__ = (
        "answered_at",
        "is_being_polled",
        "observation",
        "queues",
        "record",
        "ref",
        "since",
    )

    def __init__(self, ref: OperationRef, since: float) -> None:
        self.ref: OperationRef = ref
        self.since: float = since
        """When it began, as far as is known: a record may say how long it has been running."""
        self.record: Operation | None = None
        self.observation: Observation | None = None
        self.queues: set[ChangeQueue] = set()
        self.answered_at: float = since
        """When the newest look at it ended, if only in a failure."""
        self.is_being_polled: bool = False


def queues_of(tracked: Iterable[TrackedOperation]) -> set[ChangeQueue]:
    """All that these operations are awaited for."""
    return {queue for one in tracked for queue in one.queues}


def end_polls(tracked: Iterable[TrackedOperation], now: float) -> None:
    """Looks at these operations have ended now, if only in a failure."""
    for one in tracked:
        one.is_being_polled = False
        one.answered_at = now


def age(record: Operation) -> float:
    """How long an operation had been running when the platform wrote its record, in seconds."""
    return (record.total_duration_ms or 0) / 1000


def duration(observation: Observation, record: Operation, now: float) -> float:
    """How long an operation took from its begin: what it tells, within what was seen of it.

    It tells how long it ran; it may have waited for another one before.
    """
    at_least, at_most = observation.pending_at - observation.began, now - observation.began
    if record.total_duration_ms is None:
        return (at_least + at_most) / 2
    return min(max(age(record), at_least), at_most)
