"""The time of day."""

import asyncio
from datetime import UTC, datetime


def utc_now() -> datetime:
    """The time of day, by the running loop if it keeps one: those on a fake clock do."""
    tell = getattr(asyncio.get_running_loop(), "utc_now", None)
    return datetime.now(UTC) if tell is None else tell()
