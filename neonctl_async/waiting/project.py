"""The tracked operations of one project and their records, without I/O.

All times are on the loop's clock.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from neonctl_async.config import PollPolicy
from neonctl_async.errors import NeonError
from neonctl_async.hooks import StatusChanged
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus
from neonctl_async.waiting.status import (
    Change,
    Outcome,
    is_retryable_failure,
    is_unchanged,
    outcome,
    supersedes,
)
from neonctl_async.waiting.timing.plan import ProjectPlan
from neonctl_async.waiting.tracked import Queue, TrackedOperation, queues_of

# The name of the poller's module, by which applications filter these records.
_logger = logging.getLogger("neonctl_async.waiting.poller")


class ProjectOperations:
    """The operations of one project that waits are pending on.

    New records are compared with the known ones, and delivered to the queues of the waits. A
    failure or a 404 ends a wait only once a later poll confirms it: see ``PollPolicy``.
    """

    def __init__(
        self,
        plan: ProjectPlan,
        policy: PollPolicy,
        server_now: Callable[[], datetime],
        on_status: Callable[[StatusChanged], object],
    ) -> None:
        self._by_id: dict[str, TrackedOperation] = {}
        self._waits: Counter[Queue] = Counter()
        """The number of operations that each wait is pending on."""
        self._plan = plan
        self._failed_grace = policy.failed_grace
        self._missing_grace = policy.missing_grace
        self._server_now = server_now
        self._on_status = on_status

    def __len__(self) -> int:
        return len(self._by_id)

    def __contains__(self, id: str) -> bool:
        return id in self._by_id

    def ready(self) -> list[TrackedOperation]:
        """Return the operations without a poll in progress."""
        return [entry for entry in self._by_id.values() if not entry.is_being_polled]

    def is_tracked(self, entry: TrackedOperation) -> bool:
        """Return whether ``entry`` was neither dropped nor replaced in the meantime."""
        return self._by_id.get(entry.ref.id) is entry

    def add(self, ref: OperationRef, record: Operation | None, queue: Queue, now: float) -> None:
        """Deliver every change of an operation to ``queue``, and plan its next poll.

        ``record`` is the newest record that the caller has.
        """
        entry = self._by_id.get(ref.id)
        if entry is None:
            entry = self._by_id[ref.id] = TrackedOperation(ref, now)
        if queue not in entry.queues:
            entry.queues.add(queue)
            self._waits[queue] += 1
            self._plan.note_waits(len(self._waits))
        known = entry.record
        if record is not None and (known is None or supersedes(record, known)):
            self.update(entry, record, now)
        if known is not None and entry.record is known:
            queue.deliver(Change(ref, known, Outcome.PENDING))
        self._plan.add(entry, queue, now)

    def remove(self, refs: Iterable[OperationRef], queue: Queue) -> None:
        """Stop deliveries to ``queue``, and drop operations that no other wait needs."""
        for ref in refs:
            entry = self._by_id.get(ref.id)
            if entry is not None and queue in entry.queues:
                entry.queues.discard(queue)
                self._release(queue)
                if not entry.queues:
                    self._drop(entry)

    def update(self, entry: TrackedOperation, record: Operation, now: float) -> None:
        """Deliver a record of an operation, unless it is older than the known one."""
        if not self.is_tracked(entry):
            return
        known = entry.record
        is_failure = is_retryable_failure(record)
        if known is not None and not supersedes(record, known):
            record = known  # a list may lag behind: never go back to an older record
        settled = outcome(record, self._server_now())
        if is_retryable_failure(record) and not self._is_final(entry, now, is_confirmed=is_failure):
            settled = Outcome.PENDING
        change = Change(entry.ref, record, settled)
        self._note_record(entry, change, now)
        if settled is Outcome.PENDING and known is not None and is_unchanged(known, record):
            return
        entry.record = record
        if known is None or known.status != record.status:
            self._notify(record, None if known is None else known.status)
        for queue in entry.queues:
            queue.deliver(change)
        if settled is not Outcome.PENDING:
            self._drop(entry)

    def note_failure(self, entries: Iterable[TrackedOperation], error: NeonError) -> None:
        """Record a failed poll after which the operations are polled again."""
        _logger.warning("a poll of operations failed and will be repeated: %s", error)
        for queue in queues_of(entries):
            queue.last_error = error

    def note_not_found(
        self, entries: Iterable[TrackedOperation], now: float, *, is_list: bool
    ) -> tuple[list[TrackedOperation], list[TrackedOperation]]:
        """Record a 404. Return the operations to poll again, and those for which it is final.

        An operation that has been announced or seen exists, and so does its project: its 404 is
        final only after ``missing_grace`` seconds.
        """
        is_known_project = is_list and any(entry.record for entry in self._by_id.values())
        again: list[TrackedOperation] = []
        final: list[TrackedOperation] = []
        for entry in entries:
            is_known = is_known_project or entry.record is not None
            entry.missing_final_at = min(entry.missing_final_at, now + self._missing_grace)
            is_final = not is_known or now >= entry.missing_final_at
            (final if is_final else again).append(entry)
        return again, final

    def fail(self, entries: Iterable[TrackedOperation], error: Exception) -> None:
        """End all waits on these operations with ``error``."""
        for entry in entries:
            for queue in entry.queues:
                queue.fail(error)
            if self.is_tracked(entry):
                self._drop(entry)

    def fail_all(self, error: Exception) -> None:
        """End all waits with ``error``."""
        self.fail(list(self._by_id.values()), error)

    def _is_final(self, entry: TrackedOperation, now: float, *, is_confirmed: bool) -> bool:
        """Return whether a failure is final: a response contains it after ``failed_grace``."""
        entry.failure_final_at = min(entry.failure_final_at, now + self._failed_grace)
        return is_confirmed and now >= entry.failure_final_at

    def _note_record(self, entry: TrackedOperation, change: Change, now: float) -> None:
        entry.missing_final_at = math.inf
        if not is_retryable_failure(change.operation):
            entry.failure_final_at = math.inf
        is_settled = change.outcome is not Outcome.PENDING
        self._plan.note_record(entry, change.operation, now, is_settled=is_settled)

    def _notify(self, operation: Operation, previous: OperationStatus | None) -> None:
        level = logging.INFO if operation.status.is_known else logging.WARNING
        _logger.log(
            level,
            "%s %s in %s is %s%s",
            operation.action,
            operation.id,
            operation.project_id,
            operation.status,
            "" if operation.status.is_known else " (unknown status, treated as pending)",
        )
        self._on_status(StatusChanged(operation=operation, previous=previous))

    def _drop(self, entry: TrackedOperation) -> None:
        del self._by_id[entry.ref.id]
        for queue in entry.queues:
            self._release(queue)
        self._plan.remove(entry)

    def _release(self, queue: Queue) -> None:
        """Record that a wait is pending on one operation less."""
        self._waits[queue] -= 1
        if not self._waits[queue]:
            del self._waits[queue]
            self._plan.note_waits(len(self._waits))
