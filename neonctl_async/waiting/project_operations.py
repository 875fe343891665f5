"""The tracked operations of one project, without I/O. All times are on the loop's clock."""

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import datetime

from neonctl_async.config import PollPolicy
from neonctl_async.errors import NeonError, NotFoundError
from neonctl_async.hooks import StatusChanged
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus
from neonctl_async.waiting.poll_plan import PollPlan
from neonctl_async.waiting.tracked import (
    OperationWait,
    Outcome,
    TrackedOperation,
    is_retryable_failure,
    is_unchanged,
    outcome,
    supersedes,
    waits_on,
)

_logger = logging.getLogger(__name__)


MAX_RELEASED = 1000
"""The maximum number of pending operations without a wait that a client remembers."""
MISSING_SECONDS = 60.0
"""How long the 404s of a released operation count, from its latest poll on."""


class ReleasedOperations:
    """The pending operations that waits released most recently.

    A program may wait repeatedly, each time briefly. A later wait then continues with the poll
    delays of the previous one, instead of starting over.
    """

    def __init__(self) -> None:
        self._by_ref: OrderedDict[OperationRef, TrackedOperation] = OrderedDict()

    def keep(self, entry: TrackedOperation) -> None:
        """Remember an operation, and forget the oldest one if there are too many."""
        self._by_ref[entry.ref] = entry
        self._by_ref.move_to_end(entry.ref)
        if len(self._by_ref) > MAX_RELEASED:
            self._by_ref.popitem(last=False)

    def take(self, ref: OperationRef) -> TrackedOperation | None:
        """Remove and return an operation, or return None if it is unknown."""
        return self._by_ref.pop(ref, None)


class ProjectOperations:
    """The operations of one project that waits need.

    New records are compared with the known ones, and the waits are notified of changes. A failure
    or a 404 ends a wait only once a later poll confirms it: see ``PollPolicy``.
    """

    def __init__(
        self,
        plan: PollPlan,
        policy: PollPolicy,
        server_now: Callable[[], datetime],
        on_status: Callable[[StatusChanged], object],
        released: ReleasedOperations,
    ) -> None:
        self._released = released
        self._by_id: dict[str, TrackedOperation] = {}
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
        """Return the operations that no poll is reading."""
        return [entry for entry in self._by_id.values() if entry.poll is None]

    def is_tracked(self, entry: TrackedOperation) -> bool:
        """Return whether ``entry`` is still tracked, that is, neither dropped nor replaced."""
        return self._by_id.get(entry.ref.id) is entry

    def add(
        self, ref: OperationRef, record: Operation | None, wait: OperationWait, now: float
    ) -> TrackedOperation:
        """Track an operation. Deliver it to ``wait`` once it has a record, and when it changes.

        ``record`` is the latest record that the caller has.
        """
        entry = self._by_id.get(ref.id)
        if entry is None:
            entry = self._by_id[ref.id] = TrackedOperation(ref, now)
            if (before := self._released.take(ref)) is not None:
                entry.started_at, entry.polled_at = before.started_at, before.polled_at
                entry.failing_since = before.failing_since
                if now - before.polled_at < MISSING_SECONDS:
                    entry.missing_final_at = before.missing_final_at
        entry.waits[wait] = None
        if entry.record is not None:
            wait.deliver(entry)
        if record is not None:
            self._replace(entry, record, now)
        if self.is_tracked(entry):
            self._plan.add(entry, wait, now)
        return entry

    def remove(self, refs: Iterable[OperationRef], wait: OperationWait) -> None:
        """Stop deliveries to ``wait``, and drop operations that no other wait needs."""
        for ref in refs:
            entry = self._by_id.get(ref.id)
            if entry is not None and wait in entry.waits:
                self._plan.remove(entry, wait)
                del entry.waits[wait]
                if not entry.waits:
                    self._drop(entry)
                    self._released.keep(entry)

    def needs_confirmation(self, entry: TrackedOperation, record: Operation, now: float) -> bool:
        """Return whether a read by id must confirm that this failure is final. A list may lag."""
        return is_retryable_failure(record) and entry.failure_final_at <= now

    def update(self, entry: TrackedOperation, record: Operation, now: float) -> None:
        """Record Neon's response to a poll of an operation, and notify the waits of a change."""
        if self.is_tracked(entry):
            entry.missing_final_at = math.inf
            entry.failing_since = math.inf
            self._replace(entry, record, now)

    def _replace(self, entry: TrackedOperation, record: Operation, now: float) -> None:
        """Replace the record of an operation unless the new one is older. Notify the waits."""
        known = entry.record
        is_confirmed = is_retryable_failure(record)
        if known is not None and not supersedes(record, known):
            record = known  # a list may lag behind: never go back to an older record
        settled = outcome(record, self._server_now())
        if is_retryable_failure(record):
            entry.failure_final_at = min(entry.failure_final_at, now + self._failed_grace)
            if not (is_confirmed and now >= entry.failure_final_at):
                settled = Outcome.PENDING
        else:
            entry.failure_final_at = math.inf
        self._plan.note_record(entry, record, now, is_settled=settled is not Outcome.PENDING)
        if settled is Outcome.PENDING and known is not None and is_unchanged(known, record):
            return
        entry.record = record
        entry.outcome = settled
        if known is None or known.status != record.status:
            self._notify(record, None if known is None else known.status)
        for wait in entry.waits:
            wait.deliver(entry)
        if settled is not Outcome.PENDING:
            self._drop(entry)

    def note_failure(
        self, entries: Iterable[TrackedOperation], error: NeonError, now: float
    ) -> None:
        """Record a failed poll after which the operations are polled again.

        A failure other than a 404 restarts the grace period of earlier 404s, because it does not
        show whether the operation exists.
        """
        for entry in entries:
            entry.failing_since = min(entry.failing_since, now)
            if not isinstance(error, NotFoundError):
                entry.missing_final_at = math.inf
        _logger.warning("a poll of operations failed and will be repeated: %s", error)
        for wait in waits_on(entries):
            wait.last_error = error

    def note_not_found(
        self, entries: Iterable[TrackedOperation], now: float, *, is_list: bool
    ) -> tuple[list[TrackedOperation], list[TrackedOperation]]:
        """Record a 404. Return the operations to poll again, and those for which the 404 is final.

        If an operation was announced or seen, a 404 is final only after ``missing_grace`` seconds;
        otherwise it is final at once. For a list, it is enough if one tracked operation of the
        project was announced or seen.
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
            for wait in entry.waits:
                wait.fail(error)
            if self.is_tracked(entry):
                self._drop(entry)

    def fail_all(self, error: Exception) -> None:
        """End all waits with ``error``."""
        self.fail(list(self._by_id.values()), error)

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
        self._plan.drop(entry)
