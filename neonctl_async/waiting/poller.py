"""The pollers of a client: one per project, shared by all waits."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

import anyio
from msgspec import UNSET, UnsetType

from neonctl_async.clock import loop_time
from neonctl_async.config import PollPolicy
from neonctl_async.errors import ClientClosedError, NeonError, NotFoundError
from neonctl_async.models.operations import Operation, OperationRef, OperationsPage
from neonctl_async.transport.budget import Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.scheduler import Urgency
from neonctl_async.waiting.poll_plan import PollPlan
from neonctl_async.waiting.project_operations import ProjectOperations, ReleasedOperations
from neonctl_async.waiting.scan import MIN_SCANNED, PageScan, ReadQueue, ScanPlan
from neonctl_async.waiting.source import OperationSource, is_transient, pause_after
from neonctl_async.waiting.timing.forecast import HISTORY_PAGE, Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.tracked import OperationWait, TrackedOperation

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

T = TypeVar("T")

MAX_CONCURRENT_GETS = 16
"""The maximum number of a project's missing operations that are read by id at a time."""


class _RequestTime:
    """The time during which at least one request is in flight, without waits for slots.

    Each request is sent inside a ``with`` statement on this object.
    """

    def __init__(self) -> None:
        self.until_result: float | None = None
        """The request time that had accumulated when the latest successful response arrived; None
        before the first one."""
        self._in_flight = 0
        self._since = 0.0
        self._seconds = 0.0

    def seconds(self, now: float) -> float:
        """Return the time so far."""
        return self._seconds + (now - self._since if self._in_flight else 0.0)

    def __enter__(self) -> None:
        if not self._in_flight:
            self._since = loop_time()
        self._in_flight += 1

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._seconds = self.seconds(loop_time())
        if kind is None:
            self.until_result = self._seconds
        self._since = loop_time()
        self._in_flight -= 1


class Poll:
    """One poll of a project, as an async context manager.

    It waits for a slot, and then claims the operations that no other poll is reading. On exit, it
    releases the remaining claims, and its slot if no request has used it.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        plan: PollPlan,
        operations: ProjectOperations,
    ) -> None:
        self.urgency: Urgency = Urgency(plan.last_poll_at)
        self.wants_history: bool = plan.wants_history(project_id, operations.ready())
        self.started_at: float = 0.0
        self.entries: list[TrackedOperation] = []
        """The operations that the poll claimed at its start."""
        self._project_id = project_id
        self._source = source
        self._plan = plan
        self._operations = operations
        self._slot: Slot | None = None
        self._requests = _RequestTime()

    async def __aenter__(self) -> Self:
        is_list = self.wants_history or len(self._operations) >= MIN_SCANNED
        self._slot = await self._acquire_slot(is_list=is_list)
        self.started_at = loop_time()
        self.entries = self._operations.ready()
        for entry in self.entries:
            self.claim(entry)
        self._plan.start_poll(self.entries, self.started_at)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._slot is not None:
            self._slot.cancel()
        if self._requests.until_result is not None:
            self._plan.note_response(self._requests.until_result, loop_time())
        if kind is asyncio.CancelledError:
            self._unclaim(self.entries)  # it counts as if it had never been sent
        else:
            self.release(self.entries, were_read=False)

    def claim(self, entry: TrackedOperation) -> None:
        """Keep other polls from reading an operation."""
        entry.poll = self

    def release(self, entries: Iterable[TrackedOperation], *, were_read: bool = True) -> None:
        """End the claims on operations, so that they can be polled again.

        ``were_read`` is False if the poll sent no request that could have returned them.
        """
        now = loop_time()
        for entry in self._unclaim(entries):
            entry.was_polled = True
            entry.polled_at = now
            if were_read:
                entry.read_at = now
            for wait in entry.waits:
                wait.note_poll(entry, self.started_at)

    def _unclaim(self, entries: Iterable[TrackedOperation]) -> list[TrackedOperation]:
        """End the claims on operations, and return those that the poll had claimed."""
        released = [entry for entry in entries if entry.poll is self]
        for entry in released:
            entry.poll = None
        self._plan.release(released)
        return released

    async def page(self, limit: int, cursor: str | UnsetType) -> OperationsPage:
        """Return a page of the newest operations."""
        slot = await self._acquire_slot(is_list=True)
        with self._requests:
            return await self._source.newest(self._project_id, limit, cursor, slot)

    async def operation(self, entry: TrackedOperation) -> Operation | None:
        """Return one operation, or None if no wait needs it by the time a slot is acquired."""
        slot = await self._acquire_slot(is_list=False)
        if not self._operations.is_tracked(entry):
            slot.cancel()
            return None
        with self._requests:
            return await self._source.get(entry.ref, slot)

    async def _acquire_slot(self, *, is_list: bool) -> Slot:
        """Return the poll's first slot if no request has used it, or wait for another slot."""
        slot, self._slot = self._slot, None
        return await self._source.acquire_poll_slot(
            is_list=is_list, urgency=self.urgency, slot=slot
        )


