"""Waits for 200 and 1,000 operations, in one project and in many, at three distances.

neonctl-async and the SDK wait for the same durations at the same time, with their default
settings. The simulator has no rate limits here, because the SDK would fail with responses of 429.
Both measures come from the simulator: how long after the last operation finished the call returned,
and the number of requests. The waits of all distances overlap.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Self

import msgspec

from benchmarks.harness.durations import spread_evenly
from benchmarks.harness.results import (
    NEON_SDK,
    OURS,
    ROUND_TRIPS,
    Row,
    Target,
    distance,
    wait_rows,
)
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import API_KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.control_plane import Report, Settings
from benchmarks.servers.simulator_process import SimulatorProcess, last_finish
from neonctl_async import NeonClient, Operation

ROUNDS = 3
APART = 15.0
"""The seconds from the start of a round to the next one's."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Operations that finish evenly between 1 second and ``longest`` seconds."""

    operations: int
    projects: int = 1
    longest: float = 10.0

    def __str__(self) -> str:
        projects = "1 project" if self.projects == 1 else f"{self.projects} projects"
        return f"{self.operations:,} operations in {projects}"

    def durations(self, number: int) -> list[list[float]]:
        """Return the durations of the operations of each project.

        The last operation finishes at another time in each round. Otherwise one client might always
        poll right after it.
        """
        durations = spread_evenly(1.0, self.longest - 0.37 * number, self.operations)
        share = self.operations // self.projects
        return [durations[n : n + share] for n in range(0, self.operations, share)]


CASES = (
    Case(operations=1000),
    Case(operations=1000, projects=100),
    Case(operations=200, projects=100, longest=3.0),
)


class Wait(msgspec.Struct, frozen=True):
    """The operations of a call, and when the call returned."""

    operations: list[Operation]
    returned: float


class Run(msgspec.Struct, frozen=True):
    """The lateness of a wait in seconds, and its requests."""

    lateness: float
    requests: int

    @classmethod
    def of(cls, wait: Wait, report: Report) -> Self:
        """Evaluate a wait by the simulator's report."""
        polls = report.polls()
        projects = {operation.project_id for operation in wait.operations}
        return cls(
            lateness=wait.returned - last_finish(report, wait.operations),
            requests=sum(len(polls[project_id]) for project_id in projects),
        )


Runs = dict[str, list[Run]]
"""The runs of each client."""


async def run(size: RunSize) -> list[Row]:
    """Measure all cases at all distances; a quick run once, from 50 ms away."""
    rounds = size.pick(full=ROUNDS, quick=1)
    distances = ROUND_TRIPS if size is RunSize.FULL else ROUND_TRIPS[1:2]
    measured = await asyncio.gather(*(measure(each, rounds) for each in distances))
    return [
        row
        for number, case in enumerate(CASES)
        for round_trip, found in zip(distances, measured, strict=True)
        for row in rows_of(case, round_trip, found[number])
    ]


async def measure(round_trip: float, rounds: int) -> list[Runs]:
    """Return the runs of each case. A round has one wait of each client for each case."""
    async with SimulatorProcess(Settings(round_trip=round_trip)) as server, NeonSdk() as sdk:

        async def start(name: str, case: Case, number: int) -> list[Operation]:
            prefix = f"{name}-{CASES.index(case)}-{number}"
            durations = enumerate(case.durations(number))
            return await server.start({f"{prefix}-{n}": one for n, one in durations})

        async def ours(case: Case, number: int) -> Wait:
            operations = await start("ours", case, number)
            async with NeonClient(API_KEY, base_url=server.base_url) as neon:
                await neon.operations.wait(operations)
                return Wait(operations, time.monotonic())

        async def of_sdk(case: Case, number: int) -> Wait:
            operations = await start("sdk", case, number)
            returned = await sdk.wait(server.base_url, operations)
            return Wait(operations, returned.returned_at())

        async def run_round(number: int) -> list[Wait]:
            await asyncio.sleep(APART * number)
            calls = (wait(case, number) for case in CASES for wait in (ours, of_sdk))
            return await asyncio.gather(*calls)

        waits = await asyncio.gather(*map(run_round, range(rounds)))
        report = await server.report()
    return [
        {
            client: [Run.of(of_round[2 * number + place], report) for of_round in waits]
            for place, client in enumerate((OURS, NEON_SDK))
        }
        for number in range(len(CASES))
    ]


def rows_of(case: Case, round_trip: float, runs: Runs) -> list[Row]:
    """Return the rows of a case: the lateness and the requests of each client."""

    def values(measure: Callable[[Run], float]) -> dict[str, list[float]]:
        return {client: [measure(run) for run in found] for client, found in runs.items()}

    return wait_rows(
        f"{case}",
        distance(round_trip),
        values(lambda run: run.lateness),
        values(lambda run: run.requests),
        targets=(Target(3.0), Target(1.0, NEON_SDK)),
    )
