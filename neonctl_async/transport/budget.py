"""The rate budget: no more requests within any window of time than the platform allows."""

import asyncio
import math
from collections import deque
from collections.abc import Callable

from neonctl_async.config import RateBudget


class Window:
    """At most ``limit`` requests within any ``period`` seconds, in the order asked for.

    The window slides, as the platform's do: a leaky bucket would let nearly twice the limit pass.
    Whoever holds ``turn`` waits for :meth:`room`, and then calls :meth:`take` as it sends.
    """

    def __init__(self, limit: int | None, period: float) -> None:
        self.turn = asyncio.Lock()
        self._limit = limit
        self._period = period
        self._sent: deque[float] = deque(maxlen=limit)

    async def room(self) -> None:
        """Wait until one more request fits."""
        await _until(self._free_at)

    def take(self) -> None:
        """Count a request that is sent now."""
        if self._limit is not None:
            self._sent.append(_time())

    def _free_at(self) -> float:
        return self._sent[0] + self._period if len(self._sent) == self._limit else -math.inf


class Budget:
    """What a client may send: within a minute, within a second of a route, and at once.

    ``connections`` is how many requests may be under way at once. They count as sent from the
    moment they are, not while they queue for a connection.
    """

    def __init__(self, limits: RateBudget, connections: int) -> None:
        self._limits = limits
        self._account = Window(limits.per_minute, period=60.0)
        self._routes: dict[str, Window] = {}
        self._connections = asyncio.Semaphore(connections)
        self._held_until = 0.0

    async def acquire(self, route: str) -> None:
        """Wait until a request of ``route`` may be sent, first come, first served.

        Each must be followed by a :meth:`release` when the request has ended.
        """
        of_route = self._window_of(route)
        # The route comes first: requests held up by their route hold up no other route.
        async with of_route.turn:
            await of_route.room()
            async with self._account.turn:
                await self._connections.acquire()
                try:
                    await self._account.room()
                    await _until(lambda: self._held_until)
                except BaseException:
                    self._connections.release()
                    raise
                of_route.take()
                self._account.take()

    def release(self) -> None:
        """Tell that a request has ended."""
        self._connections.release()

    def hold(self, seconds: float) -> None:
        """Send nothing for so long: the platform has answered 429, which counts by account."""
        self._held_until = max(self._held_until, _time() + seconds)

    def _window_of(self, route: str) -> Window:
        window = self._routes.get(route)
        if window is None:
            window = self._routes[route] = Window(self._limits.limit_of(route), period=1.0)
        return window


async def _until(moment: Callable[[], float]) -> None:
    """Sleep until a moment of the loop's clock, which may move meanwhile, has come."""
    while (delay := moment() - _time()) > 0:  # noqa: ASYNC110 - it is time that is waited for
        await asyncio.sleep(delay)


def _time() -> float:
    return asyncio.get_running_loop().time()