class Poller:
    """Polls the pending operations of one project while any wait needs them.

    The first poll reads a list, to learn durations. After that, a single pending operation is read
    by id. For two or more, polls read list pages, and then read by id a few of the operations that
    the pages lack. A missing operation counts as pending. A poll that hangs delays only its own
    operations. A transient failure does not end a wait; 401, 403 and other permanent failures end
    it at once.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        plan: PollPlan,
        operations: ProjectOperations,
        update_forecast: Callable[[], None],
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._plan = plan
        self._operations = operations
        self._update_forecast = update_forecast
        self._scans = ScanPlan()
        self._read_limit = asyncio.Semaphore(MAX_CONCURRENT_GETS)
        self._not_before = 0.0
        self._polls: set[Poll] = set()
        self._replanned = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(
        self, ref: OperationRef, record: Operation | None, wait: OperationWait
    ) -> TrackedOperation:
        """Track an operation for a wait, and deliver all its changes to the wait.

        ``record`` is the latest record that the caller has.
        """
        entry = self._operations.add(ref, record, wait, loop_time())
        self._note_wanted()
        if self._source.holds_reads and self._plan.has_room:
            self.require(wait)  # its response comes when the operation has settled
        urgent_at = wait.deadline - self._plan.margin
        for poll in self._polls:
            if entry.poll in (None, poll):
                self._source.budget.hurry(poll.urgency, urgent_at)
        self._replanned.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"poll {self._project_id}")
            self._task.add_done_callback(self._end)
        return entry

    def remove(self, refs: Iterable[OperationRef], wait: OperationWait) -> None:
        """Stop deliveries to a wait, and drop operations that no other wait needs."""
        self._operations.remove(refs, wait)
        self._note_wanted()

    def require(self, wait: OperationWait) -> None:
        """Poll the operations of a wait at once."""
        self._plan.require(wait, loop_time())
        self._replanned.set()

    @property
    def is_idle(self) -> bool:
        """True if no operation is tracked."""
        return not self._operations

    def stop(self, reason: NeonError) -> asyncio.Task[None] | None:
        """Cancel the task and its polls. Pending waits raise ``reason``.

        Return the task if it is still running.
        """
        self._operations.fail_all(reason)
        self._note_wanted()
        if self._task is not None:
            self._task.cancel()
        return self._task

    def replan(self) -> None:
        """Plan the next poll again after a change of the forecast."""
        self._plan.replan()
        self._replanned.set()

    async def _run(self) -> None:
        try:
            # The first poll covers all operations of a call, even with an eager task factory.
            await asyncio.sleep(0)
            # New operations may arrive while the polls of the previous ones are being cancelled.
            while self._operations:
                await self._poll_while_tracked()
        finally:
            self._end(self._task)

    def _end(self, task: asyncio.Task[None] | None) -> None:
        """Clean up after the task, which may have been cancelled before it started."""
        if self._task is task:
            self._task = None
            # No wait may hang if other code cancels this task.
            self._operations.fail_all(ClientClosedError("the polling task was cancelled"))
            self._note_wanted()

    def _note_wanted(self) -> None:
        polls = self._plan.polls if self._operations else 0.0
        self._source.budget.note_wanted(self._project_id, polls)

    async def _poll_while_tracked(self) -> None:
        async with anyio.create_task_group() as polls:
            while await self._wait_until_due():
                await polls.start(self._poll)
            polls.cancel_scope.cancel()

    async def _wait_until_due(self) -> bool:
        """Wait for the time of the next poll. Return False as soon as no operation is tracked."""
        while self._operations:
            due = max(self._plan.next_poll_at(loop_time()), self._not_before)
            self._note_wanted()
            if due <= loop_time():
                return True
            self._replanned.clear()
            with anyio.CancelScope(deadline=due):
                await self._replanned.wait()
        return False

    async def _poll(self, *, task_status: "TaskStatus[None]") -> None:
        """Wait for a slot, then let the next poll start, and poll the ready operations."""
        poll = Poll(self._project_id, self._source, self._plan, self._operations)
        self._polls.add(poll)
        try:
            async with poll:
                task_status.started()
                if poll.entries:
                    await self._read(poll)
        finally:
            self._polls.discard(poll)
        self._finish()

    async def _read(self, poll: Poll) -> None:
        """Read the newest operations, and then some of the missing ones by id."""
        ids = [entry.ref.id for entry in poll.entries]
        scan = self._scans.start(ids, HISTORY_PAGE if poll.wants_history else 0)
        missing = poll.entries if scan is None else await self._read_pages(poll, scan)
        queue = ReadQueue(missing, loop_time(), self._plan.safe_margin)
        poll.release(queue.later, were_read=False)
        if scan is not None:
            self._finish()
        await self._read_by_id(poll, queue)

    def _finish(self) -> None:
        """Update the forecast and the plan with the results of a poll."""
        self._note_wanted()
        self._update_forecast()
        self._replanned.set()

    async def _read_pages(self, poll: Poll, scan: PageScan) -> list[TrackedOperation]:
        """Read the newest operations. Return the poll's operations that must be read by id."""
        by_id = {entry.ref.id: entry for entry in poll.entries}
        are_all = len(by_id) == len(self._operations)
        unconfirmed: list[TrackedOperation] = []
        while limit := scan.next_page_size():
            is_first = not scan.depth
            missing = [by_id[id] for id in scan.missing]
            page = await self._attempt(
                poll.page(limit, scan.cursor or UNSET), missing, is_list=True
            )
            if is_first:
                self._note_history(page)
            if page is None:
                poll.release(missing, were_read=False)
                return unconfirmed
            for record in scan.add_page(page):
                entry = by_id[record.id]
                if self._operations.needs_confirmation(entry, record, loop_time()):
                    unconfirmed.append(entry)
                else:
                    poll.release([entry])
                    self._operations.update(entry, record, loop_time())
        self._scans.finish(scan, are_all=are_all)
        return [*unconfirmed, *(by_id[id] for id in scan.missing)]

    def _note_history(self, page: OperationsPage | None) -> None:
        """Record a page's durations, or none after a failure, so that no other list is read."""
        listed = () if page is None else page.operations
        others = [one for one in listed if one.id not in self._operations]
        self._plan.note_history(self._project_id, others)

    async def _read_by_id(self, poll: Poll, queue: ReadQueue) -> None:
        """Read operations by id.

        After each operation that has finished, two others are read, because they may have finished
        too.
        """

        async def read(entry: TrackedOperation) -> None:
            async with self._read_limit:
                is_finished = await self._read_operation(poll, entry)
            for following in queue.take(2, self._operations.is_tracked) if is_finished else ():
                poll.claim(following)
                reads.start_soon(read, following)

        async with anyio.create_task_group() as reads:
            for entry in queue.first:
                reads.start_soon(read, entry)

    async def _read_operation(self, poll: Poll, entry: TrackedOperation) -> bool:
        """Read an operation by id. Return whether it was pending and has finished."""
        record = await self._attempt(poll.operation(entry), [entry], is_list=False)
        poll.release([entry])
        if record is not None:
            self._operations.update(entry, record, loop_time())
        if not self._operations.is_tracked(entry):
            return True
        self._replanned.set()  # other requests of this poll may hang
        return False

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
        """End the waits on these operations, or record a failure after which polling continues."""
        if isinstance(error, NotFoundError):
            again, final = self._operations.note_not_found(entries, loop_time(), is_list=is_list)
            self._operations.fail(final, error)
            if again:
                self._operations.note_failure(again, error, loop_time())
        elif is_transient(error):
            self._operations.note_failure(entries, error, loop_time())
            self._plan.note_failure()
            self._not_before = max(self._not_before, loop_time() + pause_after(error))
        else:
            self._operations.fail(entries, error)


