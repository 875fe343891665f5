"""Waiting for what no event tells."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], *, every: float = 0.001) -> None:
    """Ask again and again until it holds; the test's own timeout is the bound.

    ``every`` is in seconds.
    """
    while not await _holds(condition):  # noqa: ASYNC110 - what is waited for sets no event
        await asyncio.sleep(every)


async def _holds(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
