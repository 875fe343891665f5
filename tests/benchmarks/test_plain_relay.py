"""The relay that the proxy is compared with."""

import asyncio
from asyncio import BaseTransport, StreamReader, StreamWriter
from pathlib import Path

import pytest

from benchmarks.servers.plain_relay import Accepted, plain_relay


async def send_back(reader: StreamReader, writer: StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()
    writer.close()


@pytest.mark.process
async def test_relay_forwards_both_directions_unchanged(tmp_path: Path) -> None:
    sent = bytes(range(256)) * 20_000
    socket = tmp_path / "socket"
    server = await asyncio.start_unix_server(send_back, socket)
    async with server, plain_relay(socket) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        received = await reader.readexactly(len(sent))
        writer.close()
        await writer.wait_closed()
    assert received == sent


class Hasty(Accepted):
    """It reads before the connection to the server is open, as on CPython 3.11.2."""

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        for part in (b"ear", b"ly, "):
            self.get_buffer(-1)[: len(part)] = part
            self.buffer_updated(len(part))


async def test_relay_keeps_what_it_reads_before_it_is_connected(tmp_path: Path) -> None:
    target = tmp_path / "socket"
    loop = asyncio.get_running_loop()
    has_ended = asyncio.Event()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        await send_back(reader, writer)
        has_ended.set()

    async with (
        await asyncio.start_unix_server(serve, target),
        await loop.create_server(lambda: Hasty(target), "127.0.0.1", 0) as relay,
    ):
        reader, writer = await asyncio.open_connection(*relay.sockets[0].getsockname())
        writer.write(b"late")
        assert await reader.readexactly(11) == b"early, late"
        writer.close()
        await writer.wait_closed()
        await has_ended.wait()
