"""The state of one wait on operations."""

import asyncio
import copy
import math
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.targets import Target
from neonctl_async.waiting.tracked import (
    Outcome,
    TrackedOperation,
    finality,
    is_new_failure,
    is_retryable_failure,
    is_unchanged,
    outcome,
)

ENDLESS = 1e9
"""A timeout, in seconds, from which on a wait has no deadline: about 30 years."""


class OperationWait:
    """The operations of one wait: what it has seen of them, and what has changed since.

    ``are_new`` is True if the records are from a response that has just arrived. ``timeout`` is in
    seconds, from :meth:`start` on.

    Pollers deliver changed operations. One is queued at most once, in the order of the latest
    changes, because a wait sees only its newest record. A slow wait therefore delays no poller.
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
        """The newest failure of a poll that did not end the wait."""
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
        self._ready = asyncio.Event()
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
        """Return whether the record of an operation differs from the previously reported one."""
        record = operation.record
        assert record is not None  # every change has one
        known = self._reported.get(operation.ref)
        self._reported[operation.ref] = record
        return known is None or not is_unchanged(known, record)

    def first_outcome(self, record: Operation, now: datetime, grace: float) -> Outcome:
        """Return the outcome of a first record at the time ``now``.

        A failure of the last ``grace`` seconds counts as pending, because only another poll makes
        it final.
        """
        is_retryable = self._are_new and is_retryable_failure(record)
        if is_retryable or is_new_failure(record, now, grace):
            return Outcome.PENDING
        return outcome(record, now)

    def settle_failures(self) -> list[TrackedOperation]:
        """Make final, and return, the failures that no poll has confirmed."""
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
        """Return the newest records in the order of the targets, including duplicates."""
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
        """Return the newest record of each pending operation, or its reference if there is none."""
        return [one.record or one.ref for one in self.unsettled()]

    def deliver(self, operation: TrackedOperation) -> None:
        """Put a changed operation at the end of the queue."""
        self._changed[operation] = None
        self._changed.move_to_end(operation)
        self._ready.set()

    def fail(self, error: Exception) -> None:
        """End the wait with ``error`` after the queued changes. Later errors are ignored."""
        self._failure = self._failure or error
        self._ready.set()

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
        """True if the poll for which the deadline was moved is over."""
        return self.is_extended and not self._unpolled

    def note_poll(self, operation: TrackedOperation, started_at: float) -> None:
        """Record that a poll of an operation is over, successful or not."""
        if self._unpolled and started_at >= self._extended_at:
            self._unpolled.discard(operation)
            if not self._unpolled:
                self._ready.set()

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
        self._ready.clear()
        return None

    async def wait_until_ready(self) -> None:
        """Wait until there is a change or an error to take."""
        await self._ready.wait()


def _is_newer(record: Operation, known: Operation) -> bool:
    """Return whether ``record`` is the newer of two records that the caller passed in any order."""
    return (finality(record), record.updated_at) > (finality(known), known.updated_at)
