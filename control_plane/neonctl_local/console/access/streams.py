"""The open event streams. Their number is limited, and each ends with its session."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Final

from neonctl_local.console.access.sessions import ConsoleSession

MAXIMUM: Final = 100
"""The largest number of open streams. If another one opens, the oldest stream ends."""


class Streams:
    """The open streams of a server. Each has an event, which is set when the stream must end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[asyncio.Event, None] = {}
        self._is_closed = False

    def __len__(self) -> int:
        """Return the number of open streams."""
        return len(self._open)

    @contextmanager
    def open(
        self,
        session: ConsoleSession[Any],  # Any: a stream does not use the tenant
    ) -> Generator[asyncio.Event]:
        """Open a stream for a session. Yield an event, which is set when the stream must end."""
        end = asyncio.Event()
        if self._is_closed or session.is_ended:
            end.set()
        while len(self._open) >= MAXIMUM:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.set()
        self._open[end] = None
        forget = session.at_end(end.set)
        timer = asyncio.get_running_loop().call_later(session.expires_at - self._clock(), end.set)
        try:
            yield end
        finally:
            timer.cancel()
            forget()
            self._open.pop(end, None)

    def close(self) -> None:
        """End all streams, because the server is stopping."""
        self._is_closed = True
        for end in self._open:
            end.set()
