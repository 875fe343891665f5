"""A non-blocking socket on the event loop: plain or TLS."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Final

from neonctl_local.postgres.proxy.streams import NOT_NOW, close

_CHUNK: Final = 64 * 1024
"""The size of one ``recv``, in bytes.

Above 128 KiB, glibc would map memory for each call, which takes 12 µs. The size exceeds that of a
TLS record, so no decrypted bytes stay inside the socket.
"""
_LAST_CHANCE: Final = 1.0
"""How long a peer may take to read the last bytes, in seconds."""


class Port:
    """Calls ``on_data`` with the bytes that arrive, and ``on_end`` once no more can arrive.

    While bytes wait to be sent, ``is_full`` is true. ``on_drained`` is called when all bytes are
    sent.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        on_data: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_drained: Callable[[], None],
    ) -> None:
        self._sock = sock
        self._on_data = on_data
        self._on_end = on_end
        self._on_drained = on_drained
        self._loop = asyncio.get_running_loop()
        self._unsent = bytearray()
        self._reading = False
        self._closing = False
        self.closed: bool = False

    @property
    def unsent(self) -> int:
        """The number of bytes that could not be sent yet."""
        return len(self._unsent)

    @property
    def is_full(self) -> bool:
        """True while bytes wait to be sent."""
        return bool(self._unsent)

    def read(self) -> None:
        """Start or resume receiving bytes."""
        if not self._reading and not self._closing:
            self._reading = True
            self._loop.add_reader(self._sock, self._receive)
            if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
                self._loop.call_soon(self._receive)

    def pause(self) -> None:
        """Stop receiving bytes for now."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._sock)

    def send(self, data: bytes) -> None:
        """Send as many bytes as the peer takes now, and the rest later."""
        if self.closed or not data:
            return
        if not self._unsent:
            data = data[self._try(data) :]
            if not data or self.closed:
                return
            self._loop.add_writer(self._sock, self._flush)
        self._unsent += data

    def close(self) -> None:
        """Close the socket once all bytes are sent, or after ``_LAST_CHANCE``."""
        self.pause()
        self._closing = True
        if self._unsent:
            self._loop.call_later(_LAST_CHANCE, self.abort)
        else:
            self.abort()

    def abort(self) -> None:
        """Close the socket now."""
        if not self.closed:
            self._closing = self.closed = True
            self.pause()
            self._loop.remove_writer(self._sock)
            self._unsent.clear()
            close(self._sock)
            # Without the cycle of references, the owner and what it holds are freed at once.
            self._on_data = self._on_end = self._on_drained = _ignore

    def _receive(self) -> None:
        if not self._reading:
            return
        try:
            data = self._sock.recv(_CHUNK)
        except NOT_NOW:
            return
        except OSError:
            data = b""
        if data:
            self._on_data(data)
        else:
            self.pause()
            self._on_end()

    def _try(self, data: bytes | bytearray) -> int:
        try:
            return self._sock.send(data)
        except NOT_NOW:
            return 0
        except OSError:
            on_end = self._on_end
            self.abort()
            self._loop.call_soon(on_end)
            return 0

    def _flush(self) -> None:
        sent = self._try(self._unsent)
        if self.closed:
            return
        del self._unsent[:sent]
        if self._unsent:
            return
        self._loop.remove_writer(self._sock)
        if self._closing:
            self.abort()
        else:
            self._on_drained()


def _ignore(*_data: bytes) -> None:
    """Do nothing: the socket is closed."""
