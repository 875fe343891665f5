"""The time of day, and the time of the event loop. A fake clock sets both."""

import asyncio
from datetime import UTC, datetime


def loop_time() -> float:
    """Return the time of the running event loop, in seconds. It is never set back."""
    return asyncio.get_running_loop().time()


def utc_now() -> datetime:
    """Return the current time in UTC, from the running loop if it has a fake clock."""
    loop_utc_now = getattr(asyncio.get_running_loop(), "utc_now", None)
    return datetime.now(UTC) if loop_utc_now is None else loop_utc_now()
