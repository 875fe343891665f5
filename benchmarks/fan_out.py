"""Branches created and awaited all at once: within the platform's limits, and with answers of 503.

Some branches fail. What a caller is told of each is compared with what became of it.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence

import msgspec

from benchmarks.durations import between
from benchmarks.effort import Effort
from benchmarks.figures import NEON_SDK, OURS, Row, Target, row
from benchmarks.peers.neon_sdk import Failure, NeonSdk
from benchmarks.scenario import GET, LIST, Report, Settings
from benchmarks.scenario_server import KEY, ScenarioServer
from neonctl_async import BranchCreated, NeonClient, OperationFailedError

LIMITS = Settings(per_minute=700, per_second_of_route=40)
UNAVAILABLE = Settings(fail_every=20)
FAILING = 30
"""Every so manieth branch fails."""
PACED = "one look a project"


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

    def refused(self, status: int) -> int:
        """The answers of this status."""
        return self.report.count(status=status)

    @property
    def polls(self) -> int:
        """The looks at operations."""
        return self.report.count(GET, LIST)


Contender = Callable[[Settings, Sequence[Branch]], Coroutine[None, None, Outcome]]


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


def fan_out(count: int, projects: int) -> list[Branch]:
    """So many branches, of 1 to 3 s, evenly divided among projects."""
    share = count // projects
    return [
        Branch(f"p{n // share}", seconds, fails=(n + 1) % FAILING == 0)
        for n, seconds in enumerate(between(1.0, 3.0, count))
    ]


async def run(effort: Effort) -> list[Row]:
    """Both fan-outs, and all their runs, at the same time: they mostly wait."""
    logging.getLogger("neonctl_async").addHandler(logging.NullHandler())  # 503s are what is tried
    runs = effort.of(thorough=3, quick=1)
    branches = fan_out(effort.of(thorough=300, quick=150), effort.of(thorough=150, quick=75))
    few = fan_out(100, 100)

    async def of(contender: Contender, settings: Settings, asked: list[Branch]) -> list[Outcome]:
        return await asyncio.gather(*(contender(settings, asked) for _ in range(runs)))

    ours_limited, sdk_limited, ours_failing, sdk_failing = await asyncio.gather(
        of(ours, LIMITS, branches),
        of(sdk, LIMITS, branches),
        of(ours, UNAVAILABLE, few),
        of(sdk, UNAVAILABLE, few),
    )
    return [
        *limited_rows(branches, {OURS: ours_limited, NEON_SDK: sdk_limited}),
        *failing_rows(few, {OURS: ours_failing, NEON_SDK: sdk_failing}),
    ]


Outcomes = dict[str, list[Outcome]]
"""By contender."""


def limited_rows(branches: Sequence[Branch], found: Outcomes) -> list[Row]:
    """What a fan-out took under the limits of the platform."""
    name = f"{len(branches)} branches created within the limits"
    seconds = of_each(found, lambda one: one.seconds)
    seconds[PACED] = [paced(branches)] * len(found[OURS])
    refused = at_most(found, lambda one: one.refused(429))
    looks = of_each(found, lambda one: one.polls)
    return [
        untold_row(name, branches, found),
        row(name, "answers of 429, at most", "requests", refused, targets=[Target(0)]),
        row(name, "until the last is told of", "s", seconds, targets=[Target(1.15, by=PACED)]),
        row(name, "looks", "requests", looks),
    ]


def failing_rows(branches: Sequence[Branch], found: Outcomes) -> list[Row]:
    """What a fan-out took where answers are missing."""
    name = f"{len(branches)} branches created, every {UNAVAILABLE.fail_every}th answer a 503"
    unavailable = of_each(found, lambda one: one.refused(503))
    return [
        untold_row(name, branches, found),
        row(name, "answers of 503", "requests", unavailable),
    ]


def untold_row(name: str, branches: Sequence[Branch], found: Outcomes) -> Row:
    """How many branches a caller cannot tell the end of."""
    untold = at_most(found, lambda one: one.untold)
    failing = sum(one.fails for one in branches)
    note = f"{failing} of the branches fail; who is told so knows their end as well"
    measure = "branches of unknown end, at most"
    return row(name, measure, "branches", untold, targets=[Target(0)], note=note)


def paced(branches: Sequence[Branch]) -> float:
    """Seconds for the creations and a look a project at the limit, and for the last branch."""
    assert LIMITS.per_second_of_route is not None
    requests = len(branches) + len({one.project_id for one in branches})
    return requests / LIMITS.per_second_of_route + max(one.seconds for one in branches)


def of_each(found: Outcomes, measure: Callable[[Outcome], float]) -> dict[str, list[float]]:
    """What was measured of each run, by contender."""
    return {contender: [measure(one) for one in runs] for contender, runs in found.items()}


def at_most(found: Outcomes, measure: Callable[[Outcome], float]) -> dict[str, list[float]]:
    """The most of all runs, by contender."""
    return {contender: [max(values)] for contender, values in of_each(found, measure).items()}
