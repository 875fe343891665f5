"""The last requests of a tenant in detail, and how much of the rate limits they use."""

import asyncio
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from neonctl_local.clock import SECOND, Instant
from neonctl_local.server.routes import CREATE_ORGANIZATION_KEY, ROUTE_NAMES
from neonctl_local.settings import RateLimits

DETAILED_REQUESTS: Final = 1000
"""The largest number of requests that are remembered with their details."""

COUNTED_REQUESTS: Final = 10_000
"""The largest number of requests that are counted for each account."""

NOTICE_DELAY: Final = 0.2
"""The seconds from a request to a notification, which covers all requests within this time."""

UNMATCHED: Final = "unmatched"
"""The route of all unknown paths. They share one limit, because clients can invent many paths."""

_MINUTE: Final = 60 * SECOND


class AnsweredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request with its details. The path has no query, and tokens in it are masked.

    ``status`` is 0 if the connection was closed without a response. ``account`` is empty, and
    ``key_id`` is None, if the request was rejected before its key was checked. ``has_fault`` is
    true if an injected fault fired.
    """

    number: int
    at: Instant
    method: str
    path: str
    status: int
    seconds: float
    account: str = ""
    key_id: int | None = None
    has_fault: bool = False


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """The requests of an account in the last 60 seconds, with their limits.

    ``busiest_route`` is the route that came closest to its limit within any second, or None.
    """

    minute: int
    minute_limit: int
    busiest_route: str | None = None
    second: int = 0
    second_limit: int


class RequestHistory:
    """The last requests of a tenant, and the times of the requests that its accounts sent."""

    def __init__(self) -> None:
        self._answered: deque[AnsweredRequest] = deque(maxlen=DETAILED_REQUESTS)
        self._admitted: dict[str, deque[tuple[Instant, str]]] = {}
        self._changed: asyncio.Event | None = None

    @property
    def answered(self) -> Sequence[AnsweredRequest]:
        """The last 1,000 requests, oldest first."""
        return tuple(self._answered)

    def add(self, request: AnsweredRequest) -> None:
        """Record a request, and notify tasks that are waiting for a change."""
        self._answered.append(request)
        self._notify()

    def count(self, account: str, route: str, now: Instant) -> None:
        """Count a request that the rate limits admitted."""
        admitted = self._admitted.get(account)
        if admitted is None:
            admitted = self._admitted[account] = deque(maxlen=COUNTED_REQUESTS)
        admitted.append((now, limited_route(route)))

    def usage(self, account: str, limits: RateLimits, now: Instant) -> Usage:
        """Return how much of its limits an account has used in the last 60 seconds."""
        last = [entry for entry in self._admitted.get(account, ()) if entry[0] > now - _MINUTE]
        used = _most_in_a_second(last)
        busiest = max(
            used, key=lambda route: used[route] / route_limit(limits, route), default=None
        )
        return Usage(
            minute=len(last),
            minute_limit=limits.account_per_minute,
            busiest_route=busiest,
            second=0 if busiest is None else used[busiest],
            second_limit=route_limit(limits, busiest),
        )

    def clear(self) -> None:
        """Forget everything."""
        self._answered.clear()
        self._admitted.clear()
        self._notify()

    @property
    def changed(self) -> asyncio.Event:
        """An event that is set soon after the next request, once for all that came by then."""
        if self._changed is None or self._changed.is_set():
            self._changed = asyncio.Event()
        return self._changed

    def _notify(self) -> None:
        changed = self._changed
        if changed is not None:
            self._changed = None
            asyncio.get_running_loop().call_later(NOTICE_DELAY, changed.set)


def limited_route(route: str) -> str:
    """Return the name under which the limits count a route."""
    return route if route in ROUTE_NAMES else UNMATCHED


def route_limit(limits: RateLimits, route: str | None) -> int:
    """Return the maximum number of requests per second for a route."""
    is_key_route = route == CREATE_ORGANIZATION_KEY
    return limits.organization_keys_per_second if is_key_route else limits.route_per_second


def _most_in_a_second(requests: Iterable[tuple[Instant, str]]) -> Counter[str]:
    """Return, for each route, the largest number of requests within any second."""
    times: dict[str, deque[Instant]] = {}
    most = Counter[str]()
    for at, route in requests:
        window = times.setdefault(route, deque())
        window.append(at)
        while window[0] <= at - SECOND:
            window.popleft()
        most[route] = max(most[route], len(window))
    return most
