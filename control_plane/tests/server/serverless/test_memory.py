"""The memory of a server that many clients use at once, and of one that strangers attack."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest

from neonctl_async import NeonClient, RateBudget
from neonctl_async.types import ProjectCreated
from neonctl_local import ConnectionLimits
from tests.support.databases import databases, uri_of

MIB = 1 << 20
LIMIT = 512 * MIB
"""The memory of all requests and results, by default."""

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


class Process(NamedTuple):
    """A server in another process, and a project with a running compute."""

    pid: int
    url: str
    project: ProjectCreated
    http: aiohttp.ClientSession

    async def resident(self, name: str = "VmRSS") -> int:
        """Return the memory that the process has, in bytes. ``VmHWM`` is the most that it had."""
        status = await asyncio.to_thread(Path(f"/proc/{self.pid}/status").read_text)
        found = re.search(rf"{name}:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) << 10

    async def read(self, query: str, **headers: str) -> tuple[int, int]:
        """Run a query. Return the status and the length of the response, of which none is kept."""
        sent = {"Neon-Connection-String": uri_of(self.project)} | headers
        length = 0
        async with self.http.post(self.url, json={"query": query}, headers=sent) as response:
            async for data in response.content.iter_chunked(1 << 18):
                length += len(data)
            return response.status, length


@asynccontextmanager
async def process() -> AsyncGenerator[Process]:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "neonctl_local", "--port", "0", "--json", "--quiet", "--postgres"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"PYTHONDEVMODE": ""},
    )
    try:
        assert server.stdout is not None
        served: dict[str, str] = msgspec.json.decode(await server.stdout.readline())
        timeout = aiohttp.ClientTimeout(total=None)
        async with (
            NeonClient(
                served["api_key"], base_url=served["api_host"], budget=RateBudget.unlimited()
            ) as neon,
            aiohttp.ClientSession(timeout=timeout) as http,
        ):
            project = await neon.projects.create(name="test", wait=True)
            yield Process(server.pid, served["fetch_endpoint"], project, http)
    finally:
        server.terminate()
        await server.wait()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
async def test_bodies_without_a_password_need_no_memory() -> None:
    async with process() as server:
        assert (await server.read("SELECT 1"))[0] == 200
        before = await server.resident()
        password = urlsplit(uri_of(server.project)).password
        uri = uri_of(server.project).replace(f":{password}@", ":wrong@")
        address = urlsplit(server.url)

        async def attack() -> bytes:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            head = (
                f"POST /sql HTTP/1.1\r\nHost: {address.netloc}\r\n"
                f"Neon-Connection-String: {uri}\r\nContent-Length: {64 * MIB}\r\n\r\n"
            )
            writer.write(head.encode())
            status = asyncio.create_task(reader.readline())
            with suppress(ConnectionError):  # the server refuses the client, and does not wait long
                for _ in range(24):
                    writer.write(b" " * MIB)
                    await writer.drain()
            async with asyncio.timeout(60):
                line = await status
            writer.transport.abort()
            return line

        statuses = await asyncio.gather(*(attack() for _ in range(40)))
        assert await server.resident("VmHWM") - before < 100 * MIB
        assert {status.split()[1] for status in statuses} == {b"400"}


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
async def test_large_results_need_little_more_than_their_size() -> None:
    async with process() as server:
        assert (await server.read("SELECT 1"))[0] == 200
        before = await server.resident()
        status, length = await server.read("SELECT 1 AS n FROM generate_series(1, 3000000)")
        assert status == 200
        assert length > 3_000_000 * len('{"n":1}')
        assert await server.resident("VmHWM") - before < 150 * MIB
        large = "SELECT repeat('x', 55000000) AS x"
        results = await asyncio.gather(*(server.read(large) for _ in range(8)))
        assert {status for status, _ in results} <= {200, 507}
        assert sum(length > 55_000_000 for _, length in results) >= 6
        assert await server.resident("VmHWM") - before < LIMIT + 150 * MIB
        assert (await server.read("SELECT 1"))[0] == 200
        assert await server.resident() - before < 150 * MIB


@asynccontextmanager
async def limited() -> AsyncGenerator[tuple[aiohttp.ClientSession, str, str]]:
    """Run a server with little memory. Provide a client, the URL and a connection string."""
    limits = ConnectionLimits(memory=8 * MIB)
    async with databases(connections=limits) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        async with aiohttp.ClientSession() as http:
            yield http, control_plane.sql_url, uri_of(project)


async def test_request_beyond_the_memory_is_refused_until_it_is_free() -> None:
    async with limited() as (http, url, uri):

        async def post(query: str, size: int = 0) -> tuple[int, Any, Any]:
            body = msgspec.json.encode({"query": query + " " * size})
            headers = {"Neon-Connection-String": uri, "Content-Type": "application/json"}
            async with http.post(url, data=_chunks(body), headers=headers) as response:
                return response.status, response.headers.get("Retry-After"), await response.json()

        for _ in range(20):  # the memory is free again after each
            assert (await post("SELECT repeat('x', 5000000) AS x"))[0] == 200
            assert (await post("SELECT 1", MIB))[0] == 200
        status, retry_after, error = await post("SELECT 1", 3 * MIB)
        assert (status, retry_after) == (503, "1")
        assert "--connections" in error["message"]
        status, _, error = await post("SELECT repeat('x', 9000000) AS x")
        assert status == 507
        assert "--connections" in error["message"]
        status, _, _ = await post("SELECT 1 FROM generate_series(1, 2000000)")
        assert status == 507
        assert (await post("SELECT 1"))[0] == 200


async def _chunks(body: bytes) -> AsyncGenerator[bytes]:
    """Yield a body whose length is not announced."""
    for start in range(0, len(body), 1 << 16):
        yield body[start : start + (1 << 16)]


async def test_arrays_of_many_values_count_with_their_memory() -> None:
    async with limited() as (http, url, uri):
        body = {"query": "SELECT cardinality($1::int[]) AS n", "params": [[1] * 200_000]}
        async with http.post(url, json=body, headers={"Neon-Connection-String": uri}) as response:
            assert response.status == 503
        body["params"] = [[1] * 10_000]
        async with http.post(url, json=body, headers={"Neon-Connection-String": uri}) as response:
            assert (await response.json())["rows"] == [{"n": 10_000}]


async def test_everything_that_a_request_makes_counts_with_its_memory() -> None:
    async with limited() as (http, url, uri):

        async def post(body: object) -> int:
            headers = {"Neon-Connection-String": uri}
            async with http.post(url, json=body, headers=headers) as response:
                await response.read()
                return response.status

        columns = ", ".join(f"{number} AS column_{number}" for number in range(1600))
        assert await post({"query": f"CREATE TABLE wide AS SELECT {columns}"}) == 200
        wide, empty = {"query": "TABLE wide LIMIT 0"}, {"query": ""}
        assert await post({"queries": [wide]}) == 200
        assert await post({"queries": [wide] * 20}) == 507
        assert await post({"queries": [empty] * 100}) == 200
        assert await post({"queries": [empty] * 8000}) == 503
        assert await post({"query": "SELECT 1", "params": [0] * 100_000}) == 503
        assert await post(dict.fromkeys(map(str, range(70_000)), 0)) == 503
        text = ',"\\[' * 50_000
        assert await post({"query": "SELECT length($1)", "params": [text]}) == 200
