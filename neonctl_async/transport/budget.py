"""The rate budget: keeps the requests of a client within Neon's rate limits."""

import asyncio
import logging
import math
from typing import Final

from neonctl_async.clock import loop_time
from neonctl_async.config import RateBudget
from neonctl_async.transport.account import MINUTE, Account, LocalAccount
from neonctl_async.transport.calls import running_loop
from neonctl_async.transport.pause import FIRST_PAUSE
from neonctl_async.transport.scheduler import NOT_URGENT, Scheduler, Ticket, Urgency

HELD_SECONDS: Final = 5.0
"""The shortest logged wait for a slot, in seconds. Users notice such a delay."""

_logger = logging.getLogger(__name__)


class Slot(Ticket):
    """The right to send one request. Its holder releases it, or cancels it if nothing was sent."""

    __slots__ = ("budget", "granted", "is_over")

    budget: "Budget"
    is_over: bool
    granted: asyncio.Future[None]
    """Done when the slot is granted. Set only for a slot that has to wait."""

    def release(self) -> None:
        """Record the end of the request: its response has arrived or will never arrive."""
        if not self.is_over:
            self.is_over = True
            self.budget.release(self)

    def cancel(self) -> None:
        """Record that the request was not sent. A released slot stays released."""
        if not self.is_over:
            self.is_over = True
            self.budget.cancel(self)


class Budget:
    """Grants the slots of a client, in the order of its :class:`Scheduler`.

    ``connections`` is the maximum number of requests in flight.
    """

    def __init__(
        self, limits: RateBudget, connections: int, account: Account | None = None
    ) -> None:
        self._limits = limits
        self._account: Account = account or LocalAccount(limits)
        self._account.on_change = self._schedule
        self._scheduler = Scheduler[Slot](self._account, connections)
        self._timer: asyncio.Handle | None = None
        self._is_scheduled = False
        self._hold_reported_at = -math.inf
        self._pause_reported_until = -math.inf

    def requests_last_minute(self) -> int:
        """Return the number of requests that currently count against the limit per minute."""
        return self._account.used(running_loop().time())

    def held_seconds(self) -> float:
        """Return how many seconds waiting requests are held back; 0.0 if no request is waiting."""
        if not self._scheduler.has_waiting:
            return 0.0
        now = running_loop().time()
        until = self._scheduler.held_until(now)
        return until - now if now < until < math.inf else 0.0

    @property
    def polls_per_second(self) -> float:
        """The limit per second on polls of one route; inf means no limit."""
        return self._limits.per_route_per_second or math.inf

    @property
    def per_minute(self) -> float:
        """The limit on requests per minute; inf means no limit."""
        return self._account.limit or math.inf

    @property
    def polls_wanted(self) -> float:
        """The number of polls that the pending waits of this client will probably need."""
        return self._scheduler.polls_wanted

    @property
    def is_contended(self) -> bool:
        """True if a 429 arrived within the last minute: other clients use the account too."""
        return running_loop().time() < self._scheduler.refused_at + MINUTE

    @property
    def polls_left(self) -> float:
        """The per-minute slots that waiting calls leave for polls, or inf if there is no limit."""
        return self._scheduler.polls_left(running_loop().time())

    def note_wanted(self, project_id: str, polls: float) -> None:
        """Set how many polls a project will probably need: 0 if it has no pending waits."""
        self._scheduler.note_wanted(project_id, polls)
        self._schedule()

    async def acquire(
        self, route: str, *, is_poll: bool = False, urgency: Urgency = NOT_URGENT
    ) -> Slot:
        """Wait until a request to ``route`` may be sent, and return its slot."""
        slot = Slot(route, is_poll=is_poll, urgency=urgency)
        slot.budget = self
        slot.is_over = False
        loop = asyncio.get_running_loop()
        if self._scheduler.admit(slot, loop.time()):
            return slot
        slot.granted = loop.create_future()
        self._schedule()
        try:
            await slot.granted
        except asyncio.CancelledError:
            if self._scheduler.withdraw(slot):
                self._schedule()
            else:  # granted in the meantime
                self.cancel(slot)
            raise
        return slot

    def hurry(self, urgency: Urgency, at: float) -> None:
        """Make the requests of ``urgency``, even waiting ones, urgent at ``at`` or earlier."""
        if at < urgency.at:
            urgency.at = at
            self._schedule()

    def release(self, slot: Slot) -> None:
        """Record the end of a request."""
        self._scheduler.release(slot, loop_time())
        self._schedule()

    def cancel(self, slot: Slot) -> None:
        """Record that a request was not sent."""
        self._scheduler.cancel(slot, loop_time())
        self._schedule()

    def hold_back(self, retry_after: float | None) -> None:
        """Pause after a 429: for ``retry_after`` seconds, or longer each time if it is None."""
        now = loop_time()
        self._scheduler.hold_back(retry_after, now)
        self._report_pause(now, self._scheduler.paused_until)

    async def aclose(self) -> None:
        """Stop the timer, and close the account."""
        if self._timer is not None:
            self._timer.cancel()
        await self._account.aclose()

    def _schedule(self) -> None:
        """Grant slots in the event loop's next iteration, once for all changes made until then."""
        if self._scheduler.has_waiting and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._give_out)

    def _give_out(self) -> None:
        self._is_scheduled = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while isinstance(step := self._scheduler.next(loop_time()), Slot):
            if not step.granted.cancelled():  # else its task runs soon, and releases the slot
                step.granted.set_result(None)
        self._report_hold()
        if step < math.inf and self._scheduler.has_waiting:
            self._timer = asyncio.get_running_loop().call_at(step, self._give_out)

    def _report_pause(self, now: float, until: float) -> None:
        """Log a pause once, and again if it gets much longer."""
        # The other responses of a burst move the end by milliseconds.
        reported = self._pause_reported_until
        if until <= now or (now < reported and until < reported + FIRST_PAUSE):
            return
        self._pause_reported_until = until
        _logger.warning(
            "rate limit of the account exceeded (429): this client sends nothing for %.3g s",
            until - now,
        )

    def _report_hold(self) -> None:
        """Log that requests wait because the minute's limit is used up, at most once a minute."""
        now = loop_time()
        if now < self._hold_reported_at + MINUTE or not self._scheduler.has_waiting:
            return
        seconds = self._account.refill_at(now, 1) - now
        if not HELD_SECONDS <= seconds < math.inf:
            return
        self._hold_reported_at = now
        _logger.warning(
            "requests wait for %.0f s: the limit of %s requests a minute is used up, %d of them "
            "by this client",
            seconds,
            self._account.limit,
            self.requests_last_minute(),
        )
