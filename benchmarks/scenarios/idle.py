"""What a client does while nobody uses it, after one request."""

import asyncio
from collections.abc import Callable

from benchmarks.harness.fresh_process import CONTENDERS, Idle, ask
from benchmarks.harness.results import NEON_SDK, Row, Target, row
from benchmarks.harness.run_size import Effort
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

IN_PYTHON = [name for name in CONTENDERS if name != NEON_SDK]


async def run(effort: Effort) -> list[Row]:
    """Several fresh processes of each contender, all at the same time."""
    seconds = effort.of(thorough=20, quick=1)
    processes = effort.of(thorough=3, quick=1)
    idlers = await asyncio.gather(*(idle(name, seconds, processes) for name in IN_PYTHON))
    told = dict(zip(IN_PYTHON, idlers, strict=True))

    def each(measure: Callable[[Idle], float]) -> dict[str, list[float]]:
        return {name: [measure(one) for one in processes] for name, processes in told.items()}

    scenario = f"idle for {seconds} s"
    nothing = [Target(0)]
    return [
        row(scenario, "CPU", "ms", each(lambda one: one.cpu_ms)),
        row(scenario, "wake-ups", "times", each(lambda one: one.wakeups)),
        row(scenario, "tasks", "count", each(lambda one: one.tasks), targets=nothing),
        row(scenario, "requests", "count", each(lambda one: one.requests), targets=nothing),
    ]


async def idle(name: str, seconds: float, processes: int) -> list[Idle]:
    """What the processes of a contender tell; the requests are those that reached a server."""
    async with Nginx(PAGE) as server:
        before = await server.requests()
        told = await asyncio.gather(
            *(ask(str(seconds), name, server, Idle) for _ in range(processes))
        )
        after = await server.requests()
    for one in told:  # each asked once before it was idle, and the server was asked for its count
        one.requests = (after - before - processes - 1) / processes
    return told
