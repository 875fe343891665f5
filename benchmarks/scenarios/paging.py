"""All 20,000 operations of a project, page by page, 20 ms away, and with work for each page."""

from contextlib import AsyncExitStack
from functools import partial

from benchmarks.harness.results import Row, Target, row
from benchmarks.harness.rounds import entered, in_turn
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import Pager
from benchmarks.peers.floor import Floor
from benchmarks.peers.neon_sdk_contender import SdkOnFixedAnswers
from benchmarks.peers.ours import Ours, WithoutPrefetch
from benchmarks.peers.pydantic_models import HttpxPydantic
from benchmarks.servers.latency_proxy import RoundTrip
from benchmarks.servers.nginx import Nginx

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
