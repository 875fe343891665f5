"""Waits for 100 to 1,000 operations, in one project and in many, from 50 ms away.

neonctl-async and the SDK wait for the same durations at the same time, with their default
settings. The simulator has no rate limits here, and neonctl-async has no rate budget, because the
SDK has none. Both measures come from the simulator: how long after the last operation finished the
call returned, and the number of requests. The waits overlap. Those in which the SDK polls each
operation once a second need a whole processor, and run alone.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Self

import msgspec

from benchmarks.harness.durations import spread_evenly
from benchmarks.harness.results import LATENESS, NEON_SDK, OURS, REQUESTS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import API_KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.control_plane import Report, Settings
from benchmarks.servers.simulator_process import SimulatorProcess, last_finish
from neonctl_async import NeonClient, Operation, RateBudget

ROUND_TRIP = 0.05
MINIMUM = "one poll per project"
"""The fewest requests that any client needs."""
MAX_LATENESS, MAX_REQUESTS = 0.2, 0.05
"""The limits for 1,000 operations, as ratios to the SDK."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Operations that finish evenly between ``shortest`` and ``longest`` seconds."""

    operations: int
    projects: int = 1
    shortest: float = 1.0
    longest: float = 10.0
    rounds: int = 3
    one_call_each: bool = False
    """True if the SDK is called once per operation, concurrently."""

    def __str__(self) -> str:
        projects = "1 project" if self.projects == 1 else f"{self.projects} projects"
        each = ", a waitFor each" if self.one_call_each else ""
        return f"{self.operations:,} operations in {projects}{each}"

    @property
    def has_targets(self) -> bool:
        """True if the project has targets for this case."""
        return self.operations == 1000 and not self.one_call_each

    def durations(self, number: int) -> list[list[float]]:
        """Return the durations of the operations of each project.

        The last operation finishes at another time in each round. Otherwise one client might always
        poll right after it.
        """
        durations = spread_evenly(self.shortest, self.longest - 0.37 * number, self.operations)
        share = self.operations // self.projects
        return [durations[n : n + share] for n in range(0, self.operations, share)]


class Wait(msgspec.Struct, frozen=True):
    """The operations of a call, and when the call returned."""

    operations: list[Operation]
    returned: float


class Run(msgspec.Struct, frozen=True):
    """The lateness of a wait, and its requests in each project."""

    lateness: float
    by_project: list[int]

    @classmethod
    def of(cls, wait: Wait, report: Report) -> Self:
        """Evaluate a wait by the simulator's report."""
        polls = report.polls()
        projects = {operation.project_id for operation in wait.operations}
        return cls(
            lateness=wait.returned - last_finish(report, wait.operations),
            by_project=[len(polls[project_id]) for project_id in projects],
        )

    @property
    def requests(self) -> int:
        """The requests in all projects."""
        return sum(self.by_project)


class Arena:
    """The server and the peer of the waits: a simulator, and the SDK."""

    def __init__(self, server: SimulatorProcess, sdk: NeonSdk) -> None:
        self._server = server
        self._sdk = sdk
        self._numbers = itertools.count()

    async def run(self, case: Case, number: int) -> tuple[Wait, Wait]:
        """Run a wait of neonctl-async and one of the SDK at the same time."""
        wait_with_sdk = self._sdk.wait_for_each if case.one_call_each else self._sdk.wait

        async def ours() -> Wait:
            operations = await self._start(case.durations(number))
            async with NeonClient(
                API_KEY, base_url=self._server.base_url, budget=RateBudget.unlimited()
            ) as neon:
                await neon.operations.wait(operations)
                return Wait(operations, time.monotonic())

        async def sdk() -> Wait:
            operations = await self._start(case.durations(number))
            returned = await wait_with_sdk(self._server.base_url, operations)
            return Wait(operations, returned.returned_at())

        return await asyncio.gather(ours(), sdk())

    async def _start(self, durations: Sequence[list[float]]) -> list[Operation]:
        run = next(self._numbers)
        projects = {f"run-{run}-{n}": each for n, each in enumerate(durations)}
        return await self._server.start(projects)


TWO_PER_PROJECT = Case(operations=200, projects=100, longest=3.0, rounds=9)
"""A short fan-out: two operations per project."""


