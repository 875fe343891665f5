"""Non-blocking sockets, plain or TLS, in coroutines, for handshakes with clients and servers."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import Final, TypeVar

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import HEADER_LENGTH, Message, decode_header

T = TypeVar("T")

NOT_NOW: Final = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""The errors of a non-blocking socket operation that has to be repeated later."""

_CHUNK: Final = 8192
_STREAM_LIMIT: Final = 1 << 16
"""The limit of a StreamReader, which pauses receiving at twice as many unread bytes."""
_MAX_MESSAGE_LENGTH: Final = 100_000
"""The greatest length of a server's message before the session starts, for example an error."""


async def attempt(sock: socket.socket, operation: Callable[[], T], *, writes: bool = False) -> T:
    """Repeat a non-blocking operation on ``sock`` until it is possible, and return its result."""
    while True:
        try:
            return operation()
        except ssl.SSLWantReadError:
            await wait_for(sock, writes=False)
        except ssl.SSLWantWriteError:
            await wait_for(sock, writes=True)
        except BlockingIOError:
            await wait_for(sock, writes=writes)


async def wait_for(sock: socket.socket, *, writes: bool) -> None:
    """Wait until ``sock`` can be read, or written to."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    add, remove = (
        (loop.add_writer, loop.remove_writer) if writes else (loop.add_reader, loop.remove_reader)
    )
    descriptor = sock.fileno()
    add(descriptor, _finish, ready)
    try:
        await ready
    finally:
        remove(descriptor)


def _finish(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def close(sock: socket.socket) -> None:
    """Close a socket. The peer of a TLS connection is notified first."""
    end_tls(sock)
    sock.close()


def end_tls(sock: socket.socket) -> None:
    """Notify the peer of a TLS connection that no more bytes follow."""
    if isinstance(sock, ssl.SSLSocket):
        with suppress(OSError, ValueError):  # the peer's notification has not arrived yet
            sock.unwrap()


class _Protocol(asyncio.StreamReaderProtocol):
    """Reports the end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, on_close: Callable[[], None]) -> None:
        super().__init__(reader)
        self._on_close = on_close

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._on_close()


async def open_streams(
    sock: socket.socket, on_close: Callable[[], None] = lambda: None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return streams for a connected socket.

    When they are closed or the connection is lost, they call ``on_close`` and close the socket.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_STREAM_LIMIT)
    try:
        transport, protocol = await loop.create_connection(
            lambda: _Protocol(reader, on_close), sock=sock
        )
    except BaseException:
        sock.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


class Stream:
    """One side of a connection, and the bytes that were received but not read yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._received = b""

    def is_private(self) -> bool:
        """Return whether other machines cannot read the bytes.

        This is true of TLS, loopback connections, and Unix sockets.
        """
        if isinstance(self.sock, ssl.SSLSocket) or self.sock.family == socket.AF_UNIX:
            return True
        return ip_address(self.sock.getpeername()[0]).is_loopback

    async def read_exactly(self, length: int) -> bytes:
        """Return the next ``length`` bytes. Raise EOFError if the peer closes the connection.

        No further bytes are received, because a TLS handshake may follow.
        """
        while (missing := length - len(self._received)) > 0:
            await self._receive(min(missing, _CHUNK))
        data, self._received = self._received[:length], self._received[length:]
        return data

    async def read_message(self) -> Message:
        """Return a server's next message. Raise ProtocolError if it is malformed or too long."""
        kind, length = decode_header(await self.read_exactly(HEADER_LENGTH))
        if not 0 <= length <= _MAX_MESSAGE_LENGTH:
            raise ProtocolError("the server sent a malformed message")
        return Message(kind, await self.read_exactly(length))

    async def wait_until_closed(self, limit: int) -> None:
        """Wait until the peer closes the connection, then raise EOFError.

        Bytes that arrive earlier stay unread. Return when more than ``limit`` bytes are unread.
        """
        while len(self._received) <= limit:
            await self._receive(_CHUNK)

    async def discard(self) -> None:
        """Read until the peer closes the connection."""
        self._received = b""
        while await attempt(self.sock, lambda: self.sock.recv(_CHUNK)):
            pass

    def take_unread(self) -> bytes:
        """Return the bytes that were received but not read."""
        unread, self._received = self._received, b""
        return unread

    async def send(self, data: bytes) -> None:
        """Send all of ``data``."""
        rest = memoryview(data)
        while rest:
            sent = await attempt(self.sock, lambda: self.sock.send(rest), writes=True)  # noqa: B023 - called before the next iteration
            rest = rest[sent:]

    async def _receive(self, length: int) -> None:
        data = await attempt(self.sock, lambda: self.sock.recv(length))
        if not data:
            raise EOFError("the client closed the connection")
        self._received += data
