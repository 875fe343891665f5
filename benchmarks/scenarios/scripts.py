"""One script on an idle account, which creates a branch and waits, beside loops and the SDK.

neonctl-async and the loops run on a fake clock, 100 scripts each. The SDK has no such clock: 40
scripts with the first of these durations run at the same time, for minutes. Each script has its own
client and project. The round trip is 50 ms.
"""

import asyncio
import statistics
from random import Random

from benchmarks.harness.results import (
    GATHERED,
    LATENESS,
    NEON_SDK,
    OURS,
    REQUESTS,
    Row,
    Target,
    make_row,
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
    scripts.IN_TURN: scripts.IN_TURN,
}
"""The client of each row of the fake clock."""
LONG = 20.0
"""The durations from which on a wait may be a second late. Below, it is no later than the loop."""
OF_SDK = 40
OVER = 20
"""The seconds within which the scripts of the SDK start."""

Key = tuple[float, bool]
"""The seconds of a cell, and true if its operations run one after another."""


async def run(size: RunSize) -> list[Row]:
    """Run the SDK, and the others meanwhile in a thread; a quick run up to 3 s only."""
    count = size.pick(full=scripts.SCRIPTS, quick=20)
    seconds = scripts.SECONDS[: size.pick(full=len(scripts.SECONDS), quick=3)]
    keys = [(each, is_chained) for is_chained in (True, False) for each in seconds]
    of_sdk, others = await asyncio.gather(
        run_sdk(keys, min(count, OF_SDK), over=size.pick(full=OVER, quick=1)),
        asyncio.to_thread(run_others, keys, count),
    )
    return [row for key in keys for row in rows_of(key, others[key] | {NEON_SDK: of_sdk[key]})]


def run_others(keys: list[Key], count: int) -> dict[Key, dict[str, Cell]]:
    """Measure all clients but the SDK, on the fake clock."""
    return {
        (seconds, is_chained): {
            client: scripts.cell(seconds, row, is_chained=is_chained, scripts=count)
            for row, client in NAMES.items()
        }
        for seconds, is_chained in keys
    }


async def run_sdk(keys: list[Key], count: int, over: float) -> dict[Key, Cell]:
    """Measure the SDK in real time. All scripts run at the same time."""
    branches = {
        (seconds, is_chained): [
            (f"p-{is_chained}-{seconds}-{number}", f"b-{is_chained}-{seconds}-{number} {words}")
            for number, words in enumerate(scripts.drawn(seconds, count, is_chained=is_chained))
        ]
        for seconds, is_chained in keys
    }
    every = [branch for of_cell in branches.values() for branch in of_cell]
    rng = Random(0)
    arrivals = [rng.uniform(0.0, over) for _ in every]
    settings = Settings(round_trip=scripts.ROUND_TRIP)
    async with SimulatorProcess(settings) as server, NeonSdk() as sdk:
        returned = await sdk.create(server.base_url, every, arrivals)
        returned.returned_at()
        report = await server.report()
    polls = report.polls()
    at = dict(zip(every, returned.each, strict=True))
    return {
        key: Cell(
            statistics.mean(at[one] - report.branches[one[1]].finishes for one in of_cell),
            statistics.mean(len(polls[project_id]) for project_id, _ in of_cell),
        )
        for key, of_cell in branches.items()
    }


def rows_of(key: Key, cells: dict[str, Cell]) -> list[Row]:
    """Return the rows of a duration: the lateness and the requests of each client."""
    seconds, is_chained = key
    name = f"one script, two operations {'one after another' if is_chained else 'at once'}"
    column = f"{seconds:g} s"
    late = Target(1.0) if seconds >= LONG else Target(1.0, relative_to=GATHERED)
    few = Target(1.0, relative_to=GATHERED)
    return [
        make_row(
            name,
            f"{LATENESS}, {column}",
            "s",
            {client: [cell.lateness] for client, cell in cells.items()},
            targets=[late],
            column=column,
        ),
        make_row(
            name,
            f"{REQUESTS}, {column}",
            "count",
            {client: [cell.requests] for client, cell in cells.items()},
            targets=[few],
            column=column,
        ),
    ]
