"""The poller of one project, shared by all waits of the client."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

import anyio
from msgspec import UNSET

from neonctl_async.errors import APIError, ClientClosedError, NeonError, NotFoundError
from neonctl_async.models.operations import Operation, OperationRef, OperationsPage
from neonctl_async.transport.budget import Slot
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.project import ProjectOperations
from neonctl_async.waiting.scan import PageScan, ReadQueue, ScanPlan
from neonctl_async.waiting.source import OperationSource, is_transient
from neonctl_async.waiting.timing.history import HISTORY_PAGE
from neonctl_async.waiting.timing.plan import ProjectPlan
from neonctl_async.waiting.tracked import TrackedOperation, end_polls

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

T = TypeVar("T")

MAX_CONCURRENT_GETS = 16
"""Number of missing operations of a project that are read by id at a time."""
MAX_PAUSE = 60.0
"""Longest time that a ``Retry-After`` can delay the polls of a project, in seconds."""


class Poller:
    """Polls the pending operations of one project while any wait needs them.

    A single pending operation is read by id. For two or more, list pages are read. A few of the
    operations missing from them are then read by id: a missing operation is still pending. A poll
    that hangs delays only its own operations. A transient failure ends no wait; 401, 403 and other
    permanent failures end it at once.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        plan: ProjectPlan,
        operations: ProjectOperations,
        replan_all: Callable[[], bool],
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._plan = plan
        self._operations = operations
        self._replan_all = replan_all
        self._scans = ScanPlan()
        self._read_limit = asyncio.Semaphore(MAX_CONCURRENT_GETS)
        self._not_before = 0.0
        self._replanned = asyncio.Event()
        self._is_outdated = False
        self._task: asyncio.Task[None] | None = None

    def add(self, ref: OperationRef, record: Operation | None, queue: ChangeQueue) -> None:
        """Deliver every change of an operation to ``queue``.

        ``record`` is the newest record that the caller has.
        """
        self._operations.add(ref, record, queue, _time())
        self._is_outdated = True
        self._replanned.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"poll {self._project_id}")
            self._task.add_done_callback(self._end)

    def remove(self, refs: Iterable[OperationRef], queue: ChangeQueue) -> None:
        """Stop deliveries to ``queue``, and drop operations that no other wait needs."""
        self._operations.remove(refs, queue)

    @property
    def is_idle(self) -> bool:
        """True if no operation is tracked."""
        return not self._operations

    def stop(self, reason: NeonError) -> asyncio.Task[None] | None:
        """Cancel the task and its polls. Pending waits raise ``reason``.

        Return the task if it is still running.
        """
        self._operations.fail_all(reason)
        if self._task is not None:
            self._task.cancel()
        return self._task

    def replan(self) -> None:
        """Set the time of the next poll again."""
        self._plan.replan(self._operations.ready(), _time())
        self._is_outdated = False
        self._replanned.set()

    async def _run(self) -> None:
        try:
            # The first poll covers all operations of a call, even if tasks start at once.
            await asyncio.sleep(0)
            # New operations may arrive while the polls of the previous ones are being cancelled.
            while self._operations:
                await self._poll_while_tracked()
        finally:
            self._end(self._task)

    def _end(self, task: asyncio.Task[None] | None) -> None:
        """End the task. A task that is cancelled before it starts only has its callback."""
        if self._task is task:
            self._task = None
            # No wait may hang if other code cancels this task.
            self._operations.fail_all(ClientClosedError("the polling task was cancelled"))

    async def _poll_while_tracked(self) -> None:
        async with anyio.create_task_group() as polls:
            while await self._wait_until_due():
                await polls.start(self._poll)
            polls.cancel_scope.cancel()

    async def _wait_until_due(self) -> bool:
        """Wait for the time of the next poll. Return False if no operation is tracked any more."""
        while self._operations:
            now = _time()
            is_due = self._plan.next_poll_at <= now
            if self._plan.is_stretched and (self._is_outdated or is_due):
                # Other polls and calls have used the budget since, and another scout may have left.
                self._plan.replan(self._operations.ready(), now)
                self._is_outdated = False
            due = max(self._plan.next_poll_at, self._not_before)
            if due <= now:
                self._plan.claim(now)
                return True
            self._replanned.clear()
            recheck_at = now + self._plan.recheck_seconds
            with anyio.CancelScope(deadline=min(due, recheck_at)) as scope:
                await self._replanned.wait()
            self._is_outdated |= scope.cancelled_caught
        return False

    def _start_poll(self) -> list[TrackedOperation]:
        """Return the operations to poll now: all without a poll in progress."""
        ready = self._operations.ready()
        for entry in ready:
            entry.is_being_polled = True
        self._plan.start_poll(_time())
        return ready

    async def _poll(self, *, task_status: "TaskStatus[None]") -> None:
        """Poll the operations that are ready once there is a slot. Then the next poll may start."""
        is_list = len(self._operations) > 1 or self._plan.wants_history(self._operations.ready())
        slot = await self._source.acquire_poll_slot(is_list=is_list)
        try:
            ready = self._start_poll()
            task_status.started()
            if ready:
                await self._poll_ready(ready, slot)
        finally:
            slot.cancel()

    async def _poll_ready(self, ready: Sequence[TrackedOperation], slot: Slot) -> None:
        started = _time()
        ids = [entry.ref.id for entry in ready]
        wants_history = self._plan.wants_history(ready)
        scan = self._scans.start(ids, HISTORY_PAGE if wants_history else 0)
        missing = ready if scan is None else await self._read_pages(ready, scan, slot)
        reads = ReadQueue(missing, _time(), self._plan.last_poll_margin)
        end_polls(reads.later, _time(), were_read=False)
        if len(reads.first) < len(ready):
            self._finish_poll(started)
        await self._read_by_id(reads, slot if scan is None else None)
        self._finish_poll(started)

    def _finish_poll(self, started: float) -> None:
        self._plan.finish_poll(_time() - started)
        if not self._replan_all():
            self.replan()

    async def _read_pages(
        self, entries: Sequence[TrackedOperation], scan: PageScan, slot: Slot
    ) -> list[TrackedOperation]:
        """Read the newest operations. Return those of ``entries`` that are missing from them."""
        by_id = {entry.ref.id: entry for entry in entries}
        are_all = len(entries) == len(self._operations)
        while limit := scan.next_page_size():
            missing = [by_id[id] for id in scan.missing]
            page_slot = None if scan.depth else slot
            request = self._source.newest(self._project_id, limit, scan.cursor or UNSET, page_slot)
            page = await self._attempt(request, missing, is_list=True)
            if not scan.depth:
                self._note_history(page)
            if page is None:
                end_polls(missing, _time(), were_read=False)
                return []
            found = scan.add_page(page)
            end_polls((by_id[record.id] for record in found), _time())
            for record in found:
                self._operations.update(by_id[record.id], record, _time())
        self._scans.finish(scan, are_all=are_all)
        return [by_id[id] for id in scan.missing]

    def _note_history(self, page: OperationsPage | None) -> None:
        """Record the durations on a page. If it is missing, try no further list."""
        listed = () if page is None else page.operations
        others = [one for one in listed if one.id not in self._operations]
        self._plan.note_history(self._project_id, others)

    async def _read_by_id(self, queue: ReadQueue, slot: Slot | None) -> None:
        """Read operations by id, the first one with ``slot``.

        After each operation that has finished, two others are read: they may have finished too.
        """

        async def read(entry: TrackedOperation, slot: Slot | None = None) -> None:
            async with self._read_limit:
                is_finished = await self._read(entry, slot)
            for following in queue.take(2, self._operations.is_tracked) if is_finished else ():
                reads.start_soon(read, following)

        async with anyio.create_task_group() as reads:
            for index, entry in enumerate(queue.first):
                reads.start_soon(read, entry, None if index else slot)

    async def _read(self, entry: TrackedOperation, slot: Slot | None) -> bool:
        """Read an operation by id. Return whether it was pending and has finished."""
        if slot is None and self._operations.is_tracked(entry):
            slot = await self._source.acquire_poll_slot(is_list=False)
        if not self._operations.is_tracked(entry):
            if slot is not None:
                slot.cancel()
            return False
        record = await self._attempt(self._source.get(entry.ref, slot), [entry], is_list=False)
        end_polls([entry], _time())
        if record is not None:
            self._operations.update(entry, record, _time())
        return not self._operations.is_tracked(entry)

    async def _attempt(
        self, request: Awaitable[T], entries: Sequence[TrackedOperation], *, is_list: bool
    ) -> T | None:
        try:
            return await request
        except Exception as error:  # noqa: BLE001 - an uncaught error would leave waits hanging
            self._handle(error, entries, is_list=is_list)
            return None

    def _handle(
        self, error: Exception, entries: Sequence[TrackedOperation], *, is_list: bool
    ) -> None:
        """End the waits on these operations, or record a failure after which they are polled."""
        if isinstance(error, NotFoundError):
            again, final = self._operations.note_not_found(entries, _time(), is_list=is_list)
            self._operations.fail(final, error)
            if again:
                self._operations.note_failure(again, error)
        elif is_transient(error):
            self._operations.note_failure(entries, error)
            if isinstance(error, APIError) and error.retry_after:
                pause = min(error.retry_after, MAX_PAUSE)
                self._not_before = max(self._not_before, _time() + pause)
        else:
            self._operations.fail(entries, error)


def _time() -> float:
    return asyncio.get_running_loop().time()
