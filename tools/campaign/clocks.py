"""Clocks that jump, and a clock that stops while this process gets no processor."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Self

MODULES = ("transport.protocol", "clock")
"""The modules that read the time of day."""
TICK = 0.05
"""The interval at which ProcessClock is updated, in seconds."""
JUMP_PROBABILITY = 0.02
"""The probability that the wall clock jumps when it is read."""


class SuspendableLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock includes the time for which the machine was suspended."""

    def __init__(self) -> None:
        super().__init__()
        self.suspended = 0.0

    def time(self) -> float:
        """Return the time, in seconds."""
        return super().time() + self.suspended


def suspended_seconds() -> float:
    """Return the seconds for which the machine was suspended."""
    loop = asyncio.get_running_loop()
    return loop.suspended if isinstance(loop, SuspendableLoop) else 0.0


def jumping_wall_clock(chance: random.Random, on_jump: Callable[[], None]) -> type[datetime]:
    """Return a ``datetime`` whose ``now()`` sometimes jumps by up to two days."""
    offset = timedelta()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            nonlocal offset
            if chance.random() < JUMP_PROBABILITY:
                offset = timedelta(hours=chance.uniform(-48, 48))
                on_jump()
            return super().now(tz) + offset

    return Jumping


class ProcessClock:
    """The time during which this process could run, in seconds.

    Another process that uses the processors must not make a call seem slow. The time for which this
    process blocks its own event loop does count.
    """

    def __init__(self) -> None:
        self.longest_block = 0.0
        self._stalled = 0.0

    def __call__(self) -> float:
        """Return the time, in seconds."""
        return time.monotonic() - self._stalled

    async def run(self) -> None:
        """Measure stalls until cancelled."""
        while True:
            started, used = time.monotonic(), time.process_time()
            await asyncio.sleep(TICK)
            used = time.process_time() - used
            self.longest_block = max(self.longest_block, used)
            self._stalled += max(0.0, time.monotonic() - started - TICK - used)
