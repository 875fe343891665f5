"""The poller of one project, shared by all waits of the client."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeGuard, TypeVar

import anyio
from msgspec import UNSET, UnsetType

from neonctl_async.clock import utc_now
from neonctl_async.config import PollPolicy
from neonctl_async.errors import (
    APIError,
    ClientClosedError,
    InvalidResponseError,
    NeonError,
    TransportError,
)
from neonctl_async.hooks import StatusChanged
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus
from neonctl_async.transport.budget import Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.retry import TRANSIENT_STATUSES
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.pace import Pace
from neonctl_async.waiting.plan import ProjectPlan
from neonctl_async.waiting.source import MAX_PAGE, OperationSource
from neonctl_async.waiting.status import Change, Outcome, is_unchanged, outcome
from neonctl_async.waiting.tracked import TrackedOperation, end_polls, queues_of

T = TypeVar("T")

_logger = logging.getLogger(__name__)

SCAN_MARGIN = 10
"""Number of operations that a scan reads beyond the tracked ones: other clients start some too."""
MISSING_PER_EXTRA_PAGE = 100
"""Number of missing operations for which a scan reads one page more than planned."""
MAX_CONCURRENT_GETS = 16
"""Number of missing operations of a project that are read by id at a time."""
RECHECK_SECONDS = 1.0
"""Time after which a plan is made again while the rate budget is short, in seconds."""
MAX_PAUSE = 60.0
"""Longest time that a ``Retry-After`` can delay the polls of a project, in seconds."""


class Poller:
    """Polls the pending operations of one project while any wait needs them.

    A single pending operation is read by id. For two or more, one list page is read, and then the
    operations missing from it by id: a missing operation is still pending. The youngest operation
    sets the delay. A poll that hangs delays only its own operations. A transient failure ends no
    wait; 401, 403, 404 and other permanent failures end the wait at once.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        policy: PollPolicy,
        forecast: Forecast,
        pace: Pace,
        *,
        dispatcher: HookDispatcher,
        replan_all: Callable[[], bool],
        note_waits: Callable[[], None],
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._plan = ProjectPlan(policy, forecast, pace)
        self._dispatcher = dispatcher
        self._replan_all = replan_all
        self._note_waits = note_waits
        self._tracked_by: Counter[ChangeQueue] = Counter()
        self._tracked: dict[str, TrackedOperation] = {}
        self._not_before = 0.0
        self._scan_depth = 0
        self._replanned = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, ref: OperationRef, record: Operation | None, queue: ChangeQueue) -> None:
        """Deliver every change of an operation to ``queue``.

        ``record`` is the newest record that the caller has.
        """
        now = _time()
        entry = self._tracked.get(ref.id)
        if entry is None:
            entry = self._tracked[ref.id] = TrackedOperation(ref, now)
        if queue not in entry.queues:
            entry.queues.add(queue)
            self._tracked_by[queue] += 1
            self._note_waits()
        known = entry.record
        if record is not None and (known is None or record.updated_at >= known.updated_at):
            self._update(entry, record)
        if known is not None and entry.record is known:
            queue.deliver(Change(ref, known, Outcome.PENDING))
        self._plan.add(entry, queue, now)
        self._replanned.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"poll {self._project_id}")

    def remove(self, refs: Iterable[OperationRef], queue: ChangeQueue) -> None:
        """Stop deliveries to ``queue``, and drop operations that no other wait needs."""
        for ref in refs:
            entry = self._tracked.get(ref.id)
            if entry is not None:
                if queue in entry.queues:
                    entry.queues.discard(queue)
                    self._untrack(queue)
                if not entry.queues:
                    self._drop(entry)

    @property
    def waits(self) -> int:
        """The number of waits with pending operations in this project."""
        return len(self._tracked_by)

    def _untrack(self, queue: ChangeQueue) -> None:
        self._tracked_by[queue] -= 1
        if not self._tracked_by[queue]:
            del self._tracked_by[queue]
            self._note_waits()

    @property
    def is_idle(self) -> bool:
        """True if no operation is tracked."""
        return not self._tracked

    def stop(self, reason: NeonError) -> asyncio.Task[None] | None:
        """Cancel the task and its polls. Pending waits raise ``reason``.

        Return the task if it is still running.
        """
        self._fail(list(self._tracked.values()), reason)
        if self._task is not None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        try:
            # The first poll covers all operations of a call, even if tasks start at once.
            await asyncio.sleep(0)
            # New operations may arrive while the polls of the previous ones are being cancelled.
            while self._tracked:
                await self._poll_while_tracked()
        finally:
            self._task = None
            # No wait may hang if other code cancels this task.
            reason = ClientClosedError("the polling task was cancelled")
            self._fail(list(self._tracked.values()), reason)

    async def _poll_while_tracked(self) -> None:
        async with anyio.create_task_group() as polls:
            while await self._wait_until_due():
                slot = await self._source.acquire_poll_slot(of_list=len(self._tracked) > 1)
                if ready := self._start_poll():
                    polls.start_soon(self._poll, ready, slot)
                else:
                    slot.cancel()
            polls.cancel_scope.cancel()

    async def _wait_until_due(self) -> bool:
        """Wait for the time of the next poll. Return False if no operation is tracked any more."""
        while self._tracked:
            if self._plan.is_stretched:
                self.replan()
            due = max(self._plan.next_poll_at, self._not_before)
            if due <= _time():
                self._plan.claim(_time())
                return True
            if self._plan.is_stretched:
                due = min(due, _time() + RECHECK_SECONDS)
            self._replanned.clear()
            with anyio.CancelScope(deadline=due):
                await self._replanned.wait()
        return False

    def _start_poll(self) -> list[TrackedOperation]:
        """Return the operations to poll now: all without a poll in progress."""
        ready = [entry for entry in self._tracked.values() if not entry.is_being_polled]
        for entry in ready:
            entry.is_being_polled = True
        self._plan.start_poll(_time())
        return ready

    async def _poll(self, ready: Sequence[TrackedOperation], slot: Slot) -> None:
        started = _time()
        if len(ready) == 1:
            await self._poll_one(ready[0], slot)
        elif missing := await self._poll_list(ready, slot):
            if len(missing) < len(ready):
                self._finish_poll(started)
            slots = asyncio.Semaphore(MAX_CONCURRENT_GETS)
            await asyncio.gather(*(self._poll_missing(entry, slots) for entry in missing))
        self._finish_poll(started)

    def _finish_poll(self, started: float) -> None:
        self._plan.finish_poll(_time() - started)
        if not self._replan_all():
            self.replan()

    def replan(self) -> None:
        """Set the time of the next poll: by the schedule, or just before a deadline."""
        ready = [entry for entry in self._tracked.values() if not entry.is_being_polled]
        self._plan.replan(ready, _time())
        self._replanned.set()

    async def _poll_list(
        self, entries: Sequence[TrackedOperation], slot: Slot
    ) -> list[TrackedOperation]:
        """Read the newest operations. Return those of ``entries`` that are missing from them."""
        missing = {entry.ref.id: entry for entry in entries}
        are_all = len(entries) == len(self._tracked)
        scan_depth = self._scan_depth = max(len(entries) + SCAN_MARGIN, self._scan_depth)
        depth = deepest = 0
        cursor: str | UnsetType | None = UNSET
        while cursor is not None and (limit := _page_size(depth, scan_depth, len(missing))):
            if depth:
                slot = await self._source.acquire_poll_slot()
            request = self._source.newest(self._project_id, limit, cursor, slot)
            page = await self._attempt(request, missing.values())
            if page is None:
                end_polls(missing.values(), _time())
                return []
            deepest = self._update_from_page(page.operations, missing, depth) or deepest
            depth += len(page.operations)
            cursor = page.pagination.next_cursor if page.operations and page.pagination else None
        if len(missing) > 1:
            # Read more next time: a page costs one request, and so does each missing operation.
            self._scan_depth = max(self._scan_depth, min(2 * scan_depth, MAX_PAGE * len(missing)))
        elif are_all:
            self._scan_depth = deepest + SCAN_MARGIN
        return list(missing.values())

    def _update_from_page(
        self, page: Sequence[Operation], missing: dict[str, TrackedOperation], depth: int
    ) -> int:
        """Remove the operations of a page from ``missing``. Return the depth of the last one."""
        found = {
            operation.id: (missing.pop(operation.id), operation, position)
            for position, operation in enumerate(page, depth + 1)
            if operation.id in missing
        }
        end_polls((entry for entry, _, _ in found.values()), _time())
        # In the order in which the operations finished, as as_completed() promises.
        for entry, record, _ in sorted(found.values(), key=lambda match: match[1].updated_at):
            self._update(entry, record)
        return max((position for _, _, position in found.values()), default=0)

    async def _poll_missing(self, entry: TrackedOperation, slots: asyncio.Semaphore) -> None:
        async with slots:
            if not self._is_tracked(entry):
                return
            slot = await self._source.acquire_poll_slot(of_list=False)
            if self._is_tracked(entry):
                await self._poll_one(entry, slot)
            else:
                slot.cancel()

    def _is_tracked(self, entry: TrackedOperation) -> bool:
        """Return whether ``entry`` was neither dropped nor replaced in the meantime."""
        return self._tracked.get(entry.ref.id) is entry

    async def _poll_one(self, entry: TrackedOperation, slot: Slot) -> None:
        record = await self._attempt(self._source.get(entry.ref, slot), [entry])
        end_polls([entry], _time())
        if record is not None:
            self._update(entry, record)

    async def _attempt(
        self, request: Awaitable[T], entries: Iterable[TrackedOperation]
    ) -> T | None:
        try:
            return await request
        except Exception as error:  # noqa: BLE001 - no wait may hang, whatever the error
            if not _is_transient(error):
                self._fail(list(entries), error)
                return None
            _logger.warning("a poll of operations failed and will be repeated: %s", error)
            for queue in queues_of(entries):
                queue.last_error = error
            if isinstance(error, APIError) and error.retry_after:
                pause = min(error.retry_after, MAX_PAUSE)
                self._not_before = max(self._not_before, _time() + pause)
            return None

    def _update(self, entry: TrackedOperation, record: Operation) -> None:
        if not self._is_tracked(entry):
            return
        known = entry.record
        if known is not None and record.updated_at < known.updated_at:
            record = known  # a list may lag behind: never go back to an older record
        change = Change(entry.ref, record, outcome(record, utc_now()))
        is_settled = change.outcome is not Outcome.PENDING
        self._plan.note_record(entry, record, _time(), is_settled=is_settled)
        if known is not None and is_unchanged(known, record) and not is_settled:
            return
        entry.record = record
        if known is None or known.status != record.status:
            self._notify(record, None if known is None else known.status)
        for queue in entry.queues:
            queue.deliver(change)
        if is_settled:
            self._drop(entry)

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
        self._dispatcher.status(StatusChanged(operation=operation, previous=previous))

    def _fail(self, entries: Iterable[TrackedOperation], error: Exception) -> None:
        for entry in entries:
            for queue in entry.queues:
                queue.fail(error)
            if self._is_tracked(entry):
                self._drop(entry)

    def _drop(self, entry: TrackedOperation) -> None:
        del self._tracked[entry.ref.id]
        for queue in entry.queues:
            self._untrack(queue)
        self._plan.remove(entry)


def _page_size(depth: int, scan_depth: int, missing: int) -> int:
    """Return the size of the next page at ``depth``, 0 if the ``missing`` ones are read by id."""
    if missing == 0:
        return 0
    if depth < scan_depth:
        return min(scan_depth - depth, MAX_PAGE)
    return MAX_PAGE if depth < scan_depth + missing // MISSING_PER_EXTRA_PAGE * MAX_PAGE else 0


def _is_transient(error: Exception) -> TypeGuard[NeonError]:
    """Return whether the next poll may succeed after this failure."""
    if isinstance(error, APIError):
        return error.status in TRANSIENT_STATUSES or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)


def _time() -> float:
    return asyncio.get_running_loop().time()
