"""The rate budget: keeps the requests of a client within Neon's rate limits."""

import asyncio
import math

from neonctl_async.config import RateBudget
from neonctl_async.transport.account import Account, LocalAccount
from neonctl_async.transport.scheduler import Scheduler, Ticket


class Slot:
    """The right to send one request. Its holder must release or cancel it."""

    __slots__ = ("_budget", "_ticket")

    def __init__(self, budget: "Budget", ticket: Ticket) -> None:
        self._budget = budget
        self._ticket = ticket

    @property
    def route(self) -> str:
        """The route of the request."""
        return self._ticket.route

    def release(self) -> None:
        """Record the end of the request: its response has arrived or will never arrive."""
        self._budget.release(self._ticket)

    def cancel(self) -> None:
        """Record that the request was not sent."""
        self._budget.cancel(self._ticket)


class _Waiting(Ticket):
    """A ticket whose task waits for the slot."""

    __slots__ = ("granted",)

    def __init__(self, route: str, *, is_poll: bool, granted: asyncio.Future[None]) -> None:
        super().__init__(route, is_poll=is_poll)
        self.granted: asyncio.Future[None] = granted


class Budget:
    """Gives out the slots of a client, in the order of its :class:`Scheduler`.

    ``connections`` is the largest number of requests in flight.
    """

    def __init__(
        self, limits: RateBudget, connections: int, account: Account | None = None
    ) -> None:
        self._account: Account = account or LocalAccount(limits)
        self._account.on_change = self._schedule
        self._scheduler = Scheduler(self._account, connections)
        self._timer: asyncio.Handle | None = None
        self._is_scheduled = False

    def requests_last_minute(self) -> int:
        """Return the number of requests that count against the limit per minute now."""
        return self._account.used(_time())

    def share(self) -> float:
        """Return how many polls the rest of the minute allows for each pending wait."""
        return self._scheduler.share(_time())

    def free(self) -> float:
        """Return how many slots of the minute are free, inf without a limit."""
        return self._scheduler.free(_time())

    def note_pending(self, waits: int, projects: int) -> None:
        """Set the number of pending waits, and of the projects that they need polls of."""
        self._scheduler.note_pending(waits, projects)
        self._schedule()

    async def acquire(self, route: str, *, is_poll: bool = False) -> Slot:
        """Wait until a request to ``route`` may be sent, and return its slot."""
        ticket = Ticket(route, is_poll=is_poll)
        if self._scheduler.take_now(ticket, _time()):
            return Slot(self, ticket)
        waiting = _Waiting(
            route, is_poll=is_poll, granted=asyncio.get_running_loop().create_future()
        )
        self._scheduler.add(waiting, _time())
        self._schedule()
        try:
            await waiting.granted
        except asyncio.CancelledError:
            if not waiting.granted.cancelled():
                self.cancel(waiting)
            elif not waiting.is_withdrawn:
                self._scheduler.withdraw(waiting)
                self._schedule()
            raise
        return Slot(self, waiting)

    def release(self, ticket: Ticket) -> None:
        """Record the end of a request."""
        self._scheduler.release(ticket, _time())
        self._schedule()

    def cancel(self, ticket: Ticket) -> None:
        """Record that a request was not sent."""
        self._scheduler.cancel(ticket, _time())
        self._schedule()

    def hold_back(self, retry_after: float | None) -> None:
        """Pause after a 429, for ``retry_after`` seconds or for a growing time without it."""
        self._scheduler.hold_back(retry_after, _time())
        self._schedule()

    async def aclose(self) -> None:
        """Stop the timer, and give slots back that were not used."""
        if self._timer is not None:
            self._timer.cancel()
        await self._account.aclose()

    def _schedule(self) -> None:
        """Give out slots in the next turn of the loop, once for all changes of this turn."""
        if self._scheduler.has_waiting and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._give_out)

    def _give_out(self) -> None:
        self._is_scheduled = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while not isinstance(step := self._scheduler.next(_time()), float | int):
            assert isinstance(step, _Waiting)
            if step.granted.cancelled():  # its task has not run since
                step.is_withdrawn = True
                self._scheduler.cancel(step, _time())
            else:
                step.granted.set_result(None)
        if step < math.inf and self._scheduler.has_waiting:
            self._timer = asyncio.get_running_loop().call_at(step, self._give_out)


def _time() -> float:
    return asyncio.get_running_loop().time()
