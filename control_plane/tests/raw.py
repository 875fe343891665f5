"""Requests over raw sockets, as no HTTP library sends them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from yarl import URL

from control_plane.tests.client import Http, Reply

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(api: Http) -> AsyncGenerator[Streams]:
    """Open a connection to the server."""
    url = URL(api.base_url)
    assert url.host is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def host_of(api: Http) -> bytes:
    """Return the Host header of the server, as a line without its end."""
    return b"Host: " + URL(api.base_url).authority.encode()


def head(api: Http, line: bytes, *headers: bytes, key: bool = True) -> bytes:
    """Return a request head with the Host header, and with the key by default."""
    lines = [line, host_of(api), *headers]
    if key:
        lines.append(f"Authorization: Bearer {api.key}".encode())
    return b"\r\n".join((*lines, b"", b""))


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """Read one response."""
    received = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    status = int(received[0].split()[1])
    headers = dict(line.split(": ", 1) for line in received[1:] if line)
    content = await reader.readexactly(int(headers.get("Content-Length", "0")))
    return Reply(status, headers, content)


async def reply_to(api: Http, *parts: bytes) -> Reply:
    """Send these bytes on a new connection, each part on its own. Return the first response."""
    async with connected(api) as (reader, writer):
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        return await read_reply(reader)
