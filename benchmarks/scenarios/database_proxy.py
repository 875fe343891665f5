"""The proxy in front of all computes, beside a direct connection and relays that know no protocol.

pgbench is the client, because libpq is fast. SQL over HTTP is compared with a pool of asyncpg. The
direct connection is to a server of the same version and with the same settings.
"""

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

import aiohttp

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.servers.local_control_plane import local_control_plane
from benchmarks.servers.plain_relay import plain_relay, socat_relay
from benchmarks.servers.postgres import PostgresServer, newest_installation, uri_of
from benchmarks.servers.queries import pool_of
from neonctl_async import NeonClient, RateBudget
from neonctl_async.types import ConnectionUri

DIRECT = "direct, by TCP"
RELAY = "plain relay in asyncio"
SOCAT = "socat, a relay in C"
POOL = "asyncpg's pool, by the port"
POOLED = "through the pooler"
READERS = 8


async def run(size: RunSize) -> list[Row]:
    """Measure everything in rounds."""
    rounds, seconds = size.pick(full=9, quick=2), size.pick(full=4, quick=1)
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(local_control_plane())
        neon = await stack.enter_async_context(
            NeonClient(process.api_key, base_url=process.base_url, budget=RateBudget.unlimited())
        )
        server = await asyncio.to_thread(PostgresServer(newest_installation()).__enter__)
        stack.callback(server.close)
        port = await stack.enter_async_context(plain_relay(server.socket))
        created = await neon.projects.create(name="proxy", wait=True)
        ours = created.connection_uri.reveal()
        uris = {OURS: ours, DIRECT: server.uri(), RELAY: uri_of(port)}
        if (program := shutil.which("socat")) is not None:
            socat = await stack.enter_async_context(socat_relay(program, server.socket))
            uris[SOCAT] = uri_of(socat)
        for uri in (ours, server.uri()):
            await asyncio.to_thread(pgbench, uri, "-i", "-q")
        alone = await in_rounds(uris, rounds, lambda uri: read(uri, 1, seconds))
        url = process.base_url.replace("/api/v2", "/sql")
        http = await measure_http(url, created.connection_uri, rounds)
        uris[POOLED] = created.connection_uri.as_pooled().reveal()
        beside = await in_rounds(uris, rounds, lambda uri: read(uri, READERS, seconds))
    # 75 % of the throughput is 1.33 times the duration.
    few, many = [Target(1.15, DIRECT)], [Target(round(1 / 0.75, 2), DIRECT)]
    return [
        make_row("proxy", "a read of pgbench -S", "µs", alone, targets=few),
        make_row("proxy", f"a read of pgbench -S -c {READERS}", "µs", beside, targets=many),
        http,
    ]


def read(uri: str, clients: int, seconds: int) -> float:
    """Return the microseconds from a read to the next one of any client."""
    return pgbench(uri, "-n", "-S", "-c", str(clients), "-T", str(seconds)) * 1e6


async def measure_http(url: str, uri: ConnectionUri, rounds: int) -> Row:
    """Measure ``SELECT 1`` over HTTP, beside a pool of asyncpg."""
    headers = {"Neon-Connection-String": uri.serverless}
    values: dict[str, list[float]] = {OURS: [], POOL: []}
    async with aiohttp.ClientSession(headers=headers) as http, pool_of(uri.asyncpg) as pool:

        async def over_http() -> None:
            async with http.post(url, json={"query": "SELECT 1 AS n"}) as response:
                assert (await response.json())["rows"] == [{"n": 1}]

        async def over_the_port() -> None:
            assert await pool.fetchval("SELECT 1") == 1

        for _ in range(rounds + 1):
            for name, query in ((OURS, over_http), (POOL, over_the_port)):
                started = time.perf_counter()
                for _ in range(100):
                    await query()
                values[name].append((time.perf_counter() - started) * 10)
    values = {name: times[1:] for name, times in values.items()}
    return make_row("proxy", "SELECT 1 over HTTP", "ms", values, targets=[Target(1.5, POOL)])


async def in_rounds(
    uris: dict[str, str], rounds: int, once: Callable[[str], float]
) -> dict[str, list[float]]:
    """Measure each connection in rounds, without the first one."""
    values: dict[str, list[float]] = {name: [] for name in uris}
    for number in range(rounds + 1):
        for name in list(uris) if number % 2 else reversed(uris):
            values[name].append(await asyncio.to_thread(once, uris[name]))
    return {name: times[1:] for name, times in values.items()}


def pgbench(uri: str, *options: str) -> float:
    """Run pgbench. Return the seconds per transaction. It fails if a client is disconnected."""
    command = [str(newest_installation().program("pgbench")), *options, uri]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pgbench has failed: {done.stderr}")
    rate = re.search(r"tps = ([\d.]+)", done.stdout)
    return 1 / float(rate[1]) if rate else 0.0  # it only creates its tables
