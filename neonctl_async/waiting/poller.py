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
from neonctl_async.transport.dispatcher import Listeners
from neonctl_async.transport.retry import PASSING
from neonctl_async.waiting import schedule
from neonctl_async.waiting.change_queue import Mailbox
from neonctl_async.waiting.forecast import UNKNOWN, Forecast
from neonctl_async.waiting.source import MAX_PAGE, OperationSource
from neonctl_async.waiting.status import Change, Outcome, is_same, outcome
from neonctl_async.waiting.tracked import Awaited, age, duration, end_looks, mailboxes_of

T = TypeVar("T")

_logger = logging.getLogger(__name__)

SLACK = 10
"""How many operations beyond those awaited are read: others start some, too."""
LEAST_SHARE = 0.12
"""The least time between two looks, as a share of how long the youngest has been waited for."""
WORTH_A_PAGE = 100
"""Of how many missing operations a page more than expected is read, before they are by id."""
AT_ONCE = 16
"""How many missing operations of a project are read by id at a time: other projects wait, too."""
TOGETHER = 0.05
"""The least time between two looks that the cadence did not ask for, in seconds."""
LAST_LOOK = 0.05
"""How long before a deadline, at the least, the last look is taken, in seconds."""
LONGEST_PAUSE = 60.0
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
        listeners: Listeners,
        update: Callable[[], bool],
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._policy = policy
        self._least_delay = policy.initial * (1 - policy.jitter)
        self._most_delay = policy.maximum * (1 - policy.jitter)
        self._forecast = forecast
        self._listeners = listeners
        self._update = update
        self._awaited: dict[str, Awaited] = {}
        self._due = math.inf
        self._not_before = 0.0
        self._look_took = 0.0
        self._looked_at = -math.inf
        self._has_unseen = False
        self._chance = _chance()
        self._reach = 0
        self._replan = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, ref: OperationRef, record: Operation | None, mailbox: Mailbox) -> None:
        """Deliver every change of an operation from now on; ``record`` is what is known of it."""
        now = _time()
        one = self._awaited.get(ref.id)
        if one is None:
            one = self._awaited[ref.id] = Awaited(ref, now)
        one.mailboxes.add(mailbox)
        known = one.record
        if record is not None and (known is None or record.updated_at >= known.updated_at):
            self._see(one, record)
        if known is not None and one.record is known:
            mailbox.deliver(Change(ref, known, Outcome.PENDING))
        if one.record is None:
            self._has_unseen = True
            look = self._gather_at(now)
        else:
            look = self._next_look(one, self._looked_at + self._least_delay)
        self._due = min(self._due, look, self._last_look(mailbox, now))
        self._replan.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"poll {self._project_id}")

    def remove(self, refs: Iterable[OperationRef], mailbox: Mailbox) -> None:
        """Deliver nothing more of these operations to ``mailbox``."""
        for ref in refs:
            awaited = self._awaited.get(ref.id)
            if awaited is not None:
                awaited.mailboxes.discard(mailbox)
                if not awaited.mailboxes:
                    self._drop(awaited)

    @property
    def is_idle(self) -> bool:
        """Whether nobody awaits anything here."""
        return not self._awaited

    def stop(self, reason: NeonError) -> asyncio.Task[None] | None:
        """Cancel the task, and with it the look under way; waits that are left get ``reason``.

        Returns the task if it has not ended yet.
        """
        self._fail(list(self._awaited.values()), reason)
        if self._task is not None:
            self._task.cancel()
        return self._task

    async def _run(self) -> None:
        try:
            # While the last looks are being cancelled, new operations may come.
            while self._awaited:
                await self._look_while_awaited()
        finally:
            self._task = None
            # Should this task be cancelled by somebody else, no wait may be left hanging.
            self._fail(list(self._awaited.values()), ClientClosedError("the polling ended"))

    async def _look_while_awaited(self) -> None:
        async with anyio.create_task_group() as looks:
            while await self._until_due():
                await self._source.turn()
                if ready := self._begin_look():
                    looks.start_soon(self._look, ready)
            looks.cancel_scope.cancel()

    async def _until_due(self) -> bool:
        """Wait for the time of the next look; False if nothing is awaited any more."""
        while self._awaited and (due := max(self._due, self._not_before)) > _time():
            self._replan.clear()
            with anyio.CancelScope(deadline=due):
                await self._replan.wait()
        return bool(self._awaited)

    def _begin_look(self) -> list[Awaited]:
        """The operations to look at now: all but those that are being looked at."""
        ready = [one for one in self._awaited.values() if not one.is_looked_at]
        for one in ready:
            one.is_looked_at = True
        self._due = math.inf
        self._has_unseen = False
        self._looked_at = _time()
        self._chance = _chance()
        return ready

    async def _look(self, ready: Sequence[Awaited]) -> None:
        """See what has become of ``ready``; absence from the list has to be looked into."""
        began = _time()
        if len(ready) == 1:
            await self._look_at_one(ready[0])
        elif missing := await self._look_at_list(ready):
            if len(missing) < len(ready):
                self._end_look(began)
            places = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(self._look_at_missing(one, places) for one in missing))
        self._end_look(began)

    def _end_look(self, began: float) -> None:
        self._look_took = _time() - began
        if not self._update():
            self.plan()

    def plan(self) -> None:
        """Say when to look next: by the cadence, or just before a deadline."""
        now = _time()
        ready = [one for one in self._awaited.values() if not one.is_looked_at]
        if self._has_unseen:
            self._due = self._gather_at(now)
        elif ready:
            last_looks = (self._last_look(mailbox, now) for mailbox in mailboxes_of(ready))
            self._due = min(self._by_cadence(ready), *last_looks)
        self._replan.set()

    def _by_cadence(self, ready: Sequence[Awaited]) -> float:
        youngest = max(ready, key=lambda one: one.since)
        # Where many ends are foreseen, some mark is always near: looks keep their distance.
        share = min(LEAST_SHARE * (self._looked_at - youngest.since), self._most_delay)
        earliest = self._looked_at + max(share, self._least_delay)
        # Without a forecast the youngest sets the pace alone.
        paced = (youngest,) if self._forecast.is_empty else ready
        return min(self._next_look(one, earliest) for one in paced)

    def _next_look(self, one: Awaited, earliest: float) -> float:
        outlook = UNKNOWN
        if one.record is not None and self._policy.growth > 1:
            outlook = self._forecast.outlook(one.record.action)
        return one.answered_at + schedule.delay(
            self._policy,
            one.answered_at - one.since,
            self._chance,
            outlook,
            least=max(earliest - one.answered_at, 0.0),
        )

    def _gather_at(self, now: float) -> float:
        """When to look at what was never seen: at once, but together with what comes at once."""
        return max(now, self._looked_at + TOGETHER)

    def _last_look(self, mailbox: Mailbox, now: float) -> float:
        """When to look once more before a deadline; one look serves deadlines close together."""
        look = mailbox.deadline - max(2 * self._look_took, LAST_LOOK)
        return max(look, self._looked_at + TOGETHER) if look > now else math.inf

    async def _look_at_list(self, awaited: Sequence[Awaited]) -> list[Awaited]:
        """Read the newest operations; returns those of ``awaited`` that were not among them."""
        missing = {one.ref.id: one for one in awaited}
        are_all = len(awaited) == len(self._awaited)
        reach = self._reach = max(len(awaited) + SLACK, self._reach)
        depth = deepest = 0
        cursor: str | UnsetType | None = UNSET
        while cursor is not None and (limit := _page_size(depth, reach, len(missing))):
            if depth:
                await self._source.turn()
            look = self._source.newest(self._project_id, limit, cursor)
            page = await self._attempt(look, missing.values())
            if page is None:
                end_looks(missing.values(), _time())
                return []
            deepest = self._see_page(page.operations, missing, depth) or deepest
            depth += len(page.operations)
            cursor = page.pagination.following if page.operations and page.pagination else None
        if len(missing) > 1:
            # Reading on costs a request a page, reading by id one an operation.
            self._reach = max(self._reach, min(2 * reach, MAX_PAGE * len(missing)))
        elif are_all:
            self._reach = deepest + SLACK
        return list(missing.values())

    def _see_page(self, page: Sequence[Operation], missing: dict[str, Awaited], depth: int) -> int:
        """Take what a page tells of the ``missing`` from them; returns how deep the last was."""
        found = {
            operation.id: (missing.pop(operation.id), operation, place)
            for place, operation in enumerate(page, depth + 1)
            if operation.id in missing
        }
        end_looks((one for one, _, _ in found.values()), _time())
        # In the order in which they ended, for that is how it is told.
        for one, operation, _ in sorted(found.values(), key=lambda each: each[1].updated_at):
            self._see(one, operation)
        return max((place for _, _, place in found.values()), default=0)

    async def _look_at_missing(self, one: Awaited, places: asyncio.Semaphore) -> None:
        async with places:
            if self._is_awaited(one):
                await self._source.turn()
            if self._is_awaited(one):
                await self._look_at_one(one)

    def _is_awaited(self, one: Awaited) -> bool:
        """Whether it still is: by now nobody may await it, or somebody anew."""
        return self._awaited.get(one.ref.id) is one

    async def _look_at_one(self, one: Awaited) -> None:
        operation = await self._attempt(self._source.get(one.ref), [one])
        end_looks([one], _time())
        if operation is not None:
            self._see(one, operation)

    async def _attempt(self, look: Awaitable[T], awaited: Iterable[Awaited]) -> T | None:
        try:
            return await look
        except Exception as error:  # noqa: BLE001 - whatever it is, no wait may be left hanging
            if not _passes(error):
                self._fail(list(awaited), error)
                return None
            _logger.warning("a look at operations failed, and is taken again: %s", error)
            for mailbox in mailboxes_of(awaited):
                mailbox.last_error = error
            if isinstance(error, APIError) and error.retry_after:
                pause = min(error.retry_after, LONGEST_PAUSE)
                self._not_before = max(self._not_before, _time() + pause)
            return None

    def _see(self, one: Awaited, operation: Operation) -> None:
        if not self._is_awaited(one):
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
            self._tell(operation, None if known is None else known.status)
        for mailbox in one.mailboxes:
            mailbox.deliver(change)
        if is_settled:
            self._drop(one)

    def _tell(self, operation: Operation, previous: OperationStatus | None) -> None:
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
        self._listeners.status(StatusChanged(operation=operation, previous=previous))

    def _learn(self, one: Awaited, operation: Operation, *, is_settled: bool) -> None:
        now = _time()
        if one.record is None and not is_settled:
            one.followed = self._forecast.follow(operation.action, one.since)
        if one.followed is None:
            return
        if is_settled:
            self._forecast.note_end(one.followed, duration(one.followed, operation, now))
        else:
            self._forecast.note_pending(one.followed, now)

    def _fail(self, awaited: Iterable[Awaited], error: Exception) -> None:
        for one in awaited:
            for mailbox in one.mailboxes:
                mailbox.fail(error)
            if self._is_awaited(one):
                self._drop(one)

    def _drop(self, one: Awaited) -> None:
        del self._awaited[one.ref.id]
        if one.followed is not None:
            self._forecast.forget(one.followed)


def _page_size(depth: int, reach: int, missing: int) -> int:
    """How many operations to read next, having read ``depth``; 0 where the rest is read by id."""
    if missing == 0:
        return 0
    if depth < reach:
        return min(reach - depth, MAX_PAGE)
    return MAX_PAGE if depth < reach + missing // WORTH_A_PAGE * MAX_PAGE else 0


def _passes(error: Exception) -> TypeGuard[NeonError]:
    """Whether a poll that failed so may succeed the next time."""
    if isinstance(error, APIError):
        return error.status in PASSING or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)


def _chance() -> float:
    return random.random()  # noqa: S311 - spreads load, guards nothing


def _time() -> float:
    return asyncio.get_running_loop().time()
