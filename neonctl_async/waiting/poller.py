"""One poller a project, shared by every wait of the client."""

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeGuard, TypeVar

import anyio

from neonctl_async.config import PollPolicy
from neonctl_async.errors import (
    APIError,
    ClientClosedError,
    InvalidResponseError,
    NeonError,
    TransportError,
)
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.transport.retry import PASSING
from neonctl_async.waiting import cadence
from neonctl_async.waiting.forecast import Forecast
from neonctl_async.waiting.mailbox import Mailbox
from neonctl_async.waiting.source import MAX_PAGE, OperationSource
from neonctl_async.waiting.status import Change, Outcome, is_same, outcome

T = TypeVar("T")

PAGE_SLACK = 10
"""How many operations beyond those awaited a page leaves room for: others start some, too."""
LEAST_SHARE = 0.15
"""The least time between two looks, as a share of how long the youngest has been waited for."""
LAST_LOOK = 0.05
"""How long before a deadline, at the least, the last look is taken, in seconds."""


class _Awaited:
    """An operation that is awaited: since when, by whom, and its newest record."""

    __slots__ = ("is_looked_at", "mailboxes", "pending_at", "record", "ref", "since")

    def __init__(self, ref: OperationRef, since: float) -> None:
        self.ref = ref
        self.since = since
        """When it began, as far as is known: a record may say how long it has been running."""
        self.pending_at = since
        """When it was last seen not to have ended."""
        self.record: Operation | None = None
        self.mailboxes: set[Mailbox] = set()
        self.is_looked_at = False


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
        learn: Callable[[str, float], None],
        forecast: Forecast,
    ) -> None:
        self._project_id = project_id
        self._source = source
        self._policy = policy
        self._least_delay = policy.initial * (1 - policy.jitter)
        self._most_delay = policy.maximum * (1 - policy.jitter)
        self._forecast = forecast
        self._learn = learn
        self._awaited: dict[str, _Awaited] = {}
        self._due = math.inf
        self._not_before = 0.0
        self._look_took = 0.0
        self._looked_at = -math.inf
        self._reach = 0
        self._replan = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, ref: OperationRef, record: Operation | None, mailbox: Mailbox) -> None:
        """Deliver every change of an operation from now on; ``record`` is what is known of it."""
        now = _time()
        one = self._awaited.get(ref.id)
        if one is None:
            one = self._awaited[ref.id] = _Awaited(ref, now)
        one.mailboxes.add(mailbox)
        known = one.record
        if record is not None and (known is None or record.updated_at >= known.updated_at):
            self._see(one, record)
        elif known is not None:
            mailbox.deliver(Change(ref, known, Outcome.PENDING))
        first_look = now if one.record is None else now + self._delay(one, now)
        self._due = min(self._due, first_look, self._last_look(mailbox, now))
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
                    del self._awaited[ref.id]

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
            async with anyio.create_task_group() as looks:
                while self._awaited:
                    await self._until_due()
                    if ready := self._begin_look():
                        looks.start_soon(self._look, ready)
                looks.cancel_scope.cancel()
        finally:
            self._task = None
            # Should this task be cancelled by somebody else, no wait may be left hanging.
            self._fail(list(self._awaited.values()), ClientClosedError("the polling ended"))

    async def _until_due(self) -> None:
        while self._awaited and (due := max(self._due, self._not_before)) > _time():
            self._replan.clear()
            with anyio.CancelScope(deadline=due):
                await self._replan.wait()

    def _begin_look(self) -> list[_Awaited]:
        """The operations to look at now: all but those that are being looked at."""
        ready = [one for one in self._awaited.values() if not one.is_looked_at]
        for one in ready:
            one.is_looked_at = True
        self._due = math.inf
        self._looked_at = _time()
        return ready

    async def _look(self, ready: Sequence[_Awaited]) -> None:
        """See what has become of ``ready``; absence from the page has to be looked into."""
        began = _time()
        missing = ready if len(ready) == 1 else await self._look_at_page(ready)
        if len(missing) < len(ready):
            self._look_took = _time() - began
            self.plan()
        if missing:
            await asyncio.gather(*(self._look_at_one(one) for one in missing))
            self._look_took = _time() - began
            self.plan()

    def plan(self) -> None:
        """Bring the next look forward to the cadence's time, or to just before a deadline."""
        if self._awaited:
            now = _time()
            youngest = max(self._awaited.values(), key=lambda one: one.since)
            # Without a forecast the youngest sets the pace alone.
            paced = (youngest,) if self._forecast.is_empty else self._awaited.values()
            soonest = now + min(self._delay(one, now) for one in paced)
            # Where many ends are foreseen, some mark is always near: looks keep their distance.
            share = min(LEAST_SHARE * (self._looked_at - youngest.since), self._most_delay)
            self._due = min(
                self._due, max(soonest, self._looked_at + max(share, self._least_delay))
            )
            for mailbox in _mailboxes(self._awaited.values()):
                self._due = min(self._due, self._last_look(mailbox, now))
        self._replan.set()

    def _last_look(self, mailbox: Mailbox, now: float) -> float:
        look = mailbox.deadline - max(2 * self._look_took, LAST_LOOK)
        return look if look > now else math.inf

    def _delay(self, one: _Awaited, now: float) -> float:
        marks: Sequence[float] = ()
        if one.record is not None and self._policy.growth > 1:
            marks = self._forecast.marks(one.record.action)
        chance = random.random()  # noqa: S311 - spreads load, guards nothing
        return cadence.delay(self._policy, now - one.since, chance, marks)

    async def _look_at_page(self, awaited: Sequence[_Awaited]) -> Sequence[_Awaited]:
        """Read the newest operations; returns those of ``awaited`` that were not among them."""
        limit = min(max(len(awaited) + PAGE_SLACK, self._reach), MAX_PAGE)
        page = await self._attempt(self._source.newest(self._project_id, limit), awaited)
        if page is None:
            _end_look(awaited)
            return ()
        places = {operation.id: place for place, operation in enumerate(page)}
        missing = [one for one in awaited if one.ref.id not in places]
        found = [one for one in awaited if one.ref.id in places]
        deepest = max((places[one.ref.id] for one in found), default=0)
        self._reach = 2 * limit if len(missing) > 1 else deepest + 1 + PAGE_SLACK
        for one in found:
            self._see(one, page[places[one.ref.id]])
        _end_look(found)
        return missing

    async def _look_at_one(self, one: _Awaited) -> None:
        operation = await self._attempt(self._source.get(one.ref), [one])
        if operation is not None:
            self._see(one, operation)
        _end_look([one])

    async def _attempt(self, look: Awaitable[T], awaited: Sequence[_Awaited]) -> T | None:
        try:
            return await look
        except Exception as error:  # noqa: BLE001 - whatever it is, no wait may be left hanging
            if not _passes(error):
                self._fail(awaited, error)
                return None
            for mailbox in _mailboxes(awaited):
                mailbox.last_error = error
            if isinstance(error, APIError) and error.retry_after:
                self._not_before = max(self._not_before, _time() + error.retry_after)
            return None

    def _see(self, one: _Awaited, operation: Operation) -> None:
        if self._awaited.get(one.ref.id) is not one:
            return  # nobody awaits it any more, or somebody anew
        known = one.record
        if known is not None and operation.updated_at < known.updated_at:
            # A list may lag behind: what was seen once is not taken back.
            operation = known
        change = Change(one.ref, operation, outcome(operation, datetime.now(UTC)))
        is_settled = change.outcome is not Outcome.PENDING
        if not is_settled:
            one.pending_at = _time()
        if known is not None and is_same(operation, known) and not is_settled:
            return
        one.record = operation
        for mailbox in one.mailboxes:
            mailbox.deliver(change)
        if is_settled:
            del self._awaited[one.ref.id]
        if known is None:
            one.since -= _age(operation)
        elif is_settled:
            self._learn(operation.action, _duration(one, operation))

    def _fail(self, awaited: Iterable[_Awaited], error: Exception) -> None:
        for one in awaited:
            for mailbox in one.mailboxes:
                mailbox.fail(error)
            # By now another wait may have begun to await the same operation anew.
            if self._awaited.get(one.ref.id) is one:
                del self._awaited[one.ref.id]


