"""A relay that forwards bytes from a TCP port to a Unix socket, and knows no protocol.

::

    async with plain_relay(server.socket) as port:
        ...

It shows what a proxy in Python costs at least: asyncio, one read and one write per chunk. It runs
in its own process.
"""

import asyncio
import sys
from asyncio import BaseTransport, Transport
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from benchmarks.servers.nginx import free_port

ROOT = Path(__file__).parents[2]


class _Side(asyncio.BufferedProtocol):
    """One side of a connection: it writes what it receives to the other side."""

    def __init__(self) -> None:
        self.transport: Transport | None = None
        self.other: _Side | None = None
        self._buffer = bytearray(1 << 18)

    def connection_made(self, transport: BaseTransport) -> None:
        """Remember the transport."""
        self.transport = cast("Transport", transport)

    def get_buffer(self, sizehint: int) -> bytearray:
        """Return the buffer for the next read."""
        del sizehint
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Forward what was read."""
        self.forward(bytes(memoryview(self._buffer)[:nbytes]))

    def forward(self, data: bytes) -> None:
        """Write bytes to the other side."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        """Stop reading from the other side."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read from the other side again."""
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other side."""
        del exc
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Accepted(_Side):
    """The side of a client. It reads when the connection to the server is open.

    asyncio of CPython 3.11.2 reads earlier, although ``connection_made`` has paused the transport.
    """

    def __init__(self, target: Path) -> None:
        super().__init__()
        self._target = target
        self._early: list[bytes] = []
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        """Connect to the server."""
        super().connection_made(transport)
        cast("Transport", transport).pause_reading()
        self._task = asyncio.create_task(self._connect())

    def forward(self, data: bytes) -> None:
        """Write bytes to the server, once it is connected."""
        if self.other is None:
            self._early.append(data)
        else:
            super().forward(data)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, server = await loop.create_unix_connection(_Side, str(self._target))
        self.other, server.other = server, self
        self.forward(b"".join(self._early))
        assert self.transport is not None
        self.transport.resume_reading()


@asynccontextmanager
async def plain_relay(target: Path) -> AsyncGenerator[int]:
    """Run the relay, and provide its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, str(target), cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def socat_relay(program: str, target: Path) -> AsyncGenerator[int]:
    """Run socat, a relay in C, and provide its port. It has a process for each connection."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(program, "-b", "262144", f"TCP-LISTEN:{port},bind=127.0.0.1,fork,reuseaddr,nodelay"),
        f"UNIX-CONNECT:{target}",
    )
    try:
        await _wait_for(port)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def _wait_for(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


async def main(target: Path) -> None:
    """Print the port, and relay until terminated."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Accepted(target), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
