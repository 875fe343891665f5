"""The proxy in front of all computes, beside a direct connection by TCP and a plain relay.

pgbench and psql are the clients, because libpq is fast. The direct connection is to a server of the
same version and with the same settings.
"""

import asyncio
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import aiohttp

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.servers.local_control_plane import local_control_plane
from benchmarks.servers.plain_relay import plain_relay, socat_relay
from benchmarks.servers.postgres import PostgresServer, newest_installation, uri_of
from benchmarks.servers.queries import connected, execute, pool_of
from neonctl_async import NeonClient, RateBudget
from neonctl_async.types import ConnectionUri

DIRECT = "direct, by TCP"
RELAY = "plain relay in asyncio"
SOCAT = "socat, a relay in C"
HTTP = "over HTTP"
POOL = "asyncpg's pool, by the port"
POOLED = "through the pooler"
COPIED = 128
"""The megabytes of one ``COPY``."""
FILL = f"""
CREATE TABLE wide (text text);
ALTER TABLE wide ALTER COLUMN text SET STORAGE PLAIN;
INSERT INTO wide SELECT repeat(md5(n::text), 32) FROM generate_series(1, {COPIED * 1024}) AS n;
CREATE TABLE copied (text text);
"""
CLIENTS = 16
READERS = 8


class Load(NamedTuple):
    """The result of a run of pgbench."""

    transactions: int
    failed: int
    seconds: float


async def run(size: RunSize) -> list[Row]:
    """Measure round trips and COPY in rounds, and pgbench for a minute."""
    rounds = size.pick(full=9, quick=2)
    async with AsyncExitStack() as stack:
        process = await stack.enter_async_context(local_control_plane())
        neon = await stack.enter_async_context(
            NeonClient(process.api_key, base_url=process.base_url, budget=RateBudget.unlimited())
        )
        server = await asyncio.to_thread(PostgresServer(newest_installation()).__enter__)
        stack.callback(server.close)
        port = await stack.enter_async_context(plain_relay(server.socket))
        folder = Path(stack.enter_context(TemporaryDirectory()))
        created = await neon.projects.create(name="proxy", wait=True)
        ours = created.connection_uri.reveal()
        for uri in (ours, server.uri()):
            await execute(uri, FILL)
        uris = {OURS: ours, DIRECT: server.uri(), RELAY: uri_of(port)}
        if (program := shutil.which("socat")) is not None:
            socat = await stack.enter_async_context(socat_relay(program, server.socket))
            uris[SOCAT] = uri_of(socat)
        rows = [
            await measure_round_trips(uris, folder, rounds, size.pick(full=4, quick=1)),
            await measure_copy(uris, folder, rounds, "to the client", copy_to_client),
            await measure_copy(uris, folder, rounds, "from the client", copy_from_client),
        ]
        url = process.base_url.replace("/api/v2", "/sql")
        rows += await measure_http(url, created.connection_uri, rounds)
        rows += await measure_load(uris, size.pick(full=60, quick=3))
        uris[POOLED] = created.connection_uri.as_pooled().reveal()
        return [*rows, await measure_reads(uris, rounds, size.pick(full=4, quick=1))]


async def measure_round_trips(uris: dict[str, str], folder: Path, rounds: int, seconds: int) -> Row:
    """Measure ``SELECT 1`` on one connection."""
    script = folder / "select.sql"
    script.write_text("SELECT 1;\n")

    def once(uri: str) -> float:
        load = pgbench(uri, "-n", "-f", str(script), "-T", str(seconds))
        return load.seconds / load.transactions * 1e6

    values = await in_rounds(uris, rounds, once)
    return make_row(
        "proxy", "round trip of SELECT 1", "µs", values, targets=[Target(1.15, relative_to=DIRECT)]
    )


async def measure_http(url: str, uri: ConnectionUri, rounds: int) -> list[Row]:
    """Measure ``SELECT 1`` over HTTP, one after another and at once, beside a pool of asyncpg."""
    headers = {"Neon-Connection-String": uri.serverless}
    values: dict[str, list[float]] = {HTTP: [], POOL: []}
    at_once: dict[str, list[float]] = {HTTP: [], POOL: []}
    async with aiohttp.ClientSession(headers=headers) as http, pool_of(uri.asyncpg) as pool:

        async def over_http() -> None:
            async with http.post(url, json={"query": "SELECT 1 AS n"}) as response:
                assert (await response.json())["rows"] == [{"n": 1}]

        async def over_the_port() -> None:
            assert await pool.fetchval("SELECT 1") == 1

        for _ in range(rounds + 1):
            for name, query in ((HTTP, over_http), (POOL, over_the_port)):
                started = time.perf_counter()
                for _ in range(100):
                    await query()
                values[name].append((time.perf_counter() - started) * 10)
                started = time.perf_counter()
                await asyncio.gather(*(query() for _ in range(200)))
                at_once[name].append((time.perf_counter() - started) * 1e3)
    return [
        make_row(
            "proxy",
            "SELECT 1 over HTTP",
            "ms",
            {OURS: values[HTTP][1:], POOL: values[POOL][1:]},
            targets=[Target(1.5, relative_to=POOL)],
        ),
        make_row(
            "proxy",
            "200 times SELECT 1 over HTTP at once",
            "ms",
            {OURS: at_once[HTTP][1:], POOL: at_once[POOL][1:]},
        ),
    ]


