"""An operation that waits need. Pure: no I/O, no event loop."""

import math
from collections.abc import Iterable
from typing import Protocol

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.status import Outcome
from neonctl_async.waiting.timing.forecast import Observation


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
