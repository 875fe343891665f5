"""A page of 1,000 operations, fetched and decoded."""

from contextlib import AsyncExitStack

from benchmarks.harness.results import FLOOR, NEON_API, Row, Target, make_row
from benchmarks.harness.rounds import enter_all, run_rounds
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.base import Contender
from benchmarks.peers.contenders import CONTENDERS
from benchmarks.peers.ours import Listed
from benchmarks.servers.fixed_responses import PAGE
from benchmarks.servers.nginx import Nginx

PAGES = 10
KINDS: tuple[type[Contender], ...] = (*CONTENDERS.values(), Listed)


async def run(size: RunSize) -> list[Row]:
    """Measure batches of pages in rounds."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(Nginx(PAGE))
        contenders = await enter_all(stack, KINDS, server)

        async def pages(contender: Contender) -> float:
            return await contender.pages(PAGES) / PAGES * 1000

        values = await run_rounds(contenders, pages, size.pick(full=25, quick=2))
    targets = [Target(1.05, relative_to=FLOOR), Target(0.25, relative_to=NEON_API)]
    name = "page of 1,000 operations"
    return [make_row(name, "fetched and decoded", "ms each", values, targets=targets)]
