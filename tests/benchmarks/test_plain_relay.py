"""The relay that the proxy is compared with."""

import asyncio
from asyncio import StreamReader, StreamWriter
from pathlib import Path

import pytest

from benchmarks.servers.plain_relay import plain_relay


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
