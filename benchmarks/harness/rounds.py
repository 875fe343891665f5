"""Runs clients in rounds, so that all of them meet the same conditions."""

import gc
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import ClassVar, Protocol, TypeVar

from benchmarks.peers.base import Contender
from benchmarks.servers.fixed_responses import PROJECT_ID
from benchmarks.servers.nginx import Nginx

C = TypeVar("C", bound=Contender)


class Named(Protocol):
    """Anything that the tables show by its name."""

    name: ClassVar[str]


N = TypeVar("N", bound=Named)


async def run_rounds(
    contenders: Sequence[N], once: Callable[[N], Awaitable[float]], rounds: int
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


@asynccontextmanager
async def open_all(
    kinds: Iterable[type[C]], server: Nginx, base_url: str = ""
) -> AsyncGenerator[list[C]]:
    """Provide clients that are ready to send requests to the server, or to ``base_url``."""
    url = base_url or server.base_url
    contenders = [kind(url, PROJECT_ID, server.operation_id) for kind in kinds]
    async with AsyncExitStack() as stack:
        for contender in contenders:
            await stack.enter_async_context(contender)
        yield contenders
