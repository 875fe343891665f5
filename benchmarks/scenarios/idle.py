"""The activity of an unused client, after one request."""

import asyncio
from collections.abc import Callable

from benchmarks.harness.fresh_process import IdleActivity, run_fresh
from benchmarks.harness.results import NEON_SDK, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

IN_PYTHON = [name for name in CONTENDERS if name != NEON_SDK]


async def run(size: RunSize) -> list[Row]:
    """Measure fresh processes of all clients concurrently."""
    seconds = size.pick(full=20, quick=1)
    processes = size.pick(full=3, quick=1)
    activities = await asyncio.gather(*(idle(name, seconds, processes) for name in IN_PYTHON))
    by_client = dict(zip(IN_PYTHON, activities, strict=True))

    def values(measure: Callable[[IdleActivity], float]) -> dict[str, list[float]]:
        return {name: [measure(one) for one in runs] for name, runs in by_client.items()}

    scenario = f"idle for {seconds} s"
    none = [Target(0)]
    return [
        make_row(scenario, "CPU time", "ms", values(lambda one: one.cpu_ms)),
        make_row(scenario, "wake-ups", "count", values(lambda one: one.wakeups)),
        make_row(scenario, "tasks", "count", values(lambda one: one.tasks), targets=none),
        make_row(scenario, "requests", "count", values(lambda one: one.requests), targets=none),
    ]


async def idle(name: str, seconds: float, processes: int) -> list[IdleActivity]:
    """Return the activity of a client's processes. The server counts the requests."""
    async with Nginx(PAGE) as server:
        before = await server.requests()
        activities = await asyncio.gather(
            *(run_fresh(str(seconds), name, server, IdleActivity) for _ in range(processes))
        )
        after = await server.requests()
    for one in activities:  # except the first request of each process and the last count
        one.requests = (after - before - processes - 1) / processes
    return activities