async def measure_reads(uris: dict[str, str], rounds: int, seconds: int) -> Row:
    """Measure reads of 8 clients. 75 % of the throughput is 1.33 times the duration."""
    options = ("-n", "-S", "-c", str(READERS), "-T", str(seconds))

    def once(uri: str) -> float:
        load = pgbench(uri, *options)
        return load.seconds / load.transactions * 1e6

    values = await in_rounds(uris, rounds, once)
    return make_row(
        "proxy",
        f"reads of pgbench -S -c {READERS}",
        "µs",
        values,
        targets=[Target(round(1 / 0.75, 2), relative_to=DIRECT)],
    )


async def measure_copy(
    uris: dict[str, str],
    folder: Path,
    rounds: int,
    direction: str,
    once: Callable[[str, Path], float],
) -> Row:
    """Measure ``COPY`` in one direction. 70 % of the throughput is 1.43 times the duration."""
    values = await in_rounds(uris, rounds, lambda uri: once(uri, folder / "copied"))
    return make_row(
        "proxy",
        f"COPY of {COPIED} MB {direction}",
        "s",
        values,
        targets=[Target(round(1 / 0.7, 2), relative_to=DIRECT)],
    )


async def in_rounds(
    uris: dict[str, str], rounds: int, once: Callable[[str], float]
) -> dict[str, list[float]]:
    """Measure each connection in rounds, without the first one."""
    values: dict[str, list[float]] = {name: [] for name in uris}
    for number in range(rounds + 1):
        for name in list(uris) if number % 2 else reversed(uris):
            values[name].append(await asyncio.to_thread(once, uris[name]))
    return {name: times[1:] for name, times in values.items()}


def copy_to_client(uri: str, file: Path) -> float:
    """Return the time of a ``COPY`` to a file, and keep the file."""
    return psql(uri, f"\\copy wide TO '{file}'")


def copy_from_client(uri: str, file: Path) -> float:
    """Return the time of a ``COPY`` of the file that was copied before."""
    duration = psql(uri, f"\\copy copied FROM '{file}'")
    psql(uri, "TRUNCATE copied")
    return duration


def psql(uri: str, command: str) -> float:
    """Run a command in psql, and return the time."""
    program = str(newest_installation().program("psql"))
    started = time.perf_counter()
    subprocess.run([program, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", command, uri], check=True)
    return time.perf_counter() - started


async def measure_load(uris: dict[str, str], seconds: int) -> list[Row]:
    """Run pgbench with 16 clients, and count what the database has afterwards."""
    loads: dict[str, Load] = {}
    lost = 0
    for name, uri in uris.items():
        await asyncio.to_thread(pgbench, uri, "-i", "-q")
        options = ("-c", str(CLIENTS), "-j", "2", "-T", str(seconds))
        loads[name] = await asyncio.to_thread(pgbench, uri, *options)
        if name == OURS:
            lost = await count_lost(uri, loads[name])
    scenario = f"proxy: pgbench -c {CLIENTS} for {seconds} s"
    times = {name: [load.seconds / load.transactions * 1e3] for name, load in loads.items()}
    return [
        make_row(scenario, "time per transaction", "ms", times),
        make_row(
            scenario, "lost transactions", "count", {OURS: [float(lost)]}, targets=[Target(0)]
        ),
    ]


async def count_lost(uri: str, load: Load) -> int:
    """Return the number of transactions that failed or that the database does not have."""
    async with connected(uri) as connection:
        recorded = await connection.fetchval("SELECT count(*) FROM pgbench_history")
        moved = await connection.fetchval("SELECT sum(delta) FROM pgbench_history")
        balance = await connection.fetchval("SELECT sum(abalance) FROM pgbench_accounts")
    assert moved == balance, f"the accounts have {balance}, the history {moved}"
    return load.failed + abs(load.transactions - int(recorded))


def pgbench(uri: str, *options: str) -> Load:
    """Run pgbench, and read its report. It fails if a client is disconnected."""
    command = [str(newest_installation().program("pgbench")), *options, uri]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pgbench has failed: {done.stderr}")

    def number(pattern: str) -> float:
        found = re.search(pattern, done.stdout)
        return float(found[1]) if found else 0.0

    transactions = int(number(r"transactions actually processed: (\d+)"))
    rate = number(r"tps = ([\d.]+)")
    failed = int(number(r"number of failed transactions: (\d+)"))
    return Load(transactions, failed, transactions / rate if rate else 0.0)
