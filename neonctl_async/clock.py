"""The current time of day."""

import asyncio
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Return the current time in UTC, from the running loop if it has a fake clock."""
    loop_utc_now = getattr(asyncio.get_running_loop(), "utc_now", None)
    return datetime.now(UTC) if loop_utc_now is None else loop_utc_now()
