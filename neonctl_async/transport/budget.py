"""The rate budget: keeps the requests of a client within Neon's rate limits."""

import asyncio
import math
from collections import deque
from collections.abc import Callable

import anyio

from neonctl_async.config import RateBudget

POLL_HORIZON_SECONDS = 8.0
"""The time in which polls alone, at their current rate, would use up the rest of a minute."""
POLL_BURST_SECONDS = 0.25
"""The burst of polls that may be sent at once, in seconds at their current rate."""
RESERVED_FOR_CALLS = 0.05
"""The share of the requests per minute that polls leave to calls."""
CALLS_PER_POLL = 9
"""The largest number of calls that are sent before a waiting poll."""
ROUTE_PRUNE_THRESHOLD = 100
"""The number of known routes at which the windows of idle routes are deleted."""
MIN_PAUSE_SECONDS = 0.5
"""The first pause after a 429 without ``Retry-After``."""
MAX_PAUSE_SECONDS = 60.0
"""The longest pause after a 429."""
FORGET_PAUSES_SECONDS = 60.0
"""The time without a 429 after which pauses are short again."""


class Window:
    """A sliding window: at most ``limit`` requests within any ``period`` seconds.

    The windows of Neon slide too. A leaky bucket would allow nearly twice the limit. Neon counts a
    request when it arrives, at some time between sending and the response. Its slot is therefore
    occupied from sending until one period after the response.
    """

    def __init__(self, limit: int | None, period: float) -> None:
        self.limit = limit
        self.call_queue: asyncio.Lock = asyncio.Lock()
        self.poll_queue: asyncio.Lock = asyncio.Lock()
        self.waiting_calls = 0
        self._period = period
        self._in_flight = 0
        self._ended_at: deque[float] = deque()

    def used(self, now: float) -> int:
        """Return the number of occupied slots."""
        while self._ended_at and self._ended_at[0] + self._period <= now:
            self._ended_at.popleft()
        return self._in_flight + len(self._ended_at)

    def free(self, now: float) -> float:
        """Return the number of free slots."""
        return math.inf if self.limit is None else self.limit - self.used(now)

    def is_idle(self, now: float) -> bool:
        """Return whether no call is waiting and no slot is occupied."""
        return not (self.waiting_calls or self.used(now))

    def free_at(self, now: float, reserve: int = 0) -> float:
        """Return the time at which a slot is free, with ``reserve`` more free slots left.

        The result is inf if a request in flight has to finish first.
        """
        if self.limit is None or (lacking := reserve + 1 - self.free(now)) <= 0:
            return -math.inf
        if lacking > len(self._ended_at):
            return math.inf
        return self._ended_at[int(lacking) - 1] + self._period

    def take(self) -> None:
        """Occupy a slot for a request that is sent now."""
        self._in_flight += 1

    def release(self, now: float) -> None:
        """Record the end of a request. Its slot becomes free one period later."""
        self._in_flight -= 1
        self._ended_at.append(now)
        self.used(now)  # deletes old entries, also in a window without a limit


class Slot:
    """The right to send one request now. It must be released after the response."""

    __slots__ = ("_budget", "_route")

    def __init__(self, budget: "Budget", route: str) -> None:
        self._budget = budget
        self._route = route

    def release(self) -> None:
        """Record the end of the request."""
        self._budget.release(self._route)


