"""Operations and the waits for them: what a status means, the latest record, what a wait has seen.

Pure: no I/O, no event loop.
"""

import copy
import enum
import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import (
    UNSUCCESSFUL,
    Operation,
    OperationRef,
    OperationStatus,
)
from neonctl_async.waiting.targets import Target
from neonctl_async.waiting.timing.forecast import Observation

SUCCEEDED = frozenset({OperationStatus.FINISHED, OperationStatus.SKIPPED})
ENDLESS = 1e9
"""A wait with at least this timeout, in seconds (about 30 years), has no deadline."""


class Outcome(enum.Enum):
    """The state of an operation for a wait: pending, or one of two terminal states."""

    SUCCEEDED = enum.auto()
    UNSUCCESSFUL = enum.auto()
    PENDING = enum.auto()


def is_retryable_failure(operation: Operation) -> bool:
    """Return whether an operation has failed and its record does not give a time for a retry.

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

    A more final record always does: a success replaces a failure, and both replace a pending one.
    Only a success replaces a success. Otherwise the newer record counts, because lists may lag
    behind.
    """
    rank, known_rank = finality(record), finality(known)
    if rank > known_rank:
        return True
    if known.status in SUCCEEDED and rank < known_rank:
        return False
    return record.updated_at >= known.updated_at


