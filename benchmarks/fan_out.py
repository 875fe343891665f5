"""Much at once, where requests are refused: by the platform's limits, and by answers of 503.

Branches are created and awaited; some of them fail, and what a caller is told of each is compared
with what became of it. Operations that run already are awaited.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from benchmarks.durations import between
from benchmarks.effort import Effort
from benchmarks.figures import NEON_SDK, OURS, Row, Target, row
from benchmarks.peers.contender import KEY
from benchmarks.peers.neon_sdk import Failure, NeonSdk
from benchmarks.scenario import Report, Settings
from benchmarks.scenario_server import ScenarioServer
from neonctl_async import NeonClient, NeonError, Operation, OperationFailedError
from neonctl_async.types import BranchCreated

LIMITS = Settings(per_minute=700, per_route_per_second=40)
UNAVAILABLE = Settings(fail_every=20)
FAILING = 30
"""Every so manieth branch fails."""
PACED = "at 40 requests a second"


class Branch(msgspec.Struct, frozen=True):
    """A branch to create: its name tells the scenario server how long that takes."""

    project_id: str
    seconds: float
    fails: bool = False

    @property
    def name(self) -> str:
        """As the scenario server reads it."""
        return f"branch {self.seconds}{'!' * self.fails}"


class Outcome(msgspec.Struct, frozen=True):
    """How a fan-out went; ``told`` is whether the caller knows what has become of each."""

    seconds: float
    told: list[bool]
    report: Report

    @property
    def untold(self) -> int:
        """The branches whose end the caller was not told, or told wrongly."""
        return self.told.count(False)


Outcomes = dict[str, list[Outcome]]
"""By contender."""


async def ours(settings: Settings, branches: Sequence[Branch]) -> Outcome:
    """A create with wait for each, all at once."""
    async with (
        ScenarioServer(settings) as server,
        NeonClient(KEY, base_url=server.base_url) as neon,
    ):
        began = time.monotonic()
        outcomes = await asyncio.gather(
            *(neon.branches.create(one.project_id, name=one.name, wait=True) for one in branches),
            return_exceptions=True,
        )
        seconds = time.monotonic() - began
        report = await server.report()
    expected = (OperationFailedError if one.fails else BranchCreated for one in branches)
    told = [isinstance(*pair) for pair in zip(outcomes, expected, strict=True)]
    return Outcome(seconds, told, report)


async def sdk(settings: Settings, branches: Sequence[Branch]) -> Outcome:
    """The same with the SDK."""

    def says(outcome: Failure | None, branch: Branch) -> bool:
        return outcome is not None and outcome.kind == "operation" if branch.fails else not outcome

    async with ScenarioServer(settings) as server, NeonSdk() as driven:
        began = time.monotonic()
        asked = [(one.project_id, one.name) for one in branches]
        returned = await driven.create(server.base_url, asked)
        report = await server.report()
    told = [says(*pair) for pair in zip(returned.outcomes, branches, strict=True)]
    return Outcome(returned.at - began, told, report)


async def ours_waiting(durations: Sequence[float]) -> Outcome:
    """A wait for operations in projects of ten, within the limits."""
    async with (
        ScenarioServer(LIMITS) as server,
        NeonClient(KEY, base_url=server.base_url) as neon,
    ):
        operations = await started(server, durations)
        began = time.monotonic()
        try:
            await neon.operations.wait(operations)
        except NeonError:
            told = False
        else:
            told = True
        return Outcome(time.monotonic() - began, [told], await server.report())


async def sdk_waiting(durations: Sequence[float]) -> Outcome:
    """The same with the SDK."""
    async with ScenarioServer(LIMITS) as server, NeonSdk() as driven:
        operations = await started(server, durations)
        began = time.monotonic()
        returned = await driven.wait(server.base_url, operations)
        told = [outcome is None for outcome in returned.outcomes]
        return Outcome(returned.at - began, told, await server.report())


async def started(server: ScenarioServer, durations: Sequence[float]) -> list[Operation]:
    """Operations that run, ten in each project."""
    return await server.start(
        {f"p{n}": [*durations[n : n + 10]] for n in range(0, len(durations), 10)}
    )


def fan_out(count: int, projects: int) -> list[Branch]:
    """So many branches, of 1 to 3 s, evenly divided among projects."""
    share = count // projects
    return [
        Branch(f"p{n // share}", seconds, fails=(n + 1) % FAILING == 0)
        for n, seconds in enumerate(between(1.0, 3.0, count))
    ]


async def run(effort: Effort) -> list[Row]:
    """Run by run: everything at the same time, by ours and by the SDK, for all mostly wait."""
    logging.getLogger("neonctl_async").addHandler(logging.NullHandler())  # 503s are what is tried
    branches = fan_out(effort.of(thorough=300, quick=150), effort.of(thorough=150, quick=75))
    few = fan_out(100, 100)
    durations = between(1.0, effort.of(thorough=10, quick=3), 1000)
    found: list[Outcomes] = [{OURS: [], NEON_SDK: []} for _ in range(3)]
    for _ in range(effort.of(thorough=3, quick=1)):
        outcomes = await asyncio.gather(
            ours(LIMITS, branches),
            sdk(LIMITS, branches),
            ours(UNAVAILABLE, few),
            sdk(UNAVAILABLE, few),
            ours_waiting(durations),
            sdk_waiting(durations),
        )
        places = [runs for of_scenario in found for runs in of_scenario.values()]
        for runs, outcome in zip(places, outcomes, strict=True):
            runs.append(outcome)
    limited, failing, waiting = found
    return [
        *limited_rows(branches, limited),
        *failing_rows(few, failing),
        waiting_row(len(durations), waiting),
    ]


def limited_rows(branches: Sequence[Branch], found: Outcomes) -> list[Row]:
    """What a fan-out took under the limits of the platform.

    The SDK's time is left out: it returns early, with errors.
    """
    name = f"{len(branches)} branches within the limits"
    seconds = {
        OURS: [one.seconds for one in found[OURS]],
        PACED: [paced(branches)] * len(found[OURS]),
    }
    refused = at_most(found, lambda one: one.report.count(status=429))
    return [
        untold_row(name, branches, found),
        row(name, "refused (429) at most", "requests", refused, targets=[Target(0)]),
        row(name, "until all have ended", "s", seconds, targets=[Target(1.15, by=PACED)]),
    ]


def failing_rows(branches: Sequence[Branch], found: Outcomes) -> list[Row]:
    """What a fan-out took where answers are missing."""
    name = f"{len(branches)} branches, every {UNAVAILABLE.fail_every}th answer a 503"
    refused = of_each(found, lambda one: one.report.count(status=503))
    return [
        untold_row(name, branches, found),
        row(name, "refused (503)", "requests", refused),
    ]


def untold_row(name: str, branches: Sequence[Branch], found: Outcomes) -> Row:
    """How many branches a caller cannot tell the end of."""
    untold = at_most(found, lambda one: one.untold)
    failing = sum(one.fails for one in branches)
    note = f"{failing} of the branches fail; a caller who is told so knows their end"
    return row(name, "of unknown end at most", "branches", untold, targets=[Target(0)], note=note)


def waiting_row(count: int, found: Outcomes) -> Row:
    """Whether a wait came to its end within the limits."""
    untold = at_most(found, lambda one: one.untold)
    after = max(one.seconds for one in found[NEON_SDK])
    note = (
        f"the SDK's wait ended with an error after {after:.1f} s" if max(untold[NEON_SDK]) else ""
    )
    name = f"{count:,} operations within the limits"
    return row(name, "failed at most", "waits", untold, targets=[Target(0)], note=note)


def paced(branches: Sequence[Branch]) -> float:
    """Seconds for the creations and a look a project at the limit, and for the last branch."""
    assert LIMITS.per_route_per_second is not None
    requests = len(branches) + len({one.project_id for one in branches})
    return requests / LIMITS.per_route_per_second + max(one.seconds for one in branches)


def of_each(found: Outcomes, measure: Callable[[Outcome], float]) -> dict[str, list[float]]:
    """What was measured of each run, by contender."""
    return {contender: [measure(one) for one in runs] for contender, runs in found.items()}


def at_most(found: Outcomes, measure: Callable[[Outcome], float]) -> dict[str, list[float]]:
    """The most of all runs, by contender."""
    return {contender: [max(values)] for contender, values in of_each(found, measure).items()}
