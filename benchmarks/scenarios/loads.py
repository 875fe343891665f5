"""Loads of many shapes under Neon's rate limits, beside the SDK and an oracle that knows the ends.

neonctl-async has its default budget, and the simulator enforces the limits. The SDK has no budget
and would fail with responses of 429, so its simulator has no limits. The oracle is computed. Some
loads run on a server that locks a project while its operations run.
``python -m benchmarks.loads`` runs many more loads on a fake clock.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from benchmarks.harness.results import NEON_SDK, OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.loads.catalogue import catalogue
from benchmarks.loads.load import Load
from benchmarks.loads.measure import Calls, Outcome, create_all, evaluate
from benchmarks.loads.oracle import optimum
from benchmarks.peers.base import API_KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.simulator_process import SimulatorProcess
from neonctl_async import NeonClient

ORACLE = "oracle"
SEED = 0
SHORT = (
    "300 in 150",
    "200 in 20, two humps, mixed",
    "60 in 60",
)
"""The loads that arrive at once. They run one after another."""
LONG = ("200 in 100, straggler, over 60 s", "100 in 10, over 60 s")
"""The loads that arrive over a minute. They run at the same time as the others."""
LOCKED = ("20 in 1, locked", "40 in 1, 1 s, locked", "60 in 20, locked")
"""The loads on a server that locks projects. They run at the same time as the others."""
QUICK = ("300 in 150", "60 in 60", "60 in 20, locked")


async def run_ours(load: Load) -> Outcome:
    """Create all branches of a load with neonctl-async, under the rate limits."""
    async with (
        SimulatorProcess(load.settings) as server,
        NeonClient(API_KEY, base_url=server.base_url) as neon,
    ):
        started = time.monotonic()
        calls = await create_all(neon, load)
        return evaluate(load, calls, await server.report(), started)


async def run_sdk(load: Load) -> Outcome:
    """Create all branches of a load with the SDK, without rate limits."""
    settings = msgspec.structs.replace(load.settings, per_minute=None, per_route_per_second=None)
    branches = [(branch.project_id, branch.name) for branch in load.branches]
    arrivals = [branch.arrives for branch in load.branches]
    async with SimulatorProcess(settings) as server, NeonSdk() as sdk:
        started = time.monotonic()
        returned = await sdk.create(server.base_url, branches, arrivals)
        report = await server.report()
    names = (branch.name for branch in load.branches)
    failures = [failure.message for failure in returned.outcomes if failure is not None]
    calls = Calls(dict(zip(names, returned.each, strict=True)), failures)
    return evaluate(load, calls, report, started)


Outcomes = Mapping[str, Outcome]
"""The outcome of each client."""


async def run_load(load: Load) -> tuple[Load, Outcomes]:
    """Run a load with neonctl-async and with the SDK at the same time."""
    ours, sdk = await asyncio.gather(run_ours(load), run_sdk(load))
    return load, {OURS: ours, NEON_SDK: sdk}


async def run(size: RunSize) -> list[Row]:
    """Run the loads; a quick run only some of them."""
    loads = {load.name: load for load in catalogue(SEED)}

    async def one_after_another(names: Sequence[str]) -> list[tuple[Load, Outcomes]]:
        return [await run_load(loads[name]) for name in names]

    if size is RunSize.QUICK:
        results = await one_after_another(QUICK)
    else:
        long = asyncio.gather(*(run_load(loads[name]) for name in (*LONG, *LOCKED)))
        results = [*await one_after_another(SHORT), *await long]
    return [row for load, outcomes in results for row in rows_of(load, outcomes)]


def rows_of(load: Load, outcomes: Outcomes) -> list[Row]:
    """Return the rows of a load."""
    if load.settings.locks_projects:
        return locked_rows(load, outcomes)
    name = f"load: {load.name}"
    best = optimum(load)

    def row(
        measure: str, unit: str, of: Callable[[Outcome], float], oracle: float, *targets: Target
    ) -> Row:
        values = {client: [of(outcome)] for client, outcome in outcomes.items()}
        return make_row(name, measure, unit, values | {ORACLE: [oracle]}, targets=targets)

    branches = len(load.branches)
    max_polls = int(outcomes[OURS].allowed_requests) - branches
    return [
        row("delay after the last operation", "s", lambda one: one.delay, best.delay, Target(3)),
        row("worst wait", "s", lambda one: one.lateness[-1], best.worst),
        row("polls", "count", lambda one: one.polls, best.requests - branches, Target(max_polls)),
        row("responses of 429", "count", lambda one: one.refused, 0, Target(0)),
        row("failed calls", "count", lambda one: len(one.failures), 0, Target(0)),
    ]


def locked_rows(load: Load, outcomes: Outcomes) -> list[Row]:
    """Return the rows of a load on locked projects.

    The SDK takes part in the failed calls only: it gives most creations up.
    """
    name = f"load: {load.name}"
    ours = outcomes[OURS]
    serial = f"beyond the {max(load.serial_ends.values()):.0f} s of serial work"
    beyond = {OURS: [max(ours.beyond_serial.values())]}
    allowed = ours.allowed_beyond_serial
    requests = {OURS: [float(len(ours.requests))], ORACLE: [float(optimum(load).requests)]}
    failed = {client: [float(len(one.failures))] for client, one in outcomes.items()}
    targets = [] if allowed is None else [Target(allowed)]
    return [
        make_row(name, serial, "s", beyond, targets=targets),
        make_row(name, "requests", "count", requests),
        make_row(name, "failed calls", "count", failed, targets=[Target(0)]),
    ]
