"""Many creations at once, under Neon's rate limits, or with responses of 503, at three distances.

Branches are created and awaited, and some of them fail. The result of each call is compared with
the actual outcome of its branch.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from benchmarks.harness.durations import spread_evenly
from benchmarks.harness.results import (
    GATHERED,
    NEON_SDK,
    OURS,
    ROUND_TRIPS,
    Row,
    Target,
    distance,
    make_row,
)
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import API_KEY
from benchmarks.peers.neon_sdk import Failure, NeonSdk
from benchmarks.servers.control_plane import Report, Settings
from benchmarks.servers.simulator_process import SimulatorProcess
from neonctl_async import (
    NeonClient,
    OperationFailedError,
    RateBudget,
    RetryPolicy,
)
from neonctl_async.types import BranchCreated

PER_SECOND = 40
LIMITS = Settings(per_minute=700, per_route_per_second=PER_SECOND)
UNAVAILABLE = Settings(fail_every=20)
FAILING = 30
"""The n in "every n-th branch fails"."""
PACED = f"{PER_SECOND} requests a second"


class Branch(msgspec.Struct, frozen=True):
    """A branch to create."""

    project_id: str
    seconds: float
    fails: bool = False

    @property
    def name(self) -> str:
        """The name, from which the simulator reads the duration."""
        return f"branch {self.seconds}{'!' * self.fails}"


class Outcome(msgspec.Struct, frozen=True):
    """The result of a fan-out. ``known`` contains for each call whether its result was correct."""

    seconds: float
    known: list[bool]
    report: Report

    @property
    def unknown(self) -> int:
        """The number of calls without a correct result."""
        return self.known.count(False)


Outcomes = dict[str, list[Outcome]]
"""The outcomes of each client."""


async def create(settings: Settings, branches: Sequence[Branch]) -> Outcome:
    """Create all branches concurrently with neonctl-async, each with ``wait=True``."""
    async with (
        SimulatorProcess(settings) as server,
        NeonClient(API_KEY, base_url=server.base_url) as neon,
    ):
        started = time.monotonic()
        results = await asyncio.gather(
            *(neon.branches.create(one.project_id, name=one.name, wait=True) for one in branches),
            return_exceptions=True,
        )
        seconds = time.monotonic() - started
        report = await server.report()
    expected = (OperationFailedError if one.fails else BranchCreated for one in branches)
    known = [isinstance(*pair) for pair in zip(results, expected, strict=True)]
    return Outcome(seconds, known, report)


async def create_with_loop(settings: Settings, branches: Sequence[Branch]) -> Outcome:
    """Create all branches concurrently, and read each pending operation every second."""

    async def is_ready(neon: NeonClient, branch: Branch) -> bool:
        pending = (await neon.branches.create(branch.project_id, name=branch.name)).operations
        while pending:
            await asyncio.sleep(1.0)
            records = await asyncio.gather(
                *(neon.operations.get(one.project_id, one.id) for one in pending)
            )
            if any(one.status == "failed" for one in records):
                return False
            pending = [one for one in records if one.status != "finished"]
        return True

    async with (
        SimulatorProcess(settings) as server,
        NeonClient(
            API_KEY,
            base_url=server.base_url,
            retry=RetryPolicy.never(),
            budget=RateBudget.unlimited(),
        ) as neon,
    ):
        started = time.monotonic()
        results = await asyncio.gather(
            *(is_ready(neon, one) for one in branches), return_exceptions=True
        )
        seconds = time.monotonic() - started
        report = await server.report()
    known = [result is (not one.fails) for result, one in zip(results, branches, strict=True)]
    return Outcome(seconds, known, report)


async def create_with_sdk(settings: Settings, branches: Sequence[Branch]) -> Outcome:
    """Create all branches concurrently with the SDK."""

    def is_correct(error: Failure | None, branch: Branch) -> bool:
        return error is not None and error.kind == "operation" if branch.fails else not error

    async with SimulatorProcess(settings) as server, NeonSdk() as sdk:
        started = time.monotonic()
        names = [(one.project_id, one.name) for one in branches]
        returned = await sdk.create(server.base_url, names)
        report = await server.report()
    known = [is_correct(*pair) for pair in zip(returned.outcomes, branches, strict=True)]
    return Outcome(returned.at - started, known, report)


def branches_of(count: int, projects: int) -> list[Branch]:
    """Return branches that take 1 to 3 s. Successive branches belong to different projects."""
    return [
        Branch(f"p{n % projects}", seconds, fails=(n + 1) % FAILING == 0)
        for n, seconds in enumerate(spread_evenly(1.0, 3.0, count))
    ]


async def run(size: RunSize) -> list[Row]:
    """Run all clients at the same time, once at each distance, because they mostly wait."""
    # Retries after the 503s would be logged.
    logging.getLogger("neonctl_async").addHandler(logging.NullHandler())
    branches = branches_of(size.pick(full=300, quick=150), size.pick(full=150, quick=75))
    few = branches_of(100, 100)
    limited: Outcomes = {OURS: [], NEON_SDK: [], GATHERED: []}
    unavailable: Outcomes = {OURS: [], NEON_SDK: []}
    for round_trip in ROUND_TRIPS:
        limits = msgspec.structs.replace(LIMITS, round_trip=round_trip)
        failing = msgspec.structs.replace(UNAVAILABLE, round_trip=round_trip)
        outcomes = await asyncio.gather(
            create(limits, branches),
            create_with_sdk(limits, branches),
            create_with_loop(limits, branches),
            create(failing, few),
            create_with_sdk(failing, few),
        )
        places = [*limited.values(), *unavailable.values()]
        for runs, outcome in zip(places, outcomes, strict=True):
            runs.append(outcome)
    name = f"{len(few)} branches, every {UNAVAILABLE.fail_every}th response a 503"
    return [*limited_rows(branches, limited), unknown_row(name, few, unavailable)]


def limited_rows(branches: Sequence[Branch], outcomes: Outcomes) -> list[Row]:
    """Return the rows of a fan-out under Neon's rate limits.

    The times of the SDK and of the loop are left out, because they return early with errors.
    """
    name = f"{len(branches)} branches under rate limits"
    refused = maxima(outcomes, lambda one: one.report.count(status=429))
    paced = [paced_seconds(branches)]
    return [
        unknown_row(name, branches, outcomes),
        make_row(name, "maximum responses of 429", "count", refused, targets=[Target(0)]),
        *(
            make_row(
                name,
                f"total time, {distance(round_trip)}",
                "s",
                {OURS: [one.seconds], PACED: paced},
                targets=[Target(1.15, relative_to=PACED)],
            )
            for round_trip, one in zip(ROUND_TRIPS, outcomes[OURS], strict=True)
        ),
    ]


def unknown_row(name: str, branches: Sequence[Branch], outcomes: Outcomes) -> Row:
    """Return the row of branches whose outcome the caller does not know."""
    unknown = maxima(outcomes, lambda one: one.unknown)
    failing = sum(one.fails for one in branches)
    note = f"{failing} of the branches fail; a call that reports this failure is correct"
    return make_row(
        name, "maximum unknown outcomes", "count", unknown, targets=[Target(0)], note=note
    )


def paced_seconds(branches: Sequence[Branch]) -> float:
    """Return the time of all creations and one poll per project at the limit, plus one branch."""
    requests = len(branches) + len({one.project_id for one in branches})
    return requests / PER_SECOND + max(one.seconds for one in branches)


def maxima(outcomes: Outcomes, measure: Callable[[Outcome], float]) -> dict[str, list[float]]:
    """Return the maximum of all runs by client."""
    return {client: [max(map(measure, runs))] for client, runs in outcomes.items()}
