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
KEPT_FOR_CALLERS = 0.05
"""The share of a minute that polls leave to callers who may come."""
CALLERS_A_POLL = 9
"""How many requests of callers go before a poll that waits, at the most."""
MOST_ROUTES = 100
"""Windows of routes that are kept, though nothing happens there any more."""


class Window:
    """At most ``limit`` requests within any ``period`` seconds, wherever they are counted.

    The window slides, as the platform's do: a leaky bucket would let nearly twice the limit pass.
    The platform counts a request when it arrives, between its being sent and its being answered:
    so its place is taken from the one until a period after the other.
    """

    def __init__(self, limit: int | None, period: float) -> None:
        self.limit = limit
        self.callers: asyncio.Lock = asyncio.Lock()
        self.polls: asyncio.Lock = asyncio.Lock()
        self.callers_waiting = 0
        self._period = period
        self._under_way = 0
        self._ended: deque[float] = deque()

    def counted(self, now: float) -> int:
        """How many requests count."""
        while self._ended and self._ended[0] + self._period <= now:
            self._ended.popleft()
        return self._under_way + len(self._ended)

    def free(self, now: float) -> float:
        """How many more requests fit."""
        return math.inf if self.limit is None else self.limit - self.counted(now)

    def is_idle(self, now: float) -> bool:
        """Whether nobody waits for it, and nothing is counted."""
        return not (self.callers_waiting or self.counted(now))

    def free_at(self, now: float, spare: int = 0) -> float:
        """When a request fits besides ``spare`` others; inf if one has to end first."""
        if self.limit is None or (lacking := spare + 1 - self.free(now)) <= 0:
            return -math.inf
        if lacking > len(self._ended):
            return math.inf
        return self._ended[int(lacking) - 1] + self._period

    def take(self) -> None:
        """Count a request that is sent now."""
        self._under_way += 1

    def release(self, now: float) -> None:
        """Tell that a request has ended: its place is free a period from now."""
        self._under_way -= 1
        self._ended.append(now)
        self.counted(now)  # forgets those that count no more, where no limit has anybody ask


