"""An operation that a poller tracks, with the state of its polling."""

from collections.abc import Iterable

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import Observation


class TrackedOperation:
    """An operation that at least one wait is pending on. Times are on the loop's clock."""

    __slots__ = (
        "is_being_polled",
        "observation",
        "polled_at",
        "queues",
        "record",
        "ref",
        "started_at",
    )

    def __init__(self, ref: OperationRef, now: float) -> None:
        self.ref: OperationRef = ref
        self.started_at: float = now
        """The start of the operation; the start of the tracking, until a record is known."""
        self.record: Operation | None = None
        self.observation: Observation | None = None
        self.queues: set[ChangeQueue] = set()
        self.polled_at: float = now
        """The end of its newest poll, successful or not."""
        self.is_being_polled: bool = False


def queues_of(entries: Iterable[TrackedOperation]) -> set[ChangeQueue]:
    """Return the queues of all waits on these operations."""
    return {queue for entry in entries for queue in entry.queues}


def end_polls(entries: Iterable[TrackedOperation], now: float) -> None:
    """Record the end of a poll of these operations, successful or not."""
    for entry in entries:
        entry.is_being_polled = False
        entry.polled_at = now


def age(record: Operation) -> float:
    """Return how long an operation had been running when Neon wrote its record, in seconds."""
    return (record.total_duration_ms or 0) / 1000


def duration(observation: Observation, record: Operation, now: float) -> float:
    """Return how long an operation took from its start, in seconds.

    This is the duration in its record, limited to the range that the polls allow. The record
    contains only the running time, without the time spent in the queue of another operation.
    """
    minimum, maximum = observation.pending_at - observation.started_at, now - observation.started_at
    if record.total_duration_ms is None:
        return (minimum + maximum) / 2
    return min(max(age(record), minimum), maximum)