class PollerRegistry:
    """The pollers of a client by project id. A poller exists only while it tracks an operation."""

    def __init__(
        self,
        source: OperationSource,
        policy: PollPolicy,
        dispatcher: HookDispatcher,
    ) -> None:
        self._source = source
        self._policy = policy
        self._dispatcher = dispatcher
        self._forecast = Forecast()
        self._pace = Pace(source.budget)
        self._by_project: dict[str, Poller] = {}
        self._released = ReleasedOperations()
        self._closed = False

    def add(
        self, ref: OperationRef, record: Operation | None, wait: OperationWait
    ) -> TrackedOperation:
        """Track an operation for a wait, and deliver all its changes to the wait.

        ``record`` is the latest record that the caller has. Raises ClientClosedError if the client
        is closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed: create a new NeonClient")
        poller = self._by_project.get(ref.project_id)
        if poller is None:
            poller = self._new_poller(ref.project_id)
            self._by_project[ref.project_id] = poller
        return poller.add(ref, record, wait)

    def stretch(self) -> float:
        """Return the factor by which polls are delayed; 1 if the rate budget suffices."""
        return max(self._pace.stretch(), 1.0)

    def note_history(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Record the durations of a project's finished operations, unless they are known."""
        if not self._forecast.histories.has(project_id):
            self._forecast.histories.note(project_id, operations)

    def require(self, wait: OperationWait) -> None:
        """Poll at once for a wait whose task was resumed after its deadline."""
        for project_id in {ref.project_id for ref in wait.refs}:
            if (poller := self._by_project.get(project_id)) is not None:
                poller.require(wait)

    async def release(self, wait: OperationWait) -> None:
        """Stop deliveries to a wait, and stop pollers without tracked operations."""
        by_project: dict[str, list[OperationRef]] = {}
        for ref in wait.refs:
            by_project.setdefault(ref.project_id, []).append(ref)
        idle: list[Poller] = []
        for project_id, project_refs in by_project.items():
            poller = self._by_project.get(project_id)
            if poller is not None:
                poller.remove(project_refs, wait)
                if poller.is_idle:
                    idle.append(self._by_project.pop(project_id))
        await _stop(idle)

    async def aclose(self) -> None:
        """Stop every poller. Pending waits raise ClientClosedError."""
        self._closed = True
        pollers = list(self._by_project.values())
        self._by_project.clear()
        await _stop(pollers)

    def _new_poller(self, project_id: str) -> Poller:
        plan = PollPlan(self._policy, self._forecast, self._pace)
        operations = ProjectOperations(
            plan, self._policy, self._source.server_now, self._dispatcher.status, self._released
        )
        return Poller(project_id, self._source, plan, operations, self._update_forecast)

    def _update_forecast(self) -> None:
        """Update the forecast. If it changes, all pollers plan again."""
        if self._forecast.update(loop_time()):
            for poller in self._by_project.values():
                poller.replan()


async def _stop(pollers: Iterable[Poller]) -> None:
    reason = ClientClosedError("the client was closed during a wait for operations")
    tasks = [task for poller in pollers if (task := poller.stop(reason)) is not None]
    if tasks:
        # Shielded, so that a cancelled wait leaves no poller behind. The tasks finish at once.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)
