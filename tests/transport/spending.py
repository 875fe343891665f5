"""Requests that draw on a budget, as the tests of it wish for them."""

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from neonctl_async.transport.budget import Budget
from tests.support.clock import now


class Wish(NamedTuple):
    """A request: when it is wished for, how long it is on its way, and how long it takes."""

    at: float
    route: str
    arrives_after: float = 0.0
    takes: float = 0.0
    is_poll: bool = False


async def spend(budget: Budget, wishes: Iterable[Wish]) -> list[tuple[float, str]]:
    """When each request arrives, and its route, in the order of arrival."""
    arrived: list[tuple[float, str]] = []

    async def one(wish: Wish) -> None:
        await asyncio.sleep(wish.at)
        if wish.is_poll:
            await budget.acquire_poll_slot()
        await budget.acquire(wish.route, is_poll=wish.is_poll)
        await asyncio.sleep(wish.arrives_after * wish.takes)
        arrived.append((now(), wish.route))
        await asyncio.sleep((1 - wish.arrives_after) * wish.takes)
        budget.release(wish.route)

    await asyncio.gather(*(one(wish) for wish in wishes))
    return arrived


def most_within(times: list[float], period: float) -> int:
    """The most events within any half-open window of ``period`` seconds."""
    return max(sum(start <= t < start + period for t in times) for start in times)
