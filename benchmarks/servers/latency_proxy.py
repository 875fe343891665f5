"""A TCP proxy that adds latency: it forwards each byte half a round trip later.

::

    async with LatencyProxy(0.02, server.base_url) as base_url:
        ...

It runs in its own process, so that it takes no processor time from the clients.
"""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from urllib.parse import urlsplit

_CHUNK = 2**18


class LatencyProxy:
    """The proxy process. Entering it returns the base URL to use instead of ``base_url``."""

    def __init__(self, round_trip: float, base_url: str) -> None:
        self._round_trip = round_trip
        self._url = urlsplit(base_url)
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> str:
        command = (sys.executable, __file__, str(self._url.port), str(self._round_trip / 2))
        self._process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE
        )
        assert self._process.stdout is not None
        port = int(await self._process.stdout.readline())
        return self._url._replace(netloc=f"127.0.0.1:{port}").geturl()

    async def __aexit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        await self._process.wait()


async def forward(port: int, delay: float) -> None:
    """Print the port that the proxy listens on, and forward to ``port`` until terminated."""
    call_later = asyncio.get_running_loop().call_later

    async def copy(reader: StreamReader, writer: StreamWriter) -> None:
        while chunk := await reader.read(_CHUNK):
            call_later(delay, writer.write, chunk)
        call_later(delay, writer.close)

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        responses, requests = await asyncio.open_connection("127.0.0.1", port, limit=_CHUNK)
        await asyncio.gather(copy(reader, requests), copy(responses, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1]), float(sys.argv[2])))
