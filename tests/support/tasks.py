"""Tasks of the tests."""

import asyncio
from typing import Any


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel tasks, and wait until all are done."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