class Budget:
    """The rate limits of a client: per minute, per route and second, and requests in flight.

    ``connections`` is the largest number of requests in flight. Calls, which are all requests but
    polls, are sent in their order and before polls. Polls slow down as the budget shrinks, so a
    new call finds a free slot. While calls and polls wait for slots, every tenth request is a poll.
    """

    def __init__(self, limits: RateBudget, connections: int) -> None:
        self._limits = limits
        self._account = Window(limits.per_minute, period=60.0)
        self._reserved_for_calls = int(RESERVED_FOR_CALLS * (limits.per_minute or 0))
        self._routes: dict[str, Window] = {}
        self._waiting_calls = 0
        self._free_connections = connections
        self._paused_until = 0.0
        self._pause = 0.0
        self._next_poll_at = -math.inf
        self._polls_waiting_for_slot = 0
        self._polls_waiting_for_route: list[Window] = []
        """One entry for each waiting poll: the window of its route."""
        self._calls_since_poll = 0
        self._changed = asyncio.Event()
        self._sleeping = 0

    def requests_last_minute(self) -> int:
        """Return the number of requests that count against the limit per minute now."""
        return self._account.used(_time())

    async def acquire_poll_slot(self) -> None:
        """Wait until one poll may start. Its request still needs :meth:`acquire`."""
        self._polls_waiting_for_slot += 1
        try:
            async with self._account.poll_queue:
                await self._wait_until(self._poll_slot_at)
        finally:
            self._polls_waiting_for_slot -= 1
            self._wake()
        now = _time()
        interval = POLL_HORIZON_SECONDS / max(self._account.free(now), 1.0)
        self._next_poll_at = max(self._next_poll_at, now - POLL_BURST_SECONDS) + interval

    async def acquire(self, route: str, *, is_poll: bool = False) -> Slot:
        """Wait until a request to ``route`` may be sent, and occupy a slot for it.

        The caller must release the slot when the request is over.
        """
        now = _time()
        window = self._window_of(route, now)
        if is_poll:
            await self._acquire_for_poll(window)
            self._calls_since_poll = 0
        else:
            free_at = max(window.free_at(now), self._free_for_call_at(now))
            if self._waiting_calls or free_at > now:
                await self._acquire_for_call(window)
            are_polls_waiting = self._polls_waiting_for_slot or self._polls_waiting_for_route
            self._calls_since_poll = self._calls_since_poll + 1 if are_polls_waiting else 0
            if self._is_poll_due:
                self._wake()  # else the poll and the calls behind it wait for the next release
        self._free_connections -= 1
        window.take()
        self._account.take()
        return Slot(self, route)

    def release(self, route: str) -> None:
        """Record the end of a request to ``route``."""
        now = _time()
        self._free_connections += 1
        self._window_of(route, now).release(now)
        self._account.release(now)
        self._wake()

    def hold_back(self, retry_after: float | None) -> None:
        """Send nothing for a while, after a 429. Neon counts all requests of the account.

        Without ``retry_after``, the pauses grow until a minute passes without a 429.
        """
        now = _time()
        if now >= self._paused_until + FORGET_PAUSES_SECONDS:
            self._pause = 0.0
        if retry_after is None and now >= self._paused_until:
            self._pause = min(max(2 * self._pause, MIN_PAUSE_SECONDS), MAX_PAUSE_SECONDS)
            retry_after = self._pause
        pause = min(retry_after or 0.0, MAX_PAUSE_SECONDS)
        self._paused_until = max(self._paused_until, now + pause)

    async def _acquire_for_call(self, window: Window) -> None:
        self._waiting_calls += 1
        window.waiting_calls += 1
        try:
            # Wait for the route first, so a busy route does not delay the others.
            async with window.call_queue:
                while True:
                    await self._wait_until(window.free_at)
                    async with self._account.call_queue:
                        await self._wait_until(self._free_for_call_at)
                        now = _time()
                        if window.free_at(now) <= now:
                            return  # else a poll took the slot
        finally:
            window.waiting_calls -= 1
            self._waiting_calls -= 1
            self._wake()

    async def _acquire_for_poll(self, window: Window) -> None:
        self._polls_waiting_for_route.append(window)
        try:
            async with window.poll_queue:
                await self._wait_until(lambda now: self._free_for_poll_at(window, now))
        finally:
            self._polls_waiting_for_route.remove(window)
            self._wake()

    def _free_for_call_at(self, now: float) -> float:
        if self._is_poll_due and self._can_poll(now):
            return math.inf  # until the poll is sent
        return max(self._account.free_at(now), self._sendable_at())

    def _free_for_poll_at(self, window: Window, now: float) -> float:
        if not self._is_poll_due and self._can_call(window, now):
            return math.inf  # until the calls are sent
        account_free_at = self._account.free_at(now, self._poll_reserve())
        return max(window.free_at(now), account_free_at, self._sendable_at())

    def _poll_slot_at(self, now: float) -> float:
        if self._polls_waiting_for_route:
            return math.inf  # until these polls are sent
        if not self._is_poll_due and any(
            self._can_call(window, now) for window in self._routes.values()
        ):
            return math.inf  # until the calls are sent
        pace_at = -math.inf if self._is_poll_due else self._next_poll_at
        return max(self._account.free_at(now, self._poll_reserve()), pace_at, self._sendable_at())

    @property
    def _is_poll_due(self) -> bool:
        """True if enough calls were sent before the waiting polls, and a poll goes first now."""
        return self._calls_since_poll >= CALLS_PER_POLL

    def _can_call(self, window: Window, now: float) -> bool:
        """Return whether a call waits for a route and could be sent now."""
        free_at = max(window.free_at(now), self._account.free_at(now), self._sendable_at())
        return window.waiting_calls > 0 and free_at <= now

    def _can_poll(self, now: float) -> bool:
        """Return whether a poll waits and could be sent now."""
        if max(self._account.free_at(now), self._sendable_at()) > now:
            return False
        if self._polls_waiting_for_route:
            return any(window.free_at(now) <= now for window in self._polls_waiting_for_route)
        return self._polls_waiting_for_slot > 0

    def _poll_reserve(self) -> int:
        return 0 if self._is_poll_due else self._reserved_for_calls

    def _sendable_at(self) -> float:
        return self._paused_until if self._free_connections > 0 else math.inf

    def _window_of(self, route: str, now: float) -> Window:
        window = self._routes.get(route)
        if window is None:
            if len(self._routes) >= ROUTE_PRUNE_THRESHOLD:
                self._routes = {
                    name: known
                    for name, known in self._routes.items()
                    if known in self._polls_waiting_for_route or not known.is_idle(now)
                }
            window = self._routes[route] = Window(self._limits.limit_of(route), period=1.0)
        return window

    def _wake(self) -> None:
        if self._sleeping:
            self._changed.set()
            self._changed.clear()

    async def _wait_until(self, time_of: Callable[[float], float]) -> None:
        """Wait until ``time_of(now)`` is reached. Each change of the budget computes it again."""
        while (until := time_of(now := _time())) > now:
            self._sleeping += 1
            try:
                with anyio.CancelScope(deadline=until):
                    await self._changed.wait()
            finally:
                self._sleeping -= 1


def _time() -> float:
    return asyncio.get_running_loop().time()