class Pollers:
    """The pollers of a client, by project; one exists only while something is awaited."""

    def __init__(self, source: OperationSource, policy: PollPolicy) -> None:
        self._source = source
        self._policy = policy
        self._forecast = Forecast()
        self._by_project: dict[str, Poller] = {}
        self._closed = False

    def add(self, ref: OperationRef, record: Operation | None, mailbox: Mailbox) -> None:
        """Deliver to ``mailbox`` what becomes of an operation.

        Raises ClientClosedError if the client is closed.
        """
        if self._closed:
            raise ClientClosedError("the client is closed: nothing can be awaited")
        poller = self._by_project.get(ref.project_id)
        if poller is None:
            poller = Poller(ref.project_id, self._source, self._policy, self._learn, self._forecast)
            self._by_project[ref.project_id] = poller
        poller.add(ref, record, mailbox)

    async def release(self, refs: Iterable[OperationRef], mailbox: Mailbox) -> None:
        """Forget ``mailbox``; pollers that nobody needs any more are ended."""
        by_project: dict[str, list[OperationRef]] = {}
        for ref in refs:
            by_project.setdefault(ref.project_id, []).append(ref)
        idle: list[Poller] = []
        for project_id, ones in by_project.items():
            poller = self._by_project.get(project_id)
            if poller is not None:
                poller.remove(ones, mailbox)
                if poller.is_idle:
                    idle.append(self._by_project.pop(project_id))
        await _stop(idle)

    async def aclose(self) -> None:
        """End every poller; what still waits ends with ClientClosedError."""
        self._closed = True
        pollers = list(self._by_project.values())
        self._by_project.clear()
        await _stop(pollers)

    def _learn(self, action: str, duration: float) -> None:
        """Remember how long an operation took, for all projects."""
        if self._forecast.note(action, duration):
            for poller in self._by_project.values():
                poller.plan()


