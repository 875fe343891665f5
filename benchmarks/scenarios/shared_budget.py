"""Sixteen processes that share one rate budget: by a file, and by a Redis server near and far away.

All of them want more requests than the limit allows. Four of them are killed. The server enforces
the limits and counts the requests that it refuses.
"""

import asyncio
import sys
import tempfile
import time
from asyncio.subprocess import Process
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.servers.control_plane import Report, Settings
from benchmarks.servers.latency_proxy import latency_proxy
from benchmarks.servers.simulator_process import SimulatorProcess
from tests.transport.shared.redis_server import RedisServer, find_redis_server

LIMITS = Settings(round_trip=0.05, per_minute=700, per_route_per_second=40)
LIMIT = "the limit of the server"
PROCESSES = 16
MINUTES = 3
FAR = 0.02
"""The round trip to a Redis server in another zone, in seconds."""
ROOT = Path(__file__).parents[2]


class Use(msgspec.Struct, frozen=True):
    """The use of the limit, from the first request on."""

    unused_percent: float
    """The largest unused part of the limit in a minute."""
    refused: int
    fewest: int
    """The fewest requests that the server accepted in a minute."""


async def run(size: RunSize) -> list[Row]:
    """Measure one store after the other, for three minutes each. A quick run has no time for it."""
    if size is RunSize.QUICK:
        return []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stores = {"file": f"sqlite:///{folder}/budget.db"}
        if (program := find_redis_server()) is not None:
            server = await asyncio.to_thread(RedisServer, program, folder)
            stack.callback(server.stop)
            stores["Redis"] = server.url
            far = await stack.enter_async_context(latency_proxy(FAR, f"redis://:{server.port}"))
            stores["Redis, 20 ms"] = f"{server.url.rpartition(':')[0]}:{far.rpartition(':')[2]}/1"
        uses = [await share(url) for url in stores.values()]
    return [row for name, use in zip(stores, uses, strict=True) for row in rows_of(name, use)]


def rows_of(store: str, use: Use) -> list[Row]:
    """Return the rows of a store."""
    scenario = f"{PROCESSES} processes, one budget ({store})"
    assert LIMITS.per_minute is not None
    fewest = {OURS: [float(use.fewest)], LIMIT: [float(LIMITS.per_minute)]}
    unused, refused = {OURS: [use.unused_percent]}, {OURS: [float(use.refused)]}
    return [
        make_row(scenario, "fewest requests in a minute", "count", fewest),
        make_row(scenario, "unused in a minute", "%", unused, targets=[Target(5)]),
        make_row(scenario, "refused requests", "count", refused, targets=[Target(0)]),
    ]


async def share(url: str, processes: int = PROCESSES, minutes: int = MINUTES) -> Use:
    """Let processes share a budget, and kill a quarter of them on the way."""
    async with SimulatorProcess(LIMITS) as server:
        workers = [await _start(url, server.base_url) for _ in range(processes)]
        try:
            await asyncio.sleep(5)
            killed, survivors = workers[: processes // 4], workers[processes // 4 :]
            for worker in killed:
                worker.kill()
                await asyncio.sleep(minutes * 60 / (len(killed) + 1))
            await _wait_for(server, minutes)
            if any(worker.returncode is not None for worker in survivors):
                raise RuntimeError("a process has ended without being killed")
        finally:
            for worker in workers:
                if worker.returncode is None:
                    worker.kill()
                await worker.wait()
        return _use(await server.report(), minutes)


async def _wait_for(server: SimulatorProcess, minutes: int) -> None:
    """Wait until some minutes have passed since the first request."""
    requests = (await server.report()).requests
    await asyncio.sleep(min(one.at for one in requests) + 60 * minutes - time.monotonic())


def _use(report: Report, minutes: int) -> Use:
    accepted = [one.at for one in report.requests if one.status != 429]
    first = min(accepted)
    counts = [
        sum(first + 60 * minute <= at < first + 60 * minute + 60 for at in accepted)
        for minute in range(minutes)
    ]
    assert LIMITS.per_minute is not None
    unused = 100 * (1 - min(counts) / LIMITS.per_minute)
    return Use(unused, report.count(status=429), min(counts))


async def _start(url: str, base_url: str) -> Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.harness.sharing_process", url, base_url), cwd=ROOT
    )
