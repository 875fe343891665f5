"""A round trip where there is none: forwards connections, each byte half a round trip later.

::

    async with RoundTrip(0.02, server.base_url) as base_url:
        ...

In a process of its own, so that it takes no time from whoever is measured.
"""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from urllib.parse import urlsplit

_PART = 2**18


class RoundTrip:
    """The process, and where it listens."""

    def __init__(self, seconds: float, base_url: str) -> None:
        self._seconds = seconds
        self._url = urlsplit(base_url)
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> str:
        command = (sys.executable, __file__, str(self._url.port), str(self._seconds / 2))
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
    """Serve on a port that is printed, until the process is ended."""
    call_later = asyncio.get_running_loop().call_later

    async def hand_on(reader: StreamReader, writer: StreamWriter) -> None:
        while part := await reader.read(_PART):
            call_later(delay, writer.write, part)
        call_later(delay, writer.close)

    async def connected(reader: StreamReader, writer: StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", port, limit=_PART)
        await asyncio.gather(hand_on(reader, requests), hand_on(answers, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", 0, limit=_PART)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(forward(int(sys.argv[1]), float(sys.argv[2])))