def cases(size: RunSize) -> Iterable[Case]:
    """Yield the cases of a run."""
    if size is RunSize.QUICK:
        yield Case(operations=100, projects=10, longest=3.0, rounds=3)
        yield Case(operations=1000, projects=100, longest=3.0, rounds=1)
        return
    yield Case(operations=100, projects=10, rounds=5)
    yield Case(operations=1000)
    yield Case(operations=1000, projects=100)
    yield Case(operations=1000, projects=100, one_call_each=True, rounds=2)
    yield TWO_PER_PROJECT


async def run(size: RunSize) -> list[Row]:
    """Measure all cases."""
    waits: dict[Case, list[tuple[Wait, Wait]]] = {case: [] for case in cases(size)}
    async with SimulatorProcess(Settings(round_trip=ROUND_TRIP)) as server, NeonSdk() as sdk:
        arena = Arena(server, sdk)

        async def measure(case: Case, number: int, delay: float = 0.0) -> None:
            await asyncio.sleep(delay)
            waits[case].append(await arena.run(case, number))

        await asyncio.gather(*(measure(*each) for each in overlapping(waits, size)))
        for case in waits:
            for number in range(case.rounds if case.one_call_each else 0):
                await measure(case, number)
        report = await server.report()
    rows: list[Row] = []
    for case, rounds in waits.items():
        runs = [(Run.of(ours, report), Run.of(of_sdk, report)) for ours, of_sdk in rounds]
        rows += rows_of(case, runs)
    return rows


def overlapping(cases: Iterable[Case], size: RunSize) -> Iterable[tuple[Case, int, float]]:
    """Yield the rounds that use little CPU time, and when each starts."""
    for case in cases:
        longest = case.operations == 1000  # the other cases run meanwhile
        over = size.pick(full=24 if longest else 60, quick=1)
        if not case.one_call_each:
            yield from (
                (case, number, over * number / case.rounds) for number in range(case.rounds)
            )


def rows_of(case: Case, rounds: Sequence[tuple[Run, Run]]) -> Iterable[Row]:
    """Yield the rows of a case."""
    by_client: dict[str, Sequence[Run]] = dict(
        zip((OURS, NEON_SDK), zip(*rounds, strict=True), strict=True)
    )

    def values(measure: Callable[[Run], float]) -> dict[str, list[float]]:
        return {client: [measure(run) for run in runs] for client, runs in by_client.items()}

    name = str(case)
    lateness, requests = values(lambda run: run.lateness), values(lambda run: run.requests)
    if case.has_targets:
        targets = [Target(MAX_LATENESS, relative_to=NEON_SDK)]
        yield make_row(name, LATENESS, "s", lateness, targets=targets)
        targets = [Target(MAX_REQUESTS, relative_to=NEON_SDK)]
        with_minimum = requests | {MINIMUM: [case.projects] * len(rounds)}
        note = unreachable(case, requests[NEON_SDK])
        yield make_row(name, REQUESTS, "count", with_minimum, targets=targets, note=note)
        if case.projects == 1:
            yield maximum_row(name, "maximum requests", requests, 25)
    elif case is TWO_PER_PROJECT:
        yield make_row(name, LATENESS, "s", lateness, targets=[Target(0.5)])
        yield make_row(name, REQUESTS, "count", requests)
        in_project = values(lambda run: max(run.by_project))
        yield maximum_row(name, "maximum requests in a project", in_project, 5)
    else:
        yield make_row(name, LATENESS, "s", lateness)
        yield make_row(name, REQUESTS, "count", requests)


def maximum_row(name: str, measure: str, values: Mapping[str, list[float]], limit: float) -> Row:
    """Return the row of the maximum over all rounds."""
    maximum = {client: [max(runs)] for client, runs in values.items()}
    return make_row(name, measure, "count", maximum, targets=[Target(limit)])


def unreachable(case: Case, requests: Sequence[float]) -> str:
    """Return why the target for requests cannot be met, or an empty text if it can."""
    minimum = case.projects / statistics.median(requests)
    if minimum <= MAX_REQUESTS:
        return ""
    return (
        f"the limit of {MAX_REQUESTS:g} cannot be met: "
        f"one poll per project is {minimum:.2g} of the SDK's requests"
    )
