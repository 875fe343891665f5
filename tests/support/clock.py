"""The clock of the running event loop."""

import asyncio

import pytest


def now() -> float:
    """Return the time of the loop, in seconds."""
    return asyncio.get_running_loop().time()


def skip_ahead(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Advance the clock at once, as if the loop had been blocked or the machine had been asleep."""
    loop = asyncio.get_running_loop()
    clock = loop.time
    monkeypatch.setattr(loop, "time", lambda: clock() + seconds)
