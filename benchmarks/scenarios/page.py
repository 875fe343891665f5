"""A page of 1,000 operations, until it is objects."""

from contextlib import AsyncExitStack

from benchmarks.harness.results import FLOOR, NEON_API, Row, Target, row
from benchmarks.harness.rounds import entered, in_turn
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.peers.ours import Listed
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

PAGES = 10
KINDS: tuple[type[Contender], ...] = (*CONTENDERS, Listed)


async def run(effort: Effort) -> list[Row]:
    """Batches of as many pages of each contender in turn."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Nginx(PAGE))
        contenders = await entered(stack, KINDS, server)

        async def pages(contender: Contender) -> float:
            return await contender.pages(PAGES) / PAGES * 1000

        return [
            row(
                "a page of 1,000",
                "to objects",
                "ms each",
                await in_turn(contenders, pages, effort.of(thorough=25, quick=2)),
                targets=[Target(1.05, by=FLOOR), Target(0.25, by=NEON_API)],
            )
        ]
