"""Clocks that jump: that of the wall, and the event loop's, as when a machine was asleep."""

import asyncio
import random
from collections.abc import Callable
from datetime import datetime, timedelta, tzinfo
from typing import Self

MODULES = ("transport.protocol", "waiting.poller", "waiting.waiter", "waiting.locks")
"""The modules that ask for the time of day."""
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
