"""Runs in turn: each contender once, again and again, so that all meet the same conditions."""

import gc
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from benchmarks.peers.base import Contender
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx

C = TypeVar("C", bound=Contender)


async def in_turn(
    contenders: Sequence[C], once: Callable[[C], Awaitable[float]], rounds: int
) -> dict[str, list[float]]:
    """What ``once`` answers of each contender, round by round, in an order that changes.

    The first round, in which connections are made and caches filled, does not count.
    """
    values: dict[str, list[float]] = {contender.name: [] for contender in contenders}
    order = list(contenders)
    shuffle = random.Random(rounds).shuffle
    for _ in range(rounds + 1):
        shuffle(order)
        for contender in order:
            gc.collect()
            values[contender.name].append(await once(contender))
    return {name: runs[1:] for name, runs in values.items()}


async def entered(
    stack: AsyncExitStack, kinds: Sequence[type[C]], server: Nginx, base_url: str = ""
) -> list[C]:
    """These contenders, ready to ask the server: at its own address, or one that leads to it."""
    contenders = [
        kind(base_url or server.base_url, PROJECT_ID, server.operation_id) for kind in kinds
    ]
    for contender in contenders:
        await stack.enter_async_context(contender)
    return contenders
