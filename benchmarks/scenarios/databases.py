"""A database with 100,000 rows: the time until its first query, and until that of a suspended one.

``initdb per database`` takes part in few rounds, because it is slow.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.rounds import run_rounds
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.databases import (
    AwaitedBranches,
    Branches,
    ByHand,
    DatabaseMaker,
    InitdbPerDatabase,
    PytestPostgresql,
    query,
)
from benchmarks.servers.local_control_plane import local_control_plane
from benchmarks.servers.postgres import PostgresServer, newest_installation
from benchmarks.servers.queries import execute
from neonctl_async import NeonClient, RateBudget

ROWS = 100_000
RESTARTED = "a stopped server, started by hand"


async def run(size: RunSize) -> list[Row]:
    """Measure new databases, and suspended ones."""
    rounds = size.pick(full=20, quick=2)
    async with AsyncExitStack() as stack:
        neon = await stack.enter_async_context(client_of_new_control_plane())
        server = await asyncio.to_thread(PostgresServer(newest_installation()).__enter__)
        stack.callback(server.close)
        makers: list[DatabaseMaker] = [
            Branches(ROWS, neon),
            AwaitedBranches(ROWS, neon),
            ByHand(ROWS, server),
            PytestPostgresql(ROWS, server),
        ]
        slow = InitdbPerDatabase(ROWS)
        for maker in makers:
            await stack.enter_async_context(maker)
        times = await run_rounds(makers, lambda maker: maker.ready(), rounds)
        times[slow.name] = [await slow.ready() for _ in range(size.pick(full=3, quick=1))]
        resumed = await resume(neon, server, rounds)
    return [
        make_row(
            f"new database with {ROWS:,} rows",
            "first query",
            "s",
            times,
            targets=[Target(0.3)],
        ),
        make_row(
            f"suspended database with {ROWS:,} rows",
            "first query",
            "s",
            resumed,
            targets=[Target(0.25)],
        ),
    ]


@asynccontextmanager
async def client_of_new_control_plane() -> AsyncGenerator[NeonClient]:
    """Run a local control plane with Postgres, and provide a client without a rate budget."""
    async with (
        local_control_plane() as process,
        NeonClient(
            process.api_key, base_url=process.base_url, budget=RateBudget.unlimited()
        ) as neon,
    ):
        yield neon


async def resume(neon: NeonClient, server: PostgresServer, rounds: int) -> dict[str, list[float]]:
    """Return the times of the first queries of a suspended compute and of a stopped server."""
    fill = Branches(ROWS, neon).fill
    created = await neon.projects.create(name="resumed", wait=True)
    uri = created.connection_uri.reveal()
    await execute(uri, fill)
    await execute(server.uri(), fill)
    values: dict[str, list[float]] = {OURS: [], RESTARTED: []}
    for _ in range(rounds):
        await neon.endpoints.suspend(created.project.id, created.endpoints[0].id, wait=True)
        started = time.perf_counter()
        await query(uri)
        values[OURS].append(time.perf_counter() - started)
        await asyncio.to_thread(server.stop)
        started = time.perf_counter()
        await asyncio.to_thread(server.start)
        await query(server.uri())
        values[RESTARTED].append(time.perf_counter() - started)
    return values
