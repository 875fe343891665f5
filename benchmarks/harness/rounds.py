"""Runs clients in rounds, so that all of them meet the same conditions."""

import gc
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import TypeVar

from benchmarks.peers.base import Contender
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx

C = TypeVar("C", bound=Contender)


async def run_rounds(
    contenders: Sequence[C], once: Callable[[C], Awaitable[float]], rounds: int
) -> dict[str, list[float]]:
    """Return the results of ``once`` for each client, round by round, in a changing order.

    The first round opens connections and fills caches; its results are dropped.
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


async def enter_all(
    stack: AsyncExitStack, kinds: Sequence[type[C]], server: Nginx, base_url: str = ""
) -> list[C]:
    """Return clients that are ready to send requests to the server, or to ``base_url``."""
    contenders = [
        kind(base_url or server.base_url, PROJECT_ID, server.operation_id) for kind in kinds
    ]
    for contender in contenders:
        await stack.enter_async_context(contender)
    return contenders
