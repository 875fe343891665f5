"""Requests that use a budget, for its tests."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from neonctl_async.transport.budget import Budget
from tests.support.clock import now


class Planned(NamedTuple):
    """A request that is started ``at`` a time, in seconds.

    It is in flight for ``duration`` seconds, and reaches the server after the fraction
    ``arrives_after`` of them.
    """

    at: float
    route: str
    arrives_after: float = 0.0
    duration: float = 0.0
    is_poll: bool = False


async def send_all(budget: Budget, requests: Iterable[Planned]) -> list[tuple[float, str]]:
    """Send the requests, and return the time of arrival and the route of each, by arrival."""
    arrived: list[tuple[float, str]] = []

    async def send(request: Planned) -> None:
        await asyncio.sleep(request.at)
        slot = await budget.acquire(request.route, is_poll=request.is_poll)
        await asyncio.sleep(request.arrives_after * request.duration)
        arrived.append((now(), request.route))
        await asyncio.sleep((1 - request.arrives_after) * request.duration)
        slot.release()

    await asyncio.gather(*(send(request) for request in requests))
    return arrived


def most_within(times: list[float], period: float) -> int:
    """Return the largest number of times within any half-open window of ``period`` seconds."""
    return max(sum(start <= t < start + period for t in times) for start in times)
