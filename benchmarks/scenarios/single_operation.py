"""A single operation in its project, awaited by a client without history and by one with history.

A client that has seen similar operations finish predicts when to poll. The SDK
always polls once a second.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from benchmarks.harness.durations import spread_evenly
from benchmarks.harness.results import LATENESS, NEON_SDK, OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import API_KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.control_plane import Settings
from benchmarks.servers.simulator_process import SimulatorProcess
from neonctl_async import NeonClient, Operation

WITHOUT_HISTORY = "neonctl-async, without history"
HISTORY = 30


class Kind(msgspec.Struct, frozen=True):
    """Operations of about ``seconds``, with limits for a client without history."""

    seconds: float
    lateness: float
    requests: int

    def durations(self, count: int) -> list[float]:
        """Return durations that vary by 30 % in both directions."""
        return spread_evenly(0.7 * self.seconds, 1.3 * self.seconds, count)


KINDS = (Kind(1.0, 0.55, 5), Kind(10.0, 0.6, 17))


class Runs(msgspec.Struct, frozen=True):
    """The lateness of each run, and its polls in seconds since its start."""

    lateness: list[float]
    polls: list[list[float]]

    @property
    def requests(self) -> list[int]:
        """The number of polls of each run."""
        return [len(of_run) for of_run in self.polls]

    def described(self) -> str:
        """Return the median time of the n-th poll, and the share of runs that reached it."""
        at: list[str] = []
        for n in range(max(self.requests)):
            reached = [of_run[n] for of_run in self.polls if len(of_run) > n]
            at.append(f"{statistics.median(reached):.2f} s ({len(reached) / len(self.polls):.0%})")
        return f"polls at `{', '.join(at)}`"


Wait = Callable[[Operation], Awaitable[float]]
"""Waits for an operation and returns when it returned."""


async def run_waits(
    server: SimulatorProcess, name: str, durations: Sequence[float], wait: Wait, over: float
) -> Runs:
    """Wait for each operation in its own project. The waits start over ``over`` seconds."""

    async def run(n: int) -> tuple[str, Operation, float, float]:
        await asyncio.sleep(over * n / len(durations))
        started = time.monotonic()
        [operation] = await server.start({f"{name}-{n}": [durations[n]]})
        return f"{name}-{n}", operation, started, await wait(operation)

    runs = await asyncio.gather(*(run(n) for n in range(len(durations))))
    report = await server.report()
    polls = report.polls()
    return Runs(
        [returned - report.finishes[operation.id] for _, operation, _, returned in runs],
        [[at - started for at in polls.get(project_id, [])] for project_id, _, started, _ in runs],
    )


async def measure(kind: Kind, runs: int, over: float) -> dict[str, Runs]:
    """Measure operations of a kind with all three clients at the same time."""
    durations = kind.durations(runs)
    async with SimulatorProcess(Settings()) as server, NeonSdk() as sdk:

        async def wait_with_new_client(operation: Operation) -> float:
            async with NeonClient(API_KEY, base_url=server.base_url) as neon:
                await neon.operations.wait(operation)
                return time.monotonic()

        async def with_history() -> Runs:
            async with NeonClient(API_KEY, base_url=server.base_url) as neon:

                async def wait(operation: Operation) -> float:
                    await neon.operations.wait(operation)
                    return time.monotonic()

                await run_waits(server, "history", kind.durations(HISTORY), wait, over / 2)
                return await run_waits(server, "with-history", durations, wait, over)

        async def wait_with_sdk(operation: Operation) -> float:
            return (await sdk.wait(server.base_url, [operation])).returned_at()

        new, learned, of_sdk = await asyncio.gather(
            run_waits(server, "without-history", durations, wait_with_new_client, over),
            with_history(),
            run_waits(server, "sdk", durations, wait_with_sdk, over),
        )
    return {WITHOUT_HISTORY: new, OURS: learned, NEON_SDK: of_sdk}


async def run(size: RunSize) -> list[Row]:
    """Measure both kinds at the same time; a quick run only the short one."""
    runs = size.pick(full=100, quick=30)
    kinds = KINDS[: size.pick(full=2, quick=1)]
    results = await asyncio.gather(
        *(measure(kind, runs, over=size.pick(full=5, quick=1)) for kind in kinds)
    )
    return [
        row
        for kind, found in zip(kinds, results, strict=True)
        for row in [*rows_without_history(kind, found), *rows_with_history(kind, found)]
    ]


def rows_without_history(kind: Kind, found: dict[str, Runs]) -> list[Row]:
    """Return the rows of a new client."""
    name = f"single operation of about {kind.seconds:g} s, without history"
    runs = {OURS: found[WITHOUT_HISTORY], NEON_SDK: found[NEON_SDK]}
    lateness = {client: one.lateness for client, one in runs.items()}
    maximum = {client: [max(one.requests)] for client, one in runs.items()}
    mean = {client: [statistics.mean(one.requests)] for client, one in runs.items()}
    note = runs[OURS].described()
    return [
        make_row(name, LATENESS, "s", lateness, targets=[Target(kind.lateness)], note=note),
        make_row(name, "maximum requests", "count", maximum, targets=[Target(kind.requests)]),
        make_row(name, "mean requests", "count", mean),
    ]


def rows_with_history(kind: Kind, found: dict[str, Runs]) -> list[Row]:
    """Return the rows of a client that has seen similar operations finish."""
    name = f"single operation of about {kind.seconds:g} s, with history"
    lateness = {client: one.lateness for client, one in found.items()}
    mean = {client: [statistics.mean(one.requests)] for client, one in found.items()}
    note = found[OURS].described()
    return [
        make_row(name, LATENESS, "s", lateness, targets=[Target(kind.lateness / 2)], note=note),
        make_row(name, "mean requests", "count", mean, targets=[Target(kind.requests / 2)]),
    ]