def finality(operation: Operation) -> int:
    """Return 2 for a successful operation, 1 for an unsuccessful one, and 0 for a pending one.

    An unsuccessful operation with a ``retry_at`` counts as pending, even after that time.
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


class TrackedOperation:
    """The latest record of an operation, for all waits of a client. Times are on the loop's clock.

    One poller updates it while any wait needs it. After that, the waits still refer to it.
    """

    __slots__ = (
        "failing_since",
        "failure_final_at",
        "missing_final_at",
        "observation",
        "outcome",
        "poll",
        "polled_at",
        "read_at",
        "record",
        "ref",
        "started_at",
        "waits",
        "was_polled",
    )

    def __init__(self, ref: OperationRef, now: float, record: Operation | None = None) -> None:
        self.ref: OperationRef = ref
        self.record: Operation | None = record
        self.outcome: Outcome = Outcome.PENDING
        self.waits: dict[OperationWait, None] = {}
        """The waits that need the operation while it is pending, oldest first."""
        self.poll: object | None = None
        """The poll that is reading the operation, if any."""
        self.started_at: float = now
        """The start of the operation, or of its tracking until a record is known."""
        self.was_polled: bool = False
        self.polled_at: float = now
        """The end of the latest poll, successful or not; at first, the start of the tracking."""
        self.read_at: float = now
        """The end of the latest request that returned the record or could have returned it."""
        self.failing_since: float = math.inf
        """The time of the first failed poll since the latest record; inf if none has failed."""
        self.observation: Observation | None = None
        self.failure_final_at: float = math.inf
        """The time from which a failure is final; inf if the record is not a failure."""
        self.missing_final_at: float = math.inf
        """The time from which a 404 is final; inf unless the latest result was a 404."""

    @property
    def has_new_failure(self) -> bool:
        """True if the operation has failed, and a planned poll will read it again."""
        return self.polled_at < self.failure_final_at < math.inf

    @property
    def recheck_at(self) -> float:
        """The time of the poll that makes a failure or a 404 final; inf if there is none."""
        times = (self.failure_final_at, self.missing_final_at)
        return min((at for at in times if at > self.polled_at), default=math.inf)


def waits_on(entries: Iterable[TrackedOperation]) -> "dict[OperationWait, None]":
    """Return all waits on these operations, each once, in a deterministic order."""
    return {wait: None for entry in entries for wait in entry.waits}


class OperationWait:
    """The operations of one wait: what it has seen of them, and what has changed since.

    ``are_new`` is True if the records are from a response that has just arrived. ``timeout`` is in
    seconds, from :meth:`start` on.

    Pollers deliver changed operations. An operation is queued at most once, in the order of the
    latest changes, because a wait sees only its latest record. A slow wait therefore does not delay
    a poller.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        *,
        timeout: float | None = None,
        are_new: bool = False,
    ) -> None:
        self.timeout: float | None = timeout
        self.deadline: float = math.inf
        """The end of the wait on the loop's clock, in seconds."""
        self.reports_each: bool = False
        """True if the caller sees each change, False if it only sees the end of the wait."""
        self.last_error: NeonError | None = None
        """The latest poll failure that did not end the wait."""
        self.on_ready: Callable[[], None] = _ignore
        """Called when a change or an error can be taken, or the last poll has ended."""
        self._are_new = are_new
        self._order = [target.ref for target in targets]
        self._operations: dict[OperationRef, TrackedOperation] = {}
        self._reported: dict[OperationRef, Operation] = {}
        self._settled: dict[OperationRef, Outcome] = {}
        """The outcomes of the operations that the wait has seen in a terminal state."""
        # Not a dict: finding its first item takes longer with each item removed before it.
        self._changed: OrderedDict[TrackedOperation, None] = OrderedDict()
        self._unpolled: set[TrackedOperation] = set()
        """The operations that need a poll from ``_extended_at`` on before the wait may end."""
        self._extended_at = -math.inf
        self._failure: Exception | None = None
        for target in targets:
            known = self._operations.setdefault(target.ref, TrackedOperation(target.ref, 0.0))
            if isinstance(target, Operation) and (
                known.record is None or _is_newer(target, known.record)
            ):
                known.record = target

    def start(self, now: float, *, reports_each: bool) -> None:
        """Start the timeout. ``reports_each`` is True if the caller sees each change."""
        timeout = math.inf if self.timeout is None else self.timeout
        self.deadline = now + timeout if timeout < ENDLESS else math.inf
        self.reports_each = reports_each

    def __iter__(self) -> Iterator[TrackedOperation]:
        """Iterate over the operations in order, each once."""
        return iter(list(self._operations.values()))

    def track(self, operation: TrackedOperation) -> None:
        """Follow an operation that a poller updates from now on."""
        self._operations[operation.ref] = operation

    def note(self, operation: TrackedOperation) -> None:
        """Record a change."""
        if operation.outcome is not Outcome.PENDING:
            self._settled[operation.ref] = operation.outcome

    def report(self, operation: TrackedOperation) -> bool:
        """Record that an operation is reported. Return whether there is something new to report.

        The result is False if the operation was reported before and nothing but
        ``total_duration_ms`` has changed.
        """
        record = operation.record
        assert record is not None  # every change has one
        known = self._reported.get(operation.ref)
        self._reported[operation.ref] = record
        return known is None or not is_unchanged(known, record)

    def first_outcome(self, record: Operation, now: datetime, grace: float) -> Outcome:
        """Return the outcome of an operation's first record at the time ``now``.

        A failure counts as pending if it is part of a new response or happened in the last
        ``grace`` seconds, because only another poll makes it final.
        """
        is_retryable = self._are_new and is_retryable_failure(record)
        if is_retryable or is_new_failure(record, now, grace):
            return Outcome.PENDING
        return outcome(record, now)

    def settle_failures(self) -> list[TrackedOperation]:
        """Make the failures that no poll has confirmed final, and return them."""
        failed = [
            one
            for one in self._operations.values()
            if one.record is not None
            and one.ref not in self._settled
            and is_retryable_failure(one.record)
        ]
        self._settled |= {one.ref: Outcome.UNSUCCESSFUL for one in failed}
        return failed

    @property
    def refs(self) -> Collection[OperationRef]:
        """The operations in order, each once."""
        return self._operations.keys()

    @property
    def is_complete(self) -> bool:
        """True if the wait has seen every operation in a terminal state."""
        return len(self._settled) == len(self._operations)

    def is_settled(self, ref: OperationRef) -> bool:
        """Return whether the wait has seen an operation in a terminal state."""
        return ref in self._settled

    def has_failed(self, ref: OperationRef) -> bool:
        """Return whether the wait has seen an operation finish without success."""
        return self._settled.get(ref) is Outcome.UNSUCCESSFUL

    def newest(self) -> list[Operation]:
        """Return the latest records in the order of the targets, including duplicates."""
        records = (self._operations[ref].record for ref in self._order)
        return [record for record in records if record is not None]

    def settled(self, *outcomes: Outcome) -> list[Operation]:
        """Return the final records, each once: all, or only those with one of ``outcomes``."""
        wanted = outcomes or tuple(Outcome)
        return [
            one.record
            for ref, one in self._operations.items()
            if one.record is not None and self._settled.get(ref) in wanted
        ]

    def unsettled(self) -> list[TrackedOperation]:
        """Return the operations that the wait has not seen in a terminal state."""
        return [one for ref, one in self._operations.items() if ref not in self._settled]

    def pending(self) -> list[Target]:
        """Return the latest record of each pending operation, or its reference if there is none."""
        return [one.record or one.ref for one in self.unsettled()]

    def deliver(self, operation: TrackedOperation) -> None:
        """Put a changed operation at the end of the queue."""
        self._changed[operation] = None
        self._changed.move_to_end(operation)
        self.on_ready()

    def fail(self, error: Exception) -> None:
        """End the wait with ``error`` after the queued changes. Later errors are ignored."""
        self._failure = self._failure or error
        self.on_ready()

    def extend(self, operations: Iterable[TrackedOperation], now: float, seconds: float) -> None:
        """Move the deadline, so that one more poll can show that these operations have finished."""
        self._unpolled = set(operations)
        self._extended_at = now
        self.deadline = now + seconds

    @property
    def is_extended(self) -> bool:
        """True if the deadline was moved."""
        return self._extended_at > -math.inf

    @property
    def is_over(self) -> bool:
        """True if the poll for which the deadline was moved has ended."""
        return self.is_extended and not self._unpolled

    def note_poll(self, operation: TrackedOperation, started_at: float) -> None:
        """Record that a poll of an operation has ended, successfully or not."""
        if self._unpolled and started_at >= self._extended_at:
            self._unpolled.discard(operation)
            if not self._unpolled:
                self.on_ready()

    def take(self) -> TrackedOperation | None:
        """Remove and return the first changed operation, or return None if there is none.

        Raises the error passed to :meth:`fail` when no change is left.
        """
        if self._changed:
            return self._changed.popitem(last=False)[0]
        if isinstance(self._failure, NeonError):
            # The same failure may end many waits: each raises its own copy.
            raise copy.copy(self._failure) from self._failure.__cause__
        if self._failure is not None:
            raise self._failure
        return None


def _is_newer(record: Operation, known: Operation) -> bool:
    """Return whether ``record`` is more final than ``known``, or as final and newer."""
    return (finality(record), record.updated_at) > (finality(known), known.updated_at)


def _ignore() -> None:
    pass
