"""Limits the memory of the messages that a client sends over a WebSocket."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

from neonctl_local.server.connections import Connection
from neonctl_local.server.memory import MemoryFullError

BEFORE_LOGIN: Final = 1 << 16
"""How many bytes are received before a login, including a query that the client sends early."""

_MOVING_SECONDS: Final = 0.5
"""The time, in seconds, within which a complete first message is passed to the proxy."""

_COPIES: Final = 2
"""The number of copies of a message: aiohttp joins its parts once all of them have arrived."""


class Inflow:
    """Counts the bytes of messages until they have been passed to the databases' proxy.

    aiohttp keeps a message of up to 64 MiB until it is complete, and only then notifies its reader.
    So the bytes are counted where they arrive. Before the login, reading pauses when more than
    ``BEFORE_LOGIN`` bytes are waiting.
    """

    def __init__(self, connection: Connection, is_logged_in: Callable[[], bool]) -> None:
        self._connection = connection
        self._is_logged_in = is_logged_in
        self._waiting = 0
        self._reserved = 0
        self._has_moved = False
        self._is_paused = False
        self._timer: asyncio.TimerHandle | None = None
        self.refused: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        """Receives the reason if the connection has to be closed."""

    @contextmanager
    def counted(self) -> Generator[None]:
        """Count what arrives during the block."""
        self._connection.on_data = self._receive
        try:
            yield
        finally:
            self._connection.on_data = lambda _size: None
            self.refused.cancel()
            if self._timer is not None:
                self._timer.cancel()

    def go_on(self) -> None:
        """Start reading again if the client has logged in."""
        if self._is_paused and self._is_logged_in():
            self._is_paused = False
            self._connection.resume_reading()

    def take(self, length: int) -> None:
        """Record that a message was passed on. Each of its parts had a header of up to 14 bytes."""
        self._has_moved = True
        self._waiting = max(0, self._waiting - length - length // 64 - 14)
        excess = self._reserved - _COPIES * self._waiting
        if excess > 0:
            self._connection.reservation.remove(excess)
            self._reserved -= excess

    def _receive(self, size: int) -> None:
        self._waiting += size
        if self.refused.done():
            self._connection.pause_reading()
        elif self._is_logged_in():
            self._reserve()
        elif self._waiting > BEFORE_LOGIN:
            self._is_paused = True
            self._connection.pause_reading()
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_MOVING_SECONDS, self._refuse_first)

    def _refuse_first(self) -> None:
        """Refuse a first message that is so large that its end is not received."""
        if not self._has_moved and not self.refused.done():
            self.refused.set_result(
                f"the first message has more than {BEFORE_LOGIN} bytes: send the password in a "
                "smaller one, before queries"
            )

    def _reserve(self) -> None:
        missing = _COPIES * self._waiting - self._reserved
        if missing <= 0:
            return
        try:
            self._connection.reservation.add(missing)
            self._reserved += missing
        except MemoryFullError as error:
            self._connection.pause_reading()
            self.refused.set_result(error.message)
