"""The account: the limits that Neon counts requests against, as one client sees them.

Pure: times are passed in.
"""

import math
from collections import deque
from collections.abc import Callable
from typing import Protocol

from neonctl_async.config import RateBudget

MINUTE = 60.0
"""The period of the account's limit, in seconds."""
SECOND = 1.0
"""The period of the route limits, in seconds."""
CALLS_PER_POLL = 9
"""The number of calls sent before a waiting poll. Polls get every tenth slot, so no wait
starves."""
ROUTE_PRUNE_THRESHOLD = 100
"""The number of known routes at which the windows of idle routes are deleted: more than a program
uses within a second."""


class Account(Protocol):
    """The limits of an account. Times are on the event loop's clock.

    A slot is taken when a request is sent. It is free again one period after the response.
    """

    on_change: Callable[[], None]
    """Called when a slot may become free at a different time than announced."""

    @property
    def limit(self) -> int | None:
        """The limit per minute; None means no limit."""
        ...

    def used(self, now: float) -> int:
        """Return how many per-minute slots this client occupies."""
        ...

    def free(self, now: float) -> float:
        """Return how many per-minute slots are free, or inf if there is no limit."""
        ...

    def refill_at(self, now: float, slots: int) -> float:
        """Return when this many per-minute slots will be free: -inf if they already are."""
        ...

    def free_at(self, route: str, now: float, *, waiting: int) -> float:
        """Return when a request to ``route`` may be sent: ``now`` or earlier if it may be sent now.

        inf means that the time is unknown: :attr:`on_change` will be called. ``waiting`` is the
        number of requests to ``route`` that need a slot.
        """
        ...

    def take(self, route: str, now: float) -> None:
        """Occupy a slot. :meth:`free_at` must have allowed the request."""
        ...

    def release(self, route: str, now: float) -> None:
        """Record that the response to a request has arrived or will never arrive."""
        ...

    def cancel(self, route: str, now: float) -> None:
        """Cancel a slot whose request was not sent."""
        ...

    async def aclose(self) -> None:
        """Release all unused slots."""
        ...


class SlidingWindow:
    """A limit on the requests within any ``period`` seconds; None means no limit.

    Neon counts a request when it arrives, at some time between sending and the response. Its slot
    is therefore occupied from sending until one period after the response. A leaky bucket would
    allow nearly twice the limit.
    """

    __slots__ = ("_ended_at", "_in_flight", "_period", "limit")

    def __init__(self, limit: int | None, period: float) -> None:
        self.limit: int | None = limit
        self._period = period
        self._in_flight = 0
        self._ended_at: deque[float] = deque()

    def used(self, now: float) -> int:
        """Return the number of occupied slots."""
        while self._ended_at and self._ended_at[0] + self._period <= now:
            self._ended_at.popleft()
        return self._in_flight + len(self._ended_at)

    def free(self, now: float) -> float:
        """Return the number of free slots, or inf if there is no limit."""
        return math.inf if self.limit is None else self.limit - self.used(now)

    def free_at(self, now: float, slots: int = 1) -> float:
        """Return when this many slots will be free: -inf if they already are.

        The result is inf if requests in flight have to end first.
        """
        ended_at = self._ended_at
        if self.limit is None or self._in_flight + len(ended_at) + slots <= self.limit:
            return -math.inf
        lacking = self.used(now) + slots - self.limit
        if lacking <= 0:
            return -math.inf
        if lacking > len(ended_at):
            return math.inf
        return ended_at[lacking - 1] + self._period

    def take(self) -> None:
        """Occupy a slot for a request that is about to be sent."""
        self._in_flight += 1

    def release(self, now: float) -> None:
        """Record the end of a request. Its slot becomes free one period later."""
        self._in_flight -= 1
        self._ended_at.append(now)
        if self.limit is None:
            self.used(now)  # deletes old entries, which free_at() does in a window with a limit

    def cancel(self) -> None:
        """Cancel a slot whose request was not sent."""
        self._in_flight -= 1


class LocalAccount:
    """An account that only this client uses."""

    def __init__(self, limits: RateBudget) -> None:
        self.on_change: Callable[[], None] = _ignore
        self._limits = limits
        self._has_route_limits = bool(limits.route_limits or limits.per_route_per_second)
        self._minute = SlidingWindow(limits.per_minute, MINUTE)
        self._routes: dict[str, SlidingWindow] = {}

    def set_limits(self, limits: RateBudget) -> None:
        """Replace the limits. Earlier requests count against the new limits."""
        self._limits = limits
        self._minute.limit = limits.per_minute
        for route, window in self._routes.items():
            window.limit = limits.limit_of(route)

    @property
    def limit(self) -> int | None:
        """The limit per minute; None means no limit."""
        return self._minute.limit

    def used(self, now: float) -> int:
        """Return how many per-minute slots are occupied."""
        return self._minute.used(now)

    def free(self, now: float) -> float:
        """Return how many per-minute slots are free, or inf if there is no limit."""
        return self._minute.free(now)

    def refill_at(self, now: float, slots: int) -> float:
        """Return when this many per-minute slots will be free: -inf if they already are."""
        return self._minute.free_at(now, slots)

    def free_at(self, route: str, now: float, *, waiting: int) -> float:
        """Return when a request to ``route`` may be sent: -inf if it may be sent now."""
        del waiting
        minute_at = self._minute.free_at(now)
        window = self._routes.get(route)
        return minute_at if window is None else max(minute_at, window.free_at(now))

    def take(self, route: str, now: float) -> None:
        """Occupy a slot for a request that is about to be sent."""
        self._minute.take()
        if self._has_route_limits:
            window = self._routes.get(route) or self._add_route(route, now)
            if window is not None:
                window.take()

    def release(self, route: str, now: float) -> None:
        """Record the end of a request."""
        self._minute.release(now)
        if (window := self._routes.get(route)) is not None:
            window.release(now)

    def cancel(self, route: str, now: float) -> None:
        """Cancel a slot whose request was not sent."""
        del now
        self._minute.cancel()
        if (window := self._routes.get(route)) is not None:
            window.cancel()

    async def aclose(self) -> None:
        """Do nothing: every slot belongs to this client."""

    def _add_route(self, route: str, now: float) -> SlidingWindow | None:
        """Add the window of a route and return it, or return None if the route has no limit."""
        if (limit := self._limits.limit_of(route)) is None:
            return None
        if len(self._routes) >= ROUTE_PRUNE_THRESHOLD:
            self._routes = {name: one for name, one in self._routes.items() if one.used(now)}
        window = self._routes[route] = SlidingWindow(limit, SECOND)
        return window


def _ignore() -> None:
    pass
