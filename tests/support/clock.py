"""The clock of the running loop."""

import asyncio


def now() -> float:
    """The time on it, in seconds."""
    return asyncio.get_running_loop().time()
