"""Fifty clients of a local control plane in their own process: 45 poll, and 5 read long lists.

The argument is a ``LargeControlPlane`` as JSON. The clients run until the process is killed.
"""

import asyncio
import random
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import msgspec

from benchmarks.servers.large_control_plane import LargeControlPlane

ROOT = Path(__file__).parents[2]
POLLING, LISTING = 45, 5
POLL_EVERY, LIST_EVERY = 0.5, 0.5
"""The seconds between two requests of a client."""

SHORT = ("/projects/{0}", "/projects/{0}/operations?limit=100")
LONG = ("/api_keys", "/projects/{0}/operations?limit=1000", "/projects?limit=400")


@asynccontextmanager
async def many_clients(server: LargeControlPlane) -> AsyncGenerator[None]:
    """Run the clients while the block runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.servers.many_clients"),
        msgspec.json.encode(server).decode(),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        await process.stdout.readline()  # each client has a response
        yield
    finally:
        process.kill()
        await process.wait()


async def _request(session: aiohttp.ClientSession, url: str) -> None:
    async with session.get(url) as response:
        response.raise_for_status()
        await response.read()


async def _client(session: aiohttp.ClientSession, urls: list[str], every: float) -> None:
    rest = random.Random(len(urls))
    while True:
        await asyncio.sleep(rest.uniform(0.5, 1.5) * every)
        await _request(session, rest.choice(urls))


async def main(server: LargeControlPlane) -> None:
    """Run all clients until the process is killed."""
    headers = {"Authorization": f"Bearer {server.api_key}"}
    short, long = (
        [server.base_url + path.format(server.project_id) for path in paths]
        for paths in (SHORT, LONG)
    )
    connections = aiohttp.TCPConnector(limit=POLLING + LISTING)
    async with (
        aiohttp.ClientSession(headers=headers, connector=connections) as session,
        asyncio.TaskGroup() as tasks,
    ):
        await asyncio.gather(*(_request(session, url) for url in short * POLLING))
        print("ready", flush=True)
        for _ in range(POLLING):
            tasks.create_task(_client(session, short, POLL_EVERY))
        for _ in range(LISTING):
            tasks.create_task(_client(session, long, LIST_EVERY))


if __name__ == "__main__":
    asyncio.run(main(msgspec.json.decode(sys.argv[1], type=LargeControlPlane)))
