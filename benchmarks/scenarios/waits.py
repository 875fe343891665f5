"""Waiting for 1, 100 and 1,000 operations, in one project and in many, near and 50 ms away.

Ours and the SDK wait for the same durations at the same time, with their default settings; but the
server has no limits here, and ours no rate budget, as the SDK has none. What counts is what the
server saw: how long after the last operation had ended the call returned, and how many requests it
took. Runs that take little of the processor overlap. Where the SDK asks as fast as it can, a case
has the machine to itself.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from benchmarks.harness.durations import between
from benchmarks.harness.results import NEON_SDK, OURS, Row, Target, row
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.simulator import Report, Settings
from benchmarks.servers.simulator_process import ScenarioServer, last_end
from neonctl_async import NeonClient, Operation, RateBudget

FAR = 0.05
LEAST = "a look a project"
"""The least there can be, with any client."""
MOST_LATE, MOST_COST = 0.2, 0.05
"""Of what the SDK takes for 1,000 operations."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Operations that end evenly between ``shortest`` and ``longest`` seconds."""

    operations: int
    projects: int = 1
    round_trip: float = 0.0
    shortest: float = 1.0
    longest: float = 10.0
    turns: int = 3
    a_call_each: bool = False
    """Whether the SDK is called once for each operation, all at the same time."""

    def __str__(self) -> str:
        operations = f"{self.operations:,} operation{'s' if self.operations > 1 else ''}"
        projects = "1 project" if self.projects == 1 else f"{self.projects} projects"
        away = f", {self.round_trip * 1000:g} ms away" if self.round_trip else ""
        each = ", a waitFor each" if self.a_call_each else ""
        return f"{operations} in {projects}{away}{each}"

    @property
    def has_targets(self) -> bool:
        """Whether it is what the project has promised something about."""
        return self.operations == 1000 and not self.a_call_each

    @property
    def alone(self) -> bool:
        """Whether the SDK takes a processor to itself."""
        return self.a_call_each or (self.operations == 1000 and not self.round_trip)

    def durations(self, turn: int) -> list[list[float]]:
        """How long the operations of each project take.

        The last end is another each turn, so that none always meets it at the same point.
        """
        if self.operations == 1:
            return [[between(self.shortest, self.longest, self.turns)[turn]]]
        durations = between(self.shortest, self.longest - 0.37 * turn, self.operations)
        share = self.operations // self.projects
        return [durations[n : n + share] for n in range(0, self.operations, share)]


class Wait(msgspec.Struct, frozen=True):
    """A call that waited for these operations, and when it returned."""

    operations: list[Operation]
    returned: float


class Run(msgspec.Struct, frozen=True):
    """How a wait went: how late it returned, and the requests of each project."""

    late: float
    by_project: list[int]

    @classmethod
    def of(cls, wait: Wait, report: Report) -> Self:
        """By what the server saw."""
        looks = report.looks()
        projects = {operation.project_id for operation in wait.operations}
        return cls(
            late=wait.returned - last_end(report, wait.operations),
            by_project=[len(looks[project_id]) for project_id in projects],
        )

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.by_project)


class Stage:
    """Where the waits take place: a server for each round trip, and the SDK."""

    def __init__(self, servers: Mapping[float, ScenarioServer], sdk: NeonSdk) -> None:
        self._servers = servers
        self._sdk = sdk
        self._numbers = itertools.count()

    async def turn(self, case: Case, turn: int) -> tuple[Wait, Wait]:
        """A wait of ours and one of the SDK, at the same time."""
        wait_of_sdk = self._sdk.wait_for_each if case.a_call_each else self._sdk.wait
        server = self._servers[case.round_trip]

        async def ours() -> Wait:
            operations = await self._started(server, case.durations(turn))
            async with NeonClient(
                KEY, base_url=server.base_url, budget=RateBudget.unlimited()
            ) as neon:
                await neon.operations.wait(operations)
                return Wait(operations, time.monotonic())

        async def sdk() -> Wait:
            operations = await self._started(server, case.durations(turn))
            returned = await wait_of_sdk(server.base_url, operations)
            return Wait(operations, returned.unfailing())

        return await asyncio.gather(ours(), sdk())

    async def _started(
        self, server: ScenarioServer, durations: Sequence[list[float]]
    ) -> list[Operation]:
        run = next(self._numbers)
        return await server.start({f"run-{run}-{n}": each for n, each in enumerate(durations)})


