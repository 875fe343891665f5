"""Waits for conditions that have no event."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], bool | Awaitable[bool]], *, every: float = 0.001) -> None:
    """Check ``condition`` every ``every`` seconds until it is true or the test times out."""
    while not await _is_true(condition):  # noqa: ASYNC110 - the condition has no event
        await asyncio.sleep(every)


async def _is_true(condition: Callable[[], bool | Awaitable[bool]]) -> bool:
    result = condition()
    return await result if inspect.isawaitable(result) else result
