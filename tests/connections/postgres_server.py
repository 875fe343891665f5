"""A server on a real socket that starts Postgres sessions, or misbehaves."""

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

from neonctl_async.connections.addresses import Address
from tests.support.server import Server

SSL_REQUEST = struct.pack("!ii", 8, 80877103)
SASL = b"R" + struct.pack("!ii", 23, 10) + b"SCRAM-SHA-256\0\0"
"""A request for authentication."""


def error(message: str, code: str) -> bytes:
    """Return an ErrorResponse."""
    fields = f"SFATAL\0VFATAL\0C{code}\0M{message}\0\0".encode()
    return b"E" + struct.pack("!i", len(fields) + 4) + fields


STARTING_UP = error("the database system is starting up", "57P03")


class PostgresServer(Server):
    """Serves each connection with the next of ``behaviours``, and repeats the last one."""

    def __init__(self, *behaviours: "Behaviour", tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._remaining: Iterator[Behaviour] = iter(behaviours)
        self._last = behaviours[-1]
        self.tls = tls
        self.startups: list[dict[str, str]] = []
        """The parameters of the startup messages."""
        self.server_names: list[str | None] = []
        """The server names of the TLS handshakes."""
        self.times: list[float] = []
        """The times of the connections, on the clock of the loop."""
        self.after_request: list[bytes] = []
        """Everything that clients have sent after the request for authentication."""
        if tls is not None:
            tls.sni_callback = lambda _socket, name, _context: self.server_names.append(name)

    def address(self, **changes: Any) -> Address:
        """Return the address of the server. Connections do not use TLS without a change."""
        plain = Address("127.0.0.1", self.port, {"user": "ada"}, uses_tls=False, needs_tls=False)
        return plain._replace(**changes)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.times.append(asyncio.get_running_loop().time())
        await next(self._remaining, self._last)(self, reader, writer)

    async def read_startup(self, reader: asyncio.StreamReader) -> None:
        length = struct.unpack("!i", await reader.readexactly(4))[0]
        body = await reader.readexactly(length - 4)
        assert body[:4] == struct.pack("!i", 3 << 16)
        words = body[4:].decode().split("\0")
        self.startups.append(dict(zip(words[::2], words[1::2], strict=False)))
        self.startups[-1].pop("", None)


Behaviour: TypeAlias = Callable[
    [PostgresServer, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]
]


async def silent(
    _server: PostgresServer, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter
) -> None:
    """Accept the connection, and send nothing."""
    await reader.read()


async def close_at_once(
    _server: PostgresServer, _reader: asyncio.StreamReader, _writer: asyncio.StreamWriter
) -> None:
    """Close the connection without reading."""


def sending(data: bytes) -> Behaviour:
    """Send ``data`` in response to the first bytes of the client."""
    return partial(_send, data)


async def _send(
    data: bytes, _server: PostgresServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    await reader.read(4096)
    writer.write(data)
    await reader.read()


def responding(*parts: bytes) -> Behaviour:
    """Start TLS if the server has it, and send ``parts`` in response to the startup message."""
    return partial(_respond, parts)


async def _respond(
    parts: tuple[bytes, ...],
    server: PostgresServer,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    if server.tls is not None:
        await start_tls(server, reader, writer)
    await server.read_startup(reader)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.001)
    server.after_request.append(await reader.read())


async def start_tls(
    server: PostgresServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Accept the request for TLS, and do the handshake."""
    assert server.tls is not None
    assert await reader.readexactly(8) == SSL_REQUEST
    writer.write(b"S")
    await writer.drain()
    await writer.start_tls(server.tls)


async def refuse_tls(
    server: PostgresServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Refuse the request for TLS, and request authentication without it."""
    assert await reader.readexactly(8) == SSL_REQUEST
    writer.write(b"N")
    await server.read_startup(reader)
    writer.write(SASL)
    await reader.read()


authenticating = responding(SASL)
"""Request authentication."""
