"""A proxy that opens tunnels and records the requests for them."""

import asyncio

from tests.support.server import Server


class ConnectProxy(Server):
    """Responds to CONNECT with a status, and forwards the data of the tunnel."""

    def __init__(self, status: int = 200) -> None:
        super().__init__()
        self.heads: list[str] = []
        """The heads of all requests."""
        self._status = status

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        writer.write(f"HTTP/1.1 {self._status} X\r\n\r\n".encode())
        if self._status != 200:
            return
        host, _, port = head.split(" ")[1].rpartition(":")
        upstream_reader, upstream_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.gather(
                _forward(reader, upstream_writer), _forward(upstream_reader, writer)
            )
        finally:
            upstream_writer.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while part := await reader.read(65536):
        writer.write(part)
        await writer.drain()
    writer.close()
