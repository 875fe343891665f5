"""Waiting for events."""

import asyncio


async def first_of(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, or until ``seconds`` have passed."""
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
