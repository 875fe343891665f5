"""One project's poller, shared by every wait of the client."""

import asyncio
import logging
import math
import random
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
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.retry import TRANSIENT_STATUSES
from neonctl_async.waiting import schedule
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.forecast import UNKNOWN, Forecast
from neonctl_async.waiting.source import MAX_PAGE, OperationSource
from neonctl_async.waiting.status import Change, Outcome, is_same, outcome
from neonctl_async.waiting.tracked import TrackedOperation, age, duration, end_polls, queues_of

T = TypeVar("T")

_logger = logging.getLogger(__name__)

SCAN_MARGIN = 10
"""How many operations beyond those awaited are read: others start some, too."""
MIN_POLL_SHARE = 0.12
"""The least time between two looks, as a share of how long the youngest has been waited for."""
MISSING_PER_EXTRA_PAGE = 100
"""Of how many missing operations a page more than expected is read, before they are by id."""
MAX_CONCURRENT_GETS = 16
"""How many missing operations of a project are read by id at a time: other projects wait, too."""
MIN_POLL_GAP = 0.05
"""The least time between two looks that the cadence did not ask for, in seconds."""
LAST_POLL_MARGIN = 0.05
"""How long before a deadline, at the least, the last look is taken, in seconds."""
MAX_PAUSE = 60.0
"""How long a ``Retry-After`` may hold up the looks at a project, in seconds, whatever it says."""