class Budget:
    """What a client may send: within a minute, within a second of a route, and at once.

    ``connections`` is how many requests may be under way at once. A caller's requests go in the
    order asked for, and before polls. Polls take turns, and fewer the less is left of the account's
    window, so that a caller finds something left; but of ten requests that wait, one is a poll.
    """

    def __init__(self, limits: RateBudget, connections: int) -> None:
        self._limits = limits
        self._account = Window(limits.per_minute, period=60.0)
        self._kept_for_callers = int(KEPT_FOR_CALLERS * (limits.per_minute or 0))
        self._routes: dict[str, Window] = {}
        self._callers_waiting = 0
        self._adapter = connections
        self._held_until = 0.0
        self._next_poll = -math.inf
        self._polls_at_turn = 0
        self._polls_at_routes: list[Window] = []
        """The routes that polls wait for, each as often as there are polls."""
        self._callers_since_poll = 0
        self._changed = asyncio.Event()
        self._sleeping = 0

    def requests_last_minute(self) -> int:
        """How many requests count against the account's window now."""
        return self._account.counted(_time())

    async def acquire_poll_slot(self) -> None:
        """Wait until it is the turn of a poll: each is to be followed by one, or by none."""
        self._polls_at_turn += 1
        try:
            async with self._account.polls:
                await self._until(self._slot_at)
        finally:
            self._polls_at_turn -= 1
            self._wake()
        now = _time()
        least_gap = HORIZON / max(self._account.free(now), 1.0)
        self._next_poll = max(self._next_poll, now - BURST) + least_gap

    async def acquire(self, route: str, *, is_poll: bool = False) -> None:
        """Wait until a request of ``route`` may be sent.

        Each must be followed by a :meth:`release` when the request has ended.
        """
        now = _time()
        of_route = self._window_of(route, now)
        if is_poll:
            await self._acquire_for_poll(of_route)
            self._callers_since_poll = 0
        else:
            free_at = max(of_route.free_at(now), self._free_for_caller(now))
            if self._callers_waiting or free_at > now:
                await self._acquire_for_caller(of_route)
            do_polls_wait = self._polls_at_turn or self._polls_at_routes
            self._callers_since_poll = self._callers_since_poll + 1 if do_polls_wait else 0
            if self._is_polls_go:
                self._wake()  # that poll, or it and the callers behind it sleep until one has ended
        self._adapter -= 1
        of_route.take()
        self._account.take()

    def release(self, route: str) -> None:
        """Tell that a request has ended."""
        now = _time()
        self._adapter += 1
        self._window_of(route, now).release(now)
        self._account.release(now)
        self._wake()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the platform has answered 429, which counts by account."""
        self._held_until = max(self._held_until, _time() + seconds)

    async def _acquire_for_caller(self, of_route: Window) -> None:
        self._callers_waiting += 1
        of_route.callers_waiting += 1
        try:
            # The route comes first: requests held up by their route hold up no other route.
            async with of_route.callers:
                while True:
                    await self._until(of_route.free_at)
                    async with self._account.callers:
                        await self._until(self._free_for_caller)
                        now = _time()
                        if of_route.free_at(now) <= now:
                            return  # else a poll was faster
        finally:
            of_route.callers_waiting -= 1
            self._callers_waiting -= 1
            self._wake()

    async def _acquire_for_poll(self, of_route: Window) -> None:
        self._polls_at_routes.append(of_route)
        try:
            async with of_route.polls:
                await self._until(lambda now: self._free_for_poll(of_route, now))
        finally:
            self._polls_at_routes.remove(of_route)
            self._wake()

    def _free_for_caller(self, now: float) -> float:
        if self._is_polls_go and self._may_poll(now):
            return math.inf  # until the poll has gone
        return max(self._account.free_at(now), self._sendable_at())

    def _free_for_poll(self, of_route: Window, now: float) -> float:
        if not self._is_polls_go and self._may_call(of_route, now):
            return math.inf  # until the callers have gone
        of_account = self._account.free_at(now, self._kept())
        return max(of_route.free_at(now), of_account, self._sendable_at())

    def _slot_at(self, now: float) -> float:
        if self._polls_at_routes:
            return math.inf  # until they have gone
        if not self._is_polls_go and any(self._may_call(one, now) for one in self._routes.values()):
            return math.inf  # until the callers have gone
        paced = -math.inf if self._is_polls_go else self._next_poll
        return max(self._account.free_at(now, self._kept()), paced, self._sendable_at())

    @property
    def _is_polls_go(self) -> bool:
        """Whether so many callers have gone before polls that now a poll goes first."""
        return self._callers_since_poll >= CALLERS_A_POLL

    def _may_call(self, of_route: Window, now: float) -> bool:
        """Whether a caller waits for a route and nothing else keeps it from going."""
        moment = max(of_route.free_at(now), self._account.free_at(now), self._sendable_at())
        return of_route.callers_waiting > 0 and moment <= now

    def _may_poll(self, now: float) -> bool:
        """Whether a poll waits whose go it is, and that could go."""
        if max(self._account.free_at(now), self._sendable_at()) > now:
            return False
        if self._polls_at_routes:
            return any(window.free_at(now) <= now for window in self._polls_at_routes)
        return self._polls_at_turn > 0

    def _kept(self) -> int:
        return 0 if self._is_polls_go else self._kept_for_callers

    def _sendable_at(self) -> float:
        return self._held_until if self._adapter > 0 else math.inf

    def _window_of(self, route: str, now: float) -> Window:
        window = self._routes.get(route)
        if window is None:
            if len(self._routes) >= MOST_ROUTES:
                self._routes = {
                    name: one
                    for name, one in self._routes.items()
                    if one in self._polls_at_routes or not one.is_idle(now)
                }
            window = self._routes[route] = Window(self._limits.limit_of(route), period=1.0)
        return window

    def _wake(self) -> None:
        if self._sleeping:
            self._changed.set()
            self._changed.clear()

    async def _until(self, moment: Callable[[float], float]) -> None:
        """Wait until a moment of the loop's clock has come, which moves as requests end."""
        while (until := moment(now := _time())) > now:
            self._sleeping += 1
            try:
                with anyio.CancelScope(deadline=until):
                    await self._changed.wait()
            finally:
                self._sleeping -= 1


def _time() -> float:
    return asyncio.get_running_loop().time()
