"""All 20,000 operations of a project, page by page, 20 ms away, and with work for each page."""

from contextlib import AsyncExitStack
from functools import partial

from benchmarks.effort import Effort
from benchmarks.figures import Row, Target, row
from benchmarks.nginx import Nginx
from benchmarks.peers.contender import Pager
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_sdk_fixed import SdkOnFixedAnswers
from benchmarks.peers.ours import Ours, WithoutPrefetch
from benchmarks.peers.pydantic_models import HttpxPydantic
from benchmarks.round_trip import RoundTrip
from benchmarks.turns import entered, in_turn

ROUND_TRIP = 0.02
WORK = 0.02
CONTENDERS: tuple[type[Pager], ...] = (
    Ours,
    WithoutPrefetch,
    Floor,
    HttpxPydantic,
    SdkOnFixedAnswers,
)


async def run(effort: Effort) -> list[Row]:
    """The whole list by each contender in turn."""
    rounds = effort.of(thorough=6, quick=1)
    stored = effort.of(thorough=20_000, quick=2_000)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Nginx(stored))
        away = await stack.enter_async_context(RoundTrip(ROUND_TRIP, server.base_url))
        contenders = await entered(stack, CONTENDERS, server, away)
        return [
            row(
                f"paging {stored:,}",
                f"{WORK * 1000:.0f} ms of work with each page",
                "s",
                await in_turn(contenders, partial(paging, pause=WORK), rounds),
                targets=[Target(0.75, by=WithoutPrefetch.name)],
            ),
            row(
                f"paging {stored:,}",
                "no work",
                "s",
                await in_turn(contenders, partial(paging, pause=0.0), rounds),
            ),
        ]


async def paging(contender: Pager, pause: float) -> float:
    """What all pages take, in seconds."""
    return await contender.paging(pause)
