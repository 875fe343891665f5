"""An operation that waits need, and what its status means. Pure: no I/O, no event loop."""

import enum
import math
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import (
    UNSUCCESSFUL,
    Operation,
    OperationRef,
    OperationStatus,
)
from neonctl_async.waiting.timing.forecast import Observation

SUCCEEDED = frozenset({OperationStatus.FINISHED, OperationStatus.SKIPPED})


class Outcome(enum.Enum):
    """The state of an operation for a wait: pending, or one of two terminal states."""

    SUCCEEDED = enum.auto()
    UNSUCCESSFUL = enum.auto()
    PENDING = enum.auto()


def is_retryable_failure(operation: Operation) -> bool:
    """Return whether an operation has failed and its record shows no time for a retry.

    Neon documents ``failed`` both as final and as a status that may be followed by a retry.
    """
    return operation.status == OperationStatus.FAILED and operation.retry_at is None


def is_new_failure(operation: Operation, now: datetime, grace: float) -> bool:
    """Return whether an operation failed less than ``grace`` seconds ago, without a ``retry_at``.

    Neon may retry such an operation. Timestamps may be rounded down to the second.
    """
    if not grace or not is_retryable_failure(operation):
        return False
    return (now - operation.updated_at).total_seconds() < grace + 1


def supersedes(record: Operation, known: Operation) -> bool:
    """Return whether a received record replaces the known record of the same operation.

    A record may come from a list that lags behind, so it is dropped if its ``updated_at`` is older.
    A terminal status replaces any other status, whatever its ``updated_at``.
    """
    rank, known_rank = finality(record), finality(known)
    if rank > known_rank:
        return True
    if known.status in SUCCEEDED and rank < known_rank:
        return False
    return record.updated_at >= known.updated_at


def finality(operation: Operation) -> int:
    """Return 2 for a successful operation, 1 for an unsuccessful one, and 0 for a pending one.

    An unsuccessful operation with a ``retry_at`` counts as pending, at any time.
    """
    if operation.status in SUCCEEDED:
        return 2
    return int(operation.status in UNSUCCESSFUL and operation.retry_at is None)


def is_unchanged(old: Operation, new: Operation) -> bool:
    """Return whether two records of an operation differ at most in ``total_duration_ms``.

    Neon may increase ``total_duration_ms`` from poll to poll while nothing else changes.
    """
    return (
        old.status == new.status
        and old.updated_at == new.updated_at
        and old.failures_count == new.failures_count
        and old.retry_at == new.retry_at
        and old.error == new.error
    )


def outcome(operation: Operation, now: datetime) -> Outcome:
    """Return the outcome of ``operation`` at the time ``now``.

    An unknown status is pending. An unsuccessful operation with a ``retry_at`` in the future is
    also pending, because Neon will retry it.
    """
    if operation.status in SUCCEEDED:
        return Outcome.SUCCEEDED
    if operation.status not in UNSUCCESSFUL:
        return Outcome.PENDING
    if operation.retry_at is not None and operation.retry_at > now:
        return Outcome.PENDING
    return Outcome.UNSUCCESSFUL


class Queue(Protocol):
    """What pollers need of a wait, which :class:`OperationWait` is."""

    deadline: float
    reports_each: bool
    last_error: NeonError | None

    @property
    def is_extended(self) -> bool:
        """True if the deadline was moved, so that one more poll can end the wait."""
        ...

    def deliver(self, operation: "TrackedOperation") -> None:
        """Add an operation that has changed."""
        ...

    def fail(self, error: Exception) -> None:
        """End the wait with ``error``."""
        ...

    def note_poll(self, operation: "TrackedOperation", started_at: float) -> None:
        """Record that a poll of an operation is over, successful or not."""
        ...


class TrackedOperation:
    """The newest record of an operation, for all waits of a client. Times are on the loop's clock.

    One poller updates it while any wait needs it. The waits keep it after that.
    """

    __slots__ = (
        "failing_since",
        "failure_final_at",
        "missing_final_at",
        "observation",
        "outcome",
        "poll",
        "polled_at",
        "queues",
        "read_at",
        "record",
        "ref",
        "started_at",
        "was_polled",
    )

    def __init__(self, ref: OperationRef, now: float, record: Operation | None = None) -> None:
        self.ref: OperationRef = ref
        self.record: Operation | None = record
        self.outcome: Outcome = Outcome.PENDING
        self.queues: set[Queue] = set()
        """The waits that need the operation while it is pending."""
        self.poll: object | None = None
        """The poll that reads it now."""
        self.started_at: float = now
        """The start of the operation; the start of the tracking, until a record is known."""
        self.was_polled: bool = False
        self.polled_at: float = now
        """The end of its newest poll, successful or not; the start of the tracking before it."""
        self.read_at: float = now
        """The end of the newest request that returned its record or could have returned it."""
        self.failing_since: float = math.inf
        """The first failed poll since the newest record; inf if the newest poll did not fail."""
        self.observation: Observation | None = None
        self.failure_final_at: float = math.inf
        """The time from which a failure is final; inf if its record is not a failed one."""
        self.missing_final_at: float = math.inf
        """The time from which a 404 is final; inf if its record is newer than all 404s."""

    @property
    def has_new_failure(self) -> bool:
        """True if the operation has failed, and a planned poll will read it again."""
        return self.polled_at < self.failure_final_at < math.inf

    @property
    def recheck_at(self) -> float:
        """The time of the poll that makes a failure or a 404 final; inf if there is none."""
        times = (self.failure_final_at, self.missing_final_at)
        return min((at for at in times if at > self.polled_at), default=math.inf)


def queues_of(entries: Iterable[TrackedOperation]) -> set[Queue]:
    """Return the queues of all waits on these operations."""
    return {queue for entry in entries for queue in entry.queues}
