"""A limited number of concurrent tasks."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def for_each(
    items: Iterable[T], work: Callable[[T], Awaitable[None]], *, concurrency: int
) -> None:
    """Call ``work`` with each item, in at most ``concurrency`` tasks. The calls start in order.

    The first error cancels the other tasks and is raised.
    """
    queue = iter(items)  # each task takes the next item from it

    async def run() -> None:
        for item in queue:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(run())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
