"""The rate budget: no more requests within any window of time than the platform allows."""

import asyncio
import math
from collections import deque
from collections.abc import Callable

import anyio

from neonctl_async.config import RateBudget

HORIZON = 8.0
"""Seconds in which polls, at the pace they may go at, would use up what is left of a minute."""
BURST = 0.25
"""Seconds of their pace that polls may take at once."""
CALLERS_SHARE = 0.05
"""The share of a minute that polls leave to callers who may come."""
POLLS_SHARE = 0.1
"""The share of a minute that callers leave to polls that wait."""


class Window:
    """At most ``limit`` requests within any ``period`` seconds, wherever they are counted.

    The window slides, as the platform's do: a leaky bucket would let nearly twice the limit pass.
    The platform counts a request when it arrives, between its being sent and its being answered:
    so its place is taken from the one until a period after the other.
    """

    def __init__(self, limit: int | None, period: float) -> None:
        self.limit = limit
        self.callers = asyncio.Lock()
        self.polls = asyncio.Lock()
        self.waiting = 0
        """How many callers wait for a place."""
        self._period = period
        self._under_way = 0
        self._ended: deque[float] = deque()

    def free(self) -> float:
        """How many more requests fit now."""
        if self.limit is None:
            return math.inf
        now = _time()
        while self._ended and self._ended[0] + self._period <= now:
            self._ended.popleft()
        return self.limit - self._under_way - len(self._ended)

    def free_at(self, spare: float = 0) -> float:
        """When a request fits besides ``spare`` others; inf if one has to end first."""
        if self.limit is None or (lacking := spare + 1 - self.free()) <= 0:
            return -math.inf
        if lacking > len(self._ended):
            return math.inf
        return self._ended[int(lacking) - 1] + self._period

    def take(self) -> None:
        """Count a request that is sent now."""
        self._under_way += 1

    def give_back(self) -> None:
        """Tell that a request has ended: its place is free a period from now."""
        self._under_way -= 1
        if self.limit is not None:
            self._ended.append(_time())


class Budget:
    """What a client may send: within a minute, within a second of a route, and at once.

    ``connections`` is how many requests may be under way at once. A caller's requests go in the
    order asked for, and before polls. Polls take turns, and fewer the less is left of the account's
    window, so that a caller finds something left.
    """

    def __init__(self, limits: RateBudget, connections: int) -> None:
        self._limits = limits
        self._account = Window(limits.per_minute, period=60.0)
        per_minute = limits.per_minute or 0
        self._kept_for_callers = int(CALLERS_SHARE * per_minute)
        # Polls may take more than this share of the account's window: what nobody else wants.
        self._share_of_polls = Window(int(POLLS_SHARE * per_minute), period=60.0)
        self._routes: dict[str, Window] = {}
        self._connections = connections
        self._held_until = 0.0
        self._next_poll = -math.inf
        self._polls_waiting = 0
        self._polls_at_routes = 0
        self._changed = asyncio.Event()

    async def turn_of_poll(self) -> None:
        """Wait until it is the turn of a poll: each is to be followed by one, or by none."""
        self._polls_waiting += 1
        try:
            async with self._account.polls:
                await self._until(self._turn_at)
        finally:
            self._polls_waiting -= 1
        least_gap = HORIZON / max(self._account.free(), 1.0)
        self._next_poll = max(self._next_poll, _time() - BURST) + least_gap

    async def acquire(self, route: str, *, is_poll: bool = False) -> None:
        """Wait until a request of ``route`` may be sent.

        Each must be followed by a :meth:`release` when the request has ended.
        """
        of_route = self._window_of(route)
        if is_poll:
            await self._acquire_for_poll(of_route)
        else:
            await self._acquire_for_caller(of_route)
        self._connections -= 1
        for window in self._windows_of(route, is_poll=is_poll):
            window.take()

    def release(self, route: str, *, is_poll: bool = False) -> None:
        """Tell that a request has ended."""
        self._connections += 1
        for window in self._windows_of(route, is_poll=is_poll):
            window.give_back()
        self._wake()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the platform has answered 429, which counts by account."""
        self._held_until = max(self._held_until, _time() + seconds)

    async def _acquire_for_caller(self, of_route: Window) -> None:
        of_route.waiting += 1
        try:
            # The route comes first: requests held up by their route hold up no other route.
            async with of_route.callers:
                await self._until(of_route.free_at)
                async with self._account.callers:
                    await self._until(self._free_for_caller)
        finally:
            of_route.waiting -= 1
            self._wake()

    async def _acquire_for_poll(self, of_route: Window) -> None:
        self._polls_at_routes += 1
        try:
            async with of_route.polls:
                await self._until(lambda: self._free_for_poll(of_route))
        finally:
            self._polls_at_routes -= 1
            self._wake()

    def _free_for_caller(self) -> float:
        polls_wait = self._polls_waiting or self._polls_at_routes
        spare = max(0, self._share_of_polls.free()) if polls_wait else 0
        return max(self._account.free_at(spare), self._sendable_at())

    def _free_for_poll(self, of_route: Window) -> float:
        if of_route.waiting and self._free_for_caller() <= _time():
            return math.inf  # until the callers have gone
        return max(of_route.free_at(), self._account.free_at(self._kept()), self._sendable_at())

    def _turn_at(self) -> float:
        if self._polls_at_routes:
            return math.inf  # until they have gone
        if self._free_for_caller() <= _time() and any(
            window.waiting and window.free_at() <= _time() for window in self._routes.values()
        ):
            return math.inf  # until the callers have gone
        return max(self._account.free_at(self._kept()), self._next_poll, self._sendable_at())

    def _kept(self) -> int:
        """What polls that have had their share leave to callers who may come."""
        return self._kept_for_callers if self._share_of_polls.free() <= 0 else 0

    def _sendable_at(self) -> float:
        return self._held_until if self._connections > 0 else math.inf

    def _windows_of(self, route: str, *, is_poll: bool) -> tuple[Window, ...]:
        windows = (self._window_of(route), self._account)
        return (*windows, self._share_of_polls) if is_poll else windows

    def _window_of(self, route: str) -> Window:
        window = self._routes.get(route)
        if window is None:
            window = self._routes[route] = Window(self._limits.limit_of(route), period=1.0)
        return window

    def _wake(self) -> None:
        self._changed.set()
        self._changed.clear()

    async def _until(self, moment: Callable[[], float]) -> None:
        """Wait until a moment of the loop's clock has come, which moves as requests end."""
        while (until := moment()) > _time():
            with anyio.CancelScope(deadline=until):
                await self._changed.wait()


def _time() -> float:
    return asyncio.get_running_loop().time()