async def _stop(pollers: Iterable[Poller]) -> None:
    reason = ClientClosedError("the client was closed while operations were awaited")
    tasks = [task for poller in pollers if (task := poller.stop(reason)) is not None]
    if tasks:
        # A wait that is being cancelled still sees its poller off; that takes no time.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(tasks)


def _mailboxes(awaited: Iterable[_Awaited]) -> set[Mailbox]:
    return {mailbox for one in awaited for mailbox in one.mailboxes}


def _end_look(awaited: Iterable[_Awaited]) -> None:
    for one in awaited:
        one.is_looked_at = False


def _age(record: Operation | None) -> float:
    """How long an operation had been running when the platform wrote its record, in seconds."""
    return 0.0 if record is None else (record.total_duration_ms or 0) / 1000


def _duration(one: _Awaited, operation: Operation) -> float:
    """How long an operation took from its begin: what it tells, within what was seen of it.

    It tells how long it ran; it may have waited for another one before.
    """
    at_least, at_most = one.pending_at - one.since, _time() - one.since
    if operation.total_duration_ms is None:
        return (at_least + at_most) / 2
    return min(max(_age(operation), at_least), at_most)


def _passes(error: Exception) -> TypeGuard[NeonError]:
    """Whether a poll that failed so may succeed the next time."""
    if isinstance(error, APIError):
        return error.status in PASSING or error.status >= 500
    return isinstance(error, TransportError | InvalidResponseError)


def _time() -> float:
    return asyncio.get_running_loop().time()
