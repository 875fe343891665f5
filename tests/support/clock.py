"""The clock of the running event loop."""

import asyncio


def now() -> float:
    """Return the time of the loop, in seconds."""
    return asyncio.get_running_loop().time()
