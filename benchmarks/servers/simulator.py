"""A process that serves the simulated control plane over HTTP.

It runs in its own process, so that it does not slow the client down, and does as little as
possible per request. It measures by itself: each request, and the time at which each operation
finishes, by ``time.monotonic()``. On Linux that clock is the same in all processes.

Requests to ``/control`` start operations, and return the report; they are not recorded.
``control_plane`` describes the responses, and ``simulator_process`` is the client side.
"""

import asyncio
import random
import re
import sys
import time
from datetime import UTC, datetime, timedelta

import msgspec

from benchmarks.servers.control_plane import API, ControlPlane, Reply, Settings


class _Connection(asyncio.Protocol):
    """An HTTP/1.1 keep-alive connection that handles one request at a time."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Drop the transport."""
        del exc
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Respond to each request that has arrived completely."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].decode("latin-1")
            length = re.search(r"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
            total = end + 4 + (int(length[1]) if length else 0)
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            method, target, _ = head.partition("\r\n")[0].split(" ")
            self._handle(method, target, body)

    def _handle(self, method: str, target: str, body: bytes) -> None:
        settings = self._plane.settings
        one_way = settings.round_trip / 2 * (1 + settings.jitter * random.uniform(-1.0, 1.0))
        if not one_way or not target.startswith(API):
            self._send(self._plane.respond(method, target, body))
            return
        loop = asyncio.get_running_loop()

        def arrive() -> None:
            loop.call_later(one_way, self._send, self._plane.respond(method, target, body))

        loop.call_later(one_way, arrive)

    def _send(self, reply: Reply) -> None:
        if self._transport is not None:
            self._transport.write(_http(reply))


def _http(reply: Reply) -> bytes:
    """Return the complete response as HTTP."""
    headers = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    length = len(reply.body)
    head = f"HTTP/1.1 {reply.status} X\r\n{headers}Content-Length: {length}\r\n\r\n"
    return head.encode() + reply.body


async def serve(settings: Settings) -> None:
    """Print the port and serve until standard input is closed."""
    loop = asyncio.get_running_loop()
    epoch = datetime.now(UTC) - timedelta(seconds=time.monotonic())
    plane = ControlPlane(settings, time.monotonic, epoch)
    server = await loop.create_server(lambda: _Connection(plane), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(msgspec.json.decode(sys.argv[1], type=Settings)))
