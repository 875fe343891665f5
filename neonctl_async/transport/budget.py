"""The rate budget: no more requests within any window of time than the platform allows."""

import asyncio
from collections import deque
from typing import Self

from neonctl_async.config import RateBudget


class Window:
    """At most ``limit`` grants within any ``period`` seconds, in the order asked for.

    The window slides, as the platform's do: a leaky bucket would let nearly twice the limit pass.
    ``async with window`` waits for a turn with room; within it, :meth:`take` spends a grant.
    """

    def __init__(self, limit: int | None, period: float) -> None:
        self._period = period
        self._limit = limit
        self._grants: deque[float] = deque(maxlen=limit)
        self._turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._turn.acquire()
        try:
            while (delay := self._delay()) > 0:  # noqa: ASYNC110 - it is time that is waited for
                await asyncio.sleep(delay)
        except BaseException:
            self._turn.release()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._turn.release()

    def take(self) -> None:
        """Spend a grant now."""
        if self._limit is not None:
            self._grants.append(asyncio.get_running_loop().time())

    def _delay(self) -> float:
        if self._limit is None or len(self._grants) < self._limit:
            return 0.0
        return self._grants[0] + self._period - asyncio.get_running_loop().time()


class Budget:
    """What a client may still send, by account and by route (the platform's rate limits)."""

    def __init__(self, limits: RateBudget) -> None:
        self._limits = limits
        self._account = Window(limits.per_minute, period=60.0)
        self._routes: dict[str, Window] = {}

    async def acquire(self, route: str) -> None:
        """Wait until a request of ``route`` may be sent, first come, first served."""
        # The route comes first: requests held up by their route hold up no other route.
        async with self._window_of(route) as of_route, self._account as of_account:
            of_route.take()
            of_account.take()

    def _window_of(self, route: str) -> Window:
        window = self._routes.get(route)
        if window is None:
            window = self._routes[route] = Window(self._limits.limit_of(route), period=1.0)
        return window
