"""The rate limits of the API, in sliding windows of 60 seconds and of one second."""

from collections import defaultdict, deque
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Final

from neonctl_local.clock import SECOND, Instant
from neonctl_local.errors import ApiError
from neonctl_local.server.request_history import limited_route, route_limit
from neonctl_local.settings import RateLimits

_MINUTE: Final = 60 * SECOND
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class LimitWindow:
    """A sliding window: at most ``limit`` requests within any ``length`` microseconds."""

    def __init__(self, limit: int, length: int) -> None:
        self._length = length
        self._admitted: deque[Instant] = deque(maxlen=limit)

    def opens_at(self, now: Instant) -> Instant:
        """Return the time from which the next request is admitted: ``now``, or later."""
        admitted = self._admitted
        return max(now, admitted[0] + self._length) if len(admitted) == admitted.maxlen else now

    def count(self, now: Instant) -> None:
        """Record an admitted request."""
        self._admitted.append(now)


class Limiter:
    """Counts the admitted requests of each account and route. Rejected requests do not count."""

    def __init__(self, limits: RateLimits) -> None:
        self._limits = limits
        self._accounts = defaultdict[str, LimitWindow](self._account_window)
        self._routes: dict[tuple[str, str], LimitWindow] = {}

    def admit(self, account: str, route: str, now: Instant) -> None:
        """Admit a request. Raise 429 if a window is full."""
        windows = (self._accounts[account], self._route_window(account, route))
        opens_at = max(window.opens_at(now) for window in windows)
        if opens_at > now:
            raise ApiError(429, "too many requests", headers=self._retry_after(now, opens_at))
        for window in windows:
            window.count(now)

    def _account_window(self) -> LimitWindow:
        return LimitWindow(self._limits.account_per_minute, _MINUTE)

    def _route_window(self, account: str, route: str) -> LimitWindow:
        route = limited_route(route)
        window = self._routes.get((account, route))
        if window is None:
            limit = route_limit(self._limits, route)
            window = self._routes[account, route] = LimitWindow(limit, SECOND)
        return window

    def _retry_after(self, now: Instant, opens_at: Instant) -> dict[str, str]:
        if self._limits.retry_after == "none":
            return {}
        # Rounded up, so that a retry after this delay is admitted.
        if self._limits.retry_after == "seconds":
            return {"Retry-After": str(-((now - opens_at) // SECOND))}
        moment = _EPOCH + timedelta(seconds=-(-opens_at // SECOND))
        return {"Retry-After": format_datetime(moment, usegmt=True)}