class Poller:
    """Looks at the pending operations of one project for as long as somebody awaits them.

    A single pending operation is read by id. For two or more one list page answers, and only
    those that are not on it are read by id: absence from a page says nothing. The youngest
    operation sets the pace. A look that hangs holds up no operation but its own. A failure that
    passes ends no wait; 401, 403, 404 and other answers that will not change end it at once.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        policy: PollPolicy,
        forecast: Forecast,
        *,
        dispatcher: HookDispatcher,
        update: Callable[[], bool],
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._policy = policy
        self._least_delay = policy.initial * (1 - policy.jitter)
        self._most_delay = policy.maximum * (1 - policy.jitter)
        self._forecast = forecast
        self._dispatcher = dispatcher
        self._update = update
        self._tracked: dict[str, TrackedOperation] = {}
        self._due = math.inf
        self._not_before = 0.0
        self._poll_seconds = 0.0
        self._polled_at = -math.inf
        self._has_unseen = False
        self._chance = _chance()
        self._scan_depth = 0
        self._replan = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, ref: OperationRef, record: Operation | None, queue: ChangeQueue) -> None:
        """Deliver every change of an operation from now on; ``record`` is what is known of it."""
        now = _time()
        one = self._tracked.get(ref.id)
        if one is None:
            one = self._tracked[ref.id] = TrackedOperation(ref, now)
        one.queues.add(queue)
        known = one.record
        if record is not None and (known is None or record.updated_at >= known.updated_at):
            self._see(one, record)
        if known is not None and one.record is known:
            queue.deliver(Change(ref, known, Outcome.PENDING))
        if one.record is None:
            self._has_unseen = True
            poll = self._gather_at(now)
        else:
            poll = self._next_poll(one, self._polled_at + self._least_delay)
        self._due = min(self._due, poll, self._last_poll(queue, now))
        self._replan.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"poll {self._project_id}")

    def remove(self, refs: Iterable[OperationRef], queue: ChangeQueue) -> None:
        """Deliver nothing more of these operations to ``mailbox``."""
        for ref in refs:
            tracked = self._tracked.get(ref.id)
            if tracked is not None:
                tracked.queues.discard(queue)
                if not tracked.queues:
                    self._drop(tracked)

    @property
    def is_idle(self) -> bool:
        """Whether nobody awaits anything here."""
        return not self._tracked

    def stop(self, reason: NeonError) -> asyncio.Task[None] | None:
        """Cancel the task, and with it the look under way; waits that are left get ``reason``.

        Returns the task if it has not ended yet.
        """
        self._fail(list(self._tracked.values()), reason)
        if self._task is not None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        try:
            # While the last looks are being cancelled, new operations may come.
            while self._tracked:
                await self._poll_while_tracked()
        finally:
            self._task = None
            # Should this task be cancelled by somebody else, no wait may be left hanging.
            self._fail(list(self._tracked.values()), ClientClosedError("the polling ended"))

    async def _poll_while_tracked(self) -> None:
        async with anyio.create_task_group() as polls:
            while await self._until_due():
                await self._source.acquire_poll_slot()
                if ready := self._start_poll():
                    polls.start_soon(self._poll, ready)
            polls.cancel_scope.cancel()

    async def _until_due(self) -> bool:
        """Wait for the time of the next look; False if nothing is awaited any more."""
        while self._tracked and (due := max(self._due, self._not_before)) > _time():
            self._replan.clear()
            with anyio.CancelScope(deadline=due):
                await self._replan.wait()
        return bool(self._tracked)

    def _start_poll(self) -> list[TrackedOperation]:
        """The operations to look at now: all but those that are being looked at."""
        ready = [one for one in self._tracked.values() if not one.is_being_polled]
        for one in ready:
            one.is_being_polled = True
        self._due = math.inf
        self._has_unseen = False
        self._polled_at = _time()
        self._chance = _chance()
        return ready

    async def _poll(self, ready: Sequence[TrackedOperation]) -> None:
        """See what has become of ``ready``; absence from the list has to be looked into."""
        began = _time()
        if len(ready) == 1:
            await self._poll_one(ready[0])
        elif missing := await self._poll_list(ready):
            if len(missing) < len(ready):
                self._finish_poll(began)
            places = asyncio.Semaphore(MAX_CONCURRENT_GETS)
            await asyncio.gather(*(self._poll_missing(one, places) for one in missing))
        self._finish_poll(began)

    def _finish_poll(self, began: float) -> None:
        self._poll_seconds = _time() - began
        if not self._update():
            self.plan()

    def plan(self) -> None:
        """Say when to look next: by the cadence, or just before a deadline."""
        now = _time()
        ready = [one for one in self._tracked.values() if not one.is_being_polled]
        if self._has_unseen:
            self._due = self._gather_at(now)
        elif ready:
            last_looks = (self._last_poll(queue, now) for queue in queues_of(ready))
            self._due = min(self._by_cadence(ready), *last_looks)
        self._replan.set()

    def _by_cadence(self, ready: Sequence[TrackedOperation]) -> float:
        youngest = max(ready, key=lambda one: one.since)
        # Where many ends are foreseen, some mark is always near: looks keep their distance.
        share = min(MIN_POLL_SHARE * (self._polled_at - youngest.since), self._most_delay)
        earliest = self._polled_at + max(share, self._least_delay)
        # Without a forecast the youngest sets the pace alone.
        paced = (youngest,) if self._forecast.is_empty else ready
        return min(self._next_poll(one, earliest) for one in paced)

    def _next_poll(self, one: TrackedOperation, earliest: float) -> float:
        prediction = UNKNOWN
        if one.record is not None and self._policy.growth > 1:
            prediction = self._forecast.prediction(one.record.action)
        return one.answered_at + schedule.delay(
            self._policy,
            one.answered_at - one.since,
            self._chance,
            prediction,
            least=max(earliest - one.answered_at, 0.0),
        )

    def _gather_at(self, now: float) -> float:
        """When to look at what was never seen: at once, but together with what comes at once."""
        return max(now, self._polled_at + MIN_POLL_GAP)

    def _last_poll(self, queue: ChangeQueue, now: float) -> float:
        """When to look once more before a deadline; one look serves deadlines close together."""
        poll = queue.deadline - max(2 * self._poll_seconds, LAST_POLL_MARGIN)
        return max(poll, self._polled_at + MIN_POLL_GAP) if poll > now else math.inf

    async def _poll_list(self, tracked: Sequence[TrackedOperation]) -> list[TrackedOperation]:
        """Read the newest operations; returns those of ``awaited`` that were not among them."""
        missing = {one.ref.id: one for one in tracked}
        are_all = len(tracked) == len(self._tracked)
        scan_depth = self._scan_depth = max(len(tracked) + SCAN_MARGIN, self._scan_depth)
        depth = deepest = 0
        cursor: str | UnsetType | None = UNSET
        while cursor is not None and (limit := _page_size(depth, scan_depth, len(missing))):
            if depth:
                await self._source.acquire_poll_slot()
            poll = self._source.newest(self._project_id, limit, cursor)
            page = await self._attempt(poll, missing.values())
            if page is None:
                end_polls(missing.values(), _time())
                return []
            deepest = self._see_page(page.operations, missing, depth) or deepest
            depth += len(page.operations)
            cursor = page.pagination.following if page.operations and page.pagination else None
        if len(missing) > 1:
            # Reading on costs a request a page, reading by id one an operation.
            self._scan_depth = max(self._scan_depth, min(2 * scan_depth, MAX_PAGE * len(missing)))
        elif are_all:
            self._scan_depth = deepest + SCAN_MARGIN
        return list(missing.values())

    def _see_page(
        self, page: Sequence[Operation], missing: dict[str, TrackedOperation], depth: int
    ) -> int:
        """Take what a page tells of the ``missing`` from them; returns how deep the last was."""
        found = {
            operation.id: (missing.pop(operation.id), operation, place)
            for place, operation in enumerate(page, depth + 1)
            if operation.id in missing
        }
        end_polls((one for one, _, _ in found.values()), _time())
        # In the order in which they ended, for that is how it is told.
        for one, operation, _ in sorted(found.values(), key=lambda each: each[1].updated_at):
            self._see(one, operation)
        return max((place for _, _, place in found.values()), default=0)

    async def _poll_missing(self, one: TrackedOperation, places: asyncio.Semaphore) -> None:
        async with places:
            if self._is_tracked(one):
                await self._source.acquire_poll_slot()
            if self._is_tracked(one):
                await self._poll_one(one)

    def _is_tracked(self, one: TrackedOperation) -> bool:
        """Whether it still is: by now nobody may await it, or somebody anew."""
        return self._tracked.get(one.ref.id) is one

    async def _poll_one(self, one: TrackedOperation) -> None:
        operation = await self._attempt(self._source.get(one.ref), [one])
        end_polls([one], _time())
        if operation is not None:
            self._see(one, operation)

    async def _attempt(self, poll: Awaitable[T], tracked: Iterable[TrackedOperation]) -> T | None:
        try:
            return await poll
        except Exception as error:  # noqa: BLE001 - whatever it is, no wait may be left hanging
            if not _is_transient(error):
                self._fail(list(tracked), error)
                return None
            _logger.warning("a look at operations failed, and is taken again: %s", error)
            for queue in queues_of(tracked):
                queue.last_error = error
            if isinstance(error, APIError) and error.retry_after:
                pause = min(error.retry_after, MAX_PAUSE)
                self._not_before = max(self._not_before, _time() + pause)
            return None

    def _see(self, one: TrackedOperation, operation: Operation) -> None:
        if not self._is_tracked(one):
            return
        known = one.record
        if known is not None and operation.updated_at < known.updated_at:
            # A list may lag behind: what was seen once is not taken back.
            operation = known
        change = Change(one.ref, operation, outcome(operation, utc_now()))
        is_settled = change.outcome is not Outcome.PENDING
        if known is None:
            one.since -= age(operation)
        self._learn(one, operation, is_settled=is_settled)
        if known is not None and is_same(operation, known) and not is_settled:
            return
        one.record = operation
        if known is None or known.status != operation.status:
            self._notify(operation, None if known is None else known.status)
        for queue in one.queues:
            queue.deliver(change)
        if is_settled:
            self._drop(one)

    def _notify(self, operation: Operation, previous: OperationStatus | None) -> None:
        level = logging.INFO if operation.status.is_known else logging.WARNING
        _logger.log(
            level,
            "%s %s in %s is %s%s",
            operation.action,
            operation.id,
            operation.project_id,
            operation.status,
            "" if operation.status.is_known else ", which is unknown here and taken for pending",
        )
        self._dispatcher.status(StatusChanged(operation=operation, previous=previous))

    def _learn(self, one: TrackedOperation, operation: Operation, *, is_settled: bool) -> None:
        now = _time()
        if one.record is None and not is_settled:
            one.observation = self._forecast.follow(operation.action, one.since)
        if one.observation is None:
            return
        if is_settled:
            self._forecast.note_end(one.observation, duration(one.observation, operation, now))
        else:
            self._forecast.note_pending(one.observation, now)

    def _fail(self, tracked: Iterable[TrackedOperation], error: Exception) -> None:
        for one in tracked:
            for queue in one.queues:
                queue.fail(error)
            if self._is_tracked(one):
                self._drop(one)

    def _drop(self, one: TrackedOperation) -> None:
        del self._tracked[one.ref.id]
        if one.observation is not None:
            self._forecast.forget(one.observation)


def _page_size(depth: int, scan_depth: int, missing: int) -> int:
    """How many operations to read next, having read ``depth``; 0 where the rest is read by id."""
    if missing == 0:
        return 0
    if depth < scan_depth:
        return min(scan_depth - depth, MAX_PAGE)
    return MAX_PAGE if depth < scan_depth + missing // MISSING_PER_EXTRA_PAGE * MAX_PAGE else 0


def _is_transient(error: Exception) -> TypeGuard[NeonError]:
    """Whether a poll that failed so may succeed the next time."""
    if isinstance(error, APIError):
        return error.status in TRANSIENT_STATUSES or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads load, guards nothing


def _time() -> float:
    return asyncio.get_running_loop().time()
