"""One script on an idle account, which creates a branch and waits, beside a loop and the SDK.

neonctl-async and the loop run on a fake clock, 100 scripts each. The SDK has no such clock: 20
scripts with the first of these durations run at the same time, for minutes. Each script has its own
client and project. All are measured at three distances.
"""

import asyncio
import statistics
from collections.abc import Sequence
from random import Random

from benchmarks.harness.results import (
    GATHERED,
    NEON_SDK,
    OURS,
    ROUND_TRIPS,
    Row,
    Target,
    distance,
    wait_rows,
)
from benchmarks.harness.run_size import RunSize
from benchmarks.loads import scripts
from benchmarks.loads.scripts import Cell
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.control_plane import Settings
from benchmarks.servers.simulator_process import SimulatorProcess

NAMES = {
    scripts.COLD: OURS,
    scripts.WARM: f"{OURS}, after {scripts.EARLIER} such waits",
    GATHERED: GATHERED,
}
"""The client of each row of the fake clock."""
LONG = 20.0
"""The durations from which on a wait may be a second late. Below, it is no later than the loop."""
OF_SDK = 20
OVER = 20
"""The seconds within which the scripts of the SDK start."""

Cells = dict[float, dict[float, Cell]]
"""The cells by the round trip and the duration, in seconds."""


async def run(size: RunSize) -> list[Row]:
    """Run the SDK, and the others meanwhile in a thread; a quick run up to 3 s only."""
    count = size.pick(full=scripts.SCRIPTS, quick=20)
    seconds = scripts.SECONDS[: size.pick(full=len(scripts.SECONDS), quick=3)]
    over = size.pick(full=OVER, quick=1)
    cells, of_sdk = await asyncio.gather(
        asyncio.to_thread(run_others, seconds, count),
        asyncio.gather(*(run_sdk(trip, seconds, min(count, OF_SDK), over) for trip in ROUND_TRIPS)),
    )
    cells[NEON_SDK] = dict(zip(ROUND_TRIPS, of_sdk, strict=True))
    return [
        row
        for trip in ROUND_TRIPS
        for each in seconds
        for row in rows_of(trip, each, {client: of[trip][each] for client, of in cells.items()})
    ]


def run_others(durations: Sequence[float], count: int) -> dict[str, Cells]:
    """Measure all clients but the SDK, on the fake clock."""
    return {
        client: {
            trip: {
                each: scripts.cell(each, row, scripts=count, round_trip=trip) for each in durations
            }
            for trip in ROUND_TRIPS
        }
        for row, client in NAMES.items()
    }


async def run_sdk(
    round_trip: float, durations: Sequence[float], count: int, over: float
) -> dict[float, Cell]:
    """Measure the SDK in real time. All scripts run at the same time."""
    branches = {
        seconds: [
            (f"p-{seconds}-{number}", f"b-{seconds}-{number} {words}")
            for number, words in enumerate(scripts.drawn(seconds, count, is_chained=True))
        ]
        for seconds in durations
    }
    every = [branch for of_cell in branches.values() for branch in of_cell]
    rng = Random(0)
    arrivals = [rng.uniform(0.0, over) for _ in every]
    async with SimulatorProcess(Settings(round_trip=round_trip)) as server, NeonSdk() as sdk:
        returned = await sdk.create(server.base_url, every, arrivals)
        returned.returned_at()
        report = await server.report()
    polls = report.polls()
    at = dict(zip(every, returned.each, strict=True))
    return {
        seconds: Cell(
            statistics.mean(at[one] - report.branches[one[1]].finishes for one in of_cell),
            statistics.mean(len(polls[project_id]) for project_id, _ in of_cell),
        )
        for seconds, of_cell in branches.items()
    }


def rows_of(round_trip: float, seconds: float, cells: dict[str, Cell]) -> list[Row]:
    """Return the rows of a duration: the lateness and the requests of each client."""
    late = Target(1.0) if seconds >= LONG else Target(1.0, relative_to=GATHERED)
    return wait_rows(
        f"one script, two operations, {distance(round_trip)}",
        f"{seconds:g} s",
        {client: [cell.lateness] for client, cell in cells.items()},
        {client: [cell.requests] for client, cell in cells.items()},
        targets=(late, Target(1.0, relative_to=GATHERED)),
    )
