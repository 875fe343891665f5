"""One script on an idle account: it creates a branch, and waits for two operations.

This is the most frequent wait. It is compared with the loop that people write by hand: a GET of
each pending operation every second, gathered or one after another. Durations are log-normal.
"""

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random

import msgspec

from benchmarks.harness import virtual_time
from benchmarks.harness.results import GATHERED
from benchmarks.loads.measure import API_KEY
from benchmarks.servers.control_plane import CREATE, ControlPlane, Settings
from neonctl_async import NeonClient, Operation

SECONDS = (0.3, 1.0, 3.0, 5.0, 10.0, 20.0, 60.0)
"""The medians of the time until the last operation finishes."""
ROUND_TRIP = 0.05
SCRIPTS = 100
EARLIER = 20
"""The waits of a script before those that are measured."""
SIGMA = 0.4
"""The standard deviation of the logarithm of a duration."""
IDLE = 61.0
"""The time between two waits of a script, after which the whole minute is left."""

Wait = Callable[[NeonClient, Sequence[Operation]], Awaitable[object]]


class Cell(msgspec.Struct, frozen=True):
    """The mean lateness of waits in seconds, and their mean number of requests."""

    lateness: float
    requests: float

    def __str__(self) -> str:
        return f"{self.lateness:.2f}/{self.requests:.1f}"


async def gather_gets(neon: NeonClient, operations: Sequence[Operation]) -> None:
    """Read each pending operation every second, as a program without a library does."""
    pending = list(operations)
    while pending:
        await asyncio.sleep(1.0)
        records = await asyncio.gather(
            *(neon.operations.get(one.project_id, one.id) for one in pending)
        )
        pending = [one for one in records if one.status != "finished"]


async def get_in_turn(neon: NeonClient, operations: Sequence[Operation]) -> None:
    """Read the pending operations every second, one after another."""
    pending = list(operations)
    while pending:
        await asyncio.sleep(1.0)
        records = [await neon.operations.get(one.project_id, one.id) for one in pending]
        pending = [one for one in records if one.status != "finished"]


async def wait(neon: NeonClient, operations: Sequence[Operation]) -> None:
    """Wait as the client does by default."""
    await neon.operations.wait(operations)


COLD = "default, cold"
WARM = "default, own history"
IN_TURN = "GETs every second, one after another"
ROWS: Mapping[str, tuple[Wait, int]] = {
    COLD: (wait, 0),
    WARM: (wait, EARLIER),
    GATHERED: (gather_gets, 0),
    IN_TURN: (get_in_turn, 0),
}
"""By name: the wait, and the number of earlier ones."""


def words(rng: Random, seconds: float, *, is_chained: bool) -> str:
    """Return two operations whose last one finishes after about ``seconds``."""
    if is_chained:
        first, second = (seconds / 2 * rng.lognormvariate(0.0, SIGMA) for _ in range(2))
        return f"{first!r} {second!r}"
    first, second = (seconds * rng.lognormvariate(0.0, SIGMA) for _ in range(2))
    return f"{first!r}+{second!r}"


def drawn(seconds: float, count: int, *, is_chained: bool, seed: int = 0) -> list[str]:
    """Return the operations of the scripts that are measured: the same for all clients."""
    rng = Random(f"{seed} scripts {seconds} {is_chained}")
    return [words(rng, seconds, is_chained=is_chained) for _ in range(count)]


def cell(
    seconds: float,
    row: str,
    *,
    is_chained: bool = True,
    scripts: int = SCRIPTS,
    round_trip: float = ROUND_TRIP,
    seed: int = 0,
) -> Cell:
    """Run scripts at the same time, each with its own client and project."""
    wait_for, earlier = ROWS[row]
    measured = drawn(seconds, scripts, is_chained=is_chained, seed=seed)
    past = Random(f"{seed} past {seconds} {is_chained}")
    starts = [past.uniform(0.0, 60.0) for _ in range(scripts)]

    async def main(plane: ControlPlane) -> Cell:
        async def create(neon: NeonClient, name: str, project_id: str) -> float:
            created = await neon.branches.create(project_id, name=name)
            await wait_for(neon, created.operations)
            return asyncio.get_running_loop().time()

        async def script(number: int) -> float:
            await asyncio.sleep(starts[number])
            async with NeonClient(API_KEY, base_url=virtual_time.BASE_URL) as neon:
                for one in range(earlier):
                    name = f"e{number}-{one} {words(past, seconds, is_chained=is_chained)}"
                    await create(neon, name, f"earlier-{number}")
                    await asyncio.sleep(IDLE)
                return await create(neon, f"m{number} {measured[number]}", f"p{number}")

        returned = await asyncio.gather(*map(script, range(scripts)))
        report = plane.report()
        lives = [report.branches[f"m{number} {text}"] for number, text in enumerate(measured)]
        late = [end - life.finishes for end, life in zip(returned, lives, strict=True)]
        polls = sum(
            one.project_id.startswith("p") and one.route != CREATE for one in report.requests
        )
        return Cell(statistics.mean(late), polls / scripts)

    return virtual_time.run(main, Settings(round_trip=round_trip), seed)


def table(*, is_chained: bool, seed: int = 0, scripts: int = SCRIPTS) -> list[str]:
    """Return the lines of the table."""
    kind = "one after another" if is_chained else "at once"
    lines = [f"two operations {kind}".ljust(40) + "".join(f"{s:>11g} s" for s in SECONDS)]
    for row in ROWS:
        cells = [
            cell(seconds, row, is_chained=is_chained, seed=seed, scripts=scripts)
            for seconds in SECONDS
        ]
        lines.append(row.ljust(40) + "".join(f"{cell!s:>13}" for cell in cells))
    return lines