FEW_EACH = Case(operations=200, projects=100, round_trip=FAR, longest=3.0, turns=9)
"""A short wait for a fan-out: two operations a project."""


def cases(effort: Effort) -> Iterable[Case]:
    """What is waited for."""
    if effort is Effort.QUICK:
        yield Case(operations=1, longest=3.0, turns=5)
        yield Case(operations=100, projects=10, longest=3.0, turns=3)
        yield Case(operations=1000, projects=100, longest=3.0, turns=1)
        return
    for round_trip in (0.0, FAR):
        yield Case(operations=1, turns=15, round_trip=round_trip)
        yield Case(operations=100, turns=5, round_trip=round_trip)
        yield Case(operations=100, projects=10, turns=5, round_trip=round_trip)
        yield Case(operations=1000, round_trip=round_trip)
        yield Case(operations=1000, projects=100, round_trip=round_trip)
    yield Case(operations=1000, projects=100, round_trip=FAR, a_call_each=True, turns=2)
    yield FEW_EACH


async def run(effort: Effort) -> list[Row]:
    """Measure all cases."""
    waits: dict[Case, list[tuple[Wait, Wait]]] = {case: [] for case in cases(effort)}
    async with (
        ScenarioServer(Settings()) as near,
        ScenarioServer(Settings(round_trip=FAR)) as far,
        NeonSdk() as sdk,
    ):
        stage = Stage({0.0: near, FAR: far}, sdk)

        async def take(case: Case, turn: int, begins: float = 0.0) -> None:
            await asyncio.sleep(begins)
            waits[case].append(await stage.turn(case, turn))

        await asyncio.gather(*(take(*each) for each in overlapping(waits, effort)))
        for case in waits:
            for turn in range(case.turns if case.alone else 0):
                await take(case, turn)
        reports = {0.0: await near.report(), FAR: await far.report()}
    found: list[Row] = []
    for case, turns in waits.items():
        report = reports[case.round_trip]
        found += rows(case, [(Run.of(ours, report), Run.of(sdk, report)) for ours, sdk in turns])
    return found


def overlapping(chosen: Iterable[Case], effort: Effort) -> Iterable[tuple[Case, int, float]]:
    """The turns that leave the processor to others, and when each begins."""
    for case in chosen:
        longest = case.operations == 1000  # the others have their turns meanwhile
        over = effort.of(thorough=24 if longest else 60, quick=1)
        if not case.alone:
            yield from ((case, turn, over * turn / case.turns) for turn in range(case.turns))


def rows(case: Case, turns: Sequence[tuple[Run, Run]]) -> Iterable[Row]:
    """What the turns of a case have come to."""
    of_ours, of_sdk = zip(*turns, strict=True)
    runs: dict[str, Sequence[Run]] = {OURS: of_ours, NEON_SDK: of_sdk}
    late = {name: [run.late for run in of_one] for name, of_one in runs.items()}
    cost = {name: [run.requests for run in of_one] for name, of_one in runs.items()}
    name = str(case)
    if case.has_targets:
        to_sdk = [Target(MOST_LATE, by=NEON_SDK)]
        yield row(name, "late", "s", late, targets=to_sdk)
        to_sdk = [Target(MOST_COST, by=NEON_SDK)]
        with_least = cost | {LEAST: [case.projects] * len(turns)}
        note = out_of_reach(case, cost[NEON_SDK])
        yield row(name, "cost", "requests", with_least, targets=to_sdk, note=note)
        if case.projects == 1:
            most = {name: [max(of_one)] for name, of_one in cost.items()}
            yield row(name, "cost at most", "requests", most, targets=[Target(25)])
    elif case is FEW_EACH:
        yield row(name, "late", "s", late, targets=[Target(0.5)])
        yield row(name, "cost", "requests", cost)
        most = {name: [max(max(run.by_project) for run in of_one)] for name, of_one in runs.items()}
        yield row(name, "cost of a project at most", "requests", most, targets=[Target(5)])
    else:
        yield row(name, "late", "s", late)
        yield row(name, "cost", "requests", cost)


def out_of_reach(case: Case, cost: Sequence[int]) -> str:
    """Why the target of the requests cannot be met, where it cannot."""
    least = case.projects / statistics.median(cost)
    if least <= MOST_COST:
        return ""
    return f"{MOST_COST:g} cannot be met: a look a project is {least:.2g} of the SDK's requests"
