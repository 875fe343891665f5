"""Clocks that jump, and one that stands still while this process gets no processor."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Self

MODULES = ("transport.protocol", "clock")
"""The modules that ask for the time of day."""
TICK = 0.05
"""Seconds."""
JUMPING = 0.02
"""How often it has jumped when it is asked for."""


class SleepyLoop(asyncio.SelectorEventLoop):
    """A loop whose machine is put to sleep at times: for it, the time in between is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.slept = 0.0

    def time(self) -> float:
        return super().time() + self.slept


def jumping_wall_clock(chance: random.Random, note: Callable[[], None]) -> type[datetime]:
    """A ``datetime`` whose ``now()`` jumps at times by up to two days; ``note`` is told of it."""
    off_by = timedelta()

    class Jumping(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            nonlocal off_by
            if chance.random() < JUMPING:
                off_by = timedelta(hours=chance.uniform(-48, 48))
                note()
            return super().now(tz) + off_by

    return Jumping


class OwnClock:
    """The time in which this process could have run, in seconds.

    Another one that keeps the processors busy must not look like a call that takes too long. What
    a blocked event loop takes, though, is this process's own time.
    """

    def __init__(self) -> None:
        self.longest_block = 0.0
        self._stalled = 0.0

    def __call__(self) -> float:
        return time.monotonic() - self._stalled

    async def run(self) -> None:
        """Keep it going right, until cancelled."""
        while True:
            began, used = time.monotonic(), time.process_time()
            await asyncio.sleep(TICK)
            used = time.process_time() - used
            self.longest_block = max(self.longest_block, used)
            self._stalled += max(0.0, time.monotonic() - began - TICK - used)
